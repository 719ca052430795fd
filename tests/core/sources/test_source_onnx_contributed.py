"""Operators of onnxruntime's own set in ONNX models are lowered, and give what they give there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline

node = helper.make_node
random = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return random.standard_normal(shape).astype("float32")


def some_bytes(*shape: int) -> Any:
    return random.integers(0, 255, shape).astype("uint8")


def angles(function: Any) -> Any:
    return function(np.outer(np.arange(9), [1, 0.1])).astype("float32")


X = normal(2, 5, 16)
"""Tokens."""
NUMBERS = some_bytes(2, 3, 4, 4)
SCALE, ZERO = np.float32(0.02), np.uint8(100)
OTHER = np.float32(0.03), np.uint8(90)
QUANTISED = [NUMBERS, SCALE, ZERO]
WEIGHTS = [some_bytes(16, 6), np.float32([0.02]), np.uint8([120])]

CASES: list[tuple[str, list[Any], dict[str, Any], int]] = [
    ("SkipLayerNormalization", [X, normal(2, 5, 16), normal(16)], {}, 1),
    ("SkipLayerNormalization", [X, normal(2, 5, 16), *(normal(16) for _ in range(3))], {}, 4),
    ("SimplifiedLayerNormalization", [X, normal(16)], {"axis": -1, "epsilon": 1e-6}, 1),
    ("SkipSimplifiedLayerNormalization", [X, normal(2, 5, 16), normal(16)], {}, 4),
    ("BiasGelu", [X, normal(16)], {}, 1),
    ("FastGelu", [X, normal(16)], {}, 1),
    ("QuickGelu", [X], {"alpha": 1.5}, 1),
    ("FusedMatMul", [X, normal(2, 4, 16)], {"transB": 1, "alpha": 0.5}, 1),
    (
        "FusedConv",
        [normal(1, 3, 6, 6), normal(4, 3, 3, 3), normal(4)],
        {"pads": [1] * 4, "activation": "LeakyRelu", "activation_params": [0.1]},
        1,
    ),
    ("FusedGemm", [normal(2, 4), normal(5, 4), normal(5)], {"activation": "Relu", "transB": 1}, 1),
    ("MultiHeadAttention", [X, normal(2, 7, 16), normal(2, 7, 16)], {"num_heads": 4}, 1),
    ("MultiHeadAttention", [X, X, X, normal(48)], {"num_heads": 4, "unidirectional": 1}, 1),
    (
        "Attention",
        [X, normal(16, 48), normal(48), np.array([[1] * 5, [1, 1, 1, 0, 0]], "int32")],
        {"num_heads": 4},
        1,
    ),
    (
        "RotaryEmbedding",
        [X, np.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]), angles(np.cos), angles(np.sin)],
        {"num_heads": 4},
        1,
    ),
    (
        "RotaryEmbedding",
        [X, np.array([3]), angles(np.cos), angles(np.sin)],
        {"num_heads": 4, "interleaved": 1},
        1,
    ),
    (
        "MatMulNBits",
        [normal(2, 40), some_bytes(6, 2, 16), abs(normal(12)), some_bytes(6)],
        {"K": 40, "N": 6, "bits": 4, "block_size": 32},
        1,
    ),
    (
        "MatMulNBits",
        [normal(2, 32), some_bytes(6, 1, 32), abs(normal(6))],
        {"K": 32, "N": 6, "bits": 8, "block_size": 32},
        1,
    ),
    ("QLinearAdd", [*QUANTISED, some_bytes(2, 3, 4, 4), *OTHER, np.float32(0.04), ZERO], {}, 1),
    ("QLinearMul", [*QUANTISED, some_bytes(2, 3, 4, 4), *OTHER, np.float32(0.04), ZERO], {}, 1),
    ("QLinearSigmoid", [*QUANTISED, np.float32(1 / 256), np.uint8(0)], {}, 1),
    ("QLinearLeakyRelu", [*QUANTISED, *OTHER], {"alpha": 0.1}, 1),
    ("QLinearGlobalAveragePool", [*QUANTISED, *OTHER], {}, 1),
    ("QLinearAveragePool", [*QUANTISED, *OTHER], {"kernel_shape": [2, 2], "strides": [2, 2]}, 1),
    ("QLinearSoftmax", [*QUANTISED, np.float32(1 / 256), np.uint8(0)], {"opset": 13}, 1),
    ("QLinearConcat", [*OTHER, *QUANTISED, some_bytes(2, 2, 4, 4), SCALE, ZERO], {"axis": 1}, 1),
    ("DynamicQuantizeMatMul", [X, *WEIGHTS], {}, 1),
    (
        "MatMulIntegerToFloat",
        [some_bytes(3, 16), WEIGHTS[0], SCALE, WEIGHTS[1], ZERO, WEIGHTS[2]],
        {},
        1,
    ),
]


@pytest.mark.parametrize(
    ("kind", "values", "attributes", "outputs"),
    CASES,
    ids=[f"{index}_{case[0]}" for index, case in enumerate(CASES)],
)
def test_an_operator_of_onnxruntime_is_lowered(
    tmp_path: Path, kind: str, values: list[Any], attributes: dict[str, Any], outputs: int
) -> None:
    names = [f"v{index}" for index in range(len(values))]
    wanted = ["y", *[""] * (outputs - 2), "sum"][:outputs] if outputs > 1 else ["y"]
    # One of them is in ONNX's own set.
    domain = "" if kind.startswith("Simplified") else "com.microsoft"
    made = node(kind, names, wanted, domain=domain, **attributes)
    first = np.asarray(values[0])
    graph = helper.make_graph(
        [made],
        "graph",
        [
            helper.make_tensor_value_info(
                "v0", helper.np_dtype_to_tensor_dtype(first.dtype), first.shape
            )
        ]
        if first.ndim
        else [],
        [onnx.ValueInfoProto(name=each) for each in wanted if each],
        [
            numpy_helper.from_array(np.asarray(value), name)
            for name, value in list(zip(names, values, strict=True))[1 if first.ndim else 0 :]
        ],
    )
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=10), path)
    recipe = Recipe(source=Source(spec=str(path)))
    pipeline = Pipeline()
    record = pipeline.answer(RunQuery(recipe, quick=True))
    assert record.verdict == "match", record.reason
    nodes = pipeline.stages(recipe).lowered.nodes.values()
    assert [each.reason for each in nodes if each.strategy == "library"] == []
