"""Actions in the workbench that tests repeat, by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QAbstractScrollArea, QApplication, QMenu, QWidget

from lowerscope.app.panes.schedule.schedule_code import ScheduleCode
from lowerscope.app.panes.schedule.schedule_view import ScheduleView
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.schedule_records import ScheduleRecord
from tests.end_to_end.driving import wait_until

LEFT = Qt.MouseButton.LeftButton
CONTROL = Qt.KeyboardModifier.ControlModifier
NONE = Qt.KeyboardModifier.NoModifier


class Bench:
    """The workbench of a window, as a user has it."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window
        self.scheduling = window.features.scheduling

    @property
    def view(self) -> ScheduleView:
        """The pane."""
        return self.window.panes.schedule

    @property
    def record(self) -> ScheduleRecord:
        """Return the text that is shown."""
        assert self.scheduling.record is not None
        return self.scheduling.record

    @property
    def code(self) -> ScheduleCode:
        """The code of the function."""
        return self.view.code

    @property
    def script(self) -> str:
        """The text of the page that is shown: the preview, or the script."""
        code = self.code
        if code.current() != "preview":
            failed = code.scripts.currentWidget() is code.failed
            return code.failed.text() if failed else code.script.code.text()
        if code.preview.currentWidget() is code.rejected:
            return code.rejected.text()
        parts = code.difference.rows().parts
        return "\n".join(parts[0].new) if parts else ""

    def wait(self, condition: Callable[[], object]) -> None:
        """Let the window go on until a condition holds."""
        assert wait_until(condition), self.state()

    def settle(self) -> None:
        """Wait until what is shown is what is wanted."""
        self.wait(lambda: self.scheduling.is_settled)

    def state(self) -> str:
        """Return what there is to see, for a test that fails."""
        record = self.scheduling.record
        steps = [] if record is None else [(each.title, each.status) for each in record.steps]
        document = self.window.document
        problems = (self.scheduling.problem, *document.problems)
        states = (
            self.window.features.processes.engine.state,
            self.window.features.processes.worker.state,
            document.job.text,
        )
        return f"{self.scheduling.function} {steps} {problems} {states} {document.is_changing}"

    def begin(self, recipe: Recipe) -> None:
        """Begin with a recipe, nothing selected and no step looked at."""
        document = self.window.document
        self.window.features.stepping.set_section("passes")
        document.select(())
        if document.wanted != recipe:
            document.change(recipe)
        self.wait(lambda: document.recipe == recipe and not document.job.text)

    def steps(self, count: int) -> None:
        """Wait until there are so many steps, all applied or tried."""
        self.wait(lambda: len(self.record.steps) == count)
        self.settle()

    def open(self, function: str) -> None:
        """Schedule a function, with nothing done to it."""
        self.window.document.select((f"tir:{function}",))
        self.window.commands.action("workbench").trigger()
        self.wait(lambda: self.scheduling.function == function and self.scheduling.record)
        self.settle()

    def ids(self, *names: str) -> list[str]:
        """Return the ids of loops and blocks with these names; ``name#1`` is the second one."""
        found = []
        for name in names:
            plain, _, place = name.partition("#")
            alike = [each.id for each in self.record.tree if each.name == plain]
            assert len(alike) > int(place or 0), (name, [each.name for each in self.record.tree])
            found.append(alike[int(place or 0)])
        return found

    def select(self, *names: str) -> None:
        """Click rows of the tree, those after the first with Ctrl."""
        for place, row in enumerate(self.ids(*names)):
            tree = self.view.tree
            tree.scrollToItem(tree.item_of(row))
            area = tree.visualItemRect(tree.item_of(row))
            self._click(tree, area, CONTROL if place else NONE)
        self.settle()

    def _click(self, view: QAbstractItemView, rect: QRect, keys: Qt.KeyboardModifier) -> None:
        place = QPoint(rect.left() + 20, rect.center().y())
        QTest.mouseClick(view.viewport(), LEFT, keys, place)

    def moves(self) -> dict[str, bool]:
        """Return the moves that the list shows, and whether each is offered as legal."""
        return {each.key: each.usable for each in self.view.moves.choices.shown()}

    def choose(self, move: str) -> None:
        """Click a move in the list."""
        choices = self.view.moves.choices
        item = choices.item_of(move)
        said = (self.moves(), self.window.banner.message(), self.scheduling.chosen)
        assert item is not None, (move, *said)
        choices.list.scrollToItem(item)
        QTest.mouseClick(
            choices.list.viewport(), LEFT, NONE, choices.list.visualItemRect(item).center()
        )

    def apply(self, move: str) -> None:
        """Click a move, and Apply in its form if it has one; wait until it is done."""
        count = len(self.record.steps)
        self.choose(move)
        if self.scheduling.trying.draft is not None:
            self.press_apply()
        self.wait(lambda: len(self.record.steps) == count + 1)
        self.settle()
        assert self.record.steps[-1].status == "done", self.state()

    def press_apply(self) -> None:
        """Press Apply as soon as what is filled in has been tried."""
        form = self.view.form
        self.wait(lambda: form.apply.isVisible() and form.state.text().startswith(("✓", "✕", "⚠")))
        assert form.apply.isEnabled(), form.state.text()
        QTest.mouseClick(form.apply, LEFT)

    def code_line(self, part: str) -> int:
        """Return the first line of the script with a text in it, from 0."""
        lines = self.code.script.code.editor.lines()
        return next(at for at, line in enumerate(lines) if part in line)

    def line_place(self, part: str) -> QPoint:
        """Return where that line stands in the viewport of the script."""
        editor = self.code.script.code.editor
        at = self.code_line(part)
        rect = next(rect for line, rect in editor.visible_lines(editor.rect()) if line == at)
        return QPoint(120, round(rect.center().y()))

    def choose_in_menu(self, view: QAbstractScrollArea, place: QPoint, text: str) -> None:
        """Open the menu of a place with the mouse, and choose an entry."""
        viewport = view.viewport()
        event = QContextMenuEvent(
            QContextMenuEvent.Reason.Mouse, place, viewport.mapToGlobal(place)
        )
        QApplication.sendEvent(viewport, event)
        QApplication.processEvents()
        menu = QApplication.activePopupWidget()
        assert isinstance(menu, QMenu)
        action = next(each for each in menu.actions() if each.text() == text)
        menu.setActiveAction(action)
        # By keyboard: what the mouse does in menus depends on the window manager.
        QTest.keyClick(menu, Qt.Key.Key_Return)
        self.wait(lambda: QApplication.activePopupWidget() is None)

    def click_step(self, number: int) -> None:
        """Click a step of the history, from 1; 0 for the unscheduled function."""
        strip = self.view.history.strip
        key = self.record.steps[number - 1].id if number else "start"
        strip.scrollToItem(strip.item(number))
        QTest.mouseClick(strip.viewport(), LEFT, NONE, strip.cell_rect(key).center().toPoint())
        self.wait(lambda: self.record.index == number)
        self.settle()

    def key(self, widget: QWidget, key: Qt.Key, keys: Qt.KeyboardModifier = NONE) -> None:
        """Press a key where the focus of a widget is."""
        QTest.keyClick(widget, key, keys)
        QApplication.processEvents()

    def statuses(self) -> list[str]:
        """Return the status of each step."""
        return [each.status for each in self.record.steps]
