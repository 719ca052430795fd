"""ONNX models, and modules of torch.jit, are opened from files, and give what they gave there."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case import node as backend
from torch import nn

from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.files.sources import parse_input
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Dimension, InputSpec, Recipe, Source
from lowerscope.core.sources import onnx_models
from lowerscope.core.stages import Pipeline
from tests.diagonal import rows_at_length

F = TensorProto.FLOAT
node = helper.make_node


def saved(
    path: Path,
    nodes: list[Any],
    shape: list[int | str],
    arrays: dict[str, Any],
    outputs: list[str],
    version: int = 17,
) -> Path:
    """Write a model of one input ``x``."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", F, shape)],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in arrays.items()],
    )
    sets = [helper.make_opsetid("", version)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), path)
    return path


def mixed(path: Path, batch: int | str) -> Path:
    """Write a model with a convolution, shapes of sizes, and a branch."""
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
    record = pipeline.answer(RunQuery(recipe, quick=True))
    assert (record.verdict, record.reference) == ("match", "onnxruntime"), record.reason
    assert [each.name for each in record.outputs] == ["z", "infinite", "wanted"]
    assert not [each.id for each in record.nodes if each.matches is False]
    stages = pipeline.stages(recipe)
    nodes = stages.lowered.nodes
    assert nodes["conv_conv"].strategy == strategy
    assert nodes["celu"].strategy == strategy
    assert not [each for each in nodes.values() if "runs in onnxruntime" in each.reason]
    assert not nodes["reshape"].reason, "its shape is a constant"
    names = dict(stages.loaded.model.named_parameters())
    assert {"conv.weight", "conv.bias", "weight"} <= set(names)


def test_a_state_of_a_named_size_is_lowered(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "first"], ["size"]),
        node("Unsqueeze", ["size", "axes"], ["sizes"]),
        node("Concat", ["two", "sizes"], ["wanted"], axis=0),
        node("ConstantOfShape", ["wanted"], ["state"]),
        node("Transpose", ["x"], ["across"], perm=[1, 0]),
        node("Concat", ["across", "state"], ["y"], axis=0),
    ]
    arrays = {"first": np.int64(0), "axes": np.array([0]), "two": np.array([2])}
    path = saved(tmp_path / "net.onnx", nodes, ["batch", 3], arrays, ["y"])
    recipe = msgspec.structs.replace(
        Recipe(source=Source(spec=str(path))),
        inputs=(parse_input("x=batch,3"),),
        dimensions=(Dimension(name="batch", low=1, high=8),),
    )
    pipeline = Pipeline()
    lowered = pipeline.stages(recipe).lowered
    assert lowered is not None
    assert not [name for name, each in lowered.nodes.items() if each.strategy == "library"]
    assert pipeline.answer(RunQuery(recipe)).verdict == "match"


def test_what_is_left_for_an_extent_is_a_plain_number_of_sizes(tmp_path: Path) -> None:
    nodes = [
        node("Concat", ["x", "x"], ["both"], axis=2),
        node("Shape", ["both"], ["shape"]),
        node("Gather", ["shape", "two"], ["length"]),
        node("Unsqueeze", ["length", "first"], ["lengths"]),
        node("Concat", ["rest", "lengths", "eight"], ["wanted"], axis=0),
        node("Reshape", ["both", "wanted"], ["y"]),
    ]
    arrays = {"two": np.array(2), "first": [0], "rest": [-1], "eight": [8]}
    path = saved(tmp_path / "net.onnx", nodes, ["batch", 4, "time", 8], arrays, ["y"])
    recipe = msgspec.structs.replace(
        Recipe(source=Source(spec=str(path))),
        inputs=(parse_input("x=batch,4,time,8"),),
        dimensions=(Dimension(name="batch", low=1, high=8), Dimension(name="time", low=1, high=9)),
    )
    pipeline = Pipeline()
    assert pipeline.answer(RunQuery(recipe, quick=True)).verdict == "match"
    main = str(pipeline.stages(recipe).lowered.module["main"])
    assert "//" not in main, "TVM fails to build an index by such a quotient"


