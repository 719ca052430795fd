"""Files of sessions: what is saved comes back, and what is no session is refused in one line."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lowerscope.core.files import sessions
from lowerscope.core.files.atomic_write import remove_leftovers
from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.sessions import load_session, save_session
from lowerscope.core.model import recipe as recipes
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import (
    Extension,
    InputSpec,
    Override,
    Recipe,
    Source,
    Step,
    WindowLayout,
)
from lowerscope.core.model.schedule import At, Primitive, Schedule

LAYOUT = WindowLayout(size=(1200, 800), mode="step", selection=("fx:relu",))


def rich(folder: Path) -> Recipe:
    """Return a recipe with something of all that a user can decide."""
    for name in ("net.py", "weights.npz", "x.npy", "rules.py"):
        (folder / name).write_text(name)
    return Recipe(
        source=Source(spec=str(folder / "net.py"), entry="Net", params=str(folder / "weights.npz")),
        seed=3,
        inputs=(InputSpec(name="x", file=str(folder / "x.npy")), InputSpec(name="y", seed=3)),
        overrides=(Override(pattern="fx:relu", strategy="te"),),
        extensions=(Extension(path=str(folder / "rules.py"), kind="rules"),),
        steps=(Step(name="LegalizeOps"), Step(name="FuseOps", options={"fuse_opt_level": 1})),
        schedules=(
            Schedule(
                function="relu",
                primitives=(
                    Primitive(
                        id="s1",
                        name="split",
                        arguments={"loop": At(block="relu", loop=0), "factors": (None, 8)},
                        comment="eight are one vector register",
                    ),
                ),
            ),
        ),
        target='{"kind": "llvm"}',
    )


def saved(path: Path, recipe: Recipe) -> dict[str, Any]:
    save_session(path, recipe, LAYOUT, Hashes())
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    path, recipe = tmp_path / "a.lowerscope", rich(tmp_path)
    save_session(path, recipe, LAYOUT, Hashes())
    session = load_session(path, Hashes())
    assert session.recipe == recipe
    assert session.layout == LAYOUT
    assert session.changed == ()
    assert os.listdir(tmp_path).count("a.lowerscope") == 1
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_files_that_have_changed_are_named(tmp_path: Path) -> None:
    path, recipe = tmp_path / "a.lowerscope", rich(tmp_path)
    hashes = Hashes()
    save_session(path, recipe, LAYOUT, hashes)
    (tmp_path / "net.py").write_text("another")
    (tmp_path / "x.npy").unlink()
    changed = load_session(path, hashes).changed
    assert changed == (str(tmp_path / "net.py"), str(tmp_path / "x.npy"))


def test_an_older_recipe_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.lowerscope"
    value = saved(path, Recipe(source=Source(spec="sample:fashion_mlp")))
    value["recipe"] |= {"version": 1, "tolerances": {"rtol": 0.5, "atol": 0.25}}
    path.write_text(json.dumps(value))
    session = load_session(path, Hashes())
    assert session.recipe.version == recipes.VERSION
    assert session.recipe.tolerances.float32.atol == 0.25


def test_an_older_layout_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.lowerscope"
    value = saved(path, rich(tmp_path))
    old = {"geometry": "AAEC", "panes": "AwQF", "panes_version": 2, "selection": ["fx:relu"]}
    value["layout"] = old
    path.write_text(json.dumps(value))
    session = load_session(path, Hashes())
    assert session.recipe == rich(tmp_path)
    assert session.layout == WindowLayout(selection=("fx:relu",))
    save_session(path, session.recipe, LAYOUT, Hashes())
    assert load_session(path, Hashes()).layout == LAYOUT


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (("version",), "a newer Lowerscope wrote this session"),
        (("recipe", "version"), "a newer Lowerscope wrote this session"),
    ],
)
def test_a_newer_file_is_refused(tmp_path: Path, place: tuple[str, ...], said: str) -> None:
    path = tmp_path / "a.lowerscope"
    value = saved(path, rich(tmp_path))
    inner = value
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = 99
    # It may have what this version has never seen.
    value["recipe"]["steps"] = {"of": "another kind"}
    path.write_text(json.dumps(value))
    with pytest.raises(LowerscopeError, match=said) as caught:
        load_session(path, Hashes())
    assert caught.value.problem.where == str(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file contains no session"),
        (b"\x80\x04\x95", "the file contains no session"),
        (b"[" * 100_000, "the file contains no session"),
        (b'{"version": 1}', "missing required field `recipe`"),
        (b'{"version": 1, "recipe": {"source": {}}}', r"`spec`.*\$.source"),
        (b'{"version": 1, "recipe": {"source": {"spec": "a.py"}, "seed": "x"}}', r"\$.seed"),
        (b'{"version": 1, "recipe": {"source": {"spec": "a.py"}, "seed": 1e400}}', "no session"),
    ],
)
def test_what_is_no_session_is_refused_in_one_line(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "a.lowerscope"
    path.write_bytes(content)
    with pytest.raises(LowerscopeError, match=said) as caught:
        load_session(path, Hashes())
    assert "\n" not in caught.value.problem.line()


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, recipe = tmp_path / "a.lowerscope", rich(tmp_path)
    save_session(path, recipe, LAYOUT, Hashes())
    before = path.read_bytes()

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sessions.os, "fsync", full)
    with pytest.raises(LowerscopeError, match="No space left on device"):
        save_session(path, msgspec.structs.replace(recipe, seed=9), LAYOUT, Hashes())
    assert path.read_bytes() == before
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_what_was_on_its_way_is_in_the_file_and_goes_when_it_has_come(tmp_path: Path) -> None:
    path, recipe = tmp_path / "a.lowerscope", rich(tmp_path)
    wanted = msgspec.structs.replace(recipe, lowering="library")
    save_session(path, recipe, LAYOUT, Hashes(), wanted)
    session = load_session(path, Hashes())
    assert (session.recipe, session.wanted) == (recipe, wanted)
    assert str(tmp_path) not in path.read_text()
    save_session(path, wanted, LAYOUT, Hashes())
    session = load_session(path, Hashes())
    assert (session.recipe, session.wanted) == (wanted, None)


SAVES = """
import sys
from pathlib import Path
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.sessions import WindowLayout, save_session
path, seed = Path(sys.argv[1]), 0
while True:
    source = Source(spec="sample:matmul", args="y" * 100_000)
    recipe = Recipe(source=source, seed=seed)
    save_session(path, recipe, WindowLayout(), Hashes())
    seed += 1
    print(seed, flush=True)
"""


def test_a_file_that_is_being_written_when_its_process_is_killed_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    path, drawn = tmp_path / "mine.lowerscope", random.Random(0)
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVES, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(drawn.randint(1, 20)):
            saved = int(process.stdout.readline())
        time.sleep(drawn.random() * 0.005)
        process.kill()
        process.wait()
        process.stdout.close()
        assert load_session(path, Hashes()).recipe.seed >= saved - 1
    remove_leftovers()
    assert os.listdir(tmp_path) == [path.name]
