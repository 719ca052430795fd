"""A pane: a header with title, tabs and context, and the page of the current tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleInterface,
    QAction,
    QColor,
    QEnterEvent,
    QFocusEvent,
    QFont,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QAccessibleWidget,
    QGridLayout,
    QMenu,
    QSizePolicy,
    QStackedWidget,
    QToolButton,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import IconButton
from lowerscope.app.kit.focus_ring import came_by_keyboard
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.core.model.texts import _

_PIXELS = 12.0
_HEIGHT = 24
_PAD = 8.0
_GAP = 4
_MORE = 22


class PaneTab(QAbstractButton):
    """A tab of a pane's header."""

    chosen = Signal(str)  # The tab was clicked; the argument is its key.
    # An arrow key was pressed; the argument is the offset of the tab to go to.
    stepped = Signal(int)

    def __init__(self, key: str, label: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._key = key
        self.setText(label)
        self.setAccessibleName(label)
        self.setCheckable(True)
        # A click does not give it the focus.
        self._ring = True
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.clicked.connect(self._choose)
        theme.notifier().changed.connect(self.update)

    def _choose(self) -> None:
        self.chosen.emit(self._key)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(self._width, _HEIGHT)

    @cached_property
    def _width(self) -> int:
        # As wide as in semibold, so that nothing moves when another tab becomes current.
        metrics = TextMetrics(ui_font(_PIXELS, QFont.Weight.DemiBold))
        return round(metrics.horizontalAdvance(self.text()) + 2 * _PAD)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ring = came_by_keyboard(event, self._ring)
        super().focusInEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.stepped.emit(-1 if event.key() == Qt.Key.Key_Left else 1)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect())
        painter.setPen(Qt.PenStyle.NoPen)
        if self.isChecked():
            painter.setBrush(QColor(colours.accent_ground))
            painter.drawRoundedRect(area, 5, 5)
        elif self.underMouse() and self.isEnabled():
            painter.setBrush(QColor(colours.hover))
            painter.drawRoundedRect(area, 5, 5)
        if self._ring and self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(colours.accent), 1))
            painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
        weight = QFont.Weight.DemiBold if self.isChecked() else QFont.Weight.Normal
        font = ui_font(_PIXELS, weight)
        colour = colours.accent if self.isChecked() else colours.quiet
        painter.setFont(font)
        painter.setPen(QColor(colour if self.isEnabled() else colours.faint))
        width = TextMetrics(font).horizontalAdvance(self.text())
        base = round(area.center().y() + _PIXELS * 0.364)
        painter.drawText(QPointF(round(area.center().x() - width / 2), base), self.text())


