"""Queries to the child processes, as values.

A query is a frozen value that says everything about itself: which child answers it, in which lane,
and the text for the work while it runs. The function that answers stands beside the code that
computes the answer, marked with `answers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args

import msgspec

from lowerscope.core.model.artifacts import ExportRecord, Wanted
from lowerscope.core.model.comparison_records import (
    AgreementRecord,
    Comparison,
    ErrorBudget,
    RunStep,
    Saved,
    TensorPlace,
    WeightDtype,
    Window,
)
from lowerscope.core.model.explanation_records import BisectRecord, Explanation
from lowerscope.core.model.generation_records import GenerationRecord
from lowerscope.core.model.graph import FITS, GraphName, GraphRecord, TextMetrics
from lowerscope.core.model.machines import Remote, RemoteState, TargetRecord
from lowerscope.core.model.module_steps import (
    ComparedModule,
    DifferenceRecord,
    GraphDifference,
    Moment,
    PassRecord,
)
from lowerscope.core.model.recipe import Recipe, Step
from lowerscope.core.model.run_records import KEEP, RunEstimate, RunPart, RunRecord, RunTimes
from lowerscope.core.model.schedule import Reference, Schedule
from lowerscope.core.model.schedule_records import (
    Advice,
    ByRule,
    Checked,
    Coaching,
    Measured,
    Move,
    Peaks,
    RuledFunction,
    ScheduleRecord,
    Work,
)
from lowerscope.core.model.snapshot import (
    FunctionRecord,
    NodeTranslation,
    PassType,
    Snapshot,
    SourceLine,
    TextRecord,
    ValuesRecord,
    View,
)
from lowerscope.core.model.texts import _
from lowerscope.core.model.tuning_records import Tuned, TuneOptions, TuneState

Role = Literal["engine", "worker"]
LaneName = Literal["heavy", "light"]

A = TypeVar("A")
Function = TypeVar("Function", bound=Callable[..., Any])


class Query(msgspec.Struct, Generic[A], frozen=True):
    """A query whose answer is an `A`; it is its own key in a cache."""

    runs_on: ClassVar[Role] = "engine"  # the child that answers, unless `child` says otherwise
    # Queries in the ``"light"`` lane are answered while one in the ``"heavy"`` lane runs. Within a
    # lane, one runs after the other.
    lane: ClassVar[LaneName] = "heavy"
    # Answered in the light lane, its own, from results that are cached, and computed in the heavy
    # lane where they are not. Such an answer depends on nothing but the query and the files behind
    # it.
    cached_first: ClassVar[bool] = False
    doing: ClassVar[str] = _("answering")  # the work in words that follow "while"
    # Its feature shows it and cancels it, or measures by it: the window does not.
    has_own_job: ClassVar[bool] = False

    def __init_subclass__(cls, **_options: Any) -> None:
        super().__init_subclass__()
        if cls.cached_first:
            cls.lane = "light"
        known = QUERIES.setdefault(cls.__name__, cls)
        assert known.__module__ == cls.__module__, f"two queries are called {cls.__name__}"

    @property
    def child(self) -> Role:
        """The child that answers: the worker for modules of the build, as it alone compiles."""
        sides = (self, getattr(self, "old", None), getattr(self, "new", None))
        moments = (getattr(each, "moment", None) for each in sides)
        at_build = any(each is not None and each.section == "build" for each in moments)
        return "worker" if at_build else self.runs_on


QUERIES: dict[str, type[Query[Any]]] = {}
"""All queries by name."""


def answer_type(query: type[Query[A]]) -> Any:
    """Return the type of the answers to queries of a class."""
    (base,) = query.__orig_bases__  # type: ignore[attr-defined]
    (answer,) = get_args(base)
    return answer


@dataclass(frozen=True)
class Answering:
    """The code behind queries of one class."""

    answer: Callable[..., Any]  # takes the query, the pipeline and the job; returns the answer
    # Takes the same; returns whether answering derives no module. For queries that are answered
    # from cached results first.
    is_cached: Callable[..., bool] | None = None


ANSWERING: dict[str, Answering] = {}
"""The code behind queries, by their names, as far as it has been imported."""


def answers(
    query: type[Query[A]], is_cached: Callable[..., bool] | None = None
) -> Callable[[Function], Function]:
    """Return a decorator that has a function answer queries of a class: see `Answering`."""
    assert query.cached_first == (is_cached is not None), query

    def register(function: Function) -> Function:
        ANSWERING[query.__name__] = Answering(function, is_cached)
        return function

    return register


# --- the model and its modules -------------------------------------------------------------------


class SnapshotQuery(Query[Snapshot], frozen=True):
    """All that the window shows of a recipe at once; its graph is laid out for these metrics."""

    recipe: Recipe
    metrics: TextMetrics
    doing = _("lowering the model")


class LoweredQuery(Query[Snapshot], frozen=True):
    """The same before the passes of a recipe, which may take long: as of a recipe without steps."""

    recipe: Recipe
    metrics: TextMetrics
    cached_first = True
    doing = _("lowering the model")


class TextQuery(Query[TextRecord], frozen=True):
    """A text of a function after the passes, or of the whole module before them; or of either at a
    step between.
    """

    recipe: Recipe
    name: str = ""
    # ``"script"``, ``"numpy"`` or ``"te"``; or, without a name, ``"builder"`` for the program that
    # builds the module, or ``"metadata"`` for its script with metadata; or, for compiled code,
    # ``"bytecode"``, ``"llvm"`` or ``"asm"``.
    view: View = "script"
    moment: Moment | None = None
    cached_first = True
    doing = _("printing a function")

    @property
    def child(self) -> Role:
        """The worker, which compiles, for compiled code."""
        return "worker" if self.view in ("bytecode", "llvm", "asm") else super().child


class FunctionTextsQuery(Query[tuple[TextRecord, ...]], frozen=True):
    """The texts of several TensorIR functions; the reason as a comment where there is none."""

    recipe: Recipe
    names: tuple[str, ...]
    view: View = "script"  # ``"script"``, ``"numpy"`` or ``"te"``.
    moment: Moment | None = None
    cached_first = True
    doing = _("printing functions")


class CatalogueQuery(Query[tuple[PassType, ...]], frozen=True):
    """The passes that steps of a recipe can name: TVM's, and those of its files."""

    recipe: Recipe
    lane = "light"
    doing = _("listing the passes")


