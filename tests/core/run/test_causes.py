"""The node where a difference starts is named: inside a fused call, and within a tolerance."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lowerscope.core.cli.main import recipe_of_command
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.run_records import RunRecord
from lowerscope.core.run.compare.causes import names_before
from lowerscope.core.stages import Pipeline
from lowerscope.core.tracing.tracing import trace

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn


def given(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
{layers}

    def forward(self, x):
{forward}


entry = Net().to(torch.{dtype})
example_inputs = (({inputs}).to(torch.{dtype}),)
"""

_CONVOLUTIONS = (
    """self.first = nn.Conv2d(3, 8, 3, padding=1)
self.norm = nn.BatchNorm2d(8)
self.norm.running_var.uniform_(0.5, 2)
self.last = nn.Conv2d(8, 8, 3, padding=1)""",
    """x = torch.relu(self.norm(self.first(x)))
return torch.relu(self.last(x)).mean((2, 3))""",
    "given(1, 3, 16, 16)",
)

_LONGER = (
    "self.wide = nn.Linear(16, 16)",
    """x = torch.cat((x, x[:1]))
return torch.tanh(self.wide(x) * 0.5 + 1)""",
    "given(9, 16)",
)

_RESIDUAL = (
    """self.norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(3))
self.wide = nn.ModuleList(nn.Linear(64, 128) for _ in range(3))
self.narrow = nn.ModuleList(nn.Linear(128, 64) for _ in range(3))""",
    """for norm, wide, narrow in zip(self.norms, self.wide, self.narrow):
    x = x + narrow(F.gelu(wide(norm(x))))
return x""",
    "given(8, 64) * 4",
)

_MASKED = (
    "self.layer = nn.Linear(16, 48)",
    """q, k, v = self.layer(x).chunk(3, -1)
mask = torch.ones(24, 24, dtype=torch.bool).tril()
return ((q @ k.T) / 4).masked_fill(~mask, -10000.0).softmax(-1) @ v""",
    "given(24, 16)",
)

_CHAIN = (
    """self.a, self.b, self.c = (nn.Linear(64, 64) for _ in range(3))
self.n, self.m = nn.LayerNorm(64), nn.LayerNorm(64)""",
    """x = x + torch.tanh(self.a(self.n(x)))
x = x + F.gelu(self.b(self.m(x)))
return torch.sigmoid(self.c(x))""",
    "given(8, 64)",
)

_PLACES = ("pass", "return x * torch.cos(torch.arange(x.shape[1]).float() / 4)", "given(4, 16)")

_MEAN = ("self.layer = nn.Linear(16, 16)", "return self.layer(x).mean(0).tanh()", "given(9, 16)")

_LARGEST = (
    "pass",
    """largest = torch.topk(x.softmax(-1), 2)[0]
return largest / largest.sum(-1, keepdim=True)""",
    "given(8, 16)",
)

_MODULE = """
import operator

import torch
from torch import nn
from tvm import relax
from lowerscope.core.rules import Refused, rule


@rule({of})
def faulty(builder, node, *args, **kwargs):
    if node.name != {name!r}:
        raise Refused("another node")
    module = node.module
    {body}
"""

_OTHER = """kept = module.{what}
    module.{what} = {value}
    try:
        return node.built_in(*args, **kwargs)
    finally:
        module.{what} = kept"""


def _other(what: str, value: str) -> str:
    """Return the body of a rule for a module in which something is not as it is."""
    return _OTHER.format(what=what, value=value)


_WITHOUT_BIAS = _other("bias", "nn.Parameter(torch.zeros_like(module.bias), False)")
_NAMED = ("--dim", "n=1..16", "--input")

