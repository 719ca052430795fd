"""The texts of a step: its sentence, the lines that moved, the nodes that it changed, code."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from lowerscope.app.panes.difference.difference_page import diff_part
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.module_steps import (
    ComparedModule,
    DifferenceRecord,
    FunctionDifference,
    Moment,
)
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import (
    CodeDifferenceQuery,
    DifferenceQuery,
    TouchingStepsQuery,
    WhyFusedQuery,
)
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.step_sentences import BUILD_RULES
from lowerscope.resources import HELP
from tests.core.views.step_words import check_sentences

pytestmark = pytest.mark.usefixtures("shared_results")


def recipe_of(sample: str, preset: str) -> Recipe:
    source = Source(spec=f"sample:{sample}")
    return Recipe(source=source, steps=find_pipeline(preset).steps)


@pytest.mark.parametrize(
    ("sample", "preset"),
    [
        ("fashion_mlp", "fuse"),
        ("fashion_mlp", "default-build"),
        ("fashion_mlp", "optimise-cpu"),
        ("conv_net", "optimise-cpu"),
        ("transformer_block", "cpu"),
    ],
)
def test_each_sentence_says_what_changed(sample: str, preset: str) -> None:
    assert list(check_sentences(Pipeline(), recipe_of(sample, preset))) == []


def test_batch_norms_before_and_behind_a_convolution_are_told_apart(tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torch import nn\n"
        "model = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))"
        "\nexample_inputs = (torch.randn(1, 3, 8, 8),)\n"
    )
    (tmp_path / "net.py").write_text(text)
    steps = find_pipeline("optimise-cpu").steps
    recipe = Recipe(source=Source(spec=str(tmp_path / "net.py")), steps=steps)
    assert difference(Pipeline(), recipe, "FoldBatchNorm").sentence == (
        "FoldBatchNorm folded 1 batch norm into the weights and biases before it and made 1 batch "
        "norm a multiplication and an addition."
    )


def test_what_is_called_by_name_is_no_tensorir_function() -> None:
    source = Source(spec=str(HELP / "course" / "two_blocks.py"))
    recipe = Recipe(source=source, steps=find_pipeline("legalise").steps)
    words = difference(Pipeline(), recipe, "LegalizeOps").sentence
    assert words.endswith("with 5 calls of `R.call_tir` and `relax.run.print`.")


def test_passes_of_the_build_are_described() -> None:
    pipeline, recipe = Pipeline(), recipe_of("conv_net", "optimise-cpu")
    runs = pipeline.stages(recipe).recorded.runs
    assert {each.name for each in runs} >= set(BUILD_RULES) - {"tirx.BF16ComputeLegalize"}
    told = {}
    for index, run in enumerate(runs, start=1):
        if run.name in BUILD_RULES:
            moment = Moment(section="build", index=index)
            here = ComparedModule(recipe=recipe, moment=moment)
            before = ComparedModule(recipe=recipe, moment=moment, before=True)
            told[run.name] = pipeline.answer(DifferenceQuery(before, here)).sentence
    assert told["tirx.BindTarget"].endswith(" to the target.")
    assert "calls that free values" in told["RemoveKills"]
    for name, words in told.items():
        assert "changed the function" not in words, f"{name}: {words}"


def difference(pipeline: Pipeline, recipe: Recipe, name: str) -> DifferenceRecord:
    """Return what a pass of a recipe did."""
    runs = pipeline.stages(recipe).transformed.runs
    index = 1 + next(place for place, run in enumerate(runs) if run.name == name)
    moment = Moment(section="passes", index=index)
    here = ComparedModule(recipe=recipe, moment=moment)
    before = ComparedModule(recipe=recipe, moment=moment, before=True)
    return pipeline.answer(DifferenceQuery(before, here))


def moved(record: DifferenceRecord, name: str) -> list[tuple[str, str, str]]:
    """Return the lines that moved into a function: from which one, and both texts."""
    texts = {each.name: (each.old.split("\n"), each.new.split("\n")) for each in record.functions}
    (function,) = (each for each in record.functions if each.name == name)
    return [
        (
            run.other,
            texts[run.other][0][run.old - 1 + place].strip(),
            texts[name][1][run.new - 1 + place].strip(),
        )
        for run in function.runs
        if run.status == "moved-in"
        for place in range(run.length)
    ]


def test_bindings_of_a_group_moved_into_its_function() -> None:
    record = difference(Pipeline(), recipe_of("fashion_mlp", "fuse"), "FuseOps")
    assert record.sentence == (
        "FuseOps grouped `matmul`, `add` and `relu` into `fused_matmul_add_relu`, and `matmul1` "
        "and `add1` into `fused_matmul1_add1`."
    )
    lines = moved(record, "fused_matmul_add_relu")
    assert [(other, old.split("(")[0:2]) for other, old, _ in lines] == [
        ("main", old.split("(")[0:2]) for _, old, _ in lines
    ]
    assert [old.partition(" ")[0] for _, old, _ in lines] == ["lv1", "lv2", "lv3"]
    assert [new.partition(" ")[0] for _, _, new in lines] == ["lv1", "lv2", "gv"]


def test_bodies_of_fused_functions_moved_into_one() -> None:
    record = difference(Pipeline(), recipe_of("fashion_mlp", "fuse"), "FuseTIR")
    lines = moved(record, "fused_matmul_add_relu")
    assert {other for other, _, _ in lines} == {"matmul", "add", "relu"}
    blocks = [new for _, old, new in lines if old == new and new.startswith("with T.sblock")]
    assert blocks == [
        'with T.sblock("matmul"):',
        'with T.sblock("T_add"):',
        'with T.sblock("compute"):',
    ]


def test_the_fusion_that_a_step_made_can_be_explained() -> None:
    pipeline, recipe = Pipeline(), recipe_of("fashion_mlp", "fuse")
    for name in ("FuseOps", "FuseTIR"):
        one, other = difference(pipeline, recipe, name).fused
        answer = pipeline.answer(WhyFusedQuery(recipe, one, other))
        assert answer.fused
        assert answer.by.startswith("FuseOps: fused_matmul")
    assert difference(pipeline, recipe, "LegalizeOps").fused == ()


def test_lines_in_the_place_of_moved_ones_are_added() -> None:
    record = difference(Pipeline(), recipe_of("fashion_mlp", "fuse"), "FuseOps")
    (main,) = (each for each in record.functions if each.name == "main")
    replaced = sum(run.length for run in main.runs if run.status == "changed" and run.other)
    added = sum(run.length for run in main.runs if run.status == "added")
    assert replaced > 0
    assert main.added == replaced + added
    part = diff_part(main, groups={each.name: 0 for each in record.functions if each.moved_in})
    assert (part.count("added"), part.count("changed")) == (main.added, main.changed)


def test_a_function_that_takes_the_place_of_another_has_its_lines() -> None:
    record = difference(
        Pipeline(), recipe_of("fashion_mlp", "optimise-cpu"), "AttachAttrLayoutFreeBuffers"
    )
    (old,) = {other for other, _, _ in moved(record, "fused_matmul_add_relu1")}
    assert old == "fused_matmul_add_relu"


def test_steps_that_change_a_node_are_those_that_change_its_lines_or_functions() -> None:
    pipeline, recipe = Pipeline(), recipe_of("fashion_mlp", "optimise-cpu")
    runs = pipeline.stages(recipe).transformed.runs

    def names(*entities: str) -> list[str]:
        numbers = pipeline.answer(TouchingStepsQuery(recipe, entities))
        return [runs[number - 1].name for number in numbers]

    assert names("fx:linear0")[:5] == [
        "FuseMatrixTranspose",
        "LegalizeOps",
        "AnnotateTIROpPattern",
        "FuseOps",
        "FuseTIR",
    ]
    # A relu has no weights.
    assert "FuseMatrixTranspose" not in names("fx:relu")
    assert names("fx:nothing") == []
    assert set(names("fx:relu")) <= set(names("fx:relu", "fx:linear0"))


def test_a_line_with_another_constant_of_the_same_number_is_changed() -> None:
    pipeline, recipe = Pipeline(), recipe_of("depthwise_net", "optimise-cpu")
    function = difference(pipeline, recipe, "FoldBatchNorm").functions[0]
    printed = 'metadata["ir.GenericConst"][0]'
    place = next(at for at, line in enumerate(function.old.split("\n"), 1) if printed in line)
    (run,) = (each for each in function.runs if each.old <= place < each.old + each.length)
    assert run.status == "changed"
    assert function.new.split("\n")[run.new - 1 + place - run.old] in function.old
    assert function.old_names[printed] != function.new_names[printed]
    assert function.changed == sum(
        each.length for each in function.runs if each.status == "changed"
    )
    # What reads the constant in that line is what the pass changed, though it reads the same.
    assert pipeline.answer(TouchingStepsQuery(recipe, ("relax:main/lv",)))[0] == 1


@pytest.mark.parametrize("view", ["llvm", "asm"])
def test_code_of_a_function_before_and_after_its_schedule(view: Literal["llvm", "asm"]) -> None:
    pipeline, recipe = Pipeline(), recipe_of("fashion_mlp", "optimise-cpu")
    runs = pipeline.stages(recipe).transformed.runs
    name = "fused_matmul_add_relu1"

    def code(step: str) -> FunctionDifference:
        index = 1 + next(place for place, run in enumerate(runs) if run.name == step)
        moment = Moment(section="passes", index=index)
        sides = (
            ComparedModule(recipe=recipe, moment=moment, before=True),
            ComparedModule(recipe=recipe, moment=moment),
        )
        (function,) = pipeline.answer(CodeDifferenceQuery(*sides, name, view)).functions
        return function

    scheduled = code("ApplyRules")
    assert scheduled.status == "changed"
    assert name in scheduled.old
    assert name in scheduled.new
    # It took the place of a function of another name, which computes the same.
    renamed = code("AttachAttrLayoutFreeBuffers")
    assert (renamed.added, renamed.removed) == (0, 0)
    with pytest.raises(LowerscopeError, match="no TensorIR function"):
        code("FoldBatchNorm")
