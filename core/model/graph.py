"""Graphs with their layout, in pixels at 100 % from the top left corner, and their text formats."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from lowerscope.core.model.encoding import Row
from lowerscope.core.model.texts import _, english, joined


def name_of(entity: str) -> str:
    """Return an id without its kind: ``linear0`` of ``fx:linear0``, ``lv1`` of a binding."""
    kind, _sep, name = entity.partition(":")
    if kind == "torch":
        return Path(name).name
    return name.partition("/")[2] or name if kind == "relax" else name


# --- Names and marks of strategies, and marks of statuses in a difference ---

STRATEGY_NAMES = {"high-level": _("High-level"), "te": "TE", "library": _("Library")}
STRATEGY_LETTERS = {"high-level": "HL", "te": "TE", "library": "LIB"}
STATUS_MARKS = {"same": "=", "changed": "~", "added": "+", "removed": "−"}

FAMILY_NAMES = {
    "dense": _("Conv, dense"),
    "attention": _("Attention"),
    "activation": _("Activation"),
    "normalisation": _("Normalisation"),
    "pooling": _("Pooling"),
    "elementwise": _("Elementwise"),
    "reduction": _("Reduction"),
    "shape": _("Shape, data"),
    "": _("Other"),
}
"""Names of operator families; an operator of none of them has the family ``""``."""


GraphName = Literal["fx", "relax"]
"""A graph of FX nodes, or of the bindings of a Relax function."""

TITLE_BAR = 26.0
"""Height of the bar with chevron and title at the top of a `Region` that has an id; no box overlaps
it. (The title of a region without an id is in its bottom left corner.)"""

GROUPS = frozenset(("group", "fused"))
"""Kinds of boxes that can be expanded."""

PILLS = frozenset(("input", "output"))
"""Kinds of boxes that are one line: the title, and a word on the value."""

HEADER, NAME_LINE, ROW, FOOT, PILL = 24.0, 26.0, 18.0, 5.0, 28.0
"""Heights in a box: of the coloured header with the operator, of the title, of each row, and below
the last row; and of a whole pill."""

PADDING = 11.0
"""Left and right of the text in a box; twice as much in a pill."""

BADGE = 34.0
"""Width of the badge in a header, with the gap before it."""

CHEVRON = 16.0
"""Width of the chevron in a title bar, and in a box of one of the `GROUPS`."""

FITS = (420.0, 560.0)
"""Width and height of a pane with a graph in a new window."""

WHOLE = (1e9, 1e9)
"""Width and height that every graph fits: all modules and fused functions are expanded."""

LEVELS: dict[str, tuple[tuple[str, ...] | None, tuple[float, float]]] = {
    "fit": (None, FITS),
    "all": (None, WHOLE),
    "none": ((), FITS),
}
"""Expanded modules of a picture by level: the modules, and the size that it has to fit."""

_BADGES = STRATEGY_LETTERS | STATUS_MARKS
_HEADERS = {"group": "module", "fused": _("fused function")}


Rows = tuple[tuple[str, str], ...]
"""Names and values of the rows of a box."""


class Box(Row, frozen=True):
    """A node: a rectangle with its top left corner at ``x``, ``y`` once it is laid out."""

    # Unique in the graph. Passes reuse names, so after a pass it may be that of another binding
    # elsewhere; see `origins`.
    id: str
    title: str  # name of the node
    # ``input``, ``constant``, ``call`` or ``output``; ``group`` for a collapsed module, whose id is
    # ``module:layer1``; ``fused`` for the call of a fused function that can be expanded.
    kind: str
    # As in `FxNode`, or empty; for a group, the one that all members have. In a difference,
    # ``added``, ``removed`` or ``changed``.
    strategy: str = ""
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    # Name of the operator, function or module that is called; empty for inputs and outputs.
    operator: str = ""
    # Parameters and their shapes, options, the number of nodes inside: names, and values or ``""``.
    rows: Rows = ()
    # Family of the operator, one of the `FAMILY_NAMES`; of a group, that of its class, or else the
    # weightiest inside.
    family: str = ""
    # Entities without a box of their own: weights and scalars, and all that is in a group, a fused
    # function or a branch. Ids of the lowered module where there are `origins`.
    members: tuple[str, ...] = ()
    # The bindings of the lowered module that became the box, none for those that a pass made.
    # ``None`` for a box whose id is valid everywhere.
    origins: tuple[str, ...] | None = None
    # shape, dtype: of a tensor; ``None`` and empty for other values
    shape: tuple[int | str, ...] | None = None
    dtype: str = ""
    # The innermost `Region` around it: its id, or its title where it has none; empty for none.
    group: str = ""

    @property
    def entities(self) -> tuple[str, ...]:
        """The entities that a click on the box selects."""
        return (self.id,) if self.origins is None else self.origins

    @property
    def badge(self) -> str:
        """A mark for the strategy."""
        return _BADGES.get(self.strategy, "")

    @property
    def header(self) -> str:
        """The text in the header: the operator, or the kind of a box without one."""
        return self.operator or _HEADERS.get(self.kind, self.kind)

    @property
    def description(self) -> str:
        """Operator and rows in a line: ``Linear · weight 128×784, bias 128``."""
        written = joined(", ", (joined(" ", filter(None, row)) for row in self.rows))
        return joined(" · ", filter(None, (self.operator, written)))

    @property
    def words(self) -> tuple[str, ...]:
        """The texts that a search looks through: title, description, and names of members."""
        return (self.title, self.description, *map(name_of, self.members))


class Edge(Row, frozen=True):
    """A value that flows from one box to another."""

    source: str
    target: str
    label: str = ""
    # From the bottom edge of the source to the top edge of the target, two or more; none before it
    # is laid out. A slanted segment may be drawn as a curve with vertical ends.
    points: tuple[tuple[float, float], ...] = ()
    # The left end of the label, at half its height; ``None`` where another edge has the label of
    # the same value.
    label_at: tuple[float, float] | None = None


class Port(Row, frozen=True):
    """A stub in the place of one or more long edges: its label names the other end."""

    box: str  # id of the box that it is attached to
    others: tuple[str, ...]  # ids of the boxes at the other ends: one source, or all targets
    label: str
    side: Literal["in", "out"]  # ``"in"``: above the box; ``"out"``: below it
    x: float
    y: float
    width: float
    height: float


class Region(Row, frozen=True):
    """A frame around boxes that belong together, with the `group` and `family` of a `Box`."""

    title: str
    x: float
    y: float
    width: float
    height: float
    # That of an expanded module, ``module:layer1``, or of the box of a fused function: both can be
    # collapsed. Empty for a dataflow block.
    id: str = ""
    origins: tuple[str, ...] = ()  # those of the box of a fused function
    group: str = ""
    family: str = ""


class GraphRecord(msgspec.Struct, frozen=True):
    """A graph with its layout."""

    boxes: tuple[Box, ...] = ()
    edges: tuple[Edge, ...] = ()
    width: float = 0.0
    height: float = 0.0
    regions: tuple[Region, ...] = ()  # the frames, outer ones first
    ports: tuple[Port, ...] = ()
    expanded: tuple[str, ...] = ()  # ids of the expanded modules and calls, outer ones first
    collapsible: bool = False  # whether there are modules or calls to collapse or expand


FIRST = 32
"""Code of the first measured character; the last is 126."""

# Characters of equal width in every weight of Inter.
_AS_WIDE_AS = {"×": "+", "·": "."}


class TextMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Advance widths in pixels of the characters 32 to 126 in the fonts of a graph box."""

    title: tuple[float, ...]  # of titles: Inter, semibold, 13 px
    quiet: tuple[float, ...]  # of headers, rows and labels: Inter, regular, 11 px

    def title_width(self, text: str) -> float:
        """Return the width of `text` in a title, in pixels."""
        return _width(text, self.title)

    def quiet_width(self, text: str) -> float:
        """Return the width of `text` in a header, row or label, in pixels."""
        return _width(text, self.quiet)


