"""Quantised, compiled, lazy, sparse and complex models go the whole way."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch

from lowerscope.core.build.build import register_library
from lowerscope.core.lowering.values import held_from
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.run.execution import to_torch, to_tvm
from lowerscope.core.sources.pytree import leaves
from lowerscope.core.stages import Pipeline
from tests.core.lowering import conftest
from tests.warm_processes import run_warm

pytestmark = pytest.mark.filterwarnings("ignore")
"""torch calls most of these kinds deprecated, or not yet stable."""

QUANTISED = """
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant = torch.ao.quantization.QuantStub()
            self.fc = nn.Linear(4, 3)
            self.dequant = torch.ao.quantization.DeQuantStub()

        def forward(self, x):
            return self.dequant(self.fc(self.quant(x))).relu()

    def make() -> nn.Module:
        model = Own().eval()
        model.qconfig = torch.ao.quantization.default_qconfig
        model = torch.ao.quantization.prepare(model)
        model(torch.randn(8, 4))
        return torch.ao.quantization.convert(model)
"""

DECOMPOSED = """
    from torch.ao.quantization.fx._decomposed import quantized_decomposed_lib

    class Own(nn.Module):
        def forward(self, x):
            own = torch.ops.quantized_decomposed
            y = own.quantize_per_tensor(x, 0.05, 3, -128, 127, torch.int8)
            y = own.dequantize_per_tensor(y, 0.05, 3, -128, 127, torch.int8)
            scales, zeros = torch.tensor([0.1, 0.2, 0.1, 0.5]), torch.zeros(4, dtype=torch.int64)
            z = own.quantize_per_channel(y, scales, zeros, 1, -128, 127, torch.int8)
            return own.dequantize_per_channel(z, scales, zeros, 1, -128, 127, torch.int8) * 2

    def make() -> nn.Module:
        return Own()
"""

SCRIPTED = """
    class Own(nn.Module):
        def forward(self, x, count: int = 3):
            for _ in range(count):
                if bool(x.sum() > 0):
                    x = x - 1
            return x * 2

    def make() -> nn.Module:
        return torch.jit.script(Own())
"""

COUNTS = """
    class Own(nn.Module):
        def forward(self, x):
            count = 0
            while bool(x.abs().max() > 1):
                x = x / 2
                count += 1
            return x, count

    def make() -> nn.Module:
        return torch.jit.script(Own())
"""

HOLDS_SCRIPTED = """
    from typing import Dict, Tuple

    class Own(nn.Module):
        def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
            count = 0
            while bool(x.abs().max() > 1) and count < 5:
                x = x / 2
                count += 1
            return x, {"mean": x.mean(0)}

    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.core = nn.Linear(4, 3), torch.jit.script(Own())

        def forward(self, x):
            y, found = self.core(self.first(x))
            return y + 1, found["mean"] * 2

    def make() -> nn.Module:
        return Holds()
"""

TRACED = """
    def make() -> nn.Module:
        return torch.jit.trace(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.randn(2, 4))
"""

EXPORTED = """
    def make() -> nn.Module:
        model = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
        return torch.export.export(model, (torch.randn(5, 4),)).module()
"""

LAZY = """
    def make() -> nn.Module:
        return nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d(), nn.ReLU())
"""

COMPLEX = """
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3, dtype=torch.complex64)

        def forward(self, x):
            return self.fc(torch.fft.fft(x))

    def make() -> nn.Module:
        return Own()
"""

SPARSE = """
    class Own(nn.Module):
        def forward(self, adjacent, x):
            return (adjacent @ x).relu() + 1

    def make() -> nn.Module:
        return Own()

    def example_inputs():
        dense = torch.eye(4) + torch.ones(4, 4).tril(-2)
        return dense.{layout}(), torch.randn(4, 2)
"""

SPARSE_PRODUCTS = SPARSE.replace(
    "(adjacent @ x).relu() + 1",
    "torch.sparse.addmm(x, adjacent, torch.sparse.mm(adjacent, x)) + torch.spmm(adjacent, x)",
)

HELD_SPARSE = """
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.eye(5).to_sparse_csr())
            self.code = nn.Parameter(torch.randn(4))
            self.graph = nn.Linear(4, 4)
            self.meta = nn.ReLU()

        def forward(self, x):
            return self.rows @ self.meta(self.graph(x)) * self.code

    def make() -> nn.Module:
        return Own()
"""

OPERATOR = """
    @torch.library.custom_op("lowerscope_tests::positive", mutates_args=())
    def positive(x: torch.Tensor) -> torch.Tensor:
        return x[x[:, 0] > 0].clone()

    @positive.register_fake
    def _(x):
        return x.new_empty(torch.library.get_ctx().new_dynamic_size(), x.shape[1])

    class Own(nn.Module):
        def forward(self, x):
            return positive(x) * 2

    def make() -> nn.Module:
        return Own()
