"""Commands that export: several artifacts, a single one, or a picture of a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog

from lowerscope.app.kit.commands import Command
from lowerscope.app.kit.dialogs import Question
from lowerscope.app.panes.export.exports import Exporting, Order
from lowerscope.app.panes.sessions.commands import layout_of
from lowerscope.core.files.atomic_write import atomic_file
from lowerscope.core.model.artifacts import EXISTS, PAINTED, PICTURES, ExportRecord, Wanted
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import LowerscopeError, Problem

if TYPE_CHECKING:
    from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
    from lowerscope.app.panes.export.export_dialog import ExportDialog
    from lowerscope.app.panes.fx.graph_page import GraphPage
    from lowerscope.app.shell.panes import Panes
    from lowerscope.app.shell.window import MainWindow


class ExportCommands(QObject):
    """Export commands of the menus and the panes.

    Attributes
    ----------
    dialog
        The last dialog opened.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._layout = partial(layout_of, window)
        self._exporting = Exporting(
            window.document,
            window.features.queries,
            self._layout,
            self,
        )
        self._exporting.done.connect(self._say)
        self._exporting.refused.connect(self._refuse)
        window.features.stop_wanted.connect(self._exporting.cancel)
        self._order: Order | None = None
        self.dialog: ExportDialog | None = None

    def commands(self) -> tuple[Command, ...]:
        """Return the commands, for the menu File."""
        tr = self._window.tr
        file = tr("&File")
        return (
            Command(
                "export-files",
                file,
                tr("E&xport…"),
                self.choose,
                "Ctrl+Shift+X",
                enabled=self._window.document.is_open,
            ),
            Command(
                "export-function",
                file,
                tr("Export the &function…"),
                self.export_function,
                enabled=self._window.document.is_open,
            ),
            Command(
                "export-step",
                file,
                tr("Export the module of &the step…"),
                self.export_step,
                enabled=self._window.document.is_open,
            ),
            Command("save-patch", file, tr("Save the difference as a &patch…"), self.save_patch),
        )

    def picture_commands(self) -> tuple[Command, ...]:
        """Return the commands, for the menu Graph."""
        tr = self._window.tr
        graph = tr("&Graph")
        return (
            Command(
                "save-picture",
                graph,
                tr("Save &picture…"),
                self.save_picture,
                enabled=self._window.document.is_open,
                separated=True,
            ),
            Command(
                "save-picture-seen",
                graph,
                tr("Save picture of what &is seen…"),
                self.save_seen,
                enabled=self._window.document.is_open,
            ),
        )

    def watch(self, panes: Panes) -> None:
        """Connect to the menus of the panes."""
        for page in (panes.fx.graph, panes.relax.graph):
            page.picture_wanted.connect(self._save_page)
        panes.pipeline.export_wanted.connect(self.export_moment)
        panes.model.export_wanted.connect(self.export_named)
        panes.difference.patch_wanted.connect(self.save_patch)

    # Exports by the worker

    def choose(self) -> None:
        """Open the dialog."""
        from lowerscope.app.panes.export.export_dialog import choose_exports

        window = self._window
        self.dialog = choose_exports(
            window.document,
            window.features.queries,
            self._folder(),
            self._layout,
            window,
        )

    def export_function(self) -> None:
        """Export the selected function, after all steps."""
        chosen = [
            each
            for each in (*self._window.document.selection.chosen, *sorted(self._linked()))
            if each.startswith("tir:") and "/" not in each
        ]
        if chosen:
            self.export_named(chosen[0])
        else:
            text = self._window.tr("Select the TensorIR function that is to be exported")
            self._window.document.notify(text, "info")

    def _linked(self) -> frozenset[str]:
        return frozenset(self._window.document.selection.linked)

    def export_named(self, entity: str) -> None:
        """Export the function with an id."""
        name = entity.partition(":")[2]
        self._ask(Wanted(name="function", which=name), self._window.tr("Export the function"))

    def export_step(self) -> None:
        """Export the module at the current step, or after all steps."""
        self.export_moment(self._window.document.moment)

    def export_moment(self, moment: Moment | None) -> None:
        """Export the module at a step of the passes, or after all steps."""
        document, tr = self._window.document, self._window.tr
        snapshot = document.snapshot
        if moment is not None and moment.section != "passes":
            text = tr("Modules are exported after passes: choose a step of Passes")
            document.notify(text, "info")
        elif moment is None or snapshot is None:
            self._ask(Wanted(name="module"), tr("Export the module"))
        else:
            label = next(
                (each.label for each in snapshot.passes if each.number == moment.index), "0"
            )
            self._ask(Wanted(name="step", which=label), tr("Export the module of the step"))

    def _ask(self, wanted: Wanted, title: str) -> None:
        """Select a folder in a dialog, and export one artifact to it."""
        window = self._window
        if window.document.snapshot is None or self._exporting.is_busy:
            return
        folder = QFileDialog.getExistingDirectory(window, title, self._folder())
        if folder and not self._exporting.is_busy:
            self._order = Order(wanted=(wanted,), folder=folder)
            window.document.say(window.tr("Exporting"), of="export")
            self._exporting.begin(self._order)

    def _say(self, record: ExportRecord) -> None:
        document, tr = self._window.document, self._window.tr
        document.say("", of="export")
        if record.left_out:
            document.notify("; ".join(record.left_out), "wrong")
        elif len(record.paths) == 1:
            document.notify(tr("Exported {0}").format(record.paths[0]), "info")
        else:
            text = tr("Exported {0} files to {1}")
            folder = "" if self._order is None else self._order.folder
            document.notify(text.format(len(record.paths), folder), "info")

    def _refuse(self, problem: Problem) -> None:
        window, order = self._window, self._order
        window.document.say("", of="export")
        if problem.code == EXISTS and order is not None:
            names = ", ".join(problem.choices[:3])
            text = window.tr("{0} is there already. Overwrite it?")
            if len(problem.choices) > 1:
                text = window.tr("{0} are there already. Overwrite them?")
                names = f"{names} …" if len(problem.choices) > 3 else names
            question = Question(
                window.tr("Export"), text.format(names), window.tr("Overwrite"), parent=window
            )
            self._order = replace(order, replacing=problem.choices)
            question.accepted.connect(self._overwrite)
            question.open()
        elif problem.code != "cancelled":
            window.document.report(problem)

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

        window, tr = self._window, self._window.tr
        panes = window.made_panes
        record = None if panes is None else panes.difference.page.record
        if record is None:
            text = tr("No difference is shown: choose Compare, or a step")
            window.document.notify(text, "info")
            return
        path, _ = QFileDialog.getSaveFileName(
            window, tr("Save the difference"), "difference.patch", tr("Patches (*.patch *.diff)")
        )
        if path:
            self._write(path, lambda file: file.write_text(unified_text(record) + "\n", "utf-8"))

    def save_picture(self) -> None:
        """Save the focused graph, or else the first visible one."""
        canvas = self._window.graphs.canvas()
        if canvas is not None:
            self._save_canvas(canvas, seen=False)

    def save_seen(self) -> None:
        """Save the visible part of that graph."""
        canvas = self._window.graphs.canvas()
        if canvas is not None:
            self._save_canvas(canvas, seen=True)

    def _save_page(self, page: GraphPage, seen: bool) -> None:
        self._save_canvas(page.canvas, seen=seen)

    def _save_canvas(self, canvas: GraphCanvas, *, seen: bool) -> None:
        window, tr = self._window, self._window.tr
        if not canvas.graph().boxes:
            return
        from lowerscope.app.kit.canvas.graph_painting import write_picture
        from lowerscope.core.export.graph_formats import TEXT_FORMATS

        kinds = tr(
            "SVG (*.svg);;PDF (*.pdf);;PNG (*.png);;"
            "Graphviz (*.dot);;GraphML (*.graphml);;Node-link JSON (*.json)"
        )
        title = tr("Save picture")
        path, chosen = QFileDialog.getSaveFileName(window, title, "graph.svg", kinds)
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
        document, tr = self._window.document, self._window.tr
        try:
            with atomic_file(Path(path)) as made:
                write(made)
        except OSError as error:
            what = tr("it cannot be written: {0}").format(error.strerror or error)
            document.report(Problem(what=what, where=path))
        else:
            document.notify(tr("Saved {0}").format(path), "info")