def test_numbers_of_sizes_are_lowered(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["length"]),
        node("Add", ["length", "two"], ["more"]),
        node("Range", ["zero", "more", "one"], ["places"]),
        node("Cast", ["places"], ["numbers"], to=F),
        node("Reshape", ["more", "any"], ["first"]),
        node("Concat", ["first", "width"], ["wanted"], axis=0),
        node("Unsqueeze", ["numbers", "last"], ["column"]),
        node("Expand", ["column", "wanted"], ["wide"]),
        node("Concat", ["x", "wide"], ["y"], axis=0),
    ]
    arrays = {"zero": np.array(0), "one": np.array(1), "two": np.array(2)}
    lists = {"any": [-1], "width": [3], "last": [-1]}
    path = saved(tmp_path / "net.onnx", nodes, ["n", 3], arrays | lists, ["y"])
    recipe = msgspec.structs.replace(
        Recipe(source=Source(spec=str(path))),
        inputs=(parse_input("x=n,3"),),
        dimensions=(Dimension(name="n", low=1, high=8),),
    )
    pipeline = Pipeline()
    assert pipeline.answer(RunQuery(recipe, quick=True)).verdict == "match"
    nodes = pipeline.stages(recipe).lowered.nodes.values()
    assert not [each.reason for each in nodes if each.strategy == "library"]


def test_dimensions_of_onnx_have_names(tmp_path: Path) -> None:
    path = mixed(tmp_path / "net.onnx", "batch")
    recipe = Recipe(source=Source(spec=str(path)))
    with pytest.raises(LowerscopeError, match="of your own: --input x=batch,3,5,5:float32"):
        Pipeline().answer(RunQuery(recipe, quick=True))
    batch = Dimension(name="batch", low=1, high=6)
    recipe = msgspec.structs.replace(
        recipe, inputs=(parse_input("x=batch,3,5,5"),), dimensions=(batch,)
    )
    record = Pipeline().answer(RunQuery(recipe, quick=True))
    assert {each.verdict for each in record.sizes} == {"match"}
    assert len(record.sizes) > 1


def test_a_shape_that_depends_on_data_is_no_constant(tmp_path: Path) -> None:
    nodes = [
        node("NonZero", ["x"], ["places"]),
        node("Size", ["places"], ["count"]),
        node("Cast", ["count"], ["number"], to=F),
        node("Add", ["x", "number"], ["y"]),
    ]
    path = saved(tmp_path / "net.onnx", nodes, [4], {}, ["y"])
    with_zeros = tmp_path / "x.npy"
    np.save(with_zeros, np.array([0, 0, 3, 0], "float32"))
    for given in ("x=4:float32", f"x={with_zeros}"):
        recipe = Recipe(source=Source(spec=str(path)), inputs=(parse_input(given),))
        pipeline = Pipeline()
        assert pipeline.answer(RunQuery(recipe, quick=True)).verdict == "match"
        assert "size" in pipeline.stages(recipe).lowered.nodes
        traced = pipeline.stages(recipe).traced
        assert traced is not None
        nodes = traced.graph_module.graph.nodes
        assert not [each.name for each in nodes if onnx_models.CONSTANT in each.meta]


def test_a_model_of_fixed_sizes_says_at_which_it_fails(tmp_path: Path) -> None:
    nodes = [node("Reshape", ["x", "shape"], ["y"])]
    path = saved(tmp_path / "net.onnx", nodes, ["n", 2], {"shape": np.array([3, 2])}, ["y"])
    recipe = Recipe(
        source=Source(spec=str(path)),
        inputs=(parse_input("x=n,2"),),
        dimensions=(Dimension(name="n", low=5, high=9),),
    )
    with pytest.raises(LowerscopeError, match=r"at n = \d.*numbers in place of n"):
        Pipeline().answer(RunQuery(recipe, quick=True))


