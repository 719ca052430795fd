"""The sandbox of the children: the switch, and its dialogs."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QPushButton, QVBoxLayout, QWidget

from lowerscope.app.document.settings import Settings
from lowerscope.app.engine.sandboxing import Sandboxing
from lowerscope.app.kit.commands import Command
from lowerscope.app.kit.dialogs import Question
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.shell.features import Features
from lowerscope.core.model.machines import Remote
from lowerscope.core.model.texts import _

# --- The dialog for systems that cannot create a sandbox for opened code ---

_WITHOUT = 2
"""Result of the dialog, neither accepted nor rejected."""


class NoSandboxDialog(Question):
    """Offers to try again, to run code without a sandbox, or not to run it.

    Accepting it tries again; closing it prevents code from running.

    Args:
        reason: Why the system cannot create one.
    """

    # Code may run without a sandbox; the argument tells whether in later sessions too.
    without = Signal(bool)

    def __init__(self, reason: str, parent: QWidget | None = None) -> None:
        super().__init__(
            _("No sandbox"),
            _("There is no sandbox for opened code, so it does not run."),
            _("Try again"),
            parent=parent,
        )
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        self._question.setProperty("role", "title")
        self.why = Label(reason)  # Label with the reason.
        more = Label(
            _(
                "Without a sandbox, opened code has all of your permissions: it can change or "
                "delete your files, and use the network. Nothing runs until you answer."
            )
        )
        # Check box: the same in later sessions.
        self.remembered = QCheckBox(_("Run without a sandbox in later sessions too"))
        for place, label in enumerate((self.why, more), 1):
            label.setWordWrap(True)
            column.insertWidget(place, label)
        column.insertWidget(3, self.remembered)
        # The button that allows code without a sandbox.
        self.go_without = QPushButton(_("Run without a sandbox"))
        column.insertWidget(4, self.go_without, 0, Qt.AlignmentFlag.AlignLeft)
        self.go_without.clicked.connect(self._go_without)
        self.cancel.setText(_("Do not run"))
        self.act.setDefault(True)
        offer_help(self, "sessions#in-a-sandbox")
        self.act.setFocus()

    def _go_without(self) -> None:
        self.without.emit(self.remembered.isChecked())
        self.done(_WITHOUT)


class SandboxCommands(QObject):
    """Restarts children when their sandbox changes, and shows the dialogs about it."""

    def __init__(self, features: Features, settings: Settings, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._features = features
        self._document = features.document
        self.sandboxing = Sandboxing(settings, self)
        for client in (features.processes.engine, features.processes.worker):
            client.sandbox = self.sandboxing
        self._had_network = False
        self.sandboxing.changed.connect(self._note_network)
        self.sandboxing.held.connect(self._ask_without)
        self.sandboxing.network_wanted.connect(self._ask)
        self._document.on(("recipe", "pending"), self._look_at_recipe)

    def command(self) -> Command:
        text = _("Run code in &a sandbox")
        sandboxing = self.sandboxing
        return Command(
            "sandbox",
            text,
            self.switch,
            enabled=lambda: sandboxing.state != "missing",
            checked=lambda: sandboxing.is_on,
        )

    def switch(self) -> None:
        """Toggle the sandbox, and restart both children."""
        self.set_wanted(not self.sandboxing.is_on)

    def set_wanted(self, on: bool) -> None:
        """Enable or disable the sandbox, and restart both children if that changed."""
        was_on = self.sandboxing.is_on
        self.sandboxing.set_wanted(on)
        if self.sandboxing.is_on != was_on:
            self._features.restart()
            self._document.notify(self.sandboxing.availability, "info")

    def _ask_without(self) -> None:
        dialog = NoSandboxDialog(self.sandboxing.reason, self._window)
        dialog.accepted.connect(self.sandboxing.try_again)
        dialog.without.connect(self._go_without)
        dialog.rejected.connect(self.sandboxing.stay_stopped)
        dialog.open()

    def _go_without(self, remembered: bool) -> None:
        if remembered:
            self.sandboxing.set_wanted(False)
        else:
            self.sandboxing.go_without()
        self._document.notify(self.sandboxing.availability, "wrong")

    def _note_network(self) -> None:
        if self.sandboxing.has_network and not self._had_network:
            self._had_network = True
            # One that is not started yet will use the new settings.
            if self._features.processes.worker.state not in ("stopped", "failed"):
                self._features.processes.worker.restart()

    def _look_at_recipe(self) -> None:
        recipe = self._document.wanted
        self.sandboxing.look_at(None if recipe is None else recipe.remote)

    def _ask(self, remote: Remote) -> None:
        question = Question(
            _("Allow the worker to use the network?"),
            _("Runs on another machine ({title}) need the network.", title=remote.title),
            _("Allow"),
            _(
                "The worker runs in a sandbox without network. It will be restarted with "
                "network access, and the model's code in it can then reach any machine that "
                "you can; your files stay protected. This is remembered for {tracker}.",
                tracker=remote.tracker,
            ),
            self._window,
        )
        offer_help(question, "sessions#in-a-sandbox")
        question.accepted.connect(self.sandboxing.allow)
        question.rejected.connect(self.sandboxing.decline)
        question.open()
