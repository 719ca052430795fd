"""The step that makes a model differ is named, and the model is shrunk to what shows it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
import tvm

from lowerscope.core.bisect import answering
from lowerscope.core.bisect.shrinking import Parts
from lowerscope.core.cli.main import main, recipe_of_command
from lowerscope.core.model.explanation_records import PROGRAM, BisectRecord, WrittenFile
from lowerscope.core.model.problems import Cancelled
from lowerscope.core.model.queries import BisectQuery
from lowerscope.core.run.execution import Execution, filled_memory
from lowerscope.core.stages import Pipeline
from tests.core.seeding import partitioned_reduction
from tests.diagonal import at_length
from tests.soak import wrong_passes
from tests.warm_processes import run_warm

FILE = Path(wrong_passes.__file__)

FUSING = ("AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR")

NAMED_WITHIN, SHRUNK_WITHIN = 90, 180
"""Seconds of the processor."""

WRONG = {
    "conv_net": "relu_as_absolute short_product "
    "dropped_bias clipped_relu transposed_kernel shifted_padding half_convolution "
    "pooled_by_average reshaped_transpose short_convolution wrong_start subtracted "
    "late_padding leaking forgotten_rows high_start",
    "transformer_block": "lost_negative_axis "
    "dropped_transpose swapped_operands dropped_division wrong_epsilon "
    "gelu_as_relu dropped_residual half_product short_sum wrong_start subtracted "
    "wrong_permutation doubled_scale wrong_mean",
    "resnet18": "dropped_residual transposed_kernel dropped_shift mean_as_variance "
    "pooled_by_average short_convolution forgotten_rows",
}
"""Wrong passes in samples."""

FAST = ("fashion_mlp", "relu_as_absolute")


shows_difference = answering.shows_difference


def shows_difference_soon(
    files: Sequence[WrittenFile], folder: Path, _check: Callable[[], None]
) -> bool:
    """Run a reproduction in a process that has imported torch and TVM.

    This process has operators of Lowerscope's own besides, which show other differences.
    """
    for each in files:
        path = folder / each.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(each.content)
    ran = run_warm(str(folder / PROGRAM), folder=folder)
    return answering.is_difference(ran.returncode, ran.stderr)


@pytest.fixture(autouse=True)
def _in_a_warm_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "shows_difference", shows_difference_soon)


def with_steps(*steps: str) -> tuple[str, ...]:
    return ("--pipeline", "none", *(word for step in steps for word in ("--pass", step)))


def wrong(model: str, name: str) -> tuple[str, ...]:
    """Return the options of a sample with a wrong pass among its steps."""
    own, first = f"wrong_passes.{name}", name in wrong_passes.BEFORE
    steps = (own, "LegalizeOps") if first else ("LegalizeOps", own)
    smaller = ("--input", "x=1,3,64,64:float32") if model == "resnet18" else ()
    return (f"sample:{model}", *smaller, "--passes", str(FILE), *with_steps(*steps, *FUSING))


def bisected(pipeline: Pipeline, options: Sequence[str]) -> BisectRecord:
    return pipeline.answer(BisectQuery(recipe_of_command(("run", *options))))


def most_builds(record: BisectRecord) -> int:
    return math.ceil(math.log2(record.steps)) + 2


@pytest.mark.parametrize(
    "case",
    [FAST, *at_length(*((each, name) for each, names in WRONG.items() for name in names.split()))],
    ids="-".join,
)
def test_a_wrong_pass_is_named_and_its_model_shrunk(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[str, str],
) -> None:
    name = case[1]
    named = []
    find = answering.Search.find

    def timed_find(search: answering.Search) -> object:
        item = find(search)
        named.append(time.process_time())
        return item

    monkeypatch.setattr(answering.Search, "find", timed_find)
    start = time.process_time()
    options = wrong(*case)
    assert main(("bisect", *options, "--json", "--output", str(tmp_path))) == 1
    took = named[0] - start, time.process_time() - named[0]
    assert took[0] < NAMED_WITHIN
    assert took[1] < SHRUNK_WITHIN
    found = json.loads(capsys.readouterr().out)
    assert (found["stage"], found["name"]) == ("pass", f"wrong_passes.{name}")
    assert found["builds"] <= math.ceil(math.log2(found["steps"])) + 2
    assert found["nodes"] <= 3
    script = Path(found["reproduce"])
    assert len(script.read_text().splitlines()) <= 60
    ran = run_warm(str(script), folder=tmp_path)
    assert f"before wrong_passes.{name}: matches torch" in ran.stdout
    assert f"AssertionError: after wrong_passes.{name}: " in ran.stderr
    assert "apache-tvm" in (tmp_path / "report.md").read_text()


def test_there_is_nothing_to_find_where_nothing_differs(pipeline: Pipeline) -> None:
    record = bisected(pipeline, ("sample:fashion_mlp",))
    assert (record.outcome, record.stage, record.files) == ("match", "", ())


def test_a_wrong_primitive_is_named(pipeline: Pipeline, tmp_path: Path) -> None:
    options, _node = partitioned_reduction("fashion_mlp", tmp_path, "high-level")
    record = bisected(pipeline, options)
    assert (record.stage, record.name, record.function) == ("schedule", "loop_partition", "matmul1")
    assert record.moment is not None
    assert (record.moment.section, record.moment.index) == ("schedule", 1)
    assert record.builds <= most_builds(record)
    assert record.nodes == 1
    written = record.files[0].content.decode()
    assert "loop_partition" in written
    assert len(written.splitlines()) <= 60


FORGETFUL = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def relu(x: T.Buffer((64, 64), "float32"), y: T.Buffer((64, 64), "float32")):
        for i, j in T.grid(63, 64):
            y[i, j] = T.max(x[i, j], T.float32(0))

    @R.function
    def main(x: R.Tensor((64, 64), dtype="float32")) -> R.Tensor((64, 64), dtype="float32"):
        with R.dataflow():
            y = R.call_tir(Module.relu, (x,), out_ty=R.Tensor((64, 64), dtype="float32"))
            R.output(y)
        return y
"""


