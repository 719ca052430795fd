"""The value of one input: drawn at random, read from a file, or a picture."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from lowerscope.core.files.paths import check_readable, user_path
from lowerscope.core.files.sources import (
    ARRAYS,
    COMPLEX,
    DTYPES,
    FLOATS,
    IMAGES,
    INTEGERS,
    MANY_SAMPLES,
    integer_range,
)
from lowerscope.core.model.dimensions import Sizes, at_sizes
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import InputSpec
from lowerscope.core.model.snapshot import Picture
from lowerscope.core.model.texts import _, _n
from lowerscope.core.sources.array_files import UnreadableArrays, read_npy, read_npz
from lowerscope.core.sources.parameters import check_tensor, load_weights

LABELS = ("y", "labels", "label", "targets", "target")
"""Names of the arrays of an archive that hold labels, not inputs."""


def sample_of(value: torch.Tensor, item: int, where: str) -> torch.Tensor:
    """Return a sample of the first axis.

    Raises `LowerscopeError` if the index is out of range.
    """
    count = value.shape[0] if value.ndim else 0
    if not 0 <= item < count:
        raise LowerscopeError(
            _("there is no sample {item}", item=item),
            where=where,
            todo=_("It has {count}, counted from 0", count=count),
        )
    return value[item]


def fitted(value: torch.Tensor, shape: Shape | None, dtype: str | None, where: str) -> torch.Tensor:
    """Return `value` reshaped to as many elements, in a dtype that represents its values.

    Bytes become floats from 0 to 1, as in a picture; floats become floats of another width, and
    integers become integers that represent them. ``None`` leaves shape or dtype unchanged.

    Raises `LowerscopeError` if it does not fit.
    """
    if shape is not None and tuple(value.shape) != shape:
        if value.numel() != math.prod(shape):
            raise _misfit(value, shape, where)
        value = value.reshape(shape)
    kind = str(value.dtype).removeprefix("torch.")
    if dtype is None or kind == dtype:
        return value
    wanted = getattr(torch, dtype)
    if dtype in FLOATS and kind == "uint8":
        return (value.to(torch.float32) / 255).to(wanted)
    if dtype in FLOATS and kind in FLOATS:
        return value.to(wanted)
    if dtype in INTEGERS and kind in INTEGERS:
        converted = value.to(wanted)
        if torch.equal(converted.to(torch.int64), value.to(torch.int64)):
            return converted
    raise LowerscopeError(
        _("its values are of {kind}, and the input takes {dtype}", kind=kind, dtype=dtype),
        where=where,
        todo=_("Save them as {dtype}, or bytes of a picture", dtype=dtype)
        if dtype in FLOATS
        else _("Save them as {dtype}", dtype=dtype),
    )


def _misfit(value: torch.Tensor, shape: Shape, where: str) -> LowerscopeError:
    size = math.prod(shape)
    samples = value.shape[0] if value.ndim else 0
    what = _(
        "its shape {shape} does not fit the input's, {shape2}",
        shape=tuple(value.shape),
        shape2=shape,
    )
    if samples > 1 and value.numel() == samples * size:
        return LowerscopeError(
            _("it holds {samples} samples, and the input takes one", samples=samples),
            where=where,
            todo=_("Run it as a set of inputs, or name a sample, the first with #0"),
            code=MANY_SAMPLES,
        )
    return LowerscopeError(
        what, where=where, todo=_n("Give {count} value", "Give {count} values", size)
    )


Shape = tuple[int, ...]


def draw(spec: InputSpec, seed: int, sizes: Sizes) -> tuple[torch.Tensor, str]:
    """Draw a random value from torch's global generator; return it and its origin.

    Floats are normally distributed, integers uniform in their range, truth values even.

    Raises `LowerscopeError` if there is not enough memory for it.
    """
    assert spec.shape is not None
    shape = at_sizes(spec.shape, sizes)
    try:
        return _drawn(spec, shape, seed)
    except (RuntimeError, TypeError, OverflowError):
        # Shape and dtype are already validated: only the size can fail.
        raise LowerscopeError(
            _("a value of the shape {text} does not fit into memory", text=_text(shape)),
            where=f"--input {spec.name}",
            todo=_("Give a smaller shape"),
        ) from None


def _drawn(spec: InputSpec, shape: Shape, seed: int) -> tuple[torch.Tensor, str]:
    name = spec.dtype or "float32"
    dtype = getattr(torch, name)
    own: torch.Generator | None = None
    if spec.seed is not None:
        seed = spec.seed
        own = torch.Generator().manual_seed(seed)
    if name == "bool":
        value = torch.randint(0, 2, shape, dtype=torch.uint8, generator=own).bool()
        return value, _("random, seed {seed}", seed=seed)
    if name in INTEGERS:
        low, high = integer_range(spec)
        value = torch.randint(low, high, shape, dtype=torch.int64, generator=own).to(dtype)
        return value, _("random in [{low},{high}), seed {seed}", low=low, high=high, seed=seed)
    drawn_as = dtype if name in COMPLEX else torch.float32
    value = torch.randn(shape, dtype=drawn_as, generator=own).to(dtype)
    return value, _("random, seed {seed}", seed=seed)


def read(
    spec: InputSpec, name: str, like: Shape | None, kind: str | None = None
) -> tuple[torch.Tensor, str]:
    """Return the value of the input `name`, read from its file.

    Args:
        spec: Given by the user; its shape and dtype are required of the value.
        like: Shape that a picture is made to fit if the user gave none; ``None`` for its own.
        kind: Dtype that an array is converted to if the user gave none; ``None`` for its own.

    Raises `LowerscopeError` if the file cannot be read, or does not contain the input.
    """
    shape = like if spec.shape is None else at_sizes(spec.shape, {})
    path = user_path(spec.file)
    check_readable(path)
    ending = path.suffix.lower()
    if ending in IMAGES:
        value = _read_picture(path, shape)
        if spec.dtype is not None:
            value = value.to(getattr(torch, spec.dtype))
    elif ending in ARRAYS:
        value = _READERS[ending](path, name)
        if spec.item is not None:
            value = sample_of(value, spec.item, str(path))
        if spec.fit or spec.item is not None:
            value = fitted(value, shape, spec.dtype or kind, str(path))
    else:
        raise LowerscopeError(
            _("{ending} is not read as an input", ending=ending or _("a file without a suffix")),
            where=str(path),
            todo=_("Give {arrays} or an image", arrays=_(", ").join(ARRAYS)),
        )
    _check_layout(value, spec, path)
    source = path.name
    if spec.item is not None:
        source = _("{file}, sample {number}", file=source, number=spec.item)
    return value.detach().cpu().contiguous(), source


def from_array(array: np.ndarray[Any, Any], where: str) -> torch.Tensor:
    """Return a copy of a NumPy array as a tensor.

    Raises `LowerscopeError` if its dtype is not supported for inputs.
    """
    if array.dtype.name not in DTYPES:
        raise LowerscopeError(
            _("the dtype {dtype} cannot be an input", dtype=array.dtype),
            where=where,
            todo=_("The dtypes are {dtypes}", dtypes=_(", ").join(DTYPES)),
        )
    native = array.astype(array.dtype.newbyteorder("="), order="C", copy=True)
    return torch.from_numpy(native).reshape(array.shape)


def _read_npy(path: Path, name: str) -> torch.Tensor:
    try:
        return from_array(read_npy(path), str(path))
    except UnreadableArrays as error:
        raise _unreadable(path, _("a NumPy array"), error) from None


def _read_npz(path: Path, name: str) -> torch.Tensor:
    def choose(names: Sequence[str]) -> tuple[str, ...]:
        inputs = [each for each in names if each not in LABELS]
        return (name,) if name in names else tuple(inputs) if len(inputs) == 1 else ()

    try:
        names, arrays = read_npz(path, choose)
    except UnreadableArrays as error:
        raise _unreadable(path, _("an archive of NumPy arrays"), error) from None
    if not arrays:
        raise LowerscopeError(
            _(
                "it has no array called {name}; it has {names}",
                name=name,
                names=_(", ").join(names) or _("none"),
            ),
            where=str(path),
            todo=_("Save it with np.savez(file, {name}=...)", name=name),
        )
    return from_array(next(iter(arrays.values())), str(path))


def _read_pt(path: Path, name: str) -> torch.Tensor:
    value = load_weights(path, _("a tensor that loads without running code"))
    if not isinstance(value, torch.Tensor):
        raise LowerscopeError(
            _("it holds a {name}, not a tensor", name=type(value).__name__),
            where=str(path),
            todo=_("Load weights as parameters: --params FILE")
            if isinstance(value, dict)
            else _("Save the tensor itself: torch.save(x, file)"),
        )
    if str(value.dtype).removeprefix("torch.") not in DTYPES or value.layout != torch.strided:
        raise LowerscopeError(
            _(
                "a tensor of {dtype}, {layout} cannot be an input",
                dtype=value.dtype,
                layout=value.layout,
            ),
            where=str(path),
            todo=_("Save a dense one; the dtypes are {dtypes}", dtypes=_(", ").join(DTYPES)),
        )
    check_tensor(value, name, path)
    return value


_READERS: dict[str, Callable[[Path, str], torch.Tensor]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".pt": _read_pt,
    ".pth": _read_pt,
}


FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""Image formats allowed whatever the file is called: Pillow runs Ghostscript for PostScript."""


