"""Temporary files of processes that were killed are removed by the next one, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lowerscope.core.sandbox.folder import folders, own_folder
from lowerscope.core.sandbox.temporary_files import new_folder, remove_folder, sweep

KILLED = """
import os, signal, tempfile
from pathlib import Path
from lowerscope.core.sandbox import folder as sandbox_folder
from lowerscope.core.sandbox.temporary_files import new_folder, own_folder
from lowerscope.core.files.in_memory import FOLDER
Path(new_folder(), "large").write_bytes(bytes(1000))
# A model for a window that has not taken it yet, and a file for a folder of the user's.
tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-")
sandbox_folder.own_folder().new_folder()
# What TVM and others make meanwhile.
own = own_folder()
own.__enter__()
tempfile.mkdtemp()
print(os.getpid(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_has_left_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    process = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, check=False)
    killed = process.stdout.decode().strip()
    other = tmp_path / "lowerscope-of-somebody"
    other.mkdir()
    own = new_folder()
    assert len(os.listdir(tmp_path)) == 5
    here = own_folder().path
    assert sorted(each.name.partition("-")[0] for each in folders()) == sorted(
        (killed, str(os.getpid()))
    )
    sweep()
    assert list(folders()) == [here]
    assert sorted(os.listdir(tmp_path)) == sorted((Path(own).name, other.name))
    remove_folder(own)
    assert os.listdir(tmp_path) == [other.name]
