"""Rounding is told from a fault by float64."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lowerscope.core.files.pipelines_and_schedules import PRESETS, with_pipeline
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Extension, Recipe, Source
from lowerscope.core.model.tolerances import Tolerances
from lowerscope.core.run.compare.verdicts import Exact, beside_float64, beyond_rounding, difference
from lowerscope.core.run.float64 import Float64Nodes, Widened, WideWeights
from lowerscope.core.run.torch_interpreter import TorchValues
from lowerscope.core.stages import Pipeline
from lowerscope.core.tracing.tracing import trace

Compute = Callable[[torch.Tensor], torch.Tensor]


def _in_order(terms: torch.Tensor) -> torch.Tensor:
    """Sum along the last axis, one term after the other, in the dtype of the terms."""
    total = torch.zeros_like(terms[..., 0])
    for column in terms.unbind(-1):
        total = total + column
    return total


def _backwards(terms: torch.Tensor) -> torch.Tensor:
    return _in_order(terms.flip(-1))


def _in_blocks(terms: torch.Tensor) -> torch.Tensor:
    return _in_order(torch.stack([_in_order(each) for each in terms.split(64, -1)], -1))


def _fused(terms: torch.Tensor) -> torch.Tensor:
    """Add to a wider product, as a fused multiply-add does."""
    total = torch.zeros_like(terms[..., 0])
    for column in terms.double().unbind(-1):
        total = (total.double() + column).to(terms.dtype)
    return total


def _softmax(terms: torch.Tensor) -> torch.Tensor:
    exps = (terms - terms.amax(-1, keepdim=True)).exp()
    return exps / _in_order(exps).unsqueeze(-1)


def _variance(terms: torch.Tensor) -> torch.Tensor:
    count = terms.shape[-1]
    mean = _in_order(terms) / count
    return _in_order((terms - mean.unsqueeze(-1)).square()) / count


SUMS = {each.__name__: each for each in (_in_order, _backwards, _in_blocks, _fused)}
CASES: dict[str, tuple[Compute, Compute, torch.dtype, int, float]] = {
    # Ours, torch's, dtype, terms, offset of the terms.
    **{
        f"{name} {dtype} {terms} {offset:g}": (
            each,
            lambda x: x.sum(-1),
            getattr(torch, dtype),
            terms,
            offset,
        )
        for name, each in SUMS.items()
        for dtype, terms in (("float32", 512), ("float32", 4096), ("float16", 256))
        for offset in (0.0, 0.25, -3.0)
    },
    **{
        f"softmax {dtype} {terms}": (
            _softmax,
            lambda x: x.softmax(-1),
            getattr(torch, dtype),
            terms,
            0.0,
        )
        for dtype in ("float16", "bfloat16", "float32")
        for terms in (16, 128, 512)
    },
    **{
        f"variance {terms} {offset:g}": (
            _variance,
            lambda x: x.var(-1, correction=0),
            torch.float32,
            terms,
            offset,
        )
        for terms in (128, 2048)
        for offset in (0.0, 10.0, 300.0)
    },
}


def _verdicts(case: str, fault: float) -> tuple[str, str]:
    """Return the verdicts on a value beyond the tolerance, and on the same within it."""
    ours, theirs, dtype, terms, offset = CASES[case]
    generator = torch.Generator().manual_seed(len(case))
    values = torch.randn(24, terms, generator=generator)
    # Sums that cancel have no digits left, so that any rounding is out of tolerance.
    if "softmax" not in case and "variance" not in case:
        values = values - values.mean(-1, keepdim=True)
    values = (values + offset).to(dtype)
    unit = torch.finfo(dtype).eps / 2
    signs = torch.randint(0, 2, values.shape, generator=generator) * 2 - 1
    exact = theirs(values.double())
    noise = (theirs(values.double() * (1 + unit * signs)) - exact).abs()
    wrong = values.clone()
    wrong[:, terms // 2 :: terms] += fault
    actual, expected = ours(wrong), theirs(values)
    found = difference(actual, expected, Tolerances())
    # Where the tolerance is wide enough, as if it had been exceeded.
    right = Exact(exact, dtype, math.sqrt(terms) * unit, noise)
    beyond, within = (replace(found, matches=each) for each in (False, True))
    values = (actual, expected, right, Tolerances())
    return beside_float64(beyond, *values).verdict, beyond_rounding(within, *values).verdict


@pytest.mark.parametrize("case", CASES)
def test_rounding_is_no_fault_and_a_wrong_term_is_one(case: str) -> None:
    assert _verdicts(case, 0.0) == ("rounding", "match")
    assert _verdicts(case, 30.0) == ("differ", "differ")


_MODEL = """
import torch
from torch import nn


