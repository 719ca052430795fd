"""The start of the window: options, what the system lacks, and the end by Ctrl+C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.__main__ import COMMANDS
from lowerscope.app.shell import start
from lowerscope.app.shell import start as system_libraries
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.cli import main
from lowerscope.core.model.texts import VARIABLE

LOWERSCOPE = [sys.executable, "-m", "lowerscope.app"]


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        start.open_window(["--version"])
    assert ended.value.code == 0
    assert re.fullmatch(r"lowerscope \d+\.\d+\.\d+\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--nonsense"], ["--nonsense", "--help"]),
        (["sample:fashion_mlp", "--lowering", "fast"], ["fast", "high-level"]),
        (["sample:fashion_mlp", "--input", "x=one"], ["--input x=one"]),
        (["sample:fashion_mlp", "--seed", "x"], ["--seed"]),
    ],
)
def test_wrong_options_are_one_line(
    arguments: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert start.open_window(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert all(part in lines[0] for part in parts)


def test_the_first_paint_waits_for_nothing_slow() -> None:
    code = (
        "import sys; from lowerscope.app.shell.start import make_window; made = make_window()\n"
        "made[0].processEvents(); made[1].repaint()\n"
        "print({'msgspec', 'pygments', 'torch', 'tvm', 'lowerscope.core.model.recipe'}"
        " & set(sys.modules), 'Qt' in vars(sys.modules['PySide6.QtCore']))"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout == "set() False\n"


def test_missing_libraries_are_named_with_their_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = {"libEGL.so.1", "libxcb-cursor.so.0"}
    monkeypatch.setattr(system_libraries, "_loads", lambda name: name not in lacking)
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")
    monkeypatch.setenv("DISPLAY", ":0")
    assert start.open_window([]) == 2
    error = capsys.readouterr().err
    assert "libEGL.so.1, libxcb-cursor.so.0" in error
    assert "apt-get install libegl1 libxcb-cursor0" in error
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert "libxcb" not in system_libraries.explain_missing_libraries()


def test_what_is_there_is_not_missed() -> None:
    assert system_libraries._loads("libc.so.6")
    assert not system_libraries._loads("libnothing.so.99")


def test_without_a_display_the_command_line_is_named() -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    }
    result = subprocess.run(
        LOWERSCOPE, capture_output=True, text=True, env=environment, check=False
    )
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


# A log-out, and a terminal that is closed, are in tests/end_to_end/test_endings.py.
@pytest.mark.parametrize("number", [signal.SIGINT])
def test_a_signal_closes_the_window_and_its_children(tmp_path: Path, number: int) -> None:
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "XDG_CONFIG_HOME": str(tmp_path)}
    window = subprocess.Popen(
        [*LOWERSCOPE, "sample:matmul_relu"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        process = psutil.Process(window.pid)
        children: list[psutil.Process] = []
        while not children:
            assert window.poll() is None, window.stderr
            children = process.children(recursive=True)
        window.send_signal(number)
        _, error = window.communicate()
        assert window.returncode == 0, error
        assert b"Traceback" not in error
        _, alive = psutil.wait_procs(children, timeout=60)
        assert alive == []
    finally:
        window.kill()
        window.wait()


KEYS = """
from lowerscope.app.shell.start import make_window

application, window = make_window()
window.begin(None)
print(window.commands.action("run").shortcut().toString(), end=" ")
print(window.commands.action("drawer").shortcut().toString(NATIVE), end=" ")
print(application.translate("QFileDialog", "&Look in:"))
window.close()
"""


def test_qt_speaks_the_language_of_the_window(tmp_path: Path) -> None:
    environment = {**os.environ, VARIABLE: "zh_CN", "XDG_CONFIG_HOME": str(tmp_path)}
    script = f"from PySide6.QtGui import QKeySequence\nNATIVE = QKeySequence.NativeText\n{KEYS}"
    printed = subprocess.run(
        [sys.executable, "-c", script], env=environment, text=True, capture_output=True, check=True
    )
    # Keys that Qt does not translate keep their names.
    assert printed.stdout.split() == ["F5", "Ctrl+J", "位置(&L)："]


def test_the_commands_are_those_of_the_command_line() -> None:
    assert frozenset(main.COMMANDS) == COMMANDS


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("gone.py", ["gone.py", "there is no such file"]),
        ("fashion_mlp", ["Did you mean sample:fashion_mlp?"]),
        ("sample:fashion_mpl", ["Did you mean sample:fashion_mlp?"]),
        ("gone.lowerscope", ["gone.lowerscope", "there is no such file"]),
        (".", ["this is a folder"]),
        ("sampels", ["there is no command 'sampels'", "lowerscope samples?"]),
    ],
)
def test_what_cannot_be_opened_is_said_in_the_terminal(
    source: str, parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert start.open_window([source]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(part in line for part in parts), line


def test_a_session_that_cannot_be_opened_is_said_in_the_window(
    qtbot: QtBot, tmp_path: Path
) -> None:
    window = MainWindow(welcome=False)
    qtbot.addWidget(window)
    window.show()
    window._complete()
    (tmp_path / "half.lowerscope").write_text("{")
    window.open_source(str(tmp_path / "half.lowerscope"))
    assert window.panes.isVisible()
    assert window.panes.drawer.current() == "problems"
    assert "half.lowerscope" in window.document.problems[0].line()


def test_a_window_that_is_closed_at_once_starts_nothing(qtbot: QtBot) -> None:
    window = MainWindow()
    qtbot.addWidget(window)
    painted: list[bool] = []
    window.painted.connect(lambda: painted.append(True))
    window.show()
    window.grab()
    window.close()
    qtbot.wait(50)
    assert painted == []
