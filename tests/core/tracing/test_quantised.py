"""Quantised models are written out as operators on integers, with the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.ao import quantization
from torch.ao.nn.quantized import FloatFunctional
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.files.sources import parse_input
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Dimension, Recipe, Source
from lowerscope.core.sources.pytree import by_position
from lowerscope.core.stages import Pipeline
from lowerscope.core.tracing.quantised_operator import QuantisedOperator
from lowerscope.core.tracing.tracing import trace

pytestmark = pytest.mark.filterwarnings("ignore")
"""torch calls quantised tensors deprecated."""

ENGINES = [each for each in ("x86", "fbgemm") if each in torch.backends.quantized.supported_engines]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = request.param
    yield request.param
    torch.backends.quantized.engine = before


class Squeeze(nn.Module):
    """Multiplies channels by what it computes of their means."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)
        self.product, self.gate = FloatFunctional(), nn.Hardsigmoid()

    def forward(self, x: torch.Tensor) -> Any:
        scale = self.up(self.down(F.adaptive_avg_pool2d(x, 1)).relu())
        return self.product.mul(x, self.gate(scale))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.first = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU())
        self.depthwise = nn.Conv2d(16, 16, 3, 1, 1, groups=16)
        self.squeeze, self.act, self.six = Squeeze(16), nn.Hardswish(), nn.ReLU6()
        self.side = nn.Conv2d(16, 8, 5, 1, 2, dilation=1)
        self.sum, self.joined = FloatFunctional(), FloatFunctional()
        self.last = nn.Linear(24, 7)

    def forward(self, x: torch.Tensor) -> Any:
        x = self.first(self.quant(x))
        y = self.sum.add_relu(x, self.act(self.squeeze(self.depthwise(x))))
        y = self.sum.mul_scalar(y, 0.5)
        y = self.joined.cat([y, self.six(self.side(y))], 1)
        y = F.adaptive_avg_pool2d(F.max_pool2d(y, 3, 2, 1), 1)
        return self.dequant(self.last(torch.flatten(y, 1)))


def static(model: nn.Module, shape: tuple[int, ...], engine: str) -> nn.Module:
    model.qconfig = quantization.get_default_qconfig(engine)
    prepared = quantization.prepare(model)
    for _ in range(3):
        prepared(torch.randn(shape))
    return quantization.convert(prepared)


def eager(engine: str) -> nn.Module:
    model = Net().eval()
    fused = quantization.fuse_modules(model, [["first.0", "first.1", "first.2"]])
    return static(fused, (2, 3, 26, 26), engine)


class Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filters, self.weight = (
            nn.Parameter(torch.randn(8, 3, 3, 3)),
            nn.Parameter(torch.ones(5, 8)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.conv2d(x, self.filters, None, (2, 2), (1, 1), (1, 1), 1).relu().clamp(0.1, 2.0)
        return F.linear(F.adaptive_avg_pool2d(x, 1).flatten(1), self.weight).tanh()


def functional(engine: str) -> nn.Module:
    return converted(Functional(), engine)


def by_fx(engine: str) -> nn.Module:
    block = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2),
        nn.ReLU(),
        nn.Conv2d(8, 8, 1, bias=False),
        nn.ReLU6(inplace=True),
        nn.LeakyReLU(0.2),
    )
    tail = (nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 5), nn.Sigmoid())
    return converted(nn.Sequential(block, nn.MaxPool2d(2), *tail), engine)


def converted(model: nn.Module, engine: str) -> nn.Module:
    x = torch.randn(2, 3, 26, 26)
    mapping = quantization.get_default_qconfig_mapping(engine)
    prepared = prepare_fx(model.eval(), mapping, (x,))
    for _ in range(3):
        prepared(torch.randn_like(x))
    return convert_fx(prepared)


def graph_of(model: nn.Module, x: torch.Tensor) -> fx.GraphModule:
    return trace(model, (x,), "auto", calling=by_position(["x"])).graph_module


def kinds(graph: fx.GraphModule) -> set[str]:
    return {type(each).__name__ for each in graph.modules()}


@pytest.mark.parametrize("make", [eager, by_fx, functional])
def test_results_are_equal(make: Callable[[str], nn.Module], engine: str) -> None:
    torch.manual_seed(0)
    model = make(engine)
    graph = graph_of(model, torch.randn(2, 3, 26, 26))
    assert not kinds(graph) & {"TorchPart", "Group", "QuantisedOperator", "Conv2d", "Linear"}
    draws = [torch.randn(2, 3, 26, 26) * 2 for _draw in range(10)]
    if make is eager:
        # Beyond the range of its observers, FBGEMM's depthwise convolution overflows 16 bits.
        draws = [each.clamp(-1, 1) for each in draws]
    else:
        for x, special in zip(draws, (1e30, torch.inf, -torch.inf, torch.nan), strict=False):
            x[:, 1, 4:9] = special
    for x in draws:
        torch.testing.assert_close(graph(x), model(x), rtol=0, atol=0)


def test_dynamic_layers(engine: str) -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 5, bias=False))
    model = quantization.quantize_dynamic(layers, {nn.Linear}, dtype=torch.qint8)
    graph = graph_of(model, torch.randn(4, 16))
    assert "Linear" not in kinds(graph)
    draw = torch.randn(4, 16)
    for x in (draw * 3, draw.abs() + 1, -draw.abs(), draw * 1e-4, draw * 0):
        torch.testing.assert_close(graph(x), model(x), rtol=0, atol=0)


