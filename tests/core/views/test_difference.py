"""The difference of texts and of modules: against plain difflib, and back to both texts."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st

from lowerscope.core.model.line_difference import (
    FunctionText,
    changed_words,
    function_differences,
    line_runs,
    matching_lines,
    unified_text,
)
from lowerscope.core.model.module_steps import (
    ComparedModule,
    DifferenceRecord,
    FunctionDifference,
    Moment,
    Run,
)
from lowerscope.core.model.queries import DifferenceQuery
from lowerscope.core.model.recipe import Recipe, Source, Strategy, with_params_as_inputs
from lowerscope.core.stages import Pipeline
from tests.core.large_samples import LARGE
from tests.core.views.step_changes import compare_steps, recipe_of, with_rules_as_schedules
from tests.diagonal import at_length

pytestmark = pytest.mark.usefixtures("shared_results")

LINES = st.lists(
    st.sampled_from(["for i in range(8):", "    x[i] = y[i]", "    x[i] = z[i] + 1", "", "}"])
    | st.text(alphabet="ab =", max_size=4),
    max_size=60,
)


def both_sides(
    old: Sequence[str], new: Sequence[str], runs: Sequence[Run]
) -> tuple[list[str], list[str]]:
    """Put both texts together again from the rows, as they are shown."""
    left: list[str] = []
    right: list[str] = []
    for run in runs:
        for offset in range(run.length):
            if run.status != "added":
                assert run.old + offset == len(left) + 1
                left.append(old[run.old - 1 + offset])
            if run.status != "removed":
                assert run.new + offset == len(right) + 1
                right.append(new[run.new - 1 + offset])
            if run.status == "same":
                assert left[-1] == right[-1]
            if run.status == "changed":
                assert left[-1] != right[-1]
    return left, right


@given(LINES, LINES)
def test_both_texts_can_be_put_together_again_from_the_rows(old: list[str], new: list[str]) -> None:
    assert both_sides(old, new, line_runs(old, new)) == (old, new)


@given(LINES, LINES)
def test_as_many_lines_are_the_same_as_difflib_finds(old: list[str], new: list[str]) -> None:
    theirs = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    # A line that comes once on either side is kept, even where others would have matched then.
    ours = matching_lines(old, new)
    unique = set(old) & set(new)
    if all(old.count(line) > 1 or new.count(line) > 1 for line in unique):
        assert sum(each[2] for each in ours) >= sum(each.size for each in theirs)
    for first, second, length in ours:
        assert old[first : first + length] == new[second : second + length]


@pytest.mark.parametrize(
    ("old", "new", "removed", "added"),
    [
        ("for i, k in T.grid(8, 784):", "for i, k in T.grid(8, 785):", ["784"], ["785"]),
        ("v = T.axis.spatial(8, i)", "v = T.axis.spatial(8, i0 * 4 + i1)", ["i"], ["i0 * 4 + i1"]),
        ("lv = R.add(x, y)", "lv: R.Tensor = R.add(x, y)", [], [": R.Tensor"]),
        ("pass", "for i in range(8):", [], []),
        ("same", "same", [], []),
    ],
)  # fmt: skip
def test_changed_words(old: str, new: str, removed: list[str], added: list[str]) -> None:
    olds, news = changed_words(old, new)
    assert [old[start:end].strip() for start, end in olds] == removed
    assert [new[start:end].strip() for start, end in news] == added


def module(**functions: str) -> dict[str, FunctionText]:
    """Return functions with these texts."""
    return {name: FunctionText("tensorir", text) for name, text in functions.items()}


def test_functions_have_a_status_and_gone_ones_stand_where_they_stood() -> None:
    old = module(main="a\nb\nc", dense="d", relu="r", add="e")
    new = module(main="a\nB\nc", dense="d", fused="f\ng")
    found = {each.name: each for each in function_differences(old, new)}
    assert list(found) == ["main", "dense", "relu", "add", "fused"]
    assert [each.status for each in found.values()] == [
        "changed",
        "same",
        "removed",
        "removed",
        "added",
    ]
    assert figures(found["main"]) == (1, 1, 0)
    assert figures(found["fused"]) == (2, 0, 0)
    assert figures(found["relu"]) == (0, 1, 0)
    assert (found["dense"].old, found["dense"].new) == ("d", "")


def figures(function: FunctionDifference) -> tuple[int, int, int]:
    """Return the numbers of added, removed and changed lines."""
    return function.added, function.removed, function.changed


# The difference of the modules at two moments, against plain difflib over TVM's own scripts


RECIPE = Recipe(source=Source(spec="sample:fashion_mlp"))
START = Moment(section="passes", index=0)
LEGAL = Moment(section="passes", index=1)


def compare(pipeline: Pipeline, old: ComparedModule, new: ComparedModule) -> DifferenceRecord:
    """Return the difference of two sides."""
    return pipeline.answer(DifferenceQuery(old, new))


def scripts(module: tvm.IRModule) -> dict[str, str]:
    """Return the functions as TVM prints them, without remarks."""
    return {
        str(variable.name_hint): "\n".join(
            line
            for line in function.script(name=str(variable.name_hint)).split("\n")
            if line.strip() and not line.startswith("#")
        )
        for variable, function in module.functions_items()
    }


def test_functions_of_a_pass_against_difflib(pipeline: Pipeline) -> None:
    found = compare(
        pipeline,
        ComparedModule(recipe=RECIPE, moment=START),
        ComparedModule(recipe=RECIPE, moment=LEGAL),
    )
    stages = pipeline.stages(RECIPE)
    old, new = scripts(stages.module), scripts(stages.transformed.module)
    assert {each.name for each in found.functions} == old.keys() | new.keys()
    assert found.functions[0].name == "main"
    for each in found.functions:
        assert each.old == old.get(each.name, "")
        before, after = old.get(each.name, ""), new.get(each.name, "")
        changes = [
            line
            for line in difflib.ndiff(before.splitlines(), after.splitlines())
            if line[0] in "+-"
        ]
        assert (each.status == "same") == (not changes)
        assert each.added + each.changed == sum(line[0] == "+" for line in changes)
        assert each.removed + each.changed == sum(line[0] == "-" for line in changes)
    assert found.old_label == "fashion_mlp · High-level · before all passes"
    assert found.new_label == "fashion_mlp · High-level · after 1 LegalizeOps"


def test_other_values_of_constants_are_a_change(pipeline: Pipeline) -> None:
    """Weights that are drawn anew: the script reads the same."""
    sides = [
        ComparedModule(recipe=Recipe(source=Source(spec="sample:transformer_block"), seed=seed))
        for seed in (0, 1)
    ]
    found = compare(pipeline, *sides)
    (main,) = (each for each in found.functions if each.name == "main")
    assert main.status == "changed"
    assert main.old == main.new
    assert {run.status for run in main.runs} == {"same"}
    old, new = (
        dict(pipeline.stages(side.recipe).loaded.model.named_parameters()) for side in sides
    )
    assert main.constants
    for each in main.constants:
        apart = (old[each.name] - new[each.name]).detach().abs()
        assert each.shape == tuple(apart.shape)
        assert each.count == apart.numel()
        assert each.different == int((apart != 0).sum())
        assert each.largest == pytest.approx(apart.max().item())
    listed = {each.name for each in main.constants}
    assert listed == {name for name in old if not bool((old[name] == new[name]).all())}
    text = unified_text(found)
    assert f"# main: {main.constants[0].line()}" in text
    # Weights over the same memory are the same, whatever was done to the module.
    legal = compare(
        pipeline,
        ComparedModule(recipe=RECIPE, moment=START),
        ComparedModule(recipe=RECIPE, moment=LEGAL),
    )
    assert not any(each.constants for each in legal.functions)


# What a step changed is counted, marked and shown as the same


OUTPUTS = """
import torch