def test_an_extent_of_data_is_none_of_named_sizes(tmp_path: Path) -> None:
    nodes = [
        node("Cast", ["x"], ["whole"], to=TensorProto.INT64),
        node("Unique", ["whole"], ["unique", "", "inverse"], axis=0),
        node("Relu", ["x"], ["positive"]),
        node("NonZero", ["positive"], ["places"]),
        node("Transpose", ["places"], ["rows"], perm=[1, 0]),
        node("GatherND", ["x", "rows"], ["found"]),
        node("Neg", ["found"], ["y"]),
    ]
    path = saved(tmp_path / "net.onnx", nodes, ["n", 2], {}, ["y", "unique", "inverse"])
    recipe = Recipe(
        source=Source(spec=str(path)),
        inputs=(parse_input("x=n,2"),),
        dimensions=(Dimension(name="n", low=1, high=9),),
    )
    record = Pipeline().answer(RunQuery(recipe, quick=True))
    assert {each.verdict for each in record.sizes} == {"match"}, record.reason


def test_an_input_of_rank_0_has_a_random_value(tmp_path: Path) -> None:
    path = saved(tmp_path / "net.onnx", [node("Neg", ["x"], ["y"])], [], {}, ["y"])
    record = Pipeline().answer(RunQuery(Recipe(source=Source(spec=str(path))), quick=True))
    assert record.verdict == "match", record.reason


