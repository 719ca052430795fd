"""Builder programs: run, they make a structurally equal module, line by line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax
from tvm.script import from_source

from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.ir.relax import binding_ids
from lowerscope.core.ir.tensorir import prim_funcs_of
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe, Source, Strategy
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.programs.builder_text import CONSTANTS_FILE, BuilderText, builder_text
from tests.core.large_samples import LARGE
from tests.core.programs import module_of
from tests.diagonal import at_length

STEPS = ("LegalizeOps", "AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR")


def rebuilt(built: BuilderText, folder: Path) -> tvm.IRModule:
    """Return what the program makes, run from a file with its constants in a file beside it."""
    path = folder / "program.py"
    path.write_text(built.record.text, "utf-8")
    np.savez(folder / CONSTANTS_FILE, **built.constants)
    constants = dict(np.load(folder / CONSTANTS_FILE))
    return module_of(path, constants)


def assert_rebuilt(module: tvm.IRModule, folder: Path) -> BuilderText:
    built = builder_text(module)
    made = rebuilt(built, folder)
    assert tvm_ffi.structural_equal(made, module)
    shown = {span.entity for span in built.record.spans}
    assert {bound.id for bound in binding_ids(module)} <= shown
    assert {f"tir:{name}" for name in prim_funcs_of(module)} <= shown
    return built


def lines_of(built: BuilderText, entity: str) -> list[str]:
    (span,) = (span for span in built.record.spans if span.entity == entity)
    return [line.strip() for line in built.record.text.split("\n")[span.first - 1 : span.last]]


def lowered(pipeline: Pipeline, sample: str, strategy: Strategy) -> tvm.IRModule:
    recipe = Recipe(source=Source(spec=f"sample:{sample}"), lowering=strategy)
    return pipeline.stages(recipe).module


def test_a_module_after_all_passes_is_rebuilt_in_a_process_of_its_own(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """Nothing else has imported there what the program uses."""
    steps = find_pipeline("optimise-cpu").steps
    recipe = Recipe(source=Source(spec="sample:fashion_mlp"), steps=steps)
    rebuilt(builder_text(pipeline.stages(recipe).completed), tmp_path)
    made = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "alloc_storage" in made.stdout


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", ["high-level", "te"])
@pytest.mark.parametrize("sample", ["fashion_mlp", "mlp_tvmscript", *at_length(*LARGE)])
def test_samples_are_rebuilt_at_every_step(
    pipeline: Pipeline, tmp_path: Path, sample: str, strategy: Strategy
) -> None:
    module = lowered(pipeline, sample, strategy)
    assert_rebuilt(module, tmp_path)
    for step in STEPS:
        module = getattr(relax.transform, step)()(module)
        if step in ("FuseOps", "FuseTIR") or (step, strategy) == ("LegalizeOps", "high-level"):
            assert_rebuilt(module, tmp_path)


CONSTANTS = {
    "float16": np.array([1, np.inf, np.nan], "float16"),
    "float64": np.array([[0.1], [2.5]]),
    "bool": np.array([True, False]),
    "int8": np.array([-3, 4], "int8"),
    "int64": np.array([2**40, -1]),
    "uint8": np.array([200], "uint8"),
    "bfloat16": np.array([1.5, 2.5], np.dtype("uint16")),
    "empty": np.zeros((0, 3), "float32"),
    "number": np.array(0.1, "float32"),
    "whole": np.array(7, "int64"),
    "true": np.array(True),
    "infinite": np.array(-np.inf, "float32"),
    "nan": np.array(np.nan, "float32"),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_of_every_dtype_keep_their_bits(name: str, tmp_path: Path) -> None:
    array = CONSTANTS[name]
    dtype = name if name == "bfloat16" else str(array.dtype)
    constant = relax.const(array.view(dtype) if name == "bfloat16" else array, dtype)
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        builder.emit_func_output(builder.emit(relax.Tuple([constant, constant])))
    built = assert_rebuilt(builder.get(), tmp_path)
    in_place = name in ("number", "whole", "true")
    assert len(built.constants) == (0 if in_place else 1)


PROGRAMS = {
    "symbolic shapes": """
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"),
             s: R.Shape(["m"])) -> R.Tensor(("n * 4",), "float32"):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            lv: R.Tensor((n * 4,), "float32") = R.reshape(x, R.shape([n * 4]))
            lv1: R.Tensor((n * 4 + m,), "float32") = R.full(
                R.shape([n * 4 + m]), R.const(1.0, "float32"), dtype="float32"
            )
            lv2 = R.shape([n // 2, m])
            gv: R.Tensor((n * 4,), "float32") = R.exp(lv)
            R.output(gv, lv1, lv2)
        return gv
""",
    "a size that data decide": """
    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        k = T.int64()
        found: R.Tensor(ndim=1, dtype="float32") = R.call_pure_packed(
            "env.find", x, ty_args=(R.Tensor(ndim=1, dtype="float32"),)
        )
        with R.dataflow():
            lv: R.Tensor((k,), "float32") = R.match_cast(found, R.Tensor((k,), "float32"))
            gv: R.Tensor((k,), "float32") = R.nn.relu(lv)
            R.output(gv)
        return gv
""",
    "two dataflow blocks and a side effect": """
    @R.function(pure=False)
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        R.func_attr({"num_input": 1, "kind": "a \\"b\\"", "sizes": [1, 2]})
        with R.dataflow():
            lv: R.Tensor((2, 3), "float32") = R.exp(x)
            gv: R.Tensor((2, 3), "float32") = R.nn.relu(lv)
            R.output(gv)
        r: R.Tuple = R.print(gv, format="{}")
        with R.dataflow():
            lv1: R.Tensor((2, 3), "float32") = R.add(gv, gv)
            gv1: R.Tensor((2, 3), "float32") = R.nn.relu(lv1)
            R.output(gv1)
        return gv1
""",
    "tuples": """
    @R.function
    def main(x: R.Tensor((4, 3), "float32"), t: R.Tuple(R.Tensor((2,), "int64"), R.Object)):
        with R.dataflow():
            lv = R.split(x, indices_or_sections=2, axis=0)
            lv1 = lv[0]
            lv2 = lv[1]
            lv3 = R.concat((lv2, lv1), axis=1)
            lv4 = R.strided_slice(lv3, (R.prim_value(0),), (R.prim_value(1),), (R.prim_value(2),))
            gv = (lv3, (lv4, t[0]))
            R.output(gv)
        return gv
""",
    "a wider type": """
    @R.function
    def main(x: R.Tensor((4, 3), "float32")) -> R.Tensor(ndim=2, dtype="float32"):
        with R.dataflow():
            lv: R.Tensor(ndim=2, dtype="float32") = R.nn.relu(x)
            gv: R.Tensor(ndim=2, dtype="float32") = R.exp(lv)
            R.output(gv)
        return gv
""",
    "names that Python or the program has": """
    @R.function
    def main(bb: R.Tensor((2,), "float32"), relax: R.Tensor((2,), "float32")):
        with R.dataflow():
            constants = R.add(bb, relax)
            main = R.add(constants, bb)
            main = R.add(main, constants)
            gv = R.multiply(main, main)
            R.output(gv)
        return gv
""",
    "operators with many attributes": """
    @R.function
    def main(x: R.Tensor((1, 4, 8, 8), "float32"), w: R.Tensor((8, 2, 3, 3), "float32"),
             i: R.Tensor((3,), "int64"), g: R.Tensor((8,), "float32")):
        with R.dataflow():
            a = R.nn.conv2d(x, w, strides=[2, 1], padding=[1, 1, 1, 1], groups=2)
            b = R.nn.layer_norm(a, g, g, axes=[-1], epsilon=1e-6, center=False, scale=True)
            c = R.nn.max_pool2d(b, pool_size=[3, 3], strides=[2, 2], ceil_mode=True)
            d = R.take(c, i, axis=1, mode="clip")
            e = R.mean(d, axis=[2, 3], keepdims=True)
            f = R.astype(e, dtype="bfloat16")
            h = R.clip(f, R.prim_value(0), R.prim_value(T.float64(6)))
            k = R.full((2, 3), R.const(2, "int32"), dtype="int64")
            l = R.arange(R.prim_value(0), R.prim_value(10), R.prim_value(2), dtype="int64")
            m = R.where(R.greater(d, d), d, d)
            n = R.image.resize2d(x, (4, 4), layout="NCHW", method="linear")
            gv = R.permute_dims(h, axes=[0, 2, 3, 1])
            R.output(gv)
        return gv
""",
}


def parsed(body: str) -> tvm.IRModule:
    head = "# from tvm.script import ir as I, relax as R, tirx as T\n@I.ir_module\nclass Module:"
    return from_source(head + body)


@pytest.mark.parametrize("name", PROGRAMS)
def test_other_constructs_are_rebuilt(name: str, tmp_path: Path) -> None:
    assert_rebuilt(parsed(PROGRAMS[name]), tmp_path)


def refusal(module: tvm.IRModule) -> str:
    with pytest.raises(LowerscopeError) as caught:
        builder_text(module)
    return str(caught.value)


def test_a_function_in_a_function_is_refused() -> None:
    module = parsed("""
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        @R.function
        def inner(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            z: R.Tensor((2,), "float32") = R.nn.relu(y)
            return z
        gv: R.Tensor((2,), "float32") = inner(x)
        return gv
""")
    assert "relax:main/inner: " in refusal(module)


def test_branches_are_rebuilt(relax_modules: dict[str, tvm.IRModule], tmp_path: Path) -> None:
    built = assert_rebuilt(relax_modules["branches"], tmp_path)
    lines = lines_of(built, "relax:main/r")
    assert lines[0] == "bb.begin_scope()"
    assert lines[-1].startswith("r = bb.emit(relax.If(c, true_branch, false_branch)")
    assert lines_of(built, "relax:main/w1")[0].startswith("w1 = bb.match_cast(w, ")
    assert 'relax.call_dps_packed("env.relu", [q], out_ty=' in built.record.text
    assert 'relax.call_pure_packed("env.f", h, ty_args=' in built.record.text
    assert lines_of(built, "relax:main/q")[0].startswith("q = bb.emit(tup[0]")
    assert "helper_gv(gv)" in built.record.text
