"""The step ApplySchedules: the schedules of a recipe, applied to the model."""

from __future__ import annotations

from pathlib import Path

import msgspec

from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.queries import RunQuery, ScheduleQuery, SnapshotQuery, TextQuery
from lowerscope.core.model.recipe import Recipe, Source, Step
from lowerscope.core.model.schedule import APPLY_SCHEDULES, At, Made, Primitive, Schedule
from lowerscope.core.stages import Pipeline
from tests.core.schedule.functions import step

APPLY = Step(name=APPLY_SCHEDULES)
LEGALISE = find_pipeline("legalise").steps
FUSE = find_pipeline("fuse").steps


def vectorized(block: str, place: int, factor: int) -> tuple[Primitive, ...]:
    """Return a split of a loop around a block, whose inner loop is vectorized."""
    return (
        step("s1", "split", loop=At(block=block, loop=place), factors=(None, factor)),
        step("s2", "vectorize", loop=Made(step="s1", output=1)),
    )


MATMUL = (*vectorized("matmul", 1, 16), step("s3", "parallel", loop=Made(step="s1")))
MLP = Recipe(source=Source(spec="sample:fashion_mlp"))


def with_schedules(recipe: Recipe, *schedules: Schedule, steps: tuple[Step, ...]) -> Recipe:
    return msgspec.structs.replace(recipe, schedules=schedules, steps=steps)


def test_a_scheduled_model_matches_torch(pipeline: Pipeline) -> None:
    schedule = Schedule(function="matmul", primitives=MATMUL)
    recipe = with_schedules(MLP, schedule, steps=(*LEGALISE, APPLY))
    script = pipeline.answer(TextQuery(recipe, "matmul", "script")).text
    assert "T.parallel(T.int64(8))" in script
    assert "T.vectorized(T.int64(16))" in script
    snapshot = pipeline.answer(SnapshotQuery(recipe, DEFAULT))
    assert snapshot.passes[-1].changed == ("matmul",)
    assert snapshot.notes == ()
    run = pipeline.answer(RunQuery(recipe))
    assert run.verdict == "match", run.reason


def test_a_scheduled_convolution_matches_torch_before_and_after_fusion(pipeline: Pipeline) -> None:
    conv_net = Recipe(source=Source(spec="sample:conv_net"))
    before = Schedule(function="conv2d", primitives=vectorized("conv2d_nchw", 3, 4))
    after = Schedule(function="fused_matmul_add1_relu1", primitives=vectorized("compute", 1, 16))
    recipe = with_schedules(conv_net, before, after, steps=(*LEGALISE, APPLY, *FUSE, APPLY))
    snapshot = pipeline.answer(SnapshotQuery(recipe, DEFAULT))
    assert snapshot.notes == ()
    applied = [each for each in snapshot.passes if each.name == APPLY_SCHEDULES]
    assert [each.changed for each in applied] == [("conv2d",), ("fused_matmul_add1_relu1",)]
    run = pipeline.answer(RunQuery(recipe))
    assert run.verdict == "match", run.reason


def test_passes_before_the_schedules_are_not_run_again() -> None:
    pipeline = Pipeline()
    schedule = Schedule(function="matmul", primitives=MATMUL[:1])
    recipe = with_schedules(MLP, schedule, steps=(*LEGALISE, APPLY))
    assert {"passes", "schedules"} < set(
        pipeline.answer(SnapshotQuery(recipe, DEFAULT)).milliseconds
    )
    longer = msgspec.structs.replace(schedule, primitives=MATMUL)
    recipe = msgspec.structs.replace(recipe, schedules=(longer,))
    again = pipeline.answer(SnapshotQuery(recipe, DEFAULT))
    assert set(again.milliseconds) == {"schedules", "records"}
    # Without the step, a schedule changes nothing of the model.
    plain = msgspec.structs.replace(recipe, steps=LEGALISE)
    assert set(pipeline.answer(SnapshotQuery(plain, DEFAULT)).milliseconds) == {"records"}
    bare = msgspec.structs.replace(plain, schedules=())
    assert pipeline.answer(SnapshotQuery(bare, DEFAULT)).milliseconds == {}