class PaneTabs(QWidget):
    """The tabs of a pane's header; those that do not fit are in a menu at the end.

    Args:
        parent: The header.
    """

    chosen = Signal(str)  # The user chose a tab; the argument is its key.

    def __init__(self) -> None:
        super().__init__()
        self._tabs: dict[str, PaneTab] = {}
        # Cached, since docks query the sizes hundreds of times during a layout.
        self._widths: dict[str, int] = {}
        self._current = ""
        self._hidden: list[str] = []
        self._absent: set[str] = set()
        self._more = IconButton("down", _("More"), size=(_MORE, _HEIGHT))
        self._more.setParent(self)
        self._more.clicked.connect(self._open_menu)
        self._more.hide()
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def add(self, key: str, label: str) -> None:
        """Append a tab."""
        tab = PaneTab(key, label, self)
        tab.chosen.connect(self._choose)
        tab.stepped.connect(self._step)
        # Between the other tabs and the menu, before the pages, whichever were created first.
        QWidget.setTabOrder(self._more, tab)
        QWidget.setTabOrder(tab, self._more)
        self._tabs[key] = tab
        self._widths[key] = tab.sizeHint().width() + _GAP
        self.set_current(self._current or key)
        self.updateGeometry()

    def set_absent(self, key: str, absent: bool) -> None:
        """Leave a tab out that has nothing to show, or take it back."""
        if absent != (key in self._absent):
            self._absent ^= {key}
            self._arrange()
            self.updateGeometry()

    def has(self, key: str) -> bool:
        """Return whether there is a tab of this key."""
        return key in self._tabs

    def tab(self, key: str) -> PaneTab:
        return self._tabs[key]

    def set_current(self, key: str) -> None:
        """Make a tab the current one, without a signal."""
        self._current = key
        for name, tab in self._tabs.items():
            tab.setChecked(name == key)
            # One stop of the Tab key: the arrow keys choose another one.
            focus = Qt.FocusPolicy.TabFocus if name == key else Qt.FocusPolicy.NoFocus
            tab.setFocusPolicy(focus)
        self._arrange()

    def hidden_tabs(self) -> list[str]:
        """Return the keys of the tabs that are in the menu because they do not fit."""
        return list(self._hidden)

    def _choose(self, key: str) -> None:
        self.set_current(key)
        self.chosen.emit(key)

    def _step(self, by: int) -> None:
        keys = [key for key in self._there() if self._tabs[key].isEnabled()]
        if self._current in keys:
            place = keys.index(self._current) + by
            if 0 <= place < len(keys):
                self._choose(keys[place])
                self._tabs[keys[place]].setFocus(Qt.FocusReason.TabFocusReason)

    def _arrange(self) -> None:
        """Show the tabs that fit, always including the current one."""
        widths = self._there()
        # A single page needs no tab.
        keys = list(widths) if len(widths) > 1 else []
        room = self.width() + _GAP
        if sum(widths[key] for key in keys) > room:
            room -= _MORE + widths.get(self._current, 0)
        else:
            room -= widths.get(self._current, 0)
        shown = []
        for key in keys:
            if key == self._current:
                shown.append(key)
            elif widths[key] <= room:
                room -= widths[key]
                shown.append(key)
            else:
                room = 0
        x = 0
        for key, tab in self._tabs.items():
            tab.setVisible(key in shown)
            if key in shown:
                tab.setGeometry(x, 0, widths[key] - _GAP, _HEIGHT)
                x += widths[key]
        self._hidden = [key for key in keys if key not in shown]
        self._more.setVisible(bool(self._hidden))
        self._more.move(x, 0)

    def _there(self) -> dict[str, int]:
        """Return the widths of the tabs that are not left out."""
        return {key: width for key, width in self._widths.items() if key not in self._absent}

    def _open_menu(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for key in self._hidden:
            action = QAction(self._tabs[key].text(), menu)
            action.setEnabled(self._tabs[key].isEnabled())
            action.setData(key)
            menu.addAction(action)
        menu.triggered.connect(self._choose_from_menu)
        menu.popup(self._more.mapToGlobal(QPoint(0, self._more.height() + 2)))

    def _choose_from_menu(self, action: QAction) -> None:
        self._choose(str(action.data()))

    # Qt

    def sizeHint(self) -> QSize:
        widths = list(self._there().values())
        return QSize(sum(widths) - _GAP if len(widths) > 1 else 0, _HEIGHT)

    def minimumSizeHint(self) -> QSize:
        widths = self._there()
        if len(widths) < 2:
            return QSize(0, _HEIGHT)
        return QSize(max(widths.values()) + _MORE, _HEIGHT)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange()


# --- A progress bar of two pixels, indeterminate or with a fraction ---

_PROGRESS_HEIGHT = 2
_TICK_MS = 30
_RUNNER = 0.25


class ProgressLine(QWidget):
    """A progress bar without text; it keeps its height when idle."""

    def __init__(self) -> None:
        super().__init__()
        self._state = "none"
        self._fraction = 0.0
        self._phase = 0.0
        self._ticks = QTimer(self)
        self._ticks.setInterval(_TICK_MS)
        self._ticks.timeout.connect(self._tick)
        self.setFixedHeight(_PROGRESS_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        theme.notifier().changed.connect(self.update)

    def set_busy(self) -> None:
        """Show indeterminate progress."""
        self._become("busy")

    def set_fraction(self, fraction: float) -> None:
        """Show the fraction that is done, from 0 to 1."""
        self._fraction = min(1.0, max(0.0, fraction))
        self._become("fraction")

    def clear(self) -> None:
        """Show no progress."""
        self._become("none")

    def state(self) -> str:
        """Return ``"busy"``, ``"fraction"`` or ``"none"``."""
        return self._state

    def _become(self, state: str) -> None:
        self._state = state
        words = {
            "busy": _("working"),
            "fraction": _("{fraction} % done", fraction=round(self._fraction * 100)),
            "none": "",
        }
        self.setAccessibleName(words[state])
        # It covers its place then: the window below it is not painted at each tick.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent, state != "none")
        self._keep_ticking()
        self.update()

    def _keep_ticking(self) -> None:
        if self._state == "busy" and self.isVisible():
            self._ticks.start()
        else:
            self._ticks.stop()

    def _tick(self) -> None:
        if not self.isVisible():
            self._ticks.stop()
            return
        self._phase = (self._phase + 0.018) % (1 + _RUNNER)
        self.update()

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(60, _PROGRESS_HEIGHT)

    def showEvent(self, event: QShowEvent) -> None:
        self._keep_ticking()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._state == "none":
            return
        colours = theme.current()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.accent_ground))
        width = self.width()
        if self._state == "busy":
            bar = QRectF((self._phase - _RUNNER) * width, 0, _RUNNER * width, _PROGRESS_HEIGHT)
        else:
            bar = QRectF(0, 0, self._fraction * width, _PROGRESS_HEIGHT)
        painter.fillRect(bar, QColor(colours.accent))


