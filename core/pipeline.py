"""The pipeline: what can be asked of a recipe, with results kept from one request to the next.

The engine, the worker, the command line, the tests and a notebook call the same methods.
"""

from __future__ import annotations

import msgspec
import psutil

from lowerscope.core.comparing.agreement import agreement
from lowerscope.core.comparing.finding_tensors import constant_records, find_tensor
from lowerscope.core.comparing.module_difference import graphs_difference, module_difference
from lowerscope.core.comparing.tensor_values import as_array, values_of
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.threads import use_threads
from lowerscope.core.export.arrays import save_array
from lowerscope.core.graphs import draw_graph
from lowerscope.core.memo import FileHashes, Memo, key_of
from lowerscope.core.numbers import Numbers
from lowerscope.core.outside import with_outside
from lowerscope.core.progress import Progress, Silent
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.agreement import AgreementRecord
from lowerscope.core.records.difference import DifferenceRecord, GraphDifference, Side
from lowerscope.core.records.fault import GuardedRun
from lowerscope.core.records.graph import GraphName, GraphRecord
from lowerscope.core.records.model import ValuesRecord
from lowerscope.core.records.passes import PassType
from lowerscope.core.records.run import KEEP, RunPart, RunRecord
from lowerscope.core.records.snapshot import (
    FunctionRecord,
    FxNode,
    Snapshot,
    SourceLine,
    TextRecord,
    View,
)
from lowerscope.core.records.steps import Moment, PassRecord
from lowerscope.core.records.translation import NodeTranslation
from lowerscope.core.remote.running import run_remotely
from lowerscope.core.rendering.graph_layout.metrics import DEFAULT, TextMetrics
from lowerscope.core.rendering.graphs.hierarchy import FITTING, Opening
from lowerscope.core.rule_files import write_rule
from lowerscope.core.running.guarded_runs import guarded_run
from lowerscope.core.running.runs import measure_again, run_all
from lowerscope.core.running.values import RunValues
from lowerscope.core.schedules import APPLY_SCHEDULES
from lowerscope.core.scheduling.replaying import Replays
from lowerscope.core.scheduling.validating import check_schedules
from lowerscope.core.snapshot import input_records, make_snapshot
from lowerscope.core.stages import Stages
from lowerscope.core.step_functions import functions_at
from lowerscope.core.texts import text_key, write_text
from lowerscope.core.translation import node_translation
from lowerscope.core.tuning.tuning import Tuning
from lowerscope.core.workbench import Workbench

