"""Commands that export several artifacts, a single one, or a picture of a graph; their dialog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices, QFont
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries, Slot
from lowerscope.app.engine.file_broker import HandingOver, cannot_write
from lowerscope.app.engine.window_words import line_in_window
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.commands import Command, Host, available
from lowerscope.app.kit.dialogs import Dialog, Question, file_to_save
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.pane import ProgressLine
from lowerscope.app.kit.pane_messages import Banner
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.typefaces import ui_font
from lowerscope.core.files.atomic_write import atomic_file
from lowerscope.core.files.paths import user_path
from lowerscope.core.model.artifacts import (
    DEFAULT,
    EXISTS,
    EXPORTS,
    GRAPHS,
    PAINTED,
    PICTURES,
    ExportRecord,
    ExportType,
    Wanted,
    announced,
)
from lowerscope.core.model.graph import LEVELS, GraphName, GraphRecord
from lowerscope.core.model.module_steps import DifferenceRecord, Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import ExportQuery, GraphQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _, _n, labelled

if TYPE_CHECKING:
    from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
    from lowerscope.app.panes.common.graph_page import GraphPage

# --- Exports: requests to the worker, and pictures of graphs painted by the window ---


@dataclass(frozen=True)
class Order:
    """An order for an export."""

    wanted: tuple[Wanted, ...]
    folder: str
    kinds: tuple[str, ...] = ("svg",)  # Kinds and level of pictures.
    level: str = "fit"
    # The existing files that may be replaced, as listed by a `Problem` of the code `EXISTS`.
    replacing: tuple[str, ...] = ()


class Exporting(QObject):
    """Exports of the recipe shown, one at a time.

    Args:
        document: The document to export.
    """

    # Description of the current work and the fraction done, or ``None``.
    progressed = Signal(str, object)
    done = Signal(object)  # An `ExportRecord`.
    # A `Problem`; with the code `EXISTS` if files exist already, which are its choices.
    refused = Signal(object)

    def __init__(
        self,
        document: Document,
        queries: Queries,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._queries = queries
        self._slot = Slot(queries)
        self._order: Order | None = None
        self._recipe: Recipe | None = None
        self._graphs: list[str] = []
        self._painted: tuple[str, ...] = ()
        self._handing: HandingOver | None = None
        self._found = ExportRecord(paths=())

    @property
    def is_busy(self) -> bool:
        """Return whether an export is in progress."""
        return self._order is not None

    def begin(self, order: Order) -> None:
        """Start an export; the result is a signal."""
        recipe = self._document.recipe
        if recipe is None or self.is_busy:
            return
        self._order, self._recipe = order, recipe
        self._found = ExportRecord(paths=())
        painted = [kind for kind in order.kinds if kind in PAINTED]
        texts = tuple(kind for kind in order.kinds if kind not in PAINTED)
        self._graphs = [each.name for each in order.wanted if each.name in GRAPHS and painted]
        self._painted = tuple(f"{GRAPHS[name]}.{kind}" for name in self._graphs for kind in painted)
        written = tuple(each for each in order.wanted if each.name not in GRAPHS or texts)
        if not written:
            there = self._there(self._painted)
            if there:
                self._end_with(self._there_already(order.folder, there))
            else:
                self._next_graph()
            return
        folder = order.folder
        if self._queries.client("worker").hands_over:
            try:
                takes = announced(
                    written, texts, [user_path(each.path) for each in recipe.extensions]
                )
                self._handing = HandingOver(user_path(folder).absolute(), self, takes)
            except OSError as error:
                self._end_with(cannot_write(error, Path(folder)))
                return
            self._handing.done.connect(self._take_handed)
            folder = str(self._handing.folder)
        params = ExportQuery(
            recipe=recipe,
            wanted=written,
            folder=folder,
            replacing=order.replacing,
            painted=self._painted,
            kinds=texts,
            level=order.level,
            record=self._document.run_record,
        )
        self._slot.ask(params, self._take_written, self._end_with, self.progressed.emit)

    def cancel(self) -> None:
        """Cancel the export; files already written stay."""
        self._slot.cancel()

    def give_up(self) -> None:
        """Cancel the export without emitting signals; files already written stay."""
        if self._handing is not None and self._slot.is_busy:
            self._handing.give_up()
        self._slot.supersede()
        self._order = self._handing = None

    def _take_written(self, record: ExportRecord) -> None:
        self._found = record
        handing, order = self._handing, self._order
        if handing is None:
            self._next_graph()
            return
        assert order is not None
        there = self._there((*handing.names(), *self._painted))
        if there:
            self._end_with(self._there_already(order.folder, there))
        else:
            self.progressed.emit(_("Writing"), None)
            handing.start(order.replacing)

    def _take_handed(self, answer: tuple[str, ...] | Problem) -> None:
        handing, self._handing = self._handing, None
        if handing is not None:
            handing.deleteLater()
        if isinstance(answer, Problem):
            self._end_with(answer)
        elif self._order is not None:
            self._found = msgspec.structs.replace(self._found, paths=answer)
            if handing is not None and handing.others:
                names = _(", ").join(handing.others[:3])
                text = _(
                    "not taken from the sandbox, because it was not requested: {names}", names=names
                )
                self._add((), (text,))
            self._next_graph()

    def _there(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return all files that exist in the folder, if one of them may not be replaced."""
        order = self._order
        assert order is not None
        folder = user_path(order.folder)
        there = tuple(each for each in names if (folder / each).exists())
        return there if set(there) - set(order.replacing) else ()

    def _there_already(self, folder: str, names: tuple[str, ...]) -> Problem:
        return Problem(
            what=_("the file already exists"),
            where=str(Path(folder) / names[0]),
            code=EXISTS,
            choices=names,
        )

    def _next_graph(self) -> None:
        order, recipe = self._order, self._recipe
        assert order is not None
        assert recipe is not None
        if not self._graphs:
            self._order = None
            self.done.emit(self._found)
            return
        graph: GraphName = "fx" if GRAPHS[self._graphs[0]] == "fx" else "relax"
        expanded, fits = LEVELS[order.level]
        params = GraphQuery(
            recipe=recipe,
            metrics=self._document.metrics,
            graph=graph,
            expanded=expanded,
            fits=fits,
        )
        self.progressed.emit(_("Drawing"), None)
        self._slot.ask(params, self._take_graph, self._leave_graph_out)

    def _take_graph(self, record: GraphRecord) -> None:
        from lowerscope.app.kit.canvas.graph_painting import GraphPictures

        order, name = self._order, self._graphs[0]
        assert order is not None
        painted = [kind for kind in order.kinds if kind in PAINTED]
        paths = [Path(order.folder) / f"{GRAPHS[name]}.{kind}" for kind in painted]
        pictures = GraphPictures()
        snapshot = self._document.snapshot
        title = "" if snapshot is None else snapshot.model.title
        try:
            for path, kind in zip(paths, painted, strict=True):
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic_file(path) as made:
                    pictures.paint(record, made, kind, f"{title}: {GRAPHS[name]}")
        except OSError as error:
            self._end_with(cannot_write(error, paths[0]))
            return
        self._add(tuple(map(str, paths)))
        self._graphs.pop(0)
        self._next_graph()

    def _leave_graph_out(self, problem: Problem) -> None:
        if problem.code == "cancelled":
            self._end_with(problem)
            return
        name = self._graphs.pop(0)
        self._add((), (labelled(name, problem.line()),))
        self._next_graph()

    def _add(self, paths: tuple[str, ...], left_out: tuple[str, ...] = ()) -> None:
        found = self._found
        self._found = ExportRecord(
            paths=(*found.paths, *paths),
            left_out=(*found.left_out, *left_out),
            notes=found.notes,
        )

    def _end_with(self, problem: Problem) -> None:
        self._order = None
        handing, self._handing = self._handing, None
        if handing is not None:
            handing.give_up()
        self.refused.emit(problem)


