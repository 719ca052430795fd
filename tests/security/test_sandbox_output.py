"""Output of a sandbox for the user's folders: no link is followed, and no disk is filled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QObject

from lowerscope.app.engine.file_broker import ask_for_file
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import SaveValuesQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.sandbox.folder import SandboxFolder, SandboxOutput, only


def output(home: Path, *names: str) -> SandboxOutput:
    """Return the way out of a sandbox that may write to the target as well."""
    return SandboxOutput(SandboxFolder(), home.parent / "shared", only(names))


def test_a_link_in_the_target_is_replaced_and_not_followed(home: Path) -> None:
    out = output(home, "x.npy")
    (out.folder / "x.npy").write_text("x")
    out.target.mkdir()
    (out.target / "x.npy").symlink_to(home / "mine")
    assert out.copy_out(only(("x.npy",))) == (out.target / "x.npy",)
    assert (home / "mine").read_text() == "mine"
    assert not (out.target / "x.npy").is_symlink()
    assert (out.target / "x.npy").read_text() == "x"
    out.close()


def test_a_second_name_of_a_file_is_replaced_and_the_first_kept(home: Path) -> None:
    out = output(home, "x.npy")
    (out.folder / "x.npy").write_text("x")
    out.target.mkdir()
    os.link(home / "mine", out.target / "x.npy")
    out.copy_out(only(("x.npy",)))
    assert (home / "mine").read_text() == "mine"
    out.close()


def test_a_folder_on_the_way_that_is_a_link_is_not_entered(home: Path) -> None:
    out = output(home, "steps/mine")
    (out.folder / "steps").mkdir()
    (out.folder / "steps" / "mine").write_text("x")
    out.target.mkdir()
    (out.target / "steps").symlink_to(home)
    with pytest.raises(OSError, match="steps"):
        out.copy_out(only(("steps/mine",)))
    assert os.listdir(home) == ["mine"]
    assert (home / "mine").read_text() == "mine"
    out.close()


class Client(QObject):
    """Stands for the client of a child in a sandbox, which is never asked."""

    hands_over = True

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[object] = []

    def client(self, _role: object) -> Client:
        return self

    def request(self, query: object, *_: object) -> None:
        self.asked.append(query)


def test_what_a_child_is_given_is_written_through_no_link(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code in the sandbox sees the new folder as soon as it is there, and puts a link into it."""
    rules = home.parent / "rules.npy"
    rules.write_text("hostile")
    new_folder = SandboxFolder.new_folder

    def with_link(self: SandboxFolder) -> Path:
        folder = new_folder(self)
        (folder / rules.name).symlink_to(home / "mine")
        return folder

    monkeypatch.setattr(SandboxFolder, "new_folder", with_link)
    client: Any = Client()
    problems: list[Problem] = []
    params = SaveValuesQuery(
        recipe=Recipe(source=Source(spec="sample:matmul")), name="x", file=str(rules)
    )
    ask_for_file(client, params, problems.append, problems.append)
    assert (home / "mine").read_text() == "mine"
    assert [each.where for each in problems] == [str(rules)]
    assert client.asked == []
