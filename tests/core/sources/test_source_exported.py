"""Opening exported programs: the harmless ones, the damaged ones, and those that run code."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.recipe import InputSpec, Source
from lowerscope.core.sources.opened_model import LoadedModel
from lowerscope.core.sources.program_text import harmless_expression, harmless_target
from tests.opening import load


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
    with pytest.raises(LowerscopeError) as caught:
        load(Source(spec=str(file), **changes), (), 0)
    assert "\n" not in caught.value.problem.line()
    assert len(caught.value.problem.line()) < 500
    return caught.value.problem


def changed(program: Path, file: Path, change: Change, **more: bytes) -> Path:
    """Write a copy of an archive with changed and additional members."""
    with zipfile.ZipFile(program) as old, zipfile.ZipFile(file, "w") as new:
        for entry in old.infolist():
            new.writestr(entry, change(entry.filename, old.read(entry)))
        root = old.namelist()[0].partition("/")[0]
        for name, content in more.items():
            new.writestr(f"{root}/{name}", content)
    return file


def same(name: str, content: bytes) -> bytes:
    return content


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


@pytest.mark.filterwarnings("ignore:The tensor attributes self._flat_weights:UserWarning")
@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()),
        nn.TransformerEncoderLayer(3, 1, 8, batch_first=True),
        nn.LSTM(3, 5),
    ],
)
def test_ordinary_programs_are_not_refused(tmp_path: Path, model: nn.Module) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 3, 8, 8) if isinstance(model, nn.Sequential) else torch.randn(2, 4, 3)
    file = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(model.eval(), (x,)), file)
    found = opened(file).model
    assert found is not None
    first = found(x)
    expected = model(x)
    assert torch.allclose(
        first if isinstance(first, torch.Tensor) else first[0],
        expected if isinstance(expected, torch.Tensor) else expected[0],
        atol=1e-6,
    )


def test_weights_that_begin_as_text_or_a_pickle_open(program: Path, tmp_path: Path) -> None:
    for start in (b"{\x01\xff", b"\x80\x04\xff", b"\x82\x01", b"PK\xff", b" {}"):

        def inject(name: str, content: bytes, start: bytes = start) -> bytes:
            return start + content[len(start) :] if name.endswith("weight_0") else content

        assert opened(changed(program, tmp_path / "w.pt2", inject)).model is not None


def test_weights_that_share_memory_open(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = nn.Linear(4, 4)
            self.b.weight = self.a.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x.half().float()))

    file = tmp_path / "tied.pt2"
    torch.export.save(torch.export.export(Tied(), (torch.zeros(1, 4),)), file)
    assert opened(file).model is not None


@pytest.mark.parametrize("part", [0.0, 0.02, 0.5, 0.9, 0.999])
def test_a_truncated_program_is_one_line(program: Path, tmp_path: Path, part: float) -> None:
    data = program.read_bytes()
    file = tmp_path / "cut.pt2"
    file.write_bytes(data[: int(len(data) * part)])
    found = problem(file)
    assert "cut off, damaged or of another version" in found.what
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


def test_options_that_have_no_meaning(program: Path) -> None:
    assert "the entry Net has no meaning" in problem(program, entry="Net").what
    assert "--params" in problem(program, params=str(program)).what
    assert "takes no arguments" in problem(program, args='{"a": 1}').what


class Touch:
    """Creates a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.touch, (self.file,)


def refused(file: Path, marker: Path, name: str) -> None:
    found = problem(file)
    assert found.code == "trust"
    assert "opening it would run code" in found.what
    assert name in found.what
    assert "--trust" in found.todo
    assert not marker.exists()


