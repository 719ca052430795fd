"""Layouts in sessions: Qt reads only what it would have written itself."""

from __future__ import annotations

import struct
import subprocess
import sys
from base64 import b64decode, b64encode

import pytest

from lowerscope.app.shell.dock_layout import is_geometry, is_state
from lowerscope.core.model.recipe import WindowLayout
from tests.end_to_end.driving import OpenWindow

FUZZ = """
import os, random, struct, sys
from PySide6.QtWidgets import QApplication, QDockWidget, QLabel, QMainWindow
from PySide6.QtCore import Qt
from lowerscope.app.shell.dock_layout import is_state

app = QApplication([])
window = QMainWindow()
window.setDockNestingEnabled(True)
docks = [QDockWidget(f"d{number}") for number in range(6)]
for number, dock in enumerate(docks):
    dock.setObjectName(f"pane{number}")
    dock.setWidget(QLabel("x"))
    window.addDockWidget(list(Qt.DockWidgetArea)[number % 4], dock)
window.tabifyDockWidget(*docks[:2])
docks[2].close()
docks[3].setFloating(True)
window.show()
app.processEvents()
state = bytes(window.saveState().data())
names = {each.objectName() for each in docks}
assert is_state(state, names)
taken = 0
for seed in range(int(sys.argv[1])):
    drawn, data = random.Random(seed), bytearray(state)
    for _ in range(drawn.randint(1, 4)):
        at, way = drawn.randrange(len(data)), drawn.random()
        if way < 0.4:
            data[at] = drawn.randrange(256)
        elif way < 0.7:
            number = drawn.choice((0, 1, 255, 1 << 16, 1000000, (1 << 31) - 1, 1 << 31))
            data[at : at + 4] = struct.pack(">I", number)
        elif way < 0.85:
            data[at:at] = data[at : at + drawn.randint(1, 40)] * drawn.randint(1, 4)
        else:
            del data[max(8, at) :]
    if is_state(bytes(data), names):
        taken += 1
        window.restoreState(bytes(data))
        app.processEvents()
print(taken)
os._exit(0)
"""


def test_qt_copes_with_each_state_that_is_passed_on_to_it() -> None:
    """It crashed with two of the first twenty that were changed at random, unchecked."""
    command = [sys.executable, "-c", FUZZ, "2000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr[-500:])
    assert int(done.stdout) > 20


@pytest.mark.qt_log_ignore("This plugin does not support raise")
def test_a_layout_of_a_window_is_what_qt_writes(open_window: OpenWindow) -> None:
    window = open_window()
    window.panes.show()
    docks = window.panes.docks
    names = [each.objectName() for each in docks.values()]

    def check() -> None:
        layout = window.session_layout()
        assert is_state(b64decode(layout.panes), names)
        assert is_geometry(b64decode(layout.geometry))

    check()
    docks["model"].close()
    check()
    docks["fx"].setFloating(True)
    check()
    docks["fx"].close()
    check()
    docks["fx"].show()
    window.panes.tabifyDockWidget(docks["relax"], docks["tensorir"])
    check()
    for each in docks.values():
        each.close()
    check()


def changed(data: bytes, at: int, number: int) -> bytes:
    return data[:at] + struct.pack(">i", number) + data[at + 4 :]


@pytest.mark.parametrize("at", ["names", "count", "end", "front"])
def test_a_window_leaves_out_a_layout_that_is_hostile(
    open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    window = open_window()
    window.panes.show()
    panes = b64decode(window.session_layout().panes)
    given = {
        "names": panes.replace("model".encode("utf-16-be"), "pipes".encode("utf-16-be")),
        "count": changed(panes, 9, 1 << 30),
        "end": panes[:-1],
        "front": panes + panes,
    }[at]
    assert given != panes
    taken: list[object] = []
    monkeypatch.setattr(type(window.panes), "restore", lambda *given, **_: taken.append(given))
    hostile = WindowLayout(
        panes=b64encode(given).decode(), panes_version=window.session_layout().panes_version
    )
    window.lay_out(hostile)
    assert taken == []
    window.lay_out(window.session_layout())
    assert len(taken) == 1


@pytest.mark.parametrize("at", [8, 16, 20, 24, 32, 50])
def test_a_window_of_no_size_that_a_screen_has_is_left_out(
    open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    window = open_window()
    given = changed(b64decode(window.session_layout().geometry), at, 1 << 24)
    monkeypatch.setattr(type(window), "restoreGeometry", lambda *_: pytest.fail("it was passed on"))
    window.lay_out(WindowLayout(geometry=b64encode(given).decode()))
