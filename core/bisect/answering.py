"""Answers to why a model differs: the step, in words, with a reproduction."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from lowerscope.core.bisect.first_step import (
    Item,
    Probe,
    Prober,
    Search,
    Unclear,
    Unreported,
    computes_same,
    is_reproducible,
    items_of,
    last_probe,
    with_steps,
)
from lowerscope.core.bisect.program import files_of, shows_difference
from lowerscope.core.bisect.shrinking import Shrinking, Small, is_optimised_wrongly
from lowerscope.core.model.explanation_records import BisectOutcome, BisectRecord, WrittenFile
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import BisectQuery, answers
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import OutputVerdict, first_difference
from lowerscope.core.model.texts import _, _n, sentences
from lowerscope.core.run.compare.verdicts import Verdict
from lowerscope.core.run.node_runs import node_runs
from lowerscope.core.stages import Pipeline, Stages

_NOTHING: Mapping[OutputVerdict, str] = {
    "match": _("The model matches {side}: there is no difference to look for."),
    "rounding": _("The model differs from {side} by rounding only: no step is wrong."),
    "inconclusive": _("No value is finite on both sides, so no step can be judged."),
    "not-comparable": _("The outputs depend on random numbers, so no step can be judged."),
    "no-reference": _("There is no torch side and no function reference to compare with."),
}
"""Answers for models without a difference, by verdict."""

LLVM = "LLVM"
"""Name of the step that is LLVM's optimisation."""


@answers(BisectQuery)
def bisect(query: BisectQuery, pipeline: Pipeline, job: Progress) -> BisectRecord:
    """Return the first step after which the module differs from its reference.

    Raises a `LowerscopeError` if the model cannot be built and run as it is, or runs elsewhere.
    """
    recipe = query.recipe
    parts = Unreported(job)
    stages = pipeline.stages(recipe, parts)
    stages.check_runs_here(_("bisecting"))
    prober, last, again = last_probe(stages, recipe, job)
    side = "torch" if stages.loaded.model is not None else "NumPy"
    if again is None:
        return _nothing(last.verdict, side)
    if not is_reproducible(prober, last, again):
        text = _(
            "Two runs of the same module, or of {side}, have different outputs: the difference is "
            "not reproducible, so no step can be named.",
            side=side,
        )
        return BisectRecord(outcome="not-reproducible", text=text, builds=1)
    items = items_of(stages, pipeline.replays, job)
    first = stages if len(items) == 1 else pipeline.stages(with_steps(recipe, 0), parts)
    search = Search(prober, items, last, lambda: first.recorded, job)
    try:
        item = search.find()
    except Unclear as unclear:
        names = listed([each.title for each in unclear.items])
        text = _(
            "One of these steps is the first that differs, and the modules between them cannot be "
            "built or run: {names}.",
            names=names,
        )
        return _record("unclear", text, search)
    return _Answer(pipeline, recipe, search, item, first, prober, last, side, job).record()


def _nothing(verdict: Verdict, side: str) -> BisectRecord:
    text = _NOTHING[verdict.verdict].format(side=side)
    outcome: BisectOutcome = verdict.verdict if verdict.verdict != "differ" else "unclear"
    return BisectRecord(outcome=outcome, text=text, builds=1)


def _record(outcome: BisectOutcome, text: str, search: Search) -> BisectRecord:
    return BisectRecord(
        outcome=outcome,
        text=text,
        steps=len(search.items),
        builds=search.builds,
        probed=search.probed,
    )


def _wrong_node(stages: Stages, recipe: Recipe, prober: Prober, job: Progress) -> str:
    """Return the first node whose translation differs; empty if no node can be told."""
    if stages.traced is None:
        return ""
    with stages.running():
        nodes = node_runs(stages, recipe, prober.values, Unreported(job), repeats=1).nodes
    alone = [each for each in nodes if each.id.startswith("fx:") and each.own_matches is False]
    return alone[0].id if alone else first_difference(nodes)


