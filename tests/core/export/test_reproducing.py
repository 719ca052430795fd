"""``reproduce.py``: it needs torch and TVM alone, and does what the recipe says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch
import tvm
import tvm_ffi
from tvm import tirx

from lowerscope.core.export.folder import export
from lowerscope.core.model.artifacts import Wanted
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.schedule import At, Made, Primitive, Schedule
from lowerscope.core.stages import Pipeline
from tests.core.export.exporting import imports_of, loaded, recipe_of
from tests.core.large_samples import LARGE
from tests.diagonal import at_length
from tests.warm_processes import run_warm

REPRODUCE = (Wanted(name="reproduce"),)

NEST = """
import dataclasses

import torch
from torch import nn


@dataclasses.dataclass
class Batch:
    image: torch.Tensor
    scale: float


class Nest(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, batch, layers):
        y = self.norm(self.linear(batch.image)) * batch.scale + layers[0]
        z = self.attention(y[None], y[None], y[None])[0][0]
        return {"y": y, "z": torch.fft.rfft(z).real}


def example_inputs():
    return Batch(torch.randn(3, 4), 2.0), [torch.randn(3, 4)]
"""

PASSES = """
import tvm
from tvm import relax


@tvm.transform.module_pass(opt_level=0, name="Tag")
def tag(module, context):
    return module.with_attr("tagged", 1)


def fuse(level: int = 0) -> tvm.transform.Pass:
    return relax.transform.FuseOps(level)
"""

DOUBLE = """
import numpy as np
import tvm


@tvm.register_global_func("own.double", override=True)
def double(x, out):
    np.multiply(np.from_dlpack(x), 2, out=np.from_dlpack(out))
"""

CALLS_DOUBLE = """
import numpy as np
from tvm.script import ir as I, relax as R


@I.ir_module
class Doubled:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.call_dps_packed("own.double", (x,), R.Tensor((4,), "float32"))
            z = R.add(y, R.const(1.0, "float32"))
            R.output(z)
        return z


def example_inputs():
    return (np.arange(4, dtype="float32"),)


def reference(x):
    return 2 * x + 1
"""


PLACES = """
import torch


class Places(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 64)

    def forward(self, x):
        y = self.linear(x)
        return y.argmax(1), y.argmin(0), y.amax(1)


def example_inputs():
    return (torch.randn(8, 16),)
"""


LOOPS = """
import torch


class Loops(torch.nn.Module):
    def forward(self, x):
        return x.cumsum(0), torch.fft.rfft(x).abs()


def example_inputs():
    return (torch.randn(6, 96),)
"""


KEPT = """
import torch


class Kept(torch.nn.Module):
    def forward(self, x, y):
        return (
            (x - x) * y,
            torch.where(x == x, x, y),
            torch.where(~(x < y), x, y * 2),
            (x < y) | (x >= y),
            ((x + 1) - 1) * y,
        )


def example_inputs():
    x = torch.tensor([float("nan"), float("inf"), 0.0, 1e3, 1e8, 3.0])
    return x, x.flip(0).contiguous()
"""


KEPT_TENSORIR = """
from tvm.script import ir as I, tirx as T


@I.ir_module
class Same:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        T.func_attr({"global_symbol": "main", "tirx.noalias": True})
        for i in range(4):
            with T.sblock("C"):
                v = T.axis.spatial(4, i)
                C[v] = T.Select(T.Not(A[v] < T.float32(2)), A[v] - A[v], T.float32(1))


def example_inputs():
    import numpy as np

    return (np.array([np.inf, np.nan, 1, 3], "float32"),)


def reference(x):
    import numpy as np

    with np.errstate(invalid="ignore"):
        return np.where(~(x < 2), x - x, np.float32(1))
