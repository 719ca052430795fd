"""The rules that translated a node, with their source and its location."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from lowerscope.app.views.descriptions import line_text
from lowerscope.app.widgets.code.view import CodeView
from lowerscope.app.widgets.pane import ElidedLabel
from lowerscope.app.widgets.plain_text import literal
from lowerscope.core.records.translation import RuleSource

KINDS = {
    "user": "rule of yours",
    "built-in": "rule",
    "tvm": "TVM's converter",
    "library": "registered as",
    "torch": "torch's source",
    "python": "computed by",
    "te": "TE function",
}


class RulePanel(QWidget):
    """Shows one of several sources.

    Signals
    -------
    place_wanted
        Open the file of a source: its `SourceLine`.
    """

    place_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sources: tuple[RuleSource, ...] = ()
        self.choice = QComboBox()
        self.choice.setAccessibleName(self.tr("Rule or function whose source is shown"))
        self.place = QPushButton()
        self.place.setProperty("quiet", True)
        self.remark = ElidedLabel()
        self.remark.setProperty("role", "quiet")
        self.code = CodeView(self.tr("Source of the rule"))
        row = QHBoxLayout()
        row.setContentsMargins(10, 4, 10, 4)
        row.setSpacing(8)
        row.addWidget(self.choice)
        row.addWidget(self.place)
        row.addWidget(self.remark, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row)
        column.addWidget(self.code, 1)
        self.choice.currentIndexChanged.connect(self._show_source)
        self.place.clicked.connect(self._open)
        self.show_sources((), "", "")

    def show_sources(self, sources: tuple[RuleSource, ...], title: str, hint: str) -> None:
        """Show the first of some sources, or a hint if there are none."""
        self._sources = sources
        self.code.set_empty(title, hint)
        self.choice.blockSignals(True)
        self.choice.clear()
        for each in sources:
            self.choice.addItem(f"{KINDS[each.kind]}: {each.name}")
        self.choice.blockSignals(False)
        self.choice.setVisible(bool(sources))
        self._show_source(0)

    def _show_source(self, place: int) -> None:
        found = self._sources[place] if 0 <= place < len(self._sources) else None
        line = None if found is None else found.line
        self.place.setVisible(line is not None)
        if line is not None:
            self.place.setText(literal(line_text(line)))
            self.place.setToolTip(self.tr("Open {0}").format(f"{Path(line.file)}:{line.line}"))
            self.place.setAccessibleName(self.place.toolTip())
        self.remark.set_whole("" if found is None else found.remark)
        if found is not None and not found.text:
            self.code.set_empty(self.tr("No source"), found.remark)
        self.code.set_text("" if found is None else found.text, "python")

    def _open(self) -> None:
        line = self._sources[self.choice.currentIndex()].line
        if line is not None:
            self.place_wanted.emit(line)