class FunctionsQuery(Query[tuple[FunctionRecord, ...]], frozen=True):
    """The functions of the module at a step."""

    recipe: Recipe
    moment: Moment
    cached_first = True
    doing = _("listing functions")


class GraphQuery(Query[GraphRecord], frozen=True):
    """A graph of a recipe, laid out for fonts of these metrics."""

    recipe: Recipe
    metrics: TextMetrics
    # ``"fx"``, or ``"relax"`` for the module before the passes, or at a ``moment``.
    graph: GraphName = "relax"
    moment: Moment | None = None
    # Ids of the modules that are expanded; ``None`` for the level that fits a picture of ``fits``,
    # width and height in pixels.
    expanded: tuple[str, ...] | None = None
    fits: tuple[float, float] = FITS
    cached_first = True
    doing = _("drawing a graph")


class DifferenceQuery(Query[DifferenceRecord], frozen=True):
    """The difference of two modules, function by function."""

    old: ComparedModule
    new: ComparedModule
    cached_first = True
    doing = _("comparing two modules")


class CodeDifferenceQuery(Query[DifferenceRecord], frozen=True):
    """The difference of the code of a TensorIR function, compiled by itself on either side."""

    old: ComparedModule
    new: ComparedModule
    name: str
    view: Literal["llvm", "asm"] = "llvm"
    runs_on = "worker"
    doing = _("compiling a function before and after a step")


class GraphDifferenceQuery(Query[GraphDifference], frozen=True):
    """The difference of the data flow of a Relax function, laid out for fonts of these metrics.

    Unless it is ``whole``, it has what changed, with its neighbours.
    """

    old: ComparedModule
    new: ComparedModule
    metrics: TextMetrics
    function: str = "main"
    whole: bool = True
    cached_first = True
    doing = _("comparing two graphs")


