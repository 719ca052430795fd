"""The difference of the modules at two moments, against plain difflib over TVM's own scripts."""

from __future__ import annotations

import difflib

import msgspec
import pytest
import tvm

from lowerscope.core.engine.pipeline import Pipeline
from lowerscope.core.model.line_difference import unified_text
from lowerscope.core.model.module_steps import ComparedModule, DifferenceRecord, Moment
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import DifferenceQuery
from lowerscope.core.model.recipe import Recipe, Source

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


def test_two_lowerings_say_which_is_which(pipeline: Pipeline) -> None:
    other = msgspec.structs.replace(RECIPE, lowering="te", seed=3)
    found = compare(pipeline, ComparedModule(recipe=RECIPE), ComparedModule(recipe=other))
    assert found.old_label == "fashion_mlp · High-level · after all passes · seed: 0"
    assert found.new_label == "fashion_mlp · TE · after all passes · seed: 3"
    statuses = {each.name: each.status for each in found.functions}
    assert statuses["dense"] == "added"
    assert statuses["transpose"] == "removed"
    assert statuses["main"] == "changed"


def test_before_a_step_is_what_the_step_was_given(pipeline: Pipeline) -> None:
    given = ComparedModule(recipe=RECIPE, moment=LEGAL, before=True)
    found = compare(pipeline, given, ComparedModule(recipe=RECIPE, moment=START))
    assert {each.status for each in found.functions} == {"same"}
    assert found.old_label.endswith("before 1 LegalizeOps")


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


def test_a_moment_that_there_is_not(pipeline: Pipeline) -> None:
    with pytest.raises(LowerscopeError, match="there is no step 7"):
        compare(
            pipeline,
            ComparedModule(recipe=RECIPE, moment=Moment(section="passes", index=7)),
            ComparedModule(recipe=RECIPE),
        )
