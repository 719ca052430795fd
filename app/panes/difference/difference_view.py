"""The difference of a step: a sentence, the functions that it changed, and both texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QShortcut,
)
from PySide6.QtWidgets import QGridLayout, QMenu, QSizePolicy, QStackedWidget, QToolTip, QWidget

from lowerscope.app.document.shared import Shared
from lowerscope.app.kit import theme
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.buttons import IconButton, push_button
from lowerscope.app.kit.code.diff_editor import paint_group
from lowerscope.app.kit.code.diff_view import DiffView
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of, stack_of
from lowerscope.app.kit.pane import ElidedLabel, PartsLabel
from lowerscope.app.kit.pane_messages import Veil
from lowerscope.app.kit.plain_text import Label, literal
from lowerscope.app.kit.typefaces import TextMetrics, code_font, ui_font
from lowerscope.app.panes.common.script_page import CodeFooter
from lowerscope.app.panes.difference.difference_page import (
    ROLES,
    CodePage,
    DifferencePage,
    GraphDifferencePage,
    function_counts,
)
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.model.graph import STATUS_MARKS
from lowerscope.core.model.module_steps import APART, FunctionDifference
from lowerscope.core.model.texts import _, _n, labelled

# --- The functions of a difference in a row: a chip for each, and a menu for those without room ---


_HEIGHT = 24.0
_PAD = 8.0
_GAP = 6.0


@dataclass(frozen=True)
class Chip:
    """A function: its name, and texts with their roles before and behind it."""

    name: str
    mark: str
    role: str
    counts: tuple[tuple[str, str], ...] = ()

    @property
    def words(self) -> str:
        """The chip as text."""
        return " ".join([self.mark, self.name, *(text for text, _ in self.counts)])


class FunctionChips(QWidget):
    """Chips in a row, one of which may be current; those without room are in a menu."""

    chosen = Signal(str)  # A chip was clicked; the argument is its name.

    def __init__(self, name: str) -> None:
        super().__init__()
        self._chips: tuple[Chip, ...] = ()
        self._current = ""
        self._hovered = -1
        self._areas: list[QRectF] = []
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(34)
        theme.notifier().changed.connect(self.update)

    def set_chips(self, chips: Sequence[Chip]) -> None:
        if tuple(chips) != self._chips:
            self._chips = tuple(chips)
            focus = Qt.FocusPolicy.TabFocus if chips else Qt.FocusPolicy.NoFocus
            self.setFocusPolicy(focus)
            self._arrange()

    def chips(self) -> tuple[Chip, ...]:
        """Return all chips, including those without room."""
        return self._chips

    def set_current(self, name: str) -> None:
        """Mark a chip as the current one."""
        if name != self._current:
            self._current = name
            self.setAccessibleDescription(name)
            self._arrange()

    def current(self) -> str:
        """Return the name of the current chip, or ``""``."""
        return self._current

    def _shown(self) -> tuple[Chip, ...]:
        return self._chips[: len(self._areas)]

    def _width(self, chip: Chip) -> float:
        width = 2 * _PAD + TextMetrics(ui_font(12)).horizontalAdvance(chip.mark) + 12
        width += TextMetrics(code_font()).horizontalAdvance(chip.name)
        for text, _role in chip.counts:
            width += 6 + TextMetrics(ui_font(11.5, tabular=True)).horizontalAdvance(text)
        return round(width)

    def _arrange(self) -> None:
        self._areas = []
        left, top = 0.0, (self.height() - _HEIGHT) / 2
        room, used, widths = self.width(), 0.0, list[float]()
        for chip in self._chips:
            widths.append(self._width(chip))
            used += widths[-1] + _GAP
            if used > room:
                # Those behind it have no room, however wide they are.
                room -= 64
                break
        for width in widths:
            if left + width > room and self._areas:
                break
            self._areas.append(QRectF(left, top, min(width, room), _HEIGHT))
            left += width + _GAP
        self.update()

    def _more(self) -> QRectF:
        """Return the area of the button for the chips without room; empty if all have room."""
        if len(self._areas) == len(self._chips):
            return QRectF()
        left = self._areas[-1].right() + _GAP if self._areas else 0.0
        return QRectF(left, (self.height() - _HEIGHT) / 2, 58, _HEIGHT)

    def _open_more(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for chip in self._chips[len(self._areas) :]:
            action = QAction(literal(chip.words), menu)
            action.setData(chip.name)
            menu.addAction(action)
        menu.triggered.connect(self._choose)
        menu.popup(self.mapToGlobal(self._more().bottomLeft().toPoint() + QPoint(0, 2)))

    def _choose(self, action: QAction) -> None:
        self.chosen.emit(action.data())

    def _has_current(self) -> bool:
        return any(chip.name == self._current for chip in self._shown())

    def _at(self, x: float) -> int:
        areas = enumerate(self._areas)
        return next((place for place, area in areas if area.left() <= x <= area.right()), -1)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(200, 34)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        place = self._at(event.position().x())
        if place >= 0:
            self.chosen.emit(self._chips[place].name)
        elif self._more().contains(event.position()):
            self._open_more()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hovered = self._at(event.position().x())
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = -1
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        names = [chip.name for chip in self._chips]
        by = steps.get(Qt.Key(event.key()))
        if by is None or not names:
            super().keyPressEvent(event)
            return
        here = names.index(self._current) + by if self._current in names else 0
        self.chosen.emit(names[max(0, min(here, len(names) - 1))])

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            place = self._at(event.pos().x())
            words = literal(self._chips[place].words) if place >= 0 else ""
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for place, (chip, area) in enumerate(zip(self._shown(), self._areas, strict=True)):
            current = chip.name == self._current
            ground = colours.accent_ground if current else colours.panel
            if place == self._hovered and not current:
                ground = colours.hover
            ring = self.hasFocus() and (current or not (place or self._has_current()))
            painter.setPen(QPen(QColor(colours.accent if ring else colours.line), 1))
            painter.setBrush(QColor(ground))
            painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
            self._paint_chip(painter, chip, area, current=current)
        more = self._more()
        if not more.isEmpty():
            painter.setFont(ui_font(12, tabular=True))
            painter.setPen(QColor(colours.accent))
            count = len(self._chips) - len(self._areas)
            painter.drawText(more, Qt.AlignmentFlag.AlignVCenter, _("+{count} ▾", count=count))

    def _paint_chip(self, painter: QPainter, chip: Chip, area: QRectF, *, current: bool) -> None:
        colours = theme.current()
        inks = {"right": colours.right, "wrong": colours.wrong, "unsure": colours.unsure}
        flags = Qt.AlignmentFlag.AlignVCenter
        room = area.adjusted(_PAD, 0, -_PAD, 0)
        parts = [(chip.mark, chip.role, ui_font(12)), (chip.name, "", code_font())]
        parts += [(text, role, ui_font(11.5, tabular=True)) for text, role in chip.counts]
        for text, role, font in parts:
            painter.setFont(font)
            ink = inks.get(role, colours.accent if current else colours.text)
            painter.setPen(QColor(ink))
            metrics = TextMetrics(font)
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(0.0, room.width()))
            painter.drawText(room, flags, shown)
            room.setLeft(room.left() + metrics.horizontalAdvance(shown) + 6)


# --- The sentence on a step, painted with its names of code and the letters of groups ---


_PIECE = re.compile(r"`([^`]*)`|([^`]+)")
_LINE = 19.0
_CLOSE = 17.0
"""Height of a line, and of one of two."""
_MARGIN = 12.0


class SentenceBar(QWidget):
    """A sentence in one or two lines: names between backticks are code.

    A name that has a group is preceded by the group's letter.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._text = ""
        self._groups: Mapping[str, int] = {}
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(38)
        self.link = push_button("", look="quiet")
        self.link.setParent(self)
        self.link.hide()
        theme.notifier().changed.connect(self.update)

    def set_sentence(self, text: str, groups: Mapping[str, int], link: str = "") -> None:
        """Show a sentence, and a link behind it.

        Args:
            groups: The number of the group of each function, from 0.
        """
        if (text, groups, link) == (self._text, self._groups, self.link.text()):
            return
        self._text, self._groups = text, groups
        self.setAccessibleDescription(self.text())
        self.link.setText(link)
        self.link.setVisible(bool(link))
        self._place_link()
        self.update()

    def _place_link(self) -> None:
        self.link.adjustSize()
        lines = self._lines()[:2]
        pitch = _LINE if len(lines) == 1 else _CLOSE
        left = round(_MARGIN + sum(width for *_piece, width in lines[-1]))
        middle = (self.height() - 1) / 2 + pitch * (len(lines) - 1) / 2
        self.link.move(left, round(middle - self.link.height() / 2))

    def text(self) -> str:
        """Return the sentence without marks."""
        return self._text.replace("`", "")

    def _pieces(self) -> list[tuple[str, bool, int]]:
        """Return the words with whether each is code, and the group in front of it, or -1."""
        found: list[tuple[str, bool, int]] = []
        for code, words in _PIECE.findall(self._text):
            if code:
                found.append((code, True, self._groups.get(code, -1)))
            else:
                found += [(word, False, -1) for word in re.findall(r"\s+|[^\s]+", words)]
        return found

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(300, 38)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), literal(self.text()), self)
            return True
        return super().event(event)

    def _lines(self) -> list[list[tuple[str, bool, int, float]]]:
        """Return the pieces of each line, with their widths."""
        room = self.width() - 2 * _MARGIN - self.link.width() * bool(self.link.text())
        fonts = {True: TextMetrics(code_font()), False: TextMetrics(ui_font())}
        lines: list[list[tuple[str, bool, int, float]]] = [[]]
        left = 0.0
        for text, code, group in self._pieces():
            width = fonts[code].horizontalAdvance(text) + (20 if group >= 0 else 0)
            if left + width > room and left and text.strip():
                lines.append([])
                left = 0.0
            if left or text.strip():
                lines[-1].append((text, code, group, width))
                left += width
        return lines

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_link()

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.accent_ground))
        line = QRectF(0, self.height() - 1, self.width(), 1)
        painter.fillRect(line, QColor(colours.line))
        lines = self._lines()
        shown = lines[:2]
        pitch = _LINE if len(shown) == 1 else _CLOSE
        top = (self.height() - 1 - pitch * len(shown)) / 2
        for number, pieces in enumerate(shown):
            left = _MARGIN
            for place, (text, code, group, width) in enumerate(pieces):
                area = QRectF(left, top + number * pitch, width + 2, pitch)
                if group >= 0:
                    paint_group(painter, QRectF(left, area.center().y() - 7, 14, 14), group)
                    area.setLeft(left + 20)
                painter.setFont(code_font() if code else ui_font())
                painter.setPen(QColor(colours.text))
                is_cut = number == 1 and len(lines) > 2 and place == len(pieces) - 1
                painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, "…" if is_cut else text)
                left += width


