"""Runs that came to a bad end: where they were, what a second look finds, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.children.child_process import Ending
from lowerscope.core.engine.run_params import GuardParams
from lowerscope.core.errors import Problem
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.fault import GuardedRun
from lowerscope.core.records.run import FAILING
from lowerscope.core.running.running_call import parts_of_name

if TYPE_CHECKING:
    from lowerscope.app.workspace import Workspace

SPOILT = frozenset(("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE"))
"""Signals that a process dies of when its memory was spoilt, maybe long before."""


class Faults(QObject):
    """The last run, if it came to a bad end, and the last recipe whose run worked.

    A run that has crashed is made once more, with guarded memory around what each call reads and
    writes: that names the call that wrote beside its own, where the crash may have come later.

    Signals
    -------
    changed
        `failed`, or what `can_go_back` says, is new.
    """

    changed = Signal()

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self._workspace = workspace
        self._worked: Recipe | None = None
        self._failed: Problem | None = None
        self._ending: Ending | None = None
        self._request: int | None = None
        workspace.runs.changed.connect(self._note_run)
        workspace.snapshot_changed.connect(self.forget)
        workspace.recipe_wanted.connect(self.changed)
        workspace.worker.crashed.connect(self._note_ending)

    @property
    def failed(self) -> Problem | None:
        """What the last run of the recipe that is shown has ended with, if it did not end well."""
        return self._failed

    @property
    def can_go_back(self) -> bool:
        """Whether there is another recipe of the open source, whose run has worked."""
        wanted, worked = self._workspace.wanted, self._worked
        return (
            worked is not None
            and wanted is not None
            and worked != wanted
            and worked.source == wanted.source
        )

    @property
    def nodes(self) -> tuple[str, ...]:
        """The ids of the FX nodes of the call that `failed` names, where there is one."""
        problem = self._failed
        if problem is None:
            return ()
        return problem.choices or (parts_of_name(problem.calls[-1])[1] if problem.calls else ())

    def go_back(self) -> None:
        """Go over to the last recipe whose run has worked, as one step of undo."""
        if self.can_go_back and self._worked is not None:
            self._workspace.change(self._worked)

    def look(self) -> None:
        """Run the recipe that is shown with guarded memory, and say what that finds."""
        workspace, recipe = self._workspace, self._workspace.recipe
        if recipe is None or workspace.running or self._request is not None:
            return

        def take_found(found: GuardedRun) -> None:
            self._end_look()
            if found.trespasses:
                self._show(self._trespass(Problem(what="", code="crashed"), found))
            elif found.failure:
                self._show(Problem(what=found.failure))
            else:
                text = self.tr("Each of {0} calls kept to its own memory")
                workspace.announced.emit(text.format(found.calls), "info")

        def take_problem(problem: Problem) -> None:
            self._end_look()
            if problem.code != "cancelled":
                self._show(problem)

        self._ask(recipe, take_found, take_problem)

    def _ask(
        self,
        recipe: Recipe,
        take_found: Callable[[GuardedRun], None],
        take_problem: Callable[[Problem], None],
    ) -> None:
        workspace = self._workspace
        workspace.say(self.tr("Running with guarded memory"), of="fault")
        self._request = workspace.worker.request(
            "guard",
            GuardParams(recipe=recipe),
            take_found,
            take_problem,
            partial(workspace.say, of="fault"),
        )

    def cancel(self) -> None:
        """Stop the second look."""
        if self._request is not None:
            self._workspace.worker.cancel(self._request)

    def forget(self) -> None:
        """Forget how the last run ended: another one begins, or another recipe is shown."""
        if self._request is not None:
            request, self._request = self._request, None
            self._workspace.abandon(self._workspace.worker, request)
            self._workspace.say("", of="fault")
        self._failed = None
        self.changed.emit()

    def take(self, problem: Problem) -> None:
        """Show what a run has ended with, and look again where it has crashed."""
        recipe, ending = self._workspace.recipe, self._ending
        self._ending = None
        spoilt = ending is not None and ending.signal_name in SPOILT and ending.call.count > 0
        if recipe is None or ending is None or not spoilt or problem.code != "crashed":
            self._show(problem)
            return
        # The next worker is starting, and has to derive all of it anew.
        text = self.tr("It is run once more with guarded memory, to see who spoils it")
        self._show(msgspec.structs.replace(problem, todo=text))

        def take_found(found: GuardedRun) -> None:
            self._end_look()
            self._show(self._with_found(problem, found))

        def take_problem(again: Problem) -> None:
            self._end_look()
            self._show(self._with_second(problem, again))

        self._ask(recipe, take_found, take_problem)

    def crash_text(self, ending: Ending) -> str:
        """Return what is said of a child that died."""
        workspace = self._workspace
        client = workspace.engine if ending.role == "engine" else workspace.worker
        if client.state == "failed":
            what = self.tr("It died again and again, and was given up; Run has a command for it.")
        elif ending.role == "worker" or workspace.recipe is None:
            what = self.tr("It is started anew; all that is open is as it was.")
        else:
            what = self.tr("It is started anew and the session replayed.")
        return f"{ending}. {what}"

    def _end_look(self) -> None:
        self._request = None
        self._workspace.say("", of="fault")

    def _show(self, problem: Problem) -> None:
        self._failed = problem
        self._workspace.trouble.show(problem)
        self.changed.emit()

    def _trespass(self, problem: Problem, found: GuardedRun) -> Problem:
        """Return a problem that names the first call that wrote beside its own memory."""
        first = found.trespasses[0]
        others = "\n".join(f"{each.name}: {each.text}" for each in found.trespasses[1:])
        number = self.tr("Call {0}").format(first.call + 1)
        after = self.tr("Found with guarded memory, after: {0}").format(problem.what)
        return msgspec.structs.replace(
            problem,
            what=f"{number}, {first.name}, {first.text}",
            where=after if problem.what else self.tr("Found with guarded memory"),
            todo=self.tr("Mend the function, or go back to what worked"),
            choices=first.nodes,
            # It is this one that failed, however far the run came.
            calls=found.until,
            details="\n\n".join(each for each in (others, problem.details) if each),
        )

    def _with_found(self, problem: Problem, found: GuardedRun) -> Problem:
        if found.trespasses:
            return self._trespass(problem, found)
        if found.failure:
            again = self.tr("With guarded memory it failed otherwise: {0}").format(found.failure)
        else:
            text = self.tr("With guarded memory around each of its {0} calls it ended well")
            again = text.format(found.calls)
        return msgspec.structs.replace(problem, where=again)

    def _with_second(self, problem: Problem, again: Problem) -> Problem:
        if again.code == "cancelled":
            place = again.where or self.tr("before it came to a call")
            text = self.tr("The second run, with guarded memory, was stopped {0}").format(place)
        else:
            text = self.tr("Run once more with guarded memory: {0}").format(again.what)
        return msgspec.structs.replace(problem, where=text)

    def _note_ending(self, ending: Ending) -> None:
        self._ending = ending

    def _note_run(self) -> None:
        runs = self._workspace.runs
        if runs.running and (self._failed is not None or self._request is not None):
            self.forget()
        record = runs.record
        if record is not None and record.verdict not in FAILING and self._failed is None:
            self._worked = self._workspace.recipe
            self.changed.emit()