@pytest.mark.parametrize("legacy", [False, True])
def test_a_pickle_with_code_in_the_example_inputs(
    program: Path, tmp_path: Path, legacy: bool
) -> None:
    marker = tmp_path / "ran"
    buffer = io.BytesIO()
    torch.save(((Touch(marker),), {}), buffer, _use_new_zipfile_serialization=not legacy)

    def inject(name: str, content: bytes) -> bytes:
        return buffer.getvalue() if name.endswith("sample_inputs/model.pt") else content

    file = changed(program, tmp_path / "evil.pt2", inject)
    refused(file, marker, "an import of pathlib.P")
    with pytest.raises(LowerscopeError):
        opened(file, trust=True)
    assert marker.exists(), "what is refused must be what runs"


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_with_code_under_any_name(program: Path, tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "ran"
    evil = pickle.dumps(Touch(marker), protocol=protocol)
    for name in ("data/weights/weight_9", "extra/notes.txt", "data/anything"):
        refused(changed(program, tmp_path / "e.pt2", same, **{name: evil}), marker, "an import of")


def test_a_weight_that_is_a_pickle(program: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    def inject(name: str, content: bytes) -> bytes:
        if name.endswith("model_weights_config.json"):
            config = json.loads(content)
            config["config"]["linear.weight"]["use_pickle"] = True
            return json.dumps(config).encode()
        if name.endswith("weights/weight_0"):
            buffer = io.BytesIO()
            torch.save(Touch(marker), buffer)
            return buffer.getvalue()
        return content

    refused(changed(program, tmp_path / "e.pt2", inject), marker, "an import of")


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("torch.ops.aten.mul.Tensor", "torch.hub.os.system", "torch.hub.os.system"),
        ("torch.ops.aten.mul.Tensor", "torch.ops.load_library", "load_library"),
        ("torch.ops.aten.mul.Tensor", "torch.ops.aten.from_file", "from_file"),
        ("torch.ops.aten.mul.Tensor", "_operator.call", "_operator.call"),
        ("Symbol('s", "exec('1') or Symbol('s", "the expression"),
        ('"name": "linear"', '"name": "x\\"), 1)"', "the name"),
        ('"in_spec": "', '"in_spec": "{__enum__}', "the description"),
    ],
)
def test_text_that_torch_would_run(
    program: Path, tmp_path: Path, old: str, new: str, name: str
) -> None:
    def inject(member: str, content: bytes) -> bytes:
        if not member.endswith("models/model.json"):
            return content
        assert old in content.decode()
        return content.decode().replace(old, new).encode()

    refused(changed(program, tmp_path / "e.pt2", inject), tmp_path / "ran", name)


def test_an_expression_with_code_is_refused_and_never_run(program: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"

    def inject(member: str, content: bytes) -> bytes:
        code = f"open('{marker}', 'w') or Symbol('s"
        return content.replace(b"Symbol('s", code.encode())

    refused(changed(program, tmp_path / "e.pt2", inject), marker, "the expression")


def test_libraries_and_objects_are_refused(program: Path, tmp_path: Path) -> None:
    library = {"data/aotinductor/model/lib.so": b"\x7fELF"}
    refused(changed(program, tmp_path / "a.pt2", same, **library), tmp_path / "x", "library")
    thing = {"data/constants/opaque_obj_0": b"anything"}
    refused(changed(program, tmp_path / "b.pt2", same, **thing), tmp_path / "x", "an object")


@pytest.mark.parametrize(
    "text",
    [
        "Symbol('s0', positive=True, integer=True)",
        "Add(Mul(Integer(-1), Symbol('s1', integer=True)), Integer(3))",
        "FloorDiv(s0 + 2, 3)",
        "Max(1, u0)",
        "Float('0.5', precision=53)",
        "oo",
        "s0*s1 - 1 >= 2",
    ],
)
def test_arithmetic_is_harmless(text: str) -> None:
    assert harmless_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "open(chr(47))",
        "Symbol.__class__",
        "(lambda: 1)()",
        "[x for x in s0]",
        "Symbol('s0').func",
        "eval(s0)",
        "Symbol('a b; c')",
        "Integer(1)[0]",
        "f(",
    ],
)
def test_anything_else_is_not(text: str) -> None:
    assert not harmless_expression(text)


@pytest.mark.parametrize(
    ("target", "harmless"),
    [
        ("torch.ops.aten.linear.default", True),
        ("torch.ops.higher_order.cond", True),
        ("_operator.getitem", True),
        ("torch.sym_max", True),
        ("math.trunc", True),
        ("torch.ops.aten._assert_tensor_metadata.default", True),
        ("torch.ops.aten.__and__.Tensor", True),
        ("torch.ops.aten", False),
        ("torch.ops.aten.__class__", False),
        ("torch.ops.aten.save.default", False),
        ("torch.load", False),
        ("_operator.methodcaller", False),
        ("mathematics.os", False),
        ("os.system", False),
    ],
)
def test_targets(target: str, harmless: bool) -> None:
    assert harmless_target(target) == harmless
