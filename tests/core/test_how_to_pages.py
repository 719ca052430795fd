"""The course, and the pages that say how to add something: followed to the letter, they work."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lowerscope.core.cli.main import main
from tests.core.following_pages import Commands, check_printed, follow
from tests.diagonal import SOAK

ROOT = Path(__file__).parents[2]
OF_THE_PROJECT = ("add-operator-rule", "add-primitive", "add-schedule-rule", "add-sample")
"""All are followed; their commands take long, and those of the first are run each time."""

RUN = OF_THE_PROJECT if SOAK else OF_THE_PROJECT[:1]

RUN_ALL = """
import contextlib, io, json, runpy, shlex, sys, traceback

def run(command):
    program, *arguments = shlex.split(command)
    if program == "lowerscope":
        from lowerscope.core.cli.main import main
        return main(arguments)
    assert arguments[:1] == ["-m"], command
    sys.argv = arguments[1:]
    try:
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return int(end.code or 0)
    return 0

for line in sys.stdin:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code = run(json.loads(line))
        except BaseException:
            traceback.print_exc()
            code = -1
    print(json.dumps([code, said.getvalue()]), flush=True)
"""
"""Runs one command after the other in one process, since torch and TVM take long to import."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project, in which the pages for it have been followed."""
    folder = tmp_path_factory.mktemp("project")
    leave = shutil.ignore_patterns("__pycache__", "screenshots", "*.pyc")
    for part in ("app", "core", "resources", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=leave)
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "installed" / "lowerscope").mkdir(parents=True)
    for part in ("app", "core", "resources"):
        (folder / "installed" / "lowerscope" / part).symlink_to(folder / part)
    return folder


@pytest.fixture(scope="module")
def done(tree: Path) -> dict[str, list[Commands]]:
    """Follow all pages that change the project, and return the commands of each."""
    return {name: follow(name, tree) for name in OF_THE_PROJECT}


@pytest.fixture(scope="module")
def said(tree: Path, done: dict[str, list[Commands]]) -> dict[str, tuple[int, str]]:
    """Run the commands of these pages, and return exit codes and what they print."""
    commands = [line for name in RUN for each in done[name] for line in each.commands]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    environment["PYTHONPATH"] = os.pathsep.join((str(tree / "installed"), str(tree)))
    result = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        input="".join(f"{json.dumps(command)}\n" for command in commands),
        capture_output=True,
        text=True,
        cwd=tree,
        env=environment,
        check=False,
    )
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(answers) == len(commands), result.stderr
    return {command: (code, text) for command, (code, text) in zip(commands, answers, strict=True)}


@pytest.mark.parametrize("name", RUN)
def test_a_page_on_the_project_says_what_happens(
    name: str, done: dict[str, list[Commands]], said: dict[str, tuple[int, str]]
) -> None:
    for each in done[name]:
        outputs = [said[command] for command in each.commands]
        for command, (code, text) in zip(each.commands, outputs, strict=True):
            assert code == 0, f"{command}\n{text}"
        check_printed(each, "".join(text for _, text in outputs))


@pytest.mark.parametrize("name", ["add-pass", "course"])
def test_a_page_on_a_file_of_the_user_says_what_happens(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for each in follow(name, tmp_path):
        capsys.readouterr()
        for command in each.commands:
            program, *arguments = shlex.split(command)
            assert program == "lowerscope"
            assert main(arguments) == 0, capsys.readouterr().err
        check_printed(each, capsys.readouterr().out)
