"""ONNX models, and modules of torch.jit, are opened from files, and give what they gave there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from lowerscope.core.files.sources import parse_input
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Dimension, Recipe, Source
from lowerscope.core.sources import onnx_models
from lowerscope.core.stages import Pipeline

F = TensorProto.FLOAT
node = helper.make_node


def saved(
    path: Path, nodes: list[Any], shape: list[int | str], arrays: dict[str, Any], outputs: list[str]
) -> Path:
    """Write a model of one input ``x``."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", F, shape)],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in arrays.items()],
    )
    sets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), path)
    return path


def mixed(path: Path, batch: int | str) -> Path:
    """Write a model with a convolution, shapes of sizes, a branch, and operators TVM lacks."""
    random = np.random.default_rng(0)
    names = [helper.make_tensor_value_info(name, F, None) for name in ("then", "else")]
    branches = [
        helper.make_graph([node(kind, ["c"], [each.name])], each.name, [], [each])
        for kind, each in zip(("Abs", "Neg"), names, strict=True)
    ]
    nodes = [
        node("Conv", ["x", "conv.weight", "conv.bias"], ["c0"], name="/conv/Conv", pads=[1] * 4),
        node("Relu", ["c0"], ["c"], name="/act/Relu"),
        node("ReduceSum", ["c"], ["total"], keepdims=0),
        node("Greater", ["total", "limit"], ["positive"]),
        node("If", ["positive"], ["signed"], then_branch=branches[0], else_branch=branches[1]),
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "first"], ["size"]),
        node("Concat", ["size", "rest"], ["wanted"], axis=0),
        node("Reshape", ["signed", "wanted"], ["flat"]),
        node("QuantizeLinear", ["flat", "scale", "zero"], ["quantised"]),
        node("DequantizeLinear", ["quantised", "scale", "zero"], ["back"]),
        node("Gemm", ["back", "weight"], ["y"], transB=1),
        node("IsInf", ["y"], ["infinite"], detect_negative=0),
        node("Celu", ["y"], ["z"], alpha=0.5),
    ]
    arrays = {
        "conv.weight": random.normal(size=(4, 3, 3, 3)).astype("float32"),
        "conv.bias": random.normal(size=4).astype("float32"),
        "limit": np.float32(0),
        "first": np.array([0]),
        "rest": np.array([-1]),
        "scale": np.float32(0.05),
        "zero": np.uint8(3),
        "weight": random.normal(size=(5, 100)).astype("float32"),
    }
    return saved(path, nodes, [batch, 3, 5, 5], arrays, ["z", "infinite", "wanted"])


@pytest.mark.parametrize("strategy", ["high-level", "te", "library"])
def test_a_model_of_onnx_gives_what_onnxruntime_does(tmp_path: Path, strategy: Any) -> None:
    path = mixed(tmp_path / "net.onnx", 2)
    recipe = Recipe(source=Source(spec=str(path)), lowering=strategy)
    pipeline = Pipeline()
    record = pipeline.answer(RunQuery(recipe))
    assert (record.verdict, record.reference) == ("match", "onnxruntime"), record.reason
    assert [each.name for each in record.outputs] == ["z", "infinite", "wanted"]
    assert not [each.id for each in record.nodes if each.matches is False]
    stages = pipeline.stages(recipe)
    nodes = stages.lowered.nodes
    assert nodes["conv_conv"].strategy == strategy
    assert "runs in onnxruntime" in nodes["celu"].reason or strategy == "library"
    assert not nodes["reshape"].reason, "its shape is a constant"
    names = dict(stages.loaded.model.named_parameters())
    assert {"conv.weight", "conv.bias", "weight"} <= set(names)


def test_dimensions_of_onnx_have_names(tmp_path: Path) -> None:
    path = mixed(tmp_path / "net.onnx", "batch")
    recipe = Recipe(source=Source(spec=str(path)))
    with pytest.raises(LowerscopeError, match="--input x=batch,3,5,5:float32 with your"):
        Pipeline().answer(RunQuery(recipe))
    batch = Dimension(name="batch", low=1, high=6)
    recipe = msgspec.structs.replace(
        recipe, inputs=(parse_input("x=batch,3,5,5"),), dimensions=(batch,)
    )
    record = Pipeline().answer(RunQuery(recipe))
    assert {each.verdict for each in record.sizes} == {"match"}
    assert len(record.sizes) > 1


def external(path: Path) -> str:
    weight = numpy_helper.from_array(np.ones((4, 4), "float32"), "w")
    graph = helper.make_graph(
        [node("MatMul", ["x", "w"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", F, [1, 4])],
        [helper.make_tensor_value_info("y", F, [1, 4])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.save(model, path, save_as_external_data=True, location="data.bin", size_threshold=0)
    return str(path)


def outside(path: Path) -> str:
    external(path)
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data[0].value = "../data.bin"
    path.write_bytes(model.SerializeToString())
    return str(path)


def without_data(path: Path) -> str:
    external(path)
    (path.parent / "data.bin").unlink()
    return str(path)


def garbage(path: Path) -> str:
    path.write_bytes(b"\x08\x08garbage")
    return str(path)


def incomplete(path: Path) -> str:
    return str(saved(path, [node("Add", ["x", "b"], ["y"])], [1], {}, ["y"]))


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (outside, "the data of w is outside of the model's folder"),
        (without_data, "the file with the data of w is missing"),
        (garbage, "this ONNX model cannot be read"),
        (incomplete, "no node computes b"),
    ],
)
def test_what_is_no_whole_model_of_onnx_is_rejected(
    tmp_path: Path, write: Callable[[Path], str], words: str
) -> None:
    source = Source(spec=write(tmp_path / "net.onnx"))
    with pytest.raises(LowerscopeError, match=words) as caught:
        Pipeline().stages(Recipe(source=source)).opened  # noqa: B018
    assert "\n" not in caught.value.problem.line()


def test_external_data_is_read_and_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(spec=external(tmp_path / "net.onnx"))
    opened = Pipeline().stages(Recipe(source=source)).opened
    assert tmp_path / "data.bin" in opened.files
    monkeypatch.setattr(onnx_models, "find_spec", lambda name: None)
    with pytest.raises(LowerscopeError, match=r"requires the package onnx.*lowerscope\[onnx\]"):
        Pipeline().stages(Recipe(source=source)).opened  # noqa: B018


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_a_saved_module_of_torch_jit_is_a_model(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
    path = tmp_path / "net.pt"
    torch.jit.save(torch.jit.trace(model, torch.ones(1, 4)), str(path))  # type: ignore[no-untyped-call]
    recipe = Recipe(source=Source(spec=str(path)), inputs=(parse_input("2,4"),))
    assert Pipeline().answer(RunQuery(recipe, quick=True)).verdict == "match"
    torch.save(model.state_dict(), path)
    with pytest.raises(LowerscopeError, match=r"this \.pt file holds weights"):
        Pipeline().answer(RunQuery(recipe))


def test_names_of_inputs_may_be_paths() -> None:
    assert parse_input("past.0.key=1,2").name == "past_0_key"