class _Answer:
    """The answer on a step that was found.

    Args:
        first: The stages of the translation alone.
        last: The run of the module after all steps.
        side: Name of the reference.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        recipe: Recipe,
        search: Search,
        item: Item,
        first: Stages,
        prober: Prober,
        last: Probe,
        side: str,
        job: Progress,
    ) -> None:
        self._pipeline, self._recipe, self._search = pipeline, recipe, search
        self._item, self._prober, self._last = item, prober, last
        self._side, self._job = side, job
        self._stages = pipeline.stages(recipe, Unreported(job))
        self._entity = ""
        if item.stage == "translate":
            self._entity = _wrong_node(first, with_steps(recipe, 0), prober, job)
        self._node = self._entity.removeprefix("fx:")

    def record(self) -> BisectRecord:
        """Return the record, with a reproduction."""
        item, found = self._item, self._search.probe_of(self._item)
        record = msgspec.structs.replace(
            _record("found", self._sentence, self._search),
            stage=item.stage,
            name=self._node if item.stage == "translate" else item.name,
            function=item.function,
            moment=self._moment,
            entity=self._entity,
            all_nodes=_count_nodes(self._stages),
        )
        self._job.report(_("Shrinking the model: {answer}", answer=record.text))
        with tempfile.TemporaryDirectory(prefix="lowerscope-bisect-") as folder:
            shrinking = self._shrinking(Path(folder))
            small = None
            if shrinking is not None:
                small = shrinking.smallest((self._node,) if self._node else ())
            optimised = self._is_optimised_wrongly(small)
            if optimised:
                record = msgspec.structs.replace(
                    record, stage="build", name=LLVM, text=self._sentence_on_llvm
                )
            more = [record.text]
            if not computes_same(self._last.outputs, found.outputs):
                more.append(
                    _("Later steps change the outputs again, so others may be wrong as well.")
                )
            imported = None
            if small is not None and shrinking is not None and not optimised:
                imported = shrinking.imported(small)
            forms = tuple(each for each in (imported, small) if each is not None)
            files, sentence = self._reproduction(
                forms, Path(folder) / "reproduction", optimised=optimised
            )
        return msgspec.structs.replace(
            record,
            text=sentences(*more, sentence),
            nodes=len(small.model.calls) if files and small is not None else 0,
            files=files,
        )

    @property
    def _moment(self) -> Moment:
        traced = self._stages.traced
        if not self._node or traced is None:
            return self._item.moment
        order = [each.name for each in traced.graph_module.graph.nodes]
        return Moment(section="translate", index=order.index(self._node) + 1)

    @property
    def _sentence(self) -> str:
        side, title = self._side, self._item.title
        if self._node:
            node = self._node
            return _("The translation of {node} differs from {side}.", node=node, side=side)
        if self._item.stage == "translate":
            return _("The module differs from {side} before any step.", side=side)
        return _(
            "The module matches {side} before {step}, and differs after it.", side=side, step=title
        )

    @property
    def _sentence_on_llvm(self) -> str:
        return _(
            "LLVM's optimisation of the module after {step} makes it differ from {side}: without "
            "it, the module matches.",
            step=self._node or self._item.title,
            side=self._side,
        )

    def _is_optimised_wrongly(self, small: Small | None) -> bool:
        """Return whether the module after the step is right if LLVM does not optimise."""
        if small is not None:
            return is_optimised_wrongly(small)
        try:
            return self._prober.without_optimisation(self._item.module()).is_right
        except LowerscopeError:
            return False

    def _shrinking(self, folder: Path) -> Shrinking | None:
        if self._stages.traced is None:
            return None
        return Shrinking(
            self._pipeline, self._recipe, self._item, self._prober.values, folder, self._job
        )

    def _reproduction(
        self, forms: Sequence[Small], folder: Path, *, optimised: bool
    ) -> tuple[tuple[WrittenFile, ...], str]:
        """Return the files of the first form that shows the difference, and a sentence on them."""
        if not forms:
            return (), _(
                "No part of the model shows the difference with random values, so there is no "
                "reproduction."
            )
        self._job.report(_("Running the reproduction"))
        try:
            # The plainest program first.
            written = [(each, False) for each in forms]
            written += [(each, True) for each in forms[-1:] if each.before is not None]
            tried: set[tuple[WrittenFile, ...]] = set()
            for embeds, (each, stored), filled in itertools.product(
                (False, True), written, (False, True)
            ):
                files = files_of(
                    each,
                    self._item,
                    self._node,
                    optimised=optimised,
                    filled=filled,
                    stored=stored,
                    embeds=embeds,
                )
                if files in tried:
                    continue
                tried.add(files)
                if shows_difference(files, folder / str(len(tried)), self._job.check):
                    nodes = len(each.model.calls)
                    count = _count_nodes(self._stages)
                    return files, _n(
                        "{count} of {all} nodes reproduces the difference.",
                        "{count} of {all} nodes reproduce the difference.",
                        nodes,
                        all=count,
                    )
        except LowerscopeError as error:
            return (), _(
                "The difference cannot be written as a program: {what}.", what=error.problem.what
            )
        return (), _("A program without Lowerscope does not show the difference.")


def _count_nodes(stages: Stages) -> int:
    """Return the number of nodes that call something."""
    traced = stages.traced
    nodes = () if traced is None else traced.graph_module.graph.nodes
    return sum(each.op.startswith("call_") for each in nodes)
