"""The form for a remote machine: a tracker, the key of its servers, and their answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Slot
from lowerscope.app.kit.dialogs import Dialog, mark_wrong
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.plain_text import Label
from lowerscope.core.model.machines import (
    TIMEOUT,
    Remote,
    RemoteState,
    TargetRecord,
    key_text,
    machine_text,
    remote_of,
)
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.queries import RemoteQuery, TargetsQuery
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.app.document.queries import Queries


# --- Targets and remote machines: queries to the children, for the dialogs ---


class Targets(QObject):
    """The catalogue, the target typed last, and the remote machine tried last.

    Attributes:
        trying: Whether a query to a remote machine is pending.
    """

    changed = Signal()  # One of these is new.

    def __init__(self, queries: Queries, parent: QObject) -> None:
        super().__init__(parent)
        self._queries = queries
        self._text = ""
        self._slot = Slot(queries)
        # The available targets; empty until they are known.
        self.catalogue: tuple[TargetRecord, ...] = ()
        # Effect of the typed target, or its error.
        self.typed: TargetRecord | Problem | None = None
        # Answer of a remote machine, or why there is none.
        self.state: RemoteState | Problem | None = None

    @property
    def trying(self) -> bool:
        """Return whether a query to a remote machine is pending."""
        return self._slot.is_busy

    def ask(self, threads: int) -> None:
        """Query the available targets, for a number of threads."""

        def take(records: tuple[TargetRecord, ...]) -> None:
            self.catalogue = records
            self.changed.emit()

        params = TargetsQuery(threads=threads)
        self._queries.ask(params, take, self._ignore)

    def look(self, text: str, threads: int) -> None:
        """Query the effect of a target being typed; the last query counts."""
        self._text, self.typed = text, None

        def take(records: tuple[TargetRecord, ...]) -> None:
            note(records[0])

        def note(found: TargetRecord | Problem) -> None:
            if self._text == text:
                self.typed = found
                self.changed.emit()

        params = TargetsQuery(texts=(text,), threads=threads)
        self._queries.ask(params, take, note)

    def attempt(self, remote: Remote) -> None:
        """Query a remote machine, as soon as the worker may reach it."""
        self._queries.client("worker").reach(remote, partial(self._attempt, remote))

    def _attempt(self, remote: Remote) -> None:
        self.give_up()
        self._slot.ask(RemoteQuery(remote=remote), self._take_state, self._take_state)
        self.changed.emit()

    def give_up(self) -> None:
        """Cancel the query to the remote machine, and discard its answer."""
        self._slot.supersede()
        self.state = None

    def _take_state(self, state: RemoteState | Problem) -> None:
        self.state = state
        self.changed.emit()

    def _ignore(self, problem: Problem) -> None:
        """Leave the catalogue empty: a target can be typed."""


MOST_SECONDS = 24 * 3600


class RemoteDialog(Dialog):
    """Tracker, key and time limit; *Test connection* queries the machine first."""

    def __init__(self, document: Document, targets: Targets, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document, self._targets = document, targets
        recipe = document.wanted
        assert recipe is not None
        remote = recipe.remote
        self.setWindowTitle(_("Remote machine"))
        self.tracker = _line(_("Tracker"), remote.tracker if remote else "")
        self.tracker.setPlaceholderText("192.168.1.5:9190")
        self.key = _line(_("Key"), remote.key if remote else "")
        self.key.setPlaceholderText(_("the key of the servers"))
        self.seconds = QSpinBox()
        self.seconds.setRange(1, MOST_SECONDS)
        self.seconds.setValue(round(remote.timeout if remote else TIMEOUT))
        self.seconds.setSuffix(_(" s"))
        self.seconds.setAccessibleName(_("Time limit of an answer"))
        self.seconds.lineEdit().setTextMargins(6, 0, 0, 0)
        self.test = QPushButton(_("Test connection"))
        self.test.clicked.connect(self._test)
        self.said = Label()
        self.said.setWordWrap(True)
        self.said.hide()
        self.adopt = QCheckBox(_("Compile for the processor that it reports"))
        self.adopt.setChecked(True)
        self.adopt.hide()
        hint = Label(
            _(
                "A TVM tracker lists servers under a key. Modules built here run and are timed "
                "there, and are compared with torch here. Values and times of single nodes are "
                "available for runs on this machine only."
            )
        )
        hint.setProperty("role", "quiet")
        hint.setWordWrap(True)
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(8)
        for title, field in (
            (_("Tracker"), self.tracker),
            (_("Key"), self.key),
            (_("Time limit"), self.seconds),
        ):
            label = Label(title)
            label.setBuddy(field)
            form.addRow(label, field)
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel
        )
        self.buttons.button(QDialogButtonBox.StandardButton.Ok).setProperty("primary", True)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self.accepted.connect(self._take)
        self.finished.connect(targets.give_up)
        row = QHBoxLayout()
        row.addWidget(self.test)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(12)
        column.addWidget(hint)
        column.addLayout(form)
        column.addLayout(row)
        self.keep_in_view(self.said)
        for widget in (self.said, self.adopt, self.buttons):
            column.addWidget(widget)
        self.setMinimumWidth(560)
        for field in (self.tracker, self.key):
            field.textChanged.connect(self._check)
        targets.changed.connect(self._show_state)
        self._check()
        offer_help(self, "targets#other-machines")

    def remote(self) -> Remote | None:
        """Return the typed remote.

        Raises:
            LowerscopeError: If it is invalid.
        """
        return remote_of(self.tracker.text(), self.key.text(), float(self.seconds.value()))

    def _check(self) -> None:
        # The answer of another machine does not apply to this one.
        self._targets.give_up()
        self.adopt.hide()
        problem = None
        remote = None
        try:
            remote = self.remote()
        except LowerscopeError as error:
            problem = error.problem
        for button in (self.test, self.buttons.button(QDialogButtonBox.StandardButton.Ok)):
            button.setEnabled(remote is not None)
        # An empty field is incomplete, not wrong.
        mark_wrong(self.tracker, bool(problem and self.tracker.text() and self.key.text()))
        self._say(problem.what if problem else "", wrong=problem is not None)

    def _test(self) -> None:
        remote = self.remote()
        if remote is not None:
            self._targets.attempt(remote)

    def _show_state(self) -> None:
        self.test.setEnabled(not self._targets.trying)
        state = self._targets.state
        if self._targets.trying:
            self._say(_("Querying {text}…", text=self.tracker.text().strip()))
        elif isinstance(state, Problem):
            self._say(state.line(), wrong=True)
        elif isinstance(state, RemoteState):
            keys = [key_text(each) for each in state.keys]
            self._say("\n".join([*keys, f"✓ {machine_text(state)}"]))
        self.adopt.setVisible(self._target_there() != "")

    def _target_there(self) -> str:
        state = self._targets.state
        if not isinstance(state, RemoteState) or state.machine is None:
            return ""
        return state.machine.target

    def _say(self, text: str, *, wrong: bool = False) -> None:
        self.said.setProperty("role", "wrong" if wrong else "quiet")
        self.said.style().polish(self.said)
        self.said.setText(text)
        self.said.setVisible(bool(text))

    def _take(self) -> None:
        recipe, remote = self._document.wanted, self.remote()
        if recipe is None or remote is None:
            return
        chosen = self._target_there() if self.adopt.isChecked() else ""
        target = chosen or recipe.target
        self._document.change(msgspec.structs.replace(recipe, remote=remote, target=target))


def _line(name: str, text: str) -> QLineEdit:
    field = QLineEdit(text)
    field.setAccessibleName(name)
    return field
