"""``lowerscope passes --step N --diff``: what it prints is what a step changed."""

from __future__ import annotations

import pytest

from lowerscope.core.cli.main import main
from lowerscope.core.engine.pipeline import Pipeline
from lowerscope.core.model.recipe import Recipe, Source

STEP = ["passes", "sample:fashion_mlp", "--step", "1", "--diff"]


def applied(old: list[str], hunks: list[str]) -> list[str]:
    """Apply a unified difference to a text, and check that all of its context is there."""
    result: list[str] = []
    place = 0
    for line in hunks:
        if line.startswith("@@"):
            first, count = line.split()[1][1:].split(",")
            start = int(first) - (1 if int(count) else 0)
            result += old[place:start]
            place = start
        elif line[0] == "+":
            result.append(line[1:])
        else:
            assert old[place] == line[1:]
            if line[0] == " ":
                result.append(old[place])
            place += 1
    return result + old[place:]


def test_the_text_turns_the_old_function_into_the_new_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*STEP, "--function", "main"]) == 0
    lines = capsys.readouterr().out.rstrip("\n").split("\n")
    assert lines[0] == "# old: fashion_mlp · High-level · before 1 LegalizeOps"
    assert lines[1] == "# new: fashion_mlp · High-level · after 1 LegalizeOps"
    stages = Pipeline().stages(Recipe(source=Source(spec="sample:fashion_mlp")))
    old, new = (
        [line for line in script.split("\n") if line.strip() and not line.startswith("#")]
        for script in (
            stages.module["main"].script(name="main"),
            stages.transformed.module["main"].script(name="main"),
        )
    )
    assert lines[3:5] == ["--- main", "+++ main"]
    assert applied(old, lines[5:]) == new


def test_what_cannot_be_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["passes", "sample:fashion_mlp", "--diff"]) != 0
    assert "It goes with --step N" in capsys.readouterr().err
    assert main([*STEP, "--function", "nothing"]) != 0
    assert "neither side has a function 'nothing'" in capsys.readouterr().err
