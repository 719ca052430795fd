"""Sessions with all that they need as one archive: packed, moved, opened; and those of others."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax

from lowerscope.core.cli import main
from lowerscope.core.files import sessions
from lowerscope.core.files.sessions import Hashes, load_session, open_archive, read_archive, unpack
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.stages import Pipeline
from tests.core.export.exporting import recipe_of

NET = """
import torch
from pathlib import Path
from parts.scaling import Scaled

scale = float((Path(__file__).parent / "scale.txt").read_text())


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.scaled = Scaled(scale)

    def forward(self, x):
        return torch.relu(self.scaled(self.linear(x)))
"""

SCALING = """
import torch


class Scaled(torch.nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, x):
        return x * self.by
"""

RULES = """
import torch
from beside import halved
from tvm import te
from lowerscope.core.rules import rule


@rule(torch.relu, strategy="te")
def my_relu(builder, node, x):
    def te_relu(a):
        return te.compute(a.shape, lambda *i: halved(te.max(0.0, a(*i))), name="my_relu")

    return builder.emit_te(te_relu, x)
"""


def written(folder: Path) -> list[str]:
    """Write a model with all kinds of files; return the command line that opens it."""
    model, rules, data = folder / "proj", folder / "own", folder / "data"
    for each in (model / "parts", rules, data):
        each.mkdir(parents=True)
    (model / "net.py").write_text(NET)
    (model / "parts" / "__init__.py").write_text("")
    (model / "parts" / "scaling.py").write_text(SCALING)
    (model / "scale.txt").write_text("3")
    (model / "unrelated.txt").write_text("private")
    (rules / "rules.py").write_text(RULES)
    (rules / "beside.py").write_text("def halved(x):\n    return x * 0.5\n")
    generator = np.random.default_rng(0)
    weight, bias = generator.random((3, 4), np.float32), generator.random(3, np.float32)
    np.savez(data / "weights.npz", **{"linear.weight": weight, "linear.bias": bias})
    np.save(data / "x.npy", generator.random((2, 4), np.float32))
    return [
        str(model / "net.py"),
        *("--input", f"x={data / 'x.npy'}", "--params", str(data / "weights.npz")),
        *("--rules", str(rules / "rules.py"), "--lowering", "te", "--schedule", "rules"),
    ]


def outputs(arguments: list[str]) -> np.ndarray:
    """Return what TVM computes, which is what it should be."""
    recipe = recipe_of(*arguments)
    stages = Pipeline().stages(recipe)
    (given,) = stages.loaded.inputs
    machine = relax.VirtualMachine(stages.built.executable, tvm.cpu())
    found: np.ndarray = machine["main"](tvm.runtime.tensor(given.value.numpy())).numpy()
    weights = np.load(Path(recipe.source.params))
    # The file beside the model says three, and the rule halves.
    product = given.value.numpy() @ weights["linear.weight"].T + weights["linear.bias"]
    np.testing.assert_allclose(found, np.maximum(3 * product, 0) / 2, rtol=1e-5)
    return found


def test_an_archive_is_opened_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = written(tmp_path / "here")
    out = tmp_path / "out"
    assert main.main(["export", *arguments, "--what", "session", "--output", str(out)]) == 0
    before = outputs(arguments)
    with zipfile.ZipFile(out / "session.zip") as archive:
        names = set(archive.namelist())
        text = archive.read("session.lowerscope").decode()
    assert names == {
        *("session.lowerscope", "model/net.py", "model/parts/__init__.py"),
        *("model/parts/scaling.py", "model/scale.txt", "data/weights.npz", "data/x.npy"),
        *("own/rules.py", "own/beside.py"),
    }
    assert str(tmp_path) not in text
    # Elsewhere: another folder, and what was here is gone.
    moved = tmp_path / "there" / "mine.zip"
    moved.parent.mkdir()
    (out / "session.zip").rename(moved)
    shutil.rmtree(tmp_path / "here")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    capsys.readouterr()
    after = outputs([str(moved)])
    folder = tmp_path / "data" / "lowerscope" / "unpacked" / "mine"
    assert f"unpacked to {folder}" in capsys.readouterr().err
    np.testing.assert_array_equal(after, before)
    # A second time it is there; once something in it is changed, it is not what came.
    assert open_archive(moved) == (folder / "session.lowerscope", False)
    assert load_session(folder / "session.lowerscope", Hashes()).changed == ()
    (folder / "model" / "scale.txt").write_text("4")
    assert open_archive(moved)[0].parent == folder.with_name("mine 2")


SESSION = json.dumps({"version": 1, "recipe": {"source": {"spec": "model/net.py"}}})


def entry(name: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr = mode << 16
    return made


def bad(
    *entries: tuple[str | zipfile.ZipInfo, str], session: str = SESSION
) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("session.lowerscope", session)
            for name, text in entries:
                archive.writestr(name, text)

    return write


def cut(path: Path) -> None:
    bad(("model/net.py", "x = 1\n" * 1000))(path)
    path.write_bytes(path.read_bytes()[:-40])


def damaged(path: Path) -> None:
    bad(("model/net.py", "".join(map(str, range(9000)))))(path)
    content = bytearray(path.read_bytes())
    content[4000:4100] = b"\0" * 100
    path.write_bytes(content)


def outside(spec: str) -> str:
    return json.dumps({"version": 1, "recipe": {"source": {"spec": spec}}})


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (bad(("../net.py", "")), "outside of the folder"),
        (bad(("/tmp/net.py", "")), "outside of the folder"),
        (bad(("model//net.py", "")), "outside of the folder"),
        (bad(("model\\net.py", "")), "not a valid file name"),
        (bad(("C:net.py", "")), "not a valid file name"),
        (bad((entry("model/net.py", stat.S_IFLNK | 0o777), "/etc/passwd")), "a link"),
        (bad(("model/net.py", ""), ("model/NET.py", "")), "twice"),
        (bad(("model/net.py", ""), ("model/net.py/x", "")), "cannot be unpacked"),
        (bad(), "which is not in it"),
        (bad(("net.py", ""), session=outside("/etc/hostname")), "which is not in it"),
        (bad(("net.py", ""), session=outside("../../etc/hostname")), "which is not in it"),
        (bad(("other.lowerscope", SESSION)), "2 of them"),
        (bad(("model/net.py", ""), session="{"), "it holds no session"),
        (bad(("model/net.py", "\0" * (300 << 20))), "would unpack to 315 MB"),
        (cut, "it holds no session"),
        (damaged, "it holds no session"),
        (lambda path: path.write_text("no archive"), "it holds no session"),
        (lambda path: None, "cannot be read"),
    ],
)
def test_what_is_no_archive_of_a_session_is_refused_and_leaves_nothing(
    write: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    path, folder = tmp_path / "bad.zip", tmp_path / "new"
    write(path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(LowerscopeError, match=reason):
        unpack(read_archive(path), folder)
    assert sorted(tmp_path.iterdir()) == before


def test_an_archive_holds_no_more_than_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.zip"
    bad(*((f"model/{number}.py", "") for number in range(4)))(path)
    monkeypatch.setattr(sessions, "MOST_FILES", 4)
    with pytest.raises(LowerscopeError, match="more than 4 files"):
        read_archive(path)


def test_opening_runs_nothing_and_trusts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "theirs.zip"
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w')\n"
    value = {"version": 1, "recipe": {"source": {"spec": "model/net.py", "trust": True}}}
    bad(("model/net.py", code), session=json.dumps(value))(path)
    session = unpack(read_archive(path), tmp_path / "new")
    assert not mark.exists()
    # On the command line, too, a file cannot say of itself that it may run code.
    assert not recipe_of(str(session)).source.trust
    assert recipe_of(str(session), "--trust").source.trust
    assert "torch" not in light_modules()


def light_modules() -> set[str]:
    code = "import sys, lowerscope.core.files.sessions; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