def cut_to(text: str, room: float, width_of: Callable[[str], float]) -> str:
    """Return `text` if it is no wider than `room` pixels, else a prefix with ``…`` at its end."""
    if width_of(text) <= room:
        return text
    # No character is narrower than two pixels.
    text = text[: int(room / 2)]
    while text and width_of(text + "…") > room:
        text = text[:-1]
    return text + "…"


def _width(text: str, advances: tuple[float, ...]) -> float:
    """Sum up `advances`; characters that were not measured count as the widest."""
    known, widest = _by_character(advances)
    return sum([known.get(character, widest) for character in text])


@lru_cache(maxsize=8)
def _by_character(advances: tuple[float, ...]) -> tuple[dict[str, float], float]:
    known = {chr(FIRST + index): advance for index, advance in enumerate(advances)}
    known |= {character: known[like] for character, like in _AS_WIDE_AS.items() if like in known}
    return known, max(advances)


# fmt: off
DEFAULT = TextMetrics(
    title=(
        3.22, 4.02, 5.14, 8.36, 8.44, 10.97, 8.61, 2.77, 5.11, 5.11, 7.06, 8.73, 3.83, 6.05,
        3.77, 4.91, 8.66, 6.25, 8.08, 8.47, 8.64, 8.22, 8.42, 7.62, 8.39, 8.42, 3.77, 3.83,
        8.73, 8.73, 8.73, 7.06, 12.98, 9.41, 8.53, 9.66, 9.41, 7.89, 7.61, 9.81, 9.66, 3.56,
        7.28, 8.8, 7.34, 11.78, 9.62, 10.06, 8.36, 10.08, 8.45, 8.44, 8.56, 9.53, 9.41, 13.08,
        8.97, 9.16, 8.48, 5.11, 4.91, 5.11, 6.25, 6.08, 6.45, 7.47, 8.19, 7.5, 8.19, 7.7, 4.89,
        8.12, 7.95, 3.38, 3.38, 7.39, 3.38, 11.66, 7.92, 7.89, 8.11, 8.11, 5.16, 7.12, 4.94,
        7.91, 7.48, 10.88, 7.31, 7.48, 7.3, 5.11, 4.64, 5.11, 8.73,
    ),
    quiet=(
        3.09, 3.06, 4.44, 6.94, 7.02, 8.94, 7.03, 2.44, 3.98, 3.98, 5.5, 7.25, 3.08, 5.06, 3.03,
        3.92, 6.88, 5.11, 6.66, 7.0, 7.06, 6.69, 6.86, 6.28, 6.78, 6.86, 3.03, 3.08, 7.25, 7.25,
        7.25, 5.58, 10.3, 7.44, 7.16, 8.0, 7.91, 6.58, 6.45, 8.17, 8.14, 2.91, 5.97, 7.17, 6.19,
        9.78, 8.28, 8.38, 6.98, 8.38, 7.03, 7.02, 7.06, 8.16, 7.44, 10.44, 7.06, 7.31, 6.88,
        3.98, 3.92, 3.98, 5.16, 4.97, 5.47, 6.2, 6.83, 6.14, 6.83, 6.41, 3.97, 6.7, 6.5, 2.61,
        2.61, 5.98, 2.61, 9.56, 6.44, 6.56, 6.7, 6.7, 4.09, 5.75, 4.0, 6.39, 6.12, 8.94, 5.94,
        6.12, 5.95, 3.98, 3.59, 3.98, 7.25,
    )
)
# fmt: on
"""Measured from the fonts in ``resources/fonts``, in Qt."""


