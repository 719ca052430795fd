"""Files that a sandbox may write: nothing outside follows, removes, awaits or runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lowerscope.core.files.atomic_write import atomic_write
from lowerscope.core.files.cache import SANDBOXED, TRACES, cache_size, clear_cache, read_kept
from lowerscope.core.files.paths import cache_folder, open_directory, open_file, user_cache_folder
from lowerscope.core.sandbox import bubblewrap
from lowerscope.core.sandbox.folder import CODE_CACHES, SandboxFolder, folders
from lowerscope.core.sandbox.temporary_files import sweep
from tests.sandboxes import needs_sandbox


def is_whole(home: Path) -> bool:
    return [each.name for each in home.iterdir()] == ["mine"] and (home / "mine").read_text() == (
        "mine"
    )


INSIDE = """
import os, sys
from pathlib import Path
cache = Path(sys.argv[1])
for name in ("lock", "limit", "unfinished/x", "tuning/x/f-1.json", "handed-over/1-x", "x"):
    try:
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_text("evil")
    except OSError as error:
        print(name, error.strerror)
for name in {names}:
    print(name, Path(os.environ[name]).is_relative_to(os.environ["LOWERSCOPE_CACHE"]))
Path(os.environ["LOWERSCOPE_CACHE"], "x").write_text("mine")
"""


@needs_sandbox
def test_the_cache_is_read_only_inside_and_no_code_is_shared(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = bubblewrap.program()
    assert program is not None
    for name in CODE_CACHES:
        monkeypatch.setenv(name, str(home))
    cache = cache_folder()
    cache.mkdir(parents=True)
    folder = SandboxFolder()
    code = INSIDE.replace("{names}", repr(tuple(CODE_CACHES)))
    command = bubblewrap.enclosed(
        *(program, (sys.executable, "-c", code, str(cache)), (folder.path,), "none"),
        variables=folder.variables,
    )
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        *(f"{name} Read-only file system" for name in ("lock", "limit", "unfinished/x")),
        *(f"{name} Read-only file system" for name in ("tuning/x/f-1.json", "handed-over/1-x")),
        "x Read-only file system",
        *(f"{name} True" for name in CODE_CACHES),
    ]
    folder.close()
    assert not list(folders())
    # Of what is compiled there, nothing is found by anybody else.
    assert not [each for each in cache.rglob("*") if not each.is_dir() and each.name != "lock"]


def test_values_are_taken_over_by_name_and_traces_for_other_sandboxes(home: Path) -> None:
    folder = SandboxFolder()
    tuned = folder.cache / "tuning" / "key"
    tuned.mkdir(parents=True)
    (folder.cache / "peaks-1.json").write_text("{}")
    for name in ("f-1.json", "about.json", *TRACES, "f-1.py", "evil.json", "f-1.json.so"):
        (tuned / name).write_text("{}")
    (tuned / f"{TRACES[0]}.so").write_text("evil")
    (folder.cache / "peaks-1.json.so").write_text("evil")
    (tuned / "tuning" / "key").mkdir(parents=True)
    for name in ("f-1.json", TRACES[0]):
        (tuned / "tuning" / "key" / name).write_text("evil")
    (folder.cache / "torch").mkdir()
    (folder.cache / "torch" / "code.pkl").write_text("evil")
    (folder.cache / "limit").write_text("0")
    folder.take_over()
    taken = user_cache_folder()
    names = [f"tuning/key/{each}" for each in ("f-1.json", "about.json")]
    names += [f"{SANDBOXED}/tuning/key/{each}" for each in TRACES]
    found = {str(each.relative_to(taken)) for each in taken.rglob("*.*") if each.is_file()}
    inside = {each for each in found if each.startswith("sandboxes/")}
    assert found - inside == {"peaks-1.json", *names}
    folder.close()
    assert not list(folders())
    # Another sandbox reads what it has not written itself.
    other = SandboxFolder()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in other.variables.items():
            patch.setenv(name, value)
        assert cache_folder() == other.cache
        assert read_kept(cache_folder() / "peaks-1.json") == b"{}"
    other.close()
    assert cache_size() == 8  # all but about.json
    clear_cache()
    assert cache_size() == 0


LINKED = ("cache", "cache/tuning", "cache/tuning/key", "cache/tuning/key/f-1.json")


@pytest.mark.parametrize("linked", LINKED)
def test_a_link_is_not_followed_in_or_out(home: Path, linked: str) -> None:
    (home / "mine").write_text("mine")
    folder = SandboxFolder()
    place = folder.path / linked
    if linked == "cache":
        place.rmdir()
    place.parent.mkdir(parents=True, exist_ok=True)
    # What it leads to has names that would be taken over.
    secret = home.parent / "secret"
    (secret / "tuning" / "key").mkdir(parents=True)
    for name in ("peaks-1.json", "tuning/key/f-1.json", "key/f-1.json", "f-1.json"):
        (secret / name).parent.mkdir(exist_ok=True)
        (secret / name).write_text("secret")
    kept = sorted(secret.rglob("*"))
    place.symlink_to(secret / "f-1.json" if linked.endswith("json") else secret)
    folder.close()
    assert not list(folders())
    assert sorted(secret.rglob("*")) == kept
    assert not list(user_cache_folder().glob("peaks*"))
    assert not list(user_cache_folder().glob("tuning/*/*"))


def test_what_was_planted_in_the_cache_before_is_not_followed(home: Path) -> None:
    """A former version let the sandbox write to the cache."""
    cache = user_cache_folder()
    gone = 2**22 + 1  # no process has such a number
    for place in ("handed-over", "sandboxes", "unfinished"):
        (cache / place).mkdir(parents=True)
        (cache / place / f"{gone}-x").symlink_to(home)
    os.mkfifo(cache / "unfinished" / "pipe")
    note = cache / "unfinished" / "note"
    note.write_bytes(os.fsencode(home / ".lowerscope-evil"))
    (home / ".lowerscope-evil").symlink_to(home)
    (cache / "unfinished" / "other").write_bytes(os.fsencode(home / "mine"))
    (cache / "tuning").symlink_to(home)
    sweep()
    assert is_whole(home)
    (home.parent / "tuned").mkdir()
    (home.parent / "tuned" / "f-1.json").write_text("mine")
    (cache / "tuning").unlink()
    for place in (cache / "tuning", cache / SANDBOXED / "tuning" / "key"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(home.parent if place.name == "tuning" else home.parent / "tuned")
    clear_cache()
    assert (home.parent / "tuned" / "f-1.json").read_text() == "mine"
    assert is_whole(home)
    (cache / "f-2.json").symlink_to(home / "mine")
    atomic_write(cache / "f-2.json", b"2", private=True)
    assert (cache / "f-2.json").stat().st_mode & 0o777 == 0o600
    assert (cache / "f-2.json").read_bytes() == b"2"
    assert is_whole(home)


def test_what_a_killed_window_has_left_is_taken_over_and_removed(home: Path) -> None:
    code = """
import os, signal
from lowerscope.core.sandbox.folder import own_folder
folder = own_folder()
(folder.cache / "peaks-1.json").write_text("{}")
(folder.path / "link").symlink_to(os.path.expanduser(os.environ["LINKED"]))
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "LINKED": str(home)})
    assert len(list(folders())) == 1
    sweep()
    assert not list(folders())
    assert (user_cache_folder() / "peaks-1.json").read_text() == "{}"
    assert is_whole(home)


def test_what_somebody_else_has_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").touch()
    os.close(open_directory(folder))
    os.close(open_file(folder / "file"))
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(PermissionError):
        open_directory(folder)
    with pytest.raises(PermissionError):
        open_file(folder / "file")