HEADER_HEIGHT = 34

PART = " · "
"""Separator of the parts of a line, such as a header's context."""

LEAST_PART = 72
"""Least width of an elided part, in pixels."""


class ElidedLabel(Label):
    """A line that is elided to its width, with the whole text in its tool tip.

    Its size hint does not depend on the text, so that a new text causes no layout: the header of a
    pane would have all docks of the window laid out.
    """

    def __init__(self, *, role: str = "") -> None:
        super().__init__(role=role)
        self._whole = self._shown = ""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def set_whole(self, text: str) -> None:
        self._whole = text
        self.setAccessibleName(text)
        self._elide()

    def whole(self) -> str:
        """Return the text, not elided."""
        return self._whole

    def _elide(self) -> None:
        self._shown = self._fitted(self._whole)
        self.setToolTip(self._whole if self._shown != self._whole else "")
        self.update()

    def _fitted(self, text: str) -> str:
        return TextMetrics(self.font()).elidedText(
            text, Qt.TextElideMode.ElideRight, self.contentsRect().width()
        )

    # Qt

    def text(self) -> str:
        return self._shown

    def sizeHint(self) -> QSize:
        return QSize(0, self.fontMetrics().height())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        side = int(self.alignment()) | int(Qt.TextFlag.TextSingleLine)
        self.style().drawItemText(
            painter,
            self.contentsRect(),
            side,
            self.palette(),
            self.isEnabled(),
            self._shown,
            self.foregroundRole(),
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()


class PartsLabel(ElidedLabel):
    """A line of parts, separated by dots, that shows as many as fit.

    A part is elided only if it is alone, and wide enough to be readable.

    Args:
        keep_last: Whether the last part is always shown; otherwise the first.
    """

    def __init__(self, keep_last: bool = False) -> None:
        super().__init__()
        self._keep_last = keep_last

    def _fitted(self, text: str) -> str:
        metrics, parts = TextMetrics(self.font()), text.split(PART)
        room = self.contentsRect().width()
        for left_out in range(len(parts)):
            end = len(parts) - left_out
            shown = PART.join(parts[left_out:] if self._keep_last else parts[:end])
            if metrics.horizontalAdvance(shown) <= room:
                return shown
        only = parts[-1 if self._keep_last else 0]
        return super()._fitted(only) if room >= LEAST_PART else ""


class PaneHeader(QWidget):
    """Title, tabs, context and buttons in a row of 34 pixels.

    Signals:
        maximise_wanted: Give the pane the whole window, or put it back: a double click.
        window_wanted: Show the pane in a window of its own, or put it back.
    """

    maximise_wanted = Signal()
    window_wanted = Signal()

    def __init__(self, title: str) -> None:
        super().__init__()
        self.setFixedHeight(HEADER_HEIGHT)
        self.title = Label(title, role="title")
        self.beside = PaneTabs()  # In place of the title: panes that have one place for all.
        self.beside.hide()
        self.tabs = PaneTabs()
        self.context = PartsLabel()
        self.context.set_role("quiet")
        self.context.setFont(ui_font(12))
        self.context.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.row = row_of(
            self,
            self.title,
            self.beside,
            (self.tabs, 1000),
            (self.context, 1),
            margins=(10, 0, 10, 1),
            spacing=10,
        )
        self.corners: list[QWidget] = []  # Widgets at the right end.
        self.is_movable = True  # Whether the pane can be maximised and shown in a window.
        self._buttons = _HeaderButtons(self)
        theme.notifier().changed.connect(self.update)

    def set_beside(self, titles: Mapping[str, str], current: str) -> None:
        """Offer panes in place of the title; none for the title."""
        for key, title in titles.items():
            if not self.beside.has(key):
                self.beside.add(key, title)
        if titles:
            self.beside.set_current(current)
        self.beside.setVisible(bool(titles))
        self.title.setVisible(not titles)

    # Qt

    def minimumSizeHint(self) -> QSize:
        width = self.title.sizeHint().width() + self.tabs.minimumSizeHint().width() + 40
        return QSize(width, HEADER_HEIGHT)

    def enterEvent(self, event: QEnterEvent) -> None:
        if self.is_movable:
            self._buttons.appear()

    def leaveEvent(self, event: QEvent) -> None:
        self._buttons.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._buttons.place()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.is_movable:
            self.maximise_wanted.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.panel))
        painter.fillRect(0, self.height() - 1, self.width(), 1, QColor(colours.line))


