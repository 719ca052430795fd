"""The line below the outputs that names the first node whose value differs from torch's."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.widgets.plain_text import literal
from lowerscope.core.model.formatting import error_text


class FirstDifferenceLine(QPushButton):
    """A button that selects the first differing node; visible if the last run had one."""

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._node = ""
        self.setProperty("quiet", True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        # If space is short, the end is elided, and not the name.
        self.setStyleSheet("text-align: left")
        self.setMinimumWidth(120)
        self.clicked.connect(self._select)
        document.on(("run", "running"), self._show_run)
        self._show_run()

    def _show_run(self) -> None:
        record = self._document.run_record
        self._node = "" if record is None else record.first_difference
        self.setVisible(bool(self._node))
        if record is None or not self._node:
            return
        run = next(each for each in record.nodes if each.id == self._node)
        made = record.first_made
        passes, schedules = ", ".join(made.passes), "; ".join(made.schedules)
        parts = [
            self.tr("✕ First difference: {0}").format(self._node.removeprefix("fx:")),
            run.not_finite,
            self.tr("{0} absolute").format(error_text(run.max_abs_error)),
            self.tr("alone it matches: it came from above") if run.own_matches else "",
            made.rule,
            self.tr("passes {0}").format(passes) if passes else "",
            self.tr("schedule of {0}").format(schedules) if schedules else self.tr("no schedule"),
        ]
        text = "  ·  ".join(part for part in parts if part)
        self.setText(literal(text))
        self.setAccessibleName(text)
        select = self.tr("Select the node in all panes (F9)")
        self.setToolTip("\n".join(each for each in (*parts, run.reason, select) if each))

    def _select(self) -> None:
        if self._node:
            self._document.select((self._node,))