# --- Text formats of graphs: DOT, GraphML, and node-link JSON; without torch or TVM ---

_NOT_IN_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def network(graph: GraphRecord, name: str) -> Any:
    """Return a graph as a `networkx.DiGraph`.

    Nodes have ``label``, ``description``, ``family``, ``kind``, ``operator``, ``shape``, ``dtype``,
    ``strategy`` and ``group``, and ``x``, ``y``, ``width``, ``height`` in pixels. A shape is
    ``[1, 784]``. Edges have ``label`` and ``kind``: ``"data"``, or ``"stub"`` if a stub at both
    ends replaces a long line. Attributes without a value are absent.
    """
    import networkx

    result = networkx.DiGraph(name=name)
    for box in graph.boxes:
        words = {
            "label": english(box.title),
            "description": english(box.description),
            "family": box.family,
            "kind": box.kind,
            "operator": box.operator,
            "shape": "" if box.shape is None else f"[{', '.join(map(str, box.shape))}]",
            "dtype": box.dtype,
            "strategy": box.strategy,
            "group": box.group,
        }
        places = {"x": box.x, "y": box.y, "width": box.width, "height": box.height}
        result.add_node(box.id, **_there(words), **{key: float(at) for key, at in places.items()})
    for edge in graph.edges:
        result.add_edge(
            edge.source, edge.target, **_there({"label": english(edge.label), "kind": "data"})
        )
    for source, target, label in _stubs(graph):
        result.add_edge(source, target, **_there({"label": label, "kind": "stub"}))
    return result


