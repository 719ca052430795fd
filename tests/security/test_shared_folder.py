"""The folder of a session that code in the sandbox may write to, and what of it it may not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lowerscope.core.sandbox import bubblewrap
from lowerscope.core.sandbox.folder import NotShared, shared_folder
from tests.sandboxes import needs_sandbox


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / ".git" / "hooks").mkdir(parents=True)
    (project / ".envrc").write_text("was there")
    (project / "net.lowerscope").write_text("{}")
    (project / "net.lowerscope.lock").write_text("1")
    (project / "net.py").write_text("")
    (project / "settings").mkdir()
    return project


def test_what_is_hidden_the_session_and_the_settings_stay(project: Path) -> None:
    folder = shared_folder(project / "net.lowerscope", project / "settings")
    assert folder.path == project
    names = [str(each.relative_to(project)) for each in folder.kept]
    assert names == [".envrc", ".git", "net.lowerscope", "net.lowerscope.lock", "settings"]


def why_not(session: Path) -> str:
    with pytest.raises(NotShared) as refused:
        shared_folder(session, session.parent / "nowhere")
    return str(refused.value)


def test_folders_that_stay_read_only(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert why_not(project / ".git" / "a.lowerscope") == "is hidden"
    assert "Lowerscope runs with" in why_not(Path(bubblewrap.__file__).parent / "a.lowerscope")
    (project / ".link").symlink_to(tmp_path)
    assert why_not(project / "net.lowerscope") == "has a link .link"
    monkeypatch.setenv("HOME", str(project))
    for each in (project, tmp_path, Path("/")):
        assert why_not(each / "a.lowerscope") == "is or holds your home folder"
    # By a link as well.
    (tmp_path / "way").symlink_to(project)
    assert why_not(tmp_path / "way" / "a.lowerscope") == "is or holds your home folder"


@needs_sandbox
def test_code_writes_beside_the_session_and_nothing_that_is_kept(project: Path) -> None:
    program = bubblewrap.program()
    assert program is not None
    folder = shared_folder(project / "net.lowerscope", project / "settings")
    tries = {
        "beside": "echo x > beside",
        "the model": "echo x > net.py",
        "hook": "echo x > .git/hooks/pre-commit",
        "hidden": "echo x > .envrc",
        "session": "echo x > net.lowerscope",
        "another session": "touch a && mv a net.lowerscope",
        "another repository": "mv .git git",
        "lock": "rm net.lowerscope.lock",
        "above": "touch ../above",
    }
    script = "\n".join(f"({each}) 2>/dev/null && echo '{name}'" for name, each in tries.items())
    command = ("/bin/sh", "-c", f"cd {project}\n{script}\ntrue")
    enclosed = bubblewrap.enclosed(program, command, (), "none", folder)
    done = subprocess.run(enclosed, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == ["beside", "the model"]
    assert (project / "beside").read_text() == "x\n"
    assert (project / "net.lowerscope").read_text() == "{}"