def test_weights_of_int4_have_a_scale_for_each_block(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    nodes = [
        node("DequantizeLinear", ["w", "s"], ["weight"], axis=0, block_size=32),
        node("MatMul", ["x", "weight"], ["y"]),
        node("QuantizeLinear", ["y", "one", "zero"], ["q"]),
        node("DequantizeLinear", ["q", "one", "zero"], ["z"]),
    ]
    weight = random.integers(-8, 8, (96, 64))
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", F, [3, 96])],
        [onnx.ValueInfoProto(name="z")],
        [
            helper.make_tensor("w", TensorProto.INT4, weight.shape, weight.flatten().tolist()),
            numpy_helper.from_array(random.uniform(0.1, 1, (3, 64)).astype("float32"), "s"),
            numpy_helper.from_array(np.float32(1), "one"),
            helper.make_tensor("zero", TensorProto.UINT4, [], [7]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, tmp_path / "net.onnx")
    recipe = Recipe(source=Source(spec=str(tmp_path / "net.onnx")))
    pipeline = Pipeline()
    record = pipeline.answer(RunQuery(recipe, quick=True))
    assert record.verdict == "match", record.reason
    lowered = pipeline.stages(recipe).lowered
    assert lowered is not None
    assert lowered.nodes["dequantize_linear"].strategy == "high-level"


def test_weights_that_onnxruntime_repacks_may_be_shared(tmp_path: Path) -> None:
    nodes = [
        node("Cast", ["x"], ["a"], to=TensorProto.UINT8),
        node("MatMulInteger", ["a", "w", "z", "zw"], ["one"]),
        node("QLinearMatMul", ["a", "s", "z", "w", "s", "zw", "s", "z"], ["other"]),
    ]
    arrays = {"w": np.full((16, 4), 127, "int8"), "s": np.float32(1)}
    arrays |= {"z": np.uint8(0), "zw": np.int8(0)}
    path = saved(tmp_path / "net.onnx", nodes, [2, 16], arrays, ["one", "other"])
    record = Pipeline().answer(RunQuery(Recipe(source=Source(spec=str(path))), quick=True))
    assert record.verdict == "match", record.reason


def test_sums_of_integers_do_not_saturate(tmp_path: Path) -> None:
    weight = np.full((16, 4), 127, "int8")
    nodes = [
        node("Cast", ["x"], ["a"], to=TensorProto.UINT8),
        node("MatMulInteger", ["a", "w"], ["y"]),
    ]
    path = saved(tmp_path / "net.onnx", nodes, [2, 16], {"w": weight}, ["y"])
    np.save(tmp_path / "x.npy", np.full((2, 16), 255, "float32"))
    given = (parse_input(f"x={tmp_path / 'x.npy'}"),)
    for strategy in ("high-level", "library"):
        recipe = Recipe(source=Source(spec=str(path)), inputs=given, lowering=strategy)
        record = Pipeline().answer(RunQuery(recipe, quick=True))
        assert record.verdict == "match"
        assert not [each.id for each in record.nodes if each.matches is False]


def test_inputs_have_names_of_python(tmp_path: Path) -> None:
    names = ["in", "a b", "a.b", "a_b_2", "a/b"]
    nodes = [node("Sum", names, ["y"])]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(each, F, [2]) for each in names],
        [helper.make_tensor_value_info("y", F, [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.save(model, tmp_path / "net.onnx")
    recipe = Recipe(source=Source(spec=str(tmp_path / "net.onnx")))
    pipeline = Pipeline()
    assert pipeline.answer(RunQuery(recipe, quick=True)).verdict == "match"
    inputs = [each.name for each in pipeline.stages(recipe).loaded.inputs]
    assert inputs == ["in_", "a_b", "a_b_2", "a_b_2_2", "a_b_3"]


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


def without_outputs(path: Path) -> str:
    return str(saved(path, [node("Relu", ["x"], ["y"])], [1], {}, []))


def with_tensor(path: Path, tensor: Any) -> str:
    saved(path, [node("Add", ["x", "w"], ["y"])], [1], {}, ["y"])
    model = onnx.load(path)
    model.graph.initializer.append(tensor)
    path.write_bytes(model.SerializeToString())
    return str(path)


def negative(path: Path) -> str:
    return with_tensor(path, TensorProto(name="w", data_type=F, dims=[-1, -1]))


def of_unknown_dtype(path: Path) -> str:
    return with_tensor(path, TensorProto(name="w", data_type=99, dims=[1]))


def of_impossible_file(path: Path) -> str:
    tensor = TensorProto(name="w", data_type=F, dims=[1], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="d" * 5000)
    return with_tensor(path, tensor)


def sparse(path: Path) -> str:
    values, indices = numpy_helper.from_array(np.ones(1, "float32")), np.array([0])
    given = helper.make_sparse_tensor(values, numpy_helper.from_array(indices), [1])
    constant = node("Constant", [], ["w"], sparse_value=given)
    return str(saved(path, [constant, node("Add", ["x", "w"], ["y"])], [1], {}, ["y"]))


def with_functions(path: Path, functions: list[tuple[str, list[Any]]]) -> str:
    """Write a model that calls the last of some functions of one argument."""
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    made = [helper.make_function("own", n, ["a"], ["b"], body, sets) for n, body in functions]
    saved(path, [node(functions[-1][0], ["x"], ["y"], domain="own")], [1], {}, ["y"])
    model = onnx.load(path)
    model.opset_import.append(sets[1])
    model.functions.extend(made)
    path.write_bytes(model.SerializeToString())
    return str(path)


def of_many_calls(path: Path) -> str:
    functions = [("F0", [node("Neg", ["a"], ["b"])])]
    for index in range(1, 40):
        called = f"F{index - 1}"
        twice = [node(called, ["a"], ["m"], domain="own"), node(called, ["m"], ["b"], domain="own")]
        functions.append((f"F{index}", twice))
    return with_functions(path, functions)


def of_itself(path: Path) -> str:
    return with_functions(path, [("F", [node("F", ["a"], ["b"], domain="own")])])


def outside_in_function(path: Path) -> str:
    tensor = TensorProto(name="w", data_type=F, dims=[1], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="../data.bin")
    body = [node("Constant", [], ["w"], value=tensor), node("Add", ["a", "w"], ["b"])]
    return with_functions(path, [("F", body)])


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (outside, "the data of w is outside of the model's folder"),
        (without_data, "the file with the data of w is missing"),
        (garbage, "this ONNX model cannot be read"),
        (incomplete, "no node computes b"),
        (without_outputs, "its graph has no outputs"),
        (negative, "the tensor w: its shape has a negative size"),
        (of_unknown_dtype, "the tensor w: its dtype 99 is unknown"),
        (of_impossible_file, "the data of w is outside of the model's folder"),
        (sparse, "the tensor w: it is sparse"),
        (of_many_calls, "its functions call themselves, or are more than 1000000 nodes"),
        (of_itself, "its functions call themselves"),
        (outside_in_function, "the data of w.* is outside of the model's folder"),
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


def cases_of(module: str) -> dict[str, Any]:
    """Return ONNX's own tests of an operator; its module makes them when it is imported."""
    importlib.import_module(f"{backend.__name__}.{module}")
    return {each.name.removeprefix("test_"): each for each in backend._NodeTestCases}


PART_OF_MODEL = (
    *("axis", "dft_length", "frame_step", "frame_length", "window", "roi", "scales", "sizes"),
)
"""Inputs of ONNX's tests that models have as constants."""


def in_tvm(tmp_path: Path, case: Any) -> bool:
    """Run one of ONNX's tests of a node; return whether TVM computes all of it.

    The outputs match those of onnxruntime, and of the test.
    """
    path = tmp_path / f"{case.name}.onnx"
    inputs, expected = case.data_sets[0]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    given = list(zip(model.graph.input, inputs, strict=True))
    del model.graph.input[:]
    for each, value in given:
        if each.name in PART_OF_MODEL:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), each.name))
        else:
            model.graph.input.append(each)
    path.write_bytes(model.SerializeToString())
    specs = []
    for index, value in enumerate(v for each, v in given if each.name not in PART_OF_MODEL):
        file = tmp_path / f"{case.name}.{index}.npy"
        np.save(file, value)
        specs.append(InputSpec(shape=value.shape, dtype=value.dtype.name, file=str(file)))
    recipe = Recipe(source=Source(spec=str(path)), inputs=tuple(specs))
    pipeline = Pipeline()
    record = pipeline.answer(RunQuery(recipe, quick=True))
    # onnxruntime transforms by sums of products, which round more.
    assert record.verdict in ("match", "rounding"), f"{case.name}: {record.reason}"
    stages = pipeline.stages(recipe)
    there = stages.loaded.model(*(each.value for each in stages.loaded.inputs))
    there = list(there.values()) if isinstance(there, dict) else [there]
    for value, right in zip(there, expected, strict=True):
        scale = max(1.0, float(np.abs(right).max()))
        np.testing.assert_allclose(value.numpy(), right, rtol=1e-3, atol=1e-5 * scale)
    return all(each.strategy != "library" for each in stages.lowered.nodes.values())


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("lstm", "lstm_bidirectional lstm_with_initial_bias"),
        ("rnn", "simple_rnn_with_initial_bias"),
        ("celu", "celu"),
        ("convinteger", "convinteger_without_padding"),
        ("qlinearconv", "qlinearconv"),
        ("qlinearmatmul", "qlinearmatmul_2D_uint8_float32 qlinearmatmul_3D_int8_float32"),
        ("attention", "attention_4d_with_past_and_present"),
        ("dft", "dft_inverse dft_axis"),
        ("stft", "stft_with_window"),
        ("resize", "resize_downsample_scales_linear resize_tf_crop_and_resize_axes_2_3"),
        ("rotaryembedding", "rotary_embedding_3d_input rotary_embedding_interleaved"),
        *rows_at_length(
            ("gru", "gru_bidirectional gru_defaults gru_reverse gru_with_initial_bias"),
            ("lstm", "lstm_defaults lstm_reverse"),
            ("rnn", "simple_rnn_defaults"),
            (
                "attention",
                "attention_3d_gqa_causal attention_4d_attn_mask_bool",
            ),
            ("dft", "dft dft_opset19 dft_inverse_opset19 dft_axis_opset19"),
            ("stft", "stft"),
            (
                "resize",
                "resize_downsample_scales_cubic_antialias resize_downsample_sizes_linear_antialias "
                "resize_downsample_scales_linear_half_pixel_symmetric "
                "resize_upsample_scales_cubic_A_n0p5_exclude_outside "
                "resize_upsample_sizes_nearest_not_larger "
                "resize_downsample_sizes_nearest_not_smaller "
                "resize_tf_crop_and_resize_extrapolation_value resize_tf_crop_and_resize_axes_3_2 "
                "resize_downsample_scales_cubic resize_downsample_scales_nearest",
            ),
            (
                "rotaryembedding",
                "rotary_embedding rotary_embedding_with_rotary_dim "
                "rotary_embedding_with_interleaved_rotary_dim rotary_embedding_no_position_ids",
            ),
        ),
    ],
)
def test_operators_that_tvm_cannot_import_are_lowered(
    tmp_path: Path, module: str, names: str
) -> None:
    found = cases_of(module)
    assert [name for name in names.split() if not in_tvm(tmp_path, found[name])] == []