def test_elements_that_are_never_written_are_wrong_each_time() -> None:
    executable = tvm.compile(tvm.script.from_source(FORGETFUL), "llvm")
    x = torch.rand(64, 64)
    kept = [torch.relu(x) for _turn in range(4)]
    del kept  # The memory has the right values now.
    for _turn in range(3):
        with filled_memory():
            (found,) = Execution(executable, "main", (x,)).outputs()
        assert torch.equal(found[:63], x[:63])
        assert bool((found[63] > 1e6).all())


RULE = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.nn.ReLU)
def wrong_relu(builder, node, x):
    return builder.emit(relax.op.abs(x))
"""


def test_a_wrong_translation_is_named(pipeline: Pipeline, tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(RULE)
    record = bisected(pipeline, ("sample:fashion_mlp", "--rules", str(tmp_path / "rules.py")))
    assert (record.stage, record.name, record.entity) == ("translate", "relu", "fx:relu")
    assert record.nodes == 1
    # The translation is written down: the rules, which need Lowerscope, are not.
    written = record.files[0].content.decode()
    assert "relax.op.abs(" in written
    assert "lowerscope" not in written


WRONG_EPSILON = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.nn.LayerNorm)
def wrong_epsilon(builder, node, x):
    weight, bias = builder.constant(node.module.weight), builder.constant(node.module.bias)
    made = relax.op.nn.layer_norm(x, weight, bias, axes=[-1], epsilon=1e-4)
    return builder.emit(made)
"""

HIDING = """
import torch

entry = torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.Tanh())
example_inputs = (torch.randn(8, 64, generator=torch.Generator().manual_seed(0)),)
"""


@pytest.mark.parametrize("is_pass", [True, False])
def test_a_step_whose_fault_the_tolerance_hides_is_named(
    pipeline: Pipeline, tmp_path: Path, is_pass: bool
) -> None:
    model, passes, rules = (tmp_path / f"{name}.py" for name in ("model", "passes", "rules"))
    model.write_text(HIDING)
    passes.write_text(FILE.read_text().replace("epsilon=0.5", "epsilon=1e-4"))
    rules.write_text(WRONG_EPSILON)
    own = ("passes.wrong_epsilon",) if is_pass else ()
    file = ("--passes", str(passes)) if is_pass else ("--rules", str(rules))
    record = bisected(pipeline, (str(model), *file, *with_steps(*own, "LegalizeOps", *FUSING)))
    assert (record.outcome, record.entity) == ("found", "fx:_0"), record.text
    named = ("pass", "passes.wrong_epsilon") if is_pass else ("translate", "_0")
    assert (record.stage, record.name) == named


