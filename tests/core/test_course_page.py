"""The page on the course: every command on it works as it stands, and prints what the page says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lowerscope.core.cli.main import main
from lowerscope.resources import HELP

PAGE = HELP / "course.md"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps() -> Iterator[tuple[list[str], list[str]]]:
    """Yield the commands of each step, and the lines that the page shows below them."""
    blocks = [(kind, text.splitlines()) for kind, text in BLOCK.findall(PAGE.read_text("utf-8"))]
    for index, (kind, lines) in enumerate(blocks):
        if kind == "sh":
            follows = index + 1 < len(blocks) and blocks[index + 1][0] == "text"
            yield lines, blocks[index + 1][1] if follows else []


STEPS = list(steps())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("course")


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_a_step_prints_what_the_page_says(
    number: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    if number and not (folder / "course").exists():
        assert main(["course", "--output", "course"]) == 0
    commands, said = STEPS[number]
    capsys.readouterr()
    for command in commands:
        program, *arguments = command.split()
        assert program == "lowerscope"
        assert main(arguments) == 0, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert "note:" not in err
    after = 0
    for line in said:
        place = out.find(line, after)
        assert place >= 0, f"{line!r} is not in\n{out}"
        after = place + len(line)


def test_the_page_names_every_file_of_the_folder() -> None:
    text = PAGE.read_text("utf-8")
    names = {path.name for path in (HELP / "course").glob("*.py")}
    assert {name for name in names if f"course/{name}" not in text} == set()


def test_nothing_is_overwritten_unasked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(["course", "--output", "course", "--force"]) == 0
    file = folder / "course" / "mlp.py"
    file.write_text("mine")
    assert main(["course", "--output", "course"]) == 2
    assert "--force" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert main(["course", "--output", "course", "--force"]) == 0
    assert file.read_text() != "mine"
