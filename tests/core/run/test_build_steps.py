"""The passes of TVM's own build, noted while it runs."""

from __future__ import annotations

import pytest
import tvm
import tvm_ffi

from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import BuildStepsQuery, TextQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline

MLP = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te")


def functions_of(module: tvm.IRModule) -> dict[str, object]:
    return {str(each.name_hint): function for each, function in module.functions_items()}


def test_what_is_listed_as_changed_is_what_differs(pipeline: Pipeline) -> None:
    steps, build = pipeline.answer(BuildStepsQuery(MLP)), pipeline.stages(MLP).recorded
    for each, run in zip(steps, build.runs, strict=True):
        assert run.after is not None
        before, after = functions_of(run.before), functions_of(run.after)
        differing = {
            name
            for name in before.keys() | after.keys()
            if name not in before
            or name not in after
            or (
                not tvm_ffi.structural_equal(before[name], after[name])
                # What cannot be read in its script is no change that can be shown.
                and before[name].script() != after[name].script()
            )
        }
        assert set(each.changed) == differing, each.name


def test_each_function_can_be_read_after_each_pass(pipeline: Pipeline) -> None:
    steps = pipeline.answer(BuildStepsQuery(MLP))

    def text(name: str, index: int) -> str:
        moment = Moment(section="build", index=index)
        return pipeline.answer(TextQuery(MLP, name, "script", moment)).text

    lowered = pipeline.answer(TextQuery(MLP, "dense", "script")).text
    assert text("dense", 0) == lowered
    number = {each.name: each.number for each in steps}
    assert "T.sblock" in text("dense", number["s_tir.ConvertBlocksToOpaque"])
    assert "T.sblock" not in text("dense", number["s_tir.LowerOpaqueBlock"])
    assert "num_args" in text("dense", number["tirx.MakePackedAPI"])
    # Passes for TensorIR leave main as it went into the bytecode.
    last = text("", len(steps))
    assert "R.vm.kill_object" in last
    assert "R.vm.kill_object" not in text("", 0)
    lowering = number["s_tir.LowerInitBlock"]
    build = pipeline.stages(MLP).recorded
    assert build.module_before(lowering)["dense"].same_as(build.runs[lowering - 1].before["dense"])
    with pytest.raises(LowerscopeError, match="no step 500"):
        text("dense", 500)