class ValuesQuery(Query[ValuesRecord], frozen=True):
    """Statistics of the tensor called ``name``: see `run.compare.tensor_values`."""

    recipe: Recipe
    name: str
    cached_first = True
    doing = _("reading a tensor")


class SaveValuesQuery(Query[str], frozen=True):
    """Write the tensor called ``name`` to ``file``, a ``.npy``; the answer is the path."""

    recipe: Recipe
    name: str
    file: str
    doing = _("saving a tensor")


class TranslationQuery(Query[NodeTranslation], frozen=True):
    """The translation of ``node``: its rules with their source, and the work of ``emit_te``."""

    recipe: Recipe
    node: str
    cached_first = True
    doing = _("looking up a translation")


class WhyFusedQuery(Query[Explanation], frozen=True):
    """Explanation why two FX nodes, bindings or functions are fused, or not.

    ``one`` and ``other`` are ids, or names as the FX graph and the script have them.
    """

    recipe: Recipe
    one: str
    other: str
    doing = _("explaining the fusion")


class WhyPassQuery(Query[Explanation], frozen=True):
    """Explanation what a pass changed, or why it changed nothing.

    Of several steps of that pass, the first is meant that changed nothing. A pass that is not in
    the pipeline is tried at its end.
    """

    recipe: Recipe
    step: Step
    doing = _("explaining the pass")


class ChangingPassesQuery(Query[tuple[str, ...]], frozen=True):
    """The passes of the catalogue that would change something after the first ``place`` steps.

    They are tried with their default options; those that need options are left out.
    """

    recipe: Recipe
    place: int
    doing = _("trying the passes")


class WhyFunctionQuery(Query[Explanation], frozen=True):
    """Explanation why a TensorIR function is scheduled as it is, or not at all."""

    recipe: Recipe
    function: str
    doing = _("explaining the schedule")


class ReasonsQuery(Query[tuple[tuple[str, str], ...]], frozen=True):
    """Explanations for a report, in English: pairs of a pass or function and a text on it.

    The text is on what the pass changed, or why it changed nothing; of the functions with most
    work, on the rule that they are scheduled by and on what makes them slow.
    """

    recipe: Recipe
    doing = _("explaining the steps")


class WriteRuleQuery(Query[SourceLine], frozen=True):
    """Write a working rule for ``node`` into ``file``; the answer is its location."""

    recipe: Recipe
    node: str
    file: str
    doing = _("writing a rule")


class BuildStepsQuery(Query[tuple[PassRecord, ...]], frozen=True):
    """The passes of TVM's own build."""

    recipe: Recipe
    runs_on = "worker"
    doing = _("compiling the model")


class TouchingStepsQuery(Query[tuple[int, ...]], frozen=True):
    """The numbers of the passes that change something of some FX nodes or bindings."""

    recipe: Recipe
    entities: tuple[str, ...]
    doing = _("finding the steps that change a node")


# --- schedules -----------------------------------------------------------------------------------


class ScheduleQuery(Query[ScheduleRecord], frozen=True):
    """``function`` after the first ``index`` primitives of its schedule; all for ``None``.

    Its schedule is the one of ``recipe.schedules`` that is on; without one, it has no primitives.
    With `priced`, the record has the predicted time of a call, which takes a while for some.
    """

    recipe: Recipe
    function: str
    index: int | None = None
    priced: bool = False
    cached_first = True
    doing = _("applying a schedule")


class MovesQuery(Query[tuple[Move, ...]], frozen=True):
    """The primitives that are legal after ``index``, for the selection ``chosen`` in the tree."""

    recipe: Recipe
    function: str
    index: int | None = None
    chosen: tuple[Reference, ...] = ()
    cached_first = True
    doing = _("listing legal primitives")


class CoachQuery(Query[Coaching], frozen=True):
    """Warnings on ``function`` after ``index``, and their cures."""

    recipe: Recipe
    function: str
    index: int | None = None
    cached_first = True
    doing = _("analysing the schedule")


