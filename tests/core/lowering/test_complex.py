"""Complex numbers and Fourier transforms are lowered to real tensors, and give torch's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import tvm
from torch import fft, nn

from lowerscope.core.build.build import register_library
from lowerscope.core.lowering.translator import lower
from lowerscope.core.model.recipe import Strategy
from lowerscope.core.run.execution import Execution
from lowerscope.core.tracing.tracing import trace
from tests.core.quick_code import quick_code
from tests.diagonal import rows_at_length

LLVM = tvm.target.Target("llvm")
F = nn.functional

ARITHMETIC: dict[str, Callable[..., Any]] = {
    "products": lambda z, w, v, x, y: (z * v, z * y, 2 * z * 1j, x * 1j, (z * 1).mul_(w)),
    "sums": lambda z, w, v, x, y: (z + v + 1, y + v, 1 - (z - w), torch.sub(z, w, alpha=2j)),
    "quotients": lambda z, w, v, x, y: (z / w, z / y / 2, 1 / z, x / z, z.reciprocal()),
    "large": lambda z, w, v, x, y: ((z * 1e30).abs(), (z * 1e25) / (w * 1e25)),
    "functions": lambda z, w, v, x, y: (z.abs(), z.angle(), z.exp(), torch.log(z), z.sgn()),
    "powers": lambda z, w, v, x, y: (z**2, z.square(), z**3, z**2.5, 2**z, z**w, z.sqrt()),
    "of angles": lambda z, w, v, x, y: (z.sin(), z.cos(), z.tanh(), torch.sigmoid(z * 9)),
    "spread": lambda z, w, v, x, y: (z.var(1), z.std(), torch.linalg.vector_norm(z, dim=1)),
    "norms": lambda z, w, v, x, y: (z.norm(), torch.linalg.norm(z), torch.norm(z, 1, dim=0)),
    "diagonals": lambda z, w, v, x, y: (
        z.diagonal(-1),
        torch.diagonal_scatter(x, v[:3].abs(), 1),
        torch.diagonal_scatter(z[None], x[:1, :2], -1, 1, 2),
    ),
    "filled": lambda z, w, v, x, y: (
        torch.ones(3, 4, dtype=torch.cfloat) * x,
        torch.ones_like(z),
        z.new_ones(2, 3),
        torch.full((2,), 2j) * y,
        torch.full_like(z, 3),
        z.scatter(1, WHOLE[:, :1] % 4, w),
    ),
    "parts": lambda z, w, v, x, y: (z.real + z.imag, torch.real(z), torch.imag(z), z.conj() * z),
    "made": lambda z, w, v, x, y: (torch.polar(x.abs(), x), torch.complex(x, x + 1), x.cfloat()),
    "views": lambda z, w, v, x, y: (
        torch.view_as_real(torch.view_as_complex(x.reshape(3, 2, 2)) * 2),
        z.view(2, -1).transpose(0, 1).unsqueeze(1),
        z.expand(5, 3, 4).contiguous().flatten(1),
        z[:, None, 1:3] + z[0, 0],
        torch.chunk(z, 2, 1)[1] * z[:, 2:],
        z.reshape(z.shape[0] * z.size(1)) / z.numel(),
    ),
    "joined": lambda z, w, v, x, y: (torch.cat([z, y], 1), torch.stack([z, w], 1)),
    "matrices": lambda z, w, v, x, y: (
        *(z @ w.T, z.mH @ z, torch.einsum("ij,ik->jk", z, w)),
        *(torch.vdot(v, z[0]), torch.vdot(z[0] * 1j, v), torch.lerp(z, w, 0.3)),
        *(torch.addmm(w, z[:, :3], w, alpha=2j), torch.addmm(w, z[:, :3], w, beta=0.5)),
        *(torch.baddbmm(w[None], z[None, :, :3], w[None]), (z / 0).isnan()),
    ),
    "sums of all": lambda z, w, v, x, y: (z.mean(1), z.sum(0, keepdim=True)),
    "chosen": lambda z, w, v, x, y: (
        torch.where(x > 0, z, 0),
        z.masked_fill(x > 0, 0.5),
        F.pad(z, (1, 2)),
        (z == w).float(),
        z != w,
    ),
    "with integers": lambda z, w, v, x, y: (
        torch.cat([z, WHOLE], 0),
        torch.where(WHOLE > 1, z, WHOLE),
        (z * 1).copy_(WHOLE),
        torch.sum(WHOLE, 0, dtype=torch.complex64),
        z.masked_fill(WHOLE > 1, True),
        F.pad(z, (1, 2), value=1.5),
        torch.gather(z, 1, WHOLE % 4),
        z / WHOLE + WHOLE * z,
    ),
    "dtypes": lambda z, w, v, x, y: (
        z + torch.zeros(3, 4, dtype=torch.cfloat),
        z.to(torch.complex128).abs(),
        z * x.double(),
        torch.where(x > 0, z, x.double()),
        torch.zeros_like(z, dtype=torch.float32),
        torch.complex(x * 0, x).bool(),
    ),
    "of real numbers": lambda z, w, v, x, y: (
        x.cfloat().imag,
        torch.imag(x.cfloat()),
        x.cfloat().mH,
        x.cfloat().exp() + x.cfloat().angle(),
        z / x.cfloat() + x.cfloat() * z,
    ),
}
WHOLE = torch.arange(1, 13).reshape(3, 4)
SHAPES = ((3, 4), (3, 4), (4,), (3, 4), (3, 1))

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "of one axis": lambda z, x: (fft.fft(z), fft.ifft(z, n=10), fft.fft(x, dim=0, norm="ortho")),
    "cut and continued": lambda z, x: (fft.fft(z, n=20, norm="forward"), fft.rfft(x, n=9)),
    "of real numbers": lambda z, x: (fft.rfft(x), fft.irfft(z), fft.irfft(z, n=21), fft.hfft(z)),
    "angles": lambda z, x: (fft.rfft(x).angle(), fft.rfft(x[:1], n=160)[:, ::80].angle()),
    "of several axes": lambda z, x: (
        fft.fft2(x),
        fft.ifft2(z, s=(8, 30)),
        fft.rfft2(x),
        fft.irfft2(z, s=(12, 21)),
        fft.fftn(x).real,
        fft.rfftn(x, dim=(0, 1)),
        fft.irfftn(z, s=(6, 8), dim=(0, 1)),
    ),
    "in between": lambda z, x: (
        fft.fftshift(fft.fft(x)),
        fft.irfft(fft.rfft(x, n=40) * fft.rfft(x[0], n=40), n=40),
        fft.fft(fft.fft(x, dim=-1), dim=-2).real,
    ),
    "of a signal": lambda z, x: (
        torch.stft(x.reshape(2, 72), 16, 4, window=torch.ones(16), return_complex=True).abs(),
        torch.view_as_real(
            torch.stft(x.flatten(), 20, onesided=False, normalized=True, return_complex=True)
        ),
        torch.stft(x.flatten(), 30, 8, 25, center=False, return_complex=True),
    ),
}


class Computing(nn.Module):
    """A model that returns everything that some functions give."""

    def __init__(self, functions: dict[str, Callable[..., Any]]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(each for made in self.functions.values() for each in made(*values))


def check(
    model: nn.Module, inputs: tuple[torch.Tensor, ...], tracer: str, strategy: Strategy
) -> None:
    """Compare each output with torch's; no node may run in torch."""
    traced = trace(model, inputs, tracer)  # type: ignore[arg-type]
    specs = [(f"x{i}", tuple(x.shape), str(x.dtype)[6:]) for i, x in enumerate(inputs)]
    lowered = lower(traced, specs, strategy)
    in_torch = [each.node for each in lowered.nodes.values() if each.strategy == "library"]
    assert not in_torch
    register_library(lowered.library)
    given = tuple(torch.view_as_real(x) if x.is_complex() else x for x in inputs)
    outputs = Execution(quick_code(lowered.module, LLVM), "main", given).outputs()
    expected = model(*inputs)
    assert len(outputs) == len(expected)
    for actual, wanted in zip(outputs, expected, strict=True):
        wanted = torch.view_as_real(wanted.resolve_conj()) if wanted.is_complex() else wanted
        assert actual.dtype == wanted.dtype
        scale = float(wanted.double().abs().max())
        torch.testing.assert_close(actual, wanted, rtol=2e-5, atol=2e-6 * scale)


