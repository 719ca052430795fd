"""Commands that export: several artifacts, a single one, or a picture of a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.kit.commands import Command, Host
from lowerscope.app.kit.dialogs import Question
from lowerscope.app.panes.export.exports import Exporting, Order
from lowerscope.core.files.atomic_write import atomic_file
from lowerscope.core.model.artifacts import EXISTS, PAINTED, PICTURES, ExportRecord, Wanted
from lowerscope.core.model.module_steps import DifferenceRecord, Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.texts import _, _n

if TYPE_CHECKING:
    from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
    from lowerscope.app.panes.common.graph_page import GraphPage
    from lowerscope.app.panes.export.export_dialog import ExportDialog


class ExportCommands(QObject):
    """Export commands of the menus and the panes."""

    def __init__(
        self,
        host: Host,
        document: Document,
        queries: Queries,
        canvas: Callable[[], GraphCanvas | None],
        difference: Callable[[], DifferenceRecord | None],
    ) -> None:
        super().__init__(host.widget)
        self._host = host
        self._document = document
        self._queries = queries
        self._canvas = canvas
        self._difference = difference
        self._exporting = Exporting(document, queries, self)
        self._exporting.done.connect(self._say)
        self._exporting.refused.connect(self._refuse)
        self._order: Order | None = None
        self.dialog: ExportDialog | None = None  # The last dialog opened.

    def commands(self) -> tuple[Command, ...]:
        return (
            Command(
                "export-files",
                _("E&xport…"),
                self.choose,
                "Ctrl+Shift+X",
                enabled=self._document.is_open,
            ),
            Command(
                "export-function",
                _("Export the &function…"),
                self.export_function,
                enabled=self._document.is_open,
            ),
            Command(
                "export-step",
                _("Export the module of &the step…"),
                self.export_step,
                enabled=self._document.is_open,
            ),
            Command("save-patch", _("Save the difference as a &patch…"), self.save_patch),
        )

    def picture_commands(self) -> tuple[Command, ...]:
        return (
            Command(
                "save-picture",
                _("Save &picture…"),
                self.save_picture,
                enabled=self._document.is_open,
            ),
            Command(
                "save-picture-seen",
                _("Save picture of the v&isible part…"),
                self.save_seen,
                enabled=self._document.is_open,
            ),
        )

    # Exports by the worker

    def choose(self) -> None:
        """Open the dialog."""
        from lowerscope.app.panes.export.export_dialog import choose_exports

        self.dialog = choose_exports(
            self._document, self._queries, self._folder(), self._host.widget
        )

    def export_function(self) -> None:
        """Export the selected function, after all steps."""
        chosen = [
            each
            for each in (*self._document.selection.chosen, *sorted(self._linked()))
            if each.startswith("tir:") and "/" not in each
        ]
        if chosen:
            self.export_named(chosen[0])
        else:
            text = _("Select the TensorIR function to export")
            self._document.notify(text, "info")

    def _linked(self) -> frozenset[str]:
        return frozenset(self._document.selection.linked)

    def export_named(self, entity: str) -> None:
        """Export the function with an id."""
        name = entity.partition(":")[2]
        self._ask(Wanted(name="function", which=name), _("Export the function"))

    def export_step(self) -> None:
        """Export the module at the current step, or after all steps."""
        self.export_moment(self._document.module_moment)

    def export_moment(self, moment: Moment | None) -> None:
        """Export the module at a step of the passes, or after all steps."""
        document = self._document
        snapshot = document.snapshot
        if moment is not None and moment.section != "passes":
            text = _("Modules are exported after passes: choose a step of Passes")
            document.notify(text, "info")
        elif moment is None or snapshot is None:
            self._ask(Wanted(name="module"), _("Export the module"))
        else:
            label = next(
                (each.label for each in snapshot.passes if each.number == moment.index), "0"
            )
            self._ask(Wanted(name="step", which=label), _("Export the module of the step"))

    def _ask(self, wanted: Wanted, title: str) -> None:
        """Select a folder in a dialog, and export one artifact to it."""
        document = self._document
        if document.snapshot is None or self._exporting.is_busy:
            return
        folder = QFileDialog.getExistingDirectory(self._host.widget, title, self._folder())
        if folder and not self._exporting.is_busy:
            self._order = Order(wanted=(wanted,), folder=folder)
            document.say(_("Exporting"), of="export", cancel=self._exporting.cancel)
            self._exporting.begin(self._order)

    def _say(self, record: ExportRecord) -> None:
        document = self._document
        document.say("", of="export")
        if record.left_out:
            document.notify("; ".join(record.left_out), "wrong")
        elif len(record.paths) == 1:
            document.notify(_("Exported {path}", path=record.paths[0]), "info")
        else:
            text = _n(
                "Exported {count} file to {folder}",
                "Exported {count} files to {folder}",
                len(record.paths),
                folder="" if self._order is None else self._order.folder,
            )
            document.notify(text, "info")

    def _refuse(self, problem: Problem) -> None:
        document, order = self._document, self._order
        document.say("", of="export")
        if problem.code == EXISTS and order is not None:
            names = ", ".join(problem.choices[:3])
            names = f"{names} …" if len(problem.choices) > 3 else names
            text = _n(
                "{names} already exists. Overwrite it?",
                "{names} already exist. Overwrite them?",
                len(problem.choices),
                names=names,
            )
            question = Question(_("Export"), text, _("Overwrite"), parent=self._host.widget)
            self._order = replace(order, replacing=problem.choices)
            question.accepted.connect(self._overwrite)
            question.open()
        elif problem.code != "cancelled":
            document.report(problem)

    def _overwrite(self) -> None:
        if self._order is not None:
            self._exporting.begin(self._order)

    def _folder(self) -> str:
        """Return the initial folder of exports: beside the one used last."""
        return "" if self._order is None else self._order.folder

    # Files written by the window itself

    def save_patch(self) -> None:
        """Save the difference shown, in the format of ``diff -u``."""
        from lowerscope.core.model.line_difference import unified_text

        record = self._difference()
        if record is None:
            text = _("No difference is shown: choose Compare with, or a step")
            self._document.notify(text, "info")
            return
        path, _filter = QFileDialog.getSaveFileName(
            self._host.widget,
            _("Save the difference"),
            "difference.patch",
            _("Patches (*.patch *.diff)"),
        )
        if path:
            self._write(path, lambda file: file.write_text(unified_text(record) + "\n", "utf-8"))

    def save_picture(self) -> None:
        """Save the focused graph, or else the first visible one."""
        canvas = self._canvas()
        if canvas is not None:
            self._save_canvas(canvas, seen=False)

    def save_seen(self) -> None:
        """Save the visible part of that graph."""
        canvas = self._canvas()
        if canvas is not None:
            self._save_canvas(canvas, seen=True)

    def save_page(self, page: GraphPage, seen: bool) -> None:
        """Save the graph of a page, or its visible part."""
        self._save_canvas(page.canvas, seen=seen)

    def _save_canvas(self, canvas: GraphCanvas, *, seen: bool) -> None:
        if not canvas.graph().boxes:
            return
        from lowerscope.app.kit.canvas.graph_painting import write_picture
        from lowerscope.core.files.graph_formats import TEXT_FORMATS

        kinds = _(
            "SVG (*.svg);;PDF (*.pdf);;PNG (*.png);;"
            "Graphviz (*.dot);;GraphML (*.graphml);;Node-link JSON (*.json)"
        )
        title = _("Save picture")
        path, chosen = QFileDialog.getSaveFileName(self._host.widget, title, "graph.svg", kinds)
        if not path:
            return
        kind = Path(path).suffix.lower().removeprefix(".")
        if kind not in PICTURES:
            kind = chosen.rpartition(".")[2].rstrip(")") or "svg"
            path = f"{path}.{kind}"
        if kind in PAINTED:
            painter, area = canvas.picture(seen=seen)
            name = Path(path).stem
            self._write(path, lambda file: write_picture(painter, area, file, kind, name))
        else:
            text = TEXT_FORMATS[kind](canvas.graph(), "graph")
            self._write(path, lambda file: file.write_text(text, "utf-8"))

    def _write(self, path: str, write: Callable[[Path], object]) -> None:
        document = self._document
        try:
            with atomic_file(Path(path)) as made:
                write(made)
        except OSError as error:
            what = _("it cannot be written: {strerror}", strerror=error.strerror or error)
            document.report(Problem(what=what, where=path))
        else:
            document.notify(_("Saved {path}", path=path), "info")
