"""Cache keys of the stages of a recipe.

A key is made of the part of the recipe that the stage reads, of the content of the files behind it,
of the versions, and of its parent's key: a change re-runs its stage and those that follow, and
nothing before it.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import tvm

from lowerscope.core.dimensions import dimensions_of, traced_sizes
from lowerscope.core.execution.environment import MACHINE
from lowerscope.core.execution.targets import make_target
from lowerscope.core.extensions import extension_files
from lowerscope.core.memo import FileHashes, key_of
from lowerscope.core.recipe import (
    Extension,
    Recipe,
    applies_tuned,
    schedules_functions,
    steps_before_schedules,
)
from lowerscope.core.records.steps import Moment
from lowerscope.core.schedules import Schedule
from lowerscope.core.sources.files import input_files, source_files
from lowerscope.core.tuning.database import Database
from lowerscope.core.versions import VERSIONS


class Keys:
    """The keys of one recipe, for one request: each file is checked once."""

    def __init__(self, recipe: Recipe, files: FileHashes) -> None:
        self._recipe = recipe
        self._files = files

    @cached_property
    def target(self) -> tvm.target.Target:
        """The recipe's target."""
        return make_target(self._recipe.target, self._recipe.threads)

    @cached_property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The smallest and the largest size of each named dimension."""
        return {each.name: (each.low, each.high) for each in dimensions_of(self._recipe)}

    @cached_property
    def load_key(self) -> str:
        """Key of the source, the inputs, the seed, the files behind them and the versions."""
        return self._load_key()

    @cached_property
    def _source_files(self) -> tuple[Path, ...]:
        """Files of the source that can be found without opening it."""
        return source_files(self._recipe.source, ())

    @cached_property
    def _source_key(self) -> str:
        """The key of the model as far as it can be known before the source is opened."""
        recipe = self._recipe
        files = self._files.all_of(self._source_files)
        return key_of("open", recipe.source, recipe.seed, files, VERSIONS)

    @cached_property
    def _inputs_key(self) -> str:
        """The load key as far as it can be known before the inputs are there."""
        recipe = self._recipe
        files = self._files.all_of(input_files(recipe.inputs))
        return key_of("inputs", self._source_key, recipe.inputs, traced_sizes(recipe), files)

    def _open_key(self) -> str:
        """Key of the model: of the source, the seed, the files behind it and the versions."""
        read = self._files.all_of(self._files.read_for(self._source_key))
        return key_of("open", self._source_key, read)

    def _load_key(self) -> str:
        read = self._files.all_of(self._files.read_for(self._inputs_key))
        return key_of("load", self._open_key(), self._inputs_key, read)

    @cached_property
    def form_key(self) -> str:
        """Key of the model and of the form of its inputs: everything but their values.

        As long as the form is not known, the values stand for it.
        """
        form = self._files.form_of(self.load_key)
        return self.load_key if form is None else key_of("form", self._open_key(), form)

    def _forget_keys(self) -> None:
        """Discard keys, since more is known of what they depend on."""
        for name in _DERIVED:
            self.__dict__.pop(name, None)

    @cached_property
    def trace_key(self) -> str:
        """Key of the tracer, of its input, and of the importer that it may trace for."""
        recipe, ranges = self._recipe, sorted(self.ranges.items())
        return key_of("trace", self.form_key, recipe.tracer, recipe.translator, ranges)

    @cached_property
    def lower_key(self) -> str:
        """Key of the strategies and the rules, and of their input."""
        recipe = self._recipe
        rules = [
            self._extension_key(each)
            for each in recipe.extensions
            if each.on and each.kind == "rules"
        ]
        return key_of(
            "lower",
            self.trace_key,
            recipe.lowering,
            recipe.overrides,
            rules,
            recipe.params_as_inputs,
        )

    @property
    def applies_schedules(self) -> bool:
        """Return whether one of the steps schedules functions of the model."""
        return schedules_functions(self._recipe)

    @cached_property
    def unscheduled_key(self) -> str:
        """Key of the steps before the first that applies schedules; of all, where none does."""
        files = [
            self._extension_key(each)
            for each in self._recipe.extensions
            if each.on and each.kind == "passes"
        ]
        steps = steps_before_schedules(self._recipe)
        return key_of("transform", self.lower_key, steps, str(self.target), files)

    @cached_property
    def transform_key(self) -> str:
        """Key of the steps, of their input, and of the target."""
        recipe = self._recipe
        if not self.applies_schedules:
            return self.unscheduled_key
        found = self.tunings.state if applies_tuned(recipe) else None
        return key_of("scheduled", self.unscheduled_key, recipe.steps, self._schedules, found)

    @cached_property
    def tunings(self) -> Database:
        """Tuning results for the target, the threads and the machine of the recipe."""
        remote = self._recipe.remote
        threads = min(self._recipe.threads or MACHINE, MACHINE)
        return Database(self.target, threads, "" if remote is None else remote.where)

    @property
    def _schedules(self) -> list[Schedule]:
        # One without primitives counts: a function has it in place of what others have.
        return [each for each in self._recipe.schedules if each.on]

    def moment_key(self, moment: Moment | None) -> str:
        """Return the key of the module at a step, or after all steps."""
        if moment is not None and moment.clock == "build":
            return self.build_key
        if moment is not None and moment.clock == "schedule":
            return key_of("schedule", self.unscheduled_key, self._schedules)
        return self.transform_key

    @cached_property
    def build_key(self) -> str:
        """Key of the transformed module and of the target that it is built for."""
        return key_of("build", self.transform_key, str(self.target))

    @cached_property
    def shown_key(self) -> str:
        """Key of the transformed module and of the library files that it is run with."""
        files = [self._extension_key(each) for each in self._recipe.extensions if each.on]
        return key_of("shown", self.transform_key, files)

    @cached_property
    def run_key(self) -> str:
        """Key of the run: of the module, its library files, the inputs' values and the machine."""
        remote = self._recipe.remote
        where = () if remote is None else (remote.where,)
        return key_of("run", self.shown_key, self.load_key, *where)

    def _extension_key(self, extension: Extension) -> str:
        files = self._files.all_of(extension_files(extension))
        return key_of("extension", extension.path, extension.kind, files, VERSIONS)


_DERIVED = (
    "load_key",
    "form_key",
    "trace_key",
    "lower_key",
    "unscheduled_key",
    "transform_key",
    "build_key",
    "shown_key",
    "run_key",
)
"""The keys that depend on what is known of the inputs."""