def test_embeddings(engine: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(20, 8))
    model.qconfig = quantization.float_qparams_weight_only_qconfig
    model = quantization.convert(quantization.prepare(model))
    x = torch.randint(0, 20, (3, 4))
    graph = graph_of(model, x)
    assert "Embedding" not in kinds(graph)
    torch.testing.assert_close(graph(x), model(x))


def test_unknown_operator_runs_in_torch_alone(engine: str) -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
            self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8)
            self.last = nn.Conv2d(8, 4, 1)

        def forward(self, x: torch.Tensor) -> Any:
            return self.dequant(self.last(self.norm(self.conv(self.quant(x)))))

    torch.manual_seed(0)
    model = static(Own().eval(), (2, 3, 8, 8), engine)
    x = torch.randn(2, 3, 8, 8)
    graph = graph_of(model, x)
    found = [each for each in graph.modules() if isinstance(each, QuantisedOperator)]
    assert [type(each.called).__name__ for each in found] == ["GroupNorm"]
    assert "Group" not in kinds(graph)
    torch.testing.assert_close(graph(x), model(x), rtol=0, atol=0)


class OwnScale(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        scale = x.abs().max() / 127
        return torch.quantize_per_tensor(x, scale, torch.tensor(0), torch.qint8).dequantize()


class DynamicInput(nn.Module):
    """A static layer on what is quantised by its own range."""

    def __init__(self) -> None:
        super().__init__()
        layers = static(nn.Sequential(quantization.QuantStub(), nn.Linear(8, 6)), (3, 8), "x86")
        self.layer = layers[1]

    def forward(self, x: torch.Tensor) -> Any:
        given = torch.quantize_per_tensor_dynamic(x, torch.quint8, False)
        return self.layer(given).dequantize()


@pytest.mark.parametrize("make", [OwnScale, DynamicInput])
def test_scales_of_data_are_not_those_of_the_example(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    model = make()
    graph = graph_of(model, torch.randn(3, 8))
    x = torch.randn(3, 8) * 3
    torch.testing.assert_close(graph(x), model(x), rtol=0, atol=0)


def dequantised_twice(engine: str) -> nn.Module:
    layers = quantization.QuantStub(), nn.Linear(8, 6), quantization.DeQuantStub()
    model = static(nn.Sequential(*layers).eval(), (3, 8), engine)
    return nn.Sequential(*model, nn.Tanh(), model[2])


class Bounded(nn.Module):
    """Activation functions of a fixed range, of signed integers."""

    def forward(self, x: torch.Tensor) -> Any:
        y = torch.quantize_per_tensor(x, 0.05, 3, torch.qint8)
        return [f(y).dequantize() for f in (torch.sigmoid, torch.tanh, F.hardsigmoid)]


def bounded(engine: str) -> nn.Module:
    return Bounded()


class Transposed(nn.Module):
    def __init__(self, engine: str) -> None:
        super().__init__()
        self.layers = static(
            nn.Sequential(quantization.QuantStub(), nn.Linear(8, 6)), (3, 8), engine
        )

    def forward(self, x: torch.Tensor) -> Any:
        return self.layers(x).T.relu().dequantize()


class ReadAgain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.layer, self.act, self.sum = (
            nn.Linear(8, 6),
            nn.LeakyReLU(inplace=True),
            FloatFunctional(),
        )

    def forward(self, x: torch.Tensor) -> Any:
        y = self.layer(self.quant(x))
        return self.dequant(self.sum.add(y, self.act(y)))


def read_again(engine: str) -> nn.Module:
    return static(ReadAgain().eval(), (3, 8), engine)


@pytest.mark.parametrize("make", [bounded, dequantised_twice, Transposed, read_again])
def test_values_between_layers(make: Callable[[str], nn.Module], engine: str) -> None:
    torch.manual_seed(0)
    model = make(engine)
    graph = graph_of(model, torch.randn(3, 8))
    in_torch = {"TorchPart", "GraphModule", "QuantisedOperator", "LinearPackedParams"}
    assert not kinds(graph) & in_torch
    x = torch.randn(3, 8) * 2
    torch.testing.assert_close(graph(x), model(x), rtol=0, atol=0)


SOURCE = """
import torch
from torch import nn
from torch.ao.quantization import get_default_qconfig_mapping
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

torch.manual_seed(0)
example_inputs = (torch.randn(2, 3, 8, 8),)
layers = nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)
prepared = prepare_fx(
    nn.Sequential(*layers, nn.Sigmoid()).eval(), get_default_qconfig_mapping(), example_inputs
)
prepared(*example_inputs)
model = convert_fx(prepared)
"""


@pytest.mark.parametrize("named", [False, True])
def test_the_whole_way_with_the_preset(named: bool, tmp_path: Path) -> None:
    """Rounding within a sigmoid function is compiled; a dimension may have a name."""
    path = tmp_path / "net.py"
    path.write_text(SOURCE)
    recipe = Recipe(
        source=Source(spec=str(path)),
        inputs=(parse_input("input=batch,3,8,8"),) if named else (),
        dimensions=(Dimension(name="batch", high=4),) if named else (),
        steps=find_pipeline("optimise-cpu").steps,
        target="native",
    )
    pipeline = Pipeline()
    lowered = pipeline.stages(recipe).lowered
    assert lowered is not None
    assert all(each.strategy != "library" for each in lowered.nodes.values())
    assert pipeline.answer(RunQuery(recipe, quick=True)).verdict == "match"