CASES = {
    # Model, dtype, type and name of the node, the rule's body, options.
    "inside a fused call": (
        _CONVOLUTIONS,
        "float32",
        *("nn.BatchNorm2d", "norm", _other("eps", "1e-2")),
        (),
    ),
    "within the tolerance of the outputs": (
        _CONVOLUTIONS,
        "float32",
        *("nn.BatchNorm2d", "norm", _other("eps", "1e-4")),
        (),
    ),
    "within the rounding of half precision": (
        _RESIDUAL,
        "bfloat16",
        *("nn.Linear", "wide_1", _WITHOUT_BIAS),
        (),
    ),
    "of any size": (
        _RESIDUAL,
        "bfloat16",
        *("nn.Linear", "wide_1", _WITHOUT_BIAS),
        (*_NAMED, "x=n,64:bfloat16"),
    ),
    "a value of another node": (
        _RESIDUAL,
        "float32",
        *("operator.add", "add_1", "return args[1]"),
        (),
    ),
    "in the structure of rounding alone": (
        _CHAIN,
        "bfloat16",
        *("nn.LayerNorm", "m", _other("eps", "5e-2")),
        (),
    ),
    "in what a pass folds": (
        _PLACES,
        "float32",
        *("torch.arange", "arange"),
        'return builder.emit(relax.op.add(node.built_in(*args), relax.const(1, "int64")))',
        (),
    ),
    "at one of the sizes": (
        _MEAN,
        "float32",
        *("'mean'", "mean"),
        """total = builder.emit(relax.op.sum(args[0], 0))
    return builder.emit(relax.op.multiply(total, relax.const(1 / 9, "float32")))""",
        (*_NAMED, "x=n,16:float32", "--sizes", "n=9,2"),
    ),
    "of a size and one": (
        _LONGER,
        "float32",
        *("operator.mul", "mul"),
        'return builder.emit(relax.op.multiply(args[0], relax.const(0.51, "float32")))',
        (*_NAMED, "x=n,16:float32"),
    ),
    "in what no call gives": (
        _LARGEST,
        "float32",
        *("operator.truediv", "truediv", "return args[0]"),
        (),
    ),
    "beside a mask": (
        _MASKED,
        "float32",
        *("operator.truediv", "truediv"),
        'return builder.emit(relax.op.multiply(args[0], relax.const(0.2501, "float32")))',
        (),
    ),
}


def _indented(text: str) -> str:
    return "\n".join(f"        {each}" for each in text.splitlines())


def _run(pipeline: Pipeline, folder: Path, case: str, *, is_faulty: bool) -> RunRecord:
    (layers, forward, inputs), dtype, of, name, body, options = CASES[case]
    model, rules = folder / "model.py", folder / "rules.py"
    model.write_text(
        _MODEL.format(
            layers=_indented(layers), forward=_indented(forward), inputs=inputs, dtype=dtype
        )
    )
    rules.write_text(_MODULE.format(of=of, name=name, body=body))
    own = ("--rules", str(rules)) if is_faulty else ()
    few = ("--repeats", "1", "--warm-up", "1", "--pipeline", "optimise-cpu")
    return pipeline.answer(RunQuery(recipe_of_command(("run", str(model), *own, *options, *few))))


@pytest.mark.parametrize("case", CASES)
def test_the_wrong_node_is_named(pipeline: Pipeline, tmp_path: Path, case: str) -> None:
    record = _run(pipeline, tmp_path, case, is_faulty=True)
    name = CASES[case][3]
    assert record.verdict == "differ", record.reason
    assert record.first_difference == f"fx:{name}"
    nodes = {each.id: each for each in record.nodes}
    assert nodes[f"fx:{name}"].own_status == "differs"
    if "than rounding" in record.reason:
        assert record.reason.startswith(f"{name} differs")
    # What the same call computes is right on torch's inputs.
    others = [nodes[each] for each in nodes[f"fx:{name}"].shared_with]
    assert not [each.id for each in others if each.own_status == "differs"]


@pytest.mark.parametrize("case", CASES)
def test_right_nodes_differ_by_rounding_at_most(
    pipeline: Pipeline, tmp_path: Path, case: str
) -> None:
    record = _run(pipeline, tmp_path, case, is_faulty=False)
    assert record.verdict in ("match", "rounding"), record.reason
    assert record.first_difference == ""


class _Writing(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, unread = x * 2, x + 3
        y.mul_(x.sum(0))
        unread.add_(1)
        return y.relu()


def test_what_writes_into_a_value_leads_to_what_reads_it() -> None:
    traced = trace(_Writing(), (torch.randn(2, 3),), "fx")
    names = names_before(traced)
    assert {"x", "mul", "sum_1", "mul_", "relu"} <= set(names)
    assert not {"add", "add_"} & set(names)
