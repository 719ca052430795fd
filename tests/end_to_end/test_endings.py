"""Endings of the program: by a signal during a change, and beside files that it may not write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.sessions import save_session
from lowerscope.core.model.recipe import Recipe, Source, WindowLayout
from lowerscope.core.sandbox import bubblewrap
from tests.end_to_end.driving import PATIENCE
from tests.sandboxes import needs_sandbox

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
