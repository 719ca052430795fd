"""Benchmarks of views alone, drawn by the software rasteriser: graphs, code, tables, layout."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from lowerscope.app.document.document import Document
from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.code.diff_view import DiffView
from lowerscope.app.panes.difference.difference_page import diff_part
from lowerscope.app.panes.run.compare_page import NodesTable
from lowerscope.core.model.graph import DEFAULT, FAMILY_NAMES, Box, Edge, GraphRecord
from lowerscope.core.model.line_difference import changed_words, function_differences
from lowerscope.core.model.run_records import CallRun, NodeRun, RunRecord
from lowerscope.core.model.snapshot import FxNode, ModelRecord, Snapshot, TextRecord
from lowerscope.core.views.graph.boxes import graph_record
from lowerscope.core.views.graph.hierarchy import (
    Modules,
    Opening,
    groups_in,
    hierarchy,
)
from tests.benchmarks.figures import Figure, application, benchmark, milliseconds, p95, within

FRAME = {10_000: 12.0, 50_000: 16.0}
"""Milliseconds that all but one frame in twenty may take, by the number of nodes."""


# Graphs


def layered(count: int) -> GraphRecord:
    """Return a graph in layers of 60 nodes, each of which feeds two below it."""
    across, wide, box = 60, 210.0, 91.0
    high = box + 48
    families = tuple(FAMILY_NAMES)
    rows = (("weight", "64×64×3×3"), ("stride 2", ""))
    nodes, edges = [], []
    for number in range(count):
        row, column = divmod(number, across)
        x, y = 24 + column * wide, 24 + row * high
        strategy = ("te", "high-level", "library", "")[number % 4]
        title, family = f"layer{row}_{column}_conv", families[number % len(families)]
        name, place = f"n{number}", (x, y, 180, box)
        nodes.append(Box(name, title, "call", strategy, *place, "Conv2d", rows, family))
        for beside in (0, 1):
            target = number + across + beside
            if target < count and column + beside < across:
                x1 = x + beside * wide + 90
                below = y + box
                points = ((x + 90, below), (x + 90, below + 8), (x1, below + 40), (x1, y + high))
                label = "" if beside else "1×64×56×56"
                at = None if beside else (x + 97, below + 24)
                edges.append(Edge(f"n{number}", f"n{target}", label, points, label_at=at))
    size = 48 + across * wide, 48 + math.ceil(count / across) * high
    return GraphRecord(tuple(nodes), tuple(edges), *size)


@benchmark("graph")
def graphs() -> Iterator[Figure]:
    """Measure layouts, and frames of large graphs: panned, zoomed, selected."""
    application()
    yield from _layouts()
    for count, limit in FRAME.items():
        canvas = GraphCanvas("graph")
        canvas.resize(1600, 1000)
        canvas.show()
        canvas.set_graph(layered(count))
        middle = canvas.graph().width / 2

        def frames(
            zoom: float,
            centre: QPointF,
            acts: list[Callable[[], object]],
            canvas: GraphCanvas = canvas,
        ) -> list[float]:
            canvas.set_zoom(zoom)
            canvas.centre_on(centre)
            QTest.qWait(300)  # a new scale is drawn as it stays
            canvas.viewport().repaint()
            times, paint = [], canvas.viewport().repaint
            for act in acts:
                times.append(milliseconds(lambda act=act: (act(), paint()), time.thread_time))  # type: ignore[misc]
                # The second one draws some of what the first had no time for.
                times.append(milliseconds(paint, time.thread_time))
            return times

        moves: list[Callable[[], object]] = [
            lambda by=by: canvas._move_by(QPointF(*by))  # type: ignore[misc] # noqa: B023
            for by in ((0, -34), (-40, -20), (0, 60))
            for _ in range(40)
        ]
        zooms: list[Callable[[], object]] = [
            lambda by=by: canvas.zoom_by(by)  # type: ignore[misc] # noqa: B023
            for by in (0.96, 1 / 0.96)
            for _ in range(90)
        ]
        for zoom in (1.0, 0.5, 0.2):
            times = frames(zoom, QPointF(middle, 900 / zoom), moves)
            yield within(f"pan at {zoom:.0%}, p95 of frames, {count:,} nodes", [p95(times)], limit)
        times = frames(1.2, QPointF(middle, canvas.graph().height / 2), zooms)
        yield within(f"zoom, p95 of frames, {count:,} nodes", [p95(times)], limit)
        for zoom in (1.0, 0.5, 0.2):
            choices: list[Callable[[], object]] = [
                lambda at=at: canvas.set_selection([f"n{n}" for n in range(at, at + 1000)])  # type: ignore[misc] # noqa: B023
                for at in range(7)
            ]
            times = frames(zoom, QPointF(0, 0), choices)[::2]
            yield within(f"selection of 1,000 of {count:,} nodes at {zoom:.0%}", times, 50)
        canvas.close()


class Sketch:
    """A graph that is written down node by node."""

    def __init__(self) -> None:
        self.boxes: list[Box] = []
        self.flows: list[Edge] = []
        self.paths: list[str] = []

    def add(self, name: str, path: str, *sources: str, kind: str = "call") -> str:
        entity = f"fx:{name}_{len(self.boxes)}"
        title, rows = f"{name}_{len(self.boxes)}", (("64", ""),)
        self.boxes.append(Box(entity, title, kind, "te", operator=name, rows=rows))
        self.paths.append(path)
        self.flows += [Edge(source, entity, "1×128×768") for source in sources]
        return entity


def transformer(count: int) -> Sketch:
    """Return a stack of transformer blocks of about `count` nodes, as in GPT-2."""
    sketch = Sketch()
    add = sketch.add
    mask = add("mask", "", add("attention_mask", "", kind="input"))
    x = add("embedding", "embeddings", add("input_ids", "", kind="input"))
    layer = 0
    while len(sketch.boxes) < count - 1:
        path = f"encoder.layer.{layer}"
        inner = f"{path}.attention"
        joined = add("linear", f"{inner}.c_attn", add("layer_norm", path, x))
        query, key, value = (
            add("permute", inner, add("view", inner, add("split", f"{inner}.{name}", joined)))
            for name in ("query", "key", "value")
        )
        scores = add("matmul", inner, query, add("transpose", inner, key))
        weights = add("softmax", inner, add("add", inner, add("div", inner, scores), mask))
        mixed = add("matmul", inner, add("dropout", inner, weights), value)
        merged = add("view", inner, add("permute", inner, mixed))
        x = add("add", path, x, add("linear", f"{inner}.out", merged))
        made = add("gelu", f"{path}.mlp", add("linear", f"{path}.mlp", add("norm", path, x)))
        x = add("add", path, x, add("linear", f"{path}.mlp", made))
        layer += 1
    add("output", "", x, kind="output")
    return sketch


def _layouts() -> Iterator[Figure]:
    for count, limit in ((1_000, 150.0), (10_000, 1000.0)):
        made = transformer(count)
        opening = Opening(tuple(group.id for group in groups_in(hierarchy(made.paths))))
        for what, modules in (("in frames", Modules(made.paths, {}, opening)), ("flat", None)):

            def lay_out(made: Sketch = made, modules: Modules | None = modules) -> None:
                graph_record(made.boxes, made.flows, DEFAULT, lambda: None, modules=modules)

            times = [milliseconds(lay_out, time.process_time) for _ in range(6)][1:]
            yield within(f"layout of {count:,} nodes {what}", times, limit)


# Code

FUNCTION = """\
    @T.prim_func(private=True, s_tir=True)
    def dense_{0}(x: T.Buffer((1, 784), "float32"), B: T.Buffer((128, 784), "float32")):
        T.func_attr({{"tirx.noalias": True}})
        # with T.sblock("root"):
        for i0, i1, k in T.grid(T.int64(1), T.int64(128), T.int64(784)):
            with T.sblock("T_matmul_NT"):
                v_i0, v_i1, v_k = T.axis.remap("SSR", [i0, i1, k])
                T.reads(x[v_i0, v_k], B[v_i1, v_k])
                T.writes(T_matmul_NT[v_i0, v_i1])
                T_matmul_NT[v_i0, v_i1] += x[v_i0, v_k] * B[v_i1, v_k]
