"""The page Memory: the storages of the last run, and the tensors in them."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt

from lowerscope.app.document.document import Document
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.pane import SeenPage
from lowerscope.app.kit.split import Split
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.run.calls_strip import CallsStrip
from lowerscope.app.panes.run.runs import Runs
from lowerscope.core.model.formatting import bytes_text, shape_text
from lowerscope.core.model.run_records import NOT_THERE, MemoryRecord, RunRecord
from lowerscope.core.model.texts import _, capitalized


def memory_rows(memory: MemoryRecord, record: RunRecord) -> Iterator[Row]:
    """Yield a row for each tensor that a run allocates; those of the largest storage first."""
    storages = sorted(memory.storages, key=lambda each: -each.size)
    for number, storage in enumerate(storages, start=1):
        for tensor in storage.tensors:
            maker = record.calls[tensor.written].function
            written, last = tensor.written + 1, tensor.last + 1
            kept = _("{written} to {last}", written=written, last=last)
            kept = str(written) if written == last else kept
            yield Row(
                f"{number}:{tensor.name}:{tensor.written}",
                (
                    Cell(tensor.name, bold=True),
                    Cell(f"{shape_text(tensor.shape)} {tensor.dtype}", "quiet"),
                    Cell(bytes_text(tensor.size), value=tensor.size),
                    Cell(str(number), value=number),
                    Cell(bytes_text(storage.size), value=storage.size),
                    Cell(kept, value=tensor.written),
                    Cell(maker, "quiet", tooltip=maker),
                    Cell(_("returned") if tensor.returned else "", "quiet"),
                ),
            )


class MemoryPage(SeenPage):
    """The memory over time with its storages, above a table of the tensors."""

    def __init__(self, document: Document, runs: Runs) -> None:
        super().__init__()
        self._runs = runs
        self.calls = CallsStrip(document, runs, with_pieces=True)
        self.table = Table(
            _("Tensors allocated by the run"),
            (
                Column(_("tensor"), width=110),
                Column(_("shape"), width=140),
                Column(_("size"), numeric=True, width=80, falling=True),
                Column(_("storage"), numeric=True, width=70, tooltip=_("Largest first")),
                Column(_("storage size"), numeric=True, width=80, falling=True),
                Column(
                    _("calls"),
                    numeric=True,
                    width=90,
                    tooltip=_("The call that writes it, and the last one that reads it"),
                ),
                Column(_("written by"), width=120, stretch=True),
                Column("", width=72),
            ),
        )
        self.table.set_sortable(True)
        down = Qt.Orientation.Vertical
        split = Split(down, self.calls, self.table, sizes=(200, 300), shares=(0, 1))
        column_of(self, (split, 1))
        document.on(("snapshot", "run", "running"), self.show_if_seen)

    def show_content(self) -> None:
        record = self._runs.newest
        if record is None:
            return
        if record.ran_on:
            self.table.set_empty(_("It ran on {ran_on}", ran_on=record.ran_on), NOT_THERE)
        else:
            self.table.set_empty(_("No memory is allocated"), capitalized(record.memory.reason))
        self.table.set_rows(tuple(memory_rows(record.memory, record)))
