"""The command ``run`` when what it runs crashes, spoils memory or never ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.faulty_functions import CRASHES, files

COMMAND = (sys.executable, "-m", "lowerscope.app", "run", "sample:fashion_mlp")


def started(folder: Path, body: str, *options: str) -> subprocess.Popen[str]:
    path = files(folder, body)
    own = ("--rules", path, "--library", path)
    return subprocess.Popen(
        (*COMMAND, *own, *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_how_a_run_crashed_is_told(tmp_path: Path) -> None:
    said = "with guarded memory it crashed with SIGSEGV in call 4 of 7, env.faulty (relu)"
    process = started(tmp_path, CRASHES)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "the run crashed with SIG" in err
    assert said in out + err


def test_a_run_that_never_ends_is_stopped_and_says_where(tmp_path: Path) -> None:
    # As a loop of a kernel, it does not hear of signals.
    wait = "try: time.sleep(1)\n        except BaseException: pass"
    body = f"print('in it', file=sys.stderr, flush=True)\n    while True:\n        {wait}"
    with started(tmp_path, body) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "in it" in line:
                break
        os.killpg(process.pid, signal.SIGINT)
        said = process.stderr.read()
    assert said == "lowerscope: stopped in call 4 of 7, env.faulty (relu)\n"
    assert process.returncode == 2
