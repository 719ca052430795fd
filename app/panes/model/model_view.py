"""The outline: modules, functions, parameters, inputs and outputs; and its strip when closed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QGuiApplication, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import (
    QAbstractButton,
    QMenu,
    QSizePolicy,
    QStackedWidget,
    QStyle,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.selection import EXTENDING
from lowerscope.app.kit import theme
from lowerscope.app.kit.buttons import IconButton, icon
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.tables.data_table import Index, WholeWords, draw_line
from lowerscope.app.kit.typefaces import TextMetrics, ui_font
from lowerscope.app.panes.common.descriptions import nothing_words
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.snapshot import FunctionRecord, ModuleRecord, Snapshot
from lowerscope.core.model.texts import _, _n

ROW_HEIGHT, SECTION_HEIGHT = 24, 32
_LEFT, _GAP, _RIGHT = 4, 10, 8
ENTITY = Qt.ItemDataRole.UserRole
NOTE = int(ENTITY) + 1
"""Item data role of the quiet text at the right of a row."""


class ModelView(Pane):
    """The pane with the parts of the model."""

    export_wanted = Signal(str)  # Export a function: its id.
    close_wanted = Signal()

    def __init__(self, document: Document) -> None:
        super().__init__(_("Outline"))
        self._document = document
        self._items: dict[str, QTreeWidgetItem] = {}
        self._folded: set[str] = set()  # Titles of sections.
        self._functions: tuple[str, ...] = ()  # Ids of those that are listed.
        self.tree = QTreeWidget()
        self.tree.setAccessibleName(_("Parts of the model"))
        self.tree.setItemDelegate(_PartDelegate(self.tree))
        self.tree.setHeaderHidden(True)
        self.tree.setIndentation(12)
        self.tree.setProperty("inset", True)
        self.tree.setRootIsDecorated(True)
        self.tree.setExpandsOnDoubleClick(True)
        self.tree.setSelectionMode(QTreeWidget.SelectionMode.ExtendedSelection)
        self.tree.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.empty = EmptyState()
        self._either = QStackedWidget()
        self._either.addWidget(self.tree)
        self._either.addWidget(self.empty)
        self._either.setFocusProxy(self.tree)
        self.add_page("model", _("Outline"), self._either)
        close = IconButton("left", _("Close the outline (O)"))
        close.clicked.connect(self.close_wanted)
        self.add_corner(close)
        self.tree.itemClicked.connect(self._fold)
        self.tree.itemSelectionChanged.connect(self._select)
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.tree.customContextMenuRequested.connect(self._open_menu)
        document.on(("snapshot", "nothing"), self._show_snapshot)
        document.on(("links",), self._show_functions)
        document.on(("selection", "snapshot"), self._show_selection)
        theme.notifier().changed.connect(self._show_snapshot)
        self._show_snapshot()

    def _show_snapshot(self) -> None:
        self.tree.blockSignals(True)
        self.tree.clear()
        self._items = {}
        snapshot = self._document.snapshot
        self._either.setCurrentWidget(self.empty if snapshot is None else self.tree)
        if snapshot is None:
            self.empty.set_text(*nothing_words(self._document))
        else:
            self._add_modules(snapshot)
            self._add_functions(snapshot)
            recipe = self._document.recipe
            file = "" if recipe is None else PurePath(recipe.source.params).name
            self._add_section(
                _("Parameters of {file}", file=file) if file else _("Parameters"),
                [
                    (each.id, each.name, shape_text(each.shape))
                    for each in snapshot.model.parameters
                ],
            )
            self._add_section(
                _("Constants"),
                [(each.id, each.name, shape_text(each.shape)) for each in snapshot.constants],
            )
            self._add_section(
                _("Inputs and outputs"),
                [
                    (node.id, node.title, shape_text(node.shape))
                    for node in snapshot.fx
                    if node.opcode in ("placeholder", "output")
                ],
            )
        self.tree.blockSignals(False)
        self._show_selection()

    def _add_functions(self, snapshot: Snapshot) -> None:
        """Add the functions of the current step; those after all steps, without one."""
        links, places = self._document.links, {node.id: at for at, node in enumerate(snapshot.fx)}
        functions = links.functions_at_step or snapshot.functions
        self._functions = tuple(each.id for each in functions)
        rows = []
        for each in functions:
            nodes = sorted(places[node] for node in links.of(each.id) if node in places)
            titles = [snapshot.fx[place].title for place in nodes]
            rows.append((each.id, each.name, _origin(each, titles)))
        self._add_section(_("Functions"), rows)

    def _show_functions(self) -> None:
        snapshot = self._document.snapshot
        functions = self._document.links.functions_at_step
        if snapshot is not None and self._functions != tuple(
            each.id for each in functions or snapshot.functions
        ):
            self._show_snapshot()

    def _add_modules(self, snapshot: Snapshot) -> None:
        modules = snapshot.model.modules
        if not modules:
            return
        root = modules[0].parameters
        note = _n("{count:,} parameter", "{count:,} parameters", root) if root else ""
        section = self._section(_("Modules"), note)
        parents = {"": section}
        for module in modules:
            parent = parents.get(module.path.rpartition(".")[0], section)
            item = self._item(parent, module.id, _module_name(module), _module_size(module))
            item.setToolTip(0, f"{module.path or snapshot.model.title}: {module.kind}")
            parents[module.path] = item
            # Only the root's children are visible at first.
            item.setExpanded(not module.path)

    def _add_section(self, title: str, rows: list[tuple[str, str, str]]) -> None:
        if not rows:
            return
        section = self._section(title, f"{len(rows):,}")
        for entity, name, note in rows:
            self._item(section, entity, name, note)

    def _section(self, title: str, note: str) -> QTreeWidgetItem:
        item = QTreeWidgetItem(self.tree, [title])
        item.setData(0, NOTE, note)
        item.setFlags(Qt.ItemFlag.ItemIsEnabled)
        item.setFont(0, ui_font(11.5, QFont.Weight.Medium))
        item.setForeground(0, QColor(theme.current().quiet))
        item.setSizeHint(0, QSize(0, SECTION_HEIGHT))
        item.setExpanded(title not in self._folded)
        return item

    def _fold(self, item: QTreeWidgetItem) -> None:
        """Fold or unfold a section; it stays so when the tree is built anew."""
        if item.parent() is None:
            item.setExpanded(not item.isExpanded())
            (self._folded.discard if item.isExpanded() else self._folded.add)(item.text(0))

    def _item(self, parent: QTreeWidgetItem, entity: str, name: str, note: str) -> QTreeWidgetItem:
        item = QTreeWidgetItem(parent, [name])
        item.setData(0, ENTITY, entity)
        item.setData(0, NOTE, note)
        item.setToolTip(0, name)
        item.setSizeHint(0, QSize(0, ROW_HEIGHT))
        self._items[entity] = item
        return item

    def _show_selection(self) -> None:
        selection = self._document.selection
        self.tree.blockSignals(True)
        self.tree.clearSelection()
        for entity in selection.linked:
            if entity in self._items:
                self._items[entity].setSelected(True)
        chosen = [entity for entity in selection.chosen if entity in self._items]
        if chosen:
            self.tree.scrollToItem(self._items[chosen[0]])
        self.tree.blockSignals(False)

    def _open_menu(self, place: QPoint) -> None:
        item = self.tree.itemAt(place)
        entity = "" if item is None else str(item.data(0, ENTITY) or "")
        snapshot = self._document.snapshot
        functions = () if snapshot is None else snapshot.functions
        if all(each.id != entity or each.kind == "external" for each in functions):
            return
        menu = QMenu(self.tree)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(_("Export the function…"), partial(self.export_wanted.emit, entity))
        menu.popup(self.tree.viewport().mapToGlobal(place))

    def _select(self) -> None:
        current = self.tree.currentItem()
        entity = current.data(0, ENTITY) if current is not None else None
        if entity:
            extend = bool(QGuiApplication.keyboardModifiers() & EXTENDING)
            self._document.select((entity,), extend=extend)


class _PartDelegate(WholeWords):
    """Delegate that paints a row's name at the left and its note at the right.

    Where there is no room for both, the note is elided first, to a third of the row.
    """

    def _measure(
        self, option: QStyleOptionViewItem, index: Index
    ) -> tuple[str, str, TextMetrics, float, float]:
        """Return a row's name and note, their metrics, and the widths that they get."""
        self.initStyleOption(option, index)
        text, note = option.text, str(index.data(NOTE) or "")
        metrics, room = TextMetrics(option.font), option.rect.width() - _LEFT - _RIGHT
        if not note:
            return text, note, metrics, room, 0.0
        spare = room - _GAP - metrics.horizontalAdvance(text)
        of_note = min(metrics.horizontalAdvance(note), max(spare, room / 3))
        return text, note, metrics, room - _GAP - of_note, of_note

    def cut_words(self, option: QStyleOptionViewItem, index: Index) -> str:
        text, note, metrics, width, of_note = self._measure(option, index)
        if metrics.horizontalAdvance(text) > width:
            return text
        return note if metrics.horizontalAdvance(note) > of_note else ""

    # Qt

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        text, note, metrics, width, of_note = self._measure(option, index)
        if option.state & _MARKED:
            option.text = ""
            style, panel = option.widget.style(), QStyle.ControlElement.CE_ItemViewItem
            style.drawControl(panel, option, painter, option.widget)
        colours, font = theme.current(), option.font
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        own = colours.accent if selected else option.palette.color(QPalette.ColorRole.Text).name()
        room = QRectF(option.rect).adjusted(_LEFT, 0, -_RIGHT, 0)
        if note:
            quiet = colours.accent if selected else colours.quiet
            place = QRectF(room.right() - of_note, room.top(), of_note, room.height())
            draw_line(painter, place, note, font, quiet, right=True, metrics=metrics)
        room.setWidth(width)
        if metrics.horizontalAdvance(text) > width:
            text = _telling(text)
        middle = Qt.TextElideMode.ElideMiddle
        draw_line(painter, room, text, font, own, metrics=metrics, elide=middle)