"""


def in_order(module: tvm.IRModule) -> tvm.IRModule:
    """Sort the statements of the functions that compute sizes when run.

    VMShapeLower takes them from a hash table of addresses: their order changes from call to call.
    """
    functions = dict(module.functions_items())
    for name, function in functions.items():
        if name.name_hint.startswith("shape_func") and isinstance(function.body, tirx.SeqStmt):
            body = tirx.SeqStmt(sorted(function.body.seq, key=str))
            functions[name] = function.with_body(body)
    return tvm.IRModule(functions, attrs=module.attrs, global_infos=module.global_infos)


def check(pipeline: Pipeline, recipe: Recipe, folder: Path) -> str:
    """Export the program, see that it makes the same module, and run it; return its text."""
    written = export(pipeline, recipe, folder, force=True, wanted=REPRODUCE)
    assert written.left_out == ()
    program = folder / "reproduce.py"
    assert imports_of(program) <= {"torch", "tvm", "tvm_ffi", "numpy"}
    made = loaded(program)
    source = made.open_source()
    model = made.open_model(source)
    lowered = made.lower(model)
    stages = pipeline.stages(recipe)
    assert tvm_ffi.structural_equal(lowered, stages.module)
    inputs = made.make_inputs(source, model)
    parameters = made.parameters_of(model, inputs)
    module = made.transform(lowered, {name: made.to_tvm(each) for name, each in parameters.items()})
    assert tvm_ffi.structural_equal(in_order(module), in_order(stages.completed))
    for ours, theirs in zip(inputs, stages.loaded.inputs, strict=True):
        torch.testing.assert_close(ours, theirs.value, rtol=0, atol=0, equal_nan=True)
    made.main()
    return program.read_text(encoding="utf-8")


@pytest.mark.diagonal
@pytest.mark.parametrize("lowering", ["high-level", "te", "library"])
@pytest.mark.parametrize(
    "sample", ["matmul_relu", "fashion_mlp", "mlp_tvmscript", *at_length("conv_net", *LARGE)]
)
def test_a_sample_is_reproduced_in_each_lowering(
    sample: str, lowering: str, pipeline: Pipeline, tmp_path: Path
) -> None:
    check(pipeline, recipe_of(f"sample:{sample}", "--lowering", lowering), tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        ["--pipeline", "fuse", "--schedule", "rules", "--target", "native"],
        ["--pipeline", "optimise-cpu", "--target", "native"],
        ["--importer", "tvm-fx"],
        ["--override", "relu=library", "--override", "linear0=te", "--params-as-inputs"],
        ["--dim", "b=1..8", "--input", "x=b,784"],
        ["--pass", "FuseOps:fuse_opt_level=2,max_depth=3", "--target", '{"kind": "llvm"}'],
        *at_length(["--pipeline", "none", "--threads", "1", "--seed", "5"], ["--bind-params"]),
    ],
    ids=lambda options: " ".join(options[:2]),
)
def test_settings_are_carried_over(options: list[str], pipeline: Pipeline, tmp_path: Path) -> None:
    check(pipeline, recipe_of("sample:fashion_mlp", *options), tmp_path)


def test_functions_without_blocks_are_left_out_of_passes_that_need_one(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    path = tmp_path / "loops.py"
    path.write_text(LOOPS)
    recipe = recipe_of(str(path), "--pipeline", "optimise-cpu")
    assert "without(module, ('cumsum" in check(pipeline, recipe, tmp_path)


@pytest.mark.parametrize("preset", ["optimise-cpu", *at_length("cpu", "default-build")])
def test_floats_are_kept_from_cancelling(preset: str, pipeline: Pipeline, tmp_path: Path) -> None:
    path = tmp_path / "kept.py"
    path.write_text(KEPT)
    check(pipeline, recipe_of(str(path), "--pipeline", preset), tmp_path)
    path.write_text(KEPT_TENSORIR)
    check(pipeline, recipe_of(str(path), "--pipeline", preset), tmp_path)


CONVOLUTIONS = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 16, 3, 2)
        self.winograd = torch.nn.Conv2d(16, 12, 3, padding=1)
        self.head = torch.nn.Conv2d(12, 17, 1)
        self.up = torch.nn.ConvTranspose2d(17, 2, 2, 2)
        self.dilated = torch.nn.ConvTranspose2d(2, 8, 2, dilation=2)

    def forward(self, x):
        return self.dilated(self.up(self.head(self.winograd(self.first(x)))))


example_inputs = (torch.randn(1, 3, 33, 33),)
"""


def test_convolutions_that_steps_leave_are_reproduced(pipeline: Pipeline, tmp_path: Path) -> None:
    """The reasons why a step leaves one are texts, which the program has in English."""
    path = tmp_path / "net.py"
    path.write_text(CONVOLUTIONS)
    check(pipeline, recipe_of(str(path), "--pipeline", "optimise-cpu"), tmp_path)


