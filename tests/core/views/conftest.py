"""Models whose graphs and scripts are looked at: straight, with skips, and wide."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
import tvm
from torch import nn
from tvm import relax
from tvm.script import from_source

BRANCHES = """
# from tvm.script import ir as I
# from tvm.script import relax as R
@I.ir_module
class Module:
    @R.function(private=True)
    def helper(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 3), dtype="float32"):
        y: R.Tensor((2, 3), dtype="float32") = R.nn.relu(x)
        return y

    @R.function
    def main(x: R.Tensor((2, 3), dtype="float32"), c: R.Tensor((), dtype="bool"),
             w: R.Tensor) -> R.Tensor((2, 3), dtype="float32"):
        cls = Module
        w1 = R.match_cast(w, R.Tensor((2, 3), dtype="float32"))
        if c:
            t = R.add(x, w1)
            r = R.multiply(t, t)
        else:
            r = R.subtract(x, w1)
        with R.dataflow():
            a = R.add(r, r)
            tup = (a, r)
            q = tup[0]
            cc = R.call_dps_packed("env.relu", (q,), out_ty=R.Tensor((2, 3), dtype="float32"))
            gv = R.add(cc, a)
            R.output(gv)
        h = cls.helper(gv)
        z = R.call_pure_packed("env.f", h, ty_args=(R.Tensor((2, 3), dtype="float32"),))
        return z
"""


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear0 = nn.Linear(784, 128)
        self.relu = nn.ReLU()
        self.linear1 = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.linear1(self.relu(self.linear0(x)))
        return hidden


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.down = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        result: torch.Tensor = self.relu(y + self.down(x))
        return result


class SmallResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 7, 2, 3)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.layers = nn.Sequential(Residual(8, 8, 1), Residual(8, 16, 2), Residual(16, 32, 2))
        self.average = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layers(self.pool(self.stem(x)))
        result: torch.Tensor = self.head(torch.flatten(self.average(x), 1))
        return result


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.q, self.k, self.v, self.o = (nn.Linear(64, 64) for _ in range(4))
        self.register_buffer("mask", torch.zeros(16, 16))

    def heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(1, 16, 4, 16).permute(0, 2, 1, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        q, k, v = self.heads(self.q(y)), self.heads(self.k(y)), self.heads(self.v(y))
        weights = torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * 0.25 + self.mask, -1)
        y = torch.matmul(weights, v).permute(0, 2, 1, 3).reshape(1, 16, 64)
        result: torch.Tensor = x + self.o(y)
        return result


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (Mlp, (1, 784)),
    "resnet": (SmallResNet, (1, 3, 64, 64)),
    "attention": (Attention, (1, 16, 64)),
}


def model_of(name: str) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    make, shape = MODELS[name]
    return make().eval(), (torch.randn(shape),)


@pytest.fixture(scope="session")
def relax_modules() -> dict[str, tvm.IRModule]:
    """Each model in relax operators, and legalised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tvm.relax.frontend.torch import from_fx

    modules: dict[str, tvm.IRModule] = {}
    for name in MODELS:
        model, inputs = model_of(name)
        graph = torch.fx.symbolic_trace(model)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = from_fx(graph, [(tuple(each.shape), "float32") for each in inputs])
        modules[f"{name} high-level"] = module
        module = relax.transform.DecomposeOpsForInference("main")(module)
        modules[f"{name} legalised"] = relax.transform.LegalizeOps()(module)
    modules["branches"] = from_source(BRANCHES)
    return modules


@pytest.fixture(
    params=[
        "mlp high-level",
        "mlp legalised",
        "resnet high-level",
        "resnet legalised",
        "attention high-level",
        "attention legalised",
        "branches",
    ]
)
def relax_module(
    request: pytest.FixtureRequest, relax_modules: dict[str, tvm.IRModule]
) -> tvm.IRModule:
    return relax_modules[request.param]


@pytest.fixture
def example() -> Callable[[str], tuple[nn.Module, tuple[torch.Tensor, ...]]]:
    """Return a function that makes a model in eval mode and its inputs, by name."""
    return model_of