def test_a_reduction_over_no_axes_still_squares(tmp_path: Path) -> None:
    nodes = [node("ReduceSumSquare", ["x"], ["y"], noop_with_empty_axes=1)]
    path = saved(tmp_path / "net.onnx", nodes, [2, 3], {}, ["y"], 18)
    record = Pipeline().answer(RunQuery(Recipe(source=Source(spec=str(path))), quick=True))
    assert record.verdict == "match", record.reason


def test_what_tvm_would_compute_wrongly_runs_in_onnxruntime(tmp_path: Path) -> None:
    found = cases_of("batch_normalization")
    assert in_tvm(tmp_path, found["batchnorm_epsilon"])
    assert not in_tvm(tmp_path, found["batchnorm_epsilon_training_mode"])
    nodes = [node("SequenceConstruct", ["x", "x"], ["several"]), node("Neg", ["x"], ["y"])]
    at = [*nodes, node("SequenceAt", ["several", "one"], ["z"])]
    path = saved(tmp_path / "net.onnx", at, [2, 3], {"one": np.array(1)}, ["y", "z", "several"])
    record = Pipeline().answer(RunQuery(Recipe(source=Source(spec=str(path))), quick=True))
    assert record.verdict == "match", record.reason
    assert len(record.outputs) == 4


