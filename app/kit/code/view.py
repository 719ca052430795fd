"""Code viewer: colours, line numbers, search, go to line, and lines that belong to entities."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QFocusEvent, QKeySequence
from PySide6.QtWidgets import QMenu, QStackedLayout, QVBoxLayout, QWidget

from lowerscope.app.kit.code.editor import CodeEditor, NamedPlace
from lowerscope.app.kit.code.find import CodeFinding, FindBar, GoToLineBar
from lowerscope.app.kit.code.marks import Span, Tint
from lowerscope.app.kit.dialogs import EmptyState

__all__ = ["CodeView", "Span"]


class CodeView(QWidget):
    """A text viewer whose lines belong to entities."""

    # A line was clicked, without dragging, or entered: its innermost entity.
    entity_clicked = Signal(str, object)
    entity_hovered = Signal(str)  # The innermost entity under the mouse, or ``""``.
    # The context menu of this entity, or ``""``, is about to open: add actions to it.
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

        The same text in the same language keeps its position, spans and marks.

        Args:
            text: The text; ``""`` shows the empty state.
            language: ``"tvmscript"``, ``"python"``, ``"llvm"``, ``"asm"``, ``"bytecode"``,
                ``"json"``, ``"c"``; any other has no colours.
            hidden: A hidden part of a line, by line number, from 0. The line's tool tip has it, and
                so has copied text.
            keep_folds: Fold the regions that were folded in the previous text, if they still exist.
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
        """Return the text that is shown."""
        return self.editor.text()

    def set_spans(self, spans: Sequence[Span]) -> None:
        """Set the lines of entities; valid until the text changes."""
        self.editor.marks.set_spans(spans)
        self.editor.repaint_lines()

    def set_cards(self, places: Iterable[NamedPlace]) -> None:
        """Set the cards of names; valid until the text changes."""
        self.editor.cards.set_places(places)

    def set_selection(self, entities: Collection[str]) -> None:
        """Mark the lines of these entities as selected; the view does not move."""
        self.editor.marks.select(entities)
        self.editor.repaint_lines()

    def reveal(self, entity: str) -> bool:
        """Scroll to the lines of an entity, centred if they were far.

        Returns:
            False when the entity has no lines in this text.
        """
        return self.editor.reveal(entity)

    def place(self) -> tuple[int, int]:
        """Return the first visible line, from 0, and the horizontal scroll position."""
        return self.editor.top_line(), self.editor.horizontalScrollBar().value()

    def set_place(self, place: tuple[int, int]) -> None:
        """Restore a scroll position, as far as this text goes."""
        self.editor.set_top_line(place[0])
        self.editor.horizontalScrollBar().setValue(place[1])

    def set_changed_lines(self, lines: Iterable[int]) -> None:
        """Mark these lines, from 1, as changed."""
        self.editor.marks.change(lines)
        self.editor.repaint_lines()

    def set_tint(self, tint: Tint | None) -> None:
        """Set the function for the palette colours of entities; ``None`` for no colours."""
        self.editor.marks.tint = tint
        self.editor.repaint_lines()

    def point_at(self, line: int) -> None:
        """Mark this line, from 1, as the current one, and scroll to it; 0 for none."""
        self.editor.marks.point(line)
        if line:
            self.editor.show_lines(line - 1, line - 1)
        self.editor.repaint_lines()

    def go_to_line(self, line: int) -> None:
        """Put the caret on this line, from 1, and scroll to it."""
        self.editor.go_to(line - 1)

    def set_empty(self, title: str, hint: str = "") -> None:
        """Set the text that is shown in place of an empty text."""
        self.empty.set_text(title, hint)

    # Search

    def open_find(self, text: str | None = None) -> None:
        """Open the find bar with this text, or the selection, or the previous pattern."""
        if not self.editor.text():
            return
        chosen = self.editor.textCursor().selectedText()
        if text is None and chosen and "\u2029" not in chosen:
            text = chosen
        self.go_to_bar.hide()
        self.find_bar.open_field(text)
        self.finding.search()

    def open_go_to_line(self) -> None:
        """Open the bar for going to a line."""
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

    # Construction

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
        # Actions added by others have no data, and are connected by themselves.
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
        # Not a focus proxy: Tab would skip what is before it.
        self.editor.setFocus(event.reason())