class Cancels(nn.Module):
    def forward(self, x):
        return torch.relu(torch.cat((x, -x.flip(-1)), -1).sum(-1) )


def example_inputs():
    return (torch.randn(16, 20000, generator=torch.Generator().manual_seed(0)) * 1000,)


entry = "Cancels"
"""


def test_a_run_that_differs_by_rounding_says_so(pipeline: Pipeline, tmp_path: Path) -> None:
    file = tmp_path / "cancels.py"
    file.write_text(_MODEL)
    record = pipeline.answer(RunQuery(Recipe(source=Source(spec=str(file)))))
    assert record.verdict == "rounding", record.reason
    assert record.first_difference == ""
    (output,) = record.outputs
    assert output.exact is not None
    assert output.exact.is_rounding
    runs = {each.id: each for each in record.nodes}
    total = runs["fx:sum_1"]
    assert (total.status, total.own_status) == ("rounding", "rounding")
    assert total.exact is not None
    # The sum is 0: the error of each side is its value.
    assert total.own_exact is not None
    assert 0 < total.own_exact.tvm < 10


_CHOICES = _MODEL.replace(
    "return torch.relu(torch.cat((x, -x.flip(-1)), -1).sum(-1) )",
    """s = torch.cat((x, -x.flip(-1)), -1).sum(-1)
        places = (s > 0).nonzero().squeeze(1)
        return places * 2, s > 0""",
)

_FAULT = """
import operator

from tvm import relax
from lowerscope.core.rules import rule


@rule(operator.gt)
def gt(builder, node, x, y):
    return builder.emit(relax.op.less(x, relax.const(float(y), "float32")))
"""


@pytest.mark.parametrize("is_fault", [False, True])
def test_a_choice_that_depends_on_rounding_is_no_fault(
    pipeline: Pipeline, tmp_path: Path, is_fault: bool
) -> None:
    file, rules = tmp_path / "chooses.py", tmp_path / "rules.py"
    file.write_text(_CHOICES)
    rules.write_text(_FAULT)
    recipe = Recipe(
        source=Source(spec=str(file)),
        extensions=(Extension(path=str(rules), kind="rules"),) if is_fault else (),
    )
    record = pipeline.answer(RunQuery(recipe))
    assert record.verdict == ("differ" if is_fault else "rounding"), record.reason
    assert record.first_difference == ("fx:gt" if is_fault else "")


_TIES = """
import torch

class Ties(torch.nn.Module):
    def forward(self, x, rows):
        places = (x > 9).long().{choice}
        # Views that the strides of `rows` allow, and those of TVM's values do not.
        turned = rows.T.relu()
        chosen = turned.T.view(1200).view(300, 4)[places]
        return turned, chosen, chosen.abs().sum(-1)

example_inputs = (torch.randn(300), torch.randn(300, 4))
entry = "Ties"
"""

_TIES_FAULT = """
import torch

from tvm import relax
from lowerscope.core.rules import rule


@rule("abs")
def abs(builder, node, x):
    return builder.emit(relax.op.negative(x))
"""


@pytest.mark.parametrize("is_fault", [False, True])
@pytest.mark.parametrize("preset", ["legalise", "optimise-cpu"])
@pytest.mark.parametrize(
    "choice", ["topk(20).indices", "sort(descending=True).indices[:20]", "argsort()[:20]"]
)
def test_the_order_of_equal_elements_is_no_fault(
    pipeline: Pipeline, tmp_path: Path, choice: str, is_fault: bool, preset: str
) -> None:
    file, rules = tmp_path / "ties.py", tmp_path / "rules.py"
    file.write_text(_TIES.format(choice=choice))
    rules.write_text(_TIES_FAULT)
    recipe = Recipe(
        source=Source(spec=str(file)),
        extensions=(Extension(path=str(rules), kind="rules"),) if is_fault else (),
    )
    steps = next(each.steps for each in PRESETS if each.name == preset)
    record = pipeline.answer(RunQuery(with_pipeline(recipe, steps)))
    assert record.verdict == ("differ" if is_fault else "rounding"), record.reason
    assert is_fault != ("the order of equal elements" in record.reason), record.reason
    differing = {each.id for each in record.nodes if "differs" in (each.status, each.own_status)}
    assert is_fault == bool(differing)


_SENSITIVE = """
import torch
from torch import nn

class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norms = nn.ModuleList(nn.LayerNorm(128) for _ in range(6))
        self.layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(6))
        self.to(torch.bfloat16)

    def forward(self, x):
        x = x + self.layers[0](self.norms[0](x)).abs()
        for norm, layer in zip(self.norms[1:], self.layers[1:]):
            x = x + torch.tanh(layer(norm(x)))
        return x