def info(name: str, kind: int = F, shape: list[int] | None = None) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def body_of(nodes: list[Any], inputs: list[Any], outputs: list[Any]) -> Any:
    return helper.make_graph(nodes, "body", inputs, outputs)


def branch(nodes: list[Any], output: str) -> Any:
    return body_of(nodes, [], [info(output)])


def loop_of(goes_on: Any) -> Any:
    """Return the body of a loop over ``state``, whose condition `goes_on` computes."""
    return body_of(
        [
            node("MatMul", ["state", "weight"], ["product"]),
            node("Tanh", ["product"], ["next"]),
            node("Cast", ["index"], ["number"], to=F),
            node("Add", ["next", "number"], ["row"]),
            goes_on,
        ],
        [info("index", TensorProto.INT64, []), info("on", TensorProto.BOOL, []), info("state")],
        [info("still_on", TensorProto.BOOL, []), info("next"), info("row")],
    )


def flow(path: Path, size: int | str, *, of_data: bool = False) -> Path:
    """Write a model with a loop, a branch in a branch, and a scan that starts at the end."""
    goes_on = node("Identity", ["on"], ["still_on"])
    if of_data:
        goes_on = node("Less", ["number", "two"], ["still_on"])
    inner = [branch([node(kind, ["s"], [kind])], kind) for kind in ("Exp", "Neg")]
    outer = [
        branch([node("Relu", ["s"], ["r"]), node("Mul", ["r", "two"], ["doubled"])], "doubled"),
        branch(
            [node("If", ["less"], ["found"], then_branch=inner[0], else_branch=inner[1])], "found"
        ),
    ]
    step = body_of(
        [
            node("Add", ["sum", "row"], ["added"]),
            node("Sub", ["added", "other"], ["difference"]),
        ],
        [info(name, F, [5]) for name in ("sum", "row", "other")],
        [info(name, F, [5]) for name in ("added", "difference")],
    )
    rows = "state" if of_data else "all"
    nodes = [
        node("Loop", ["steps", "", "x"], ["state", "all"], body=loop_of(goes_on)),
        node("ReduceSum", ["all" if not of_data else "x"], ["total"], keepdims=0),
        node("Greater", ["total", "zero"], ["more"]),
        node("Less", ["total", "two"], ["less"]),
        node("Neg", ["state"], ["s"]),
        node("If", ["more"], ["signed"], then_branch=outer[0], else_branch=outer[1]),
        node("Scan", ["start", "x", "x"], ["last", "y"], num_scan_inputs=2, body=step)
        if size == 4
        else node("Add", ["x", "start"], ["y"]),
        node("Identity", [rows], ["z"]),
    ]
    if size == 4:
        attributes = {"scan_input_directions": [0, 1], "scan_output_directions": [1]}
        nodes[6].attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items())
    random = np.random.default_rng(0)
    arrays = {
        "steps": np.array(3),
        "zero": np.float32(0),
        "two": np.float32(2),
        "weight": random.normal(size=(5, 5)).astype("float32") / 3,
        "start": random.normal(size=5).astype("float32"),
    }
    return saved(path, nodes, [size, 5], arrays, ["signed", "y", "z"])


