"""Pictures of graphs for the command line: the window's painter, without a window."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtWidgets import QApplication

from lowerscope.app import theme
from lowerscope.app.widgets.canvas.graph_picture import write_picture
from lowerscope.app.widgets.canvas.index import GraphIndex
from lowerscope.app.widgets.canvas.paint import GraphPainter
from lowerscope.core.model.graph import GraphRecord
from lowerscope.core.model.text_metrics import DEFAULT, TextMetrics


class GraphPictures:
    """Paints graphs like the window, in its light theme."""

    def __init__(self) -> None:
        if QApplication.instance() is None:
            self._application = QApplication([sys.argv[0], *theme.STYLE])
            theme.start(self._application, "light")

    def metrics(self) -> TextMetrics:
        """Return the character widths that it paints with."""
        return DEFAULT

    def paint(self, graph: GraphRecord, path: Path, kind: str, title: str) -> None:
        """Paint a graph into a file: ``"svg"``, ``"pdf"`` or ``"png"``.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        index = GraphIndex(graph)
        write_picture(GraphPainter(index), index.bounds(), path, kind, title)
