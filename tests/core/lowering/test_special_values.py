"""Arithmetic with NaN, infinities, zeros of both signs and the largest numbers, as torch has it."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
import torch.nn.functional as F
import tvm
from torch import nn
from tvm import relax

from lowerscope.core.build.build import build
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.lowering.translator import lower
from lowerscope.core.passes.transforming import transform
from lowerscope.core.run.execution import Execution
from lowerscope.core.tracing.tracing import trace
from tests.diagonal import at_length


def check(
    model: nn.Module, inputs: tuple[torch.Tensor, ...], tracer: Literal["fx", "export"], preset: str
) -> None:
    """Assert that a model gives what torch does after the steps of a preset."""
    specs = [
        (f"x{index}", tuple(each.shape), str(each.dtype).removeprefix("torch."))
        for index, each in enumerate(inputs)
    ]
    expected = model(*inputs)
    expected = (expected,) if isinstance(expected, torch.Tensor) else expected
    lowered = lower(trace(model.eval(), inputs, tracer), specs, "high-level")
    target = tvm.target.Target("llvm")
    made = transform(lowered.module, find_pipeline(preset).steps, target=target)
    made.check()
    actual = Execution(build(made.module, target).executable, "main", inputs).outputs()
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(torch.as_tensor(ours), theirs, equal_nan=True)


class Arithmetic(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.remainder(x, y),
            x % float("inf"),
            torch.floor_divide(x, y),
            x // 2,
            float("inf") // x,
            torch.div(x, y, rounding_mode="floor"),
            torch.hypot(x, y),
            torch.logaddexp(x, y),
            torch.lerp(x, y, 0.25),
            torch.lerp(x, y, 0.5),
            torch.lerp(x, y, torch.tensor(0.75, dtype=x.dtype)),
            x * 0,
            x / 0,
            x - x,
            torch.maximum(x, y),
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, *at_length(torch.float64)])
def test_special_values_give_what_torch_does(dtype: torch.dtype) -> None:
    # A quotient beyond the largest number makes NaN in vectors of torch, and not elsewhere.
    inf, nan, most = float("inf"), float("nan"), torch.finfo(dtype).max / 4
    values = [nan, inf, -inf, 0.0, -0.0, most, -most, 1.0, -1.0, 0.5, -2.5, 3.0]
    line = torch.tensor(values, dtype=dtype)
    x, y = (each.contiguous() for each in torch.meshgrid(line, line, indexing="ij"))
    check(Arithmetic(), (x, y), "fx", "cpu")


INF, NAN = float("inf"), float("nan")
BY_ROW = torch.tensor([[NAN, 1.0, 2.0], [INF, 1.0, 2.0], [0.0, 0.0, 0.0], [3.0, 4.0, 0.0]])
MOST = torch.iinfo(torch.int32).max


class Cast(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.to(torch.int8), x.to(torch.uint8), x.to(torch.int16), x.byte() + 1


class OfNothing(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ones = torch.ones(2, 0)
        return (
            *(x.any(), x.all(), x.any(0), x.all(0, keepdim=True), x.any(1), ones @ x),
            *(x.mean(), x.mean(0), x.mean(1), *x.sort(0), x.argsort(1), x.expand(2, 0, 3)),
            nn.functional.layer_norm(ones, (0,)),
        )


class Masked(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        lowered = torch.zeros_like(x[0, 0, :, :3]).masked_fill(~mask, -INF)
        attend = nn.functional.scaled_dot_product_attention
        return attend(x, x, x, attn_mask=mask), attend(x, x, x, attn_mask=lowered)


class Normalised(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(x, dim=-1)


class LargestBool(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.max(), x.min(), x.max(1)[0], x.min(0)[0]


class Overflowing(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            *(x + y, x * y, x - y, (x * 2) // 2, x + 1 > x, (x * 6) // 3, (x * 6) % 3),
            *((x - y) < 0, (x * 3) // 3 == x, abs(x) + 1, -x * 2, x.cumsum(0), x.sum()),
        )


class Unsigned(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return -x, x - 200, ~x, x * 3, torch.sign(x), torch.abs(x), torch.square(x)


class ManyFirst(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = x.topk(70, 1), x.topk(66, 1, largest=False), x.mT.double().topk(65, 1)
        return tuple(each[place] for each in found for place in (0, 1))


MANY = torch.randn(2, 90, 80, generator=torch.Generator().manual_seed(1))
MANY[0, 3, 5], MANY[0, 4, 5], MANY[1, 0, 7] = torch.nan, torch.inf, -torch.inf


class OfRankZero(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parts = torch.sort(x), torch.topk(x, 1), torch.kthvalue(x, 1), torch.median(x, 0), x.max(0)
        return (
            *(torch.cumsum(x, 0), torch.cumprod(x, -1), torch.argsort(x), x.median()),
            *(each[place] for each in parts for place in (0, 1)),
            *(torch.median(x, 0, keepdim=True)[0], x.argmax(), x.argmin(0), x.max()),
        )


EXTREMES = torch.tensor([MOST, -MOST, 1, -1, 1 << 30, -(1 << 30), 12345, 65536])
EXTREMES_64 = torch.tensor([2**63 - 1, -(2**63) + 1, 1, -1, 1 << 62, -(1 << 62), 12345, 1 << 32])


@pytest.mark.diagonal
@pytest.mark.parametrize("preset", ["cpu", "default-build"])
@pytest.mark.parametrize("tracer", ["fx", "export"])
@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (Cast(), (torch.tensor([0.0, 1.9, -1.9, -100.2, 255.9, 256.0, 300.0, -300.0]),)),
        (OfNothing(), (torch.zeros(0, 3),)),
        (Masked(), (torch.randn(1, 2, 3, 4), torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 1]]) > 0)),
        (Normalised(), (BY_ROW,)),
        (LargestBool(), (BY_ROW > 0,)),
        (Unsigned(), (torch.arange(0, 250, 25, dtype=torch.uint8),)),
        (ManyFirst(), (MANY,)),
        (OfRankZero(), (torch.tensor(2.5),)),
        (Overflowing(), (EXTREMES.int(), EXTREMES.int().flip(0))),
        (Overflowing(), (EXTREMES_64, EXTREMES_64.flip(0))),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_values_at_the_edge_give_what_torch_does(
    model: nn.Module, inputs: tuple[torch.Tensor, ...], tracer: Literal["fx", "export"], preset: str
) -> None:
    check(model, inputs, tracer, preset)


class Scattered(nn.Module):
    def forward(
        self, x: torch.Tensor, i: torch.Tensor, s: torch.Tensor, places: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        rows = places.view(-1, 1, 1).expand_as(s)
        return (
            x.scatter_add(0, i, s),
            x.scatter_reduce(1, i, s, "amax"),
            x.scatter_reduce(2, i % 2, s, "amin"),
            x[:, :5, :-1].scatter_add(0, rows, s),
            x[:, :5, :-1].scatter_reduce(0, rows, s, "amax", include_self=False),
            x[:, :5, :-1].scatter_reduce(0, rows, s, "mean", include_self=False),
            x[:, :5, :-1].scatter_reduce(0, rows, s, "mean"),
        )


@pytest.mark.parametrize("columns", [2, 48])
def test_scatters_of_any_shape_write_where_torch_does_and_keep_nan(columns: int) -> None:
    # An index smaller than the data has other strides; rows of 48 columns are written in parts.
    x, s = torch.randn(7, 6, columns + 1), torch.randn(4, 5, columns)
    s[1, 2, 0], x[2, 3, 1] = NAN, NAN
    i, places = torch.randint(0, 6, s.shape), torch.tensor([5, 0, 5, 2])
    check(Scattered(), (x, i, s, places), "fx", "cpu")


class Farthest(nn.Module):
    def forward(self, x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.scatter_reduce(0, i, x / 2, "amax"), x.scatter_reduce(1, i, x.flip(0), "amin")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_scatters_of_half_floats_keep_nan(dtype: torch.dtype) -> None:
    x, i = torch.randn(4, 7).to(dtype), torch.randint(0, 4, (4, 7))
    x[1, 2], x[0, 0] = NAN, INF
    check(Farthest(), (x, i), "fx", "cpu")


class RowMeans(nn.Module):
    def forward(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        rows = places.view(-1, 1).expand_as(x)
        return torch.zeros(5, 6).scatter_reduce(0, rows, x, "mean", include_self=False)


def test_rows_are_counted_and_not_their_elements() -> None:
    given = torch.randn(8, 6), torch.randint(0, 5, (8,))
    inputs = [("x", (8, 6), "float32"), ("places", (8,), "int64")]
    module = lower(trace(RowMeans(), given, "fx"), inputs, "high-level").module
    written = []

    def note(each: object) -> None:
        if isinstance(each, relax.Call) and getattr(each.op, "name", "") == "relax.scatter_nd":
            written.append([int(extent) for extent in each.args[2].ty.shape])

    relax.analysis.post_order_visit(module["main"], note)
    assert sorted(written) == [[8, 1], [8, 6]]


class Degenerate(nn.Module):
    """Matrices without an inverse, constant rows, and NaN among levels."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows = x.reshape(3, 3)
        steps = torch.tensor([float("nan"), 1.0, -9.0, 300.0]) + x[:1] * 0
        return (
            torch.det(rows),
            torch.corrcoef(rows),
            torch.cov(rows.long()),
            torch.fake_quantize_per_tensor_affine(steps, 0.5, 3, 0, 15),
        )


