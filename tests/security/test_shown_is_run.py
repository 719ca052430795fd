"""What was shown is what runs: the text of a file, and not what lies beside it in its place."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import py_compile
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.machinery import BYTECODE_SUFFIXES, FileFinder, SourcelessFileLoader
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.views.run_code_dialog import RunCodeDialog
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.export.catalogue import Wanted
from lowerscope.core.export.folder import export
from lowerscope.core.extensions import load_extension
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.recipe import Extension, Recipe, Source
from lowerscope.core.sources.loading import open_model
from tests.end_to_end.driving import OpenWindow, wait_for_records
from tests.end_to_end.small_nets import write
from tests.end_to_end.test_trusting import question

SHOWN = "WIDTH = 4\n"
HIDDEN = "WIDTH = 5\n"
"""As long as what is shown: size and time of the file tell nothing."""
NET = """
import torch
{importing}

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, {width})

    def forward(self, x):
        return self.linear(x)

def example_inputs():
    return torch.ones(1, 2)
"""
BY_NAME = NET.format(importing="import breadths", width="breadths.WIDTH")
EXTENSION = importlib.machinery.EXTENSION_SUFFIXES[0]


def compiled(text: str, into: Path, mode: py_compile.PycInvalidationMode, like: Path) -> None:
    """Write the byte code of a text such that Python takes it for that of the file `like`."""
    source = into.with_suffix(".hidden")
    into.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(text)
    status = like.stat()
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    py_compile.compile(str(source), str(into), str(like), doraise=True, invalidation_mode=mode)
    source.unlink()


def cached(folder: Path, name: str, mode: py_compile.PycInvalidationMode) -> None:
    source = folder / name
    compiled(HIDDEN, Path(importlib.util.cache_from_source(str(source))), mode, source)


def width_of(path: Path) -> int:
    model = open_model(Source(spec=str(path)), 0).model
    assert model is not None
    width: int = model.linear.out_features
    return width


def plain_python(folder: Path) -> str:
    """Return what Python itself finds in a folder, to see that a case is one."""
    command = [sys.executable, "-S", "-B", "-c", "import breadths; print(breadths.WIDTH)"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """What a model has imported from another folder stays in the process."""
    yield
    sys.modules.pop("breadths", None)


MODES = list(py_compile.PycInvalidationMode)


@pytest.mark.parametrize(
    "mode", [each for each in MODES if each is not py_compile.PycInvalidationMode.CHECKED_HASH]
)
@pytest.mark.parametrize("name", ["breadths.py", "breadths/__init__.py"])
def test_byte_code_beside_a_neighbour_is_ignored(
    tmp_path: Path, mode: py_compile.PycInvalidationMode, name: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(SHOWN)
    cached(tmp_path, name, mode)
    assert plain_python(tmp_path) == "5"
    (tmp_path / "net.py").write_text(BY_NAME)
    assert width_of(tmp_path / "net.py") == 4


def test_byte_code_without_a_text_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(BY_NAME)
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    for name in ("breadths.pyc", "breadths/__init__.pyc"):
        compiled(HIDDEN, tmp_path / name, mode, tmp_path / "net.py")
        assert plain_python(tmp_path) == "5"
        with pytest.raises(LowerscopeError, match="'breadths'"):
            width_of(tmp_path / "net.py")
        (tmp_path / name).unlink()


def test_a_compiled_module_takes_no_place_of_a_shown_one(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(BY_NAME)
    (tmp_path / "breadths.py").write_text(SHOWN)
    (tmp_path / f"breadths{EXTENSION}").write_bytes(b"\x7fELF")
    assert plain_python(tmp_path).startswith("ImportError")
    assert width_of(tmp_path / "net.py") == 4


AT_PATH = """
import importlib.util
from pathlib import Path
spec = importlib.util.spec_from_file_location("breadths", Path(__file__).parent / "breadths.py")
breadths = importlib.util.module_from_spec(spec)
spec.loader.exec_module(breadths)
"""
FROM_ELSEWHERE = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))
import breadths
"""


@pytest.mark.parametrize(
    ("importing", "folder"), [(AT_PATH, "model"), (FROM_ELSEWHERE, "shared")], ids=["path", "other"]
)
def test_however_it_is_imported(tmp_path: Path, importing: str, folder: str) -> None:
    for each in ("model", "shared"):
        (tmp_path / each).mkdir()
    (tmp_path / folder / "breadths.py").write_text(SHOWN)
    cached(tmp_path / folder, "breadths.py", py_compile.PycInvalidationMode.UNCHECKED_HASH)
    (tmp_path / "model/net.py").write_text(NET.format(importing=importing, width="breadths.WIDTH"))
    assert width_of(tmp_path / "model/net.py") == 4


