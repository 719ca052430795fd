"""Bindings followed through passes: what each became, and which pass took it away."""

from __future__ import annotations

from pathlib import Path

import pytest
import tvm
import tvm_ffi
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

from lowerscope.core.files.pipelines_and_schedules import PRESETS, find_pipeline
from lowerscope.core.files.sources import parse_input
from lowerscope.core.ir.relax import binding_ids, callee_of, calls_of, relax_functions
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.queries import SnapshotQuery
from lowerscope.core.model.recipe import Recipe, Source, Step, Strategy
from lowerscope.core.passes.fused_blocks import Composed, blocks_of
from lowerscope.core.passes.recording import pass_records
from lowerscope.core.passes.transforming import TransformedModel, transform
from lowerscope.core.stages import Pipeline

FUSE = next(each.steps for each in PRESETS if each.name == "fuse")


def after(module: tvm.IRModule, *names: str) -> TransformedModel:
    transformed = transform(module, tuple(Step(name=each) for each in names))
    transformed.check()
    return transformed


def became(transformed: TransformedModel) -> dict[str, tuple[str, ...]]:
    """Return what bindings of ``main`` became, without the prefix of ``main``."""
    return {
        old.removeprefix("relax:main/"): tuple(new.removeprefix("relax:main/") for new in found)
        for old, found in transformed.bindings.items()
    }


