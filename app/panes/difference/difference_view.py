"""The comparison of two steps: labels of both sides, a filter, and the difference."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.pins import Pins
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit import theme
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import icon
from lowerscope.app.kit.pane import PartsLabel
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.panes.difference.difference_page import DifferencePage
from lowerscope.app.panes.difference.graph_difference_page import GraphDifferencePage


class DifferenceView(QWidget):
    """The page on the changes of a step, or on the pinned comparison.

    Args:
        set_busy: Called with whether a difference is being fetched.
    """

    patch_wanted = Signal()  # Save the difference shown as a patch.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        pins: Pins,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._pins = pins
        self.page = DifferencePage(document, queries, pins, set_busy)
        self.graph = GraphDifferencePage(document, queries, pins, set_busy)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.page)
        self.pages.addWidget(self.graph)
        self.columns = SegmentedSwitch(
            self.tr("Show the difference as"),
            (
                Segment("two", self.tr("Side by side")),
                Segment("one", self.tr("Unified")),
                Segment("graph", self.tr("Graph"), self.tr("The data flow of a Relax function")),
            ),
        )
        self.filter = QLineEdit()
        self.filter.setPlaceholderText(self.tr("Filter"))
        self.filter.setAccessibleName(self.tr("Filter what is shown of both sides"))
        self.filter.setClearButtonEnabled(True)
        self.filter.setMaximumWidth(220)
        self.same = QCheckBox(self.tr("Same too"))
        self.same.setToolTip(self.tr("Show the functions that are the same on both sides as well"))
        self.figure = Label()
        self.figure.setProperty("role", "quiet")
        self.previous = self._tool(self.tr("Previous change (Shift+F7)"))
        self.following = self._tool(self.tr("Next change (F7)"))
        self.pin = self._button(
            self.tr("Pin"), self.tr("Keep what is looked at as the old side (Ctrl+Shift+D)")
        )
        self.swap = self._button(self.tr("Swap"), self.tr("Let the sides change places"))
        self.unpin = self._button(self.tr("Unpin"), self.tr("Follow the step that is looked at"))
        self.save = self._tool(self.tr("Save the difference as a patch…"))
        self.old_label = self._label()
        self.new_label = self._label()
        self._lay_out()
        self.columns.changed.connect(self._set_columns)
        self.filter.textChanged.connect(self._set_filter)
        self.same.toggled.connect(self._set_filter)
        self.previous.clicked.connect(self.previous_change)
        self.following.clicked.connect(self.next_change)
        self.pin.clicked.connect(self._pins.pin_here)
        self.swap.clicked.connect(self._pins.swap)
        self.unpin.clicked.connect(self._pins.clear)
        self.save.clicked.connect(self._save)
        self.page.shown.connect(self._show_labels)
        self.graph.shown.connect(self._show_labels)
        self.page.diff.moved.connect(self._show_figure)
        self._pins.changed.connect(self._show_sides)
        document.on(("snapshot",), self._show_anew)
        theme.notifier().changed.connect(self._draw_icons)
        self._draw_icons()
        self._show_sides()

    def next_change(self) -> None:
        """Go to the next change."""
        if self._shows_graph:
            self.graph.step(1)
        else:
            self.page.diff.next_change()

    def previous_change(self) -> None:
        """Go to the previous change."""
        if self._shows_graph:
            self.graph.step(-1)
        else:
            self.page.diff.previous_change()

    @property
    def _shows_graph(self) -> bool:
        return self.pages.currentWidget() is self.graph

    # Slots

    def _save(self) -> None:
        self.patch_wanted.emit()

    def _set_columns(self, key: str) -> None:
        if key == "graph":
            self.graph.show_sides(self.page.relax_function)
            self.pages.setCurrentWidget(self.graph)
        else:
            self.page.diff.set_unified(key == "one")
            self.pages.setCurrentWidget(self.page)
        (self.graph if key == "graph" else self.page).column.insertWidget(0, self._sides)
        self._show_labels()

    def _set_filter(self) -> None:
        for page in (self.page, self.graph):
            page.set_filter(self.filter.text().strip(), self.same.isChecked())

    def _show_anew(self) -> None:
        self._show_sides()

    def _show_sides(self) -> None:
        pinned = self._pins.first is not None
        for button in (self.swap, self.unpin):
            button.setVisible(pinned)
        self.pin.setEnabled(self._pins.sides is not None)
        self.page.show_sides()
        self.graph.show_sides(self.page.relax_function)
        if self.page.is_current:
            # One of them may have been pinned or unpinned.
            self._show_labels()

    def _show_labels(self) -> None:
        record = self.graph.record if self._shows_graph else self.page.record
        pinned = self.tr("pinned")
        for label, text, side in (
            (self.old_label, "" if record is None else record.old_label, self._pins.first),
            (self.new_label, "" if record is None else record.new_label, self._pins.second),
        ):
            label.set_whole(f"{text} · {pinned}" if text and side is not None else text)
        self._show_figure()

    def _show_figure(self) -> None:
        place, count = (0, self.graph.changes()) if self._shows_graph else self.page.diff.change()
        changes = self.tr("1 change") if count == 1 else self.tr("{0} changes").format(f"{count:,}")
        self.figure.setText(
            self.tr("{0} of {1}").format(f"{place:,}", changes) if place else changes
        )
        for button in (self.previous, self.following):
            button.setEnabled(count > 0)

    def _draw_icons(self) -> None:
        self.previous.setIcon(icon("up"))
        self.following.setIcon(icon("down"))
        self.save.setIcon(icon("save"))

    # Construction

    def _label(self) -> PartsLabel:
        # Its end names the step: the rest is often the same on both sides.
        label = PartsLabel(keep_last=True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return label

    def _button(self, text: str, tooltip: str) -> QPushButton:
        button = QPushButton(text)
        button.setToolTip(tooltip)
        return button

    def _tool(self, tooltip: str) -> QToolButton:
        button = QToolButton()
        button.setToolTip(tooltip)
        button.setAccessibleName(tooltip)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return button

    def _lay_out(self) -> None:
        bar = QWidget()
        bar.setProperty("bar", True)
        bar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        row = QHBoxLayout(bar)
        row.setContentsMargins(8, 4, 8, 4)
        row.setSpacing(5)
        row.addWidget(self.filter, 1)
        row.addWidget(self.same)
        row.addStretch(1)
        for widget in (self.figure, self.previous, self.following, self.columns):
            row.addWidget(widget)
        for button in (self.pin, self.swap, self.unpin):
            row.addWidget(button)
        sides = self._sides = QWidget()
        sides.setProperty("edge", "bottom")
        sides.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        labels = QHBoxLayout(sides)
        labels.setContentsMargins(10, 3, 10, 4)
        labels.setSpacing(6)
        for name, label in ((self.tr("old"), self.old_label), (self.tr("new"), self.new_label)):
            caption = Label(name)
            caption.setProperty("role", "quiet")
            labels.addWidget(caption)
            labels.addWidget(label, 1)
        labels.addWidget(self.save)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(bar)
        column.addWidget(self.pages, 1)
        # Each label is above the column of its side.
        self.page.column.insertWidget(0, sides)
