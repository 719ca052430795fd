"""The primitives for the selection: in the pane, and as a menu."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.tables.choice_list import ChoiceList
from lowerscope.app.panes.schedule.measurements import Measurements, Scheduled
from lowerscope.app.panes.schedule.model import Scheduling
from lowerscope.app.panes.schedule.schedule_tree import move_choices
from lowerscope.core.model.schedule_records import Move
from lowerscope.core.model.texts import _

KINDS = {"loop": _("loop"), "block": _("block")}


class ScheduleMovesPage(QWidget):
    """The list of primitives.

    Pointing at one previews it; selecting one applies it or opens its form.
    """

    done = Signal()  # A primitive was selected, or Escape pressed.

    def __init__(
        self, document: Document, scheduling: Scheduling, measurements: Measurements
    ) -> None:
        super().__init__()
        self._scheduling = scheduling
        self._measurements = measurements
        self._measured: dict[str, float] = {}  # Milliseconds of the primitives that were measured.
        self.measure = push_button(
            _("Measure"),
            _("Measure the function after each legal primitive, while nothing else runs"),
            look="quiet",
            act=self._measure,
        )
        self._pointed = ""
        self.about = ElidedLabel(role="quiet")
        self.choices = ChoiceList(_("Primitives"), _("Search primitives"))
        head = row_of(
            None, Label(_("Primitives"), role="title"), (self.about, 1), self.measure, spacing=8
        )
        column_of(self, head, (self.choices, 1), margins=(8, 6, 8, 4), spacing=4)
        self.choices.pointed.connect(self._point)
        self.choices.chosen.connect(self._choose)
        self.choices.escaped.connect(self._escape)
        scheduling.moves.changed.connect(self._show)
        scheduling.changed.connect(self._show)
        measurements.changed.connect(self._show_measured)
        document.on(("selection", "snapshot"), self._show)

    def _show(self) -> None:
        if not self.isVisible():
            # It is filled once visible: after a primitive is applied there is enough to redraw.
            return
        scheduling = self._scheduling
        chosen = scheduling.chosen
        names = _(", ").join(each.name for each in chosen)
        self.about.set_whole(f"{KINDS[chosen[0].kind]} {names}" if len(chosen) == 1 else names)
        # Without a selection, primitives that need none would be the only entries, so none is
        # listed.
        moves = scheduling.moves.all if scheduling.record is not None and chosen else ()
        asking = [each.name for each in moves if scheduling.trying.asks(each)]
        self._measured = self._times()
        self.choices.set_choices(move_choices(moves, asking, self._measured))
        self.measure.setVisible(any(each.legal for each in moves))
        self.choices.set_hint(*self._hint())
        if self._pointed and not scheduling.moves.are_coming:
            # The mouse may have stopped before these primitives arrived.
            self._try_pointed()

    def _hint(self) -> tuple[str, str]:
        """Return what the user has to do first: a title and a hint."""
        moves = self._scheduling.moves
        if self._scheduling.record is None or moves.are_coming:
            return "", ""
        if not self._scheduling.chosen:
            return (
                _("Select a loop or a block"),
                _("In the tree or in the script; with Ctrl or Shift, several."),
            )
        if moves.are_deadly:
            return (
                _("No primitives are known"),
                _("The engine crashes on this selection; select other loops."),
            )
        nothing = "" if moves.all else _("No primitive applies to the selection")
        return nothing, ""

    def _after_each(self) -> dict[str, Scheduled]:
        """Return the function after each legal primitive."""
        here = self._measurements.here
        if here is None:
            return {}
        legal = (each for each in self._scheduling.moves.all if each.legal and not each.unsafe)
        return {each.name: here.after((*here.primitives, each.primitive)) for each in legal}

    def _times(self) -> dict[str, float]:
        measured = self._measurements.measured
        return {
            name: found.milliseconds
            for name, each in self._after_each().items()
            if (found := measured(each)) is not None
        }

    def _measure(self) -> None:
        self._measurements.measure_all(
            tuple(each.primitives for each in self._after_each().values())
        )

    def _show_measured(self) -> None:
        if self.isVisible() and self._times() != self._measured:
            self._show()

    def _move(self, key: str) -> Move | None:
        return next((each for each in self._scheduling.moves.all if each.name == key), None)

    def _point(self, key: str) -> None:
        self._pointed = key
        self._try_pointed()

    def _try_pointed(self) -> None:
        move = self._move(self._pointed)
        self._scheduling.trying.show(None if move is None else move.primitive)

    def _choose(self, key: str) -> None:
        move = self._move(key)
        if move is not None:
            # Whatever replaces the row is previewed on the next mouse move.
            self._pointed = ""
            self.choices.list.setCurrentRow(-1)
            # The filter would hide the primitives of what comes next.
            self.choices.line.clear()
            self.done.emit()
            self._scheduling.trying.choose(move)

    def _escape(self) -> None:
        self._pointed = ""
        self.choices.list.setCurrentRow(-1)
        self._scheduling.trying.show(None)
        self.done.emit()

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show()


class ScheduleMenu(QFrame):
    """The list of primitives as a menu, over the window in which it was requested.

    It is a child of that window, so that previews stay visible beside it; it closes when it loses
    the focus.
    """

    def __init__(
        self,
        document: Document,
        scheduling: Scheduling,
        measurements: Measurements,
        pane: QWidget,
    ) -> None:
        super().__init__(pane)
        self._pane = pane
        self.setProperty("floating", True)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(_("Primitives"))
        self.page = ScheduleMovesPage(document, scheduling, measurements)
        column_of(self, self.page, margins=2, spacing=None)
        self.page.done.connect(self._close)
        theme.application().focusChanged.connect(self._follow_focus)
        self.hide()

    def open_at(self, place: QPoint) -> None:
        """Show the menu at a screen position, as far as the window has space."""
        window = self._pane.window()
        self.setParent(window)
        self.resize(min(380, window.width()), min(360, window.height()))
        corner = window.mapFromGlobal(place)
        self.move(
            max(0, min(corner.x(), window.width() - self.width())),
            max(0, min(corner.y(), window.height() - self.height())),
        )
        self.show()
        self.raise_()
        self.page.choices.line.setFocus()

    def _close(self) -> None:
        had_focus = self.isAncestorOf(self.window().focusWidget() or self.window())
        self.hide()
        if had_focus:
            self._pane.setFocus()

    def _follow_focus(self, _old: QWidget | None, new: QWidget | None) -> None:
        if self.isVisible() and new is not None and not self.isAncestorOf(new):
            self.hide()
