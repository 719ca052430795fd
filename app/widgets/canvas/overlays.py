"""Overlays of a graph: the zoom control, and the legend of colours."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.canvas.colours import Colouring, legend_colour, ramp
from lowerscope.app.widgets.canvas.panning_area import ZOOM_STEP
from lowerscope.app.widgets.icons import icon
from lowerscope.app.widgets.typefaces import TextMetrics, ui_font

_LEGEND_PIXELS = 11.0


class ZoomControl(QFrame):
    """Zoom control: minus, the scale, plus, and fit.

    Signals
    -------
    zoomed(float)
        The factor by which to change the scale.
    reset(), fitted()
        To 100 %, and the whole graph in view.
    """

    zoomed = Signal(float)
    reset = Signal()
    fitted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("floating", True)
        self._icons: list[tuple[QToolButton, str]] = []
        row = QHBoxLayout(self)
        row.setContentsMargins(2, 2, 2, 2)
        row.setSpacing(0)
        minus = self._button("minus", self.tr("Zoom out (-)"))
        minus.clicked.connect(self._zoom_out)
        self.scale = QToolButton()
        self.scale.setFont(ui_font(_LEGEND_PIXELS, tabular=True))
        self.scale.setToolTip(self.tr("Back to 100 % (0)"))
        self.scale.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.scale.setFixedWidth(46)
        self.scale.clicked.connect(self.reset)
        plus = self._button("plus", self.tr("Zoom in (+)"))
        plus.clicked.connect(self._zoom_in)
        fit = self._button("fit", self.tr("Fit the whole graph (F)"))
        fit.clicked.connect(self.fitted)
        for button in (minus, self.scale, plus, fit):
            row.addWidget(button)
        theme.notifier().changed.connect(self._draw_icons)
        self.show_zoom(1.0)

    def show_zoom(self, zoom: float) -> None:
        """Show the scale."""
        self.scale.setText(f"{zoom * 100:.0f} %")

    def _zoom_in(self) -> None:
        self.zoomed.emit(ZOOM_STEP)

    def _zoom_out(self) -> None:
        self.zoomed.emit(1 / ZOOM_STEP)

    def _button(self, name: str, tooltip: str) -> QToolButton:
        button = QToolButton()
        button.setIcon(icon(name))
        button.setToolTip(tooltip)
        button.setAccessibleName(tooltip)
        button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        button.setFixedSize(24, 22)
        self._icons.append((button, name))
        return button

    def _draw_icons(self) -> None:
        for button, name in self._icons:
            button.setIcon(icon(name))


class Legend(QWidget):
    """A coloured bar and a label for each strategy, kind or range; transparent to the mouse."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._entries: tuple[tuple[str, str], ...] = ()
        self._colouring: Colouring = "strategy"
        self._font = ui_font(_LEGEND_PIXELS)
        theme.notifier().changed.connect(self.update)

    def set_entries(self, entries: Sequence[tuple[str, str]], colouring: Colouring) -> None:
        """Show these pairs of a strategy or kind and a label."""
        self._entries, self._colouring = tuple(entries), colouring
        self.setAccessibleName(", ".join(word for _, word in entries))
        self.setVisible(bool(entries))
        self.resize(self.sizeHint())
        self.update()

    def words(self) -> list[str]:
        """Return the labels."""
        return [word for _, word in self._entries]

    def sizeHint(self) -> QSize:
        metrics = TextMetrics(self._font)
        width = sum(metrics.horizontalAdvance(word) + 20 for _, word in self._entries)
        return QSize(round(width) + 4, 24)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        # Framed like the zoom control, so that the drawing is seen to continue behind it.
        painter.setPen(QColor(colours.line))
        painter.setBrush(QColor(colours.panel))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        metrics = TextMetrics(self._font)
        painter.setFont(self._font)
        x = 8.0
        base = self.height() / 2 + _LEGEND_PIXELS * 0.364
        for key, word in self._entries:
            bar = QRectF(x, self.height() / 2 - 6, 4, 12)
            if key == "ramp":
                shades = QLinearGradient(bar.bottomLeft(), bar.topLeft())
                for level in (0.0, 1.0):
                    shades.setColorAt(level, QColor(ramp(colours, level, self._colouring)))
                painter.fillRect(bar, shades)
            else:
                painter.fillRect(bar, QColor(legend_colour(colours, key, self._colouring)))
            painter.setPen(QColor(colours.quiet))
            room = self.width() - x - 8
            shown = metrics.elidedText(word, Qt.TextElideMode.ElideRight, room)
            painter.drawText(QPointF(x + 8, base), shown)
            x += metrics.horizontalAdvance(word) + 20