generator = torch.Generator().manual_seed(0)
example_inputs = torch.randn(4, 128, generator=generator).to(torch.bfloat16) * 3 + 10
entry = "Chain"
"""

_SENSITIVE_FAULT = """
from tvm import relax
from lowerscope.core.rules import rule


@rule("abs")
def abs(builder, node, x):
    return builder.emit(relax.op.multiply(relax.op.abs(x), relax.const(1.25, "bfloat16")))
"""


def test_a_wrong_node_is_a_fault_though_the_outputs_differ_by_rounding(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    file, rules = tmp_path / "chain.py", tmp_path / "rules.py"
    file.write_text(_SENSITIVE)
    rules.write_text(_SENSITIVE_FAULT)
    source = Source(spec=str(file))
    right = pipeline.answer(RunQuery(Recipe(source=source)))
    assert right.verdict in ("match", "rounding"), right.reason
    wrong = Recipe(source=source, extensions=(Extension(path=str(rules), kind="rules"),))
    record = pipeline.answer(RunQuery(wrong))
    assert record.verdict == "differ", record.reason
    assert record.first_difference == "fx:abs_1"
    assert "which the rounding of the whole model hides" in record.reason


class InPlace(torch.nn.Module):
    """Changes the results of its layers in place, and reads them before and after."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.relu = torch.nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        before = y * 2
        z = self.relu(y)
        z += before
        return y - z * 3


def test_nodes_are_computed_in_float64_beyond_changes_in_place() -> None:
    x, model = torch.randn(3, 4), InPlace()
    traced = trace(model, (x,), "fx")
    nodes = Float64Nodes(traced, (x,), 0, list, {})
    values = TorchValues(traced.graph_module, [x], 0, {})
    names = [each.name for each in traced.graph_module.graph.nodes if each.op != "output"]
    found = nodes.computed(names[-1], (), values, Widened((), WideWeights()))
    with torch.no_grad():
        torch.testing.assert_close(found, model.double()(x.double()), rtol=1e-12, atol=1e-12)