"""


def script(lines: int) -> str:
    """Return a script of so many lines."""
    count = lines // FUNCTION.count("\n") + 1
    text = "class Module:\n" + "".join(FUNCTION.format(number) for number in range(count))
    return "\n".join(text.split("\n")[:lines])


@benchmark("code")
def code() -> Iterator[Figure]:
    """Measure the first paint of 20,000 lines, and the longest turn of the loop at 200,000."""
    app = application()
    view = CodeView("Script")
    view.resize(900, 900)
    view.set_empty("", "")
    view.show()
    editor, bar = view.editor, view.editor.verticalScrollBar()

    def paint(text: str) -> None:
        view.set_text(text, "tvmscript")
        view.grab()

    paint(script(100))
    short, times = script(20_000), []
    for _ in range(3):
        paint("x")
        times.append(milliseconds(lambda: paint(short)))
    yield within("code first paint, 20,000 lines", times, 50)

    def stall(act: Callable[[], object]) -> float:
        longest, end = milliseconds(act), time.monotonic() + 60
        while not (editor.settled and view.finding.settled):
            assert time.monotonic() < end, "the code view did not get there"
            longest = max(longest, milliseconds(app.processEvents))
        return max(longest, milliseconds(app.processEvents))

    def scroll() -> float:
        places = [bar.maximum() * step // 20 for step in range(21)]
        return max(stall(lambda to=to: (bar.setValue(to), view.repaint())) for to in places)  # type: ignore[misc]

    def find(text: str) -> None:
        view.open_find()
        view.find_bar.field.setText(text)

    long = script(200_000)
    for name, act in (
        ("loaded", lambda: stall(lambda: view.set_text(long, "tvmscript"))),
        ("scrolled", scroll),
        ("searched", lambda: stall(lambda: find("dense_19999"))),
        ("folded", lambda: stall(editor.fold_all)),
        ("unfolded", lambda: stall(editor.unfold_all)),
        ("gone to its end", lambda: stall(lambda: view.go_to_line(199_000))),
    ):
        yield within(f"code 200,000 lines {name}, longest stall", [act()], 50)
    view.close()


@benchmark("difference-view")
def difference_view() -> Iterator[Figure]:
    """Measure until a difference of 20,000 lines that has come is on the screen."""
    from tests.benchmarks.stages import edited, long_functions

    application()
    view = DiffView("difference", changed_words)
    view.resize(1400, 800)
    view.show()
    old = long_functions(20_000)
    found = function_differences(old, edited(old, "T.writes(", "T.writes( "))

    def draw() -> None:
        view.set_parts([diff_part(each) for each in found], "tvmscript")
        view.repaint()

    times = [milliseconds(draw) for _ in range(10)][1:]
    yield within("difference on the screen", times, 100)
    view.close()


# Tables


@benchmark("compare")
def compare() -> Iterator[Figure]:
    """Measure the table of the page Compare with 10,000 nodes, in processor time."""
    app, document = application(), Document()
    runs: Any = SimpleNamespace(newest=None)
    page = NodesTable(document, runs)
    page.resize(900, 500)
    page.show()
    app.processEvents()

    def taken(act: Callable[[], object]) -> float:
        return milliseconds(lambda: (act(), app.processEvents()), time.process_time)

    snapshot, record = _records(10_000)
    runs.newest = record
    filling = taken(lambda: document.set(snapshot=snapshot, run=record))
    assert len(page.table.rows()) == 10_000
    bar = page.table.verticalScrollBar()
    places = [bar.maximum() * (frame * 7919 % 200) // 200 for frame in range(200)]
    frames = [taken(lambda to=to: bar.setValue(to)) for to in places]  # type: ignore[misc]
    sorting = taken(lambda: page.table.sortByColumn(3, Qt.SortOrder.DescendingOrder))
    filtering = taken(lambda: page.filter.setText("linear 99"))
    assert 0 < len(page.table.rows()) < 10_000
    page.close()
    yield within("compare: fill 10,000 nodes", [filling], 500)
    yield within("compare: scroll, p95", [p95(frames)], 16)
    yield within("compare: sort by error", [sorting], 250)
    yield within("compare: type into the filter", [filtering], 250)


def _records(count: int) -> tuple[Snapshot, RunRecord]:
    draw = random.Random(0)
    nodes = tuple(
        FxNode(
            id=f"fx:linear_{number}",
            name=f"linear_{number}",
            opcode="call_module",
            target=f"blocks.{number}.linear",
            args="(x,)",
            kwargs="{}",
            shape=(1, 4),
            dtype="float32",
            type="1×4 float32",
            label="Linear · 4 → 4",
            strategy="te",
            rule="linear: topi.nn.dense, topi.add",
        )
        for number in range(count)
    )
    runs = tuple(
        NodeRun(
            id=node.id,
            milliseconds=draw.random(),
            max_abs_error=draw.random() ** 8,
            max_rel_error=draw.random(),
            matches=number % 97 != 0,
            reason="" if number % 97 else "3 of 4 elements differ",
            calls=(number,),
            own_abs_error=draw.random() ** 9,
            own_matches=True,
            torch_ms=draw.random(),
        )
        for number, node in enumerate(nodes)
    )
    names = dict.fromkeys(("torch_ms", "tvm_ms", "build_ms", "max_abs_error", "max_rel_error"), 1.0)
    calls = tuple(CallRun(function="dense", milliseconds=1.0, nodes=(each.id,)) for each in nodes)
    record = RunRecord(
        **names,  # type: ignore[arg-type]
        verdict="differ",
        reason="",
        rtol=1e-4,
        atol=1e-5,
        functions=1,
        outputs=(),
        nodes=runs,
        calls=calls,
    )
    model = ModelRecord(title="Blocks", path="", kind="torch", description="", inputs=())
    text = TextRecord(text="", language="script")
    return Snapshot(
        model=model, fx=nodes, tracer="fx", fx_graph=None, relax=text, functions=(), links=()
    ), record
