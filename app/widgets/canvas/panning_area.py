"""A viewport over a drawing: scroll, drag, zoom where the mouse is, and come into view."""

from PySide6.QtCore import (
    QEasingCurve,
    QEvent,
    QPointF,
    QRectF,
    Qt,
    QVariantAnimation,
)
from PySide6.QtGui import (
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from lowerscope.app.widgets.canvas.view import CanvasView

#: The factor of a step in or out.
ZOOM_STEP = 1.25
_WHEEL_STEP = 60.0

_PANS = {
    Qt.Key.Key_Left: QPointF(1, 0),
    Qt.Key.Key_Right: QPointF(-1, 0),
    Qt.Key.Key_Up: QPointF(0, 1),
    Qt.Key.Key_Down: QPointF(0, -1),
}
_REVEAL_MS = 140


class PanningArea(QAbstractScrollArea):
    """What a drawing is looked at through; who inherits it paints the drawing.

    The wheel scrolls, with Ctrl it zooms; the ground is dragged by the left button, anything by
    the middle one or with the space bar; ``+``, ``-``, ``0`` and F are for the scale.

    Parameters
    ----------
    parent : QWidget, optional
        The widget that it stands in.

    Attributes
    ----------
    view : CanvasView
        Which part of the drawing is seen, and how large.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = CanvasView()
        self._space = False
        self._drag: QPointF | None = None
        self._syncing = False
        self._revealed = (QRectF(), False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._pan = QVariantAnimation(self)
        self._pan.setDuration(_REVEAL_MS)
        self._pan.setEasingCurve(QEasingCurve.Type.OutCubic)
        self._pan.valueChanged.connect(self._pan_to)
        self.horizontalScrollBar().valueChanged.connect(self._scrolled)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)

    def zoom(self) -> float:
        """The scale; 1 is 100 %."""
        return self.view.zoom

    def set_zoom(self, zoom: float, anchor: QPointF | None = None) -> None:
        """Change the scale.

        Parameters
        ----------
        zoom : float
            The scale, kept between that at which all is seen, or 5 %, and 400 %.
        anchor : QPointF, optional
            The place in the viewport that stays where it is; without it, its middle.
        """
        self._pan.stop()
        at = QRectF(self.viewport().rect()).center() if anchor is None else anchor
        self.view.zoom_to(zoom, at)
        self.show_view()

    def zoom_by(self, factor: float) -> None:
        """Change the scale by a factor, round the middle."""
        self.set_zoom(self.view.zoom * factor)

    def reset_zoom(self) -> None:
        """Back to 100 %."""
        self.set_zoom(1.0)

    def fit(self) -> None:
        """Show all of the drawing, never larger than 100 %."""
        self._pan.stop()
        self.view.fit()
        self.show_view()

    def fit_to(self, area: QRectF) -> None:
        """Show this part of the drawing, never larger than 100 %."""
        self._pan.stop()
        self.view.fit_to(area)
        self.show_view()

    def look_at(self, bounds: QRectF, middle: float | None) -> None:
        """Look at another drawing.

        Parameters
        ----------
        bounds : QRectF
            Its extent.
        middle : float or None
            What is put in the middle where not all of its width can be seen; None stays at the
            place and scale that there are.
        """
        self._pan.stop()
        self.view.set_bounds(bounds)
        if middle is not None:
            self.view.go_home(middle)
        self.show_view()

    def bring_into_view(self, rect: QRectF) -> None:
        """Move, in a moment, until this part of the drawing is seen."""
        origin = self.view.origin_to_show(rect)
        if origin == self.view.origin:
            return
        self._pan.stop()
        self._revealed = (rect, self.view.at_home)
        if self.isVisible():
            self._pan.setStartValue(self.view.origin)
            self._pan.setEndValue(origin)
            self._pan.start()
        else:
            self._pan_to(origin)

    def is_ground(self, place: QPointF) -> bool:
        """Whether there is nothing at a place of the viewport that could be clicked."""
        return True

    def show_view(self) -> None:
        """Let the scroll bars and the picture follow the view."""
        if self._syncing:
            return
        self._syncing = True
        size = self.viewport().size()
        self._set_scroll_bars()
        if self.viewport().size() != size:
            # A bar came or went, and the view moved with the viewport's size.
            self._set_scroll_bars()
        self._syncing = False
        self.viewport().update()

    def _set_scroll_bars(self) -> None:
        horizontal, vertical = self.view.scroll_ranges()
        for bar, (low, high, value, page) in (
            (self.horizontalScrollBar(), horizontal),
            (self.verticalScrollBar(), vertical),
        ):
            bar.setRange(low, high)
            bar.setPageStep(page)
            bar.setSingleStep(round(_WHEEL_STEP / 3))
            bar.setValue(value)

    def _pan_to(self, origin: QPointF) -> None:
        self.view.move_to(origin)
        self.show_view()

    def _scrolled(self) -> None:
        if not self._syncing:
            x, y = self.horizontalScrollBar().value(), self.verticalScrollBar().value()
            self._pan_to(QPointF(-x, -y))

    def _move_by(self, by: QPointF) -> None:
        self._pan.stop()
        self.view.move_by(by)
        self.show_view()

    def _show_cursor(self) -> None:
        if self._drag is not None:
            shape = Qt.CursorShape.ClosedHandCursor
        elif self._space:
            shape = Qt.CursorShape.OpenHandCursor
        else:
            shape = Qt.CursorShape.ArrowCursor
        self.viewport().setCursor(shape)

    # Qt

    def resizeEvent(self, event: QResizeEvent) -> None:
        size = QRectF(self.viewport().rect()).size()
        if self._pan.state() == QVariantAnimation.State.Running:
            # Where it goes to was reckoned for another size.
            self._pan.stop()
            rect, self.view.at_home = self._revealed
            self.view.resize(size)
            self.view.move_to(self.view.origin_to_show(rect))
        else:
            self.view.resize(size)
        self.show_view()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = event.position()
        left = event.button() == Qt.MouseButton.LeftButton
        middle = event.button() == Qt.MouseButton.MiddleButton
        if middle or (left and (self._space or self.is_ground(place))):
            self._drag = place
            self._show_cursor()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None:
            by, self._drag = event.position() - self._drag, event.position()
            self._move_by(by)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag = None
        self._show_cursor()

    def wheelEvent(self, event: QWheelEvent) -> None:
        angle = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.set_zoom(self.view.zoom * 1.0015 ** angle.y(), event.position())
        else:
            pixels = event.pixelDelta()
            by = QPointF(pixels) if not pixels.isNull() else QPointF(angle) * (_WHEEL_STEP / 120)
            if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and by.x() == 0:
                by = QPointF(by.y(), 0)
            self._move_by(by)
        event.accept()

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QNativeGestureEvent):
            if event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture:
                self.set_zoom(self.view.zoom * (1 + event.value()), event.position())
            return True
        return super().viewportEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        control = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if control and key in _PANS:
            self._move_by(_PANS[Qt.Key(key)] * _WHEEL_STEP)
        elif key == Qt.Key.Key_F and not event.modifiers():
            self.fit()
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_by(ZOOM_STEP)
        elif key == Qt.Key.Key_Minus:
            self.zoom_by(1 / ZOOM_STEP)
        elif key == Qt.Key.Key_0:
            self.reset_zoom()
        elif key == Qt.Key.Key_Space and not event.isAutoRepeat():
            self._space = True
            self._show_cursor()
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space and not event.isAutoRepeat():
            self._space = False
            self._show_cursor()
        else:
            super().keyReleaseEvent(event)