NARROW = 1200
"""Window width below which the text is shown in one column at first."""


class DifferenceView(QWidget):
    """The page on the changes of a step, or on the pinned comparison.

    Args:
        set_busy: Called with whether a difference is being fetched.
    """

    patch_wanted = Signal()  # Save the difference shown as a patch.
    filter_wanted = Signal()  # The key that goes to the filter of the steps was pressed.
    why_wanted = Signal(str, str)  # Explain the fusion of two functions, given by their ids.

    def __init__(self, shared: Shared, set_busy: Callable[[bool], None]) -> None:
        super().__init__()
        self._document = document = shared.document
        self._pins = pins = shared.pins
        self._stepping = stepping = shared.stepping
        queries = shared.queries
        self._view = "llvm"
        self._columns = "two"  # As the user set them.
        self._is_narrow = False
        self._way = 1  # Direction of the last step.
        self._index = 0
        self.page = DifferencePage(document, queries, pins, set_busy, self)
        self.graph = GraphDifferencePage(document, queries, pins, set_busy)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.page)
        self.code = CodePage(queries, pins, set_busy)
        self.pages.addWidget(self.graph)
        self.pages.addWidget(self.code)
        self.earlier = IconButton("up", _("Previous step (Shift+F10)"))
        self.later = IconButton("down", _("Next step (F10)"))
        self.title = ElidedLabel()
        self.title.setProperty("role", "title")
        self.kinds = SegmentedSwitch(
            _("Show the difference of"),
            (
                Segment("relax", _("Relax")),
                Segment("tensorir", _("TensorIR")),
                Segment("graph", _("Graph"), _("The data flow of a Relax function")),
                Segment("llvm", _("LLVM"), _("The function, compiled by itself")),
                Segment("asm", _("Assembly"), _("The function, compiled by itself")),
            ),
        )
        self.columns = SegmentedSwitch(
            _("Show the difference as"),
            (Segment("two", _("Side by side")), Segment("one", _("Unified"))),
        )
        self.all_nodes = SegmentedSwitch(
            _("Show the nodes"), (Segment("changed", _("Changed")), Segment("all", _("All")))
        )
        # They take turns in one room, so that what is beside them stays where it is.
        self._switches = stack_of(self.columns, self.all_nodes)
        self.all_nodes.changed.connect(self._show_nodes)
        self.compare = push_button(
            _("Compare with"), _("Pin the step, and compare it with another one")
        )
        self.sentence = SentenceBar(_("Effect of the step"))
        self.chips = FunctionChips(_("Changed functions"))
        self.same = push_button("", look="quiet", act=self._switch_same)
        self.figure = Label()
        self.figure.setProperty("role", "quiet")
        self.previous = IconButton("up", _("Previous change (Shift+F8)"))
        self.following = IconButton("down", _("Next change (F8)"))
        self.save = IconButton("save", _("Save the difference as a patch…"))
        self.old_label = self._label()
        self.new_label = self._label()
        self.footer = CodeFooter(document, with_types=True)
        # Lines are side by side, and stay as long as they are.
        self.footer.wraps.hide()
        # Over a difference that is not the one of the recipe and the step that are wanted.
        self.veil = Veil()
        self._lay_out()
        self.earlier.clicked.connect(self._step_back)
        self.later.clicked.connect(self._step_on)
        self.kinds.changed.connect(self._set_kind)
        self.columns.changed.connect(self._choose_columns)
        self.sentence.link.clicked.connect(self._explain)
        self.chips.chosen.connect(self._show_function)
        self.previous.clicked.connect(self.previous_change)
        self.following.clicked.connect(self.next_change)
        self.save.clicked.connect(self.patch_wanted)
        self.page.arrived.connect(self._ask_ahead)
        self.page.shown.connect(self._take_record)
        self.code.shown.connect(self._show_place)
        self.code.diff.moved.connect(self._show_place)
        self.graph.shown.connect(self._show_record)
        self.page.diff.moved.connect(self._show_place)
        for diff in (self.page.diff, self.code.diff):
            diff.key_pressed.connect(self._press)
        back = QShortcut(QKeySequence("Shift+F10"), self, self._step_back)
        back.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        pins.changed.connect(self._show_sides)
        document.on(("snapshot",), self._show_sides)
        document.on(("recipe", "pending"), self._show_veil)
        for signal in (stepping.moment_changed, stepping.list_changed, stepping.section_changed):
            signal.connect(self._show_step)
        self._show_sides()

    def next_change(self) -> None:
        """Go to the next change."""
        if self._shows_graph:
            self.graph.step(1)
        else:
            self._diff.next_change()

    def previous_change(self) -> None:
        """Go to the previous change."""
        if self._shows_graph:
            self.graph.step(-1)
        else:
            self._diff.previous_change()

    def show_only(self, name: str) -> None:
        """Show the functions with this in their name, until the sides are others."""
        self.page.set_only(name)

    @property
    def _shows_graph(self) -> bool:
        return self.pages.currentWidget() is self.graph

    @property
    def _shows_code(self) -> bool:
        return self.pages.currentWidget() is self.code

    @property
    def _diff(self) -> DiffView:
        return self.code.diff if self._shows_code else self.page.diff

    # Slots

    def _step_back(self) -> None:
        self._stepping.pause()
        self._stepping.step(-1)

    def _step_on(self) -> None:
        self._stepping.pause()
        self._stepping.step(1)

    def _set_kind(self, key: str) -> None:
        if key == "graph":
            self.graph.show_sides(self.page.relax_function)
            self.pages.setCurrentWidget(self.graph)
        elif key in ("llvm", "asm"):
            self._view = key
            self.pages.setCurrentWidget(self.code)
            self._show_code(self.page.diff.current_part())
        else:
            self.page.set_kind("tensorir" if key == "tensorir" else "relax")
            self.pages.setCurrentWidget(self.page)
        self._switches.setCurrentWidget(self.all_nodes if key == "graph" else self.columns)
        self._show_record()

    def _set_columns(self, key: str) -> None:
        self.columns.set_current(key)
        for page in (self.page, self.code):
            page.diff.set_unified(key == "one")
        self._show_labels()

    def _choose_columns(self, key: str) -> None:
        self._columns = key
        self._set_columns(key)

    def toggle_columns(self) -> None:
        """Show both sides in one column, or in two."""
        self._choose_columns("two" if self.columns.current() == "one" else "one")

    def _press(self, key: str) -> None:
        if key == "unified":
            self.toggle_columns()
        elif key == "play":
            self._stepping.play_or_pause()
        else:
            self.filter_wanted.emit()

    def _explain(self) -> None:
        record = self.page.record
        if record is not None and record.fused:
            self.why_wanted.emit(*record.fused)

    def _show_nodes(self, key: str) -> None:
        self.graph.set_all(key == "all")

    def _switch_same(self) -> None:
        self.page.set_all(not self.page.shows_all)

    def _show_function(self, name: str) -> None:
        if self._shows_graph:
            self.graph.show_sides(name)
        elif self._shows_code:
            self._show_code(name)
        else:
            self.page.diff.show_part(name)
        self.chips.set_current(name)

    def _show_code(self, name: str) -> None:
        """Compare the code of a function, or of the first one that changed."""
        names = [each.name for each in self.page.changed("tensorir")]
        name = name if name in names else names[0] if names else ""
        self.code.show_code(name, "asm" if self._view == "asm" else "llvm")
        self.chips.set_current(name)

    def _show_sides(self) -> None:
        self.page.show_sides()
        self.graph.show_sides(self.page.relax_function)
        self._show_step()
        if self.page.is_current:
            # One of them may have been pinned or unpinned.
            self._show_labels()
        self._show_veil()

    def _show_veil(self) -> None:
        """Dim a difference that is not the one that is wanted, and say what is awaited."""
        document = self._document
        shown, wanted = document.recipe, document.wanted
        page = self.graph if self._shows_graph else self.page
        words = ""
        if shown is not None and wanted is not None and shown != wanted:
            same = shown.source == wanted.source
            words = _("Passes are running…") if same else _("Opening…")
        elif page.record is not None and not page.is_current:
            words = _("Comparing…")
        self.veil.set_text(words)

    def _show_step(self) -> None:
        stepping, line = self._stepping, self._stepping.line
        if self._pins.first is not None:
            words = _("Comparison")
        elif stepping.moment is None:
            words = _("All passes")
        elif line is None:
            words = _("Before the first step")
        else:
            time = "" if line.milliseconds is None else f"  {duration_text(line.milliseconds)}"
            words = f"{line.label} {line.title}{time}"
        self.title.set_whole(words)
        self.earlier.setEnabled(stepping.can_step(-1))
        self.later.setEnabled(stepping.can_step(1))

    def _ask_ahead(self) -> None:
        """Have the next step's difference computed while this one is shown and read."""
        here = self._stepping.moment
        index = 0 if here is None else here.index
        if index != self._index:
            self._way, self._index = (1 if index > self._index else -1), index
        following = self._stepping.moment_at(self._way)
        if following.section not in APART:
            self.page.ask_ahead(following)

    def _take_record(self) -> None:
        if self._shows_code:
            self._show_code(self.code.name)
        self._show_record()

    def _show_record(self) -> None:
        record, page = self.page.record, self.page
        shown = "graph" if self._shows_graph else self._view if self._shows_code else page.kind
        self.kinds.set_current(shown)
        why = _("Why?") if record is not None and record.fused else ""
        self.sentence.set_sentence(self._sentence(), page.groups(), why)
        functions = page.shown_functions()
        if shown in ("graph", "llvm", "asm"):
            functions = page.changed("relax" if shown == "graph" else "tensorir")
        self.chips.set_chips([_chip(each) for each in functions])
        unchanged = len(page.functions(page.kind)) - len(page.changed(page.kind))
        is_text = self.pages.currentWidget() is page
        self.same.setVisible(record is not None and unchanged > 0 and is_text)
        more = _("hide") if page.shows_all else _("show")
        words = _n("1 unchanged", "{count} unchanged", unchanged)
        self.same.setText(labelled(words, more))
        self.footer.set_script(is_text)
        self._show_legend(any(each.moved_in or each.moved_out for each in functions))
        self._show_labels()
        self._show_veil()

    def _show_legend(self, moved: bool) -> None:
        marks = [_("+ added"), _("− removed"), _("~ changed")]
        if moved:
            marks.append(_("↪ moved between functions"))
        keys = _("F8 next change   F10 next step")
        self.footer.figure.set_whole(f"{'   '.join(marks)}   ·   {keys}")

    def _sentence(self) -> str:
        record, line = self.page.record, self._stepping.line
        if record is None:
            return "" if line is None else line.error
        differs = any(each.status != "same" for each in record.functions)
        return record.sentence or (_("Differences between the two sides.") if differs else "")

    def _show_labels(self) -> None:
        record = self.graph.record if self._shows_graph else self.page.record
        is_step = self.page.record is not None and bool(self.page.record.sentence)
        line = self._stepping.line
        texts = []
        for caption, text, side in (
            (_("Before"), "" if record is None else record.old_label, 0),
            (_("After"), "" if record is None else record.new_label, 1),
        ):
            pinned = self._pins.first if side == 0 else self._pins.second
            if pinned is not None:
                text = _("{text} · pinned", text=text)
            elif is_step and line is not None and text:
                text = caption if side == 0 else f"{caption} · {line.label} {line.title}"
            texts.append(text)
        old, new = texts
        in_one = self._shows_graph or self.columns.current() == "one"
        self.old_label.setVisible(not in_one)
        self.old_label.set_whole(old)
        self.new_label.set_whole(f"{old} → {new}" if in_one and record is not None else new)
        self._show_place()

    def _show_place(self) -> None:
        place, count = (0, self.graph.changes()) if self._shows_graph else self._diff.change()
        changes = _n("1 change", "{count:,} changes", count)
        if place:
            changes = _("change {place:,} of {count:,}", place=place, count=count)
        self.figure.setText(changes)
        for button in (self.previous, self.following):
            button.setEnabled(count > 0)
        if self.pages.currentWidget() is self.page:
            self.chips.set_current(self.page.diff.current_part())

    # Construction

    def _label(self) -> PartsLabel:
        # Its end names the step: the rest is often the same on both sides.
        label = PartsLabel(keep_last=True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return label

    def _lay_out(self) -> None:
        header, row, labels = QWidget(), QWidget(), QWidget()
        row_of(
            header,
            self.earlier,
            self.later,
            6,
            (self.title, 4),
            self.kinds,
            STRETCH,
            self._switches,
            self.compare,
            self.save,
            margins=(8, 3, 8, 3),
            spacing=4,
        )
        header.setFixedHeight(34)
        row_of(
            row,
            (self.chips, 1),
            self.same,
            self.figure,
            self.previous,
            self.following,
            margins=(10, 0, 8, 0),
            spacing=6,
        )
        row.setFixedHeight(34)
        row_of(labels, (self.old_label, 1), (self.new_label, 1), margins=(12, 0, 12, 0), spacing=14)
        labels.setFixedHeight(26)
        for bar in (header, row, labels):
            bar.setProperty("edge", "bottom")
            bar.setProperty("ground", "panel")
            bar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        body, content = QWidget(), QWidget()
        column_of(content, self.sentence, row, labels, (self.pages, 1))
        layers = QGridLayout(body)
        layers.setContentsMargins(0, 0, 0, 0)
        for each in (content, self.veil):
            layers.addWidget(each, 0, 0)
        column_of(self, header, (body, 1), self.footer)

    # Qt

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.window().width() < NARROW
        if narrow != self._is_narrow:
            self._is_narrow = narrow
            self._set_columns("one" if narrow else self._columns)


def _chip(function: FunctionDifference) -> Chip:
    mark = "" if function.status == "same" else STATUS_MARKS[function.status]
    role = ROLES[function.status] or "unsure"
    counts = function_counts(function) if function.status == "changed" else []
    return Chip(function.name, mark, role, tuple(counts))