def test_what_is_left_out_is_said(pipeline: Pipeline) -> None:
    wrong = step("x", "split", loop=At(block="matmul", loop=7), factors=(None, 4))
    failing = Schedule(function="matmul", primitives=(*MATMUL, wrong))
    changed = Schedule(function="matmul1", structure="0123", primitives=MATMUL)
    gone = Schedule(function="conv2d", variant="fast", primitives=MATMUL)
    off = msgspec.structs.replace(gone, on=False)
    steps = (*LEGALISE, APPLY)
    recipe = with_schedules(MLP, failing, changed, gone, off, steps=steps)
    notes = [each.line() for each in pipeline.answer(SnapshotQuery(recipe, DEFAULT)).notes]
    assert len(notes) == 3
    assert notes[0].startswith("matmul: step 4 of its schedule is skipped (split loop 8 of matmul")
    assert "the schedule of matmul1 no longer fits a function: its structure changed" in notes[1]
    assert "the schedule (fast) of conv2d no longer fits a function" in notes[2]
    # The steps that can be applied are.
    script = pipeline.answer(TextQuery(recipe, "matmul", "script")).text
    assert "T.parallel" in script


TWINS = """
import numpy as np
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

@I.ir_module(s_tir=True)
class Twice:
    @T.prim_func(s_tir=True)
    def double(a: T.Buffer((8, 16), "float32"), b: T.Buffer((8, 16), "float32")):
        for i, j in T.grid(8, 16):
            with T.sblock("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                b[vi, vj] = a[vi, vj] * T.float32(2)

    @T.prim_func(s_tir=True)
    def twofold(x: T.Buffer((8, 16), "float32"), y: T.Buffer((8, 16), "float32")):
        for p, q in T.grid(8, 16):
            with T.sblock("scale"):
                vp, vq = T.axis.remap("SS", [p, q])
                y[vp, vq] = x[vp, vq] * T.float32(2)

    @T.prim_func(s_tir=True)
    def triple(x: T.Buffer((8, 16), "float32"), y: T.Buffer((8, 16), "float32")):
        for p, q in T.grid(8, 16):
            with T.sblock("scale"):
                vp, vq = T.axis.remap("SS", [p, q])
                y[vp, vq] = x[vp, vq] * T.float32(3)

    @R.function
    def main(x: R.Tensor((8, 16), "float32")) -> R.Tensor((8, 16), "float32"):
        cls = Twice
        with R.dataflow():
            a = R.call_tir(cls.double, (x,), R.Tensor((8, 16), "float32"))
            b = R.call_tir(cls.twofold, (a,), R.Tensor((8, 16), "float32"))
            out = R.call_tir(cls.triple, (b,), R.Tensor((8, 16), "float32"))
            R.output(out)
        return out

def example_inputs():
    return (np.random.rand(8, 16).astype("float32"),)

def reference(x):
    return x * 12
"""


def test_twins_share_a_schedule(pipeline: Pipeline, tmp_path: Path) -> None:
    file = tmp_path / "twins.py"
    file.write_text(TWINS)
    recipe = Recipe(source=Source(spec=str(file)), steps=())
    record = pipeline.answer(ScheduleQuery(recipe, "double", None))
    assert record.twins == ("twofold",)
    schedule = Schedule(
        function="double", structure=record.structure, primitives=vectorized("scale", 1, 4)
    )
    for everywhere in (True, False):
        each = msgspec.structs.replace(schedule, everywhere=everywhere)
        scheduled = with_schedules(recipe, each, steps=(APPLY,))
        snapshot = pipeline.answer(SnapshotQuery(scheduled, DEFAULT))
        expected = {"double", "twofold"} if everywhere else {"double"}
        assert set(snapshot.passes[-1].changed) == expected
        assert pipeline.answer(RunQuery(scheduled, quick=True)).verdict == "match"
