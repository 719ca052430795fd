"""The command line's form of a source and its inputs, and the files behind it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowerscope.core.files.sources import FLOATS, parse_input, parse_spec, source_files
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import InputSpec, Source
from tests.diagonal import many
from tests.problems import problem_of
from tests.soak.bad_files import numbers
from tests.soak.opening_bad_files import open_bad_files


def message(call: object, *arguments: object) -> str:
    assert callable(call)
    return problem_of(call, *arguments).line()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sample:fashion_mlp", ("sample:fashion_mlp", "")),
        ("sample:resnet18:BasicBlock", ("sample:resnet18", "BasicBlock")),
        ("model.py", ("model.py", "")),
        ("model.py:Net", ("model.py", "Net")),
        ("a/b.py:make.net", ("a/b.py", "make.net")),
        ("program.pt2", ("program.pt2", "")),
        (r"C:\models\net.py", (r"C:\models\net.py", "")),
        (r"C:\models\net.py:Net", (r"C:\models\net.py", "Net")),
        ("C:/models/net.py", ("C:/models/net.py", "")),
        ("missing:folder/net.py", ("missing:folder/net.py", "")),
    ],
)
def test_a_source_is_split_from_its_entry(text: str, expected: tuple[str, str]) -> None:
    assert parse_spec(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=1,784:float32", InputSpec(name="x", shape=(1, 784), dtype="float32")),
        ("1,784", InputSpec(shape=(1, 784))),
        ("x = 1, 784 : float16", InputSpec(name="x", shape=(1, 784), dtype="float16")),
        ("x=(1,784)", InputSpec(name="x", shape=(1, 784))),
        ("x=5", InputSpec(name="x", shape=(5,))),
        ("mask=1,length+1", InputSpec(name="mask", shape=(1, "length + 1"))),
        ("s=():float32", InputSpec(name="s", shape=(), dtype="float32")),
        ("t=1,7:int64[0,50)", InputSpec(name="t", shape=(1, 7), dtype="int64", low=0, high=50)),
        ("t=7:int8[-3,4)", InputSpec(name="t", shape=(7,), dtype="int8", low=-3, high=4)),
        ("x=shoe.png", InputSpec(name="x", file="shoe.png")),
        ("shoe.JPG", InputSpec(file="shoe.JPG")),
        ("x=a=b.npy", InputSpec(name="x", file="a=b.npy")),
        ("x=C:\\x.npz", InputSpec(name="x", file="C:\\x.npz")),
        (
            "x=a@b.png@1,1,28,28:float32",
            InputSpec(name="x", file="a@b.png", shape=(1, 1, 28, 28), dtype="float32"),
        ),
        ("x=x.npy@:int64", InputSpec(name="x", file="x.npy", dtype="int64")),
    ],
)
def test_an_input_is_read(text: str, expected: InputSpec) -> None:
    assert parse_input(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=", "nothing is given"),
        ("", "nothing is given"),
        ("x=:float32", "the shape is missing"),
        ("x=1,n-1:float32", "neither a shape nor a readable file"),
        ("x=notes.txt", "neither a shape nor a readable file"),
        ("x=1,-784", "the extents (1, -784) must be 1 or more"),
        ("x=0", "the extents (0) must be 1 or more"),
        ("x=1,784:float", "no dtype called 'float'"),
        ("x=1,784:float32[0,5)", "a range is for random integers, not for float32"),
        ("x=3:bool[0,2)", "not for bool"),
        ("x=3:int8[0,500)", "[0,500) is not a range of int8"),
        ("x=3:uint8[-1,5)", "[-1,5) is not a range of uint8"),
        ("x=3:int64[5,5)", "[5,5) is not a range of int64"),
        ("x=x.npy@3:int64[0,5)", "not for a file"),
    ],
)
def test_what_no_input_can_be_is_said(text: str, expected: str) -> None:
    line = message(parse_input, text)
    assert line.startswith(f"--input {text}: ")
    assert expected in line


@given(st.text(max_size=30))
def test_any_text_is_an_input_or_one_line(text: str) -> None:
    try:
        spec = parse_input(text)
    except LowerscopeError:
        return
    assert spec.file or spec.shape is not None
    assert spec.low is None or spec.dtype not in FLOATS


def test_source_files_follow_what_the_file_imports(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    for name, text in {
        "net.py": "import core.layers\nfrom blocks import Block\nimport torch\nFILE = 'w.npz'\n",
        "blocks.py": "import other\n",
        "other.py": "from . import nothing\n",
        "unrelated.py": "",
        "core/__init__.py": "",
        "core/layers.py": "from .norms import Norm\nfrom . import extra\n",
        "core/norms.py": "",
        "core/extra.py": "",
        "w.npz": "",
        "params.pkl": "",
        "x.npy": "",
    }.items():
        (tmp_path / name).write_text(text)
    found = source_files(
        Source(spec=str(tmp_path / "net.py"), params=str(tmp_path / "params.pkl")),
        (InputSpec(file=str(tmp_path / "x.npy")), InputSpec(file=str(tmp_path / "none.npy"))),
    )
    assert found[0] == tmp_path / "net.py"
    assert {file.relative_to(tmp_path).as_posix() for file in found} == {
        "net.py",
        "blocks.py",
        "other.py",
        "core/__init__.py",
        "core/layers.py",
        "core/norms.py",
        "core/extra.py",
        "w.npz",
        "params.pkl",
        "x.npy",
    }


def test_what_the_window_reads_imports_no_torch() -> None:
    code = (
        "import sys\n"
        "import lowerscope.core.files.samples, lowerscope.core.files.sources\n"
        "assert len(lowerscope.core.files.samples.SAMPLES) == 8\n"
        "assert not {'torch', 'tvm', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Bad files: a clear error each, nothing executed, nothing left behind


COUNT = many(40)


def test_bad_files_are_refused_clearly(tmp_path: Path) -> None:
    tally, wrong = open_bad_files(tmp_path, COUNT)
    assert not wrong, "\n".join(wrong)
    assert tally.total == len(list(numbers(COUNT)))
    assert tally.refused > COUNT / 3
