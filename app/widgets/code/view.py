"""A viewer of code: colours, line numbers, find, go to line, and lines that belong to entities."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QFocusEvent, QKeySequence
from PySide6.QtWidgets import QMenu, QStackedLayout, QVBoxLayout, QWidget

from lowerscope.app.widgets.code.cards import NamedPlace
from lowerscope.app.widgets.code.editor import CodeEditor
from lowerscope.app.widgets.code.find_bar import FindBar, GoToLineBar
from lowerscope.app.widgets.code.finding import CodeFinding
from lowerscope.app.widgets.code.lines import Span
from lowerscope.app.widgets.code.marks import Tint
from lowerscope.app.widgets.empty_state import EmptyState

__all__ = ["CodeView", "Span"]


class CodeView(QWidget):
    """A text to read, tied to entities.

    Parameters
    ----------
    name : str
        What it is called by a screen reader.
    parent : QWidget, optional
        The widget that it stands in.

    Signals
    -------
    entity_clicked(str, Qt.KeyboardModifiers)
        A line was clicked, without dragging, or entered: its innermost entity.
    entity_hovered(str)
        The innermost entity under the mouse, or ``""``.
    menu_opening(str, QMenu)
        The context menu is about to open on this entity, or ``""``: add actions to it.
    """

    entity_clicked = Signal(str, object)
    entity_hovered = Signal(str)
    menu_opening = Signal(str, object)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._language = ""
        self.editor = CodeEditor()
        self.editor.setAccessibleName(name)
        self.find_bar = FindBar()
        self.finding = CodeFinding(self.editor, self.find_bar)
        self.go_to_bar = GoToLineBar()
        self.empty = EmptyState()
        self.setAccessibleName(name)
        self._lay_out()
        self._connect()

    def set_text(
        self,
        text: str,
        language: str = "text",
        hidden: Mapping[int, tuple[int, int]] | None = None,
        *,
        keep_folds: bool = False,
    ) -> None:
        """Show a text.

        The same text in the same language keeps its place, spans and marks.

        Parameters
        ----------
        text : str
            The text; ``""`` shows the empty state.
        language : str
            ``"tvmscript"``, ``"python"``, ``"llvm"``, ``"asm"``, ``"bytecode"``, ``"json"``,
            ``"c"``; any other has no colours.
        hidden : mapping of int to (int, int), optional
            A part of a line that is not shown, by the line's number, from 0. It stands in the
            line's tool tip, and in what is copied.
        keep_folds : bool
            Fold what was folded in the text before, as far as it is there.
        """
        same = text == self.editor.text() and language == self._language
        if same and (hidden or {}) == self.editor.hidden():
            return
        self._language = language
        self.editor.set_text(text, language, hidden, keep_folds=keep_folds)
        self._stack.setCurrentWidget(self._page if text else self.empty)
        if self.find_bar.isVisibleTo(self):
            self.finding.search()

    def text(self) -> str:
        """The text that is shown."""
        return self.editor.text()

    def set_spans(self, spans: Sequence[Span]) -> None:
        """Say which lines belong to which entities; it holds until the text changes."""
        self.editor.marks.set_spans(spans)
        self.editor.repaint_lines()

    def set_cards(self, places: Iterable[NamedPlace]) -> None:
        """Say what names stand for; it holds until the text changes."""
        self.editor.cards.set_places(places)

    def set_selection(self, entities: Collection[str]) -> None:
        """Paint the lines of these entities as selected; the view does not move."""
        self.editor.marks.select(entities)
        self.editor.repaint_lines()

    def reveal(self, entity: str) -> bool:
        """Bring the lines of an entity into view, in the middle when they were far.

        Returns
        -------
        bool
            False when the entity has no lines in this text.
        """
        return self.editor.reveal(entity)

    def place(self) -> tuple[int, int]:
        """The first line in view, from 0, and how far the text is scrolled to the right."""
        return self.editor.top_line(), self.editor.horizontalScrollBar().value()

    def set_place(self, place: tuple[int, int]) -> None:
        """Scroll to where a text was, or as far as this one goes."""
        self.editor.set_top_line(place[0])
        self.editor.horizontalScrollBar().setValue(place[1])

    def set_changed_lines(self, lines: Iterable[int]) -> None:
        """Give these lines, from 1, the ground of a change."""
        self.editor.marks.change(lines)
        self.editor.repaint_lines()

    def set_tint(self, tint: Tint | None) -> None:
        """Say which colour of the palette the lines of an entity have; ``None`` for no colours."""
        self.editor.marks.tint = tint
        self.editor.repaint_lines()

    def point_at(self, line: int) -> None:
        """Mark this line, from 1, as the one that is looked at, and show it; 0 for none."""
        self.editor.marks.point(line)
        if line:
            self.editor.show_lines(line - 1, line - 1)
        self.editor.repaint_lines()

    def go_to_line(self, line: int) -> None:
        """Put the caret on this line, from 1, and show it."""
        self.editor.go_to(line - 1)

    def set_empty(self, title: str, hint: str = "") -> None:
        """What is said while there is no text."""
        self.empty.set_text(title, hint)

    # Finding

    def open_find(self, text: str | None = None) -> None:
        """Open the find bar with this text, or what is selected, or what was there."""
        if not self.editor.text():
            return
        chosen = self.editor.textCursor().selectedText()
        if text is None and chosen and "\u2029" not in chosen:
            text = chosen
        self.go_to_bar.hide()
        self.find_bar.open_field(text)
        self.finding.search()

    def open_go_to_line(self) -> None:
        """Open the bar that asks for a line."""
        if not self.editor.text():
            return
        self._close_bars()
        line = self.editor.caret()[0] + 1
        self.go_to_bar.open_for(line, len(self.editor.lines()))

    def _close_bars(self) -> None:
        self.find_bar.hide()
        self.go_to_bar.hide()
        self.finding.clear()
        self.editor.setFocus()

    # Making it

    def _lay_out(self) -> None:
        self._page = QWidget()
        page = QVBoxLayout(self._page)
        page.setContentsMargins(0, 0, 0, 0)
        page.setSpacing(0)
        page.addWidget(self.find_bar)
        page.addWidget(self.go_to_bar)
        page.addWidget(self.editor, 1)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self._page)

    def _connect(self) -> None:
        self.editor.entity_clicked.connect(self.entity_clicked)
        self.editor.entity_hovered.connect(self.entity_hovered)
        self._commands: dict[str, Callable[[], None]] = {
            "find": self.open_find,
            "line": self.open_go_to_line,
            "next": self.finding.next,
            "previous": self.finding.previous,
            "close": self._close_bars,
            "card": self.editor.show_card,
            "fold": self.editor.fold,
            "unfold": self.editor.unfold,
            "fold-all": self.editor.fold_all,
            "unfold-all": self.editor.unfold_all,
            "copy": self.editor.copy,
            "select-all": self.editor.selectAll,
        }
        self.editor.key_pressed.connect(self._press)
        self.editor.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.editor.customContextMenuRequested.connect(self._open_menu)
        self.find_bar.closed.connect(self._close_bars)
        self.go_to_bar.closed.connect(self._close_bars)
        self.go_to_bar.line_chosen.connect(self.go_to_line)

    def _press(self, key: str) -> None:
        self._commands[key]()

    def _open_menu(self, position: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copy = self._add(menu, self.tr("Copy"), "copy", "Ctrl+C")
        copy.setEnabled(self.editor.textCursor().hasSelection())
        self._add(menu, self.tr("Select all"), "select-all", "Ctrl+A")
        menu.addSeparator()
        self._add(menu, self.tr("Find…"), "find", "Ctrl+F")
        self._add(menu, self.tr("Go to line…"), "line", "Ctrl+G")
        menu.addSeparator()
        self._add(menu, self.tr("Fold all"), "fold-all")
        self._add(menu, self.tr("Unfold all"), "unfold-all")
        menu.triggered.connect(self._choose)
        self.menu_opening.emit(self.editor.entity_at(position.y()), menu)
        menu.popup(self.editor.viewport().mapToGlobal(position))

    def _choose(self, action: QAction) -> None:
        # What others have added has no data, and does what it does by itself.
        if action.data() in self._commands:
            self._press(action.data())

    @staticmethod
    def _add(menu: QMenu, text: str, command: str, keys: str = "") -> QAction:
        action = QAction(text, menu)
        action.setData(command)
        if keys:
            action.setShortcut(QKeySequence(keys))
        menu.addAction(action)
        return action

    # Qt

    def focusInEvent(self, event: QFocusEvent) -> None:
        # Not a focus proxy: Tab would pass over what stands before it.
        self.editor.setFocus(event.reason())
