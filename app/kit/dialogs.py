"""Dialogs that fit their screen: questions, and a search."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Self

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFrame,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QStackedWidget,
    QStyle,
    QTreeWidget,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import set_look
from lowerscope.app.kit.layouts import FRAME, column_of
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import Label, MarkupLabel

# --- Files chosen in a dialog ---


def file_to_save(parent: QWidget, title: str, name: str, kinds: str) -> str:
    """Ask for a file to write; return its path, with a suffix of `kinds`, or ``""``."""
    known = _SUFFIX.findall(kinds)
    while True:
        path: str
        path, kind = QFileDialog.getSaveFileName(parent, title, name, kinds)
        if not path or not known or Path(path).suffix.lower() in known:
            return path
        path += (_SUFFIX.findall(kind) or known)[0]
        if not Path(path).exists():
            return path
        # Qt asks about an existing file once it is named whole.
        name = path


_SUFFIX = re.compile(r"\*(\.\w+)")


def file_to_open(parent: QWidget, title: str, folder: str, kinds: str) -> str:
    """Ask for a file to read; return its path, or ``""``."""
    return QFileDialog.getOpenFileName(parent, title, folder, kinds)[0]


# --- A dialog that is never larger than its screen; what does not fit is scrolled ---


class Dialog(QDialog):
    """A dialog whose layout is a column, with its buttons in the last row.

    On a small screen, or with large scaling, the buttons and status rows stay in view; what is
    above them is scrolled.
    """

    def pop_up(self) -> Self:
        """Open the dialog, and delete it once it is closed."""
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.open()
        return self

    def answers(self, act: str = "", accept: Callable[[], object] | None = None) -> AnswerButtons:
        """Return the buttons *Cancel* and `act`, by default *OK*, which accepts the dialog."""
        buttons = AnswerButtons(act)
        buttons.accepted.connect(accept or self.accept)
        buttons.rejected.connect(self.reject)
        return buttons

    def keep_in_view(self, *widgets: QWidget) -> None:
        """Keep rows outside of the scrolled part: those that show errors or results."""
        self._kept = widgets

    _kept: tuple[QWidget, ...] = ()

    def _room(self) -> QSize:
        return self.screen().availableSize() - FRAME

    def _fit_to_screen(self) -> None:
        room, column = self._room(), self.layout()
        self.setMinimumSize(self.minimumSize().boundedTo(room))
        wanted = self.size()
        if not self.testAttribute(Qt.WidgetAttribute.WA_Resized):
            # Qt limits the shown size to two thirds of the screen.
            wanted = self.sizeHint().expandedTo(self.minimumSize())
            wanted.setHeight(self._height_for(min(wanted.width(), room.width())))
        if isinstance(column, QVBoxLayout) and self._scrolled() is None:
            width = min(wanted.width(), room.width())
            least = column.totalMinimumSize()
            height = max(least.height(), column.totalMinimumHeightForWidth(width))
            if height > room.height() or least.width() > room.width():
                self._scroll_all_but_buttons(column)
                wanted = wanted.expandedTo(self.sizeHint())
        self.resize(wanted.boundedTo(room))
        self._grow()

    def _height_for(self, width: int) -> int:
        """Return the height that all lines of text need."""
        column = self.layout()
        if column is None:
            return self.height()
        height = column.totalSizeHint().height()
        if column.hasHeightForWidth():
            height = column.totalHeightForWidth(width)
        return max(height, self.minimumHeight())

    def _grow(self) -> None:
        """Make room for content that has grown, such as an added error message."""
        column = self.layout()
        if column is None:
            return
        scrolls = self._scrolled() is not None
        least = column.totalSizeHint() if scrolls else column.totalMinimumSize()
        width = max(self.width(), least.width())
        height = max(self.height(), least.height(), column.totalMinimumHeightForWidth(width))
        size = QSize(width, height).boundedTo(self._room())
        if size != self.size():
            self.resize(size)

    def _scrolled(self) -> _Scrolled | None:
        return self.findChild(_Scrolled)

    def _scroll_all_but_buttons(self, column: QVBoxLayout) -> None:
        inside = QWidget()
        rows = column_of(inside, margins=(0, 0, 8, 0), spacing=column.spacing())
        kept = sum(column.indexOf(each) >= 0 for each in self._kept)
        place = 0
        while column.count() > kept + 1:
            stretch = column.stretch(place)
            item = column.takeAt(place)
            assert item is not None
            widget, layout = item.widget(), item.layout()
            if widget is not None and widget in self._kept:
                column.insertItem(place, item)
                place += 1
                continue
            if widget is not None:
                hidden = widget.isHidden()
                rows.addWidget(widget, stretch)
                widget.setHidden(hidden)
            elif layout is not None:
                rows.addLayout(layout, stretch)
            else:
                rows.addItem(item)
        column.insertWidget(0, _Scrolled(inside), 1)

    def _choose_default(self) -> None:
        """Make Enter press the default button, or else the primary one.

        A dialog ignores a default that was set before the button was added, and uses its first
        button.
        """
        buttons = [each for each in self.findChildren(QPushButton) if not each.isHidden()]
        chosen = next((each for each in buttons if each.isDefault()), None)
        chosen = chosen or next((each for each in buttons if each.property("primary")), None)
        if chosen is not None:
            chosen.setDefault(False)
            chosen.setDefault(True)

    # Qt's own

    def showEvent(self, event: QShowEvent) -> None:
        self._fit_to_screen()
        self._choose_default()
        super().showEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        # Not every desktop draws an edge around it.
        painter = QPainter(self)
        painter.setPen(QColor(theme.current().line))
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest and self.isVisible():
            self._grow()
        return done


class AnswerButtons(QDialogButtonBox):
    """The buttons *Cancel* and, recommended, *OK* or another word for it."""

    def __init__(self, act: str) -> None:
        ok = QDialogButtonBox.StandardButton.Ok
        super().__init__(ok | QDialogButtonBox.StandardButton.Cancel)
        self.act = self.button(ok)
        self.act.setProperty("primary", True)
        if act:
            self.act.setText(act)


class _Scrolled(QScrollArea):
    """Scroll area for what does not fit; it follows the focus."""

    def __init__(self, inside: QWidget) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setWidget(inside)
        self._inside = inside

    # Qt's own

    def sizeHint(self) -> QSize:
        bar = self.style().pixelMetric(QStyle.PixelMetric.PM_ScrollBarExtent)
        return self._inside.sizeHint() + QSize(bar, bar)


_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class FindLine(QLineEdit):
    """A search line from which the arrow keys move through the matching rows."""

    def __init__(self, rows: QAbstractItemView) -> None:
        super().__init__()
        self._rows = rows
        self.setClearButtonEnabled(True)

    # Qt

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _MOVES:
            self._rows.keyPressEvent(event)
        else:
            super().keyPressEvent(event)


class Finder(Dialog):
    """A search dialog; the arrow keys move through the rows while typing.

    Args:
        columns: The number of columns; the first one takes the remaining width.
    """

    def __init__(self, columns: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows = QTreeWidget()  # The matching rows.
        self.line = FindLine(self.rows)  # The search line.
        self.rows.setColumnCount(columns)
        self.rows.setHeaderHidden(True)
        self.rows.setRootIsDecorated(False)
        self.rows.setUniformRowHeights(True)
        header = self.rows.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.empty = EmptyState("", "")  # Shown where nothing matches.
        self._stack = QStackedWidget()
        self._stack.addWidget(self.rows)
        self._stack.addWidget(self.empty)
        self.hint = MarkupLabel(role="quiet", wraps=True)
        column_of(self, self.line, (self._stack, 1), self.hint, margins=12, spacing=8)

    def show_found(self, found: bool) -> None:
        """Show the rows, or that nothing matches."""
        self._stack.setCurrentWidget(self.rows if found else self.empty)


WIDTH = 420


class Question(Dialog):
    """A confirmation with its consequences, a button that performs the action, and *Cancel*.

    Enter cancels, since the action cannot be undone.

    Args:
        title: The window title.
        question: One sentence.
        act: The text of the button that performs the action.
        more: The consequences; empty for none.
    """

    def __init__(
        self, title: str, question: str, act: str, more: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self._question = Label(question, role="title" if more else "")
        said = [self._question]
        if more:
            said.append(Label(more))
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        # The button that performs the action.
        self.act = self.buttons.addButton(act, QDialogButtonBox.ButtonRole.AcceptRole)
        # The button that cancels.
        self.cancel = self.buttons.button(QDialogButtonBox.StandardButton.Cancel)
        self.cancel.setDefault(True)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        column = column_of(self, margins=(16, 16, 16, 12), spacing=8)
        for label in said:
            label.setWordWrap(True)
            column.addWidget(label)
        column.addSpacing(4)
        column.addStretch(1)
        column.addWidget(self.buttons)
        self.setMinimumWidth(WIDTH)
        self.cancel.setFocus()

    def text(self) -> str:
        return self._question.text()


class LineQuestion(Question):
    """A question that is answered with a line of text; Enter accepts it."""

    def __init__(
        self, title: str, question: str, act: str, answer: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(title, question, act, parent=parent)
        self.line = QLineEdit(answer)  # The answer; an empty one cannot be accepted.
        self.line.setAccessibleName(question)
        self.line.textChanged.connect(self._check)
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        column.insertWidget(1, self.line)
        self.act.setDefault(True)
        self.act.setProperty("primary", True)
        self.act.style().polish(self.act)
        self.line.setFocus()
        self.line.selectAll()
        self._check()

    def answer(self) -> str:
        """Return the line, stripped of spaces."""
        return self.line.text().strip()

    def _check(self) -> None:
        self.act.setEnabled(bool(self.answer()))


# --- A filter field that is never too narrow for its placeholder ---

_EDGES = 22
"""Pixels of a field beside its text."""


def filter_field(words: str, name: str) -> QLineEdit:
    """Return a filter field with a button that clears it.

    Args:
        words: The placeholder.
    """
    field = QLineEdit()
    field.setPlaceholderText(words)
    field.setAccessibleName(name)
    field.setClearButtonEnabled(True)
    field.setMinimumWidth(field.fontMetrics().horizontalAdvance(words) + _EDGES)
    return field


# --- Marking of fields with an invalid value ---


def mark_wrong(field: QWidget, wrong: bool) -> None:
    """Set or remove the error border of a field."""
    set_look(field, "wrong", wrong)


def show_within(field: QSpinBox, text: str) -> None:
    """Show the number of a field within a text, in the place of its ``{number}``."""
    before, _place, after = text.partition("{number}")
    field.setPrefix(before)
    field.setSuffix(after)


def number_field(
    name: str, least: int, most: int, value: int, *, width: int | None = 110, at_least: str = ""
) -> QSpinBox:
    """Return a field for a number; `at_least` describes the smallest value."""
    field = QSpinBox()
    field.setRange(least, most)
    field.setSpecialValueText(at_least)
    field.setValue(value)
    field.setAccessibleName(name)
    if width is not None:
        field.setFixedWidth(width)
    # The style sheet's padding does not apply to the text of a spin box.
    field.lineEdit().setTextMargins(6, 0, 0, 0)
    return field
