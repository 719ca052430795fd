"""The status bar: the children, the current job, and the selection."""

from __future__ import annotations

from typing import get_args

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QStatusBar, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.engine.child_process import ROLES
from lowerscope.app.engine.children import Children
from lowerscope.app.engine.client import State
from lowerscope.app.engine.sandboxing import Sandboxing
from lowerscope.app.engine.watchdog import AtWork
from lowerscope.app.kit import theme
from lowerscope.app.kit.background import single_shot
from lowerscope.app.kit.buttons import push_button, set_look
from lowerscope.app.kit.pane import ElidedLabel, ProgressLine
from lowerscope.app.kit.plain_text import Label, Markup, MarkupLabel, markup
from lowerscope.app.panes.common.descriptions import in_order, names_of
from lowerscope.app.panes.tuning.model import Tuning
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.texts import _

PROGRESS_AFTER = 200
"""Milliseconds after which progress is shown."""

APART = 8
"""Pixels between one child's state and the next item."""

HEIGHT = 26

SAID_FOR = 6000
"""Milliseconds for which a line is shown in place of the selection."""

CANCEL_AFTER = 1000
"""Milliseconds after which cancel is offered."""


class StatusBar(QStatusBar):
    """The status bar."""

    tuning_wanted = Signal()  # Show the progress of the tuning.
    drawer_wanted = Signal(str)  # Show a page of the drawer, or close it where it is shown.

    def __init__(
        self,
        document: Document,
        children: Children,
        tuning: Tuning,
        at_work: AtWork,
        sandboxing: Sandboxing,
    ) -> None:
        super().__init__()
        self._document = document
        self._children = children
        self._tuning = tuning
        self._at_work = at_work
        self._sandboxing = sandboxing
        self.setSizeGripEnabled(False)
        self.setContentsMargins(8, 0, 4, 0)
        # What comes and goes in it never changes the panes.
        self.setFixedHeight(HEIGHT)
        self.engine = MarkupLabel()
        self.worker = MarkupLabel()
        self.sandbox = Label(role="quiet")
        self.sandbox.setContentsMargins(0, 0, APART, 0)
        self.remote = Label(role="quiet")
        self.job = ElidedLabel()
        self.job.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.progress = ProgressLine()
        self.progress.setFixedWidth(120)
        self.cancel = push_button(_("Cancel"), look="quiet")
        self.tuning = QPushButton(self._tuning_text(10_000, 10_000))
        self.tuning.setProperty("quiet", True)
        self.tuning.setToolTip(_("Show the progress of tuning"))
        self.tuning.ensurePolished()
        # Fixed size, for the same reason as the labels of the children.
        self.tuning.setFixedSize(self.tuning.sizeHint())
        self.tuning.hide()
        self.tuning.clicked.connect(self.tuning_wanted)
        self.selection = ElidedLabel()
        self._path = ""
        labels: tuple[QWidget, ...] = (
            *(self.engine, self.worker, self.sandbox, self.remote, self.tuning),
        )
        for widget in labels:
            self.addWidget(widget)
        self.addWidget(self.selection, 1)
        self.problems = push_button(
            "", _("Show or hide the problems"), self._want_problems, look="quiet"
        )
        self.log = push_button(_("Log"), _("Show or hide the log"), self._want_log, look="quiet")
        for button in (self.tuning, self.cancel, self.problems, self.log):
            button.setProperty("low", True)
        # The job has more to say than the selection, and neither widens the window.
        self.addPermanentWidget(self.job, 2)
        for widget in (self.progress, self.cancel, self.problems, self.log):
            self.addPermanentWidget(widget)
        self._show_later = single_shot(self, PROGRESS_AFTER, self._show_job)
        self._offer_later = single_shot(self, CANCEL_AFTER, self.cancel.show)
        self._said = single_shot(self, SAID_FOR, self._show_path)
        self._hide_job()
        self._fix_size(self.engine, ROLES["engine"])
        self._fix_size(self.worker, ROLES["worker"])
        children.changed.connect(self._show_children)
        sandboxing.changed.connect(self._show_sandbox)
        document.on(("recipe", "pending"), self._show_remote)
        document.on(("snapshot",), self._show_remote)
        document.on(("jobs",), self._note_job)
        document.on(("selection", "snapshot"), self._show_selection)
        document.on(("problems", "snapshot"), self._show_problems)
        tuning.changed.connect(self._show_tuning)
        theme.notifier().changed.connect(self._show_children)
        self._show_children()
        self._show_sandbox()
        self._show_remote()
        self._show_problems()

    def say(self, text: str) -> None:
        """Show a line in place of the selection, for a few seconds."""
        self.selection.set_whole(text)
        self._said.start()

    def show_drawer(self, page: str) -> None:
        """Show which page of the drawer is open; empty for none."""
        for key, button in (("problems", self.problems), ("log", self.log)):
            button.setDown(page == key)

    def _want_problems(self) -> None:
        self.drawer_wanted.emit("problems")

    def _want_log(self) -> None:
        self.drawer_wanted.emit("log")

    def _show_problems(self) -> None:
        notes = [note for note in self._document.notes if note.code]
        count = len(self._document.problems) + len(notes)
        self.problems.setText(_("Problems {count}", count=count))
        set_look(self.problems, "wrong", bool(count))

    def _fix_size(self, label: MarkupLabel, name: str) -> None:
        """Fix the size of a label to that of its longest text.

        A label that changes size lays out all docks of the window again, and a child becomes busy
        and ready with every click.
        """
        label.ensurePolished()
        sizes = []
        for state in get_args(State):
            label.setText(self._state_text(name, state))
            sizes.append(label.sizeHint())
        widest = max(size.width() for size in sizes)
        label.setFixedSize(widest + APART, sizes[0].height())

    def _show_children(self) -> None:
        for label, name, client in (
            (self.engine, ROLES["engine"], self._children.engine),
            (self.worker, ROLES["worker"], self._children.worker),
        ):
            label.setText(self._state_text(name, client.state))
            limit = client.memory_limit
            if limit is not None:
                text = _(
                    "Memory limit {limit}: Tools → Memory limit of the worker…",
                    limit=bytes_text(limit),
                )
                label.setToolTip(text)

    def _show_sandbox(self) -> None:
        is_there = self._sandboxing.state == "on"
        self.sandbox.setText(_("sandboxed") if is_there else _("no sandbox"))
        self.sandbox.setToolTip(self._sandboxing.availability)

    def _show_remote(self) -> None:
        recipe = self._document.wanted
        remote = None if recipe is None else recipe.remote
        self.remote.setText("" if remote is None else f"→ {remote.title}")
        self.remote.setToolTip("" if remote is None else remote.tracker)
        self.remote.setVisible(remote is not None)

    def _state_text(self, name: str, state: str) -> Markup:
        colours = theme.current()
        words = {
            "stopped": (colours.quiet, "○", _("stopped")),
            "starting": (colours.quiet, "○", _("starting")),
            "ready": (colours.right, "●", _("ready")),
            "busy": (colours.accent, "●", _("busy")),
            "failed": (colours.wrong, "✕", _("failed")),
        }
        colour, mark, word = words[state]
        return markup('<span style="color:{0}">{1}</span> {2} {3}', colour, mark, name, word)

    def _tuning_text(self, done: int, total: int, *, paused: bool = False) -> str:
        word = _("❚❚ tuning") if paused else _("▸ tuning")
        return f"{word} {done} / {total}"

    def _show_tuning(self) -> None:
        tuning, state = self._tuning, self._tuning.state
        self.tuning.setVisible(tuning.under_way)
        if tuning.under_way:
            done, total = (0, 0) if state is None else (state.trials_done, state.trials_total)
            paused = tuning.phase in ("pausing", "paused")
            self.tuning.setText(self._tuning_text(done, total, paused=paused))

    def _note_job(self) -> None:
        if not self._document.job.text:
            self._hide_job()
            return
        if self._at_work.said:
            # It has been running for a while already.
            self._show_job()
            self.cancel.show()
        elif self.progress.isVisible():
            self._show_job()
        elif not self._show_later.isActive():
            self._show_later.start()
            self._offer_later.start()

    def _show_job(self) -> None:
        job = self._document.job
        self.job.set_whole(job.words)
        self.job.show()
        self.progress.show()
        if job.fraction is None:
            self.progress.set_busy()
        else:
            self.progress.set_fraction(job.fraction)

    def _hide_job(self) -> None:
        self._show_later.stop()
        self._offer_later.stop()
        self.progress.clear()
        for widget in (self.progress, self.job, self.cancel):
            widget.hide()

    def _show_selection(self) -> None:
        selection, snapshot = self._document.selection, self._document.snapshot

        def is_named(entity: str) -> bool:
            kind, inside = entity.partition(":")[0], "/" in entity
            if kind == "tir":
                # Of what is in a function, what was chosen.
                return not inside or entity in selection.chosen
            return kind != "relax" or inside

        parts = [
            names_of(in_order(snapshot, filter(is_named, selection.of_kind(kind))))
            for kind in ("fx", "relax", "tir", "ext")
            if snapshot is not None
        ]
        self._path = " → ".join(part for part in parts if part)
        if not self._said.isActive():
            self._show_path()

    def _show_path(self) -> None:
        self.selection.set_whole(self._path)
