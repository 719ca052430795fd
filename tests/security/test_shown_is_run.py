"""The text of a file that was shown is what runs, and not the file that lies in its place."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import py_compile
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.document.document import Change
from lowerscope.app.engine.client import EngineClient
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.panes.sessions.trust import RunCodeDialog
from lowerscope.core.files import approved
from lowerscope.core.files.approved import readable_source
from lowerscope.core.model.recipe import Extension, Source
from lowerscope.core.model.tuning_records import TuneOptions
from lowerscope.core.passes.extension_files import load_extension
from lowerscope.core.sources.loading import open_model
from lowerscope.core.sources.user_code import Environment, run_file
from tests.end_to_end.driving import OpenWindow, changes, wait_for_records
from tests.end_to_end.small_nets import write
from tests.end_to_end.test_trusting import LEAVES_A_TRACE, asks, question
from tests.problems import problem_of

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
    """A model's imports from another folder stay in the process, as does a table."""
    yield
    sys.modules.pop("breadths", None)
    approved.put_in_force(None)


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
    assert window.document.wanted is None
    again = question(window)
    assert again is not first
    again.reject()


# --- what is shown is what Python reads ----------------------------------------------------------

HIDING = {
    "utf-7": b"# coding: utf-7\n# harmless +AAo-HIDDEN = 1\n",
    "unicode_escape": b"# coding: unicode_escape\n# harmless \\nHIDDEN = 1\n",
    "a carriage return": b"# harmless\rHIDDEN = 1\n",
    "a declaration in the second line": b"\n# vim: set fileencoding=utf-7 :\n# +AAo-HIDDEN = 1\n",
    "a character that is cut": b"# coding: utf-7\n# +AAo-HIDDEN = 1\n#" + b"+AGE-" * (1 << 18),
}


@pytest.mark.parametrize("how", sorted(HIDING))
def test_an_encoding_hides_nothing(qtbot: QtBot, tmp_path: Path, how: str) -> None:
    path = tmp_path / "net.py"
    path.write_bytes(HIDING[how])
    environment = Environment(path)
    with environment.loading():
        assert run_file(environment).HIDDEN == 1
    dialog = RunCodeDialog([str(path)], (), "")
    qtbot.addWidget(dialog)
    view = dialog.files.widget(0)
    assert isinstance(view, CodeView)
    assert "HIDDEN = 1" in view.text().split("\n")


@pytest.mark.parametrize(
    "character",
    [
        *("\u202e", "\u2066", "\u200b", "\u2028", "\u2029", "\x0c", "\x08", "\x1b", "\x85"),
        *("\ufeff", "\u3164", "\u034f", "\ufe0f", "\U000e0041", "\0"),
    ],
)
def test_a_character_that_misleads_is_shown(character: str) -> None:
    text = f"a = 1  # größe, 宽度 {character} b = 2\n"
    escape = character.encode("unicode_escape").decode()
    assert readable_source(text.encode()) == text.replace(character, escape)


# --- a table of what may run --------------------------------------------------------------------

COMPUTED = "import importlib\nbreadths = importlib.import_module('shtdaerb'[::-1])"