def test_a_schedule_by_hand_is_carried_over(pipeline: Pipeline, tmp_path: Path) -> None:
    steps = (
        ("s1", "split", {"loop": At(block="matmul", loop=1), "factors": (None, 16)}),
        ("s2", "vectorize", {"loop": Made(step="s1", output=1)}),
        ("s3", "parallel", {"loop": Made(step="s1")}),
    )
    primitives = tuple(Primitive(id=id, name=name, arguments=given) for id, name, given in steps)
    recipe = msgspec.structs.replace(
        recipe_of("sample:matmul_relu", "--pass", "ApplySchedules"),
        schedules=(Schedule(function="matmul", primitives=primitives),),
    )
    text = check(pipeline, recipe, tmp_path)
    assert "sch.split(" in text


@pytest.mark.parametrize("lowering", ["high-level", "library"])
def test_nested_inputs_of_the_users_own_classes(
    lowering: str, pipeline: Pipeline, tmp_path: Path
) -> None:
    path = tmp_path / "nest.py"
    path.write_text(NEST)
    recipe = recipe_of(str(path), "--args", '{"width": 4}', "--lowering", lowering)
    text = check(pipeline, recipe, tmp_path)
    assert "source.Batch(image=inputs[0], scale=2.0)" in text
    path.write_text(NEST + "\n# changed\n")
    with pytest.raises(AssertionError, match="has changed since"):
        loaded(tmp_path / "reproduce.py").open_source()


def test_passes_and_functions_of_the_users_own(pipeline: Pipeline, tmp_path: Path) -> None:
    for name, text in (("mine.py", PASSES), ("double.py", DOUBLE), ("net.py", CALLS_DOUBLE)):
        (tmp_path / name).write_text(text)
    passes = ["--passes", str(tmp_path / "mine.py"), "--pass", "mine.tag"]
    more = ["--pass", "AnnotateTIROpPattern", "--pass", "mine.fuse:level=2", "--pass", "FuseTIR"]
    check(pipeline, recipe_of("sample:matmul_relu", *passes, *more), tmp_path)
    library = ["--library", str(tmp_path / "double.py")]
    text = check(pipeline, recipe_of(str(tmp_path / "net.py"), *library), tmp_path)
    assert "matches NumPy" in text


def test_what_is_wrong_is_found(pipeline: Pipeline, tmp_path: Path) -> None:
    # TVM's importer loses alpha.
    path = tmp_path / "net.py"
    path.write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.add(x, x, alpha=3)\n\n"
        "def example_inputs():\n    return (torch.randn(4),)\n"
    )
    recipe = recipe_of(str(path), "--importer", "tvm-fx")
    export(pipeline, recipe, tmp_path, force=True, wanted=REPRODUCE)
    with pytest.raises(AssertionError, match="output 0"):
        loaded(tmp_path / "reproduce.py").main()


LIKE_RELU = """
import torch
from torch import nn

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 16)

    def forward(self, x):
        return self.second(self.first(x).relu()).clamp(0, 4) + 1

model = Own()
example_inputs = (torch.randn(4, 8),)
"""


@pytest.mark.parametrize(
    ("text", "options"),
    [
        # There TVM legalises without Lowerscope: the rules' schedules name blocks that both make.
        (PLACES, ["--override", "linear=library", "--pipeline", "fuse", "--schedule", "rules"]),
        # TVM's function of relu is another one than that of a maximum of 0.
        (LIKE_RELU, ["--pipeline", "optimise-cpu"]),
    ],
    ids=["scheduled by rules", "a clamp like relu"],
)
def test_it_runs_where_there_is_no_lowerscope(
    pipeline: Pipeline, tmp_path: Path, text: str, options: list[str]
) -> None:
    path = tmp_path / "places.py"
    path.write_text(text)
    recipe = recipe_of(str(path), *options, "--target", "native")
    export(pipeline, recipe, tmp_path / "out", force=True, wanted=REPRODUCE)
    hidden = tmp_path / "hidden" / "lowerscope"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('there is none')\n")
    program = str(tmp_path / "out" / "reproduce.py")
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(hidden.parent)!r})\n"
        f"runpy.run_path({program!r}, run_name='__main__')"
    )
    done = run_warm("-c", code, folder=Path("/"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("places.py matches torch: largest difference")