MODEL = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        return torch.isnan({value}).float() + y


example_inputs = (torch.rand(4, 4),)
"""


def test_the_optimisation_of_llvm_is_named(pipeline: Pipeline, tmp_path: Path) -> None:
    # Told that nothing is NaN, LLVM answers without a look.
    (tmp_path / "model.py").write_text(MODEL.format(value="torch.log(-y - 1)"))
    target = '{"kind": "llvm", "fast-math-nnan": true}'
    record = bisected(pipeline, (str(tmp_path / "model.py"), "--target", target))
    assert (record.stage, record.name) == ("build", "LLVM")
    assert record.nodes <= 3
    assert "opt-level" in record.files[0].content.decode()


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        ("raise AssertionError('after LegalizeOps: other values')", True),
        ("raise AssertionError('before LegalizeOps: other values')", False),
        ("print('after LegalizeOps: matches torch')", False),
    ],
)
def test_a_reproduction_shows_a_difference_after_the_step(
    tmp_path: Path, text: str, shows: bool
) -> None:
    file = WrittenFile(name="reproduce.py", content=text.encode())
    assert shows_difference((file,), tmp_path, lambda: None) == shows


def test_a_reproduction_that_never_ends_can_be_cancelled(tmp_path: Path) -> None:
    def cancel() -> None:
        raise Cancelled

    file = WrittenFile(name="reproduce.py", content=b"import time; time.sleep(1000)")
    with pytest.raises(Cancelled):
        shows_difference((file,), tmp_path, cancel)


def test_a_model_that_draws_random_numbers_is_not_judged(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    # Without the draw that nothing reads, the other one gives other numbers.
    text = MODEL.format(value="y").replace("+ y", "+ torch.rand_like(y)")
    (tmp_path / "model.py").write_text(text.replace("return", "torch.rand_like(y); return"))
    steps = ("--pass", "DeadCodeElimination")
    record = bisected(pipeline, (str(tmp_path / "model.py"), *steps))
    assert (record.outcome, record.stage) == ("not-comparable", "")


UNSTABLE = """
import tvm

count = 0


@tvm.register_global_func("env.unstable", override=True)
def unstable(x, out):
    global count
    count += 1
    out.copyfrom(x.numpy() + count)
"""

CALLS = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.nn.ReLU)
def calls_unstable(builder, node, x):
    kind = relax.TensorType(tuple(node.shape), node.dtype)
    return builder.emit(relax.call_dps_packed("env.unstable", (x,), out_ty=kind))
"""


def test_a_difference_that_is_another_each_time_is_not_blamed(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    (tmp_path / "rules.py").write_text(CALLS)
    (tmp_path / "functions.py").write_text(UNSTABLE)
    record = bisected(
        pipeline,
        (
            *("sample:fashion_mlp", "--rules", str(tmp_path / "rules.py")),
            *("--library", str(tmp_path / "functions.py")),
        ),
    )
    assert (record.outcome, record.stage) == ("not-reproducible", "")


def test_parts_of_a_model_are_models(pipeline: Pipeline) -> None:
    # Every sample, cut in the middle: torch runs both halves.
    for name in ("conv_net", "transformer_block", "fashion_mlp"):
        stages = pipeline.stages(recipe_of_command(("run", f"sample:{name}")))
        assert stages.traced is not None
        parts = Parts(stages.traced, [each.value for each in stages.loaded.inputs], 0)
        middle = len(parts.names) // 2
        for names in (parts.names[:middle], parts.names[middle:]):
            made = parts.model_of(names)
            assert made is not None
            values: dict[str, object] = {}
            exec(f"import operator\nimport torch\n{made[0].text()}", values)
            model, inputs = values["Model"](), values["example_inputs"]()  # type: ignore[operator]
            assert len(inputs) == len(made[0].inputs)
            model.eval()(*inputs)
