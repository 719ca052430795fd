"""The tour: bubbles that point at six things in the real window, and wait for the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import IconButton, push_button
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.app.document.document import Document
    from lowerscope.app.document.stepping import Stepping
    from lowerscope.app.shell.panes import Panes
    from lowerscope.app.shell.tool_bar import ToolBar

SAMPLE = "sample:fashion_mlp"


@dataclass(frozen=True)
class Stop:
    """A stop of the tour."""

    mode: str  # Mode that it is in.
    text: str
    todo: str  # What the user is to do.
    at: Callable[[], tuple[QWidget, QRect]]  # Widget that the bubble points at, and its part.
    is_done: Callable[[], bool]  # Whether the user has done it.
    # Where the bubble is: not below the part where its text is about what is there.
    bubble: Literal["below", "side", "bottom"] = "below"


class GuidedTour(QObject):
    """Walks through the stops; a stop is left once the user has done what it says, or by a button.

    Args:
        window: The main window, which the bubbles lie over.
        search: The search of all commands.
        open_source: Opens a source.
    """

    ended = Signal()

    def __init__(
        self,
        window: QWidget,
        document: Document,
        stepping: Stepping,
        panes: Panes,
        bar: ToolBar,
        search: QWidget,
        open_source: Callable[[str], None],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._document = document
        self._stepping = stepping
        self._panes = panes
        self._bar = bar
        self._search = search
        self._open_source = open_source
        self.place = -1  # Number of the current stop, from 0; -1 while there is none.
        self._was_done = False
        self.stops: tuple[Stop, ...] = ()  # The stops, once the tour has begun.
        self.bubble: Bubble | None = None
        document.changed.connect(self._follow)
        for moved in (stepping.moment_changed, stepping.schedule_moved, stepping.run_moved):
            moved.connect(self._follow)

    def start(self) -> None:
        """Open the sample, and begin once it is there."""
        self.end()
        panes = self._panes
        self.bubble = Bubble(self._window, panes)
        self.bubble.back.clicked.connect(self._back)
        self.bubble.next.clicked.connect(self._next)
        self.bubble.closed.connect(self.end)
        self.bubble.painted.connect(self._point)
        panes.mode_changed.connect(self._follow)
        panes.arranged.connect(self._point)
        self.stops = self._made()
        recipe = self._document.wanted
        if recipe is None or recipe.source.spec != SAMPLE:
            self._open_source(SAMPLE)
        self._follow()

    def end(self) -> None:
        """Close the bubble."""
        if self.bubble is None:
            return
        self._panes.mode_changed.disconnect(self._follow)
        self._panes.arranged.disconnect(self._point)
        self.bubble.remove()
        self.bubble, self.place = None, -1
        self.ended.emit()

    def _made(self) -> tuple[Stop, ...]:
        document, search = self._document, self._search
        bar, panes, stepping = self._bar, self._panes, self._stepping

        def whole(widget: QWidget) -> Callable[[], tuple[QWidget, QRect]]:
            return lambda: (widget, widget.rect())

        def node() -> tuple[QWidget, QRect]:
            canvas = panes.fx.graph.canvas
            if not canvas.has_node("fx:linear0"):
                return canvas.viewport(), canvas.viewport().rect()
            return canvas.viewport(), canvas.node_rect("fx:linear0").toAlignedRect()

        def lowering() -> tuple[QWidget, QRect]:
            if bar.lowering.isVisible():
                return bar.lowering, bar.lowering.segment_rect("te").toAlignedRect()
            return bar.lowering_box, bar.lowering_box.rect()

        def tab() -> tuple[QWidget, QRect]:
            return bar.modes, bar.modes.segment_rect("step").toAlignedRect()

        def chip() -> tuple[QWidget, QRect]:
            shown = bar.step if bar.step.isVisible() else search
            return shown, shown.rect()

        def is_te() -> bool:
            return document.recipe is not None and document.recipe.lowering == "te"

        return (
            Stop(
                "explore",
                _("This graph is the model as traced by torch: one box for each operation."),
                _("Click linear0, or select it with the arrow keys."),
                node,
                lambda: "fx:linear0" in document.selection.chosen,
                bubble="side",
            ),
            Stop(
                "explore",
                _(
                    "Its lines in Relax are marked, and TensorIR shows the functions they "
                    "call. The same model can be lowered to TensorIR from the start."
                ),
                _("Choose TE, or press Alt+Shift+2."),
                lowering,
                is_te,
                bubble="side",
            ),
            Stop(
                "explore",
                _(
                    "Run compiles the module, runs it in a separate process, and compares it "
                    "with torch on the same input."
                ),
                _("Press Run, or F5."),
                whole(bar.run),
                lambda: document.run_record is not None and not document.running,
            ),
            Stop(
                "explore",
                _(
                    "The verdict is to the left of Run: right or wrong, by how much, and how "
                    "fast. Step shows the effect of each pass on the module."
                ),
                _("Choose Step, or press Ctrl+2."),
                tab,
                lambda: panes.mode == "step",
            ),
            Stop(
                "step",
                _(
                    "The list has every step from the translation of a node to a call of the "
                    "run. The code before and after a step is shown side by side."
                ),
                _("Open Translate, and choose one of its steps."),
                whole(panes.pipeline),
                lambda: stepping.here is not None,
            ),
            Stop(
                "step",
                _(
                    "All panes show this step, in every mode, until you leave it. The search "
                    "field at the top right (Ctrl+K) finds all other commands, and Help has "
                    "the rest."
                ),
                _("Leave the step: click ✕ on its chip, or press Esc."),
                chip,
                lambda: stepping.here is None,
                bubble="bottom",
            ),
        )

    def _is_open(self) -> bool:
        recipe = self._document.recipe
        return recipe is not None and recipe.source.spec == SAMPLE

    def _follow(self) -> None:
        if self.bubble is None or not self._is_open():
            return
        if self.place < 0:
            self._show(0)
            return
        done, was_done = self.stops[self.place].is_done(), self._was_done
        self._was_done = done
        if done and not was_done:
            self._next()
        else:
            self._point()

    def _next(self) -> None:
        if self.place + 1 < len(self.stops):
            self._show(self.place + 1)
        else:
            self.end()

    def _back(self) -> None:
        self._show(max(0, self.place - 1))

    def _show(self, place: int) -> None:
        assert self.bubble is not None
        self.place, stop = place, self.stops[place]
        if self._panes.mode != stop.mode:
            self._was_done = True
            self._panes.set_mode(stop.mode)
        self._was_done = stop.is_done()
        self.bubble.show_stop(stop, place, len(self.stops))
        self._point()

    def _point(self) -> None:
        if self.bubble is not None and self.place >= 0:
            widget, part = self.stops[self.place].at()
            self.bubble.point_at(widget, part)


WIDTH = 320
_ARROW = 9
_EDGE = 12
_BOTTOM = 72
"""Space below a bubble at the bottom of the window: the status bar, and a row of a pane."""


class Bubble(QWidget):
    """A text with buttons, and an arrow to a part of the window, which has a frame around it.

    Args:
        window: The window, whose size it follows.
        area: A widget that the pointed part may move with.
    """

    closed = Signal()
    painted = Signal()  # The widget that it points at was painted: its part may have moved.

    def __init__(self, window: QWidget, area: QWidget) -> None:
        super().__init__(window)
        self._target = QRect()
        self._at: tuple[QWidget, QRect] | None = None
        self._where: Literal["below", "side", "bottom"] = "below"
        self._halo = Halo(window)
        self.setAccessibleName(_("Tour"))
        self.number = Label(role="quiet")
        self.text = Label(wraps=True)
        self.todo = Label(role="title", wraps=True)
        close = IconButton("close", _("Close the tour"))
        close.clicked.connect(self.closed)
        self.back = push_button(_("Back"))
        self.next = push_button(_("Next"), look="primary")
        head = row_of(None, self.number, STRETCH, close)
        foot = row_of(None, STRETCH, self.back, self.next, spacing=8)
        inset = _ARROW + _EDGE
        column_of(
            self, head, self.text, self.todo, 4, foot, margins=(inset, inset - 4, inset, inset)
        ).setSpacing(6)
        self.hide()
        for watched in (window, area):
            watched.installEventFilter(self)
        theme.notifier().changed.connect(self.update)

    def show_stop(self, stop: Stop, place: int, count: int) -> None:
        """Show the text of a stop."""
        self._where = stop.bubble
        self.number.setText(_("{place} of {count}", place=place + 1, count=count))
        self.text.setText(stop.text)
        self.todo.setText(stop.todo)
        self.back.setEnabled(place > 0)
        self.next.setText(_("Finish") if place + 1 == count else _("Next"))
        self.setAccessibleDescription(f"{stop.text} {stop.todo}")

    def point_at(self, widget: QWidget, part: QRect) -> None:
        """Place it beside a part of a widget of the window."""
        if self._at == (widget, part) and self.isVisible():
            return
        if self._at is not None:
            self._at[0].removeEventFilter(self)
        self._at = (widget, part)
        widget.installEventFilter(self)
        self.show()
        self._place()

    def remove(self) -> None:
        """Hide and delete it."""
        if self._at is not None:
            self._at[0].removeEventFilter(self)
        self._halo.deleteLater()
        self.hide()
        self.deleteLater()

    def _place(self) -> None:
        window = self.parentWidget()
        if self._at is None or window is None:
            return
        widget, part = self._at
        seen = part.intersected(widget.rect())
        self._target = QRect(widget.mapTo(window, seen.topLeft()), seen.size())
        self.setFixedWidth(WIDTH)
        size = QSize(WIDTH, self.heightForWidth(WIDTH))
        place = _beside(self._target, size, window.size(), self._where)
        self.setGeometry(QRect(place, size))
        self._halo.setGeometry(self._target.adjusted(-4, -4, 4, 4))
        self._halo.show()
        self._halo.raise_()
        self.raise_()
        self.update()

    # Qt

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, painter = theme.current(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(_ARROW, _ARROW, -_ARROW, -_ARROW)
        painter.setBrush(QColor(colours.panel))
        painter.setPen(QPen(QColor(colours.accent), 1.5))
        painter.drawRoundedRect(box, 8, 8)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours.accent))
        painter.drawPolygon(self._arrow(box))

    def _arrow(self, box: QRectF) -> QPolygonF:
        aim = QPointF(self._target.center() - self.pos())
        along = min(max(aim.x(), box.left() + 16), box.right() - 16)
        across = min(max(aim.y(), box.top() + 16), box.bottom() - 16)
        if aim.y() < box.top():
            tip, base, step = QPointF(along, box.top() - _ARROW), box.top(), QPointF(8, 0)
        elif aim.y() > box.bottom():
            tip, base, step = QPointF(along, box.bottom() + _ARROW), box.bottom(), QPointF(8, 0)
        elif aim.x() < box.left():
            tip, base, step = QPointF(box.left() - _ARROW, across), box.left(), QPointF(0, 8)
        else:
            tip, base, step = QPointF(box.right() + _ARROW, across), box.right(), QPointF(0, 8)
        foot = QPointF(tip.x(), base) if step.x() else QPointF(base, tip.y())
        return QPolygonF([tip, foot + step, foot - step])

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            self.painted.emit()
        elif event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest) and self.isVisible():
            self._place()
        return False


def _beside(
    target: QRect, size: QSize, room: QSize, where: Literal["below", "side", "bottom"]
) -> QPoint:
    """Return where a bubble has room: below a part of the window, above it, or at its side.

    At the ``"bottom"`` of the window, it leaves the beginning of what is below the part visible.
    """
    middle = target.center()
    x = min(max(4, middle.x() - size.width() // 2), room.width() - size.width() - 4)
    y = min(max(4, middle.y() - size.height() // 2), room.height() - size.height() - 4)
    right = target.right() + size.width() + 8 <= room.width()
    if target.bottom() + size.height() + 8 <= room.height() and not (where == "side" and right):
        lowest = room.height() - size.height() - _BOTTOM
        return QPoint(x, max(target.bottom() + 4, lowest if where == "bottom" else 0))
    if right:
        return QPoint(target.right() + 4, y)
    if target.top() - size.height() - 8 >= 0:
        return QPoint(x, target.top() - size.height() - 4)
    return QPoint(max(4, target.left() - size.width() - 4), y)


class Halo(QWidget):
    """A frame around a part of the window; the mouse goes through it."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    # Qt

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(theme.current().accent), 2))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 7, 7)
