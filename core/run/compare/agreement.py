"""Agreement of the model with its reference over a set of inputs: a folder, or an array."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lowerscope.core.build.targets import use_threads
from lowerscope.core.files.paths import check_readable, user_path
from lowerscope.core.files.sources import ARRAYS, IMAGES
from lowerscope.core.model.comparison_records import AgreementRecord, SampleRun
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import AgreementQuery, answers
from lowerscope.core.model.recipe import InputSpec
from lowerscope.core.model.run_records import FAILING
from lowerscope.core.model.texts import _, _n
from lowerscope.core.run.compare.verdicts import Verdict
from lowerscope.core.run.execution import Execution
from lowerscope.core.run.implementations import check_callable, judge_run, reference_of
from lowerscope.core.run.runs import largest
from lowerscope.core.sources.array_files import UnreadableArrays, is_archive, read_npy, read_npz
from lowerscope.core.sources.examples import ExampleInput
from lowerscope.core.sources.input_values import LABELS, fitted, from_array, read
from lowerscope.core.stages import Pipeline

_FILES = (*IMAGES, *ARRAYS)


@dataclass(frozen=True, eq=False)
class Sample:
    """One sample: its title, its input specs, and its label, empty for none."""

    title: str
    inputs: tuple[InputSpec, ...]
    label: str = ""


class InputSet:
    """Samples of the inputs of a model, read one by one.

    Attributes:
        samples: In order; files of a folder by natural sort order.
    """

    def __init__(self, path: Path, inputs: Sequence[ExampleInput], classes: Sequence[str]) -> None:
        self._path = path
        self._inputs = inputs
        self._given = [inputs[0]]
        self._arrays: Mapping[str, np.ndarray[Any, Any]] = {}
        if path.is_dir():
            self.samples = self._files()
        else:
            self.samples = self._rows(classes)

    def values(self, place: int) -> tuple[torch.Tensor, ...]:
        """Return the values of all inputs for a sample.

        Raises `LowerscopeError` if its file cannot be read, or does not fit.
        """
        specs = {spec.name: spec for spec in self.samples[place].inputs}
        return tuple(
            self._value(each, specs[each.name]) if each.name in specs else each.value
            for each in self._inputs
        )

    def _value(self, like: ExampleInput, spec: InputSpec) -> torch.Tensor:
        shape, dtype = tuple(like.value.shape), str(like.value.dtype).removeprefix("torch.")
        array = self._arrays.get(like.name)
        if array is None or spec.item is None:
            return read(spec, like.name, shape, dtype)[0]
        value = from_array(np.asarray(array[spec.item]), str(self._path))
        return fitted(value, shape, dtype, str(self._path)).contiguous()

    def _files(self) -> tuple[Sample, ...]:
        found = [each for each in self._path.iterdir() if each.suffix.lower() in _FILES]
        if not found:
            raise LowerscopeError(
                _("no input is in this folder"),
                where=str(self._path),
                todo=_("Put pictures, .npy or .npz files into it, one for each sample"),
            )
        found.sort(
            key=lambda each: [
                int(t) if t.isdecimal() else t for t in re.split(r"(\d+)", each.name.lower())
            ]
        )
        return tuple(Sample(each.name, self._specs(each, None)) for each in found)

    def _rows(self, classes: Sequence[str]) -> tuple[Sample, ...]:
        check_readable(self._path)
        arrays = _arrays(self._path)
        names = [each for each in arrays if each not in LABELS]
        self._given = [each for each in self._inputs if each.name in names]
        if not self._given and len(names) == 1:
            self._given = [self._inputs[0]]
            arrays[self._inputs[0].name] = arrays[names[0]]
        if not self._given:
            first = self._inputs[0].name
            raise LowerscopeError(
                _(
                    "it has no array called {first}; it has {names}",
                    first=first,
                    names=_(", ").join(names) or _("none"),
                ),
                where=str(self._path),
                todo=_("Save it with np.savez(file, {first}=...), samples first", first=first),
            )
        self._arrays = {each.name: arrays[each.name] for each in self._given}
        counts = {name: len(array) if array.ndim else 0 for name, array in self._arrays.items()}
        count = min(counts.values())
        if not count or len(set(counts.values())) > 1:
            said = _(", ").join(f"{name}: {each}" for name, each in counts.items())
            raise LowerscopeError(
                _("its arrays have no samples, or different numbers of them: {said}", said=said),
                where=str(self._path),
                todo=_("Give arrays with the samples in the first dimension"),
            )
        # Report a misfit once, not for each sample.
        for each, spec in zip(self._given, self._specs(self._path, 0), strict=True):
            self._value(each, spec)
        labels = next((arrays[name] for name in LABELS if name in arrays), None)
        words = [""] * count if labels is None else self._labels(labels, count, classes)
        return tuple(
            Sample(_("sample {place}", place=place), self._specs(self._path, place), words[place])
            for place in range(count)
        )

    def _labels(
        self, labels: np.ndarray[Any, Any], count: int, classes: Sequence[str]
    ) -> list[str]:
        """Return the class names of the samples, or their class numbers."""
        flat = labels.reshape(-1)
        if len(flat) != count or flat.dtype.kind not in "iuUb":
            raise LowerscopeError(
                _n(
                    "its labels are {shape} of {dtype}, for {count} sample",
                    "its labels are {shape} of {dtype}, for {count} samples",
                    count,
                    shape=labels.shape,
                    dtype=labels.dtype,
                ),
                where=str(self._path),
                todo=_("Give the number, or the name, of a class for each sample"),
            )
        if flat.dtype.kind == "U":
            return [str(each) for each in flat]
        numbers = [int(each) for each in flat]
        known = range(len(classes))
        return [classes[each] if each in known else str(each) for each in numbers]

    def _specs(self, file: Path, item: int | None) -> tuple[InputSpec, ...]:
        return tuple(
            InputSpec(
                name=each.name,
                shape=tuple(each.value.shape),
                dtype=str(each.value.dtype).removeprefix("torch."),
                file=str(file),
                fit=True,
                item=item,
            )
            for each in self._given
        )


def open_set(path: str, inputs: Sequence[ExampleInput], classes: Sequence[str]) -> InputSet:
    """Return the set of inputs in a folder, an ``.npz`` or an ``.npy``.

    Raises `LowerscopeError` if it does not exist, or is of another kind.
    """
    place = user_path(path).absolute()
    if not place.is_dir() and place.suffix.lower() not in (".npz", ".npy"):
        raise LowerscopeError(
            _("this is not a set of inputs"),
            where=path,
            todo=_("Give a folder of pictures or .npy files, or an .npz with samples first"),
        )
    if not inputs:
        raise LowerscopeError(_("the model takes no inputs"), where=path)
    return InputSet(place, inputs, classes)


def _arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    try:
        return read_npz(path)[1] if is_archive(path) else {"x": read_npy(path)}
    except UnreadableArrays as error:
        raise LowerscopeError(
            _("this is not a file of NumPy arrays ({error})", error=error), where=str(path)
        ) from None


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
    stages.check_runs_here(_("a set of inputs"))
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
            progress.report(
                _("Sample {place} of {count}", place=place + 1, count=count), place / count
            )
            named = None
            try:
                values = samples.values(place)
                if reference is not None:
                    # Before TVM, which would read out of bounds for an invalid index.
                    reference.take(values)
                    named = reference.named_outputs()
                execution.take(stages.arguments(values))
                actual = execution.outputs(recipe.seed)
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
        compared = [each for each in runs if each.verdict in ("match", "rounding", "differ")]
        classed = [each for each in runs if each.tvm and each.torch]
        labelled = [each for each in runs if each.label and each.tvm]
        matching = [each for each in runs if each.verdict in ("match", "rounding")]
        return AgreementRecord(
            path=path,
            count=self._count,
            ran=len(runs),
            matching=len(matching),
            compared=len(compared),
            not_finite=sum(each.not_finite_count > 0 for each in matching),
            rounding=sum(each.verdict == "rounding" for each in runs),
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
