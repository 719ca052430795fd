"""Trains the weights of fashion_mlp.py, in about a minute: python train_fashion_mlp.py

The pictures are drawn here, with random variation: silhouettes of the ten classes of
Fashion-MNIST, 28×28 and grey. They are not that data set. The script prints the accuracy on
pictures that were not trained on, and writes the weights and one such picture of each class to
fashion_mlp.npz. With --sheet FILE it saves a picture of many of them instead.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageChops, ImageDraw, ImageFilter
from torch import nn

FILE = Path(__file__).with_name("fashion_mlp.npz")
SIZE = 28
SCALE = 8  # pictures are drawn this much larger, and then made small
TRAINING, TEST = 1500, 200  # pictures of each class

Random = np.random.Generator
Point = tuple[float, float]


class Canvas:
    """A square from -1 to 1, x to the right and y down, to draw grey shapes on."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.image = Image.new("L", (SIZE * SCALE, SIZE * SCALE), 0)
        self.draw = ImageDraw.Draw(self.image)
        self.grey = random.uniform(0.55, 1.0)

    def near(self, value: float, spread: float = 0.05) -> float:
        """Return a number near `value`."""
        return value + self.random.uniform(-spread, spread)

    def pixels(self, points: list[Point]) -> list[Point]:
        half = SIZE * SCALE / 2
        return [(half + 0.92 * half * x, half + 0.92 * half * y) for x, y in points]

    def shade(self, grey: float) -> int:
        return int(255 * min(1.0, max(0.0, self.grey * grey)))

    def polygon(self, points: list[Point], grey: float = 1.0) -> None:
        self.draw.polygon(self.pixels(points), fill=self.shade(grey))

    def both_sides(self, points: list[Point], grey: float = 1.0) -> None:
        """Draw a polygon and its mirror image."""
        self.polygon(points, grey)
        self.polygon([(-x, y) for x, y in points], grey)

    def line(self, points: list[Point], width: float, grey: float = 1.0) -> None:
        """Draw a line; its width as the polygons' numbers."""
        thick = round(width * 0.92 * SIZE * SCALE / 2)
        self.draw.line(self.pixels(points), self.shade(grey), thick, joint="curve")

    def ellipse(self, centre: Point, radius: Point, grey: float = 1.0) -> None:
        (x, y), (width, height) = centre, radius
        corners = self.pixels([(x - width, y - height), (x + width, y + height)])
        self.draw.ellipse([*corners[0], *corners[1]], fill=self.shade(grey))

    def arch(self, left: float, right: float, top: float, foot: float, width: float) -> None:
        """Draw half of an ellipse that stands on its two ends."""
        angles = np.linspace(np.pi, 2 * np.pi, 24)
        middle, half = (left + right) / 2, (right - left) / 2
        curve = [(middle + half * np.cos(a), foot + (foot - top) * np.sin(a)) for a in angles]
        self.line([(float(x), float(y)) for x, y in curve], width)


def torso(canvas: Canvas, shoulder: float, waist: float, hem: float, grey: float = 1.0) -> None:
    """Draw the body of a garment from the shoulders at y = -0.75 down to `hem`."""
    canvas.both_sides(
        [(0, -0.72), (0.28, -0.82), (shoulder, -0.66), (waist, 0.0), (waist + 0.02, hem), (0, hem)],
        grey,
    )


def sleeves(canvas: Canvas, shoulder: float, out: float, length: float, width: float) -> None:
    """Draw two sleeves that end at y = `length` and x = `out`."""
    canvas.both_sides(
        [
            (shoulder - 0.12, -0.74),
            (shoulder + 0.02, -0.66),
            (out, length),
            (out - width, length + 0.08),
            (shoulder - 0.1, -0.3),
        ]
    )


def neck(canvas: Canvas, width: float, depth: float) -> None:
    canvas.ellipse((0, -0.84), (width, depth), 0)


def t_shirt(canvas: Canvas) -> None:
    shoulder, waist = canvas.near(0.52), canvas.near(0.46)
    torso(canvas, shoulder, waist, canvas.near(0.85, 0.08))
    sleeves(canvas, shoulder, canvas.near(0.86), canvas.near(-0.22, 0.08), canvas.near(0.26, 0.04))
    neck(canvas, canvas.near(0.24), canvas.near(0.16))


