"""The open document: its recipe and history, records, selection, problems and jobs.

All state that features share lives here. Features and views change fields in transactions, and
follow one signal; the document knows none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from types import MethodType
from typing import Any, Generic, Literal, TypeVar
from weakref import WeakMethod

import msgspec
from PySide6.QtCore import QObject, Signal, SignalInstance

from lowerscope.app.document.selection import Links, Selection
from lowerscope.core.model.comparison_records import ReferenceDtype
from lowerscope.core.model.graph import DEFAULT, TextMetrics
from lowerscope.core.model.module_steps import APART, Moment
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.recipe import (
    Override,
    Recipe,
    Strategy,
    applies_schedules,
    document_of,
    without_schedules,
    without_steps,
)
from lowerscope.core.model.run_records import RunRecord
from lowerscope.core.model.snapshot import FunctionRecord, Note, Snapshot

_TORCH = re.compile(r"(?<![A-Za-z0-9_.])torch(?![A-Za-z0-9_.])")

# --- Strategies of single nodes, as recipe changes ---


def calls_among(snapshot: Snapshot, entities: Iterable[str]) -> list[str]:
    """Return the ids of the nodes that are calls; inputs and outputs have no strategy."""
    calls = {node.id for node in snapshot.fx if node.opcode.startswith("call")}
    return [each for each in entities if each in calls]


def with_strategy(recipe: Recipe, nodes: Iterable[str], strategy: Strategy | None) -> Recipe:
    """Return `recipe` with another strategy for some nodes.

    Args:
        nodes: Their ids, ``fx:NAME``.
        strategy: ``None`` for the one from the patterns or the default.
    """
    chosen = tuple(dict.fromkeys(nodes))
    kept = tuple(each for each in recipe.overrides if each.pattern not in chosen)
    added = (
        ()
        if strategy is None
        else tuple(Override(pattern=node, strategy=strategy) for node in chosen)
    )
    return msgspec.structs.replace(recipe, overrides=(*kept, *added))


def switched(recipe: Recipe, override: Override) -> Recipe:
    """Return `recipe` with one of its overrides enabled or disabled."""
    other = msgspec.structs.replace(override, on=not override.on)
    overrides = tuple(other if each == override else each for each in recipe.overrides)
    return msgspec.structs.replace(recipe, overrides=overrides)


# --- Undo and redo: two lists of recipes around the open or pending one ---


@dataclass(frozen=True)
class History:
    """The recipes before the open one, the last at the end, and the undone ones."""

    undo: tuple[Recipe, ...] = ()
    redo: tuple[Recipe, ...] = ()

    def changed_from(self, current: Recipe) -> History:
        """Return the history after `current` was changed to another recipe."""
        return History((*self.undo, current))

    def back_from(self, current: Recipe) -> tuple[Recipe, History]:
        """Return the recipe before `current`, and the history once it is open."""
        return self.undo[-1], History(self.undo[:-1], (*self.redo, current))

    def forward_from(self, current: Recipe) -> tuple[Recipe, History]:
        """Return the recipe that was undone last, and the history once it is open."""
        return self.redo[-1], History((*self.undo, current), self.redo[:-1])


@dataclass(frozen=True)
class Version:
    """A recipe, and the history around it.

    ``reads_files`` is set where the recipe is derived anew because its files may have changed.
    """

    recipe: Recipe
    history: History = History()
    reads_files: bool = False

    @property
    def opens(self) -> bool:
        """Return whether it opens a source, which undo cancels."""
        return self.history == History()


def _model_of(recipe: Recipe) -> tuple[str, str]:
    """Return the file of a recipe, and the model in it."""
    return recipe.source.spec, recipe.source.entry


def history_after(shown: Recipe, history: History, coming: Version | None) -> History:
    """Return the history after the user changed the wanted recipe.

    A recipe that was never shown is no step, unless undo leads to it, it has another source, or it
    is shown without its steps until these are applied.

    Args:
        shown, history: The open recipe, and those around it.
        coming: The pending version.
    """
    if coming is not None and (
        coming.recipe.source != shown.source
        or len(coming.history.undo) < len(history.undo)
        or (coming.history == history and without_steps(coming.recipe) == shown)
    ):
        return coming.history.changed_from(coming.recipe)
    return history.changed_from(shown)


Trust = Callable[[Recipe, Callable[[Recipe], object]], None]
"""Calls a function with a recipe, once the user has approved the files that it runs."""


Of = Literal[
    "change",
    "replay",
    "run",
    "set",
    "tokens",
    "fault",
    "schedule",
    "values",
    "export",
    "asked",
    "bisect",
    "rounding",
]
"""Owner of a job. Each owner has one at most, and ends its own only."""


@dataclass(frozen=True)
class Job:
    """Work in progress; an empty ``text`` means none, and ``fraction`` is ``None`` if unknown.

    ``cancel`` cancels it; ``None`` where that is done with its request to a child.
    """

    of: Of = "change"
    text: str = ""
    fraction: float | None = None
    cancel: Callable[[], None] | None = field(default=None, compare=False)
    step: int = 0  # The step of the recipe that is being applied, from 1; 0 for none.

    @property
    def words(self) -> str:
        """The text, and the share that is done where it is known."""
        done = "" if self.fraction is None else f" {round(self.fraction * 100)} %"
        return f"{self.text}…{done}"


@dataclass(frozen=True, eq=False)
class Notice:
    """One line for the banner, its role ``"info"`` or ``"wrong"``, and the buttons beside it."""

    text: str
    role: str
    actions: tuple[tuple[str, Callable[[], None]], ...] = ()


@dataclass(frozen=True)
class CodeForm:
    """The form in which all panes show code."""

    compact: bool = True  # Shortened; otherwise as printed.
    wraps: bool = True  # Long lines are wrapped.
    types: bool = False  # The types of bindings are in their lines, and not at the right edge.
    follows: bool = True  # TensorIR shows the functions of the selection.


@dataclass(frozen=True)
class State:
    """The fields of the document."""

    recipe: Recipe | None = None  # The recipe shown, and its records.
    snapshot: Snapshot | None = None
    history: History = field(default_factory=History)  # The recipes before and after `recipe`.
    # The requested version, which becomes the document's once the engine has derived it.
    pending: Version | None = None
    # Links between the entities of `snapshot`, or of the module at the current step.
    links: Links = field(default_factory=Links)
    selection: Selection = field(default_factory=Selection)  # The selection shared by all views.
    moment: Moment | None = None  # The current step, of any section.
    # Problems of the last change or run, and the version that caused them; ``None`` for a run.
    problems: tuple[Problem, ...] = ()
    rejected: Version | None = None
    run: RunRecord | None = None  # Outcome of the last run of `recipe`.
    running: bool = False  # Whether a run is in progress or waits for the engine.
    # The work in progress, the job reported last at the end: the status bar shows that one.
    jobs: tuple[Job, ...] = ()
    notice: Notice | None = None  # The notification in the banner.
    metrics: TextMetrics = DEFAULT  # Sizes of the text that the engine lays out.
    code_form: CodeForm = field(default_factory=CodeForm)
    reference: ReferenceDtype = "torch"  # The values that tensors of a run are shown beside.


FIELDS = frozenset(each.name for each in fields(State))

BY_IDENTITY = frozenset(("snapshot", "pending", "links", "problems", "run"))
"""Fields that change with every other object: large ones, and those that are derived again."""


@dataclass(frozen=True)
class Change:
    """A transaction: the fields that changed, and all fields before and after it."""

    fields: frozenset[str]
    before: State
    after: State


T = TypeVar("T")


class StateField(Generic[T]):
    """An attribute of the document with the value of a field of its state."""

    def __init__(self, read: Callable[[State], T]) -> None:
        self._read = read

    def __get__(self, document: Document, owner: type[Document]) -> T:
        return self._read(document.state)

    def __set__(self, document: Document, value: T) -> None:
        raise AttributeError("fields of the document are assigned by `Document.set`")


class Document(QObject):
    """The open document; its fields are described in `State`."""

    changed = Signal(object)  # Fields changed, in one transaction.

    recipe = StateField(lambda state: state.recipe)
    snapshot = StateField(lambda state: state.snapshot)
    pending = StateField(lambda state: state.pending)
    links = StateField(lambda state: state.links)
    selection = StateField(lambda state: state.selection)
    moment = StateField(lambda state: state.moment)
    problems = StateField(lambda state: state.problems)
    run_record = StateField(lambda state: state.run)
    running = StateField(lambda state: state.running)
    metrics = StateField(lambda state: state.metrics)
    code_form = StateField(lambda state: state.code_form)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state = self._told = State()  # All fields; `set` assigns them.
        self._depth = 0

    # Transactions

    def set(self, **values: Any) -> None:
        """Assign fields, in one transaction."""
        with self.changing():
            self.state = replace(self.state, **values)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Combine all assignments inside into one transaction."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._tell()

    def _tell(self) -> None:
        before, after = self._told, self.state
        self._told = after
        changed = frozenset(name for name in FIELDS if _differs(name, before, after))
        if changed:
            self.changed.emit(Change(changed, before, after))

    def on(self, names: Collection[str], slot: Callable[[], object] | SignalInstance) -> None:
        """Call a method of a `QObject`, or emit a signal, after each change of these fields.

        ``"nothing"`` stands for what panes say without a model: see `nothing_words`.
        """
        assert {*FIELDS, "nothing"}.issuperset(names), names
        assert isinstance(slot, SignalInstance | MethodType), slot
        follower = _Follower(frozenset(names), slot, self)
        self.changed.connect(follower.note)

    # State

    @property
    def wanted(self) -> Recipe | None:
        """The recipe that the user requested last: the pending one, or the one shown."""
        state = self.state
        return state.recipe if state.pending is None else state.pending.recipe

    @property
    def history(self) -> History:
        """The recipes before and after `wanted`."""
        state = self.state
        return state.history if state.pending is None else state.pending.history

    @property
    def before(self) -> Recipe | None:
        """The recipe that `undo` returns to from the one shown."""
        undo = self.state.history.undo
        return undo[-1] if undo else None

    @property
    def is_changing(self) -> bool:
        """Return whether a recipe is pending."""
        return self.state.pending is not None

    def is_open(self) -> bool:
        """Return whether a model is open."""
        return self.state.snapshot is not None

    def has_torch(self) -> bool:
        """Return whether the open model is a PyTorch model."""
        snapshot = self.state.snapshot
        return snapshot is not None and snapshot.model.kind == "torch"

    def named_engine(self, text: str) -> str:
        """Return a text about torch with the name of what runs the open model's nodes."""
        snapshot = self.state.snapshot
        engine = "torch" if snapshot is None else snapshot.model.engine
        return _TORCH.sub(engine, text)

    @property
    def module_moment(self) -> Moment | None:
        """The step whose module is shown; ``None`` for the final one.

        The steps of a schedule and of a run belong to the final module.
        """
        moment = self.state.moment
        return None if moment is None or moment.section in APART else moment

    @property
    def rejected(self) -> Recipe | None:
        """The recipe that caused `problems`; ``None`` if it was a run."""
        rejected = self.state.rejected
        return None if rejected is None else rejected.recipe

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes for the user about the open model."""
        return () if self.state.snapshot is None else self.state.snapshot.notes

    @property
    def job(self) -> Job:
        """The job that was reported last and is still in progress."""
        return self.state.jobs[-1] if self.state.jobs else Job()

    # The recipe

    def open(self, recipe: Recipe, *, anew: bool = False) -> None:
        """Open another source. The current one stays until the new one's records arrive.

        Another recipe of the source that is open is an undo step: its schedules are not lost.

        Args:
            anew: Whether the history begins anew, as that of another document of the same source.
        """
        state, history = self.state, History()
        shown = state.recipe
        same = document_of(shown) == document_of(self.wanted) == document_of(recipe)
        if shown is not None and same and not anew:
            history = self.history
            if recipe != self.wanted:
                history = history_after(shown, state.history, state.pending)
        self.request(Version(recipe, history))

    def change(self, recipe: Recipe) -> None:
        """Request a changed recipe of the same source, as one undo step."""
        state = self.state
        if state.recipe is None:
            self.open(recipe)
        elif recipe == state.recipe:
            self.withdraw()
        elif recipe != self.wanted:
            self._go(recipe, history_after(state.recipe, state.history, state.pending))

    def change_fields(self, **values: Any) -> None:
        """Request other values of fields of the recipe, as one undo step."""
        if self.wanted is not None:
            self.change(msgspec.structs.replace(self.wanted, **values))

    def change_by(self, change: Callable[..., Recipe], *arguments: object) -> None:
        """Request the recipe that a function makes of the wanted one, as one undo step."""
        if self.wanted is not None:
            self.change(change(self.wanted, *arguments))

    def amend(self, recipe: Recipe) -> None:
        """Request a recipe in place of the wanted one, without an undo step of its own."""
        if self.recipe is not None and recipe != self.wanted:
            self._go(recipe, self.history)

    def retry(self, recipe: Recipe) -> None:
        """Resubmit the rejected recipe, corrected; it counts as the same undo step."""
        rejected = self.state.rejected
        assert rejected is not None
        self.request(Version(recipe, rejected.history))

    def reload(self) -> None:
        """Derive everything anew from the current files.

        That is the pending version if there is one, or else the rejected one, or the one shown.
        """
        rejected = self.state.rejected
        if self.pending is None and rejected is not None:
            self.request(replace(rejected, reads_files=True))
        elif self.wanted is not None:
            self.request(Version(self.wanted, self.history, reads_files=True))

    @property
    def can_undo(self) -> bool:
        """Return whether there is a step to undo."""
        return bool(self.history.undo) or (self.pending is not None and self.pending.opens)

    @property
    def can_redo(self) -> bool:
        """Return whether there is a step to redo."""
        return bool(self.history.redo)

    def undo(self) -> None:
        """Undo the last change of the recipe, pending or not."""
        recipe, history = self.wanted, self.history
        if recipe is not None and history.undo:
            self._go(*history.back_from(recipe))
        elif self.pending is not None and self.pending.opens:
            self.withdraw()

    def redo(self) -> None:
        """Redo the change that was undone last."""
        recipe, history = self.wanted, self.history
        if recipe is not None and history.redo:
            self._go(*history.forward_from(recipe))

    def lower_nodes(self, nodes: Iterable[str], strategy: Strategy | None) -> None:
        """Set the strategy of some nodes, or restore the default."""
        recipe, snapshot = self.wanted, self.snapshot
        chosen = [] if snapshot is None else calls_among(snapshot, nodes)
        if recipe is not None and chosen:
            self.change(with_strategy(recipe, chosen, strategy))

    def request(self, version: Version) -> None:
        """Request a version; it is pending until its records arrive."""
        # A copy: the same version, requested again, is another request.
        self.set(pending=replace(version))

    def withdraw(self) -> None:
        """Discard the pending version; the document stays as shown."""
        self.set(pending=None)

    def _go(self, recipe: Recipe, history: History) -> None:
        shown = self.recipe
        same_model = shown is not None and without_schedules(shown) == without_schedules(recipe)
        if recipe != shown and (not same_model or applies_schedules(recipe)):
            self.request(Version(recipe, history))
        else:
            # The model is unchanged: there is nothing to derive.
            self.set(recipe=recipe, history=history, pending=None, problems=(), rejected=None)

    # Records

    def show(self, version: Version, snapshot: Snapshot) -> None:
        """Switch to a version with the records derived from it; what still exists stays selected.

        Nothing is selected in another model. A request sent for the pending version ends with it.
        """
        links, shown = Links(snapshot), self.recipe
        same = shown is not None and _model_of(shown) == _model_of(version.recipe)
        self.set(
            recipe=version.recipe,
            history=version.history,
            snapshot=snapshot,
            pending=None,
            links=links,
            selection=links.select_again(self.selection.chosen if same else (), self.links),
            problems=(),
            rejected=None,
        )

    def show_lowered(self, snapshot: Snapshot) -> None:
        """Show the source of the pending version before its passes, which are being applied."""
        assert self.pending is not None
        version = replace(self.pending, recipe=without_steps(self.pending.recipe))
        with self.changing():
            pending = self.pending
            self.show(version, snapshot)
            self.set(pending=pending)

    def reject(self, problem: Problem) -> None:
        """Reject the pending version, and show why, unless it was cancelled."""
        pending = self.pending
        with self.changing():
            self.withdraw()
            if problem.code != "cancelled":
                self.set(problems=(problem,), rejected=pending)

    def reject_shown(self, problem: Problem) -> None:
        """Show why the recipe shown can no longer be derived."""
        if self.recipe is not None:
            rejected = Version(self.recipe, self.state.history)
            self.set(problems=(problem,), rejected=rejected)

    def accept_shown(self) -> None:
        """Note that the recipe shown has been derived again after a failure."""
        if self.rejected is not None and self.rejected == self.recipe:
            self.clear_problems()

    # Selection

    def select(self, entities: Iterable[str], *, extend: bool = False) -> None:
        """Select entities by id, replacing the selection or, with `extend`, adding to it."""
        chosen = list(self.selection.chosen) if extend else []
        for entity in entities:
            if extend and entity in chosen:
                chosen.remove(entity)
            else:
                chosen.append(entity)
        self.set(selection=self.links.select(tuple(chosen)))

    def show_functions(self, functions: Sequence[FunctionRecord]) -> None:
        """Set the functions of a step, which can be selected; none without a step."""
        links = self.links.at_step(functions)
        self.set(links=links, selection=links.select_again(self.selection.chosen, self.links))

    def function_at_step(self, entity: str) -> FunctionRecord | None:
        """Return the function with an id at the current step."""
        return self.links.function_at_step(entity)

    def linked_to(self, *entities: str) -> frozenset[str]:
        """Return the ids linked to any of these."""
        return frozenset[str]().union(*(self.links.of(entity) for entity in entities))

    # Problems, jobs and notices

    def report(self, problem: Problem) -> None:
        """Show a problem that no version caused, in place of the previous ones."""
        if problem.code != "cancelled":
            self.set(problems=(problem,), rejected=None)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Report the problem of a `LowerscopeError` that is raised inside."""
        try:
            yield
        except LowerscopeError as error:
            self.report(error.problem)

    def clear_problems(self) -> None:
        self.set(problems=(), rejected=None)

    def say(
        self,
        text: str,
        fraction: float | None = None,
        *,
        of: Of = "change",
        cancel: Callable[[], None] | None = None,
        step: int = 0,
    ) -> None:
        """Set the job of an owner; ``""`` ends it, and `cancel` is kept until then."""
        others = tuple(each for each in self.state.jobs if each.of != of)
        before = next((each for each in self.state.jobs if each.of == of), Job())
        job = Job(of, text, fraction, cancel or before.cancel, step)
        self.set(jobs=(*others, job) if text else others)

    def cancel_jobs(self) -> None:
        """Cancel all jobs that are not cancelled with their requests."""
        for each in self.state.jobs:
            if each.cancel is not None:
                each.cancel()

    def notify(self, text: str, role: str, *actions: tuple[str, Callable[[], None]]) -> None:
        """Show one line in the banner, with buttons; its role is ``"info"`` or ``"wrong"``."""
        self.set(notice=Notice(text, role, actions))

    def notify_of(self, problem: Problem) -> None:
        """Show a problem in the banner; a cancellation, or a crash, is told elsewhere."""
        if problem.code not in ("cancelled", "crashed"):
            self.notify(problem.line(), "wrong")


_WAITING = frozenset(("recipe", "pending"))


class _Follower(QObject):
    """A method that is called after changes of some fields, as long as its object exists."""

    def __init__(
        self,
        names: frozenset[str],
        slot: MethodType | SignalInstance,
        document: Document,
    ) -> None:
        owner = document if isinstance(slot, SignalInstance) else slot.__self__
        assert isinstance(owner, QObject)
        super().__init__(owner)
        self._names = names
        # A weak reference: the object owns this, and would never be freed otherwise.
        self._slot = (lambda: slot.emit) if isinstance(slot, SignalInstance) else WeakMethod(slot)

    def note(self, change: Change) -> None:
        is_waiting = change.after.snapshot is None and not _WAITING.isdisjoint(change.fields)
        if not self._names.isdisjoint((*change.fields, *(("nothing",) if is_waiting else ()))):
            slot = self._slot()
            if slot is not None:
                slot()


def _differs(name: str, before: State, after: State) -> bool:
    old, new = getattr(before, name), getattr(after, name)
    return old is not new and (name in BY_IDENTITY or bool(old != new))
