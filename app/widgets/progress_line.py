"""A progress bar of two pixels, indeterminate or with a fraction."""

from PySide6.QtCore import QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from lowerscope.app import theme

_HEIGHT = 2
_TICK_MS = 30
_RUNNER = 0.25


class ProgressLine(QWidget):
    """A progress bar without text; it keeps its height when idle.

    Parameters
    ----------
    parent : QWidget, optional
        The parent widget.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._state = "none"
        self._fraction = 0.0
        self._phase = 0.0
        self._ticks = QTimer(self)
        self._ticks.setInterval(_TICK_MS)
        self._ticks.timeout.connect(self._tick)
        self.setFixedHeight(_HEIGHT)
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
            "busy": self.tr("working"),
            "fraction": self.tr("{0} % done").format(round(self._fraction * 100)),
            "none": "",
        }
        self.setAccessibleName(words[state])
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
        return QSize(60, _HEIGHT)

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
            bar = QRectF((self._phase - _RUNNER) * width, 0, _RUNNER * width, _HEIGHT)
        else:
            bar = QRectF(0, 0, self._fraction * width, _HEIGHT)
        painter.fillRect(bar, QColor(colours.accent))