@pytest.mark.parametrize("values", [(1.0,) * 9, (0.0, 1, 2, 0, 4, 5, 0, 7, 9), tuple(range(9))])
def test_degenerate_values_give_what_torch_does(values: tuple[float, ...]) -> None:
    check(Degenerate(), (torch.tensor(values, dtype=torch.float32),), "fx", "default-build")


class Rounding(nn.Module):
    """Rounds to other dtypes and back, amid arithmetic in float32."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = (x * 1.2345).bfloat16()
        z = (x + 0.1).half().to(x)
        return y.float() * 3, z - x, (x * 2).to(torch.bfloat16).type_as(x) - x * 2


@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_casts_to_half_precision_round_inside_fused_functions(
    tracer: Literal["fx", "export"],
) -> None:
    x = torch.cat([torch.randn(100), torch.tensor([0.0, -0.0, 1e38, torch.nan, 257.0, 259.0])])
    check(Rounding(), (x,), tracer, "optimise-cpu")


class Small(nn.Module):
    """Functions of small arguments, and long sums."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.log1p(x), torch.expm1(x), y.cumsum(-1), y.cumsum(0)


@pytest.mark.parametrize("preset", ["none", "optimise-cpu"])
def test_small_arguments_and_long_sums_keep_their_digits(preset: str) -> None:
    special = [0.0, -0.0, torch.inf, -torch.inf, torch.nan, -1.0, -2.0, 50.0, 90.0, -100.0, 1e-30]
    x = torch.cat([torch.randn(90) * 10.0**-scale for scale in (0, 3, 7)])
    x, y = torch.cat([x, torch.tensor(special)]), torch.rand(40, 3000)
    model = Small()
    specs = [("x", tuple(x.shape), "float32"), ("y", tuple(y.shape), "float32")]
    lowered = lower(trace(model, (x, y), "fx"), specs, "high-level")
    target = tvm.target.Target("llvm")
    made = transform(lowered.module, find_pipeline(preset).steps, target=target)
    actual = Execution(build(made.module, target).executable, "main", (x, y)).outputs()
    for ours, exact in zip(actual, model(x.double(), y.double()), strict=True):
        torch.testing.assert_close(ours, exact.float(), rtol=4e-7, atol=0, equal_nan=True)