def _read_picture(path: Path, shape: Shape | None) -> torch.Tensor:
    """Read a picture as float32 values from 0 to 1.

    A shape of four, three or two dimensions is read as NCHW, CHW or HW; two dimensions of which the
    first is 1 as a flattened square.
    """
    try:
        with warnings.catch_warnings():
            # Turn the warning into an error.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as opened:
                opened.load()
                picture = opened.copy()
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _unreadable(path, _("an image of a sensible size"), error) from None
    except Exception as error:  # Pillow's readers raise any type for damage
        raise _unreadable(path, _("an image"), error) from None
    if shape is None:
        channels = 1 if picture.mode in ("1", "L", "LA", "I", "I;16", "F") else 3
        shape = (1, channels, picture.height, picture.width)
    layout = _picture_layout(shape)
    if layout is None:
        raise LowerscopeError(
            _("a picture does not fit the shape {text}", text=_text(shape)),
            where=str(path),
            todo=_("Give 1,1,HEIGHT,WIDTH or 1,3,HEIGHT,WIDTH, or 1,784 for 28 by 28"),
        )
    channels, height, width = layout
    mode = "L" if channels == 1 else "RGB"
    scaled = _flattened(picture).convert(mode).resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(scaled, dtype=np.float32).reshape(height, width, channels) / 255
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1))).reshape(shape)