@I.ir_module
class Twice:
    """The same group twice, so that one function is called from two places."""

    @R.function
    def main(x: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        with R.dataflow():
            a = R.add(x, x)
            b = R.nn.relu(a)
            c = R.nn.softmax(b)
            d = R.add(c, c)
            e = R.nn.relu(d)
            f = R.nn.softmax(e)
            R.output(f)
        return f


def test_fused_bindings_are_followed_into_the_function_of_their_group() -> None:
    names = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps")
    found = after(Twice, *names)
    callees = {
        binding: function
        for function, bindings in calls_of(found.module).items()
        for binding in bindings
    }
    groups = {}
    for name, operator in zip("abde", ("add", "relu") * 2, strict=True):
        call, member = found.bindings[f"relax:main/{name}"]
        groups[name] = callees[call].removeprefix("relax:")
        # In the group's function, it has the binding that calls its operator's function.
        assert member.startswith(f"relax:{groups[name]}/")
        assert callees[member] == f"tir:{operator}"
        fate = found.fates[f"relax:main/{name}"]
        assert fate.text == f"fused into {groups[name]} by FuseOps"
        assert not fate.gone
    assert groups["a"] == groups["b"]
    assert groups["d"] == groups["e"]


@I.ir_module
class Repeated:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        with R.dataflow():
            a = R.add(x, x)
            unused = R.multiply(x, x)  # noqa: F841
            b = R.add(x, x)
            c = R.multiply(a, b)
            d = c
            R.output(d)
        return d


def test_what_is_dead_is_removed_by_the_pass_that_does() -> None:
    transformed = after(Repeated, "LegalizeOps", "DeadCodeElimination")
    fate = transformed.fates["relax:main/unused"]
    assert (fate.text, fate.step, fate.gone) == ("removed by DeadCodeElimination", 2, True)
    assert became(transformed)["unused"] == ()
    assert set(transformed.fates) == {"relax:main/unused"}


@pytest.mark.diagonal
@pytest.mark.parametrize("sample", ["fashion_mlp", "conv_net", "transformer_block"])
@pytest.mark.parametrize("lowering", ["high-level", "te", "library"])
def test_every_function_after_fusion_is_linked_with_its_nodes(
    sample: str, lowering: Strategy
) -> None:
    pipeline = Pipeline()
    recipe = Recipe(source=Source(spec=f"sample:{sample}"), lowering=lowering, steps=FUSE)
    record = pipeline.answer(SnapshotQuery(recipe, DEFAULT))
    linked = {function for node in record.fx for function in node.functions}
    called = {each.id for each in record.functions if each.calls and each.name != "main"}
    assert called == linked
    # Whatever has no function has a fate, or calls none from the start.
    transformed = pipeline.stages(recipe).transformed
    before = {
        binding
        for bindings in calls_of(transformed.module_after(1)).values()
        for binding in bindings
    }
    linked_to = {first: others for first, *others in record.links}
    for binding, found in transformed.bindings.items():
        if not found:
            assert record.fates[binding].gone
        elif binding in before:
            assert any(
                binding in each.calls or each.id in linked_to.get(binding, ())
                for each in record.functions
            ), binding


# Whose each block of a fused function is


STEPS = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR")


@I.ir_module
class Again:
    """One operator twice in a group: only the order tells its blocks apart."""

    @R.function
    def main(x: R.Tensor((4, 8), "float32"), y: R.Tensor((4, 8), "float32")) -> R.Tensor(
        (4, 8), "float32"
    ):
        with R.dataflow():
            a = R.add(x, y)
            b = R.nn.relu(a)
            c = R.add(b, y)
            d = R.tanh(c)
            R.output(d)
        return d


def fused(module: tvm.IRModule, *names: str) -> TransformedModel:
    transformed = transform(module, tuple(Step(name=each) for each in (*STEPS, *names)))
    transformed.check()
    return transformed


def own(found: Composed) -> list[tuple[str, ...] | None]:
    return [
        None if owner is None else tuple(each.removeprefix("relax:main/") for each in owner)
        for owner in found.owners
    ]


def test_an_operator_that_is_there_twice_has_its_own_block_each_time() -> None:
    transformed = fused(Again)
    ((name, found),) = transformed.composed.items()
    blocks = blocks_of(name, transformed.module[name])
    assert [str(each.name_hint) for each in blocks][::2] == ["T_add", "T_add1"]
    assert own(found) == [("a",), ("b",), ("c",), ("d",)]
    assert not found.reason
    # What follows and changes nothing inside leaves it known.
    again = fused(Again, "DeadCodeElimination", "AttachGlobalSymbol")
    assert [own(each) for each in again.composed.values()] == [[("a",), ("b",), ("c",), ("d",)]]


def test_each_block_of_a_model_is_held_against_the_function_that_it_was() -> None:
    """The blocks of a node are those of its own functions, by another way: one by one."""
    recipe = Recipe(source=Source(spec="sample:transformer_block"), lowering="te", steps=FUSE)
    transformed = Pipeline().stages(recipe).transformed
    lowered = transformed.module_after(0)
    before = {
        f"relax:main/{binding.var.name}": callee_of(getattr(binding, "value", None))
        for _, function in relax_functions(lowered)
        for block in function.body.blocks
        for binding in block.bindings
    }
    assert len(transformed.composed) > 5
    for name, found in transformed.composed.items():
        assert not found.reason
        blocks = blocks_of(name, transformed.module[name])
        wanted: dict[str, list[object]] = {}
        for block, owner in zip(blocks, found.owners, strict=True):
            assert owner
            wanted.setdefault(owner[0], []).append(block)
        for binding, mine in wanted.items():
            theirs = blocks_of("", lowered[before[binding]])
            assert len(mine) == len(theirs)
            assert all(
                tvm_ffi.structural_equal(one, other, map_free_vars=True)
                for one, other in zip(mine, theirs, strict=True)
            )


# Passes, and what becomes of bindings in them


LEGALIZE = (Step(name="LegalizeOps"),)


@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        with R.dataflow():
            a = R.nn.softmax(x)
            b = R.add(a, R.const(1.0, "float32"))
            a = R.multiply(b, b)
            out = R.nn.relu(a)
            R.output(out)
        return out


def test_each_binding_is_followed_into_the_legalised_module() -> None:
    transformed = transform(Model, LEGALIZE)
    before = [bound.id for bound in binding_ids(Model)]
    assert list(transformed.bindings) == before
    after = [each for ids in transformed.bindings.values() for each in ids]
    assert after == [bound.id for bound in binding_ids(transformed.module)]
    callees = {
        binding: function
        for function, bindings in calls_of(transformed.module).items()
        for binding in bindings
    }
    made = [callees[transformed.bindings[each][-1]] for each in before]
    assert made == ["tir:softmax", "tir:add", "tir:multiply", "tir:relu"]


def test_the_module_between_steps_is_that_of_tvm() -> None:
    transformed = transform(Model, (Step(name="LegalizeOps", on=False), *LEGALIZE))
    assert transformed.module_after(0).same_as(Model)
    assert transformed.module_after(1).same_as(Model)
    with tvm.transform.PassContext(opt_level=3):
        tvm.ir.assert_structural_equal(
            transformed.module_after(2), relax.transform.LegalizeOps()(Model)
        )
    off, on = pass_records(transformed.runs)
    assert (off.status, off.changed) == ("off", ())
    assert on.changed == ("add", "main", "multiply", "relu", "softmax")
    assert on.milliseconds > 0


def test_cancel_is_asked_for_before_each_step_each_pass_of_it_and_each_call() -> None:
    asked: list[int] = []
    transform(Model, LEGALIZE * 3, lambda: asked.append(1))
    calls = 4
    # There is nothing to legalise the second time.
    assert len(asked) == 2 * 3 + calls


SIZED = """
import torch
from torch import nn

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, past):
        y = torch.cat([past, self.layer(x)], 0)
        place = torch.arange(y.shape[0])
        scores = (y @ y.t()).masked_fill(place[None, :] > place[:, None], -1e9)
        return (scores.softmax(-1) @ y).relu() * 2, y

model = Own()
example_inputs = torch.randn(1, 4), torch.randn(5, 4)
"""


def test_groups_with_sizes_are_followed(tmp_path: Path) -> None:
    """A group has a variable of its own for each size that its operators are given."""
    path = tmp_path / "sized.py"
    path.write_text(SIZED)
    inputs = (parse_input("x=1,4"), parse_input("past=length,4"))
    steps = find_pipeline("optimise-cpu").steps
    recipe = Recipe(source=Source(spec=str(path)), inputs=inputs, steps=steps, target="native")
    transformed = Pipeline().stages(recipe).transformed
    lost = {old.split("/")[-1] for old, found in transformed.bindings.items() if not found}
    # Two transposes, which the products do instead, and the tuple of the outputs.
    assert lost == {"lv", "lv5", "gv"}
