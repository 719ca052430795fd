"""Random schedules: whatever is done to their steps, they can be replayed, and as a program."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
import tvm
import tvm_ffi
from tvm import s_tir

from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.encoding import to_bytes
from lowerscope.core.model.queries import MovesQuery, ScheduleQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.schedule import Argument, Made, Primitive, Schedule
from lowerscope.core.schedule.code import program
from lowerscope.core.schedule.replay import Replayed, Replays
from lowerscope.core.stages import Pipeline
from tests.core.schedule.functions import TARGET, add_relu, add_relu_of, block, loop, step
from tests.core.schedule.fuzzing import fuzz
from tests.core.schedule.rule_numerics import examine
from tests.diagonal import SOAK, many

FUSED = Recipe(source=Source(spec="sample:fashion_mlp"), steps=find_pipeline("fuse").steps)

LONGER = ["sample:conv_net", "sample:mlp_tvmscript", "sample:transformer_block", "sample:resnet18"]

Primitives = tuple[Primitive, ...]


def _with(function: str, primitives: Primitives) -> Recipe:
    schedule = Schedule(function=function, primitives=primitives)
    return msgspec.structs.replace(FUSED, schedules=(schedule,))


def _grown(pipeline: Pipeline, function: str, draw: random.Random) -> Primitives:
    """Return primitives that the menu of moves offers one after the other."""
    primitives: Primitives = ()
    for number in range(5):
        recipe = _with(function, primitives)
        record = pipeline.answer(ScheduleQuery(recipe, function, None))
        count = min(len(record.tree), draw.choice((1, 1, 2)))
        chosen = tuple(node.reference for node in draw.sample(record.tree, count))
        moves = pipeline.answer(MovesQuery(recipe, function, None, chosen))
        legal = [move for move in moves if move.legal]
        if legal:
            primitive = draw.choice(legal).primitive
            primitives += (msgspec.structs.replace(primitive, id=f"s{number}"),)
    return primitives


def _disturbed(primitives: Primitives, draw: random.Random) -> tuple[Primitives, ...]:
    """Return the primitives with one switched off, in another order, and without one."""
    place = draw.randrange(len(primitives))
    before, one, after = primitives[:place], primitives[place], primitives[place + 1 :]
    off = (*before, msgspec.structs.replace(one, on=False), *after)
    return off, tuple(draw.sample(primitives, len(primitives))), (*before, *after)


@pytest.mark.parametrize("seed", range(many(2)))
def test_a_schedule_can_be_replayed_whatever_is_done_to_its_steps(
    pipeline: Pipeline, seed: int
) -> None:
    draw = random.Random(seed)
    function = draw.choice(list(pipeline.stages(FUSED).functions.by_name))
    primitives = _grown(pipeline, function, draw)
    assert primitives
    for each in (primitives, *_disturbed(primitives, draw)):
        recipe = _with(function, each)
        record = pipeline.answer(ScheduleQuery(recipe, function, None))
        assert to_bytes(record)
        assert [step.id for step in record.steps] == [primitive.id for primitive in each]
        if each is primitives:
            assert [step.error for step in record.steps] == [None] * len(each)
        stages = pipeline.stages(recipe)
        state = stages.states(function)[-1]
        program: dict[str, Any] = {}
        exec(record.code, program)
        sch = tvm.s_tir.Schedule(state.base)
        program["apply_trace"](sch)
        assert tvm_ffi.structural_equal(sch.mod["main"], state.function), record.code
        # From nothing that was kept, the same comes out.
        again = Replays().replay(function, state.base, stages.target, each)[-1]
        assert tvm_ffi.structural_equal(again.function, state.function)


# Functions of all kinds, dtypes and extents, scheduled by rule for three targets


# One of each kind: `test_rules.py`.
@pytest.mark.at_length
def test_functions_scheduled_by_rule_compute_the_same() -> None:
    # The child imports torch and TVM, and compiles what it draws: most of its time.
    findings = examine(first=1, count=many(20), share=0.3, seconds=300)
    assert findings.bad == []
    assert findings.models == many(20)
    assert findings.checked == findings.by_rule.total() >= many(4)
    assert findings.with_torch >= many(1)
    assert len(findings.by_rule) >= 3


# A few random schedules in a child: none kills it, none is wrong, all can be replayed


def test_random_primitives_neither_kill_nor_deceive() -> None:
    # One child that imports torch and TVM, and builds some of what it draws: most of its time.
    samples = ["sample:matmul_relu", *LONGER] if SOAK else ["sample:matmul_relu"]
    findings = fuzz(first=7, count=many(20), share=0.2, samples=samples, seconds=300)
    assert findings.bad == []
    assert findings.applications >= many(20)
    assert findings.done >= many(3)
    assert findings.checked >= many(1)


# Programs of schedules, with arguments that no menu offers: they run, and make the same


PADDED = {"block": block("add"), "buffer": "B", "index_map": "i, j -> i // 7, i % 7, j"}


def replayed(func: Any, *primitives: Primitive) -> Replayed:
    """Apply primitives to a function, and the program that was made of them as well."""
    state = Replays().replay("main", func, TARGET, primitives)[-1]
    made: dict[str, Any] = {}
    exec(program("main", state.code), made)
    sch = s_tir.Schedule(tvm.IRModule({"main": func}))
    made["apply_trace"](sch)
    assert tvm_ffi.structural_equal(sch.mod["main"], state.function)
    return state


@pytest.mark.parametrize(
    ("func", "name", "arguments"),
    [
        (add_relu, "transform_layout", {**PADDED, "pad_value": 0}),
        (add_relu, "transform_layout", {**PADDED, "pad_value": -2.5}),
        (add_relu_of(30, 64, "float16"), "transform_layout", {**PADDED, "pad_value": 0}),
        (add_relu, "transform_layout", {**PADDED, "index_map": "i, j -> 0, i, j"}),
        (
            add_relu,
            "transform_block_layout",
            {"block": block("add"), "index_map": "i, j -> i, j, 0"},
        ),
        (add_relu, "annotate", {"block_or_loop": loop("add", 0), "ann_key": "x", "ann_val": True}),
        (
            add_relu,
            "annotate",
            {"block_or_loop": loop("add", 0), "ann_key": "x", "ann_val": (True, 1, 0.5)},
        ),
        (
            add_relu,
            "annotate",
            {"block_or_loop": loop("add", 0), "ann_key": 'a"\\\n', "ann_val": "'\"\n"},
        ),
    ],
)
def test_a_program_makes_the_same_function(
    func: Any, name: str, arguments: dict[str, Argument]
) -> None:
    (only,) = replayed(func, step("s1", name, **arguments)).steps
    assert only.error is None


def test_names_of_a_file_do_not_become_code() -> None:
    name = "x\nraise SystemExit\n#"
    state = replayed(
        add_relu,
        step("s1", "parallel", loop=loop(name, 0)),
        step("s2", name),
        step("s3", "split", loop=Made(step=name), factors=(4, None)),
        Primitive(id="s4", name="parallel", arguments={"loop": loop(name, 0)}, on=False),
    )
    assert [each.status for each in state.steps] == ["failed", "failed", "failed", "off"]
