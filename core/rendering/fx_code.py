"""The Python code that torch.fx makes of a graph, with the node of each line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch import fx

from lowerscope.core.records.snapshot import Span, TextRecord

_ASSIGNED = re.compile(r" *(\w+)(?:\s*:[^=]*)? = ")


def fx_code(graph_module: fx.GraphModule) -> TextRecord:
    """Return the ``forward`` of a traced model, as ``GraphModule.code`` has it.

    Spans are ``fx:NODE``: the line that computes a node, and for the result that which returns it.
    """
    text = graph_module.code.strip("\n").rstrip()
    return TextRecord(
        text=text, language="python", spans=tuple(_spans(text.split("\n"), graph_module))
    )


def _spans(lines: list[str], graph_module: fx.GraphModule) -> Iterator[Span]:
    names = {node.name for node in graph_module.graph.nodes}
    outputs = [node.name for node in graph_module.graph.nodes if node.op == "output"]
    for number, line in enumerate(lines, start=1):
        match = _ASSIGNED.match(line)
        if match and match[1] in names:
            yield Span(entity=f"fx:{match[1]}", first=number, last=number)
        elif line.strip().startswith("return "):
            for name in outputs:
                yield Span(entity=f"fx:{name}", first=number, last=number)
