"""Explanations of fusion agree with what ``FuseOps`` of TVM does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import tvm
from tvm import relax

from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.ir.relax import binding_ids
from lowerscope.core.model.explanation_records import Cause, Explanation
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import WhyFusedQuery
from lowerscope.core.model.recipe import Recipe, Source, Step, Strategy
from lowerscope.core.passes.bindings import match_bindings
from lowerscope.core.passes.fusion import Partition, read_by
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.fusion import fusion_reason
from lowerscope.resources import HELP

pytestmark = pytest.mark.usefixtures("shared_results")


def adjacent(module: tvm.IRModule) -> Iterator[tuple[str, str]]:
    """Yield the ids of the bindings of a module that read each other's values."""
    bounds = binding_ids(module)
    by_variable = {hash(bound.binding.var): bound.id for bound in bounds}
    for bound in bounds:
        for variable in read_by(getattr(bound.binding, "value", None)):
            if hash(variable) in by_variable:
                yield by_variable[hash(variable)], bound.id


def check_partition(before: tvm.IRModule, after: tvm.IRModule) -> tuple[int, int]:
    """Compare the replay with TVM for all adjacent bindings; return how many there are, fused."""
    partition, matches = Partition(before), match_bindings(before, after)
    pairs = list(adjacent(before))
    fused = 0
    for source, user in pairs:
        really = bool(set(matches.get(source, ())) & set(matches.get(user, ())))
        assert partition.are_fused(source, user) == really, (source, user, before.script())
        fused += really
        one, other = partition.vertices[source], partition.vertices[user]
        known = one.barrier or other.barrier or one.is_output or one.blocked
        assert really or known or one.dominator is None, (source, user, before.script())
    return len(pairs), fused


@pytest.mark.diagonal
@pytest.mark.parametrize("lowering", ["high-level", "library"])
@pytest.mark.parametrize("sample", ["conv_net", "transformer_block"])
def test_the_replay_agrees_with_tvm_on_samples(sample: str, lowering: Strategy) -> None:
    steps = find_pipeline("fuse").steps
    recipe = Recipe(source=Source(spec=f"sample:{sample}"), lowering=lowering, steps=steps)
    (run,) = (each for each in Pipeline().stages(recipe).transformed.runs if each.name == "FuseOps")
    pairs, fused = check_partition(run.before, run.after)
    assert pairs
    assert bool(fused) == (lowering == "high-level")


def random_module(seed: int) -> tvm.IRModule:
    """Return a dataflow block of random operators, some of whose values are outputs."""
    draw = random.Random(seed)
    builder = relax.BlockBuilder()
    square = relax.TensorType((4, 4), "float32")
    x, y = (relax.Var(name, square) for name in "xy")
    with builder.function("main", [x, y]):
        with builder.dataflow():
            values: list[Any] = [x, y]
            for _ in range(draw.randint(3, 14)):
                one, other = (draw.choice(values[-4:]) for _ in range(2))
                values += _emitted(builder, draw.randrange(12), one, other)
            outputs = [builder.emit_output(each) for each in draw.sample(values[2:], 2)]
        builder.emit_func_output(relax.Tuple(outputs))
    module = builder.get()
    for each in (relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern()):
        module = each(module)
    return relax.transform.DeadCodeElimination()(module)


def _emitted(builder: relax.BlockBuilder, kind: int, one: Any, other: Any) -> list[Any]:
    """Emit an operator on values of 4 by 4; return its values, of the same shape."""
    op = relax.op
    if kind == 9:
        both = builder.emit(op.split(one, 2, 0))
        halves = [builder.emit(relax.TupleGetItem(both, number)) for number in range(2)]
        return [builder.emit(op.concat(halves, 0))]
    if kind == 11:
        both = builder.emit(relax.Tuple([one, other]))
        return [builder.emit(relax.TupleGetItem(both, 0))]
    if kind == 10:
        square = relax.TensorType((4, 4), "float32")
        return [builder.emit(op.call_dps_packed("of.a.library", (one,), out_ty=square))]
    row = builder.emit(op.sum(one, 0, keepdims=True)) if kind == 5 else one
    return [
        builder.emit(
            (
                lambda: op.add(one, other),
                lambda: op.nn.relu(one),
                lambda: op.multiply(one, other),
                lambda: op.permute_dims(one),
                lambda: op.matmul(one, other),
                lambda: op.add(other, row),
                lambda: op.nn.softmax(one),
                lambda: op.exp(one),
                lambda: op.flip(one, 0),
            )[kind]()
        )
    ]


