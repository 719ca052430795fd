"""Changes of the open model's inputs (random, or from a file) and live runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QMimeData, QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import KeptAnswer, Queries
from lowerscope.app.kit.background import single_shot
from lowerscope.core.files.sources import ARRAYS, IMAGES, INTEGERS, MANY_SAMPLES
from lowerscope.core.model.comparison_records import AgreementRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import AgreementQuery
from lowerscope.core.model.recipe import InputSpec, Recipe, Source
from lowerscope.core.model.snapshot import InputRecord
from lowerscope.core.model.texts import _


class SetRuns(KeptAnswer[AgreementRecord]):
    """The current run on a set of inputs, and its outcome for the recipe, whatever its inputs."""

    began = Signal()  # A run of a set started.

    def __init__(self, document: Document, queries: Queries) -> None:
        super().__init__(document, queries, "set")
        self.path = ""  # The set selected last; empty for none.
        document.on(("snapshot",), self.changed)

    def run(self, path: str = "") -> None:
        """Run a set of inputs in the worker; without a path, the last one again."""
        recipe = self._document.recipe
        if recipe is None or not (path or self.path):
            return
        self.path = path or self.path
        query = AgreementQuery(recipe=recipe, path=self.path)
        self._start(recipe, query, _("Waiting for the worker"))
        self.began.emit()

    def _part_of(self, recipe: Recipe) -> Recipe:
        return msgspec.structs.replace(recipe, inputs=())


SETTLE_MS = 150
"""Delay of a run after a change, in case another one follows."""


class Inputs(QObject):
    """The inputs of the open recipe."""

    changed = Signal()  # `live` or `problem` changed.

    def __init__(self, document: Document, queries: Queries, run: Callable[..., None]) -> None:
        super().__init__(document)
        self._document = document
        self._run_model = run
        self.live = True  # Whether a changed input is run at once.
        self.sets = SetRuns(document, queries)  # Runs on sets of inputs.
        self._dropped = ""
        self._settling = single_shot(self, SETTLE_MS, self._run)
        self._source: Source | None = None
        document.on(("recipe", "pending"), self._note_source)
        document.on(("problems",), self._note_problem)

    @property
    def records(self) -> tuple[InputRecord, ...]:
        """The inputs as used."""
        snapshot = self._document.snapshot
        return () if snapshot is None else snapshot.model.inputs

    @property
    def problem(self) -> Problem | None:
        """The problem with the inputs requested last; the previous ones are shown."""
        document = self._document
        refused, shown = document.rejected, document.recipe
        if refused is None or shown is None or not document.problems:
            return None
        same = msgspec.structs.replace(refused, inputs=shown.inputs) == shown
        return document.problems[0] if same else None

    def spec_of(self, name: str) -> InputSpec | None:
        """Return the user's specification of an input; ``None`` for the file's own example."""
        recipe = self._document.wanted
        return None if recipe is None else said_by_name(recipe, self._names()).get(name)

    def set_live(self, live: bool) -> None:
        """Set whether a changed input runs at once or on request."""
        if live != self.live:
            self.live = live
            self.changed.emit()

    def randomise(self, name: str, seed: int) -> None:
        """Use random values for an input, with a seed of its own: the weights stay."""
        record, said = self._record(name), self.spec_of(name)
        if record is None:
            return
        low = high = None
        if said is not None and record.dtype in INTEGERS:
            low, high = said.low, said.high
        self._change({name: self._formed(record, seed=seed, low=low, high=high)})

    def take_file(self, name: str, path: str) -> None:
        """Read an input from a file, and resize it to fit."""
        record = self._record(name)
        if record is not None:
            self._dropped = path
            self._change({name: self._formed(record, file=path, fit=True)})

    def reset(self, name: str) -> None:
        """Restore the file's own example."""
        self._change({name: None})

    def take_sample(self, inputs: Sequence[InputSpec]) -> None:
        """Use a sample of a set as the inputs."""
        self._change({each.name: each for each in inputs})

    def droppable(self, data: QMimeData) -> str:
        """Return the path of dragged data that can be an input; empty otherwise."""
        if not self.records:
            return ""
        paths = [url.toLocalFile() for url in data.urls() if url.isLocalFile()]
        return next((each for each in paths if is_input_file(each)), "")

    def is_set(self, path: str) -> bool:
        """Return whether a path is a set of inputs, judging by the path alone."""
        return Path(path).is_dir()

    def drop(self, path: str, name: str) -> None:
        """Use a dropped file as an input, or a folder as a set of them.

        An archive has arrays for the inputs by name, or for the only one.
        """
        if self.is_set(path):
            self.sets.run(path)
        else:
            self.take_file(name, path)

    def cancel(self) -> None:
        """Do not run the inputs that were typed last."""
        self._settling.stop()

    def _names(self) -> list[str]:
        return [each.name for each in self.records]

    def _record(self, name: str) -> InputRecord | None:
        # Another model may have been opened while a dialog was open.
        return next((each for each in self.records if each.name == name), None)

    def _formed(self, record: InputRecord, **fields: object) -> InputSpec:
        """Return a specification with the input's current form, so that nothing is rebuilt.

        A file has fixed sizes, not dynamic dimensions, and states its shape.
        """
        spec = InputSpec(name=record.name, shape=record.shape, dtype=record.dtype)
        if fields.get("file") and not all(isinstance(each, int) for each in record.shape):
            spec = InputSpec(name=record.name)
        return msgspec.structs.replace(spec, **fields)

    def _change(self, specs: Mapping[str, InputSpec | None]) -> None:
        document = self._document
        recipe = document.wanted
        if recipe is None:
            return
        document.change(with_inputs(recipe, self._names(), specs))
        self._run_soon()

    def _note_source(self) -> None:
        """Cancel the run that was to follow a change, if another source is requested."""
        wanted = self._document.wanted
        source = None if wanted is None else wanted.source
        if source != self._source:
            self._source, self._dropped = source, ""
            self._settling.stop()

    def _run_soon(self) -> None:
        if self.live:
            self._settling.start()

    def _run(self) -> None:
        self._run_model(quick=True)

    def _note_problem(self) -> None:
        problem = self.problem
        if problem is not None:
            self._settling.stop()
            if problem.code == MANY_SAMPLES and self._dropped:
                path, self._dropped = self._dropped, ""
                self._document.clear_problems()
                self.sets.run(path)
        self.changed.emit()


def is_input_file(path: str) -> bool:
    """Return whether a file's name is that of an input file; a folder can be a set of them."""
    return Path(path).suffix.lower() in (*ARRAYS, *IMAGES) or Path(path).is_dir()


def said_by_name(recipe: Recipe, names: Sequence[str]) -> dict[str, InputSpec]:
    """Return the user's specifications by name; an unnamed one is of the next unnamed input."""
    said = {spec.name: spec for spec in recipe.inputs if spec.name}
    free = [name for name in names if name not in said]
    nameless = [spec for spec in recipe.inputs if not spec.name]
    for name, spec in zip(free, nameless, strict=False):
        said[name] = msgspec.structs.replace(spec, name=name)
    return said


def with_inputs(
    recipe: Recipe, names: Sequence[str], specs: Mapping[str, InputSpec | None]
) -> Recipe:
    """Return `recipe` with other values for some inputs; ``None`` for the file's own example."""
    said: dict[str, InputSpec | None] = {**said_by_name(recipe, names), **specs}
    order = [*names, *(name for name in said if name not in names)]
    given = (said.get(name) for name in order)
    return msgspec.structs.replace(recipe, inputs=tuple(each for each in given if each is not None))