KEPT_BYTES = max(2 << 30, psutil.virtual_memory().total // 4)
"""Bound on what the pipeline keeps of earlier results, in bytes."""


class Pipeline:
    """The stages of recipes, with what they made kept for the next recipe that shares them.

    Parameters
    ----------
    limit
        Bound on what is kept, in bytes.

    Attributes
    ----------
    workbench
        What can be asked of the schedules of functions.
    numbers
        What can be asked of the work and the speed of functions.
    values_of_run
        What can be asked of the values of the last run.
    tuning
        What searches schedules by measuring.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._memo = Memo(limit)
        self._files = FileHashes()
        self._replays = Replays()
        self.workbench = Workbench(self.stages, self._replays)
        self.numbers = Numbers(self.stages)
        self.values_of_run = RunValues(self.stages)
        self.tuning = Tuning(self.stages)

    def stages(self, recipe: Recipe, progress: Progress | None = None) -> Stages:
        """Return the stages of a recipe, each of which runs when it is first asked for."""
        return Stages(recipe, progress or Silent(), self._memo, self._files, self._replays)

    def snapshot(self, recipe: Recipe, metrics: TextMetrics, progress: Progress) -> Snapshot:
        """Return all that the window shows of a recipe."""
        stages = self.stages(recipe, progress)
        # What cannot be compiled for is said when it is chosen, not when it is run.
        _ = stages.target
        loaded, traced, lowered = stages.loaded, stages.traced, stages.lowered
        module, transformed = stages.module, stages.transformed

        def make() -> Snapshot:
            progress.report("Drawing")
            snapshot = make_snapshot(
                loaded, module, traced, lowered, transformed, metrics, progress.check
            )
            constants = constant_records(stages)
            return with_outside(msgspec.structs.replace(snapshot, constants=constants), stages)

        # Of the inputs' values, none of the drawing depends on; they are put in afterwards.
        key = key_of("snapshot", stages.shown_key, metrics)
        snapshot = stages.keep("records", key, make)
        model = msgspec.structs.replace(snapshot.model, inputs=input_records(loaded))
        return msgspec.structs.replace(
            snapshot,
            model=model,
            key=stages.run_key,
            milliseconds=stages.milliseconds,
            structures=stages.functions.structures if recipe.schedules else {},
        )

    def fx_nodes(self, recipe: Recipe) -> tuple[FxNode, ...]:
        """Return the FX nodes of a recipe.

        Raises
        ------
        LowerscopeError
            If the source has no torch side.
        """
        if self.stages(recipe).loaded.model is None:
            raise LowerscopeError(
                "this source builds an IRModule, so there is no FX graph",
                where=recipe.source.spec,
                todo="Show the stage relax or tensorir",
            )
        return self.snapshot(recipe, DEFAULT, Silent()).fx

    def check_schedules(self, recipe: Recipe) -> None:
        """Refuse schedules that are to be applied to a model and are not meant for it.

        Raises
        ------
        LowerscopeError
            See `validating.check_schedules`.
        """
        # Where several steps apply schedules, what one fits may be made only after the first.
        if sum(step.name == APPLY_SCHEDULES and step.on for step in recipe.steps) == 1:
            structures = self.stages(recipe).functions.structures
            check_schedules(recipe.schedules, structures, "--schedule")

    def text(
        self,
        recipe: Recipe,
        view: View,
        name: str,
        progress: Progress,
        moment: Moment | None = None,
    ) -> TextRecord:
        """Return a function after the passes as script, NumPy or TE, or the module's builder.

        Parameters
        ----------
        moment
            Show the module at this moment; without a name, its Relax functions as script.

        Raises
        ------
        LowerscopeError
            If there is no such function, or it cannot be written in that way, with the reason.
        """
        stages = self.stages(recipe, progress)
        return stages.keep(
            "text",
            text_key(stages, view, name, moment),
            lambda: write_text(stages, view, name, moment),
            lambda text: 2 * len(text.text),
        )

    def catalogue(self, recipe: Recipe, progress: Progress) -> tuple[PassType, ...]:
        """Return the passes that a recipe's steps can name: TVM's, and those of its files."""
        return tuple(each.type for each in self.stages(recipe, progress).passes.values())

    def functions(
        self, recipe: Recipe, moment: Moment, progress: Progress
    ) -> tuple[FunctionRecord, ...]:
        """Return the functions of the module at a moment.

        The bindings that call them are those of the lowered module that became these calls.

        Raises
        ------
        LowerscopeError
            If there is no module at that moment.
        """
        return functions_at(self.stages(recipe, progress), moment)

    def graph(
        self,
        recipe: Recipe,
        metrics: TextMetrics,
        progress: Progress,
        graph: GraphName = "relax",
        moment: Moment | None = None,
        opening: Opening = FITTING,
    ) -> GraphRecord:
        """Return a graph, laid out: see `core.graphs`.

        Raises
        ------
        LowerscopeError
            If there is none: of a source without torch there is no FX graph.
        """
        stages = self.stages(recipe, progress)
        of = stages.lower_key
        if moment is not None:
            of = stages.moment_key(moment)
        return stages.keep(
            "graph",
            key_of("graph", of, metrics, graph, moment, opening.expanded, opening.fits),
            lambda: draw_graph(stages, graph, moment, metrics, opening, progress.check),
        )

    def difference(self, old: Side, new: Side, progress: Progress) -> DifferenceRecord:
        """Return the difference of two modules, function by function.

        Raises
        ------
        LowerscopeError
            If there is no module at one of the moments.
        """
        before, after = self.stages(old.recipe, progress), self.stages(new.recipe, progress)
        return module_difference(before, after, (old, new))

    def graph_difference(
        self, old: Side, new: Side, function: str, metrics: TextMetrics, progress: Progress
    ) -> GraphDifference:
        """Return the difference of the data flow of a Relax function, laid out.

        Raises
        ------
        LowerscopeError
            If there is no module at one of the moments.
        """
        before, after = self.stages(old.recipe, progress), self.stages(new.recipe, progress)
        return graphs_difference(before, after, (old, new), function, metrics, progress.check)

    def values(self, recipe: Recipe, name: str, progress: Progress) -> ValuesRecord:
        """Return the values of a parameter, a buffer, a constant or an input in figures.

        Raises
        ------
        LowerscopeError
            If there is none called `name`.
        """
        stages = self.stages(recipe, progress)
        stages.loaded  # noqa: B018 - an input is known by its values
        key = key_of("values", stages.lower_key, stages.load_key, name)
        return stages.keep("values", key, lambda: values_of(name, find_tensor(stages, name)))

    def translation(self, recipe: Recipe, node: str, progress: Progress) -> NodeTranslation:
        """Return how a node was translated: see `translation.node_translation`."""
        stages = self.stages(recipe, progress)
        key = key_of("translation", stages.lower_key, node)
        return stages.keep("translation", key, lambda: node_translation(stages, node))

    def save_values(self, recipe: Recipe, name: str, file: str, progress: Progress) -> str:
        """Write a tensor to a ``.npy`` file, in place of what is there; return the file's path.

        Raises
        ------
        LowerscopeError
            If there is no such tensor, or the file cannot be written.
        """
        return save_array(as_array(find_tensor(self.stages(recipe, progress), name)), file)

    def write_rule(self, recipe: Recipe, node: str, file: str, progress: Progress) -> SourceLine:
        """Write a working rule for a node into a file: see `rule_files.write_rule`."""
        return write_rule(self.stages(recipe, progress), node, file)

    def build_steps(self, recipe: Recipe, progress: Progress) -> tuple[PassRecord, ...]:
        """Return the passes of TVM's own build, in the order in which they began.

        Raises
        ------
        LowerscopeError
            If the build fails.
        """
        return self.stages(recipe, progress).recorded.records

    def run(
        self,
        recipe: Recipe,
        progress: Progress,
        part: RunPart = "all",
        before: RunRecord | None = None,
        *,
        quick: bool = False,
        keep: int = KEEP,
    ) -> RunRecord:
        """Build, run on the CPU, compare with torch, and time both: see `core.running.runs`.

        Of `before`, an earlier run of the same module, all but a `part` is kept. It is run where
        the recipe says: see `core.remote.running`.
        """
        use_threads(recipe.threads)
        stages = self.stages(recipe, progress)
        known = before if before is not None and before.key == stages.run_key else None
        if recipe.remote is not None:
            self.values_of_run.kept = None
            return run_remotely(stages, recipe, recipe.remote, progress, known, part, quick=quick)
        if known is not None and part == "times":
            return measure_again(stages, recipe, known, progress)
        known = known if part == "verdict" else None
        # What the last run has kept makes room for what this one keeps.
        self.values_of_run.kept = None
        record, kept = run_all(stages, recipe, progress, known, quick=quick, keep=keep)
        self.values_of_run.kept = kept
        return record

    def agreement(self, recipe: Recipe, path: str, progress: Progress) -> AgreementRecord:
        """Run a set of inputs by one executable, and compare: see `core.comparing.agreement`."""
        use_threads(recipe.threads)
        return agreement(self.stages(recipe, progress), recipe, path, progress)

    def guard(self, recipe: Recipe, progress: Progress) -> GuardedRun:
        """Build and run once, each call with guarded memory: see `core.running.guarded_runs`."""
        use_threads(recipe.threads)
        return guarded_run(self.stages(recipe, progress), progress)