@pytest.mark.parametrize("start", range(0, 120, 30))
def test_the_replay_agrees_with_tvm_on_random_graphs(start: int) -> None:
    counts = []
    for seed in range(start, start + 30):
        before = random_module(seed)
        counts.append(check_partition(before, relax.transform.FuseOps()(before)))
    assert sum(fused for _, fused in counts) > 20
    assert sum(pairs - fused for pairs, fused in counts) > 20


def why(sample: str, one: str, other: str, *names: str, **fields: Any) -> Explanation:
    steps = tuple(Step(name=each) for each in names) or find_pipeline("fuse").steps
    recipe = Recipe(source=Source(spec=f"sample:{sample}"), **{"steps": steps, **fields})
    return Pipeline().answer(WhyFusedQuery(recipe, one, other))


def test_nodes_that_are_fused() -> None:
    answer = why("fashion_mlp", "linear0", "relu")
    assert answer.fused
    assert (answer.by, answer.cause) == ("FuseOps: fused_matmul_add_relu", "fused")
    assert set(answer.cites) == {"fx:linear0", "fx:relu", "relax:fused_matmul_add_relu"}
    assert why("fashion_mlp", "fx:relu", "fx:linear0").fused


@pytest.mark.parametrize(
    ("sample", "one", "other", "cause"),
    [
        ("transformer_block", "softmax", "matmul_1", "reduces-twice"),
        ("transformer_block", "transpose", "matmul", "pattern"),
        ("transformer_block", "attention_query", "view", "pattern"),
        ("transformer_block", "norm0", "gelu", "not-adjacent"),
        ("fashion_mlp", "linear1", "output", "no-code"),
        ("fashion_mlp", "lv6", "gv", "no-code"),  # gv = lv6
        ("fashion_mlp", "lv", "lv1", "removed"),
        ("fashion_mlp", "relu", "relu", "same-binding"),
        ("fashion_mlp", "relu", "fused_matmul_add_relu", "same-binding"),
        ("fashion_mlp", "fused_matmul_add_relu", "fused_matmul1_add1", "reduces-twice"),
    ],
)
def test_causes_that_no_change_cures(sample: str, one: str, other: str, cause: Cause) -> None:
    answer = why(sample, one, other)
    assert (answer.fused, answer.cause, answer.change) == (False, cause, None)
    assert answer.text


CURED = {
    "pass-missing": {"steps": (Step(name="LegalizeOps"),)},
    "pass-off": {
        "steps": tuple(
            msgspec.structs.replace(each, on=each.name != "FuseOps")
            for each in find_pipeline("fuse").steps
        )
    },
    "pass-order": {"steps": (Step(name="FuseOps"), Step(name="LegalizeOps"))},
    "fusion-disabled": {
        "steps": tuple(
            Step(name=each.name, options={"fuse_opt_level": 0} if each.name == "FuseOps" else {})
            for each in find_pipeline("fuse").steps
        )
    },
    "library-call": {"lowering": "library"},
}