def test_a_node_alone_has_the_digits_of_what_is_computed_with_it() -> None:
    """Its call may compute a table in float32 too, which the passes fold."""

    class Turned(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.arange(x.shape[0], dtype=torch.float32).cos().double()

    inputs = (torch.ones(4, dtype=torch.float64),)
    traced = trace(Turned(), inputs, "fx")
    graph = traced.graph_module
    *_rest, table, product, _output = graph.graph.nodes
    exact = Float64Nodes(traced, inputs, 0, list, {})
    for reads, dtype in (["x"], torch.float32), (["x", table.name], torch.float64):
        values = TorchValues(graph, inputs, 0, Counter([product.name, *reads]))
        (found,) = exact.alone(product.name, [()], reads, values, ()) or ()
        assert found.computed_in == dtype


_WIDENED = """
import torch
from torch import nn


class Widened(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(64, 48).HALF)

    def forward(self, x):
        y = (x.HALF @ self.weight).double()
        return y, torch.cumsum(y, 0)


def example_inputs():
    return (torch.randn(16, 64, generator=torch.Generator().manual_seed(0)),)


entry = "Widened"
"""


@pytest.mark.parametrize(("half", "verdict"), [("half()", "rounding"), ("double()", "differ")])
def test_a_value_has_no_more_digits_than_what_it_is_made_of(
    half: str, verdict: str, pipeline: Pipeline, tmp_path: Path
) -> None:
    file, rules = tmp_path / "widened.py", tmp_path / "rules.py"
    file.write_text(_WIDENED.replace("HALF", half))
    rules.write_text(_ANOTHER_SUM)
    own = (Extension(path=str(rules), kind="rules"),)
    record = pipeline.answer(RunQuery(Recipe(source=Source(spec=str(file)), extensions=own)))
    assert record.verdict == verdict, record.reason


_ANOTHER_SUM = """
import operator

from tvm import relax
from lowerscope.core.rules import rule


@rule(operator.matmul)
def split(builder, node, x, y):
    dtype, op = str(x.ty.dtype), relax.op
    if dtype == "float64":
        # Less exact than the model itself.
        x, y = (builder.emit(op.astype(each, "float32")) for each in (x, y))
        return builder.emit(op.astype(builder.emit(op.matmul(x, y)), dtype))
    parts = [
        builder.emit(op.matmul(*(builder.emit(op.strided_slice(each, [axis], [k], [k + 32]))
        for each, axis in ((x, 1), (y, 0)))))
        for k in (0, 32)
    ]
    return builder.emit(op.add(*parts))
"""


_JUMPS = """
import torch


class Jumps(torch.nn.Module):
    def forward(self, x, y):
        total = (x * y).sum(-1)
        return torch.remainder(total, 0.1), torch.fmod(total, 0.5) * 2, total.frac()


def tenths(*shape):
    return torch.randint(-30, 31, shape, generator=torch.Generator().manual_seed(len(shape))) / 10


example_inputs = (tenths(16, 1, 600), tenths(40, 600))
entry = "Jumps"
"""

_JUMPS_FAULT = """
import torch

from lowerscope.core.rules import rule
from tvm import relax


@rule(torch.fmod)
def fmod(builder, node, x, y):
    return node.built_in(builder.emit(relax.op.add(x, relax.const(0.02, "float32"))), y)
"""


@pytest.mark.parametrize("is_fault", [False, True])
def test_values_on_the_other_side_of_a_jump_are_no_fault(
    pipeline: Pipeline, tmp_path: Path, is_fault: bool
) -> None:
    file, rules = tmp_path / "jumps.py", tmp_path / "rules.py"
    file.write_text(_JUMPS)
    rules.write_text(_JUMPS_FAULT)
    recipe = Recipe(
        source=Source(spec=str(file)),
        extensions=(Extension(path=str(rules), kind="rules"),) if is_fault else (),
    )
    record = pipeline.answer(RunQuery(recipe))
    assert record.verdict == ("differ" if is_fault else "rounding"), record.reason
    assert record.first_difference == ("fx:fmod" if is_fault else "")


_HONEST = """
import torch
from torch.nn import functional as F


class Honest(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(8, 8, 8) * 0.3)

    def forward(self, x):
        BODY


def example_inputs():
    torch.manual_seed(2031)
    return (INPUT,)


entry = "Honest"
"""

_CASES = {
    "casts to integers": ("return (x.abs() * 7).long() % 50", "torch.randn(64, 64).bfloat16()"),
    "sorts what is fused": (
        """v = torch.einsum("...ij,...kj->...ik", x * x, x) * 0.2
        v = torch.where(v > v, v, v * 0.5)
        return (v * v).sort(2)[0]""",
        "torch.randn(2, 4, 4, 8, 7).bfloat16()",
    ),
    "below the least normal number": (
        """y = x * 1e-6
        return y, y * y.sign(), torch.mul(y, 3.0) / 1e-5""",
        "torch.randn(16, 64).half()",
    ),
    "in any order": (
        """p = x.softmax(-1)
        i = torch.topk(p, 4, dim=-1, sorted=False)[1]
        y = torch.einsum("tki,ti->tk", self.weight[i].sum(-2), x)
        return (y * p.gather(1, i)).sum(-1)""",
        "torch.randn(5, 8)",
    ),
}


@pytest.mark.parametrize("case", _CASES)
def test_an_honest_model_does_not_differ(pipeline: Pipeline, tmp_path: Path, case: str) -> None:
    body, value = _CASES[case]
    file = tmp_path / "honest.py"
    file.write_text(_HONEST.replace("BODY", body).replace("INPUT", value))
    steps = next(each.steps for each in PRESETS if each.name == "optimise-cpu")
    recipe = with_pipeline(Recipe(source=Source(spec=str(file))), steps)
    record = pipeline.answer(RunQuery(recipe, quick=True))
    assert record.verdict in ("match", "rounding"), record.reason
    assert not record.reason.startswith(",")


def test_a_jump_from_zero_has_the_size_of_its_other_side() -> None:
    right = torch.zeros(64, dtype=torch.float64)
    side = right.clone()
    side[:4] = 1 / 3
    ours, theirs = torch.zeros(64), side.float()
    exact = Exact(right, torch.float32, noise=right, sides=lambda: [side * (1 + 1e-6)])
    found = difference(ours, theirs, Tolerances())
    assert beside_float64(found, ours, theirs, exact, Tolerances()).verdict == "rounding"
    ours[7] = 1 / 3
    found = difference(ours, theirs, Tolerances())
    assert beside_float64(found, ours, theirs, exact, Tolerances()).verdict == "differ"


@pytest.mark.parametrize(("place", "verdict"), [(0, "rounding"), (40, "differ")])
def test_rounding_grows_more_in_some_elements(place: int, verdict: str) -> None:
    right = torch.linspace(1, 2, 128, dtype=torch.float64).reshape(16, 8)
    noise = torch.full_like(right, 1e-7)
    noise[0, 2] = 1e-4
    ours, theirs = right.float(), right.float()
    ours.view(-1)[place] += 3e-4
    found = difference(ours, theirs, Tolerances())
    exact = Exact(right, torch.float32, noise=noise)
    assert beside_float64(found, ours, theirs, exact, Tolerances()).verdict == verdict