def _there(attributes: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in attributes.items() if value}


def graphml_text(graph: GraphRecord, name: str) -> str:
    """Return a graph in GraphML; characters invalid in XML are written ``\\x1b``."""
    import networkx

    made = network(graph, name)
    for *_ends, attributes in (*made.nodes.data(), *made.edges.data()):
        for key, value in attributes.items():
            attributes[key] = _in_xml(value) if isinstance(value, str) else value
    made = networkx.relabel_nodes(made, _in_xml)
    return "\n".join(networkx.generate_graphml(made)) + "\n"


def json_text(graph: GraphRecord, name: str) -> str:
    """Return a graph in the node-link form of networkx, with the keys ``nodes`` and ``edges``."""
    import networkx

    data = networkx.node_link_data(network(graph, name), edges="edges")
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def dot_text(graph: GraphRecord, name: str) -> str:
    """Return a graph in Graphviz's DOT, with the positions of this layout."""
    lines = [
        f"digraph {name} {{",
        "  graph [splines=true, inputscale=72, notranslate=true];",
        '  node [shape=box, style=rounded, fontname="Helvetica", fontsize=10, fixedsize=true];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for box in graph.boxes:
        title = english(joined("\n", filter(None, (box.title, box.description))))
        x, y = box.x + box.width / 2, graph.height - box.y - box.height / 2
        # Graphviz's y axis points up, and its sizes are in inches.
        place = f'pos="{x:.1f},{y:.1f}!", width={box.width / 72:.3f}, height={box.height / 72:.3f}'
        kind = f'class="{box.kind}{" " + box.strategy if box.strategy else ""}"'
        lines.append(f"  {_quoted(box.id)} [label={_quoted(title)}, {kind}, {place}];")
    for edge in graph.edges:
        label = f" [label={_quoted(english(edge.label))}]" if edge.label else ""
        lines.append(f"  {_quoted(edge.source)} -> {_quoted(edge.target)}{label};")
    for source, target, text in _stubs(graph):
        label = f"label={_quoted(text)}, " if text else ""
        lines.append(f"  {_quoted(source)} -> {_quoted(target)} [{label}style=dashed];")
    return "\n".join([*lines, "}", ""])


TEXT_FORMATS: Mapping[str, Callable[[GraphRecord, str], str]] = {
    "dot": dot_text,
    "graphml": graphml_text,
    "json": json_text,
}
"""Writers of the text formats of graphs, by file suffix."""


def _stubs(graph: GraphRecord) -> Iterator[tuple[str, str, str]]:
    """Yield source, target and label of the edges that are drawn as stubs."""
    for port in graph.ports:
        if port.side == "in":
            for other in port.others:
                yield other, port.box, english(port.label)


def _in_xml(text: str) -> str:
    return _NOT_IN_XML.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
