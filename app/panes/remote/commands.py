"""The target and the remote machine: their commands and dialogs."""

from __future__ import annotations

from functools import partial

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QFormLayout, QLineEdit, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.commands import Command, Host, available
from lowerscope.app.kit.dialogs import Dialog, mark_wrong, number_field, show_within
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.core.model.machines import (
    TIMEOUT,
    Remote,
    RemoteState,
    TargetRecord,
    key_text,
    machine_text,
    remote_of,
    target_line,
)
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.queries import RemoteQuery, TargetsQuery
from lowerscope.core.model.recipe import ANY_PROCESSOR, NATIVE
from lowerscope.core.model.texts import _

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
        limit = round(remote.timeout if remote else TIMEOUT)
        self.seconds = number_field(
            _("Time limit of an answer"), 1, MOST_SECONDS, limit, width=None
        )
        show_within(self.seconds, _("{number} s", number="{number}"))
        self.test = push_button(_("Test connection"), act=self._test)
        self.said = Label(wraps=True)
        self.said.hide()
        self.adopt = QCheckBox(_("Compile for the processor that it reports"))
        self.adopt.setChecked(True)
        self.adopt.hide()
        hint = Label(
            _(
                "A TVM tracker lists servers under a key. Modules built here run and are timed "
                "there, and are compared with torch here. Values and times of single nodes are "
                "available for runs on this machine only."
            ),
            role="quiet",
            wraps=True,
        )
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
        self.buttons = self.answers()
        self.accepted.connect(self._take)
        self.finished.connect(targets.give_up)
        test = row_of(None, self.test, STRETCH, margins=None, spacing=None)
        parts = (hint, form, test, self.said, self.adopt, self.buttons)
        column_of(self, *parts, margins=(16, 16, 16, 12), spacing=12)
        self.keep_in_view(self.said)
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
        for button in (self.test, self.buttons.act):
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
        self.said.set_role("wrong" if wrong else "quiet")
        self.said.setText(text)
        self.said.setVisible(bool(text))

    def _take(self) -> None:
        recipe, remote = self._document.wanted, self.remote()
        if recipe is None or remote is None:
            return
        chosen = self._target_there() if self.adopt.isChecked() else ""
        kept = ANY_PROCESSOR if recipe.target == NATIVE else recipe.target
        target = chosen or kept
        self._document.change(msgspec.structs.replace(recipe, remote=remote, target=target))


def _line(name: str, text: str) -> QLineEdit:
    field = QLineEdit(text)
    field.setAccessibleName(name)
    return field


# --- The dialog that selects a target: a list with descriptions, and a field to type any other ---

TYPING_MS = 150
"""Delay between the last key press and the query."""


