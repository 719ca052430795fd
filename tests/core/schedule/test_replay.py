"""Schedules of functions of a model: their records, replayed step by step."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import tvm
import tvm_ffi

from lowerscope.core.model.encoding import to_bytes
from lowerscope.core.model.problems import Cancelled
from lowerscope.core.model.progress import Silent
from lowerscope.core.model.queries import MovesQuery, ScheduleQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.schedule import At, Made, Primitive, Schedule
from lowerscope.core.model.schedule_records import ScheduleRecord
from lowerscope.core.stages import Pipeline
from lowerscope.core.views import workbench
from tests.core.schedule.functions import step

MLP = Recipe(source=Source(spec="sample:fashion_mlp"))


def loop(place: int, block: str = "matmul") -> At:
    return At(block=block, loop=place)


def first(place: int) -> At:
    return msgspec.structs.replace(loop(place), first=True)


J_0, J_1 = Made(step="s2"), Made(step="s2", output=1)
K_0, K_1 = Made(step="s1"), Made(step="s1", output=1)
WALK = (
    step("s1", "split", loop=loop(2), factors=(None, 8)),
    step("s2", "split", loop=loop(1), factors=(None, 16)),
    step("s3", "reorder", loops=(K_0, K_1, J_1)),
    step("s4", "fuse", loops=(loop(0), J_0)),
    step("s5", "parallel", loop=Made(step="s4")),
    step("s6", "vectorize", loop=J_1),
    step("s7", "decompose_reduction", block=At(block="matmul"), loop=K_0),
    step("s8", "unroll", loop=loop(2, "matmul_update")),
)


def scheduled(*primitives: Primitive, **more: Any) -> Recipe:
    schedule = Schedule(function="matmul", primitives=primitives, **more)
    return msgspec.structs.replace(MLP, schedules=(schedule,))


def record_of(pipeline: Pipeline, recipe: Recipe, index: int | None = None) -> ScheduleRecord:
    record = pipeline.answer(ScheduleQuery(recipe, "matmul", index))
    assert msgspec.msgpack.decode(to_bytes(record), type=ScheduleRecord) == record
    assert {node.id for node in record.tree} <= {span.entity for span in record.script.spans}
    return record


def test_a_function_has_a_loop_tree_and_buffers(pipeline: Pipeline) -> None:
    record = record_of(pipeline, MLP)
    i, j, k, block = record.tree
    assert [node.name for node in (i, j, k, block)] == ["i0", "i1", "k", "matmul"]
    assert [node.size for node in (i, j, k)] == [1, 128, 784]
    assert [node.parent for node in (i, j, k, block)] == [-1, 0, 1, 2]
    assert k.reference == first(2)
    assert block.axes == (("v_i0", "S", "1"), ("v_i1", "S", "128"), ("v_k", "R", "784"))
    assert block.writes == ("matmul[v_i0, v_i1]",)
    assert [buffer.role for buffer in record.buffers] == ["input", "input", "output"]
    assert [buffer.size for buffer in record.buffers] == [4 * 784, 4 * 784 * 128, 4 * 128]
    assert record.steps == ()


def test_a_record_has_the_price_that_the_move_had(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With peaks that were measured on a busy machine, both wait for memory alone.
    monkeypatch.setattr(workbench, "kept_peaks", lambda key: None)
    offered = pipeline.answer(MovesQuery(MLP, "matmul", None, (first(1),)))
    (split,) = (each for each in offered if each.name == "split")
    before, after = (
        pipeline.answer(ScheduleQuery(recipe, "matmul", priced=True)).predicted_ms
        for recipe in (MLP, scheduled(split.primitive))
    )
    assert before is not None
    assert after == split.predicted_ms != before


def test_a_step_that_no_longer_fits_is_marked_and_the_others_stand(pipeline: Pipeline) -> None:
    off = msgspec.structs.replace(WALK[1], on=False)
    record = record_of(pipeline, scheduled(WALK[0], off, *WALK[2:]))
    status = {each.id: each.status for each in record.steps}
    assert [status[each] for each in ("s1", "s2", "s7")] == ["done", "off", "done"]
    errors = {each.id: each.error.message for each in record.steps if each.error}
    assert errors["s3"] == errors["s4"] == errors["s6"] == "step 2, which made this, is off"
    assert errors["s5"] == "step 4, which made this, could not be applied"
    unknown = record_of(pipeline, scheduled(step("x", "no_such_primitive"), *WALK))
    assert [each.status for each in unknown.steps] == ["failed"] + ["done"] * len(WALK)
    assert unknown.script == record_of(pipeline, scheduled(*WALK)).script
    program: dict[str, Any] = {}
    exec(unknown.code, program)


def test_a_loop_that_was_there_first_is_the_same_one_when_a_step_before_is_off(
    pipeline: Pipeline,
) -> None:
    outer = step("s1", "split", loop=first(1), factors=(None, 16))
    record = record_of(pipeline, scheduled(outer))
    # Of the loops i0, i1_0, i1_1, k, as the tree names them.
    *_, k, _ = record.tree
    assert k.name == "k"
    assert k.reference == first(2)
    inner = step("s2", "split", loop=k.reference, factors=(None, 8))
    off = msgspec.structs.replace(outer, on=False)
    record = record_of(pipeline, scheduled(off, inner))
    assert [each.status for each in record.steps] == ["off", "done"]
    assert [each.name for each in record.tree] == ["i0", "i1", "k_0", "k_1", "matmul"]
    split_again = step("s3", "split", loop=k.reference, factors=(None, 4))
    record = record_of(pipeline, scheduled(outer, inner, split_again))
    assert record.steps[2].status == "failed"
    assert record.steps[2].error is not None
    assert "loop 3 of matmul no longer exists" in record.steps[2].error.message


def test_a_schedule_belongs_to_the_functions_of_its_structure(pipeline: Pipeline) -> None:
    structure = record_of(pipeline, MLP).structure
    other = Schedule(function="elsewhere", structure=structure, primitives=WALK[:1])
    recipe = msgspec.structs.replace(MLP, schedules=(other,))
    assert len(record_of(pipeline, recipe).steps) == 1
    alone = msgspec.structs.replace(other, everywhere=False)
    recipe = msgspec.structs.replace(MLP, schedules=(alone,))
    assert record_of(pipeline, recipe).steps == ()
    assert record_of(pipeline, scheduled(*WALK, structure="another")).steps == ()
    own = Schedule(function="matmul", structure=structure, primitives=WALK[:2])
    recipe = msgspec.structs.replace(MLP, schedules=(own, other))
    assert len(record_of(pipeline, recipe).steps) == 2


def test_a_program_draws_what_the_schedule_has_drawn(pipeline: Pipeline) -> None:
    tiles = tuple(Made(step="s1", output=each) for each in range(2))
    drawn = scheduled(
        step("s1", "sample_perfect_tile", loop=loop(2), n=2),
        step("s2", "split", loop=loop(2), factors=tiles),
        step("s3", "sample_categorical", candidates=(16, 64), probs=(0.5, 0.5)),
        step("s4", "annotate", block_or_loop=loop(0), ann_key="pragma", ann_val=Made(step="s3")),
    )
    record = record_of(pipeline, drawn)
    assert [each.error for each in record.steps] == [None] * 4
    program: dict[str, Any] = {}
    exec(record.code, program)
    state = pipeline.stages(drawn).states("matmul")[-1]
    for seed in range(1, 4):
        sch = tvm.s_tir.Schedule(state.base, seed=seed)
        program["apply_trace"](sch)
        assert tvm_ffi.structural_equal(sch.mod["main"], state.function)


def test_a_replay_can_be_cancelled() -> None:
    class Impatient(Silent):
        asked = 0

        def check(self) -> None:
            self.asked += 1
            if self.asked > 3:
                raise Cancelled

    pipeline = Pipeline()
    record_of(pipeline, MLP)
    with pytest.raises(Cancelled):
        pipeline.answer(ScheduleQuery(scheduled(*WALK), "matmul", None), Impatient())
    assert len(record_of(pipeline, scheduled(*WALK)).steps) == len(WALK)
