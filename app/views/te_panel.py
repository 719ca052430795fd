"""The four steps of ``emit_te`` for a binding."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from lowerscope.app.widgets.code.view import CodeView
from lowerscope.app.widgets.segmented import Segment, SegmentedSwitch
from lowerscope.app.widgets.table import Cell, Column, Row, Table
from lowerscope.core.model.entities import name_of
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.records.translation import TeRecord


class TePanel(QWidget):
    """Placeholders, expression, function and ``call_tir`` of one call at a time."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._calls: tuple[TeRecord, ...] = ()
        self.choice = QComboBox()
        self.choice.setAccessibleName(self.tr("Call of emit_te that is shown"))
        self.choice.setMinimumContentsLength(12)
        self.choice.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.steps = SegmentedSwitch(
            self.tr("Step of emit_te"),
            (
                Segment("placeholders", self.tr("1 Placeholders")),
                Segment("expression", self.tr("2 Expression")),
                Segment("function", self.tr("3 Function")),
                Segment("call", self.tr("4 call_tir")),
            ),
        )
        self.table = Table(
            self.tr("Placeholders"),
            (
                Column(self.tr("placeholder"), width=130),
                Column(self.tr("shape"), width=120),
                Column(self.tr("dtype"), width=90),
                Column(self.tr("stands for"), stretch=True),
            ),
        )
        self.table.set_empty(self.tr("No placeholders"), self.tr("It reads no tensor."))
        self.code = CodeView(self.tr("What emit_te made"))
        self.pages = QStackedWidget()
        self.pages.addWidget(self.code)
        self.pages.addWidget(self.table)
        row = QHBoxLayout()
        row.setContentsMargins(10, 4, 10, 4)
        row.setSpacing(8)
        row.addWidget(self.steps)
        row.addWidget(self.choice, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row)
        column.addWidget(self.pages, 1)
        self.choice.currentIndexChanged.connect(self._show_step)
        self.steps.changed.connect(self._show_step)
        self.show_calls((), "", "")

    def show_calls(self, calls: tuple[TeRecord, ...], title: str, hint: str) -> None:
        """Show the first of some calls, at the same step as before; or a hint if there are none."""
        self._calls = calls
        self.code.set_empty(title, hint)
        self.choice.blockSignals(True)
        self.choice.clear()
        for each in calls:
            by = self.tr(" by LegalizeOps") if each.by_pass else ""
            self.choice.addItem(f"{name_of(each.binding)} = {each.title}{by}")
        self.choice.blockSignals(False)
        self.choice.setVisible(bool(calls))
        self.steps.setVisible(bool(calls))
        self._show_step()

    def _show_step(self) -> None:
        place = self.choice.currentIndex()
        found = self._calls[place] if 0 <= place < len(self._calls) else None
        step = self.steps.current()
        self.choice.setToolTip(self.choice.currentText())
        if found is None:
            self.pages.setCurrentWidget(self.code)
            self.code.set_text("")
            return
        self.pages.setCurrentWidget(self.table if step == "placeholders" else self.code)
        if step == "placeholders":
            self.table.set_rows(
                [
                    Row(
                        str(number),
                        (
                            Cell(each.name, code=True),
                            Cell(shape_text(each.shape)),
                            Cell(each.dtype, role="quiet"),
                            Cell(each.argument, code=True, tooltip=each.argument),
                        ),
                    )
                    for number, each in enumerate(found.placeholders)
                ]
            )
        elif step == "expression" and found.expression is None:
            self.code.set_empty(self.tr("Not written as tensor expressions"), found.refusal)
            self.code.set_text("")
        else:
            self.code.set_text(*_text_of(found, step))


def _text_of(found: TeRecord, step: str) -> tuple[str, str]:
    """Return the text of a step, and its language."""
    if step == "expression" and found.expression is not None:
        return found.expression.text, found.expression.language
    if step == "function":
        first = f"# made for {name_of(found.first_made)} already: an equal function is called again"
        text = f"{first}\n{found.script.text}" if found.first_made else found.script.text
        return text, found.script.language
    return found.call, "tvmscript"