@pytest.mark.parametrize("size", [4, "n"])
def test_loops_of_known_length_and_branches_are_lowered(tmp_path: Path, size: int | str) -> None:
    path = flow(tmp_path / "net.onnx", size)
    recipe = Recipe(source=Source(spec=str(path)))
    if size == "n":
        recipe = msgspec.structs.replace(
            recipe,
            inputs=(parse_input("x=n,5"),),
            dimensions=(Dimension(name="n", low=1, high=9),),
        )
    pipeline = Pipeline()
    record = pipeline.answer(RunQuery(recipe, quick=True))
    assert record.verdict == "match", record.reason
    nodes = pipeline.stages(recipe).lowered.nodes
    assert not [each.node for each in nodes.values() if each.strategy == "library"]
    assert sum(each.node.startswith("tanh") for each in nodes.values()) == 3


def test_a_loop_whose_length_depends_on_data_stays_one_node(tmp_path: Path) -> None:
    path = flow(tmp_path / "net.onnx", 4, of_data=True)
    recipe = Recipe(source=Source(spec=str(path)))
    pipeline = Pipeline()
    record = pipeline.answer(RunQuery(recipe, quick=True))
    assert record.verdict == "match", record.reason
    nodes = pipeline.stages(recipe).lowered.nodes.values()
    assert [each.node for each in nodes if each.strategy == "library"] == ["loop"]


def test_a_branch_that_cannot_be_computed_in_vain_stays_one_node(tmp_path: Path) -> None:
    outer = [
        branch([node("Gather", ["x", "place"], ["row"])], "row"),
        branch([node("Gather", ["x", "first"], ["other"])], "other"),
    ]
    nodes = [
        node("ArgMax", ["x"], ["places"], axis=0, keepdims=0),
        node("Gather", ["places", "first"], ["at"]),
        node("Mul", ["at", "many"], ["place"]),
        node("Less", ["at", "first"], ["below"]),
        node("If", ["below"], ["y"], then_branch=outer[0], else_branch=outer[1]),
    ]
    arrays = {"first": np.array(0), "many": np.array(99)}
    path = saved(tmp_path / "net.onnx", nodes, [3, 5], arrays, ["y"])
    recipe = Recipe(source=Source(spec=str(path)))
    pipeline = Pipeline()
    record = pipeline.answer(RunQuery(recipe, quick=True))
    assert record.verdict == "match", record.reason
    stays = pipeline.stages(recipe).lowered.nodes["if_"]
    assert stays.strategy == "library"


def test_a_cast_to_bfloat16_rounds(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [
            node("Cast", ["x"], ["half"], to=TensorProto.BFLOAT16),
            node("Cast", ["half"], ["y"], to=F),
        ],
        "graph",
        [info("x", F, [8])],
        [info("y")],
    )
    path = tmp_path / "net.onnx"
    sets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), path)
    recipe = Recipe(source=Source(spec=str(path)), steps=find_pipeline("optimise-cpu").steps)
    record = Pipeline().answer(RunQuery(recipe, quick=True))
    assert (record.verdict, record.max_abs_error) == ("match", 0)