"""


ADAPTED = """
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x):
            weights = dict(self.layer.named_parameters())

            def loss(weights):
                return torch.func.functional_call(self.layer, weights, (x,)).square().mean()

            steps = torch.func.grad(loss)(weights)
            weights = {name: each - 0.1 * steps[name] for name, each in weights.items()}
            return torch.func.functional_call(self.layer, weights, (x,))

    def make() -> nn.Module:
        return Own()
"""

MEMBERS = """
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.rare = nn.AdaptiveLogSoftmaxWithLoss(4, 12, [3, 6])

        def forward(self, x):
            y = self.layer(x)
            found = self.rare(y, torch.tensor([0, 4, 11, 5, 2]))
            return found.output + found.loss, y.topk(2).values

    def make() -> nn.Module:
        return Own()
"""


def test_inputs_that_a_model_is_tried_on_fail_silently(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kind.py"
    text = SPARSE.format(layout="to_sparse").replace("adjacent @ x", "adjacent.coalesce().values()")
    file.write_text("import torch\nfrom torch import nn\n" + textwrap.dedent(text))
    # Among the indices that it is tried on, some are too large.
    assert Pipeline().stages(Recipe(source=Source(spec=str(file), entry="make"))).lowered
    assert "Error" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "lowered"),
    [
        pytest.param(ADAPTED, 0, id="adapted by gradients"),
        pytest.param(MEMBERS, 3, id="members of a named tuple"),
        pytest.param(QUANTISED, 12, id="quantised"),
        pytest.param(DECOMPOSED, 5, id="quantised by torch's own operators"),
        pytest.param(SCRIPTED, 0, id="scripted"),
        pytest.param(COUNTS, 0, id="scripted with a number"),
        pytest.param(HOLDS_SCRIPTED, 3, id="scripted in part"),
        pytest.param(TRACED, 2, id="traced"),
        pytest.param(EXPORTED, 2, id="exported"),
        pytest.param(LAZY, 3, id="lazy"),
        pytest.param(COMPLEX, 0, id="complex"),
        pytest.param(SPARSE.format(layout="to_sparse"), 2, id="COO"),
        pytest.param(SPARSE.format(layout="to_sparse_csr"), 2, id="CSR"),
        pytest.param(SPARSE_PRODUCTS.format(layout="to_sparse"), 4, id="products of torch.sparse"),
        pytest.param(HELD_SPARSE, 3, id="names of a graph"),
        pytest.param(OPERATOR, 1, id="operator with a size of data"),
    ],
)
def test_a_kind_of_model_computes_what_torch_does(text: str, lowered: int, tmp_path: Path) -> None:
    file = tmp_path / "kind.py"
    start = "import torch\nfrom torch import nn\n"
    given = "" if "example_inputs" in text else "example_inputs = (torch.randn(5, 4),)\n"
    file.write_text(start + textwrap.dedent(text) + given)
    stages = Pipeline().stages(Recipe(source=Source(spec=str(file), entry="make")))
    loaded, result = stages.loaded, stages.lowered
    assert loaded.model is not None
    assert result is not None
    register_library(result.library)
    with stages.running():
        machine = conftest.built(stages.module)
        for scale in (1, -1, 3):
            values = [
                each.value * scale if each.value.is_floating_point() else each.value
                for each in loaded.inputs
            ]
            args, kwargs = loaded.calling.arguments([each.clone() for each in values])
            with torch.no_grad():
                outputs = loaded.model(*args, **kwargs)
            expected = [held_from(torch.as_tensor(each)) for _path, each in leaves(outputs)]
            actual = conftest._flat(machine["main"](*map(to_tvm, values)))
            for ours, theirs in zip(actual, expected, strict=True):
                torch.testing.assert_close(to_torch(ours), theirs)
    by_tvm = [each for each in result.nodes.values() if each.strategy == "high-level"]
    assert len(by_tvm) >= lowered


FLEX = """
import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

class Net(nn.Module):
    def forward(self, q, k, v):
        return flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + (i - j) * 0.1)

example_inputs = tuple(torch.randn(1, 2, 16, 8) for _ in range(3))
"""


@pytest.mark.at_length
def test_attention_that_compiles_itself_runs_where_nothing_was_compiled_before(
    tmp_path: Path,
) -> None:
    """Tracing must not be what torch._dynamo is imported in: it keeps the functions it finds."""
    path = tmp_path / "flex.py"
    path.write_text(FLEX)
    code = f"""
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline

recipe = Recipe(source=Source(spec={str(path)!r}))
print(Pipeline().answer(RunQuery(recipe, quick=True)).verdict)
"""
    ran = run_warm("-c", code)
    assert ran.stdout.split()[-1:] == ["match"], ran.stderr[-2000:]