class CompiledCoachQuery(Query[tuple[Advice, ...]], frozen=True):
    """Warnings on ``function`` after ``index`` that its machine code gives, and their cures."""

    recipe: Recipe
    function: str
    index: int | None = None
    runs_on = "worker"
    doing = _("reading the machine code")


class ByRuleQuery(Query[ByRule], frozen=True):
    """The primitives of the first rule that fits a function with nothing done to it."""

    recipe: Recipe
    function: str
    lane = "light"
    doing = _("scheduling by rules")


class RulesQuery(Query[tuple[RuledFunction, ...]], frozen=True):
    """The outcome of the rules for each function that the model has before it is scheduled."""

    recipe: Recipe
    doing = _("scheduling the model by rules")


class ScheduleProgramQuery(Query[str], frozen=True):
    """A schedule as a Python program, even if no function exists to apply it to."""

    schedule: Schedule
    lane = "light"
    doing = _("writing a schedule as Python")


class WorkQuery(Query[Work], frozen=True):
    """The work of one call of ``function``, and how often the model calls it."""

    recipe: Recipe
    function: str
    cached_first = True
    doing = _("counting operations")


class PeaksQuery(Query[Peaks], frozen=True):
    """The peaks of this machine with the target and the threads of ``recipe``.

    They are measured once and cached; ``again`` measures them once more, and the best of both
    counts.
    """

    recipe: Recipe
    again: bool = False
    runs_on = "worker"
    doing = _("measuring the machine")
    has_own_job = True


class MeasureQuery(Query[Measured], frozen=True):
    """The time of ``function`` after the first ``index`` primitives of its schedule."""

    recipe: Recipe
    function: str
    index: int | None = None
    runs_on = "worker"
    doing = _("measuring a function")
    has_own_job = True


class CheckQuery(Query[Checked], frozen=True):
    """``function`` after the first ``index`` primitives, compared with the unscheduled one.

    Both get the same random inputs; ``seconds`` is the time that it may take in all.
    """

    recipe: Recipe
    function: str
    index: int | None = None
    seconds: float = 30.0
    runs_on = "worker"
    doing = _("checking a schedule")
    has_own_job = True


class TuneQuery(Query[Tuned], frozen=True):
    """Search schedules for functions of ``recipe``.

    It runs until it is done or cancelled; meanwhile `TuneStateQuery` and `PauseTuningQuery` are
    answered at once.
    """

    recipe: Recipe
    options: TuneOptions = TuneOptions()
    runs_on = "worker"
    doing = "tuning"
    has_own_job = True


class TuneStateQuery(Query[TuneState], frozen=True):
    """The state of the present or latest tuning."""

    runs_on = "worker"
    lane = "light"
    doing = _("reading the state of the tuning")
    has_own_job = True


class PauseTuningQuery(Query[TuneState], frozen=True):
    """Pause the present tuning after the trial that is under way, or resume it."""

    paused: bool
    runs_on = "worker"
    lane = "light"
    doing = _("pausing the tuning")
    has_own_job = True


# --- targets and other machines ------------------------------------------------------------------


class TargetsQuery(Query[tuple[TargetRecord, ...]], frozen=True):
    """The effect of each of some targets; without one, of those of the catalogue."""

    texts: tuple[str, ...] = ()
    threads: int = 0
    lane = "light"
    doing = _("reading targets")
    has_own_job = True


class RemoteQuery(Query[RemoteState], frozen=True):
    """The machines of a tracker, and the state of one with the key."""

    remote: Remote
    runs_on = "worker"
    doing = _("querying another machine")
    has_own_job = True


# --- runs ----------------------------------------------------------------------------------------


class RunQuery(Query[RunRecord], frozen=True):
    """Build and run, compare with torch, and time both."""

    recipe: Recipe
    quick: bool = False  # answer soon: the times are of one call
    keep: int = KEEP  # bytes of the run's values that may be kept, so that they can be shown
    # part, before: of an earlier run of the same module, ``before``, one part can be made anew: the
    # verdict, by other tolerances; or the times, in another way
    part: RunPart = "all"
    before: RunRecord | None = None
    runs_on = "worker"
    doing = _("running the model")
    has_own_job = True