# --- The export dialog: artifacts, folder, progress and result ---

_NEED_TORCH = ("fx", "fx-graph")
_WIDTH = 720

_BESIDE_BOX = 22
"""Indentation of a check box's label."""


class ExportDialog(Dialog):
    """Check boxes for artifacts, by group; a folder; and the export, which can be cancelled."""

    def __init__(
        self,
        document: Document,
        queries: Queries,
        folder: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self._exporting = Exporting(document, queries, self)
        self._order = Order(wanted=(), folder=folder)
        self.setWindowTitle(_("Export"))
        self.boxes: dict[str, QCheckBox] = {}
        self.pictures: dict[str, QCheckBox] = {}
        self.level = QComboBox()
        self.level.setAccessibleName(_("Modules expanded in graphs"))
        for key, words in (
            ("fit", _("As many as fit a pane")),
            ("all", _("All modules expanded")),
            ("none", _("All modules collapsed")),
        ):
            self.level.addItem(words, key)
        self.folder = QLineEdit(folder)
        self.folder.setAccessibleName(_("Folder to write to"))
        self.folder.setPlaceholderText(_("Choose a folder, or type a new one"))
        browse = push_button(_("Browse…"), act=self._browse, auto_default=False)
        self.banner = Banner(wraps=True)
        self.progress = ProgressLine()
        self.status = Label(role="quiet", wraps=True)
        self._outcome = QWidget()
        self.show_folder = push_button(_("Show the folder"), act=self._show_folder)
        self.show_folder.hide()
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.export = self.buttons.addButton(_("Export"), QDialogButtonBox.ButtonRole.ActionRole)
        self.export.setDefault(True)
        self.export.setProperty("primary", True)
        self.stop = self.buttons.addButton(_("Stop"), QDialogButtonBox.ButtonRole.ActionRole)
        self.stop.setEnabled(False)
        self.export.clicked.connect(self._begin)
        self.stop.clicked.connect(self._exporting.cancel)
        self.buttons.rejected.connect(self.close)
        self._lay_out(browse)
        self._exporting.progressed.connect(self._show_progress)
        self._exporting.done.connect(self._show_done)
        self._exporting.refused.connect(self._show_problem)
        self.folder.textChanged.connect(self._follow)
        self._follow()
        offer_help(self, "export")

    def wanted(self) -> tuple[Wanted, ...]:
        """Return the checked artifacts."""
        return tuple(
            Wanted(name=name)
            for name, box in self.boxes.items()
            if box.isChecked() and box.isEnabled()
        )

    # Slots

    def _begin(self) -> None:
        kinds = tuple(name for name, box in self.pictures.items() if box.isChecked())
        self._order = Order(
            wanted=self.wanted(),
            folder=str(user_path(self.folder.text().strip()).absolute()),
            kinds=kinds,
            level=str(self.level.currentData()),
        )
        self._start()

    def _start(self) -> None:
        self.banner.dismiss()
        self.show_folder.hide()
        self._exporting.begin(self._order)
        self._show_progress(_("Exporting"))
        self._follow()

    def _show_progress(self, text: str, fraction: float | None = None) -> None:
        if not self._exporting.is_busy:
            return
        self.status.setText(text)
        if fraction is None:
            self.progress.set_busy()
        else:
            self.progress.set_fraction(fraction)

    def _show_done(self, record: ExportRecord) -> None:
        self.progress.clear()
        count = len(record.paths)
        names = [Path(each).name for each in record.paths]
        text = _n("Exported {name}", "Exported {count} files", count, name=(names or [""])[0])
        if record.left_out:
            reasons = "\n".join(f"✕ {line_in_window(each)}" for each in record.left_out)
            text = _("{text}. Not written:\n{reasons}", text=text, reasons=reasons)
        text = "\n".join((text, *record.notes))
        self.status.setText(text)
        self.status.setAccessibleName(text)
        self.show_folder.setVisible(count > 0)
        self._follow()

    def _show_problem(self, problem: Problem) -> None:
        self.progress.clear()
        self.status.setText("")
        if problem.code == "cancelled":
            self.status.setText(_("Stopped: no more files are written"))
        elif problem.code == EXISTS:
            names = _(", ").join(problem.choices[:3]) + (" …" if len(problem.choices) > 3 else "")
            text = _("Already there: {names}", names=names)
            self._order = replace(self._order, replacing=problem.choices)
            # The order that the question was about, whatever has been filled in since.
            self.banner.show_message(text, "wrong", [(_("Overwrite"), self._start)])
        else:
            self.banner.show_message(problem.line(), "wrong")
        self._follow()

    def _follow(self) -> None:
        busy = self._exporting.is_busy
        graphs = any(box.isChecked() for box in self._graph_boxes())
        kinds = any(box.isChecked() for box in self.pictures.values())
        ready = bool(self.wanted()) and bool(self.folder.text().strip()) and (kinds or not graphs)
        self.export.setEnabled(ready and not busy)
        self.stop.setEnabled(busy)
        self._outcome.setVisible(bool(self.status.text()))
        for widget in (*self.pictures.values(), self.level):
            widget.setEnabled(graphs)

    def _browse(self) -> None:
        path = QFileDialog.getExistingDirectory(self, _("Folder to write to"), self.folder.text())
        if path:
            self.folder.setText(path)

    def _show_folder(self) -> None:
        folder = str(user_path(self.folder.text().strip()).absolute())
        QDesktopServices.openUrl(QUrl.fromLocalFile(folder))

    # Construction

    def _graph_boxes(self) -> list[QCheckBox]:
        return [box for name, box in self.boxes.items() if name.endswith("-graph")]

    def _box(self, each: ExportType) -> QWidget:
        box = QCheckBox(each.title)
        box.setChecked(each.name in (*DEFAULT, "reproduce") and each.name != "parameters")
        snapshot = self._document.snapshot
        if each.name in _NEED_TORCH and snapshot is not None and snapshot.model.kind != "torch":
            box.setChecked(False)
            box.setEnabled(False)
            box.setToolTip(_("This source builds an IRModule, so there is no FX graph"))
        else:
            box.setToolTip(each.hint)
        box.toggled.connect(self._follow)
        self.boxes[each.name] = box
        files = Label(each.files, role="quiet")
        files.setToolTip(each.hint)
        files.setIndent(_BESIDE_BOX)
        cell = QWidget()
        column_of(cell, box, files)
        return cell

    def _picture_row(self) -> QHBoxLayout:
        for name in PICTURES:
            box = QCheckBox(name.upper())
            box.setAccessibleName(_("Pictures as {name}", name=name.upper()))
            box.setChecked(name == "svg")
            box.toggled.connect(self._follow)
            self.pictures[name] = box
        return row_of(
            None, *self.pictures.values(), STRETCH, margins=(_BESIDE_BOX, 0, 0, 0), spacing=12
        )

    def _lay_out(self, browse: QWidget) -> None:
        columns = [column_of(None, margins=None, spacing=6) for _side in range(2)]
        for group in dict.fromkeys(each.group for each in EXPORTS):
            # The module itself on one side; operations on it on the other.
            side = columns[0 if group in (_("Module"), _("Graphs"), _("Session")) else 1]
            if side.count():
                side.addSpacing(12)
            title = Label(group)
            title.setFont(ui_font(13, QFont.Weight.DemiBold))
            side.addWidget(title)
            for each in EXPORTS:
                if each.group == group:
                    side.addWidget(self._box(each))
            if group == _("Graphs"):
                side.addLayout(self._picture_row())
                side.addLayout(row_of(None, self.level, STRETCH, margins=(_BESIDE_BOX, 0, 0, 0)))
        for side in columns:
            side.addStretch(1)
        sides = row_of(None, *((side, 1) for side in columns), margins=None, spacing=32)
        label = Label(_("Folder"))
        label.setBuddy(self.folder)
        place = row_of(None, label, (self.folder, 1), browse, margins=None, spacing=None)
        row_of(self._outcome, (self.status, 1), self.show_folder, spacing=None)
        parts = (sides, place, self.banner, self.progress, self._outcome, self.buttons)
        column_of(self, *parts, margins=(16, 16, 16, 12), spacing=12)
        self.keep_in_view(self.banner, self.progress, self._outcome)
        self.setMinimumWidth(_WIDTH)

    # Qt overrides

    def done(self, result: int) -> None:
        # The result could no longer be shown.
        self._exporting.give_up()
        super().done(result)


def choose_exports(
    document: Document,
    queries: Queries,
    folder: str,
    parent: QWidget,
) -> ExportDialog | None:
    """Open the dialog, if there is something to export."""
    if document.snapshot is None:
        return None
    return ExportDialog(document, queries, folder, parent).pop_up()


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
            *available(
                self._document.is_open,
                Command("export-files", _("E&xport…"), self.choose, "Ctrl+Shift+X"),
                Command("export-function", _("Export the &function…"), self.export_function),
                Command("export-step", _("Export the module of &the step…"), self.export_step),
            ),
            Command("save-patch", _("Save the difference as a &patch…"), self.save_patch),
        )

    def picture_commands(self) -> tuple[Command, ...]:
        return (
            *available(
                self._document.is_open,
                Command("save-picture", _("Save &picture…"), self.save_picture),
                Command(
                    "save-picture-seen", _("Save picture of the v&isible part…"), self.save_seen
                ),
            ),
        )

    # Exports by the worker

    def choose(self) -> None:
        """Open the dialog."""

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
            document.notify(_("; ").join(record.left_out), "wrong")
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
            names = _(", ").join(problem.choices[:3])
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
        title, kinds = _("Save the difference"), _("Patches (*.patch *.diff)")
        if path := file_to_save(self._host.widget, title, "difference.patch", kinds):
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
        from lowerscope.core.model.graph import TEXT_FORMATS

        kinds = _(
            "SVG (*.svg);;PDF (*.pdf);;PNG (*.png);;"
            "Graphviz (*.dot);;GraphML (*.graphml);;Node-link JSON (*.json)"
        )
        title = _("Save picture")
        path = file_to_save(self._host.widget, title, "graph.svg", kinds)
        if not path:
            return
        kind = Path(path).suffix.lower().removeprefix(".")
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
            document.notify(_("Saved as {path}.", path=path), "info")