def trouser(canvas: Canvas) -> None:
    waist, knee, foot = canvas.near(0.32), canvas.near(0.3), canvas.near(0.29, 0.08)
    gap, crotch, hem = canvas.near(0.06, 0.03), canvas.near(-0.35, 0.08), canvas.near(0.92)
    canvas.both_sides(
        [(0, -0.9), (waist, -0.9), (waist + 0.06, crotch), (knee + 0.02, 0.3), (foot, hem),
         (gap + 0.04, hem), (gap, 0.2), (0, crotch)]
    )  # fmt: skip
    canvas.line([(-waist, -0.83), (waist, -0.83)], 0.05, 0.6)


def pullover(canvas: Canvas) -> None:
    shoulder, waist = canvas.near(0.54), canvas.near(0.48)
    hem = canvas.near(0.8, 0.06)
    torso(canvas, shoulder, waist, hem)
    sleeves(canvas, shoulder, canvas.near(0.84), canvas.near(0.66, 0.08), canvas.near(0.24, 0.04))
    neck(canvas, canvas.near(0.22), canvas.near(0.1, 0.03))
    ribs = canvas.near(0.7, 0.1)
    canvas.line([(-waist, hem - 0.06), (waist, hem - 0.06)], 0.07, ribs)
    if canvas.random.random() < 0.5:
        height = canvas.near(-0.1, 0.25)
        canvas.line([(-waist + 0.03, height), (waist - 0.03, height)], canvas.near(0.12), ribs)


def dress(canvas: Canvas) -> None:
    waist, hem = canvas.near(0.22), canvas.near(0.48, 0.12)
    middle, length = canvas.near(-0.2, 0.1), canvas.near(0.92, 0.05)
    top = canvas.near(0.34)
    canvas.both_sides(
        [(0, -0.66), (0.14, -0.7), (0.2, -0.92), (0.28, -0.92), (top, -0.6), (waist, middle),
         (hem, length), (0, length)]
    )  # fmt: skip
    if canvas.random.random() < 0.4:
        sleeves(canvas, top, canvas.near(0.5), canvas.near(-0.3, 0.1), 0.16)
    if canvas.random.random() < 0.5:
        canvas.line([(-waist, middle), (waist, middle)], 0.07, 0.55)


def coat(canvas: Canvas) -> None:
    shoulder, waist = canvas.near(0.5), canvas.near(0.46)
    hem = canvas.near(0.93, 0.04)
    torso(canvas, shoulder, waist, hem)
    sleeves(canvas, shoulder, canvas.near(0.8), canvas.near(0.56, 0.08), canvas.near(0.24, 0.04))
    dark = canvas.near(0.25, 0.15)
    canvas.line([(0, -0.7), (0, hem)], canvas.near(0.07, 0.02), dark)
    canvas.both_sides([(0, -0.28), (0.05, -0.4), (0.3, -0.72), (0.1, -0.85), (0, -0.7)], 0.65)
    canvas.polygon([(-0.1, -0.9), (0.1, -0.9), (0, -0.5)], 0)
    canvas.both_sides([(0.2, 0.3), (0.38, 0.26), (0.38, 0.32), (0.2, 0.36)], dark)


def sandal(canvas: Canvas) -> None:
    heel, toe = canvas.near(0.24, 0.1), canvas.near(0.5)
    sole = [(-0.88, heel - 0.1), (-0.3, 0.28), (0.3, toe), (0.92, toe)]
    canvas.line(sole, canvas.near(0.17, 0.03))
    canvas.polygon([(-0.94, heel - 0.12), (-0.56, heel), (-0.68, 0.66), (-0.86, 0.66)], 0.85)
    width = canvas.near(0.13, 0.03)
    top = canvas.near(-0.36, 0.1)
    canvas.line([(-0.82, heel - 0.1), (-0.66, top), (-0.24, top + 0.12), (-0.26, 0.3)], width)
    canvas.polygon([(0.12, 0.44), (0.4, canvas.near(0.04)), (0.6, 0.1), (0.84, 0.48)], 0.9)
    if canvas.random.random() < 0.5:
        canvas.polygon([(0.32, 0.44), (0.44, 0.2), (0.56, 0.44)], 0)
    if canvas.random.random() < 0.5:
        canvas.line([(-0.3, top + 0.2), (0.3, 0.2)], width)


