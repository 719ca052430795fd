"""The command palette: commands, nodes, functions, passes and lines, found as one types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QTreeWidgetItem
from shiboken6 import isValid

from lowerscope.app import theme
from lowerscope.app.palette_entries import Entry, PaletteEntries
from lowerscope.app.views.help_key import offer_help
from lowerscope.app.widgets.finder import Finder
from lowerscope.app.widgets.plain_text import markup
from lowerscope.core.errors import Problem
from lowerscope.core.model.queries import CatalogueQuery
from lowerscope.core.records.passes import PassType

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow

SIZE = (720, 480)


def open_palette(window: MainWindow) -> None:
    """Open the palette over the window."""
    palette = Palette(window)
    palette.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    palette.open()


class Palette(Finder):
    """A search field above the matching entries."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(3, window)
        self.setWindowTitle(self.tr("All commands"))
        self._entries = PaletteEntries(window)
        self._shown: list[Entry] = []
        self.line.setPlaceholderText(self.tr("Type a part of a name"))
        self.line.setAccessibleName(self.tr("Find a command, node, function, pass or line"))
        self.rows.setAccessibleName(self.tr("What fits"))
        self.rows.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.empty.set_text(
            self.tr("No match"),
            self.tr("Try a part of the word. Lines are those of the texts that are in view."),
        )
        self.hint.setText(
            markup(
                self.tr(
                    "<b>&gt;</b> commands{0}<b>@</b> nodes{0}<b>#</b> functions{0}<b>%</b> passes"
                    "{0}<b>:</b> lines in view, <b>:120</b> by number"
                ),
                "\N{NO-BREAK SPACE}" * 5,
            )
        )
        self.line.textChanged.connect(self._filter)
        self.line.returnPressed.connect(self._run)
        self.rows.itemActivated.connect(self._run)
        offer_help(self, "window#without-a-mouse")
        self.resize(*SIZE)
        self._filter("")
        if window.document.recipe is not None:
            query = CatalogueQuery(window.document.recipe)
            window.features.queries.ask(query, self._take_passes, self._go_without_passes)

    def shown(self) -> list[Entry]:
        """Return the matching entries, in order."""
        return list(self._shown)

    def _take_passes(self, types: tuple[PassType, ...]) -> None:
        # It may have been closed meanwhile.
        if isValid(self):
            self._entries.add_pass_types(types)
            self._filter(self.line.text())

    def _go_without_passes(self, _problem: Problem) -> None:
        """Offer the passes of the pipeline only; the dialog that adds a pass shows the problem."""

    def _filter(self, text: str) -> None:
        self._shown = self._entries.find(text)
        self.rows.clear()
        items = [QTreeWidgetItem([each.title, each.where, each.keys]) for each in self._shown]
        for item, entry in zip(items, self._shown, strict=True):
            item.setDisabled(not entry.enabled)
            item.setToolTip(0, entry.title)
            for column in (1, 2):
                item.setForeground(column, QColor(theme.current().quiet))
        self.rows.addTopLevelItems(items)
        first = next((item for item in items if not item.isDisabled()), None)
        if first is not None:
            self.rows.setCurrentItem(first)
        self.show_found(bool(items))

    def _run(self) -> None:
        item = next(iter(self.rows.selectedItems()), None)
        if item is None or item.isDisabled():
            return
        entry = self._shown[self.rows.indexOfTopLevelItem(item)]
        self.accept()
        entry.act()