@pytest.mark.parametrize("cause", CURED)
def test_the_change_of_an_answer_fuses_the_nodes(cause: Cause) -> None:
    fields = {"steps": find_pipeline("fuse").steps, **CURED[cause]}
    recipe = Recipe(source=Source(spec="sample:fashion_mlp"), **fields)
    pipeline = Pipeline()
    answer = pipeline.answer(WhyFusedQuery(recipe, "linear0", "relu"))
    assert (answer.fused, answer.cause) == (False, cause)
    change = answer.change
    assert change is not None
    changed = {"steps": change.steps, "overrides": change.overrides}
    changed = {name: value for name, value in changed.items() if value is not None}
    recipe = msgspec.structs.replace(recipe, **changed)
    assert pipeline.answer(WhyFusedQuery(recipe, "linear0", "relu")).fused


MODEL = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.norm, self.drop = torch.nn.LayerNorm(8), torch.nn.Dropout()
        self.scale = torch.nn.Parameter(torch.ones(8))

    def forward(self, x):
        norm = self.norm(x)
        y = torch.relu(self.drop(self.one(norm)))
        z = torch.exp(self.other(y) * self.scale).chunk(2, 1)
        return z[0], z[1] @ y[:, 4:], norm


example_inputs = (torch.rand(4, 8),)
"""


def test_answers_on_a_model(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    recipe = Recipe(
        source=Source(spec=str(tmp_path / "model.py")), steps=find_pipeline("fuse").steps
    )
    pipeline = Pipeline()

    def answer(one: str, other: str) -> Explanation:
        return pipeline.answer(WhyFusedQuery(recipe, one, other))

    # Both call the function of equal groups, or of equal operators inside these.
    assert answer("one", "other").cause == "not-adjacent"
    # Whatever reads the norm besides: a product has a sum of its own.
    assert answer("norm", "one").cause == "reduces-twice"
    assert answer("drop", "relu").text.endswith("comes from one")
    recipe = msgspec.structs.replace(recipe, lowering="library")
    assert "each bring a reduction" in answer("norm", "one").text
    assert answer("x", "norm").text.startswith("x is an input")
    assert answer("scale", "mul").text.startswith("scale is a parameter")
    with pytest.raises(LowerscopeError, match=r"'one\.bias' is a parameter") as raised:
        answer("one.bias", "relu")
    assert raised.value.problem.choices == ("one",)


def test_an_output_that_may_not_go_into_its_reader_is_explained_by_that() -> None:
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorType((4, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            total = builder.emit_output(relax.op.sum(x, axis=1))
            result = builder.emit_output(relax.op.nn.relu(total))
        builder.emit_func_output(result)
    module = builder.get()
    for name in ("LegalizeOps", "AnnotateTIROpPattern"):
        module = getattr(relax.transform, name)()(module)
    vertices = Partition(module).vertices
    ((one, other),) = [[vertices[each] for each in pair] for pair in adjacent(module)]
    assert one.dominator is None
    cause, where, text = fusion_reason(one, other, module)
    assert (cause, where) == ("reduction", one)
    assert text


def test_a_batch_norm_is_fused_once_it_is_folded() -> None:
    answer = why("resnet18", "conv1", "bn1")
    assert answer.cause == "pattern"
    assert answer.change is not None
    assert answer.change.steps is not None
    assert answer.change.steps[0].name == "FoldBatchNorm"


def test_all_that_is_in_the_way_is_changed_at_once() -> None:
    recipe = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="library", steps=())
    pipeline = Pipeline()
    change = pipeline.answer(WhyFusedQuery(recipe, "linear0", "relu")).change
    assert change is not None
    assert change.steps is not None
    assert change.overrides is not None
    recipe = msgspec.structs.replace(recipe, steps=change.steps, overrides=change.overrides)
    assert pipeline.answer(WhyFusedQuery(recipe, "linear0", "relu")).fused


def test_an_unknown_node_is_named_with_those_that_there_are() -> None:
    with pytest.raises(LowerscopeError, match="there is no node, binding or function 'nothing'"):
        why("fashion_mlp", "nothing", "relu")


def test_the_help_page_describes_every_cause() -> None:
    page = (HELP / "fusion.md").read_text(encoding="utf-8")
    assert [cause for cause in get_args(Cause) if f"`{cause}`" not in page] == []
