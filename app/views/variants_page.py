"""The page Variants: runs of one source side by side, in a table and as bars."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.runs.running import Runs
from lowerscope.app.views.variant_functions import VariantFunctions
from lowerscope.app.views.variant_rows import variant_bars, variant_columns, variant_row
from lowerscope.app.widgets.charts.bars import Bars
from lowerscope.app.widgets.pane import ElidedLabel
from lowerscope.app.widgets.split import Split
from lowerscope.app.widgets.table import Table
from lowerscope.core.records.variant import Variant, fastest

_SHARES = ((416, 292), (312, 396))
"""Shares of the width: the variants beside the bars, and beside the functions of two."""

NARROW = 520
"""Width in pixels below which the parts are stacked."""


class VariantsPage(QWidget):
    """The table of the cached runs; beside it their times, or the functions of two.

    Signals
    -------
    text_wanted(object, object, str)
        Show the difference of two recipes' scripts, in a function or in all.

    Parameters
    ----------
    set_busy
        Called with whether a request is pending.
    """

    text_wanted = Signal(object, object, str)

    def __init__(
        self,
        document: Document,
        queries: Queries,
        runs: Runs,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._variants = runs.variants
        self.run_all = QPushButton(self.tr("Run variants"))
        self.run_all.setToolTip(
            self.tr("Run high-level and TE, as they are and fused, and what is shown (Ctrl+F5)")
        )
        self.go_back = QPushButton(self.tr("Go back to it"))
        self.go_back.setToolTip(self.tr("Have its recipe, as one step of undo (Return)"))
        self.rename = QPushButton(self.tr("Rename"))
        self.rename.setToolTip(self.tr("Give it a name of your own (F2)"))
        self.delete = QPushButton(self.tr("Delete"))
        self.delete.setToolTip(self.tr("Keep it no more (Del)"))
        self.difference = QPushButton(self.tr("Difference"))
        self.difference.setToolTip(self.tr("How the scripts of both differ, line by line"))
        self.state = ElidedLabel()
        self.state.setProperty("role", "quiet")
        self.table = Table(self.tr("Variants"), variant_columns())
        self.table.set_sortable(True)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.set_empty(
            self.tr("No run yet"),
            self.tr("Each run (F5) of this source becomes a row; Run variants makes four."),
        )
        self.bars = Bars(self.tr("Times of the variants"))
        self.functions = VariantFunctions(queries, set_busy)
        self._beside = QStackedWidget()
        self._lay_out()
        for key, act in ((Qt.Key.Key_F2, self._rename), (Qt.Key.Key_Delete, self._delete)):
            shortcut = QShortcut(QKeySequence(key), self.table)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(act)
        self.run_all.clicked.connect(self._variants.run_all)
        self.go_back.clicked.connect(self._go_back)
        self.rename.clicked.connect(self._rename)
        self.delete.clicked.connect(self._delete)
        self.difference.clicked.connect(self._show_difference)
        self.table.row_activated.connect(self._variants.go_back)
        self.table.row_written.connect(self._variants.rename)
        self.table.customContextMenuRequested.connect(self._open_menu)
        self.table.selectionModel().selectionChanged.connect(self._follow_selection)
        self.functions.text_wanted.connect(self._want_text)
        self._variants.changed.connect(self._show_if_seen)
        document.on(("run", "running"), self._show_if_seen)
        document.on(("recipe", "pending"), self._show_if_seen)
        self._show()

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setContentsMargins(8, 4, 8, 4)
        bar.setSpacing(8)
        for button in (self.run_all, self.go_back, self.rename, self.delete):
            bar.addWidget(button)
        bar.addWidget(self.state, 1)
        bar.addWidget(self.difference)
        strip = QWidget()
        strip.setLayout(bar)
        strip.setProperty("edge", "bottom")
        strip.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        chart = QWidget()
        column = QVBoxLayout(chart)
        column.setContentsMargins(0, 4, 0, 4)
        column.addWidget(self.bars)
        column.addStretch(1)
        area = QScrollArea()
        # Its contents take the focus, and are scrolled to.
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(chart)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        self._beside.addWidget(area)
        self._beside.addWidget(self.functions)
        split = self._split = Split(Qt.Orientation.Horizontal)
        split.addWidget(self.table)
        split.addWidget(self._beside)
        for place, share in enumerate(_SHARES[0]):
            split.setStretchFactor(place, share)
            split.setCollapsible(place, False)
        split.setSizes(list(_SHARES[0]))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(strip)
        layout.addWidget(split, 1)

    def selected(self) -> list[str]:
        """Ids of the selected runs, if the page is visible."""
        return self.table.selected_keys() if self.isVisible() else []

    # Slots

    def _go_back(self) -> None:
        chosen = self.table.selected_keys()
        if len(chosen) == 1:
            self._variants.go_back(chosen[0])

    def _rename(self) -> None:
        chosen = self.table.selected_keys()
        if len(chosen) == 1:
            self.table.setFocus()
            self.table.write_row(chosen[0])

    def _delete(self) -> None:
        self._variants.remove(self.table.selected_keys())

    def _open_menu(self, position: QPoint) -> None:
        if not self.table.indexAt(position).isValid():
            return
        menu = QMenu(self)
        deeds = {}
        if len(self.table.selected_keys()) == 1:
            deeds[menu.addAction(self.tr("&Go back to it\tReturn"))] = self._go_back
            deeds[menu.addAction(self.tr("&Rename\tF2"))] = self._rename
        deeds[menu.addAction(self.tr("&Delete\tDel"))] = self._delete
        deeds[menu.addAction(self.tr("&Copy the rows\tCtrl+C"))] = self.table.copy
        # A command may replace the rows: run it once the menu is gone.
        chosen = menu.exec(self.table.viewport().mapToGlobal(position))
        menu.deleteLater()
        if chosen in deeds:
            deeds[chosen]()

    def _show_difference(self) -> None:
        self._want_text("")

    def _want_text(self, function: str) -> None:
        if self.functions.sides is not None:
            old, new = (each.recipe for each in self.functions.sides)
            self.text_wanted.emit(old, new, function)

    def _follow_selection(self) -> None:
        """Show the functions of two selected variants; otherwise the times."""
        chosen = self.table.selected_keys()
        for button in (self.go_back, self.rename):
            button.setEnabled(len(chosen) == 1)
        self.delete.setEnabled(bool(chosen))
        found = self._by_id()
        # In the order of their first run, however the table is sorted.
        two = [each for key, each in found.items() if key in chosen and each.record is not None]
        sides = (two[0], two[1]) if len(chosen) == len(two) == 2 else None
        self.functions.set_sides(sides)
        self.difference.setVisible(sides is not None)
        self.state.set_whole(self._state())
        page = 0 if sides is None else 1
        if page != self._beside.currentIndex():
            self._beside.setCurrentIndex(page)
            self._split.setSizes(list(_SHARES[page]))

    # Content

    def _show_if_seen(self) -> None:
        if self.isVisible():
            self._show()

    def _by_id(self) -> dict[str, Variant]:
        kept = self._variants.kept
        return {each.id: one for each, one in zip(kept, self._variants.all, strict=True)}

    def _show(self) -> None:
        variants = self._variants
        found = self._by_id()
        best, shown = fastest(tuple(found.values())), variants.shown
        self.table.set_rows(
            [
                variant_row(each, found[each.id], shown=each.id == shown, best=one in best)
                for each, one in zip(variants.kept, found.values(), strict=True)
            ]
        )
        self.bars.set_bars(variant_bars(tuple(found.values())))
        # The table shows a hint while there is nothing beside it.
        self._beside.setVisible(bool(found))
        open_, running = self._document.recipe is not None, self._document.running
        self.run_all.setEnabled(open_ and not running)
        self._follow_selection()

    def _state(self) -> str:
        if self._variants.running:
            return self.tr("Running; Cancel, in the status bar, stops it")
        if len(self._variants.kept) > 1:
            return self.functions.words() or self.tr("Select two to compare their functions")
        return ""

    # Qt overrides

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = self.width() < NARROW
        wanted = Qt.Orientation.Vertical if narrow else Qt.Orientation.Horizontal
        if self._split.orientation() != wanted:
            self._split.setOrientation(wanted)
            self._split.setSizes(list(_SHARES[self._beside.currentIndex()]))
            # They are in the menu of a row, with their keys.
            for button in (self.go_back, self.rename, self.delete):
                button.setVisible(not narrow)
