"""Layout of graphs like those of GPT-2 and BERT, against the processor time that it may take.

All modules are expanded, so that every box is visible; and once more without modules.
"""

from __future__ import annotations

import time

from lowerscope.core.model.graph import DEFAULT, GraphRecord
from lowerscope.core.views.graph.boxes import graph_record
from lowerscope.core.views.graph.hierarchy import (
    BoxText,
    Flow,
    Modules,
    Opening,
    groups_in,
    hierarchy,
)
from tests.benchmarks.figures import Figure

LIMITS = {1_000: 150.0, 10_000: 1000.0}
"""Milliseconds that the layout of so many visible nodes may take."""

REPEATS = 5

Model = tuple[list[BoxText], list[Flow], list[str]]
"""Boxes, flows, and the path of each box's module."""


class Sketch:
    """A graph that is written down node by node."""

    def __init__(self) -> None:
        self.boxes: list[BoxText] = []
        self.flows: list[Flow] = []
        self.paths: list[str] = []

    def add(self, name: str, path: str, *sources: str, kind: str = "call") -> str:
        entity = f"fx:{name}_{len(self.boxes)}"
        self.boxes.append(
            BoxText(entity, f"{name}_{len(self.boxes)}", kind, "te", name, (("64", ""),))
        )
        self.paths.append(path)
        self.flows += [Flow(source, entity, "1×128×768") for source in sources]
        return entity


def attention(sketch: Sketch, path: str, x: str, mask: str, *, split: bool) -> str:
    """Add what attention is written out as; one matrix for all three with `split`."""
    heads: list[str] = []
    joined = sketch.add("linear", f"{path}.c_attn", x) if split else x
    for name in ("query", "key", "value"):
        made = sketch.add("split" if split else "linear", f"{path}.{name}", joined)
        made = sketch.add("view", path, made)
        heads.append(sketch.add("permute", path, made))
    query, key, value = heads
    turned = sketch.add("transpose", path, key)
    scores = sketch.add("div", path, sketch.add("matmul", path, query, turned))
    weights = sketch.add("softmax", path, sketch.add("add", path, scores, mask))
    mixed = sketch.add("matmul", path, sketch.add("dropout", path, weights), value)
    merged = sketch.add("view", path, sketch.add("permute", path, mixed))
    return sketch.add("linear", f"{path}.out", merged)


def network(count: int, *, split: bool) -> Model:
    """Return a stack of transformer blocks of about `count` nodes, as in GPT-2 or in BERT."""
    sketch = Sketch()
    tokens = sketch.add("input_ids", "", kind="input")
    mask = sketch.add("mask", "", sketch.add("attention_mask", "", kind="input"))
    x = sketch.add("embedding", "embeddings", tokens)
    x = sketch.add("add", "embeddings", x, sketch.add("arange", "embeddings", kind="constant"))
    layer = 0
    while len(sketch.boxes) < count - 1:
        path = f"encoder.layer.{layer}"
        made = sketch.add("layer_norm", path, x) if split else x
        made = attention(sketch, f"{path}.attention", made, mask, split=split)
        x = sketch.add("add", path, x, made)
        if not split:
            x = sketch.add("layer_norm", path, x)
        made = sketch.add("layer_norm", path, x) if split else x
        made = sketch.add("linear", f"{path}.mlp", made)
        made = sketch.add("linear", f"{path}.mlp", sketch.add("gelu", f"{path}.mlp", made))
        x = sketch.add("add", path, x, made)
        layer += 1
    sketch.add("output", "", x, kind="output")
    return sketch.boxes, sketch.flows, sketch.paths


def laid_out(model: Model, *, modules: bool) -> GraphRecord:
    """Lay out a model with all of its modules expanded, or without them."""
    boxes, flows, paths = model
    if not modules:
        return graph_record(boxes, flows, DEFAULT, lambda: None)
    expanded = tuple(group.id for group in groups_in(hierarchy(paths)))
    known = Modules(paths, {}, Opening(expanded))
    return graph_record(boxes, flows, DEFAULT, lambda: None, modules=known)


def _processor_time(model: Model, *, modules: bool) -> float:
    """Return the milliseconds of a layout, which is one thread's work and waits for nothing."""
    start = time.process_time()
    laid_out(model, modules=modules)
    return (time.process_time() - start) * 1000


def layout_figures() -> list[Figure]:
    """Measure layouts of 1,000 and of 10,000 visible nodes."""
    figures: list[Figure] = []
    for count, limit in LIMITS.items():
        for name, split in (("GPT-2", True), ("BERT", False)):
            model = network(count, split=split)
            for modules in (True, False):
                laid_out(model, modules=modules)
                times = [_processor_time(model, modules=modules) for _ in range(REPEATS)]
                what = "in frames" if modules else "flat"
                figures.append(
                    Figure(
                        f"layout of {name}, {count:,} nodes {what}",
                        times,
                        [limit] * REPEATS,
                        "what it may take",
                        1.0,
                    )
                )
    return figures