class Bytes(nn.Module):
    """Weights of 8 bits: all numbers of a dtype, as buffers."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.register_buffer("held", torch.arange(256, dtype=torch.uint8).view(16, 16))
        self.register_buffer("weight", self.held.view(dtype))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        moved = self.held.view(self.dtype).t().reshape(8, 32)
        return (
            self.weight.to(torch.float32) * x,
            moved.to(torch.bfloat16).float(),
            self.weight[2:4].view(torch.uint8) + 1,
        )


@pytest.mark.parametrize("tracer", ["fx", "export"])
@pytest.mark.parametrize("name", ["e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz"])
def test_weights_of_8_bits_are_read_from_their_bytes(
    name: str, tracer: Literal["fx", "export"]
) -> None:
    check(Bytes(getattr(torch, f"float8_{name}")), (torch.randn(16, 16),), tracer, "optimise-cpu")


class Resampled(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            F.interpolate(x, (9, 61), mode="bilinear"),
            F.interpolate(x, (9, 61), mode="bilinear", align_corners=True),
            F.interpolate(x, (9, 61), mode="bicubic"),
            F.interpolate(x, (9, 61), mode="bilinear", antialias=True),
            F.interpolate(x[0], 61, mode="linear"),
            F.interpolate(x[None], (2, 9, 61), mode="trilinear"),
        )


class Shrunk(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            F.interpolate(x, (120, 57), mode="bilinear", antialias=True),
            F.interpolate(x, (8, 200), mode="bicubic", antialias=True),
        )


def test_what_is_resampled_is_multiplied_by_what_is_near_alone() -> None:
    x = torch.randn(2, 3, 190, 160)
    model = Shrunk()
    given = [("x", tuple(x.shape), "float32")]
    module = lower(trace(model, (x,), "fx"), given, "high-level").module
    shapes = set()

    def note(each: object) -> None:
        if isinstance(each, tvm.ir.GenericConst):
            shapes.add(tuple(each.value.shape))

    relax.analysis.post_order_visit(module["main"], note)
    assert not shapes & {(190, 120), (160, 200)}
    check(model, (x,), "fx", "optimise-cpu")


def test_places_between_elements_are_as_exact_as_the_elements() -> None:
    # An error of a place is one of the sum of steep slopes.
    steep = torch.arange(400, dtype=torch.float64).cos().view(1, 2, 5, 40) * 1e6
    check(Resampled(), (steep,), "fx", "legalise")