class InPlace(torch.nn.Module):
    def forward(self, x):
        y = x + 1
        y.mul_(2)
        return y

class Several(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.ones(2, 3))
        self.register_buffer("other", torch.zeros(2, 3))

    def forward(self, x, unused):
        low, high = torch.split(x, 1)
        return self.one, {"both": (low, high.sum())}, x * self.other, self.one

class Nothing(torch.nn.Module):
    def forward(self, x):
        return ()

class Same(torch.nn.Module):
    def forward(self, x):
        return x

in_place, several, nothing, same = InPlace(), Several(), Nothing(), Same()
example_inputs = (torch.ones(2, 3),)
several.example_inputs = (torch.ones(2, 3), torch.ones(4))
"""


@pytest.mark.diagonal
@pytest.mark.parametrize("lowering", ["high-level", "te", "library"])
@pytest.mark.parametrize(
    "preset", ["fuse", "cpu", "optimise-cpu", *at_length("none", "legalise", "default-build")]
)
@pytest.mark.parametrize(
    "sample", ["fashion_mlp", "matmul_relu", "mlp_tvmscript", *at_length("conv_net", *LARGE)]
)
def test_count_marks_and_difference_of_each_step_agree(
    sample: str, preset: str, lowering: Strategy
) -> None:
    compared = compare_steps(Pipeline(), recipe_of(sample, preset, lowering))
    assert compared.found == []
    assert compared.steps


def test_primitives_mark_lines_where_the_difference_shows_the_function() -> None:
    pipeline = Pipeline()
    recipe = with_rules_as_schedules(pipeline, recipe_of("fashion_mlp", "fuse"))
    assert recipe.schedules
    assert compare_steps(pipeline, recipe).found == []


@pytest.mark.diagonal
@pytest.mark.parametrize("inputs", [False, True], ids=["constants", "params-as-inputs"])
@pytest.mark.parametrize("entry", ["in_place", "several", "same"])
def test_nodes_and_outputs_of_all_kinds_agree(tmp_path: Path, entry: str, inputs: bool) -> None:
    path = tmp_path / "outputs.py"
    path.write_text(OUTPUTS)
    recipe = with_params_as_inputs(Recipe(source=Source(spec=str(path), entry=entry)), inputs)
    assert compare_steps(Pipeline(), recipe).found == []
