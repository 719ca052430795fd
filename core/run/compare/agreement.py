"""Agreement of the model with its reference over a set of inputs."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lowerscope.core.build.targets import use_threads
from lowerscope.core.model.comparison_records import AgreementRecord, SampleRun
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import AgreementQuery, answers
from lowerscope.core.model.run_records import FAILING
from lowerscope.core.run.compare.verdicts import Verdict
from lowerscope.core.run.execution import Execution
from lowerscope.core.run.implementations import check_callable, judge_run, reference_of
from lowerscope.core.run.runs import largest
from lowerscope.core.sources.input_sets import InputSet, Sample, open_set
from lowerscope.core.stages import Pipeline

MOST_WORST = 50
"""Most samples that are listed."""

MOST_UNREAD = 10
"""Most failed samples whose reasons are listed."""


@answers(AgreementQuery)
def agreement(query: AgreementQuery, pipeline: Pipeline, progress: Progress) -> AgreementRecord:
    """Build once, run each sample of a set on both implementations, and compare.

    Raises a `LowerscopeError` if there is no such set, the model cannot be built, or no sample can
    be run.
    """
    recipe = query.recipe
    use_threads(recipe.threads)
    stages = pipeline.stages(recipe, progress)
    stages.check_runs_here("a set of inputs is run")
    loaded = stages.loaded
    samples = open_set(query.path, loaded.inputs, loaded.classes)
    check_callable(stages)
    built = stages.built
    values = tuple(each.value for each in loaded.inputs)
    with stages.running():
        side, reference = reference_of(loaded, values, recipe.seed)
        execution = Execution(built.executable, "main", stages.arguments(values))
        tally = _Tally(samples, loaded.classes)
        count = len(samples.samples)
        for place, sample in enumerate(samples.samples):
            progress.report(f"Sample {place + 1} of {count}", place / count)
            named = None
            try:
                values = samples.values(place)
                if reference is not None:
                    # Before TVM, which would read out of bounds for an invalid index.
                    reference.take(values)
                    named = reference.named_outputs()
                execution.take(stages.arguments(values))
                actual = execution.outputs()
            except LowerscopeError as error:
                tally.leave_out(sample, error)
                continue
            verdict, expected = judge_run(stages, recipe, values, actual, named)
            tally.add(sample, verdict, actual, expected)
    return tally.record(query.path, side)


class _Tally:
    """Accumulated results of the runs so far."""

    def __init__(self, samples: InputSet, classes: Sequence[str]) -> None:
        self._count = len(samples.samples)
        self._classes = classes
        self._runs: list[SampleRun] = []
        self._unread: list[LowerscopeError] = []
        self._reasons: list[str] = []

    def leave_out(self, sample: Sample, error: LowerscopeError) -> None:
        """Record that a sample could not be run."""
        self._unread.append(error)
        if len(self._reasons) < MOST_UNREAD:
            self._reasons.append(f"{sample.title}: {error.problem.what}")

    def add(
        self,
        sample: Sample,
        verdict: Verdict,
        actual: Sequence[torch.Tensor],
        expected: Sequence[torch.Tensor] | None,
    ) -> None:
        """Record the run of a sample."""
        self._runs.append(
            SampleRun(
                title=sample.title,
                inputs=sample.inputs,
                verdict=verdict.verdict,
                reason=verdict.reason,
                max_abs_error=verdict.max_abs,
                max_rel_error=verdict.max_rel,
                tvm=self._class(actual),
                torch="" if expected is None else self._class(expected),
                label=sample.label,
                not_finite_count=verdict.not_finite_count,
            )
        )

    def _class(self, outputs: Sequence[torch.Tensor]) -> str:
        first = outputs[0] if outputs else torch.empty(0)
        scores = first.numel()
        if scores < 2 or first.shape not in ((scores,), (1, scores)):
            return ""
        if bool(first.isnan().any()):
            return ""  # NaN has no order
        best = int(first.flatten().argmax())
        return self._classes[best] if len(self._classes) == scores else str(best)

    def record(self, path: str, reference: str) -> AgreementRecord:
        """Return the record of the accumulated results."""
        if not self._runs:
            raise self._unread[0]
        runs = self._runs
        compared = [each for each in runs if each.verdict in ("match", "differ")]
        classed = [each for each in runs if each.tvm and each.torch]
        labelled = [each for each in runs if each.label and each.tvm]
        matching = [each for each in runs if each.verdict == "match"]
        return AgreementRecord(
            path=path,
            count=self._count,
            ran=len(runs),
            matching=len(matching),
            compared=len(compared),
            not_finite=sum(each.not_finite_count > 0 for each in matching),
            inconclusive=sum(each.verdict == "inconclusive" for each in runs),
            same_class=sum(each.tvm == each.torch for each in classed),
            classed=len(classed),
            labelled=len(labelled),
            tvm_correct=sum(each.tvm == each.label for each in labelled),
            torch_correct=sum(each.torch == each.label for each in labelled),
            max_abs_error=largest([each.max_abs_error for each in compared]),
            max_rel_error=largest([each.max_rel_error for each in compared]),
            worst=tuple(sorted(runs, key=_badness, reverse=True)[:MOST_WORST]),
            unread=tuple(self._reasons),
            reference=reference,
        )


def _badness(run: SampleRun) -> tuple[bool, int, float]:
    another = bool(run.tvm and run.torch) and run.tvm != run.torch
    badness = FAILING.index(run.verdict) - len(FAILING) if run.verdict in FAILING else 0
    return another, -badness, run.max_abs_error or 0.0