class RunEstimateQuery(Query[RunEstimate], frozen=True):
    """Estimate the time of a run before it."""

    recipe: Recipe
    cached_first = True
    doing = _("estimating the run")


class BisectQuery(Query[BisectRecord], frozen=True):
    """The first step after which the module differs from torch, with a reproduction."""

    recipe: Recipe
    runs_on = "worker"
    doing = _("looking for the step that differs")
    has_own_job = True


class GenerationQuery(Query[GenerationRecord], frozen=True):
    """Generate tokens by prefill and decode steps, and compare each call with torch's."""

    recipe: Recipe
    tokens: int
    runs_on = "worker"
    doing = _("generating tokens")
    has_own_job = True


class VariantTimesQuery(Query[tuple[tuple[RunTimes, ...], ...]], frozen=True):
    """The times of recipes of one source, with the same inputs and threads, by turns."""

    recipes: tuple[Recipe, ...]
    runs_on = "worker"
    doing = _("timing variants of the model")
    has_own_job = True


class AgreementQuery(Query[AgreementRecord], frozen=True):
    """Build, run each sample of the set of inputs at ``path``, and compare with torch."""

    recipe: Recipe
    path: str
    runs_on = "worker"
    doing = _("running a set of inputs")
    has_own_job = True


class ExportQuery(Query[ExportRecord], frozen=True):
    """Write files to ``folder``, in place of those of ``replacing``."""

    recipe: Recipe
    wanted: tuple[Wanted, ...]
    folder: str
    replacing: tuple[str, ...] = ()
    painted: tuple[str, ...] = ()  # names of the pictures that the window paints by itself
    # kinds, level: formats of graphs that are text, and the modules that are expanded in them
    kinds: tuple[str, ...] = ()
    level: str = "fit"
    record: RunRecord | None = None  # of a run, for the report; without one, the model is run
    runs_on = "worker"
    doing = "exporting"
    has_own_job = True


class ComparisonQuery(Query[Comparison], frozen=True):
    """The tensor at ``place`` in the last run, which has to be of ``recipe``, beside torch's."""

    recipe: Recipe
    place: TensorPlace
    runs_on = "worker"
    doing = _("comparing a tensor")


class NodeErrorsQuery(Query[ErrorBudget], frozen=True):
    """The errors of the compared nodes of the last run, which has to be of ``recipe``.

    ``dtype``: also those that weights of this dtype would make.
    """

    recipe: Recipe
    dtype: WeightDtype = ""
    runs_on = "worker"
    doing = _("computing the nodes in float64")


class WindowQuery(Query[Window], frozen=True):
    """A piece of the tensor at ``place`` in the last run, in ``cells`` rows and columns at most."""

    recipe: Recipe
    place: TensorPlace
    # An index in each dimension before the last two; those that are missing are 0.
    leading: tuple[int, ...] = ()
    # top, left, rows, columns: first row and column, and how many elements from there; 0 for all.
    # Elements outside of the tensor are left out.
    top: int = 0
    left: int = 0
    rows: int = 0
    columns: int = 0
    cells: int = 256
    runs_on = "worker"
    doing = _("reading a tensor")


class SaveRunValuesQuery(Query[str], frozen=True):
    """Write the tensor at ``place`` to ``file``, a ``.npy``; the answer is the path.

    ``side`` is ``"tvm"``, ``"torch"`` or ``"difference"``, ours - torch.
    """

    recipe: Recipe
    place: TensorPlace
    file: str
    side: Saved = "tvm"
    runs_on = "worker"
    doing = _("saving a tensor")


class RunStepQuery(Query[RunStep], frozen=True):
    """The tensors that the call of this index has read and written in the last run, of ``recipe``.

    ``lines`` are the first and the last line of the bytecode that is to be given with it, from 1.
    """

    recipe: Recipe
    call: int
    lines: tuple[int, int] = (0, 0)
    runs_on = "worker"
    doing = _("reading a call")
