"""Graphs as files: pictures by an external painter, and text formats."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, cast

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.export.catalogue import GRAPHS, PICTURES
from lowerscope.core.export.files import File, text_file
from lowerscope.core.export.graph_formats import TEXT_FORMATS
from lowerscope.core.graphs import draw_graph
from lowerscope.core.model.graph import WHOLE, GraphName, GraphRecord
from lowerscope.core.model.text_metrics import DEFAULT, TextMetrics
from lowerscope.core.progress import Silent
from lowerscope.core.rendering.graphs.hierarchy import FITTING, Opening
from lowerscope.core.rendering.graphs.part import openings_to, part_of
from lowerscope.core.stages import Stages

LEVELS = {"fit": FITTING, "all": Opening(fits=WHOLE), "none": Opening(expanded=())}
"""Levels of expanded modules in a picture: those that fit a pane, all, none."""


class Painter(Protocol):
    """Interface for painting graphs."""

    def metrics(self) -> TextMetrics:
        """Return the widths of the painter's characters."""
        ...

    def paint(self, graph: GraphRecord, path: Path, kind: str, title: str) -> None:
        """Paint a graph into a file: ``"svg"``, ``"pdf"`` or ``"png"``."""
        ...


def picture_files(
    stages: Stages,
    name: str,
    kinds: Sequence[str],
    level: str,
    painter: Painter | None,
    part: str = "",
) -> Iterator[File]:
    """Yield a graph in each of some formats.

    Parameters
    ----------
    name
        Of `GRAPHS`.
    level
        Of `LEVELS`.
    part
        A module, for its content, or a node, for its neighbourhood; empty for all.

    Raises
    ------
    LowerscopeError
        If there is no such graph or part, or no painter.
    """
    metrics = DEFAULT if painter is None else painter.metrics()
    which = cast(GraphName, GRAPHS[name])
    if part:
        graph = _part(stages, which, metrics, level, part)
    else:
        graph = draw_graph(stages, which, None, metrics, LEVELS[level], Silent().check)
    for kind in kinds:
        if kind in TEXT_FORMATS:
            yield text_file(f"{which}.{kind}", TEXT_FORMATS[kind](graph, which))
            continue
        if painter is None:
            raise LowerscopeError(
                f"there is nobody to paint a {kind}",
                where=name,
                todo="Use the command lowerscope, or --picture dot",
            )
        yield _painted(painter, graph, which, kind, f"{stages.loaded.title}: {which}")


def _part(
    stages: Stages, which: GraphName, metrics: TextMetrics, level: str, part: str
) -> GraphRecord:
    """Return a part of a graph; a node may be inside of a module that has to be expanded."""
    whole = LEVELS["all"]
    tried = [whole] if level == "all" else [Opening(expanded=openings_to(part)), whole]
    for opening in tried:
        drawn = draw_graph(stages, which, None, metrics, opening, Silent().check)
        found = part_of(drawn, part)
        if found is not None:
            return found
    ids = (*(each.id for each in drawn.boxes), *(each.id for each in drawn.regions))
    names = [each.rpartition(":")[2].rpartition("/")[2] for each in ids]
    near = difflib.get_close_matches(part, names, n=1)
    raise LowerscopeError(
        f"the {which} graph has no module and no node {part}",
        where=f"--part {part}",
        todo=f"Did you mean {near[0]}?" if near else "Export the whole graph, which names them",
    )


def _painted(painter: Painter, graph: GraphRecord, name: str, kind: str, title: str) -> File:
    return File(f"{name}.{kind}", lambda path: painter.paint(graph, path, kind, title))


def check_kinds(kinds: Sequence[str]) -> None:
    """Reject unknown formats.

    Raises
    ------
    LowerscopeError
        With the known ones.
    """
    wrong = next((each for each in kinds if each not in PICTURES), None)
    if wrong is not None:
        raise LowerscopeError(
            f"{wrong or 'nothing'} is not a format of pictures",
            where="--picture",
            todo=f"Choose some of {', '.join(PICTURES)}",
        )
