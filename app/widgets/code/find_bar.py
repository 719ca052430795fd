"""The two bars of the code view: find, and go to a line."""

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QIntValidator, QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QToolButton, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.icons import icon
from lowerscope.app.widgets.plain_text import Label
from lowerscope.app.widgets.wrong_mark import mark_wrong


class _Bar(QWidget):
    """One row above the text: a field, a figure, buttons; Escape closes it.

    Signals
    -------
    closed()
        The user is done with it.
    """

    closed = Signal()

    def __init__(self, field_name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setProperty("bar", True)
        self.field = QLineEdit()
        self.field.setAccessibleName(field_name)
        self.field.setPlaceholderText(field_name)
        self.field.installEventFilter(self)
        self.figure = Label()
        self.figure.setProperty("role", "quiet")
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(8, 4, 4, 4)
        self.row.setSpacing(4)
        self.row.addWidget(self.field, 1)
        self.row.addWidget(self.figure)
        self._icons: list[tuple[QToolButton, str]] = []
        theme.notifier().changed.connect(self._draw_icons)
        self.hide()

    def add_button(self, icon_name: str, text: str, tooltip: str) -> QToolButton:
        button = QToolButton()
        button.setToolTip(tooltip)
        button.setAccessibleName(tooltip)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        if icon_name:
            self._icons.append((button, icon_name))
            button.setIcon(icon(icon_name))
        else:
            button.setText(text)
        self.row.addWidget(button)
        return button

    def open_field(self, text: str | None) -> None:
        """Show the bar with the focus in its field."""
        self.show()
        if text is not None:
            self.field.setText(text)
        self.field.selectAll()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def set_wrong(self, wrong: bool) -> None:
        """Mark what is in the field as something that cannot be done."""
        if self.field.property("wrong") != wrong:
            mark_wrong(self.field, wrong)
            self.figure.setProperty("role", "wrong" if wrong else "quiet")
            self.figure.style().unpolish(self.figure)
            self.figure.style().polish(self.figure)

    def pressed(self, event: QKeyEvent) -> bool:
        """Take a key of the field; True when it was one of ours."""
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
            return True
        return False

    def _draw_icons(self) -> None:
        for button, name in self._icons:
            button.setIcon(icon(name))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.field and isinstance(event, QKeyEvent):
            if event.type() == QEvent.Type.KeyPress:
                return self.pressed(event)
            # Escape closes this bar and nothing else that the window may have on that key.
            if event.type() == QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_Escape:
                event.accept()
                return True
        return super().eventFilter(watched, event)


class FindBar(_Bar):
    """Find in the text.

    Signals
    -------
    search_changed()
        The pattern or how it is read changed.
    next_wanted(), previous_wanted()
        Enter and Shift+Enter, or the buttons.
    """

    search_changed = Signal()
    next_wanted = Signal()
    previous_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.field.setAccessibleName(self.tr("Find"))
        self.field.setPlaceholderText(self.tr("Find"))
        self.case = self.add_button("", "Aa", self.tr("Match case"))
        self.regex = self.add_button("", ".*", self.tr("Regular expression"))
        for toggle in (self.case, self.regex):
            toggle.setCheckable(True)
            toggle.toggled.connect(self.search_changed)
        previous = self.add_button("up", "", self.tr("Previous (Shift+Enter)"))
        previous.clicked.connect(self.previous_wanted)
        following = self.add_button("down", "", self.tr("Next (Enter)"))
        following.clicked.connect(self.next_wanted)
        close = self.add_button("close", "", self.tr("Close (Esc)"))
        close.clicked.connect(self.closed)
        self.field.textChanged.connect(self.search_changed)

    def show_count(self, position: int, count: int, more: bool) -> None:
        """Say which one of how many is shown; ``more`` when counting was given up."""
        self.set_wrong(bool(self.field.text()) and count == 0)
        if not self.field.text():
            self.figure.setText("")
        elif count == 0:
            self.figure.setText(self.tr("none"))
        else:
            total = f"{count:,}+" if more else f"{count:,}"
            self.figure.setText(self.tr("{0} of {1}").format(f"{position:,}", total))

    def show_wrong_pattern(self, reason: str) -> None:
        """Say that what was typed is no regular expression."""
        self.set_wrong(True)
        self.figure.setText(self.tr("not a pattern"))
        self.figure.setToolTip(reason)

    def pressed(self, event: QKeyEvent) -> bool:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_F3):
            back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            (self.previous_wanted if back else self.next_wanted).emit()
            return True
        return super().pressed(event)


class GoToLineBar(_Bar):
    """Ask for a line.

    Signals
    -------
    line_chosen(int)
        The line, from 1.
    """

    line_chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.field.setAccessibleName(self.tr("Line"))
        self.field.setPlaceholderText(self.tr("Go to line"))
        self.field.setValidator(QIntValidator(1, 99_999_999, self))
        close = self.add_button("close", "", self.tr("Close (Esc)"))
        close.clicked.connect(self.closed)

    def open_for(self, line: int, count: int) -> None:
        """Ask, beginning with this line of so many."""
        self.figure.setText(self.tr("of {0}").format(f"{count:,}"))
        self.open_field(str(line))

    def pressed(self, event: QKeyEvent) -> bool:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self.field.text():
                self.line_chosen.emit(int(self.field.text()))
                self.closed.emit()
            return True
        return super().pressed(event)
