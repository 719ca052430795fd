"""Records of the nodes of an FX graph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from torch import fx

from lowerscope.core.records.snapshot import FxNode, FxPart, SourceLine, Span, TextRecord
from lowerscope.core.rendering.graphs.fx_graph import Values, label_of

if TYPE_CHECKING:
    from torch.fx import GraphModule


_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Part(Protocol):
    """One of the operators that a node was broken up into."""

    @property
    def name(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def args(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...] | None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def bindings(self) -> tuple[str, ...]: ...
    @property
    def functions(self) -> tuple[str, ...]: ...


class Lowered(Protocol):
    """Lowering of a node: ids of Relax bindings and of PrimFuncs."""

    @property
    def strategy(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def random(self) -> bool: ...
    @property
    def line(self) -> SourceLine | None: ...
    @property
    def bindings(self) -> tuple[str, ...]: ...
    @property
    def functions(self) -> tuple[str, ...]: ...
    @property
    def parts(self) -> Sequence[Part]: ...


def fx_nodes(
    graph_module: GraphModule,
    values: Values,
    lines: Mapping[str, SourceLine],
    modules: Mapping[str, str],
    lowered: Mapping[str, Lowered],
) -> tuple[FxNode, ...]:
    """Return a record of each node, in order.

    Parameters
    ----------
    values, lines, modules, lowered
        The value of each node, its line and dotted module path of origin, and its lowering, by node
        name; nodes may be missing.

    Returns
    -------
    tuple[FxNode, ...]
        Target and arguments are written as ``Graph.print_tabular`` writes them, but for the
        addresses in memory, which differ from run to run.
    """
    records: list[FxNode] = []
    for node in graph_module.graph.nodes:
        value = values.get(node.name)
        lowering = lowered.get(node.name)
        records.append(
            FxNode(
                id=f"fx:{node.name}",
                name=node.name,
                opcode=node.op,
                target=_ADDRESS.sub("", str(node.target)),
                args=_ADDRESS.sub("", str(node.args)),
                kwargs=_ADDRESS.sub("", str(node.kwargs)),
                shape=None if value is None else value.shape,
                dtype="" if value is None else value.dtype,
                type="" if value is None else value.text,
                label=str(label_of(node, graph_module, values)),
                module=modules.get(node.name, ""),
                line=lines.get(node.name),
                strategy="" if lowering is None else lowering.strategy,
                rule="" if lowering is None else lowering.rule,
                reason="" if lowering is None else lowering.reason,
                random=lowering is not None and lowering.random,
                rule_line=None if lowering is None else lowering.line,
                bindings=() if lowering is None else tuple(lowering.bindings),
                functions=() if lowering is None else tuple(lowering.functions),
                parts=() if lowering is None else _parts(node.name, lowering.parts),
            )
        )
    return tuple(records)


def _parts(node: str, parts: Sequence[Part]) -> tuple[FxPart, ...]:
    return tuple(
        FxPart(
            id=f"part:{node}/{part.name}",
            name=part.name,
            target=part.target,
            args=_ADDRESS.sub("", part.args),
            shape=part.shape,
            dtype=part.dtype,
            rule=part.rule,
            bindings=part.bindings,
            functions=part.functions,
        )
        for part in parts
    )


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
