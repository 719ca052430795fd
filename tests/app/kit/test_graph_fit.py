"""A graph that is fitted: every box and block has a readable name, and nothing covers them."""

from functools import cache

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPixmap
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.app.kit.canvas.graph_painting import Label
from lowerscope.core.model.graph import DEFAULT, FITS, WHOLE, GraphRecord
from lowerscope.core.model.queries import GraphQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.graph.boxes import graph_record
from lowerscope.core.views.graph.hierarchy import Modules, Opening
from tests.benchmarks.views import transformer
from tests.diagonal import rows_at_length

SAMPLES = ("fashion_mlp", "conv_net", "depthwise_net", "transformer_block", "resnet18")
GENERATED = {
    "500": (500, True),
    "500 flat": (500, False),
    "4000": (4000, True),
    "4000 flat": (4000, False),
}
READABLE = 9.0


@cache
def graph_of(name: str, level: str) -> GraphRecord:
    """A sample with some or all modules expanded, or a generated graph of so many nodes."""
    if name in GENERATED:
        count, has_modules = GENERATED[name]
        made = transformer(count)
        modules = Modules(made.paths, {}, Opening(None, WHOLE)) if has_modules else None
        return graph_record(made.boxes, made.flows, DEFAULT, lambda: None, modules=modules)
    recipe = Recipe(source=Source(spec=f"sample:{name}"), lowering="te")
    fits = WHOLE if level == "expanded" else FITS
    kind = "relax" if level == "relax" else "fx"
    return Pipeline().answer(GraphQuery(recipe, DEFAULT, kind, None, None, fits))


GRAPHS = [
    *((name, level) for name in SAMPLES for level in ("", "expanded")),
    ("mlp_tvmscript", "relax"),
    ("resnet18", "relax"),
    *((name, "") for name in GENERATED if name.startswith("500")),
    *rows_at_length(*((name, "") for name in GENERATED if name.startswith("4000"))),
]


@pytest.fixture
def canvas(qtbot: QtBot) -> GraphCanvas:
    widget = GraphCanvas("graph")
    qtbot.addWidget(widget)
    widget.resize(290, 540)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def names_in(canvas: GraphCanvas) -> list[tuple[str, float, QRectF]]:
    """The names in the boxes and blocks that are visible, their heights, and their areas."""
    picture = QPixmap(canvas.viewport().size())
    painter = QPainter(picture)
    painter.translate(canvas.view.origin)
    painter.scale(canvas.zoom(), canvas.zoom())
    graph, area = canvas.picture(seen=True)
    labels: list[Label] = graph.paint(painter, area, canvas.zoom())
    to_viewport = painter.worldTransform()
    painter.end()
    if canvas.zoom() < 0.8:
        return [tuple(each) for each in labels]
    return [
        (each.text, each.pixels * canvas.zoom(), to_viewport.mapRect(each.rect)) for each in labels
    ]


@pytest.mark.diagonal
@pytest.mark.parametrize("size", [(290, 540), (1300, 620)], ids=["pane", "window"])
@pytest.mark.parametrize(("name", "level"), GRAPHS, ids=lambda each: each)
def test_a_fitted_graph_is_legible_and_stays_in_view(
    canvas: GraphCanvas, name: str, level: str, size: tuple[int, int]
) -> None:
    graph = graph_of(name, level)
    canvas.resize(*size)
    canvas.set_graph(graph)
    canvas.fit()
    names = names_in(canvas)
    assert names
    for text, pixels, _ in names:
        assert text.strip(" …")
        assert pixels >= READABLE
    # Every box is drawn, or in a block.
    level_of_detail = canvas.picture(seen=False)[0].detail.at(canvas.zoom())
    hidden = {box for block in level_of_detail.blocks for box in block.boxes}
    drawn = len(names) - len(level_of_detail.blocks)
    assert drawn + len(hidden) == len(graph.boxes)
    beside = [canvas.legend, canvas.zoom_control, canvas.minimap]
    origin = canvas.viewport().geometry().topLeft()
    for _, _, rect in names:
        for each in beside:
            covered = each.isVisible() and rect.translated(origin).intersects(each.geometry())
            assert not covered, each
    for other in ((900, 700), (260, 400), size):
        canvas.resize(*other)
        whole = canvas.view.to_viewport(canvas.picture(seen=False)[1])
        assert QRectF(canvas.viewport().rect()).contains(whole)


def test_a_click_on_a_block_selects_what_it_stands_for(canvas: GraphCanvas, qtbot: QtBot) -> None:
    canvas.set_graph(graph_of("500 flat", ""))
    canvas.fit()
    block = next(
        each
        for each in canvas.picture(seen=False)[0].detail.at(canvas.zoom()).blocks
        if len(each.boxes) > 1
    )
    at = canvas.view.to_viewport(block.rect).center().toPoint()
    with qtbot.waitSignal(canvas.ends_wanted) as heard:
        qtbot.mouseClick(canvas.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert heard.args == [block.boxes]
