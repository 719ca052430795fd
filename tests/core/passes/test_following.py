"""Bindings followed through passes: what each became, and which pass took it away."""

from __future__ import annotations

import pytest
import tvm
from tvm.script import ir as I
from tvm.script import relax as R

from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.ir.relax import calls_of
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.queries import SnapshotQuery
from lowerscope.core.model.recipe import Recipe, Source, Step, Strategy
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
