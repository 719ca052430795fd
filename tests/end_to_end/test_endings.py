"""How the program ends: by a signal in the middle of a change, and beside what it may not write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
from pytestqt.qtbot import QtBot

from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.sessions import load_session, save_session
from lowerscope.core.model.recipe import Recipe, Source, WindowLayout
from lowerscope.core.sandbox import bubblewrap
from tests.end_to_end.driving import PATIENCE, OpenWindow
from tests.sandboxes import needs_sandbox

CHANGES = """
import os, signal, sys, psutil
from lowerscope.app.shell import start

make = start.make_window

def make_and_watch(*given):
    application, window = make(*given)
    begin = window.begin

    def change(changed):
        if "snapshot" not in changed.fields:
            return
        window.document.changed.disconnect(change)
        window.panes.area.set_closed("model", True)
        window.commands.action("te").trigger()
        # The terminal is closed while a question is open.
        window.commands.action("settings").trigger()
        print(*(each.pid for each in psutil.Process().children(recursive=True)), flush=True)
        os.kill(os.getpid(), signal.SIGHUP)

    def begin_and_watch(*given):
        begin(*given)
        window.document.changed.connect(change)

    window.begin = begin_and_watch
    return application, window

start.make_window = make_and_watch
sys.exit(start.open_window(["sample:matmul_relu"]))
"""


def test_what_was_on_its_way_when_the_terminal_was_closed_is_there_at_the_next_start(
    qtbot: QtBot, open_window: OpenWindow, tmp_path: Path
) -> None:
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "XDG_CONFIG_HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", CHANGES],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE / 1000,
        check=False,
    )
    assert ended.returncode == 0
    assert "Traceback" not in ended.stderr
    pids = list(map(int, ended.stdout.split()))
    assert pids
    qtbot.waitUntil(lambda: not any(map(psutil.pid_exists, pids)), timeout=PATIENCE)
    (saved,) = (tmp_path / "lowerscope" / "sessions").iterdir()
    session = load_session(saved, Hashes())
    assert (session.wanted or session.recipe).lowering == "te"
    window = open_window()
    window.settings.last_session = str(saved)
    window.commands.action("reopen").trigger()

    def is_as_it_was() -> bool:
        recipe = window.document.recipe
        return recipe is not None and recipe.lowering == "te"

    qtbot.waitUntil(is_as_it_was, timeout=PATIENCE)
    assert not window.panes.model.isVisible()
    assert window.document.can_undo == (session.wanted is not None)


READS = """
import sys
from lowerscope.app.shell import start
application, window = start.make_window(None, sys.argv[1])
window.begin(None, sys.argv[1])
sessions = window.sessions

def say():
    if sessions.read_only:
        print(window.banner.message(), window.windowTitle(), sep="\\n", flush=True)
        window.close()

sessions.changed.connect(say)
application.exec()
"""


@needs_sandbox
def test_a_session_in_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    path = tmp_path / "mine.lowerscope"
    save_session(path, Recipe(source=Source(spec="sample:matmul")), WindowLayout(), Hashes())
    before = sorted(os.listdir(tmp_path))
    program = bubblewrap.program()
    assert program is not None
    command = (sys.executable, "-c", READS, str(path))
    writable = [Path(os.environ[each]) for each in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME")]
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        bubblewrap.enclosed(program, command, writable, "none"),
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE / 1000,
        check=False,
    )
    said, title = done.stdout.splitlines()
    assert "mine.lowerscope" in said
    assert "nothing is saved here" in said
    assert "mine [read-only]" in title
    assert sorted(os.listdir(tmp_path)) == before
