"""Derivation of the pending recipe by the engine, and recovery from crashes.

A lost request is retried once, since a child may be killed from outside. The part of the recipe
that was being applied when a second child crashed is disabled.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from lowerscope.app.document.document import Change, Document, Notice, Version
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.engine.child_process import ROLES, Ending
from lowerscope.app.engine.children import Children
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import LoweredQuery, Role, SnapshotQuery
from lowerscope.core.model.recipe import (
    Part,
    Recipe,
    applies_schedules,
    part_of,
    without_part,
    without_steps,
)
from lowerscope.core.model.snapshot import Snapshot
from lowerscope.core.model.texts import _

TWICE = 2
"""Number of children that have to crash on a part before it is no longer requested."""


class Recovering(QObject):
    """Recovery from crashes of the engine or of the worker."""

    # A new engine has derived the recipe shown: previous queries can be sent again.
    replayed = Signal()

    def __init__(self, document: Document, queries: Queries, children: Children) -> None:
        super().__init__(document)
        self._document = document
        self._children = children
        self._slot = Slot(queries)
        # Whether the engine has yet to derive the recipe shown.
        self._lost = False
        # Number of consecutive crashes by where they occurred, as far as known.
        self._deaths: Counter[tuple[str, str]] = Counter()
        self._last: tuple[str, str] = ("", "")
        children.engine.killed.connect(self._note_killed)
        children.engine.crashed.connect(self._note_death)
        children.worker.crashed.connect(self._note_death)
        # The notification of a crash, until its child is ready again.
        self._said: dict[str, tuple[Notice, Ending]] = {}
        for client in (children.engine, children.worker):
            client.state_changed.connect(self._say_restarted)

    # Crashes

    def _note_killed(self) -> None:
        self._lost = True
        self.resume()

    def _note_death(self, ending: Ending) -> None:
        document = self._document
        self._last = (ending.role, ending.call.part)
        self._deaths[self._last] += 1
        document.notify(self._crash_text(ending), "wrong")
        if document.state.notice is not None:
            self._said[ending.role] = document.state.notice, ending
        if ending.role == "engine":
            # Whether a lost change is retried is decided by its problem, which comes later.
            self._lost = True
            if not document.is_changing and not self._slot.is_busy:
                self.replay()
            return
        recipe = document.wanted
        part = None if recipe is None else self._deadly(recipe)
        if recipe is not None and part is not None:
            document.change(without_part(recipe, part))
            self._say_off(part)

    def _crash_text(self, ending: Ending) -> str:
        client = self._children.engine if ending.role == "engine" else self._children.worker
        if client.state == "failed":
            what = _(
                "It crashed repeatedly and is not restarted. Choose Tools → Restart engine and "
                "worker to restart it."
            )
        elif ending.role == "worker" or self._document.recipe is None:
            what = _("It is being restarted; everything that was open stays open.")
        else:
            what = _("It is being restarted and the session restored.")
        return _("{first}. {second}", first=str(ending), second=what)

    def _say_restarted(self) -> None:
        """Bring notifications of crashes up to date that are still shown."""
        for client in (self._children.engine, self._children.worker):
            if client.state == "ready" and client.role in self._said:
                notice, ending = self._said.pop(client.role)
                if self._document.state.notice is notice:
                    what = _("It has been restarted; everything that was open stays open.")
                    self._document.notify(
                        _("{first}. {second}", first=str(ending), second=what), notice.role
                    )

    def remedy(self, recipe: Recipe) -> Recipe | None:
        """Return the recipe to continue with after the engine crashed while deriving this one.

        That is the same recipe, once; then the recipe without the part that crashed the engine
        twice; ``None`` if that is not known.
        """
        if self._children.engine.state == "failed":
            return None
        if self._deaths[self._last] < TWICE:
            return recipe
        part = self._deadly(recipe)
        if part is None:
            del self._deaths[self._last]
            return None
        self._say_off(part)
        return without_part(recipe, part)

    def _deadly(self, recipe: Recipe) -> Part | None:
        """Return the part of a recipe that crashed two children, including the last."""
        return None if self._deaths[self._last] < TWICE else part_of(recipe, self._last[1])

    def _say_off(self, part: Part) -> None:
        role, _recipe = self._last
        del self._deaths[self._last]
        if part.kind == "step":
            what = _("step {place}, {name}", place=part.place + 1, name=part.name)
            where = _("its check box in Steps")
        elif part.kind == "primitive":
            what = _("{name} in the schedule of {function}", name=part.name, function=part.function)
            where = _("its check box in Schedule")
        else:
            name = part.name.removeprefix("fx:")
            what = _("the lowering chosen for {name}", name=name)
            where = _("the menu of overrides above")
        text = _(
            "The {role} crashed twice at {what}, which is now switched off. To switch it on "
            "again, use {where}, or Undo.",
            role=ROLES[role],
            what=what,
            where=where,
        )
        self._document.notify(text, "wrong")

    def survived(self, role: Role, *kinds: str) -> None:
        """Reset the crash counts of work that a child has now completed.

        Args:
            kinds: See `Part`; ``""`` for all other work.
        """
        for each in tuple(self._deaths):
            if each[0] == role and each[1].partition(" ")[0] in kinds:
                del self._deaths[each]

    # The replay

    def replay(self) -> None:
        """Let the engine derive the recipe shown, so that later queries find it."""
        document, self._lost = self._document, True
        if document.recipe is None or self._slot.is_busy:
            return
        params = SnapshotQuery(recipe=document.recipe, metrics=document.metrics)
        self._slot.ask(params, self._accept, self._refuse, partial(document.say, of="replay"))

    def resume(self) -> None:
        """Replay the recipe shown, unless the engine has derived it or a change is pending."""
        if self._lost and not self._document.is_changing:
            self.replay()

    def give_up(self, recipe: Recipe | None) -> None:
        """Return to the recipe shown, unless the engine failed to derive that very recipe."""
        if recipe == self._document.recipe:
            self._lost = False
        self.resume()

    def abandon(self) -> None:
        """Cancel the replay: another recipe is requested."""
        self._document.say("", of="replay")
        self._slot.supersede()

    def take(self, recipe: Recipe) -> None:
        """Note that the engine has derived a recipe, which is now shown."""
        self.survived("engine", "", "step", "override")
        if applies_schedules(recipe):
            self.survived("engine", "primitive")
        if self._lost:
            self._lost = False
            self.replayed.emit()

    def _accept(self, _snapshot: Snapshot) -> None:
        self._document.say("", of="replay")
        recipe = self._document.recipe
        assert recipe is not None
        self._document.accept_shown()
        self.take(recipe)

    def _refuse(self, problem: Problem) -> None:
        self._document.say("", of="replay")
        recipe = self._document.recipe
        again = None
        if recipe is not None and problem.code == "crashed":
            again = self.remedy(recipe)
        if again is not None and again != recipe:
            self._document.change(again)
        elif again is not None:
            self.replay()
        else:
            self._lost = False
            if problem.code != "cancelled":
                self._document.reject_shown(problem)


# --- Derivation of the pending recipe by the engine ---

EARLY_MS = 700
"""Time after which a source that is being opened is shown before its passes."""


class Changes(QObject):
    """Queries the records of each pending version, and shows them.

    A source whose passes take long is shown without them as soon as it is lowered.
    """

    rejected = Signal()  # The pending version could not be derived, or was cancelled.

    def __init__(self, document: Document, queries: Queries, recovering: Recovering) -> None:
        super().__init__(document)
        self._document = document
        self._queries = queries
        self._recovering = recovering
        self._slot = Slot(queries)
        self._early = Slot(queries)
        self._asked: Version | None = None
        self._told = ""
        self._timer = QTimer(self, singleShot=True, interval=EARLY_MS)
        self._timer.timeout.connect(self._ask_early)
        document.changed.connect(self._follow)

    def _follow(self, change: Change) -> None:
        pending = self._document.pending
        if "pending" not in change.fields or pending is self._asked:
            return
        self._slot.supersede()
        self._end_early()
        self._asked = pending
        if pending is None:
            self._document.say("")
            self._recovering.resume()
        else:
            self._ask(pending)

    def _ask(self, version: Version) -> None:
        document = self._document
        if version.reads_files:
            self._queries.note_reload()
        self._recovering.abandon()
        document.say(_("Opening"))
        query = SnapshotQuery(recipe=version.recipe, metrics=document.metrics)
        self._slot.ask(query, self._accept, self._refuse, self._tell)
        self._timer.start()

    def _tell(self, text: str, fraction: float | None = None) -> None:
        assert self._asked is not None
        part = part_of(self._asked.recipe, self._queries.client("engine").part)
        step = part.place + 1 if part is not None and part.kind == "step" else 0
        self._document.say(text, fraction, step=step)
        if text != self._told and not self._timer.isActive():
            self._told = text
            self._ask_early()

    def _ask_early(self) -> None:
        """Ask for the records before the passes, again at each stage until they are known."""
        version, shown = self._asked, self._document.recipe
        opens = shown is None or (version is not None and version.recipe.source != shown.source)
        if version is not None and version.recipe.steps and opens:
            query = LoweredQuery(version.recipe, self._document.metrics)
            self._early.ask(query, self._accept_early, lambda _problem: None)

    def _end_early(self) -> None:
        self._timer.stop()
        self._early.drop()

    def _accept_early(self, snapshot: Snapshot) -> None:
        if self._asked is not None and self._asked is self._document.pending:
            self._document.show_lowered(snapshot)
            assert self._document.recipe is not None
            self._queries.show(self._document.recipe, snapshot.key)

    def _accept(self, snapshot: Snapshot) -> None:
        self._end_early()
        version, self._asked = self._asked, None
        assert version is not None
        self._queries.show(version.recipe, snapshot.key)
        with self._document.changing():
            self._document.say("")
            self._document.show(version, snapshot)
        self._recovering.take(version.recipe)

    def _refuse(self, problem: Problem) -> None:
        document = self._document
        self._end_early()
        version, self._asked = self._asked, None
        document.say("")
        if version is not None and problem.code == "crashed":
            again = self._recovering.remedy(version.recipe)
            if again is not None:
                self._request_again(again, version)
                return
        document.reject(problem)
        self.rejected.emit()
        self._recovering.give_up(None if version is None else version.recipe)

    def _request_again(self, recipe: Recipe, lost: Version) -> None:
        """Resubmit the lost version to the restarted engine, without the part that crashed it."""
        history = lost.history
        if self._document.recipe in (None, without_steps(lost.recipe)) and recipe != lost.recipe:
            # Undo returns to the recipe that was opened; otherwise to the one shown.
            history = history.changed_from(lost.recipe)
        self._document.request(Version(recipe, history))
