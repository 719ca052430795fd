"""The stages of one recipe before its passes: opening, tracing, and lowering to Relax."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import TypeVar

import tvm

from lowerscope.core.dimensions import traced_sizes
from lowerscope.core.execution.running import to_tvm
from lowerscope.core.extensions import LoadedExtension, load_extension, visiting
from lowerscope.core.kept_sizes import SMALL, copied_bytes, weight_bytes
from lowerscope.core.keys import Keys
from lowerscope.core.lowering.parameters import with_parameters_as_inputs
from lowerscope.core.lowering.stock_importers import lower_by_importer, tracer_of
from lowerscope.core.lowering.translator import LoweredModel, lower
from lowerscope.core.memo import FileHashes, Memo
from lowerscope.core.passes.catalogue import Catalogue, catalogue
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import (
    Extension,
    Override,
    Recipe,
    TracerName,
)
from lowerscope.core.recipe_parts import override_text
from lowerscope.core.sources.loading import open_model, with_inputs
from lowerscope.core.sources.opened_model import LoadedModel, OpenedModel, form_of
from lowerscope.core.tracing.named_inputs import NamedInputs
from lowerscope.core.tracing.tracing import TracedModel, trace

T = TypeVar("T")


class StagesBeforePasses(Keys):
    """Results of the stages of a recipe's source, each cached under the key of its input.

    Attributes
    ----------
    milliseconds
        Time of each stage that had to be run, by name.
    """

    def __init__(self, recipe: Recipe, progress: Progress, memo: Memo, files: FileHashes) -> None:
        self.milliseconds: dict[str, float] = {}
        super().__init__(recipe, files)
        self._progress = progress
        self._memo = memo

    @cached_property
    def opened(self) -> OpenedModel:
        """The opened source, without its inputs."""
        recipe = self._recipe

        def make() -> OpenedModel:
            self._progress.report("Opening the model")
            return open_model(recipe.source, recipe.seed)

        key = self._open_key()
        kept = self.keep("open", key, make, lambda each: weight_bytes(each.model))
        if kept.spent:
            # The registrations of its file were replaced by another file's.
            self._memo.forget(key)
            kept = self.keep("open", key, make, lambda each: weight_bytes(each.model))
        read = tuple(path for path in kept.files if path not in self._source_files)
        if self._files.note_read(self._source_key, read):
            # The files that it reads are known now: the key depends on them as well.
            self._memo.rename(key, self._open_key())
        return kept

    @cached_property
    def loaded(self) -> LoadedModel:
        """The opened source with its inputs."""
        recipe, opened = self._recipe, self.opened

        def make() -> LoadedModel:
            return with_inputs(opened, recipe.inputs, recipe.seed, traced_sizes(recipe))

        key = self._load_key()
        kept = self.keep("load", key, make)
        if kept.home is not opened.home:
            # It was opened again since.
            self._memo.forget(key)
            kept = self.keep("load", key, make)
        read = tuple(path for path in kept.files if path not in opened.files)
        if self._files.note_read(self._inputs_key, read):
            self._memo.rename(key, self._load_key())
        self._files.note_form(self._load_key(), form_of(kept))
        self._forget_keys()
        return kept

    @cached_property
    def tracer(self) -> TracerName:
        """The recipe's tracer, or its importer's; an exported program is traced already."""
        return tracer_of(self._recipe, exported=self.loaded.exported is not None)

    @cached_property
    def extensions(self) -> tuple[tuple[Extension, LoadedExtension], ...]:
        """The user's extension files that are switched on, loaded, in order."""
        return tuple(
            (
                each,
                self.keep("extensions", self._extension_key(each), partial(load_extension, each)),
            )
            for each in self._recipe.extensions
            if each.on
        )

    @cached_property
    def passes(self) -> Catalogue:
        """The passes that steps can name: TVM's, and those of files, a later file's last."""
        own = {
            each.type.name: each for _, extension in self.extensions for each in extension.passes
        }
        return {**catalogue(), **own} if own else catalogue()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the body in the model's environment, with its file's code and the library files.

        Raises
        ------
        LowerscopeError
            See `LoadedModel.environment`.
        """
        # Loaded before: loading one waits for the environment that would be held here.
        extensions = [each for _, each in self.extensions]
        with self.loaded.environment(), visiting(extensions):
            yield

    def _at_nodes(self, count: int) -> Callable[[Override | None], None]:
        """Return the callback for each of `count` nodes before it is lowered, and for the end."""
        done = itertools.count()

        def begins(override: Override | None) -> None:
            self._progress.report("Lowering", min(1.0, next(done) / count))
            text = "" if override is None else override_text(self._recipe.overrides, override)
            self._progress.at_part(text)

        return begins

    @cached_property
    def traced(self) -> TracedModel | None:
        """The FX graph; ``None`` for a source without torch."""
        loaded = self.loaded
        model = loaded.model
        if model is None:
            return None

        def make() -> TracedModel:
            self._progress.report("Tracing")
            values = tuple(each.value for each in loaded.inputs)
            with loaded.environment():
                named = self._named_inputs()
                return trace(
                    model,
                    values,
                    self.tracer,
                    loaded.exported,
                    loaded.calling,
                    named,
                    decomposed=self._recipe.translator == "tvm-export",
                )

        return self.keep("trace", self.trace_key, make)

    @cached_property
    def lowered(self) -> LoweredModel | None:
        """The Relax module with provenance; ``None`` for a source without torch."""
        loaded, traced = self.loaded, self.traced
        if traced is None:
            return None

        def make() -> LoweredModel:
            self._progress.report("Lowering")
            inputs = [
                (each.name, each.shape, str(each.value.dtype).removeprefix("torch."))
                for each in loaded.inputs
            ]
            rules = [
                rule
                for extension, each in self.extensions
                if extension.kind == "rules"
                for rule in each.rules
            ]
            recipe = self._recipe
            if recipe.translator == "lowerscope":
                made = lower(
                    traced,
                    inputs,
                    recipe.lowering,
                    recipe.overrides,
                    rules,
                    self.ranges,
                    self._at_nodes(len(traced.graph_module.graph.nodes)),
                )
            else:
                made = lower_by_importer(traced, inputs, recipe, self.ranges)
            if self._recipe.params_as_inputs:
                made = with_parameters_as_inputs(made, traced.graph_module)
            return made

        return self.keep("lower", self.lower_key, make, copied_bytes)

    @cached_property
    def module(self) -> tvm.IRModule:
        """The module before the passes."""
        if self.loaded.module is not None:
            return self.loaded.module
        lowered = self.lowered
        assert lowered is not None
        return lowered.module

    @cached_property
    def parameters(self) -> Mapping[str, tvm.runtime.Tensor]:
        """The parameters that are arguments of ``main`` by name: the model's, or a file's."""
        if self.lowered is not None:
            return {name: each.data for name, each in self.lowered.arguments.items()}
        loaded = self.loaded
        return {
            each.name: to_tvm(each.value)
            for each in loaded.inputs
            if each.name in loaded.parameters
        }

    def _named_inputs(self) -> NamedInputs | None:
        if not self.ranges:
            return None
        return NamedInputs(tuple(each.shape for each in self.loaded.inputs), self.ranges)

    def is_cached(self, key: str) -> bool:
        """Return whether a result is cached under `key`."""
        return key in self._memo

    def keep(
        self,
        name: str,
        key: str,
        make: Callable[[], T],
        size: Callable[[T], int] = lambda _: SMALL,
    ) -> T:
        """Return the result under `key`; compute and time it if it is not cached.

        Parameters
        ----------
        name
            For `milliseconds`.
        size
            Cost of caching the value, in bytes.
        """

        def timed() -> T:
            start = time.perf_counter()
            value = make()
            self.milliseconds[name] = (time.perf_counter() - start) * 1000
            return value

        return self._memo.get(key, timed, size)
