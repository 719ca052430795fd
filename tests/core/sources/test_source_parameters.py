"""Loading parameters: the course's pickle, state dictionaries, and what is refused."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.recipe import Source
from lowerscope.core.sources.parameters import load_into, read_arrays
from tests.opening import load
from tests.problems import problem_of

SHAPES = {"w0": (128, 784), "b0": (128,), "w1": (10, 128), "b1": (10,)}


def course_arrays() -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(0)
    return {key: random.standard_normal(shape).astype("f4") for key, shape in SHAPES.items()}


def problem(source: Source) -> Problem:
    return problem_of(load, source, (), 0)


def saved(path: Path, value: object, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", range(6))
def test_the_courses_pickle_fits_fashion_mlp(tmp_path: Path, protocol: int) -> None:
    arrays = course_arrays()
    file = saved(tmp_path / "fasionmnist_mlp_params.pkl", arrays, protocol)
    loaded = load(Source(spec="sample:fashion_mlp", params=str(file)), (), 0)
    x = np.random.default_rng(1).random((1, 784), dtype=np.float32)
    expected = np.maximum(x @ arrays["w0"].T + arrays["b0"], 0) @ arrays["w1"].T + arrays["b1"]
    assert loaded.model is not None
    with torch.no_grad():
        found = loaded.model(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert file in loaded.files


def test_numbered_names_skip_the_norms(tmp_path: Path) -> None:
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 3), torch.nn.LayerNorm(3), torch.nn.Linear(3, 1, bias=False)
    )
    arrays = {"w0": np.ones((3, 2)), "b0": np.zeros(3), "w1": np.full((1, 3), 2.0)}
    with pytest.raises(LowerscopeError, match=r"missing: 1\.weight, 1\.bias"):
        load_into(model, arrays, "p.pkl")
    with pytest.raises(LowerscopeError, match="no layer for b1"):
        load_into(model, {**arrays, "b1": np.zeros(1)}, "p.pkl")
    model[1] = torch.nn.ReLU()
    load_into(model, arrays, "p.pkl")
    assert model[2].weight.tolist() == [[2, 2, 2]]


def test_parameters_of_an_ir_module_are_its_arguments(tmp_path: Path) -> None:
    arrays = course_arrays()
    file = saved(tmp_path / "p.pkl", arrays)
    loaded = load(Source(spec="sample:mlp_tvmscript", params=str(file)), (), 0)
    assert [entry.name for entry in loaded.inputs] == ["x", *arrays]
    assert [entry.origin for entry in loaded.inputs[1:]] == ["p.pkl"] * 4
    assert np.array_equal(loaded.inputs[1].value.numpy(), arrays["w0"])
    wrong = saved(tmp_path / "wrong.pkl", {"v": arrays["w0"]})
    found = problem(Source(spec="sample:mlp_tvmscript", params=str(wrong)))
    assert "main has no parameter called v" in found.what


def test_parameters_that_do_not_fit(tmp_path: Path) -> None:
    arrays = course_arrays()

    def said(value: object) -> str:
        file = saved(tmp_path / "p.pkl", value)
        return problem(Source(spec="sample:fashion_mlp", params=str(file))).line()

    assert "w0 has the shape (784, 128), but linear0.weight has (128, 784)" in said(
        {**arrays, "w0": arrays["w0"].T}
    )
    assert "no layer for w2" in said({**arrays, "w2": arrays["w1"]})
    assert "missing: linear1.bias" in said({key: arrays[key] for key in ("w0", "b0", "w1")})
    assert "no parameter called weight. It has linear0.weight, linear0.bias" in said(
        {"weight": arrays["w0"]}
    )
    assert "holds a list, not a dictionary" in said([1])
    assert "holds a dict, not a dictionary of names" in said({1: arrays["w0"]})
    assert "w0 is not an array of numbers but str" in said({"w0": "text"})
    assert "w0 is not an array of numbers but object" in said({"w0": np.array([{}])})


def test_parameter_files_that_cannot_be_read(tmp_path: Path) -> None:
    whole = saved(tmp_path / "p.pkl", course_arrays()).read_bytes()
    torch.save([torch.zeros(2)], tmp_path / "p.pt")
    for name, data, expected in (
        ("cut.pkl", whole[:-100], "not a pickle of NumPy arrays (UnpicklingError: pickle data was"),
        ("empty.pkl", b"", "not a pickle of NumPy arrays (EOFError"),
        ("text.pkl", b"hello", "not a pickle of NumPy arrays"),
        ("cut.npz", b"PK\x03\x04abc", "not an archive of NumPy arrays"),
        ("p.pt", (tmp_path / "p.pt").read_bytes(), "it holds a list, not a dictionary"),
        ("cut.pt", (tmp_path / "p.pt").read_bytes()[:-30], "not an archive of NumPy arrays"),
    ):
        (tmp_path / name).write_bytes(data)
        source = Source(spec="sample:fashion_mlp", params=str(tmp_path / name))
        assert expected in problem(source).what, name
    missing = Source(spec="sample:fashion_mlp", params=str(tmp_path / "none.pkl"))
    assert "there is no such file" in problem(missing).what


# Files of safetensors, and what is refused of them


KINDS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "bool": "BOOL"}


def written(path: Path, tensors: dict[str, torch.Tensor]) -> Path:
    """Write tensors as the format's page says."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    values = b""
    for name, tensor in tensors.items():
        data = tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()
        header[name] = {
            "dtype": KINDS[str(tensor.dtype).removeprefix("torch.")],
            "shape": list(tensor.shape),
            "data_offsets": [len(values), len(values) + len(data)],
        }
        values += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + values)
    return path


def test_a_state_dictionary_is_loaded_in_every_dtype(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    state = {key: torch.randn(each.shape) for key, each in model.named_parameters()}
    state["0.bias"] = state["0.bias"].bfloat16()
    state["1.weight"] = state["1.weight"].half()
    state["1.num_batches_tracked"] = torch.tensor(7)
    arrays = read_arrays(written(tmp_path / "model.safetensors", state))
    load_into(model, arrays, "model.safetensors")
    for key, wanted in state.items():
        assert torch.equal(model.state_dict()[key], wanted.to(model.state_dict()[key].dtype)), key


def test_what_is_damaged_is_refused_in_a_line(tmp_path: Path) -> None:
    whole = written(tmp_path / "a.safetensors", {"w": torch.ones(2, 3)}).read_bytes()
    header = whole[8:-24]
    for data in (
        b"",
        whole[:20],
        whole[:-1],
        struct.pack("<Q", 2**62) + whole[8:],
        struct.pack("<Q", 4) + b"[[1]",
        whole.replace(b"[2, 3]", b"[2,30]"),
        whole.replace(b"F32", b"F99"),
        whole.replace(b'"shape"', b'"shapE"'),
        whole.replace(header, b"[" * len(header)),
    ):
        (tmp_path / "bad.safetensors").write_bytes(data)
        line = problem_of(read_arrays, tmp_path / "bad.safetensors").line()
        assert "not a file of safetensors" in line
    names = {f"encoder.{number}.weight": np.ones(2) for number in range(300)}
    problem = problem_of(load_into, torch.nn.Linear(2, 2), names, "x.safetensors")
    assert "and 288 more" in problem.what
