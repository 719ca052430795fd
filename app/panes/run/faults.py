"""Failed runs: their diagnosis, a second run with guarded memory, and reverting the recipe."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.engine.child_process import Ending
from lowerscope.app.engine.client import EngineClient
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import GuardQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import FAILING, GuardedRun, parts_of_name

SPOILT = frozenset(("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE"))
"""Signals that kill a process after memory corruption, possibly long before."""


class Faults(QObject):
    """The last run, if it failed, and the last recipe that ran successfully.

    A run that crashed is repeated with guarded memory around what each call reads and writes: that
    identifies the call that wrote out of bounds, where the crash may have come later.
    """

    changed = Signal()  # `failed` or `can_go_back` changed.

    def __init__(self, document: Document, queries: Queries, worker: EngineClient) -> None:
        super().__init__(document)
        self._document = document
        self._worked: Recipe | None = None
        self._failed: Problem | None = None
        self._ending: Ending | None = None
        self._slot = Slot(queries)
        document.on(("run", "running"), self._note_run)
        document.on(("snapshot",), self.forget)
        document.on(("recipe", "pending"), self.changed)
        worker.crashed.connect(self._note_ending)

    @property
    def failed(self) -> Problem | None:
        """The problem that the last run of the recipe shown ended with, if it failed."""
        return self._failed

    @property
    def can_go_back(self) -> bool:
        """Return whether another recipe of the open source has run successfully."""
        wanted, worked = self._document.wanted, self._worked
        return (
            worked is not None
            and wanted is not None
            and worked != wanted
            and worked.source == wanted.source
        )

    @property
    def nodes(self) -> tuple[str, ...]:
        """The ids of the FX nodes of the call that `failed` names, if any."""
        problem = self._failed
        if problem is None:
            return ()
        return problem.choices or (parts_of_name(problem.calls[-1])[1] if problem.calls else ())

    def remedies(self, problem: Problem) -> list[tuple[str, Callable[[], object]]]:
        """Return titles and actions that help with a problem; none if no run ended with it."""
        found: list[tuple[str, Callable[[], object]]] = []
        if problem is self._failed and self.nodes:
            select = partial(self._document.select, self.nodes)
            found.append((self.tr("Select what was called"), select))
        if problem is self._failed and self.can_go_back:
            found.append((self.tr("Go back to what worked"), self.go_back))
        return found

    def go_back(self) -> None:
        """Return to the last recipe that ran successfully, as one undo step."""
        if self.can_go_back and self._worked is not None:
            self._document.change(self._worked)

    def look(self) -> None:
        """Run the recipe shown with guarded memory, and report the result."""
        document, recipe = self._document, self._document.recipe
        if recipe is None or document.running or self._slot.is_busy:
            return

        def take_found(found: GuardedRun) -> None:
            self._end_look()
            if found.trespasses:
                self._show(self._trespass(Problem(what="", code="crashed"), found))
            elif found.failure:
                self._show(Problem(what=found.failure))
            else:
                text = self.tr("Each of {0} calls kept to its own memory")
                document.notify(text.format(found.calls), "info")

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
        document = self._document
        document.say(self.tr("Running with guarded memory"), of="fault", cancel=self.cancel)
        self._slot.ask(
            GuardQuery(recipe=recipe), take_found, take_problem, partial(document.say, of="fault")
        )

    def cancel(self) -> None:
        """Cancel the run with guarded memory."""
        self._slot.cancel()

    def forget(self) -> None:
        """Forget how the last run ended: another run started, or another recipe is shown."""
        if self._slot.is_busy:
            self._slot.supersede()
            self._document.say("", of="fault")
        self._failed = None
        self.changed.emit()

    def take(self, problem: Problem) -> None:
        """Show how a run failed, and repeat it with guarded memory if it crashed."""
        recipe, ending = self._document.recipe, self._ending
        self._ending = None
        spoilt = ending is not None and ending.signal_name in SPOILT and ending.call.count > 0
        if recipe is None or ending is None or not spoilt or problem.code != "crashed":
            self._show(problem)
            return
        # The next worker is starting, and has to derive everything again.
        text = self.tr("It is run once more with guarded memory, to see who spoils it")
        self._show(msgspec.structs.replace(problem, todo=text))

        def take_found(found: GuardedRun) -> None:
            self._end_look()
            self._show(self._with_found(problem, found))

        def take_problem(again: Problem) -> None:
            self._end_look()
            self._show(self._with_second(problem, again))

        self._ask(recipe, take_found, take_problem)

    def _end_look(self) -> None:
        self._document.say("", of="fault")

    def _show(self, problem: Problem) -> None:
        self._failed = problem
        self._document.report(problem)
        self.changed.emit()

    def _trespass(self, problem: Problem, found: GuardedRun) -> Problem:
        """Return a problem that names the first call that wrote out of bounds."""
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
            # This call failed, however far the run got.
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
        document = self._document
        if document.running and (self._failed is not None or self._slot.is_busy):
            self.forget()
        record = document.run_record
        if record is not None and record.verdict not in FAILING and self._failed is None:
            self._worked = self._document.recipe
            self.changed.emit()