def shirt(canvas: Canvas) -> None:
    shoulder, waist = canvas.near(0.54), canvas.near(0.48)
    hem = canvas.near(0.78, 0.06)
    torso(canvas, shoulder, waist, hem)
    canvas.both_sides([(0, hem - 0.03), (waist, hem - 0.03), (0.18, hem + 0.14), (0, hem + 0.14)])
    sleeves(canvas, shoulder, canvas.near(0.84), canvas.near(0.5, 0.16), canvas.near(0.2, 0.04))
    stripe = 0.6 if canvas.grey < 0.75 else 0.2
    canvas.both_sides([(0.0, -0.62), (0.24, -0.92), (0.32, -0.78), (0.16, -0.52)], 0.55)
    for height in np.linspace(-0.4, hem - 0.05, 5):
        canvas.ellipse((0, float(height)), (0.035, 0.035), 0)
    for left in (0.16, 0.32):
        right = left + 0.035
        canvas.both_sides([(left, -0.6), (right, -0.6), (right, hem), (left, hem)], stripe)


def sneaker(canvas: Canvas) -> None:
    top, tongue = canvas.near(-0.12, 0.06), canvas.near(-0.3, 0.06)
    canvas.polygon(
        [(-0.9, 0.42), (-0.88, top - 0.06), (-0.72, top - 0.1), (-0.5, top + 0.08), (-0.2, tongue),
         (-0.05, tongue), (0.3, canvas.near(0.02)), (0.72, 0.12), (0.92, 0.28), (0.94, 0.42)],
        0.9,
    )  # fmt: skip
    canvas.polygon(
        [(-0.92, 0.38), (0.95, 0.38), (0.92, 0.54), (-0.9, 0.54)], canvas.near(0.5, 0.15)
    )
    for x in (-0.1, 0.06, 0.22):
        canvas.line([(x, -0.16 + x / 2), (x + 0.1, 0.02 + x / 2)], 0.04, 0.25)
    if canvas.random.random() < 0.6:
        canvas.line([(-0.5, 0.25), (0.0, 0.2), (0.3, 0.08)], 0.08, 0.35)


def bag(canvas: Canvas) -> None:
    top, bottom = canvas.near(-0.22, 0.12), canvas.near(0.72, 0.08)
    upper, lower = canvas.near(0.66, 0.12), canvas.near(0.76, 0.1)
    canvas.both_sides([(0, top), (upper, top), (lower, bottom), (0, bottom)])
    handle = canvas.near(0.38, 0.12)
    canvas.arch(-handle, handle, canvas.near(-0.8, 0.08), top, canvas.near(0.1, 0.03))
    if canvas.random.random() < 0.5:
        canvas.both_sides([(0, top), (upper, top), (upper, top + 0.22), (0, top + 0.3)], 0.7)
    canvas.ellipse((0, top + 0.28), (0.06, 0.06), 0.3)


def ankle_boot(canvas: Canvas) -> None:
    shaft, ankle = canvas.near(-0.82, 0.07), canvas.near(-0.05)
    canvas.polygon(
        [(-0.72, shaft), (canvas.near(0.0), shaft), (0.04, ankle), (0.4, canvas.near(0.16)),
         (0.78, 0.28), (0.88, 0.56), (-0.74, 0.56), (-0.66, 0.0)]
    )  # fmt: skip
    heel = canvas.near(0.82, 0.06)
    canvas.polygon([(-0.76, 0.56), (0.9, 0.56), (0.9, 0.66), (-0.3, 0.66), (-0.34, heel),
                    (-0.74, heel)], 0.6)  # fmt: skip
    canvas.line([(-0.68, shaft + 0.1), (0.0, shaft + 0.1)], 0.05, 0.6)
    if canvas.random.random() < 0.5:
        canvas.polygon([(-0.4, ankle), (-0.18, ankle), (-0.24, 0.4), (-0.36, 0.4)], 0.55)