def test_a_sequence_that_grows_leaves_the_rest_to_be_lowered(tmp_path: Path) -> None:
    sequence = helper.make_tensor_sequence_value_info
    body = helper.make_graph(
        [
            node("Identity", ["on"], ["still_on"]),
            node("Cast", ["index"], ["number"], to=F),
            node("Mul", ["state", "number"], ["next_state"]),
            node("SequenceInsert", ["states", "next_state"], ["next_states"]),
        ],
        "body",
        [
            *(info("index", TensorProto.INT64, []), info("on", TensorProto.BOOL, [])),
            *(info("state", F), sequence("states", F, None)),
        ],
        [
            *(info("still_on", TensorProto.BOOL, []), info("next_state", F)),
            sequence("next_states", F, None),
        ],
    )
    nodes = [
        node("Neg", ["x"], ["n"]),
        node("SequenceEmpty", [], ["none"]),
        node("Loop", ["steps", "", "n", "none"], ["last", "all"], body=body),
        node("ConcatFromSequence", ["all"], ["joined"], axis=0, new_axis=1),
        node("ReduceMax", ["joined"], ["y"], keepdims=0),
        node("Relu", ["last"], ["z"]),
    ]
    path = saved(tmp_path / "net.onnx", nodes, [2, 3], {"steps": np.array(3)}, ["y", "z"])
    record = Pipeline().answer(RunQuery(Recipe(source=Source(spec=str(path))), quick=True))
    assert record.verdict == "match", record.reason
    by_tvm = [each.id for each in record.nodes if each.strategy == "high-level"]
    products = ["fx:mul", "fx:mul_1", "fx:mul_2"]
    assert sorted(by_tvm) == sorted(["fx:neg", *products, "fx:reduce_max", "fx:relu"])


def test_quantised_layers_are_compared_as_the_graph_says(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    scales = {
        "s": np.float32(0.0513),
        "z": np.uint8(128),
        "sw": np.float32(0.00971),
        "zw": np.int8(0),
    }
    arrays: dict[str, Any] = dict(scales)
    nodes, last = [], "x"
    for index in range(3):
        name = f"w{index}"
        arrays[name] = random.integers(-90, 90, (8, 3 if index == 0 else 8, 3, 3)).astype("int8")
        nodes += [
            node("QuantizeLinear", [last, "s", "z"], [f"q{index}"]),
            node("DequantizeLinear", [f"q{index}", "s", "z"], [f"d{index}"]),
            node("DequantizeLinear", [name, "sw", "zw"], [f"dw{index}"]),
            node("Conv", [f"d{index}", f"dw{index}"], [f"c{index}"]),
        ]
        last = f"c{index}"
    nodes += [
        node("QuantizeLinear", [last, "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    path = saved(tmp_path / "net.onnx", nodes, [1, 3, 16, 16], arrays, ["y"])
    record = Pipeline().answer(RunQuery(Recipe(source=Source(spec=str(path))), quick=True))
    assert record.verdict == "match", record.reason


def test_names_of_a_graph_do_not_matter(tmp_path: Path) -> None:
    nodes = [
        node("Add", ["x", "graph"], ["forward"], name="/_modules/_parameters"),
        node("Add", ["forward", "_parameters"], ["y\n\x1b[31m"], name="graph"),
    ]
    arrays = {"graph": np.ones(3, "float32"), "_parameters": np.ones(3, "float32")}
    path = saved(tmp_path / "net.onnx", nodes, [2, 3], arrays, ["y\n\x1b[31m"])
    record = Pipeline().answer(RunQuery(Recipe(source=Source(spec=str(path))), quick=True))
    assert record.verdict == "match", record.reason


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_a_saved_module_of_torch_jit_is_a_model(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
    path = tmp_path / "net.pt"
    torch.jit.save(torch.jit.trace(model, torch.ones(1, 4)), str(path))  # type: ignore[no-untyped-call]
    recipe = Recipe(source=Source(spec=str(path)), inputs=(parse_input("2,4"),))
    assert Pipeline().answer(RunQuery(recipe, quick=True)).verdict == "match"
    torch.save(model.state_dict(), path)
    with pytest.raises(LowerscopeError, match=r"this \.pt file holds weights"):
        Pipeline().answer(RunQuery(recipe, quick=True))


def test_names_of_inputs_may_be_paths() -> None:
    assert parse_input("past.0.key=1,2").name == "past_0_key"