def _flattened(picture: Image.Image) -> Image.Image:
    """Return a picture without transparency, on black, with 8 bits a channel."""
    if picture.mode.startswith("I;16") or picture.mode == "I":
        values = np.asarray(picture, dtype=np.float64) / 257
        return Image.fromarray(values.clip(0, 255).astype(np.uint8))
    if "A" in picture.getbands() or "transparency" in picture.info:
        coloured = picture.convert("RGBA")
        ground = Image.new("RGBA", coloured.size, (0, 0, 0, 255))
        return Image.alpha_composite(ground, coloured)
    return picture


def _picture_layout(shape: Shape) -> tuple[int, int, int] | None:
    """Return channels, height and width of a picture of `shape`."""
    match shape:
        case (1, 1 | 3 as channels, height, width) | (1 | 3 as channels, height, width):
            return channels, height, width
        case (1, size):
            side = round(size**0.5)
            return (1, side, side) if side**2 == size else None
        case (height, width):
            return 1, height, width
        case _:
            return None


def _check_layout(value: torch.Tensor, spec: InputSpec, path: Path) -> None:
    dtype = str(value.dtype).removeprefix("torch.")
    shape = None if spec.shape is None else at_sizes(spec.shape, {})
    if shape is not None and tuple(value.shape) != shape:
        raise LowerscopeError(
            _(
                "its shape is {text}, not {text2}",
                text=_text(tuple(value.shape)),
                text2=_text(shape),
            ),
            where=str(path),
            todo=_("Leave the shape out to take the file's"),
        )
    if spec.dtype is not None and dtype != spec.dtype:
        raise LowerscopeError(
            _("its dtype is {dtype}, not {dtype2}", dtype=dtype, dtype2=spec.dtype),
            where=str(path),
            todo=_("Leave the dtype out to take the file's"),
        )


def _text(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))})"


def _unreadable(path: Path, what: str, error: Exception | None) -> LowerscopeError:
    sentence = str(error or "").strip().partition("\n")[0].partition(". ")[0].rstrip(".: ")
    return LowerscopeError(
        _("this is not {what} ({reason})", what=what, reason=sentence)
        if sentence
        else _("this is not {what}", what=what),
        where=str(path),
    )


SIDE = 8
"""Smallest side of a picture, in pixels."""


def picture_of(value: torch.Tensor) -> Picture | None:
    """Return `value` as a picture, or ``None`` if it does not look like one.

    A picture is the first of a batch of NCHW with 1 or 3 channels, or 28×28 flattened to (1, 784).
    Values from 0 to 1 become 0 to 255, bytes stay as they are, and other
    values are spread from their least to their greatest.
    """
    shape = _shape_of(value)
    if shape is None or value.dtype.is_complex:
        return None
    values = value[0].detach().cpu()
    if value.dtype == torch.uint8:
        pixels = values.numpy()
    else:
        scaled = values.double().numpy()
        # False for NaN as well.
        if not 0 <= scaled.min() <= scaled.max() <= 1:
            scaled = _spread(scaled)
        pixels = np.rint(scaled * 255).astype(np.uint8)
    channels, height, width = shape
    rows = pixels.reshape(shape).transpose(1, 2, 0)
    return Picture(width=width, height=height, channels=channels, pixels=rows.tobytes())


def _spread(values: np.ndarray) -> np.ndarray:
    """Return values scaled to 0 to 1; NaN and infinities count as 0."""
    finite: np.ndarray = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    least, most = float(finite.min()), float(finite.max())
    if least < 0 or most > 1:
        finite = (finite - least) / ((most - least) or 1)
    return finite


def _shape_of(value: torch.Tensor) -> tuple[int, int, int] | None:
    """Return channels, height and width of the picture in `value`."""
    match tuple(value.shape):
        case (1, 784):
            return 1, 28, 28
        case (count, 1 | 3 as channels, height, width) if count and min(height, width) >= SIDE:
            return channels, height, width
        case _:
            return None