def test_nothing_is_imported_from_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "more.zip", "w") as archive:
        archive.writestr("breadths.py", HIDDEN)
    importing = "import sys\nsys.path.insert(0, __file__.replace('net.py', 'more.zip'))\n"
    text = NET.format(importing=importing + "import breadths", width="breadths.WIDTH")
    (tmp_path / "net.py").write_text(text)
    with pytest.raises(LowerscopeError, match="No module named 'breadths'"):
        width_of(tmp_path / "net.py")


def test_a_folder_that_was_on_the_path_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python has found out what is in it, byte code among it."""
    (tmp_path / "net.py").write_text(BY_NAME)
    compiled(HIDDEN, tmp_path / "breadths.pyc", MODES[-1], tmp_path / "net.py")
    finder = FileFinder(str(tmp_path), (SourcelessFileLoader, BYTECODE_SUFFIXES))
    assert finder.find_spec("breadths") is not None
    monkeypatch.setitem(sys.path_importer_cache, str(tmp_path), finder)
    with pytest.raises(LowerscopeError, match="No module named 'breadths'"):
        width_of(tmp_path / "net.py")


def test_files_of_rules_are_run_from_their_text(tmp_path: Path) -> None:
    rule = "from torch import nn\nfrom lowerscope.core.rules import rule\nimport breadths\n"
    rule += "@rule(nn.ReLU, name=f'width {breadths.WIDTH}')\ndef mine(builder, node, x): pass\n"
    for name, text in (("breadths.py", SHOWN), ("rules.py", rule)):
        (tmp_path / name).write_text(text)
    cached(tmp_path, "breadths.py", py_compile.PycInvalidationMode.UNCHECKED_HASH)
    compiled(
        "",
        Path(importlib.util.cache_from_source(str(tmp_path / "rules.py"))),
        MODES[-1],
        tmp_path / "rules.py",
    )
    loaded = load_extension(Extension(path=str(tmp_path / "rules.py"), kind="rules"))
    assert [each.name for each in loaded.rules] == ["width 4"]


def test_a_reproduction_runs_the_text_that_it_compares(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(NET.format(importing="WIDTH = 4", width="WIDTH"))
    recipe = Recipe(source=Source(spec=str(path)))
    export(Pipeline(), recipe, tmp_path, force=False, wanted=(Wanted(name="reproduce"),))
    hidden = path.read_text().replace("WIDTH = 4", "WIDTH = 5")
    cache = Path(importlib.util.cache_from_source(str(path)))
    compiled(hidden, cache, py_compile.PycInvalidationMode.UNCHECKED_HASH, path)
    run = "import runpy; print(runpy.run_path('reproduce.py')['open_source']().WIDTH)"
    command = [sys.executable, "-B", "-c", run]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "4\n", done.stderr


def test_a_file_is_asked_about_again_whatever_its_size_and_time(
    qtbot: QtBot, open_window: OpenWindow, writable: Path
) -> None:
    """A file of the same size and time is not the file that was shown."""
    text = NET.format(importing="WIDTH = 4", width="WIDTH")
    path = Path(write(writable / "net.py", text))
    window = open_window(asks_first=True)

    def rewritten(old: str, new: str) -> None:
        status = path.stat()
        path.write_text(path.read_text().replace(old, new))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    window.open_source(str(path))
    first = question(window)
    rewritten("WIDTH = 4", "WIDTH = 5")
    first.run.click()
    assert window.workspace.wanted is None
    again = question(window)
    assert again is not first
    again.run.click()
    wait_for_records(qtbot, window)
    window.commands.action("watch").trigger()
    rewritten("WIDTH = 5", "WIDTH = 6")
    window.open_source(str(path))
    question(window).reject()


def test_what_was_read_to_be_shown_is_what_is_allowed(
    qtbot: QtBot, open_window: OpenWindow, writable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is another one at the moment when it is read for the question."""
    text = NET.format(importing="", width="4")
    path = Path(write(writable / "net.py", text))

    def reading(dialog: RunCodeDialog, name: str) -> str:
        path.write_text(text + "# harmless\n")
        shown = read(dialog, name)
        path.write_text(text)
        return shown

    read = RunCodeDialog._text
    window = open_window(asks_first=True)
    with monkeypatch.context() as patched:
        patched.setattr(RunCodeDialog, "_text", reading)
        window.open_source(str(path))
    first = question(window)
    first.run.click()
    assert window.workspace.wanted is None
    again = question(window)
    assert again is not first
    again.reject()
