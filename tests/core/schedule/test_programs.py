"""Programs of schedules, with arguments that no menu offers: they run, and make the same."""

from __future__ import annotations

from typing import Any

import pytest
import tvm
import tvm_ffi
from tvm import s_tir
from tvm.script import tirx as T

from lowerscope.core.model.schedule import Argument, Made, Primitive
from lowerscope.core.schedule.code import program
from lowerscope.core.schedule.replay import Replayed, Replays
from tests.core.schedule.functions import TARGET, add_relu, block, loop

PADDED = {"block": block("add"), "buffer": "B", "index_map": "i, j -> i // 7, i % 7, j"}


@T.prim_func(s_tir=True)
def halves(A: T.Buffer((30, 64), "float16"), C: T.Buffer((30, 64), "float16")):
    B = T.sblock_alloc_buffer((30, 64), "float16")
    for i, j in T.grid(30, 64):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float16(1)
    for i, j in T.grid(30, 64):
        with T.sblock("double"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float16(2)


def step(id: str, name: str, **arguments: Argument) -> Primitive:
    return Primitive(id=id, name=name, arguments=arguments)


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
        (halves, "transform_layout", {**PADDED, "pad_value": 0}),
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
