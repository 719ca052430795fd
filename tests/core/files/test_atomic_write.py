"""Files take the place of others whole, and who is killed meanwhile leaves nothing for good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lowerscope.core.export.files import text_file, write_files
from lowerscope.core.files.atomic_write import PREFIX, atomic_file
from lowerscope.core.sandbox.folder import folders, own_folder
from lowerscope.core.sandbox.temporary_files import new_folder, remove_folder, sweep
from tests.warm_processes import run_warm

KILLED = """
import os, signal, sys
from pathlib import Path
from lowerscope.core.export.files import File, write_files
from lowerscope.core.files.atomic_write import atomic_file

def write(path):
    path.write_text("half of it")
    with atomic_file(path.parent / "other") as made:
        made.write_text("more")
        os.kill(os.getpid(), signal.SIGKILL)

write_files(Path(sys.argv[1]), (File("report.html", write),))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "mine"
    folder.mkdir()
    return folder


def test_what_a_killed_export_has_left_goes_with_the_next_and_nothing_else(folder: Path) -> None:
    (folder / "report.html").write_text("the old one")
    others = [folder / f"{PREFIX}of-somebody", folder / f"{PREFIX}0123456789ab.html"]
    for each in others:
        each.write_text("not noted anywhere")
    process = run_warm("-c", KILLED, str(folder))
    assert process.returncode == -signal.SIGKILL
    assert len([*folder.iterdir()]) == 1 + len(others) + 2
    # What is being written at the same time stays.
    with atomic_file(folder / "other.txt") as made:
        made.write_text("still at it")
        elsewhere = folder.parent / "elsewhere"
        write_files(elsewhere, (text_file("a.txt", "a"),))
        assert made.read_text() == "still at it"
    names = {each.name for each in folder.iterdir()}
    assert names == {"report.html", "other.txt", *(each.name for each in others)}
    assert (folder / "report.html").read_text() == "the old one"
    assert os.listdir(folder.parent / "cache" / "lowerscope" / "unfinished") == []


def test_a_file_keeps_its_mode_and_a_link_stays_one(folder: Path) -> None:
    real, link = folder / "real.py", folder / "link.py"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    with atomic_file(link) as made:
        made.write_text("new")
    assert link.is_symlink()
    assert (real.read_text(), real.stat().st_mode & 0o777) == ("new", 0o640)
    with pytest.raises(ZeroDivisionError), atomic_file(link) as made:
        made.write_text(str(1 // 0))
    with pytest.raises(IsADirectoryError), atomic_file(folder):
        pass
    assert sorted(os.listdir(folder)) == ["link.py", "real.py"]
    # What is no plain file, such as a terminal, cannot be replaced.
    with atomic_file(Path(os.devnull)) as made:
        assert made == Path(os.devnull)


# Temporary files of processes that were killed are removed by the next one, and no others


CRASHED = """
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
    process = subprocess.run([sys.executable, "-c", CRASHED], capture_output=True, check=False)
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
