"""Check of the sentences on steps against the scripts of both sides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.module_steps import (
    ComparedModule,
    DifferenceRecord,
    FunctionDifference,
    Moment,
)
from lowerscope.core.model.queries import DifferenceQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.passes.recording import pass_records
from lowerscope.core.stages import Pipeline

Scripts = Mapping[str, str]
"""Scripts by function."""


def _count(part: str, side: Scripts) -> int:
    return sum(len(re.findall(part, text)) for text in side.values())


def _lost(part: str) -> Callable[[Scripts, Scripts], int]:
    return lambda old, new: _count(part, old) - _count(part, new)


def _gained(part: str) -> Callable[[Scripts, Scripts], int]:
    return lambda old, new: _count(part, new) - _count(part, old)


OPERATOR = r"(?m)= R\.(?!call_tir|call_dps_packed|Tensor|shape|str|dtype)[\w.]+\("

NUMBERS: dict[str, Callable[[Scripts, Scripts], int]] = {
    "LegalizeOps": _lost(OPERATOR),
    "AnnotateTIROpPattern": _gained('"op_pattern"'),
    "FoldBatchNorm": _lost(r"R\.nn\.batch_norm\("),
    "WinogradConvolution": _lost(r"R\.nn\.conv2d\("),
    "PadConvolution": _lost(r"R\.nn\.conv[123]d\("),
    "AttachAttrLayoutFreeBuffers": _gained('"layout_free_buffers"'),
    "RewriteDataflowReshape": _gained(r"R\.reshape\("),
    "ToNonDataflow": _lost(r"with R\.dataflow\(\)"),
    "RemovePurityChecking": _gained('"relax.force_pure"'),
    "CallTIRRewrite": _lost(r"= R\.call_(tir|dps_packed)\("),
    "StaticPlanBlockMemory": _lost(r"R\.builtin\.alloc_tensor\("),
    "LowerAllocTensor": _lost(r"R\.builtin\.alloc_tensor\("),
    "AttachGlobalSymbol": _lost(r"\(private=True"),
}
"""The first number of a sentence, counted in the scripts of both sides."""

UNPRINTED = ("global_symbol",)
"""Attributes that a script shows by leaving ``private`` out."""

PRESET_PASSES = frozenset(step.name for preset in PRESETS for step in preset.steps)


def check_sentences(pipeline: Pipeline, recipe: Recipe) -> Iterator[str]:
    """Yield what is wrong about the sentences on the steps of a recipe."""
    stages = pipeline.stages(recipe)
    for record in pass_records(stages.transformed.runs):
        if record.status != "done":
            continue
        moment = Moment(section="passes", index=record.number)
        here = ComparedModule(recipe=recipe, moment=moment)
        before = ComparedModule(recipe=recipe, moment=moment, before=True)
        difference = pipeline.answer(DifferenceQuery(before, here))
        for wrong in _wrong(record.name, difference):
            yield f"{record.label}: {wrong}: {difference.sentence}"
        yield from _wrong_moves(difference)
        statuses = [each.status for each in difference.functions]
        if (record.added, record.removed) != (statuses.count("added"), statuses.count("removed")):
            yield f"{record.label}: counts +{record.added} -{record.removed}"


def _wrong(name: str, difference: DifferenceRecord) -> Iterator[str]:
    sentence = difference.sentence
    old = {each.name: each.old for each in difference.functions if each.status != "added"}
    new = {each.name: _new(each) for each in difference.functions if each.status != "removed"}
    differs = any(each.status != "same" for each in difference.functions)
    if differs == (" changed nothing" in sentence):
        yield "it does not say whether something changed"
    if not differs:
        if name in PRESET_PASSES and " changed nothing: " not in sentence:
            yield "it does not say why nothing changed"
        return
    text = "\n".join((*old.values(), *new.values()))
    for each in re.findall("`([^`]*)`", sentence):
        # Ids of several bindings of one name end in a number.
        if each.partition("#")[0] not in text and each not in UNPRINTED:
            yield f"there is no {each}"
    general = re.match(r"\w+ (changed|added|removed) (the function|\d[\d,]* functions)", sentence)
    if general is not None and name in PRESET_PASSES - {"DeadCodeElimination"}:
        yield "no rule fits"
    if name in NUMBERS:
        found = re.search(r"(?<![`\w])\d[\d,]*", sentence.partition(" ")[2])
        said = 1 if found is None else int(found[0].replace(",", ""))
        counted = NUMBERS[name](old, new)
        if said != counted:
            yield f"it says {said}, and it is {counted}"


def _new(function: FunctionDifference) -> str:
    return function.old if function.status == "same" else function.new


def _wrong_moves(difference: DifferenceRecord) -> Iterator[str]:
    """Yield lines that moved from where there is none, or to where there is none."""
    by_name = {each.name: each for each in difference.functions}
    for function in difference.functions:
        for run in function.runs:
            if run.status not in ("moved-in", "moved-out"):
                continue
            old, new = (function, by_name[run.other])
            if run.status == "moved-in":
                old, new = new, old
            last_old, last_new = run.old + run.length - 1, run.new + run.length - 1
            if last_old > old.old.count("\n") + 1 or last_new > new.new.count("\n") + 1:
                yield f"{function.name}: {run}"
        texts = (function.old, _new(function))
        for side, text, gone in (
            ("old", texts[0], ("added", "moved-in")),
            ("new", texts[1], ("removed", "moved-out")),
        ):
            lines = [
                line
                for run in function.runs
                if run.status not in gone
                for line in range(getattr(run, side), getattr(run, side) + run.length)
            ]
            if text and lines != list(range(1, text.count("\n") + 2)):
                yield f"{function.name}: the runs are not all lines of the {side} side"
