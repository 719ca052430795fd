"""The inputs of a model: drawn, read from files, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lowerscope.core.files.sources import parse_input
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import Source
from lowerscope.core.sources.examples import ExampleInput
from lowerscope.core.sources.pytree import SparseTensor
from tests.opening import load
from tests.problems import problem_of

MODEL = """
import torch
from torch import nn
class Net(nn.Module):
    def forward(self, {parameters}):
        return 0
"""


def write(folder: Path, parameters: str, more: str = "") -> Path:
    file = folder / "net.py"
    file.write_text(MODEL.format(parameters=parameters) + more)
    return file


def inputs(file: Path, *options: str, seed: int = 0) -> tuple[ExampleInput, ...]:
    return load(Source(spec=str(file)), tuple(map(parse_input, options)), seed).inputs


def problem(file: Path, *options: str) -> Problem:
    return problem_of(inputs, file, *options)


def test_random_values_have_the_shape_dtype_and_range(tmp_path: Path) -> None:
    file = write(tmp_path, "a, b, c, d, e")
    a, b, c, d, e = inputs(
        file, "1000", "b=2,3:float16", "c=500:int64[5,9)", "d=400:uint8", "e=64:bool", seed=3
    )
    assert (a.name, a.value.dtype, a.origin) == ("a", torch.float32, "random, seed 3")
    assert abs(float(a.value.mean())) < 0.1
    assert abs(float(a.value.std()) - 1) < 0.1
    assert (tuple(b.value.shape), b.value.dtype) == ((2, 3), torch.float16)
    assert sorted(c.value.unique().tolist()) == [5, 6, 7, 8]
    assert c.origin == "random in [5,9), seed 3"
    assert sorted(d.value.unique().tolist()) == list(range(10))
    assert d.value.dtype == torch.uint8
    assert e.value.dtype == torch.bool
    assert 0 < int(e.value.sum()) < 64


def test_random_values_have_the_dtype_of_the_example(tmp_path: Path) -> None:
    made = "\ndef example_inputs(): return torch.ones(2, 3, dtype=torch.int64), torch.ones(4)\n"
    a, b = inputs(write(tmp_path, "a, b", made), "a=5", "b=6:float64")
    assert (a.value.dtype, tuple(a.value.shape)) == (torch.int64, (5,))
    assert b.value.dtype == torch.float64


def test_an_example_that_gives_dtypes_alone_may_fail_and_adds_no_inputs(tmp_path: Path) -> None:
    (a,) = inputs(write(tmp_path, "a", "\ndef example_inputs(): raise ValueError\n"), "a=5")
    assert a.value.dtype == torch.float32
    made = "\ndef example_inputs(): return torch.ones(2, dtype=torch.int64), torch.ones(4)\n"
    (a,) = inputs(write(tmp_path, "a, b=None", made), "a=5")
    assert a.value.dtype == torch.int64


def test_the_seed_decides_the_values(tmp_path: Path) -> None:
    file = write(tmp_path, "x")
    first, again, other = (inputs(file, "x=5", seed=seed)[0].value for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    torch.manual_seed(1)
    assert torch.equal(first, torch.randn(5))


def test_example_inputs_are_the_entrys_before_the_files(tmp_path: Path) -> None:
    of_file = "\ndef example_inputs(): return (torch.zeros(1),)\n"
    assert inputs(write(tmp_path, "x", of_file))[0].value.shape == (1,)
    of_class = "\n    @staticmethod\n    def example_inputs(): return (torch.zeros(2),)\n"
    found = inputs(write(tmp_path, "x", of_class + of_file))[0]
    assert found.value.shape == (2,)
    assert found.origin == "example_inputs of net.py"
    of_instance = "\n    def example_inputs(self): return torch.zeros(3)\n"
    assert inputs(write(tmp_path, "x", of_instance))[0].value.shape == (3,)
    of_value = "\nNet.example_inputs = torch.zeros(5)\n"
    assert inputs(write(tmp_path, "x", of_value))[0].value.shape == (5,)
    of_function = (
        "\ndef build(): return Net()\nbuild.example_inputs = lambda: [torch.zeros(4)]\n"
        "entry = 'build'\n"
    )
    assert inputs(write(tmp_path, "x", of_function + of_file))[0].value.shape == (4,)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("z=1",), "the model has no input called z. Its inputs are a, b"),
        (("a=1", "a=2"), "the input a is given twice"),
        (("1", "2", "3"), "3 inputs are given, but the model takes 2"),
    ],
)
def test_inputs_that_do_not_fit_the_model(
    tmp_path: Path, options: tuple[str, ...], expected: str
) -> None:
    assert expected in problem(write(tmp_path, "a, b"), *options).line()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("def example_inputs(): return 3", "a int, not a tuple of tensors"),
        ("def example_inputs(n): return 3", "callable without arguments"),
        ("def example_inputs(): return {'y': torch.zeros(1)}", "gives y by keyword, which"),
        ("def example_inputs(): return (torch.ones(1),), {'x': torch.ones(1)}", "gives x twice"),
        ("def example_inputs(): return torch.zeros(1), torch.zeros(1)", "2 inputs, but"),
        ("def example_inputs(): return ()", "the input x is not described"),
        ("def example_inputs(): return ({1},)", "of type set, not a tensor"),
        ("def example_inputs(): return torch.zeros(1, dtype=torch.float8_e5m2)", "float8_e5m2"),
        ("def example_inputs(): return torch.zeros(2, 2).to_sparse_csc()", "sparse"),
        ("def example_inputs(): raise RuntimeError('no')", "example inputs failed: Runtime"),
    ],
)  # fmt: skip
def test_example_inputs_that_cannot_be_used(tmp_path: Path, more: str, expected: str) -> None:
    assert expected in problem(write(tmp_path, "x", f"\n{more}\n")).line()


def test_values_from_numpy_files(tmp_path: Path) -> None:
    file = write(tmp_path, "x, y")
    x, y = np.arange(6, dtype=">f4").reshape(2, 3), np.array([1, 2], dtype=np.int64)
    np.save(tmp_path / "x.npy", x.T)
    np.savez(tmp_path / "both.npz", x=x, y=y)
    np.savez(tmp_path / "one.npz", anything=y)
    found = inputs(file, f"x={tmp_path}/x.npy", f"y={tmp_path}/one.npz")
    assert np.array_equal(found[0].value.numpy(), x.T)
    assert found[0].value.is_contiguous()
    assert (found[0].origin, found[1].origin) == ("x.npy", "one.npz")
    found = inputs(file, f"{tmp_path}/both.npz", f"y={tmp_path}/both.npz@2:int64")
    assert np.array_equal(found[0].value.numpy(), x)
    assert np.array_equal(found[1].value.numpy(), y)


def test_input_files_that_cannot_be_used(tmp_path: Path) -> None:
    file = write(tmp_path, "x")
    np.savez(tmp_path / "two.npz", a=np.zeros(1), b=np.zeros(1))
    np.save(tmp_path / "text.npy", np.array(["a"]))
    np.save(tmp_path / "x.npy", np.zeros((2, 3), dtype=np.float32))
    torch.save({"x": torch.zeros(1)}, tmp_path / "dict.pt")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-4])
    (tmp_path / "cut.npz").write_bytes((tmp_path / "two.npz").read_bytes()[:-30])
    (tmp_path / "cut.pt").write_bytes((tmp_path / "dict.pt").read_bytes()[:-30])
    (tmp_path / "empty.png").write_bytes(b"")
    for option, expected in {
        "none.npy": "there is no such file",
        "two.npz": "no array called x; it has a, b",
        "text.npy": "the dtype <U1 cannot be an input",
        "dict.pt": "it holds a dict, not a tensor",
        "cut.npy": "this is not a NumPy array",
        "cut.npz": "this is not an archive of NumPy arrays",
        "cut.pt": "this is not a tensor that loads without running code",
        "empty.png": "this is not an image",
        "x.npy@3,2": "its shape is (2, 3), not (3, 2)",
        "x.npy@2,3:float64": "its dtype is float32, not float64",
    }.items():
        assert expected in problem(file, f"x={tmp_path}/{option}").what, option
    (tmp_path / "folder.npy").mkdir()
    assert "this is a folder" in problem(file, f"x={tmp_path}/folder.npy").what


def test_pictures_are_made_to_fit(tmp_path: Path) -> None:
    file = write(tmp_path, "x", "\ndef example_inputs(): return torch.zeros(1, 784)\n")
    left = np.zeros((56, 56), dtype=np.uint8)
    left[:, :28] = 255
    Image.fromarray(left).save(tmp_path / "grey.png")
    Image.fromarray(np.stack([left, left * 0, left * 0], axis=2)).save(tmp_path / "red.png")
    alpha = np.dstack([np.full_like(left, 255)] * 3 + [left])
    Image.fromarray(alpha).save(tmp_path / "clear.png")
    Image.fromarray(left.astype(np.uint16) * 257).save(tmp_path / "deep.png")
    expected = torch.zeros(28, 28)
    expected[:, :14] = 1
    for name in ("grey", "clear", "deep"):
        value = inputs(file, f"x={tmp_path}/{name}.png")[0].value
        assert value.dtype == torch.float32
        assert value.shape == (1, 784)
        assert torch.allclose(value.reshape(28, 28)[:, 1:12], expected[:, 1:12], atol=0.01), name
        assert torch.allclose(value.reshape(28, 28)[:, 16:], expected[:, 16:], atol=0.01), name
    red = inputs(file, f"x={tmp_path}/red.png@1,3,28,28")[0].value
    assert red.shape == (1, 3, 28, 28)
    assert float(red[0, 0, 5, 5]) == 1
    assert float(red[0, 1:].abs().max()) == 0
    assert inputs(file, f"x={tmp_path}/grey.png@56,56")[0].value.shape == (56, 56)
    plain = write(tmp_path, "x")
    assert inputs(plain, f"x={tmp_path}/red.png")[0].value.shape == (1, 3, 56, 56)
    assert inputs(plain, f"x={tmp_path}/grey.png")[0].value.shape == (1, 1, 56, 56)
    assert "does not fit the shape (1, 7)" in problem(file, f"x={tmp_path}/grey.png@1,7").what


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((torch.tensor([0, 9, 2]), torch.tensor([0, 1]), torch.ones(2)), "crow_indices"),
        ((torch.tensor([0, 1, 2]), torch.tensor([0, 900]), torch.ones(2)), "col_indices"),
        ((torch.tensor([[0, 1], [0, 900]]), torch.ones(2)), "inconsistent|out of bounds"),
    ],
    ids=["row offsets", "columns", "indices"],
)
def test_indices_of_no_sparse_tensor_are_refused(
    parts: tuple[torch.Tensor, ...], said: str
) -> None:
    with pytest.raises(RuntimeError, match=said):
        SparseTensor(parts, torch.Size((2, 2))).whole()
