"""NumPy, TE and builder programs of everything that ships: samples, made small, and the course."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax

from lowerscope.core.ir.relax import binding_ids
from lowerscope.core.ir.tensorir import prim_funcs_of
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import (
    Recipe,
    Source,
    Strategy,
    with_bound_params,
    with_params_as_inputs,
)
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.programs.builder_text import CONSTANTS_FILE
from lowerscope.core.views.programs.numpy_text import numpy_text
from lowerscope.core.views.programs.te_text import te_text
from lowerscope.core.views.source_text import builder_of, write_text
from lowerscope.resources import HELP, SAMPLES
from tests.core.programs import module_of
from tests.core.views.test_numpy_text import check, compiled

SMALLER: Mapping[str, tuple[tuple[str, str], ...]] = {
    "matmul_relu": (("size: int = 128", "size: int = 6"), ("1, 128", "1, 6")),
    "matmul": (("size: int = 512", "size: int = 6"), ("512, 512", "6, 6")),
    "fashion_mlp": (),
    "conv_net": (
        ("16 * 14 * 14, 64", "3 * 4 * 4, 5"),
        ("64, 10", "5, 4"),
        ("16", "3"),
        ("28", "8"),
    ),
    "resnet18": (
        ("64", "2"),
        ("128", "3"),
        ("256", "4"),
        ("512", "5"),
        ("= 1000", "= 6"),
        ("224", "16"),
    ),
    "transformer_block": (
        ("width: int = 256, heads: int = 4", "width: int = 8, heads: int = 2"),
        ("1, 64, 256", "1, 3, 8"),
    ),
    "mlp_tvmscript": (("784", "6"), ("128", "5"), ("randn(10", "randn(4")),
}
"""Replacements in the file of a sample, so that loops over elements end soon."""

COURSE = (
    "te_functions:matmul",
    "te_functions:relu_1d",
    "te_functions:relu_2d",
    "te_functions:fused",
    "te_functions:fused_and_matmul",
    "block_builder",
    "from_fx",
    "mlp",
    "mlp_mixture",
    "two_blocks",
)
STRATEGIES: tuple[Strategy, ...] = ("high-level", "te")
FUSING = ("AnnotateTIROpPattern", "FuseOps", "FuseTIR")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the samples made small, and the course's files."""
    path = tmp_path_factory.mktemp("small")
    for name, replaced in SMALLER.items():
        text = (SAMPLES / f"{name}.py").read_text("utf-8")
        for old, new in replaced:
            assert old in text, (name, old)
            text = text.replace(old, new)
        (path / f"{name}.py").write_text(text, "utf-8")
    (path / "fashion_mlp.npz").write_bytes((SAMPLES / "fashion_mlp.npz").read_bytes())
    for file in (HELP / "course").glob("*.py"):
        text = file.read_text("utf-8")
        if file.stem == "te_functions":
            text = text.replace("(128, 128)", "(7, 7)")
        (path / file.name).write_text(text, "utf-8")
    return path


def sample(folder: Path, name: str, **fields: Any) -> Recipe:
    spec, _, entry = name.partition(":")
    return Recipe(source=Source(spec=str(folder / f"{spec}.py"), entry=entry), **fields)


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", [*SMALLER, *COURSE])
def test_numpy_gives_the_numbers_and_te_the_function(
    pipeline: Pipeline, folder: Path, name: str, strategy: Strategy
) -> None:
    stages = pipeline.stages(sample(folder, name, lowering=strategy))
    functions = prim_funcs_of(stages.transformed.module)
    assert functions
    executable = compiled(functions)
    for title, function in functions.items():
        check(function, title, sizes={"m": 6, "n": 5, "k": 4}, executable=executable, rtol=1e-4)
        assert_te(function, title)


def assert_te(function: Any, name: str) -> None:
    """Assert that TE makes the very function, or that one line says why it does not."""
    names: dict[str, Any] = {}
    refusal = ""
    try:
        exec(te_text(function, name).text, names)
    except LowerscopeError as error:
        refusal = error.problem.what
    if refusal:
        assert refusal.startswith("there is no tensor expression")
        assert "\n" not in refusal
    else:
        assert any(tvm_ffi.structural_equal(made, function) for made in names.values())


def fused(module: tvm.IRModule) -> tvm.IRModule:
    for name in FUSING:
        module = getattr(relax.transform, name)()(module)
    return module


def assert_built(
    pipeline: Pipeline, recipe: Recipe, folder: Path, *, fuse: bool = False
) -> list[str]:
    """Assert that the builder programs make the modules; return the names of constants."""
    stages = pipeline.stages(recipe)
    names: list[str] = []
    after = stages.transformed.module
    for module in (stages.module, fused(after) if fuse else after):
        built = builder_of(stages, module)
        (folder / "program.py").write_text(built.record.text, "utf-8")
        np.savez(folder / CONSTANTS_FILE, **built.constants)
        constants = dict(np.load(folder / CONSTANTS_FILE))
        made = module_of(folder / "program.py", constants)
        assert tvm_ffi.structural_equal(made, module)
        names = list(built.constants)
    return names


WEIGHTS = {
    "matmul_relu": "weight",
    "fashion_mlp": "linear0_weight",
    "conv_net": "conv_weight",
    "transformer_block": "attention_query_weight",
}
KINDS = ("library", "inputs", "bound", "fused")


@pytest.mark.diagonal
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WEIGHTS)
def test_builder_programs_make_what_was_lowered(
    pipeline: Pipeline, folder: Path, tmp_path: Path, name: str, kind: str
) -> None:
    recipe = sample(folder, name, lowering="library" if kind == "library" else "te")
    if kind in ("inputs", "bound"):
        recipe = with_bound_params(with_params_as_inputs(recipe, True), kind == "bound")
    constants = assert_built(pipeline, recipe, tmp_path, fuse=kind == "fused")
    assert (WEIGHTS[name] in constants) == (kind != "inputs")


@pytest.mark.parametrize("name", [*COURSE, "mlp_library", "mlp_tvmscript"])
def test_builder_programs_make_modules_without_torch(
    pipeline: Pipeline, folder: Path, tmp_path: Path, name: str
) -> None:
    assert_built(pipeline, sample(folder, name), tmp_path)


@pytest.mark.parametrize("name", ["matmul_relu", "fashion_mlp", "conv_net", "transformer_block"])
def test_a_whole_model_in_numpy_computes_what_torch_does(
    pipeline: Pipeline, folder: Path, name: str
) -> None:
    stages = pipeline.stages(sample(folder, name, lowering="te"))
    model, inputs = stages.loaded.model, [each.value for each in stages.loaded.inputs]
    assert model is not None
    names: dict[str, Any] = {
        key.replace(".", "_"): value.numpy() for key, value in model.state_dict().items()
    }
    for title, function in prim_funcs_of(stages.completed).items():
        exec(numpy_text(function, title).text, names)
    record = write_text(stages, "numpy", "main")
    exec(record.text, names)
    actual = names["lnumpy_main"](*(each.numpy() for each in inputs))
    expected = model(*inputs).detach().numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
    # What is selected in the script is marked in it.
    assert {each.entity for each in record.spans} >= {
        each.id for each in binding_ids(stages.module)
    }
