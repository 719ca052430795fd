"""The dialog that explains why two nodes are fused, or not, and offers what would change that."""

from __future__ import annotations

from PySide6.QtWidgets import QDialogButtonBox, QFormLayout, QLineEdit, QPushButton, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.commands import Command, Host
from lowerscope.app.kit.dialogs import Dialog
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.core.model.explanation_records import Explanation
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import WhyFusedQuery
from lowerscope.core.model.texts import _

WIDTH = 520


class FusionDialog(Dialog):
    """Two nodes, and the explanation of their fusion, which follows what is typed.

    Args:
        one: Name or id of a node, binding or function.
        other: The same of another one.
    """

    def __init__(
        self,
        document: Document,
        queries: Queries,
        one: str,
        other: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._asked = (one, other)
        self.setWindowTitle(_("Explain the fusion"))
        self.one, self.other = QLineEdit(one), QLineEdit(other)
        form = QFormLayout()
        for title, line in (
            (_("First node"), self.one),
            (_("Second node"), self.other),
        ):
            line.setPlaceholderText(_("Node, binding or function"))
            line.setAccessibleName(title)
            line.editingFinished.connect(self._ask)
            label = Label(title)
            label.setBuddy(line)
            form.addRow(label, line)
        self.head, self.text = Label(role="title"), Label(wraps=True)
        self.cites = Label(role="quiet", wraps=True)
        for label in (self.head, self.text, self.cites):
            label.setMinimumWidth(WIDTH)
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.buttons.rejected.connect(self.reject)
        # Makes the change that would fuse the nodes.
        self.apply = QPushButton()
        self.apply.setProperty("primary", True)
        self.apply.clicked.connect(self._apply)
        self.apply.hide()
        self.buttons.addButton(self.apply, QDialogButtonBox.ButtonRole.ActionRole)
        column = column_of(self, margins=(16, 16, 16, 12), spacing=8)
        column.addLayout(form)
        for widget in (self.head, self.text, self.cites):
            column.addWidget(widget)
        column.addStretch(1)
        column.addWidget(self.buttons)
        offer_help(self, "fusion")
        self._answer: Explanation | None = None
        self._watch = queries.watch(self, self._query, self._show, self._refuse, self._set_busy)
        document.on(("recipe",), self._follow)
        self._follow()
        if not (one and other):
            (self.other if one else self.one).setFocus()
            self._hint()

    def _follow(self) -> None:
        self._watch.update()

    def _query(self) -> WhyFusedQuery | None:
        recipe, (one, other) = self._document.recipe, self._asked
        return None if recipe is None or not (one and other) else WhyFusedQuery(recipe, one, other)

    def _ask(self) -> None:
        asked = (self.one.text().strip(), self.other.text().strip())
        if asked != self._asked:
            self._asked = asked
            self._watch.update()
            if not all(asked):
                self._hint()

    def _hint(self) -> None:
        self._say("", _("Select two nodes first, or type their names."))

    def _say(self, head: str, text: str, cites: str = "", role: str = "title") -> None:
        self.head.setText(head)
        self.head.set_role(role)
        self.text.setText(text)
        self.cites.setText(cites)
        for label in (self.head, self.cites):
            label.setHidden(not label.text())
        self.apply.hide()

    def _set_busy(self, busy: bool) -> None:
        if busy:
            self._say("", _("Explaining the fusion…"))

    def _show(self, answer: Explanation) -> None:
        self._answer = answer
        head = _("Fused") if answer.fused else _("Not fused")
        self._say(head, f"{answer.text}.", _("Based on: {cites}", cites=" · ".join(answer.cites)))
        if answer.change is not None:
            self.apply.setText(answer.change.text)
            self.apply.show()

    def _refuse(self, problem: Problem) -> None:
        self._say(_("No explanation"), problem.line(), role="wrong")

    def _apply(self) -> None:
        change = None if self._answer is None else self._answer.change
        if change is not None:
            fields = {"steps": change.steps, "overrides": change.overrides}
            self._document.change_fields(
                **{name: value for name, value in fields.items() if value is not None}
            )


def explaining(host: Host, document: Document, queries: Queries) -> Command:
    """Return the command that explains the fusion of the selected nodes."""

    def explain() -> None:
        chosen = [*document.selection.chosen, "", ""]
        FusionDialog(document, queries, chosen[0], chosen[1], host.widget).pop_up()

    return Command("why-fused", _("E&xplain the fusion…"), explain, enabled=document.is_open)
