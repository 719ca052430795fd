"""Exports: requests to the worker, and pictures of graphs painted by the window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from lowerscope.app.document.queries import Slot
from lowerscope.app.engine.file_broker import HandingOver, cannot_write
from lowerscope.core.files.atomic_write import atomic_file
from lowerscope.core.files.paths import user_path
from lowerscope.core.model.artifacts import EXISTS, GRAPHS, PAINTED, ExportRecord, Wanted, announced
from lowerscope.core.model.graph import LEVELS, GraphName, GraphRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import ExportQuery, GraphQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _, labelled

if TYPE_CHECKING:
    from lowerscope.app.document.document import Document
    from lowerscope.app.document.queries import Queries


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