class _HeaderButtons(QWidget):
    """Maximise and window buttons, over the context of a header under the mouse."""

    def __init__(self, header: PaneHeader) -> None:
        super().__init__(header)
        self._header = header
        size, click = (22, 22), Qt.FocusPolicy.ClickFocus
        maximise = IconButton("fit", _("Maximise or restore the pane"), size=size, focus=click)
        window = IconButton("float", _("Open in a new window, or put back"), size=size, focus=click)
        maximise.clicked.connect(header.maximise_wanted)
        window.clicked.connect(header.window_wanted)
        row_of(self, STRETCH, maximise, window, margins=(8, 0, 6, 0))
        self.hide()

    def appear(self) -> None:
        self.place()
        self.show()
        self.raise_()

    def place(self) -> None:
        width, header = self.sizeHint().width(), self._header
        shown = [each.x() for each in header.corners if not each.isHidden()]
        right = min(shown, default=header.width())
        # All of the context: a part of it would be a riddle.
        left = min(right - width, header.context.x())
        self.setGeometry(left, 0, right - left, HEADER_HEIGHT - 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), QColor(theme.current().panel))


class SeenPage(QWidget):
    """A page that is drawn only while it is visible, and when it is shown."""

    def show_content(self) -> None:
        """Draw what the page shows."""
        raise NotImplementedError

    def show_if_seen(self) -> None:
        """Draw the page if it is visible."""
        if self.isVisible():
            self.show_content()

    # Qt

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.show_content()


