"""Schedules on the command line: files of them, ``schedule``, and ``--schedule``."""

from __future__ import annotations

import json
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from lowerscope.core.cli.main import main
from lowerscope.core.files.pipelines_and_schedules import save_schedules
from lowerscope.core.model.schedule import At, Made, Schedule
from tests.core.schedule.functions import step

pytestmark = pytest.mark.usefixtures("shared_results")

MLP = "sample:fashion_mlp"


MATMUL = Schedule(
    function="matmul",
    primitives=(
        step("s1", "split", loop=At(block="matmul", loop=1), factors=(None, 16)),
        step("s2", "vectorize", loop=Made(step="s1", output=1)),
        step("s3", "parallel", loop=Made(step="s1")),
    ),
)


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(save_schedules([MATMUL], str(tmp_path / "matmul.json")))


def test_a_schedule_is_applied_shown_and_checked(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedule", MLP, "--function", "matmul"]) == 0
    plain = capsys.readouterr().out
    assert "i1  128" in plain
    assert "matmul  [S v_i0, S v_i1, R v_k]" in plain
    assert "apply_trace" not in plain
    assert main(["schedule", MLP, "--function", "matmul", "--apply", file, "--check"]) == 0
    out = capsys.readouterr().out
    assert "i1_1  16  vectorized" in out
    assert "✓  1  split i1 into 8 × 16" in out
    assert "sch.parallel(l" in out
    assert "Same result as the unscheduled function" in out
    assert main(["schedule", MLP, "--function", "matmul", "--apply", file, "--show"]) == 0
    script = capsys.readouterr().out
    assert script.startswith("# from tvm.script")
    assert "i1_1 in T.vectorized(T.int64(16))" in script
    assert main(["schedule", MLP, "--function", "matmul", "--apply", file, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    any_size = [*APPLY, file, "--check", "--input", "x=n,784:float32", "--dim", "n=1..64"]
    assert main(any_size) == 0
    out = capsys.readouterr().out
    assert "Same result as the unscheduled function at n = 5: largest error" in out
    assert [each["status"] for each in record["schedule"]["steps"]] == ["done"] * 3
    assert record["check"] is None


STEPS = ("schedules", 0, "primitives")
ARGUMENTS = (*STEPS, 0, "arguments")
APPLY = ["schedule", MLP, "--function", "matmul", "--apply"]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("version",), 7, "the file has version 7"),
        ((*STEPS, 0, "name"), "splitt", "there is no primitive 'splitt'; did you mean split?"),
        ((*ARGUMENTS, "factor"), 4, "split does not take 'factor'"),
        ((*ARGUMENTS, "factors"), "many", "Factors takes several values, and not 'many'"),
        ((*ARGUMENTS, "factors"), [None, 2**70], "contains no schedules: can't serialize ints"),
        (STEPS, {"a": 1}, "the file contains no schedules"),
        (("schedules", 0, "function"), "nothing", "and there is no such function"),
        (("schedules", 0, "structure"), "0123", "was made for another structure of matmul"),
        ((*STEPS, 1, "arguments", "loop", "step"), "s7", "there is no step 's7' before it"),
        ((*STEPS, 1, "id"), "s1", "several steps of the schedule of matmul are called 's1'"),
        (("schedules",), [], "the file contains no schedules"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(
    place: tuple[Any, ...], value: Any, said: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json.loads(Path(file).read_text())
    *way, last = place
    reduce(getitem, way, data)[last] = value
    Path(file).write_text(json.dumps(data))
    commands = (["run", MLP, "--schedule", file], [*APPLY, file])
    for command in commands[int(len(place) > 2) :]:
        assert main(command) == 2
        error = capsys.readouterr().err
        assert said in error
        assert len(error.splitlines()) == 1