# --- The command that exports a report on the variants ---


def reporting(window: MainWindow) -> tuple[Command, ...]:
    """Return the command, for the menu File."""
    runs = window.features.runs.variants
    return (
        Command(
            "export-report",
            window.tr("&File"),
            window.tr("&Export report…"),
            partial(export_report, window),
            enabled=lambda: bool(runs.kept),
        ),
    )


def export_report(window: MainWindow) -> None:
    """Select a file in a dialog, and write a report on the selected variants, or on all."""
    # Imported here to keep the window's start fast.
    from lowerscope.core.export.report import source_name, write_report

    document, tr = window.document, window.tr
    runs = window.features.runs.variants
    chosen = window.panes.variants.selected()
    variants = [
        variant
        for kept, variant in zip(runs.kept, runs.all, strict=True)
        if not chosen or kept.id in chosen
    ]
    if not variants:
        return
    name = PurePath(source_name(variants[0].recipe).replace(":", "-")).stem
    path, _ = QFileDialog.getSaveFileName(
        window, tr("Export a report"), f"{name}.html", tr("Reports (*.html)")
    )
    if not path:
        return
    path = path if path.endswith((".html", ".htm")) else f"{path}.html"
    try:
        written = write_report(path, variants)
    except LowerscopeError as error:
        document.report(error.problem)
    else:
        document.notify(tr("The report is written: {0}").format(written), "info")