class Pane(QWidget):
    """Pages under one header.

    Args:
        title: The title at the left of the header.
    """

    page_changed = Signal(str)  # Another page became current; the argument is its key.

    def __init__(self, title: str) -> None:
        super().__init__()
        self._pages: dict[str, QWidget] = {}
        self.setAccessibleName(title)
        self.header = PaneHeader(title)
        self.progress = ProgressLine()
        self._stack = QStackedWidget()
        column_of(self, self.header, (self._stack, 1))
        self.progress.setParent(self)
        self.header.tabs.chosen.connect(self.set_current)

    # Pages

    def add_page(self, key: str, label: str, widget: QWidget) -> None:
        """Append a page; the first one becomes current."""
        assert key not in self._pages, key
        self._pages[key] = widget
        self._stack.addWidget(widget)
        self.header.tabs.add(key, label)

    def set_current(self, key: str) -> None:
        """Make a page the current one."""
        changed = self.current() != key
        self._stack.setCurrentWidget(self._pages[key])
        self.header.tabs.set_current(key)
        if changed:
            self.page_changed.emit(key)

    def current(self) -> str:
        """Return key of the current page, or ``""``."""
        shown = self._stack.currentWidget()
        return next((key for key, page in self._pages.items() if page is shown), "")

    def page(self, key: str) -> QWidget:
        return self._pages[key]

    def entrance(self) -> QWidget | None:
        """Return what gets the focus; ``None`` for the first graph, list or text of the page."""
        return None

    def pages(self) -> list[str]:
        """Return the keys of all pages."""
        return list(self._pages)

    # Header

    def title(self) -> str:
        return self.header.title.text()

    def set_context(self, text: str) -> None:
        """Set the subject of the page, at the right of the header."""
        self.header.context.set_whole(text)

    def context(self) -> str:
        """Return the text at the right of the header."""
        return self.header.context.whole()

    def add_button(self, action: QAction) -> QToolButton:
        """Add a button for a command at the right end of the header."""
        button = QToolButton()
        button.setDefaultAction(action)
        button.setAccessibleName(action.text())
        self.add_corner(button)
        return button

    def add_corner(self, widget: QWidget) -> None:
        """Add a widget at the right end of the header."""
        self.header.row.addWidget(widget)
        self.header.corners.append(widget)

    def set_busy(self, busy: bool) -> None:
        """Show a progress line below the header."""
        if busy:
            self.progress.set_busy()
        else:
            self.progress.clear()
        self.progress.raise_()

    # Qt

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.progress.setGeometry(0, HEADER_HEIGHT, self.width(), self.progress.height())
        self.progress.raise_()


# --- Facts below one another: a quiet name and its value, which is elided if necessary ---


class FactLines(QWidget):
    """A list of facts, one per line."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[tuple[Label, ElidedLabel]] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(1, 1)

    def set_facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show names and values."""
        while len(self._lines) < len(facts):
            name, value = Label(), ElidedLabel()
            name.setProperty("role", "quiet")
            place = len(self._lines)
            self._grid.addWidget(name, place, 0)
            self._grid.addWidget(value, place, 1)
            self._lines.append((name, value))
        for place, (name, value) in enumerate(self._lines):
            there = place < len(facts)
            name.setVisible(there)
            value.setVisible(there)
            if there:
                name.setText(facts[place][0])
                value.set_whole(facts[place][1])


# --- Accessible roles of our own widgets, which Qt does not know ---

_ROLE = QAccessible.Role

ROLES = {
    "Pane": _ROLE.Grouping,
    "SegmentedSwitch": _ROLE.ComboBox,
    "GraphCanvas": _ROLE.Canvas,
    "FunctionChips": _ROLE.List,
    "HeatMap": _ROLE.Table,
    "Chart": _ROLE.Chart,
    "Bars": _ROLE.Chart,
    "WelcomePage": _ROLE.Grouping,
    "SplitLine": _ROLE.Splitter,
}
"""Accessible role by the name of the class, or of a base class."""


@cache
def tell_roles() -> None:
    """Install the accessible roles."""
    QAccessible.installFactory(_interface)


def _interface(name: str, widget: QObject) -> QAccessibleInterface | None:
    role = ROLES.get(name)
    if role is None or not isinstance(widget, QWidget):
        return None
    return QAccessibleWidget(widget, role)
