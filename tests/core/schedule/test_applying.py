"""Primitives are applied as they are named, and refused with a reason."""

from __future__ import annotations

import numpy as np
import pytest
import tvm

from lowerscope.core.model.schedule import At
from lowerscope.core.schedule.step_errors import StepFailed
from tests.core.schedule.functions import TARGET, Steps, add_relu, block, loop, made, matmul, twice


def _walk() -> tuple[Steps, list[str]]:
    steps = Steps(matmul)
    titles = [
        steps.step("split", loop=loop("matmul", 1), factors=(None, 16)).title,
        steps.step("split", loop=loop("matmul", 3), factors=(16, 4)).title,
        steps.step(
            "reorder",
            loops=(made("s1"), loop("matmul", 0), made("s2"), made("s2", 1), made("s1", 1)),
        ).title,
        steps.step("cache_write", block=block("matmul")).title,
        steps.step("reverse_compute_at", block=made("s4"), loop=made("s1")).title,
        steps.step("vectorize", loop=made("s1", 1)).title,
        steps.step("parallel", loop=made("s1")).title,
        steps.step("decompose_reduction", block=block("matmul"), loop=made("s2")).title,
    ]
    return steps, titles


def test_matmul_step_by_step_is_titled_and_computes_what_numpy_does() -> None:
    steps, titles = _walk()
    assert titles == [
        "split j into 3 × 16",
        "split k into 16 × 4",
        "order j_0, i, k_0, k_1, j_1",
        "write C to a global copy",
        "compute C_global under j_0, after its producers",
        "vectorize j_1",
        "run j_0 in parallel",
        "initialise matmul before k_0",
    ]
    random = np.random.default_rng(0)
    a, b = (random.random(shape, dtype="float32") for shape in ((32, 64), (64, 48)))
    c = tvm.runtime.tensor(np.zeros((32, 48), "float32"))
    built = tvm.compile(steps.sch.mod, TARGET)
    built["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5)


def test_a_step_that_fails_leaves_the_schedule_and_says_why() -> None:
    steps = Steps(add_relu)
    before = steps.sch.mod.script()
    with pytest.raises(StepFailed) as failed:
        steps.step("compute_inline", block=block("relu"))
    error = failed.value.error
    assert "relu" in error.message
    assert "\n" not in error.message
    assert error.text.startswith("@T.prim_func")
    assert 'with T.sblock("relu"):' in error.text.splitlines()[error.lines[0] - 1]
    assert steps.sch.mod.script() == before


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("spilt", {}, "there is no primitive 'spilt'; did you mean split?"),
        ("split", {"loop": loop("matmul", 0)}, "Factors is missing"),
        ("split", {"loop": loop("nothing", 0), "factors": (2, None)}, "there is no block nothing"),
        ("split", {"loop": loop("matmul", 3), "factors": (2, None)}, "matmul has 3 loops around"),
        ("split", {"loop": made("s9"), "factors": (2, None)}, "the step that created this is not"),
        ("split", {"loop": loop("matmul", 0), "factors": (0, None)}, "Factors is at least 1"),
        ("split", {"loop": loop("matmul", 0), "factors": (None, None)}, "at most one factor"),
        ("split", {"loop": block("matmul"), "factors": (2, None)}, "Loop takes a loop"),
        ("split", {"loop": loop("matmul", 0), "factors": (3, 5)}, "The product of factors is not"),
        ("fuse", {"loops": (loop("matmul", 0), loop("matmul", 2))}, "the outer loop i is not the"),
        ("parallel", {"loop": loop("matmul", 2)}, "with regard to block matmul because some"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, arguments: dict, message: str) -> None:
    with pytest.raises(StepFailed) as failed:
        Steps(matmul).step(name, **arguments)
    assert message in failed.value.error.message


def test_blocks_of_one_name_are_told_apart() -> None:
    steps = Steps(twice)
    second = At(block="add", occurrence=1)
    steps.step("split", loop=At(block="add", occurrence=1, loop=1), factors=(None, 8))
    steps.step("compute_inline", block=block("add"))
    with pytest.raises(StepFailed, match="no block add number 2"):
        steps.step("compute_inline", block=second)
    assert "range(8)" in steps.sch.mod.script(syntax_sugar=False)
    assert "B[" not in steps.sch.mod.script()
