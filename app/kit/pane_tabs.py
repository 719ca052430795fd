"""The tabs of a pane's header, as text; the current one is on a pill."""

from functools import cached_property

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QFocusEvent,
    QFont,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractButton, QMenu, QSizePolicy, QToolButton, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.banner import icon
from lowerscope.app.kit.focus_ring import came_by_keyboard
from lowerscope.app.kit.typefaces import TextMetrics, ui_font

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
        self._ring = False
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
        self._ring = came_by_keyboard(event)
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

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tabs: dict[str, PaneTab] = {}
        # Cached, since docks query the sizes hundreds of times during a layout.
        self._widths: dict[str, int] = {}
        self._current = ""
        self._hidden: list[str] = []
        self._more = QToolButton(self)
        self._more.setFixedSize(_MORE, _HEIGHT)
        self._more.setToolTip(self.tr("More"))
        self._more.setAccessibleName(self.tr("More"))
        self._more.clicked.connect(self._open_menu)
        self._more.hide()
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        theme.notifier().changed.connect(self._draw_icon)
        self._draw_icon()

    def add(self, key: str, label: str) -> None:
        """Append a tab."""
        tab = PaneTab(key, label, self)
        tab.chosen.connect(self._choose)
        tab.stepped.connect(self._step)
        self._tabs[key] = tab
        self._widths[key] = tab.sizeHint().width() + _GAP
        if not self._current:
            self.set_current(key)
        self._arrange()
        self.updateGeometry()

    def tab(self, key: str) -> PaneTab:
        """Return the tab of this key."""
        return self._tabs[key]

    def set_current(self, key: str) -> None:
        """Make a tab the current one, without a signal."""
        self._current = key
        for name, tab in self._tabs.items():
            tab.setChecked(name == key)
        self._arrange()

    def hidden_tabs(self) -> list[str]:
        """Return the keys of the tabs that are in the menu because they do not fit."""
        return list(self._hidden)

    def _choose(self, key: str) -> None:
        self.set_current(key)
        self.chosen.emit(key)

    def _step(self, by: int) -> None:
        keys = [key for key, tab in self._tabs.items() if tab.isEnabled()]
        if self._current in keys:
            place = keys.index(self._current) + by
            if 0 <= place < len(keys):
                self._choose(keys[place])
                self._tabs[keys[place]].setFocus(Qt.FocusReason.TabFocusReason)

    def _arrange(self) -> None:
        """Show the tabs that fit, always including the current one."""
        widths = self._widths
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

    def _draw_icon(self) -> None:
        self._more.setIcon(icon("down"))

    # Qt

    def sizeHint(self) -> QSize:
        widths = list(self._widths.values())
        return QSize(sum(widths) - _GAP if len(widths) > 1 else 0, _HEIGHT)

    def minimumSizeHint(self) -> QSize:
        widths = self._widths
        if len(widths) < 2:
            return QSize(0, _HEIGHT)
        return QSize(max(widths.values()) + _MORE, _HEIGHT)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange()