DRAWERS: tuple[Callable[[Canvas], None], ...] = (
    t_shirt,
    trouser,
    pullover,
    dress,
    coat,
    sandal,
    shirt,
    sneaker,
    bag,
    ankle_boot,
)
"""In the order of the classes of Fashion-MNIST."""


def draw(kind: int, random: Random) -> np.ndarray:
    """Draw one picture of a class: 28×28 bytes."""
    canvas = Canvas(random)
    DRAWERS[kind](canvas)
    fabric = Image.fromarray((random.uniform(0.8, 1.0, (SIZE, SIZE)) * 255).astype(np.uint8))
    image = ImageChops.multiply(canvas.image, fabric.resize(canvas.image.size))
    width = image.width
    stretch_x, stretch_y = random.uniform(0.92, 1.12, 2)
    slant = random.uniform(-0.06, 0.06)
    shift_x, shift_y = random.uniform(-0.05, 0.05, 2) * width
    half = width / 2
    image = image.transform(
        image.size,
        Image.Transform.AFFINE,
        (stretch_x, slant, half - stretch_x * half - slant * half + shift_x,
         0, stretch_y, half - stretch_y * half + shift_y),
        Image.Resampling.BILINEAR,
    )  # fmt: skip
    image = image.filter(ImageFilter.GaussianBlur(SCALE * random.uniform(0.1, 0.45)))
    small = np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BOX), dtype=np.float32)
    noise = random.normal(0, 4, small.shape) * (small > 8)
    return (small + noise).clip(0, 255).astype(np.uint8)


def draw_many(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw `count` pictures of each class; return them, and their classes."""
    random = np.random.default_rng(seed)
    kinds = np.tile(np.arange(len(DRAWERS)), count)
    return np.stack([draw(int(kind), random) for kind in kinds]), kinds


def as_batch(pictures: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(pictures).reshape(-1, SIZE * SIZE) / 255


def train(pictures: np.ndarray, kinds: np.ndarray) -> nn.Sequential:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(SIZE * SIZE, 128), nn.ReLU(), nn.Linear(128, len(DRAWERS)))
    inputs, targets = as_batch(pictures), torch.from_numpy(kinds)
    epochs, size = 25, 128
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        total = 0.0
        for batch in torch.randperm(len(inputs)).split(size):
            loss = nn.functional.cross_entropy(model(inputs[batch]), targets[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        schedule.step()
        print(f"epoch {epoch + 1:2} of {epochs}, loss {total / len(inputs):.4f}")
    return model.eval()


def save_sheet(file: Path) -> None:
    """Save a picture with a row of silhouettes for each class."""
    pictures, _ = draw_many(16, seed=3)
    sheet = pictures.reshape(16, 10, SIZE, SIZE).transpose(1, 2, 0, 3).reshape(10 * SIZE, -1)
    Image.fromarray(sheet).resize(
        (sheet.shape[1] * 3, sheet.shape[0] * 3), Image.Resampling.NEAREST
    ).save(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains the weights of fashion_mlp.py.")
    parser.add_argument("--sheet", type=Path, help="save a picture of many silhouettes instead")
    sheet = parser.parse_args().sheet
    if sheet is not None:
        save_sheet(sheet)
        return
    model = train(*draw_many(TRAINING, seed=1))
    pictures, kinds = draw_many(TEST, seed=2)
    with torch.no_grad():
        scores = model(as_batch(pictures)).softmax(dim=1).numpy()
    right = scores.argmax(axis=1) == kinds
    print(f"accuracy on {len(kinds)} pictures that were not trained on: {right.mean():.1%}")
    shown = [int(np.flatnonzero(right & (kinds == kind))[0]) for kind in range(len(DRAWERS))]
    weights = dict(zip(
        ("linear0.weight", "linear0.bias", "linear1.weight", "linear1.bias"),
        (parameter.detach().numpy() for parameter in model.parameters()),
        strict=True,
    ))  # fmt: skip
    np.savez_compressed(FILE, pictures=pictures[shown], **weights)
    print(f"{FILE}: {FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
