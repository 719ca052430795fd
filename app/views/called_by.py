"""The callers of a function, as links."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.views.descriptions import names_of
from lowerscope.app.widgets.plain_text import Label, literal
from lowerscope.core.model.entities import name_of
from lowerscope.core.records.snapshot import FunctionRecord

_OFFERED = 4


class CalledBy(QWidget):
    """A row of links to the bindings that call a function; a click selects one of them."""

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self.title = Label(self.tr("called by"))
        self.title.setProperty("role", "quiet")
        self.more = Label()
        self.more.setProperty("role", "quiet")
        self.buttons: list[QPushButton] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(4)
        self._row.addWidget(self.title)
        self._row.addWidget(self.more)
        self.hide()

    def show_callers_of(self, function: FunctionRecord | None) -> None:
        """Show the callers of a function, if there are several."""
        calls = function.calls if function is not None and len(function.calls) > 1 else ()
        for button in self.buttons:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self.buttons = [self._button(call) for call in calls[:_OFFERED]]
        for place, button in enumerate(self.buttons, start=1):
            self._row.insertWidget(place, button)
        others = calls[_OFFERED:]
        self.more.setText(self.tr("and {0} more").format(len(others)))
        self.more.setToolTip(names_of(others, most=60))
        self.more.setVisible(bool(others))
        self.setVisible(bool(calls))

    def _button(self, call: str) -> QPushButton:
        button = QPushButton(literal(name_of(call)))
        button.setProperty("quiet", True)
        button.setAccessibleName(self.tr("Called by {0}").format(name_of(call)))
        button.setObjectName(call)
        button.clicked.connect(self._select_sender)
        return button

    def _select_sender(self) -> None:
        sender = self.sender()
        if sender is not None:
            self._document.select((sender.objectName(),))