def hashed(*paths: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def refused(path: Path, table: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files that are to be shown, as a model is opened with a table in force."""
    approved.put_in_force(table)
    problem = problem_of(width_of, path)
    assert problem.code == "unseen"
    assert problem.where == problem.choices[0]
    return problem.choices


def test_a_file_runs_with_the_content_that_was_allowed(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(NET.format(importing="", width="4"))
    table = hashed(path)
    approved.put_in_force(table)
    assert width_of(path) == 4
    path.write_text(path.read_text() + LEAVES_A_TRACE)
    assert refused(path, table) == (str(path),)
    assert refused(path, {}) == (str(path),)
    assert not (tmp_path / "it_ran").exists()
    approved.put_in_force(hashed(path))
    assert width_of(path) == 4
    assert (tmp_path / "it_ran").exists()


@pytest.mark.parametrize("importing", ["import breadths", COMPUTED, AT_PATH, FROM_ELSEWHERE])
def test_an_import_that_was_not_shown_is_refused(tmp_path: Path, importing: str) -> None:
    path = tmp_path / "model/net.py"
    folder = tmp_path / ("shared" if importing == FROM_ELSEWHERE else "model")
    for each in ("model", "shared"):
        (tmp_path / each).mkdir()
    beside, further = folder / "breadths.py", folder / "further.py"
    beside.write_text("import further\n" + SHOWN + LEAVES_A_TRACE)
    further.write_text("import torch\n")
    path.write_text(NET.format(importing=importing, width="breadths.WIDTH"))
    # All that it would import in turn is shown with it.
    assert refused(path, hashed(path)) == (str(beside), str(further))
    assert refused(path, hashed(path, further)) == (str(beside),)
    allowed = hashed(path, beside, further)
    beside.write_text(beside.read_text() + "# more\n")
    assert refused(path, allowed) == (str(beside),)
    assert not (folder / "it_ran").exists()
    approved.put_in_force(hashed(path, beside, further))
    assert width_of(path) == 4
    assert (folder / "it_ran").exists()
    sys.modules.pop("further", None)


def test_rules_are_refused_as_models_are(tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    path.write_text(LEAVES_A_TRACE)
    approved.put_in_force({})
    assert problem_of(load_extension, Extension(path=str(path), kind="rules")).code == "unseen"
    assert not (tmp_path / "it_ran").exists()


# --- the window and its children ----------------------------------------------------------------


def test_a_file_that_changes_after_the_answer_is_asked_about_again(
    qtbot: QtBot, open_window: OpenWindow, writable: Path
) -> None:
    text = NET.format(importing="", width="4")
    path = Path(write(writable / "net.py", text))
    window = open_window(asks_first=True)
    changes = iter((text + LEAVES_A_TRACE, text + "# as harmless as before\n"))

    def rewrite() -> None:
        path.write_text(next(changes))

    def rewrite_while_it_is_opened(_change: Change) -> None:
        if window.document.job.text:
            window.document.changed.disconnect(rewrite_while_it_is_opened)
            rewrite()

    window.document.changed.connect(rewrite_while_it_is_opened)
    window.open_source(str(path))
    question(window).run.click()
    qtbot.waitUntil(lambda: asks(window), timeout=60_000)
    again = question(window)
    assert again.shown == hashed(path)
    # Saving it now is no answer, whether it is seen at once or not.
    with qtbot.waitSignal(window.source_watch.saved, timeout=60_000):
        rewrite()
    with qtbot.waitSignal(window.features.processes.unseen, timeout=60_000):
        pass
    again.run.click()
    assert window.document.recipe is None
    last = question(window)
    assert last.shown == hashed(path)
    last.run.click()
    wait_for_records(qtbot, window)
    assert not (writable / "it_ran").exists()


def test_a_computed_import_is_asked_about(
    qtbot: QtBot, open_window: OpenWindow, writable: Path
) -> None:
    path = write(writable / "net.py", NET.format(importing=COMPUTED, width="breadths.WIDTH"))
    beside = write(writable / "breadths.py", SHOWN + LEAVES_A_TRACE)
    window = open_window(asks_first=True)
    window.open_source(path)
    assert question(window).shown == hashed(Path(path))
    question(window).run.click()
    qtbot.waitUntil(lambda: asks(window), timeout=60_000)
    question(window).reject()
    assert not (writable / "it_ran").exists()
    window.open_source(path)
    assert not asks(window)
    qtbot.waitUntil(lambda: asks(window), timeout=60_000)
    assert question(window).shown == hashed(Path(beside))
    question(window).run.click()
    wait_for_records(qtbot, window)
    assert (writable / "it_ran").exists()
    # Both are known from now on.
    with qtbot.waitSignal(
        window.document.changed, check_params_cb=changes("snapshot"), timeout=60_000
    ):
        window.open_source(path)
    assert not asks(window)


def test_the_process_that_tunes_has_the_table_as_well(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:matmul_relu", asks_first=True)
    tuning = window.features.tuning
    tuning.start(TuneOptions(trials=1))
    try:
        (client,) = tuning.findChildren(EngineClient)
        assert client.approved is not None
        assert client.approved() is window.trusting.approved() is not None
    finally:
        tuning.close()