def values(*shapes: tuple[int, ...], complex_ones: int) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return tuple(
        torch.randn(shape, dtype=torch.complex64 if index < complex_ones else torch.float32)
        for index, shape in enumerate(shapes)
    )


@pytest.mark.parametrize(
    ("tracer", "strategy"), [("export", "high-level"), *rows_at_length(("fx", "te"))]
)
def test_arithmetic(tracer: str, strategy: Strategy) -> None:
    check(Computing(ARITHMETIC), values(*SHAPES, complex_ones=3), tracer, strategy)


def test_transforms() -> None:
    inputs = values((12, 11), (12, 12), complex_ones=1)
    check(Computing(TRANSFORMS), inputs, "fx", "high-level")


def test_transforms_of_many_lengths() -> None:
    # Products of small factors in one step, two and three, large ones, and a large prime.
    lengths = (1, 2, 3, 8, 30, 49, 62, 127, 240)

    def of(n: int) -> Callable[..., Any]:
        return lambda z, x: (
            fft.fft(z[:, :n]),
            fft.ifft(z[:, :n, 0], dim=1),
            fft.rfft(x[:, :n], dim=1),
            fft.irfft(z[:, : n // 2 + 1], n, dim=1),
            fft.rfft(x[:, :n, 0]).angle()[:, ::n],
        )

    inputs = values((2, 256, 6), (2, 256, 6), complex_ones=1)
    check(Computing({str(n): of(n) for n in lengths}), inputs, "fx", "high-level")


def test_signals_and_their_spectra_in_time() -> None:
    window = torch.hann_window(24)
    short = {"win_length": 20, "window": torch.hamming_window(20), "normalized": True}

    def there_and_back(z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made = torch.stft(x, 24, 6, window=window, return_complex=True)
        others = torch.stft(x, 24, 8, **short, return_complex=True)
        whole = torch.stft(x, 16, return_complex=True, onesided=False)
        return (
            *(torch.istft(made * 2, 24, 6, window=window, length=each) for each in (None, 90, 130)),
            torch.istft(others, 24, 8, **short),
            torch.istft(whole, 16, onesided=False),
            torch.stft(x, 1, 1, return_complex=True),
        )

    inputs = values((2, 100), (2, 100), complex_ones=1)
    check(Computing({"istft": there_and_back}), inputs, "fx", "high-level")


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6, dtype=torch.complex64)
        self.second = nn.Linear(6, 5, bias=False, dtype=torch.complex64)

    def forward(self, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (self.second(self.first(z)),)


@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_layers_with_complex_weights(tracer: str) -> None:
    check(Layers().requires_grad_(False), values((3, 4), complex_ones=1), tracer, "high-level")
