"""The loop tree of the scheduled function, with its buffers."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.views.schedule_rows import tree_rows
from lowerscope.app.widgets.table_model import Column
from lowerscope.app.widgets.tree_table import TreeTable
from lowerscope.app.workbench.scheduling import Scheduling


class ScheduleTree(TreeTable):
    """Nested loops and blocks; the selection is shared with the script."""

    def __init__(
        self, document: Document, scheduling: Scheduling, parent: QWidget | None = None
    ) -> None:
        super().__init__(
            self.tr("Loop tree"),
            (
                Column(self.tr("loop or block"), stretch=True),
                Column(self.tr("extent"), numeric=True, width=78),
                Column(
                    self.tr("kind"), width=112, tooltip=self.tr("With annotations; of blocks: axes")
                ),
            ),
            parent,
        )
        self._document = document
        self._scheduling = scheduling
        self.setToolTip(self.tr("S opens the moves of what is selected, Return goes to their list"))
        self.rows_selected.connect(self._select)
        scheduling.changed.connect(self._show)
        document.on(("selection", "snapshot"), self._show_selection)
        self._show()

    def _show(self) -> None:
        scheduling = self._scheduling
        record = scheduling.record
        if record is None:
            problem = scheduling.problem
            if problem is not None:
                self.empty.set_text(problem.headline, problem.todo)
            elif not scheduling.function:
                self.empty.set_text(
                    self.tr("No function to schedule"),
                    self.tr("Select a TensorIR function, or a node that has one."),
                )
            else:
                self.empty.set_text(self.tr("Reading {0}…").format(scheduling.function), "")
        self.set_rows(() if record is None else tree_rows(record))
        self._show_selection()

    def _show_selection(self) -> None:
        self.set_selection(self._document.selection.chosen)

    def _select(self, keys: list[str]) -> None:
        function = f"tir:{self._scheduling.function}"
        chosen = [key for key in keys if key.startswith(f"{function}/")]
        self._document.select(chosen or (function,))

    # Qt overrides

    def keyPressEvent(self, event: QKeyEvent) -> None:
        plain = event.modifiers() == Qt.KeyboardModifier.NoModifier
        if plain and event.key() == Qt.Key.Key_S:
            self.open_menu()
        else:
            super().keyPressEvent(event)