def _telling(name: str) -> str:
    """Return a name without the ends that many functions have: elided, they would be alike."""
    return re.sub("^fused_", "…", name).removesuffix("_prepacked")


_MARKED = (
    QStyle.StateFlag.State_Selected
    | QStyle.StateFlag.State_MouseOver
    | QStyle.StateFlag.State_HasFocus
)
"""The states in which a row has a background or a frame."""


def _origin(function: FunctionRecord, nodes: Sequence[str]) -> str:
    if function.kind == "relax":
        return "Relax"
    if nodes:
        return nodes[0] if len(nodes) == 1 else f"{nodes[0]} + {len(nodes) - 1}"
    return (
        _("library")
        if function.kind == "external"
        else _n("{count:,} call", "{count:,} calls", len(function.calls))
    )


def _module_name(module: ModuleRecord) -> str:
    return module.path.rpartition(".")[2] or module.kind


def _module_size(module: ModuleRecord) -> str:
    return f"{module.parameters:,}" if module.parameters else "–"


class OutlineStrip(QAbstractButton):
    """A strip in place of the closed outline; a click opens it."""

    WIDTH = 36

    def __init__(self) -> None:
        super().__init__()
        self.setText(_("Outline"))
        self.setAccessibleName(_("Open the outline"))
        self.setToolTip(_("Open the outline (O)"))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        theme.notifier().changed.connect(self.update)

    # Qt

    def sizeHint(self) -> QSize:
        return QSize(self.WIDTH, 100)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        lit = self.underMouse() or self.hasFocus()
        painter.fillRect(self.rect(), QColor(colours.hover if lit else colours.panel))
        painter.fillRect(self.width() - 1, 0, 1, self.height(), QColor(colours.line))
        icon("right").paint(painter, 10, 9, 16, 16)
        painter.setFont(ui_font(12, QFont.Weight.Medium))
        painter.setPen(QColor(colours.accent if lit else colours.quiet))
        painter.translate(self.width() / 2 - 4, 36)
        painter.rotate(90)
        painter.drawText(0, 0, self.text())
