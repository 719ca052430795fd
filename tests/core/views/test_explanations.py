"""Explanations of passes and of schedules agree with what these did."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lowerscope.core.files.pipelines_and_schedules import PRESETS, find_pipeline
from lowerscope.core.model.explanation_records import Explanation
from lowerscope.core.model.queries import (
    ChangingPassesQuery,
    ReasonsQuery,
    WhyFunctionQuery,
    WhyPassQuery,
)
from lowerscope.core.model.recipe import Recipe, Source, Step, Strategy
from lowerscope.core.model.schedule import APPLY_RULES
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.unchanged import why_unchanged
from tests.diagonal import SOAK

pytestmark = pytest.mark.usefixtures("shared_results")

DIFFICULT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.grouped = nn.ConvTranspose2d(8, 4, 3, stride=2, groups=2)
        self.split, self.second = nn.ConvTranspose2d(4, 4, 3, stride=2), nn.BatchNorm2d(4)
        self.scale = nn.Parameter(torch.ones(4, 1, 1))

    def forward(self, x):
        y = self.grouped(self.norm(torch.relu(self.convolution(x))))
        z = self.second(self.split(y)) * torch.exp(self.scale).sqrt()
        sums = torch.cumsum(z.reshape(1, -1), 1)
        return torch.topk(sums, 3)[0], z.argmax(1).sort()[0], torch.tanh(z).permute(0, 2, 1, 3)

model, example_inputs = Net().eval(), (torch.randn(1, 3, 6, 6),)
"""


def recipe_of(spec: str, pipeline: str, lowering: Strategy = "high-level") -> Recipe:
    return Recipe(source=Source(spec=spec), lowering=lowering, steps=find_pipeline(pipeline).steps)


@pytest.mark.parametrize(
    "sample",
    ["difficult", "matmul", "mlp_tvmscript", *(("conv_net", "transformer_block") if SOAK else ())],
)
def test_a_pass_that_changed_nothing_has_a_reason_and_no_other_has(
    tmp_path: Any, sample: str
) -> None:
    spec = f"sample:{sample}"
    if sample == "difficult":
        spec = str(tmp_path / "difficult.py")
        (tmp_path / "difficult.py").write_text(DIFFICULT)
    pipeline, reasons = Pipeline(), set()
    for lowering in ("high-level", "library"):
        for preset in PRESETS:
            for run in pipeline.stages(recipe_of(spec, preset.name, lowering)).transformed.runs:
                if run.depth == 0 and run.after is not None:
                    same = run.after.same_as(run.before) or (
                        run.after.script() == run.before.script()
                    )
                    unmet = why_unchanged(run.name, run.before)
                    assert same == (unmet is not None), (preset.name, lowering, run.name, unmet)
                    reasons.add("" if unmet is None else unmet.text)
    assert len(reasons) > 8


def why_pass(recipe: Recipe, name: str) -> Explanation:
    return Pipeline().answer(WhyPassQuery(recipe, Step(name=name)))


def test_a_pass_says_why_it_changed_nothing_and_a_change_helps() -> None:
    recipe = recipe_of("sample:fashion_mlp", "optimise-cpu")
    answer = why_pass(recipe, "FoldBatchNorm")
    assert (answer.fused, answer.cause, answer.cites) == (None, "unmet", ("step 2",))
    assert answer.text == "FoldBatchNorm changed nothing: the module has no batch norm"
    assert why_pass(recipe, "LegalizeOps").cause == "changed"
    alone = msgspec.structs.replace(recipe, steps=(Step(name="FuseTIR"), Step(name="FuseOps")))
    answer = why_pass(alone, "FuseOps")
    assert answer.cause == "unmet"
    assert answer.cites[1].startswith("relax:main/")
    assert answer.change is not None
    assert answer.change.steps is not None
    changed = msgspec.structs.replace(recipe, steps=answer.change.steps)
    assert why_pass(changed, "FuseOps").cause == "changed"
    off = msgspec.structs.replace(recipe, steps=(Step(name="FuseOps", on=False),))
    answer = why_pass(off, "FuseOps")
    assert answer.cause == "pass-off"
    assert answer.change is not None
    absent = why_pass(recipe_of("sample:fashion_mlp", "none"), "LegalizeOps")
    assert absent.cause == "pass-missing"
    assert absent.change is not None
    assert not any(each.startswith("step ") for each in absent.cites)
    fusing = why_pass(recipe_of("sample:fashion_mlp", "none"), "FuseOps")
    assert fusing.cause == "unmet"
    assert fusing.change is not None


def test_passes_that_would_change_something() -> None:
    recipe = recipe_of("sample:matmul_relu", "legalise")
    pipeline = Pipeline()
    names = pipeline.answer(ChangingPassesQuery(recipe, 1))
    assert {"AnnotateTIROpPattern", "ToNonDataflow", APPLY_RULES} < set(names)
    assert not {"LegalizeOps", "DispatchSortScan", "FoldBatchNorm"} & set(names)
    assert "LegalizeOps" in pipeline.answer(ChangingPassesQuery(recipe, 0))


def why_scheduled(recipe: Recipe, function: str) -> Explanation:
    return Pipeline().answer(WhyFunctionQuery(recipe, function))


def test_a_schedule_names_its_rule_and_the_reasons_of_its_steps() -> None:
    recipe = recipe_of("sample:fashion_mlp", "fuse")
    unscheduled = why_scheduled(recipe, "fused_matmul_add_relu")
    assert (unscheduled.fused, unscheduled.cause) == (None, "not-scheduled")
    assert unscheduled.change is not None
    assert unscheduled.change.steps is not None
    assert APPLY_RULES in [step.name for step in unscheduled.change.steps]
    ruled = msgspec.structs.replace(recipe, steps=unscheduled.change.steps)
    answer = why_scheduled(ruled, "tir:fused_matmul_add_relu")
    assert answer.cause == "scheduled"
    assert answer.by.startswith("rule: ")
    assert answer.by.removeprefix("rule: ") in unscheduled.text
    assert "\n  1. " in answer.text


def test_a_report_tells_of_each_pass_and_of_the_functions_with_most_work() -> None:
    recipe = recipe_of("sample:fashion_mlp", "optimise-cpu")
    told = dict(Pipeline().answer(ReasonsQuery(recipe)))
    places = range(1, len(recipe.steps) + 1)
    names = [f"{place} {step.name}" for place, step in zip(places, recipe.steps, strict=True)]
    assert list(told)[: len(names)] == names
    assert "no batch norm" in told["2 FoldBatchNorm"]
    functions = [text for about, text in told.items() if about not in names]
    assert functions[0].startswith("ApplyRules scheduled it by the rule contraction")