class TargetDialog(Dialog):
    """A table of targets above a text field, with the effect of the target."""

    def __init__(self, document: Document, targets: Targets, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document, self._targets = document, targets
        recipe = document.wanted
        assert recipe is not None
        self._threads = recipe.threads
        self.setWindowTitle(_("Target"))
        self.table = Table(
            _("Targets"),
            (
                Column(_("for"), width=250),
                Column(_("processor"), width=190),
                Column(
                    _("float32"),
                    numeric=True,
                    tooltip=_("Number of float32 values in a vector register"),
                ),
                Column(_("registers"), numeric=True),
                Column(_("features"), stretch=True, width=180),
                Column(_("here"), width=64),
            ),
        )
        self.table.setMinimumHeight(90)
        self.table.row_clicked.connect(self._choose)
        self.table.row_activated.connect(self._take_row)
        self.line = QLineEdit(recipe.target)
        self.line.setAccessibleName(_("Target"))
        self.line.setPlaceholderText('llvm -mcpu=skylake, {"kind": "llvm", "mcpu": "skylake"}')
        self.line.textChanged.connect(self._type)
        self.about = Label(wraps=True)
        self.about.setMinimumHeight(2 * self.about.fontMetrics().lineSpacing())
        self.buttons = self.answers()
        self.accepted.connect(self._take)
        label = Label(_("Target"))
        label.setBuddy(self.line)
        row = row_of(None, label, (self.line, 1), margins=None, spacing=8)
        parts = ((self.table, 1), row, self.about, self.buttons)
        column_of(self, *parts, margins=(16, 16, 16, 12), spacing=12)
        self.resize(1000, 440)
        self._soon = QTimer(self, singleShot=True, interval=TYPING_MS)
        self._soon.timeout.connect(self._look)
        targets.changed.connect(self._show_known)
        targets.ask(self._threads)
        self._look()
        self.line.setFocus()
        self.line.selectAll()
        offer_help(self, "targets")

    def _show_known(self) -> None:
        if not self.table.rows():
            self.table.set_rows([_row(each) for each in self._targets.catalogue])
        typed = self._targets.typed
        self.buttons.act.setEnabled(isinstance(typed, TargetRecord))
        if typed is not None:
            wrong = isinstance(typed, Problem)
            text = _said(typed) if isinstance(typed, Problem) else target_line(typed)
            mark_wrong(self.line, wrong)
            self.about.set_role("wrong" if wrong else "quiet")
            self.about.setText(text)

    def _type(self) -> None:
        self.buttons.act.setEnabled(False)
        self._soon.start()

    def _look(self) -> None:
        self._targets.look(self.line.text().strip(), self._threads)
        self._show_known()

    def _choose(self, key: str, _modifiers: object) -> None:
        self.line.setText(key)

    def _take_row(self, key: str) -> None:
        self.line.setText(key)
        self.accept()

    def _take(self) -> None:
        if text := self.line.text().strip():
            self._document.change_fields(target=text)


def _said(problem: Problem) -> str:
    """Return the text of a problem, without the option and the command of the command line."""
    todo = "" if "lowerscope " in problem.todo else problem.todo
    return Problem(what=problem.what, todo=todo or _("Choose one from the list")).line()


def _row(record: TargetRecord) -> Row:
    features = _(", ").join(record.features) or "–"
    there = _("no") if record.hindrance else _("yes")
    return Row(
        record.text,
        (
            Cell(record.title, bold=True, tooltip=record.text),
            Cell(f"{record.architecture} {record.cpu}", code=True),
            str(record.lanes),
            str(record.registers),
            Cell(features, role="quiet", tooltip=features),
            Cell(there, role="quiet", tooltip=record.hindrance),
        ),
    )


class TargetCommands:
    """Commands on targets and remote machines."""

    def __init__(self, host: Host, document: Document, queries: Queries) -> None:
        self._host = host
        self._document = document
        self.targets = Targets(queries, host.widget)

    def commands(self) -> tuple[Command, ...]:
        document = self._document
        change = document.change_fields

        def compiled_for(target: str) -> bool:
            return document.wanted is not None and document.wanted.target == target

        return (
            Command(
                "target-llvm",
                _("Target: &llvm"),
                partial(change, target=ANY_PROCESSOR),
                checked=partial(compiled_for, ANY_PROCESSOR),
            ),
            Command(
                "target-native",
                _("T&arget: this machine"),
                partial(change, target=NATIVE, remote=None),
                checked=partial(compiled_for, NATIVE),
            ),
            *available(
                document.is_open,
                Command("target-other", _("Ot&her target…"), self.choose_target),
                Command("target-remote", _("&Remote machine…"), self.choose_remote),
            ),
            Command(
                "target-here",
                _("R&un on this machine again"),
                self.leave_remote,
                enabled=lambda: document.wanted is not None and document.wanted.remote is not None,
            ),
        )

    def choose_target(self) -> None:
        """Show the targets in a dialog, and apply the selected or typed one."""
        if self._document.wanted is not None:
            TargetDialog(self._document, self.targets, self._host.widget).pop_up()

    def choose_remote(self) -> None:
        """Select a remote machine, by tracker and key, in a dialog."""
        if self._document.wanted is not None:
            RemoteDialog(self._document, self.targets, self._host.widget).pop_up()

    def leave_remote(self) -> None:
        """Run on this machine again; the target stays."""
        self._document.change_fields(remote=None)
