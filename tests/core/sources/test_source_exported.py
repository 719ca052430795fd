"""Opening exported programs: the harmless ones, the damaged ones, and those that run code."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import InputSpec, Source
from lowerscope.core.sources.opened_model import LoadedModel
from tests.opening import load
from tests.problems import problem_of


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3)
        self.shift = torch.arange(3.0)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.norm(self.linear(x)) * y[: x.shape[0]] + self.shift


Change = Callable[[str, bytes], bytes]
INPUTS = (torch.randn(2, 4), torch.randn(2, 3))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an exported program with parameters, buffers, constants and a symbolic shape."""
    file = tmp_path_factory.mktemp("programs") / "net.pt2"
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", min=2, max=64)
    shapes = ({0: batch}, {0: batch})
    torch.export.save(torch.export.export(Net().eval(), INPUTS, dynamic_shapes=shapes), file)
    return file


def opened(file: Path, *, trust: bool = False) -> LoadedModel:
    return load(Source(spec=str(file), trust=trust), (), 0)


def problem(file: Path, **changes: Any) -> Problem:
    found = problem_of(load, Source(spec=str(file), **changes), (), 0)
    assert len(found.line()) < 500
    return found


def changed(program: Path, file: Path, change: Change, **more: bytes) -> Path:
    """Write a copy of an archive with changed and additional members."""
    with zipfile.ZipFile(program) as old, zipfile.ZipFile(file, "w") as new:
        for entry in old.infolist():
            new.writestr(entry, change(entry.filename, old.read(entry)))
        root = old.namelist()[0].partition("/")[0]
        for name, content in more.items():
            new.writestr(f"{root}/{name}", content)
    return file


def test_a_program_opens_with_its_own_inputs(program: Path) -> None:
    loaded = opened(program)
    assert loaded.title == "net.pt2"
    assert loaded.exported is not None
    assert loaded.model is not None
    assert [entry.name for entry in loaded.inputs] == ["x", "y"]
    assert loaded.inputs[0].origin == "example inputs of net.pt2"
    torch.manual_seed(0)
    expected = Net().eval()(*INPUTS)
    found = loaded.model(*(entry.value for entry in loaded.inputs))
    assert torch.allclose(found, expected)
    drawn = load(Source(spec=str(program)), (InputSpec(shape=(5, 4)), InputSpec(shape=(5, 3))), 0)
    assert drawn.inputs[0].value.shape == (5, 4)


@pytest.mark.parametrize("part", [0.0, 0.02, 0.5, 0.9, 0.999])
def test_a_truncated_program_is_one_line(program: Path, tmp_path: Path, part: float) -> None:
    data = program.read_bytes()
    file = tmp_path / "cut.pt2"
    file.write_bytes(data[: int(len(data) * part)])
    found = problem(file)
    assert "truncated, damaged or of another version" in found.what
    assert found.where == str(file)
    assert found.todo == "Export it again with torch.export.save"


def test_what_is_no_exported_program(program: Path, tmp_path: Path) -> None:
    noise = tmp_path / "noise.pt2"
    noise.write_bytes(bytes(range(256)) * 50)
    assert "cannot be read" in problem(noise).what
    checkpoint = tmp_path / "checkpoint.pt2"
    torch.save({"a": torch.zeros(2)}, checkpoint)
    assert "this is not an exported program" in problem(checkpoint).what
    archive = tmp_path / "archive.pt2"
    with zipfile.ZipFile(archive, "w") as new:
        new.writestr("a/b", "c")
    assert "cannot be read" in problem(archive).what

    def broken(name: str, content: bytes) -> bytes:
        return b'{"graph_module": {}}' if name.endswith("models/model.json") else content

    assert "cannot be read" in problem(changed(program, tmp_path / "b.pt2", broken)).what
