"""Rules of the user's own: which node they lower, and what becomes of those that fail."""

from __future__ import annotations

import textwrap
from pathlib import Path

import msgspec
import pytest
from tvm_ffi import structural_equal

from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.queries import RunQuery, SnapshotQuery
from lowerscope.core.model.recipe import Extension, Recipe, Source, Strategy, from_json, to_json
from lowerscope.core.model.run_records import RunRecord
from lowerscope.core.model.snapshot import FxNode, Note
from lowerscope.core.stages import Pipeline
from tests.problems import problem_of

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.act = torch.nn.GELU()

    def forward(self, x):
        high, low = torch.split(self.act(self.linear(x)), 1)
        return (high + low * 2).relu(), torch.sub(high, low, alpha=3)

def example_inputs():
    return (torch.randn(2, 4),)
"""

HEAD = """
import torch
from tvm import relax, te
from lowerscope.core.rules import Refused, rule
"""

RELU = """
@rule("relu", strategy="te")
def my_relu(builder, node, x):
    def te_relu(a):
        return te.compute(a.shape, lambda *i: te.max(a(*i), 0.0), name="relu")

    return builder.emit_te(te_relu, x)
"""


def recipe_with(
    folder: Path, *rules: str, lowering: Strategy = "high-level", model: str = MODEL
) -> Recipe:
    (folder / "model.py").write_text(model)
    paths = [folder / f"rules_{number}.py" for number in range(len(rules))]
    for path, text in zip(paths, rules, strict=True):
        path.write_text(HEAD + textwrap.dedent(text))
    return Recipe(
        source=Source(spec=str(folder / "model.py")),
        lowering=lowering,
        extensions=tuple(Extension(path=str(path), kind="rules") for path in paths),
    )


def shown(
    pipeline: Pipeline, recipe: Recipe
) -> tuple[dict[str, FxNode], tuple[Note, ...], RunRecord]:
    """Return the nodes by name, the notes, and the outcome of a run."""
    snapshot = pipeline.answer(SnapshotQuery(recipe, DEFAULT))
    return (
        {node.name: node for node in snapshot.fx},
        snapshot.notes,
        pipeline.answer(RunQuery(recipe)),
    )


def test_a_rule_goes_before_the_built_in_one_and_is_named(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    recipe = recipe_with(tmp_path, RELU, lowering="te")
    nodes, notes, run = shown(pipeline, recipe)
    assert run.verdict == "match"
    assert notes == ()
    assert nodes["relu"].rule == "my_relu, rules_0.py:6"
    line = nodes["relu"].rule_line
    assert line is not None
    assert (line.file, line.line) == (recipe.extensions[0].path, 6)
    assert line.text == '@rule("relu", strategy="te")'
    assert nodes["relu"].strategy == "te"
    assert nodes["act"].rule_line is None


def test_a_later_file_wins_and_one_that_is_off_does_not_count(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    second = """
    @rule("relu", name="second")
    def another(builder, node, x):
        return relax.op.maximum(x, relax.const(0, node.dtype))
    """
    recipe = recipe_with(tmp_path, RELU, second, lowering="te")
    nodes, _, run = shown(pipeline, recipe)
    assert nodes["relu"].rule.startswith("second, rules_1.py")
    assert run.verdict == "match"
    first, last = recipe.extensions
    off = msgspec.structs.replace(last, on=False)
    nodes, _, _ = shown(pipeline, msgspec.structs.replace(recipe, extensions=(first, off)))
    assert nodes["relu"].rule.startswith("my_relu")
    swapped = msgspec.structs.replace(recipe, extensions=(last, first))
    nodes, _, _ = shown(pipeline, swapped)
    assert nodes["relu"].rule.startswith("my_relu")
    assert from_json(to_json(swapped)) == swapped


@pytest.mark.diagonal
@pytest.mark.parametrize(
    ("body", "line", "reason"),
    [
        ("return 3", 6, "it returned a value of type int, not a Relax expression"),
        ("return None", 6, "it returned None, not a Relax expression"),
        ("return (x, x)", 6, "it returned a tuple of 2, not a Relax expression"),
        ("return x.nothing", 8, "AttributeError"),
        (
            "return relax.op.sum(x, axis=[1])",
            6,
            "it returned 2 float32 where torch has 2×3 float32",
        ),
        ("return relax.op.astype(x, 'int32')", 6, "it returned 2×3 int32 where torch has 2×3"),
        ("raise KeyError('gone')", 8, "KeyError: 'gone'"),
        ("raise SystemExit(3)", 8, "it ends Python itself"),
        ("raise Refused('only on Sundays')", 6, "it rejects the node: only on Sundays"),
        ("return builder.emit_te(lambda a: a.nothing, x)", 8, "nothing"),
        ("builder.emit_func_output(x)", 8, "a rule may not call builder.emit_func_output"),
        ("return relax.op.matmul(x, x)", 6, "cannot be bound"),
        (
            "return relax.Var('stray', relax.TensorType((2, 3), 'float32'))",
            6,
            "it used the unbound variable stray",
        ),
        (
            "builder.emit(relax.op.abs(x)); raise ValueError('too late')",
            8,
            "lowering the node failed: ValueError: too late",
        ),
    ],
)
@pytest.mark.parametrize("lowering", ["high-level", "te"])
def test_a_rule_that_fails_is_told_of_with_its_line_and_not_used(
    pipeline: Pipeline, tmp_path: Path, lowering: Strategy, body: str, line: int, reason: str
) -> None:
    rules = f"""
    @rule(torch.nn.GELU)
    def mine(builder, node, x):
        {body}
    """
    recipe = recipe_with(tmp_path, rules, lowering=lowering)
    snapshot = pipeline.answer(SnapshotQuery(recipe, DEFAULT))
    (note,) = snapshot.notes
    assert note.where == f"{recipe.extensions[0].path}:{line}"
    assert note.text.startswith("mine: ")
    assert reason in note.text
    assert note.text.endswith("; lowered without it: act")
    (node,) = (node for node in snapshot.fx if node.name == "act")
    assert node.rule.startswith("gelu: ")
    assert "; without mine, rules_0.py:6: " in node.rule
    assert node.rule_line is None
    plain = msgspec.structs.replace(recipe, extensions=())
    modules = (pipeline.stages(each).module for each in (recipe, plain))
    assert structural_equal(*modules)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("x = (", 5, "this is not valid Python"),
        ("import nowhere_at_all", 6, "No module named 'nowhere_at_all'"),
        (
            "@rule(torch.nn.GELU, strategy='library')\ndef f(b, n, x): ...",
            6,
            "is none of high-level",
        ),
        ("@rule(torch.Tensor)\ndef f(b, n, x): ...", 6, "Tensor is none"),
        ("@rule(torch.ops.aten.gelu)\ndef f(b, n, x): ...", 6, "aten.gelu.default"),
        ("@rule(3)\ndef f(b, n, x): ...", 6, "no node calls 3"),
        ("@rule()\ndef f(b, n, x): ...", 6, "needs what it is for"),
    ],
)
def test_a_file_that_does_not_run_is_one_line(
    pipeline: Pipeline, tmp_path: Path, text: str, line: int, reason: str
) -> None:
    recipe = recipe_with(tmp_path, text)
    problem = problem_of(pipeline.answer, SnapshotQuery(recipe, DEFAULT))
    assert reason in problem.what
    assert problem.where.rpartition(":")[0] == recipe.extensions[0].path
    assert abs(int(problem.where.rpartition(":")[2]) - line) <= 1


def test_a_change_of_the_file_or_of_what_it_imports_is_seen(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    (tmp_path / "shared.py").write_text("FACTOR = 2.0\n")
    rules = """
    from shared import FACTOR

    @rule("relu")
    def scaled(builder, node, x):
        return relax.op.multiply(x, relax.const(FACTOR, node.dtype))
    """
    recipe = recipe_with(tmp_path, rules)
    before = pipeline.answer(SnapshotQuery(recipe, DEFAULT))
    assert 'R.const(2.0, "float32")' in before.relax.text
    assert pipeline.answer(SnapshotQuery(recipe, DEFAULT)).key == before.key
    (tmp_path / "shared.py").write_text("FACTOR = 2.25\n")
    after = pipeline.answer(SnapshotQuery(recipe, DEFAULT))
    assert 'R.const(2.25, "float32")' in after.relax.text
    assert after.key != before.key
    path = Path(recipe.extensions[0].path)
    path.write_text(path.read_text().replace("scaled", "renamed"))
    nodes, _, _ = shown(pipeline, recipe)
    assert nodes["relu"].rule.startswith("renamed")
