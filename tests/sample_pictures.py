"""Pictures of the samples' graphs for the welcome page: ``python -m tests.sample_pictures``.

Each is drawn by the window's own painter, in both themes. The window shows the files, since it has
neither torch nor TVM while it starts.
"""

from __future__ import annotations

import os

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QApplication

from lowerscope.app.kit import theme
from lowerscope.app.kit.canvas.graph_geometry import GraphIndex
from lowerscope.app.kit.canvas.graph_painting import GraphPainter
from lowerscope.app.shell.welcome_page import PICTURE, picture_of
from lowerscope.core.files.samples import SAMPLES
from lowerscope.core.model.graph import DEFAULT, GraphName, GraphRecord
from lowerscope.core.model.queries import GraphQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline

SCALE = 2
FINE = 4
"""Pixels that are drawn for one of the file, so that thin lines are smooth."""

LEAST = 0.38
"""Scale below which a graph is not shown whole."""

MARGIN = 10.0


def main() -> None:
    """Write all pictures."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = QApplication(["lowerscope", *theme.STYLE])
    pipeline = Pipeline()
    graphs = {name: graph_of(pipeline, name) for name in SAMPLES}
    for scheme in ("light", "dark"):
        theme.start(application, scheme)
        for name, graph in graphs.items():
            path = picture_of(name, dark=scheme == "dark")
            path.parent.mkdir(exist_ok=True)
            if not drawn(graph).save(str(path)):
                raise OSError(f"{path} cannot be written")


def graph_of(pipeline: Pipeline, name: str) -> GraphRecord:
    """Return the FX graph of a sample; its Relax graph if it has none."""
    recipe = Recipe(source=Source(spec=f"sample:{name}"))
    kind: GraphName = "relax" if name == "mlp_tvmscript" else "fx"
    return pipeline.answer(GraphQuery(recipe=recipe, metrics=DEFAULT, graph=kind))


def drawn(graph: GraphRecord) -> QImage:
    """Return a picture of a graph, or of its first nodes."""
    index = GraphIndex(graph)
    area = index.bounds().adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)
    size = QSize(*PICTURE) * SCALE
    image = QImage(size * FINE, QImage.Format.Format_RGB32)
    image.fill(QColor(theme.current().code_ground))
    across, down = image.width() / area.width(), image.height() / area.height()
    # A long graph is shown from its first nodes, whose names can be read.
    scale = max(min(across, down), min(across, LEAST * SCALE * FINE))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate((image.width() - scale * area.width()) / 2, 0)
    painter.scale(scale, scale)
    painter.translate(-area.topLeft())
    GraphPainter(index).paint(painter, QRectF(area), 1.0)
    painter.end()
    smooth = Qt.TransformationMode.SmoothTransformation
    return image.scaled(size, Qt.AspectRatioMode.IgnoreAspectRatio, smooth)


if __name__ == "__main__":
    main()
