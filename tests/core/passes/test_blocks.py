"""Whose each block of a fused function is."""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm.script import ir as I
from tvm.script import relax as R

from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.ir.relax import callee_of, relax_functions
from lowerscope.core.model.recipe import Recipe, Source, Step
from lowerscope.core.passes.fused_blocks import Composed, blocks_of
from lowerscope.core.passes.transforming import TransformedModel, transform
from lowerscope.core.stages import Pipeline

STEPS = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR")
FUSE = next(each.steps for each in PRESETS if each.name == "fuse")


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
