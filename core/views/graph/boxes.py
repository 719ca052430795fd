"""Graphs of boxes, from texts to a layout."""

from __future__ import annotations

import gc
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from msgspec.structs import replace

from lowerscope.core.model.graph import (
    BADGE,
    CHEVRON,
    FAMILY_NAMES,
    FOOT,
    GROUPS,
    HEADER,
    NAME_LINE,
    PADDING,
    PILL,
    PILLS,
    ROW,
    Box,
    Edge,
    GraphRecord,
    Port,
    Region,
    TextMetrics,
    cut_to,
)
from lowerscope.core.model.texts import _, _n, joined
from lowerscope.core.views.graph.hierarchy import (
    FITTING,
    Block,
    Blocks,
    Group,
    Item,
    Modules,
    Opening,
    groups_in,
    hierarchy,
    in_series,
)
from lowerscope.core.views.graph.layout.layout import layout
from lowerscope.core.views.graph.layout.rank import LayoutItem, Subgraph
from lowerscope.core.views.graph.layout.route import NodeSize

# --- Operator families, by the name of a module class, function, method, ATen or Relax operator ---

_OPERATORS: Mapping[str, str] = {
    "attention": """
        attention attentionbias attentionvarlen flexattention multiheadattention
        scaleddotproductattention scaleddotproductefficientattention
        scaleddotproductflashattention scaleddotproductflashattentionforcpu
    """,
    "dense": """
        addbmm addmm addmv addr baddbmm batchmatmul bilinear bmm chaindot conv convolution convtbc
        convtranspose deformconv deformableconv dense dot einsum gru grucell inner ger gemm linear
        linearrelu lstm lstmcell matmul matvec mkldnnrnn mm multidot mv outer rnn rnncell
        rnnrelu rnntanh tensordot vdot
    """,
    "pooling": """
        adaptiveavgpool adaptivemaxpool avgpool fractionalmaxpool globalavgpool globalmaxpool
        interpolate lppool maxpool maxunpool pool resize upsample upsamplebicubic upsamplebilinear
        upsamplenearest
    """,
    "normalisation": """
        batchnorm crossmaplrn groupnorm instancenorm layernorm linalgnorm linalgvectornorm
        localresponsenorm lrn norm normalize rmsnorm spectralnorm syncbatchnorm weightnorm
    """,
    "activation": """
        alphadropout celu dropout elu featuredropout gelu gelutanh glu hardshrink hardsigmoid
        hardswish hardtanh leakyrelu logsigmoid logsoftmax mish prelu relu rrelu selu sigmoid silu
        softmax softmin softplus softshrink softsign swish swiglu tanh tanhshrink threshold
    """,
    "reduction": """
        all amax amin aminmax any argmax argmin argsort bincount bucketize count countnonzero
        crossentropy crossentropywithlogits cumprod cumsum histc kthvalue logcumsumexp logsumexp max
        mean median min mode mseloss multinomial nanmean nansum nllloss nonzero prod searchsorted
        sort std stdmean sum topk trace unique uniqueconsecutive var varmean variance
    """,
    "elementwise": """
        abs acos acosh add addcdiv addcmul and angle asin asinh atan atanh bitwise bitwiseand
        bitwisenot bitwiseor bitwisexor ceil clamp clampmax clampmin clip cos cosh deg divide div
        eq equal erf erfc erfinv exp expm expm1 fill floor floordiv floordivide floormod fmax fmin
        fmod frac ge greater greaterequal gt heaviside hypot isfinite isinf isnan invert ldexp le
        lerp less lessequal log logaddexp logical logicaland logicalnot logicalor logicalxor logit
        lshift leftshift lt maskedfill maximum minimum mod mul multiply ne neg negate negative not
        notequal or pow power rad reciprocal remainder rightshift round rshift rsqrt rsub sgn sign
        sin sinh sqrt square sub subtract tan truediv trunc truncmod where xor
    """,
    "shape": """
        affinegrid allocstorage alloctensor arange asstrided astype atleast broadcast broadcastto
        bool cast cat channelshuffle chunk clone collapsesumlike concat concatenate constantpad
        contiguous copy detach diag diagonal dstack dtype dynamicstridedslice embedding
        embeddingbag empty emptylike expand expanddims eye flatten flip float fold full fulllike
        gather gatherelements gathernd getattr getitem gridsample half hint hstack identity index
        indexadd indexcopy indexput indexselect indextensor int layouttransform linspace long
        lifttotensor maskedselect matchcast meshgrid moveaxis movedim narrow newempty newfull
        newones newzeros numel onehot ones oneslike pad permute permutedims pixelshuffle
        pixelunshuffle rand randint randn ravel reflectionpad repeat repeatinterleave replicationpad
        reshape reverse roll rot rsplit scatter scatteradd scatterelements scatternd select setitem
        shape shapeof size slice sliceassign slicescatter split splitwithsizes squeeze stack
        stopliftparams strided stridedslice swapaxes symsize take takealongdim tensor
        tensortoshape tensorsplit tile to tocopy toview transpose tril triu tup tuple type unbind
        unfold unflatten unsafesplit unsafeview unsqueeze view viewas vstack zeropad zeros
        zeroslike
    """,
}
"""Operators of each family, the weightiest family first: a fused function has that of the first.

Names are in lower case, without underscores and without trailing numbers such as those in
``Conv2d`` and ``dense1``.
"""

_FAMILY_OF = {
    operator: family for family, operators in _OPERATORS.items() for operator in operators.split()
}
_RANK = {family: rank for rank, family in enumerate(_OPERATORS)}
_LONGEST = 6
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+d?")
_NAME = re.compile(r"\w+")


@lru_cache(maxsize=4096)
def family_of(operator: str) -> str:
    """Return the family of an operator, or of the weightiest one in the name of a fused function.

    ``Conv2d``, ``aten::_native_batch_norm_legit``, ``R.nn.relu`` and ``call_tir fused_dense1_add2``
    are all found; the family of a name without a known operator is ``""``.
    """
    return weightiest(family for name in _NAME.findall(operator[:200]) for family in _in(name))


def _in(name: str) -> Iterator[str]:
    """Yield the families of the operators in a name, each as long as possible."""
    words = [word.lower() for word in _WORD.findall(name) if not word[0].isdigit()]
    start = 0
    while start < len(words):
        for end in range(min(len(words), start + _LONGEST), start, -1):
            family = _FAMILY_OF.get("".join(words[start:end]))
            if family is not None:
                yield family
                start = end
                break
        else:
            start += 1


def weightiest(families: Iterable[str]) -> str:
    """Return the family that stands for several, such as those in a module."""
    return min((each for each in families if each in _RANK), key=_RANK.__getitem__, default="")


assert _RANK.keys() <= FAMILY_NAMES.keys()


@dataclass(frozen=True, slots=True)
class Frame:
    """A group that is expanded, or a dataflow block: boxes by number, and frames, in order.

    `kind`: the class of a module, or the call of a fused function.
    """

    id: str
    title: str
    items: tuple[FrameItem, ...]
    kind: str = ""


FrameItem: TypeAlias = "int | Frame"


@dataclass(frozen=True, slots=True)
class Collapsed:
    """The rest of a graph after collapsing.

    `boxes`, `flows`: with a box for each collapsed group, and one flow at most from one box to
        another.
    `items`: the boxes by number, and the frames of the expanded groups, in order.
    `of`: for each box of the whole graph, the number of the one that it is or is in.
    """

    boxes: tuple[Box, ...]
    flows: tuple[Edge, ...]
    items: tuple[FrameItem, ...]
    of: tuple[int, ...]


def collapse(
    boxes: Sequence[Box],
    flows: Sequence[Edge],
    items: Sequence[Item],
    expanded: Set[str],
    kinds: Mapping[str, str],
    unit: str = "nodes",
    calls: Mapping[str, Box] = MappingProxyType({}),
) -> Collapsed:
    """Collapse all groups that are not in `expanded`."""
    left = _Left(boxes, expanded, kinds, unit, calls)
    frames = left.add(items)
    labels: dict[tuple[str, str], dict[str, None]] = {}
    number = {box.id: index for index, box in enumerate(boxes)}
    for flow in flows:
        source = left.boxes[left.of[number[flow.source]]].id
        target = left.boxes[left.of[number[flow.target]]].id
        if source != target:
            labels.setdefault((source, target), {})[flow.label] = None
    merged = tuple(
        Edge(
            source,
            target,
            next(iter(written)) if len(written) == 1 else _("{count} values", count=len(written)),
        )
        for (source, target), written in labels.items()
    )
    of = tuple(left.of[index] for index in range(len(boxes)))
    return Collapsed(tuple(left.boxes), merged, frames, of)


@dataclass(slots=True)
class _Left:
    """Builder of the remaining boxes, in order."""

    whole: Sequence[Box]
    expanded: Set[str]
    kinds: Mapping[str, str]
    unit: str
    calls: Mapping[str, Box]
    boxes: list[Box] = field(default_factory=list)
    of: dict[int, int] = field(default_factory=dict)

    def add(self, items: Sequence[Item]) -> tuple[FrameItem, ...]:
        result: list[FrameItem] = []
        for item in items:
            if isinstance(item, int):
                self.of[item] = len(self.boxes)
                result.append(len(self.boxes))
                self.boxes.append(self.whole[item])
            elif isinstance(item, Block):
                result.append(Frame("", item.title, self.add(item.items)))
            elif item.id in self.expanded:
                kind = self._kind(item)
                title = _named(item.title, kind)
                result.append(Frame(item.id, title, self.add(item.items), kind))
            else:
                for box in item.boxes():
                    self.of[box] = len(self.boxes)
                result.append(len(self.boxes))
                self.boxes.append(self._group_box(item))
        return tuple(result)

    def _kind(self, group: Group) -> str:
        call = self.calls.get(group.id)
        if call is not None:
            return call.operator
        if group.alike:
            first = next(each for each in group.items if isinstance(each, Group))
            return f"{self._kind(first)} ×{group.alike}".strip()
        return self.kinds.get(group.path, "")

    def _group_box(self, group: Group) -> Box:
        if group.id in self.calls:
            return self.calls[group.id]
        inside = list(self._inside(group))
        strategies = {box.strategy for box in inside} - {""}
        return Box(
            id=group.id,
            title=group.title,
            kind="group",
            strategy=strategies.pop() if len(strategies) == 1 else "",
            operator=self._kind(group),
            rows=((self._size(len(inside)), ""),),
            members=tuple(dict.fromkeys(each for box in inside for each in _held(box))),
        )

    def _size(self, count: int) -> str:
        if self.unit == "bindings":
            return _n("{count} binding", "{count} bindings", count)
        return _n("{count} node", "{count} nodes", count)

    def _inside(self, group: Group) -> Iterator[Box]:
        """Yield the contents of a module: the call of a fused function counts as one."""
        for item in group.items:
            if isinstance(item, int):
                yield self.whole[item]
            elif isinstance(item, Group):
                yield from (self.calls[item.id],) if item.id in self.calls else self._inside(item)


def _held(box: Box) -> tuple[str, ...]:
    return (*((box.id,) if box.origins is None else box.origins), *box.members)


def _named(one: str, two: str) -> str:
    return joined(" · ", filter(None, (one, two)))


# Which level fits

_READABLE = 0.5
"""The zoom below which the text in a box is illegible."""

_BETWEEN = 44.0
_COLUMN = 180.0
_FRAME = 60.0


def level_that_fits(
    boxes: Sequence[Box], flows: Sequence[Edge], items: Sequence[Item], fits: tuple[float, float]
) -> frozenset[str]:
    """Return the ids of the groups to expand: all down to the depth at which all are legible."""
    groups = list(groups_in(items))
    expanded: frozenset[str] = frozenset()
    for depth in range(max((group.depth for group in groups), default=-1) + 1):
        deeper = frozenset(group.id for group in groups if group.depth <= depth)
        left = collapse(boxes, flows, items, deeper, {})
        width, height = _rough_size(left, depth + 1)
        if width * _READABLE > fits[0] or height * _READABLE > fits[1]:
            break
        expanded = deeper
    return expanded


def _rough_size(left: Collapsed, frames: int) -> tuple[float, float]:
    """Return an estimate of the picture's width and height."""
    number = {box.id: index for index, box in enumerate(left.boxes)}
    row = [0] * len(left.boxes)
    targets: list[list[int]] = [[] for _other in left.boxes]
    for flow in left.flows:
        targets[number[flow.source]].append(number[flow.target])
    for source, below in enumerate(targets):
        for target in below:
            row[target] = max(row[target], row[source] + 1)
    columns = Counter(row)
    heights: dict[int, float] = {}
    for each, box in zip(row, left.boxes, strict=True):
        heights[each] = max(heights.get(each, 0.0), _height(box))
    height = sum(heights.values()) + _BETWEEN * len(heights) + _FRAME * frames
    return max(columns.values(), default=0) * _COLUMN, height


_MANY = 3
"""Least number of distant uses of a value with stubs."""

_FAR = 4
"""Least distance of a use with a stub, in layers."""

STUB_HEIGHT = 16.0
"""Height of a stub, in pixels."""

STUB_GAP = 6.0
"""Gap between a stub and its box, and between two stubs, in pixels."""

_STUB_BESIDE = 10.0
_INSET = 12.0
_STEP = 16.0
_PAD = 6.0
_WIDEST = 120.0


@dataclass(frozen=True, slots=True)
class Stub:
    """A stub, the ids of the boxes at the other end, and its width in pixels."""

    label: str
    others: tuple[str, ...]
    width: float


@dataclass(slots=True)
class Stubs:
    """The edges of a graph, and its stubs.

    A mask or a scalar that every layer reads would be a bundle of edges along the whole graph. Each
    distant use has a stub with the value's name instead.

    `ins`, `outs`: the stubs above each box, and below it.
    `lines`: number of edges that end at each box.
    """

    flows: list[Edge]
    ins: dict[str, list[Stub]] = field(default_factory=dict)
    outs: dict[str, Stub] = field(default_factory=dict)
    lines: Counter[str] = field(default_factory=Counter)

    def room(self, box: str, width: float) -> tuple[float, float, float]:
        """Return the extents of a box's stubs to the left and right of its middle, and above it."""
        above = self.ins.get(box, ())
        start = self._start(box, width)
        right = start + self._wide(box) if above else 0.0
        left = -start if above else 0.0
        if box in self.outs:
            left = max(left, _STUB_BESIDE + self.outs[box].width)
        return left, right, STUB_HEIGHT + STUB_GAP if above else 0.0

    def ports(self, box: str, x: float, y: float, width: float, height: float) -> list[Port]:
        """Return the stubs of a box at these coordinates."""
        ports: list[Port] = []
        at = x + width / 2 + self._start(box, width)
        for stub in self.ins.get(box, ()):
            ports.append(
                Port(
                    box=box,
                    others=stub.others,
                    label=stub.label,
                    side="in",
                    x=at,
                    y=y - STUB_GAP - STUB_HEIGHT,
                    width=stub.width,
                    height=STUB_HEIGHT,
                )
            )
            at += stub.width + STUB_GAP
        if box in self.outs:
            out = self.outs[box]
            ports.append(
                Port(
                    box=box,
                    others=out.others,
                    label=out.label,
                    side="out",
                    x=x + width / 2 - _STUB_BESIDE - out.width,
                    y=y + height + STUB_GAP,
                    width=out.width,
                    height=STUB_HEIGHT,
                )
            )
        return ports

    def _wide(self, box: str) -> float:
        above = self.ins[box]
        return sum(stub.width for stub in above) + STUB_GAP * (len(above) - 1)

    def _start(self, box: str, width: float) -> float:
        """Return the start of the stubs above a box, from its middle: right of the edges."""
        if box not in self.ins:
            return 0.0
        if self.lines[box] == 0:
            return -self._wide(box) / 2
        return _STUB_BESIDE + min(_STEP * (self.lines[box] - 1), width / 2 - _INSET)


def with_stubs(
    boxes: Sequence[Box], flows: Sequence[Edge], text_width: Callable[[str], float]
) -> Stubs:
    """Select the flows that are drawn as stubs; the nearest use of a value keeps its edge.

    `boxes`: in topological order.
    """
    row = _rows(boxes, flows)
    leaving: dict[str, list[Edge]] = {}
    for flow in flows:
        leaving.setdefault(flow.source, []).append(flow)
    titles = {box.id: box.title for box in boxes}
    hidden: set[tuple[str, str]] = set()
    stubs = Stubs([])
    for source, uses in leaving.items():
        nearest = min(uses, key=lambda flow: row[flow.target])
        far = [
            flow.target
            for flow in uses
            if flow is not nearest and row[flow.target] - row[source] >= _FAR
        ]
        if len(far) < _MANY:
            continue
        hidden.update((source, target) for target in far)
        out = _("{count} more uses", count=len(far))
        stubs.outs[source] = Stub(out, tuple(far), text_width(out) + 2 * _PAD)
        label = cut_to(titles[source], _WIDEST, text_width)
        for target in far:
            stub = Stub(label, (source,), text_width(label) + 2 * _PAD)
            stubs.ins.setdefault(target, []).append(stub)
    stubs.flows = [flow for flow in flows if (flow.source, flow.target) not in hidden]
    stubs.lines = Counter(flow.target for flow in stubs.flows)
    return stubs


def _rows(boxes: Sequence[Box], flows: Sequence[Edge]) -> dict[str, int]:
    """Return the longest-path layer of each box; sources are next to their first use."""
    row = dict.fromkeys((box.id for box in boxes), 0)
    targets: dict[str, list[str]] = {}
    reading: set[str] = set()
    for flow in flows:
        targets.setdefault(flow.source, []).append(flow.target)
        reading.add(flow.target)
    for box in boxes:
        below = row[box.id] + 1
        for target in targets.get(box.id, ()):
            row[target] = max(row[target], below)
    for box in boxes:
        if box.id not in reading and box.id in targets:
            row[box.id] = min(row[target] for target in targets[box.id]) - 1
    return row


_LEAST_WIDTH = 160.0
_LEAST_PILL = 96.0
_WIDEST_ROW = 300.0
_WIDEST_TITLE = 420.0
_BETWEEN_WORDS = 12.0


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector, which takes a quarter of the time of a large layout."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_garbage_collection_paused()
def graph_record(
    boxes: Sequence[Box],
    flows: Sequence[Edge],
    metrics: TextMetrics,
    check: Callable[[], None],
    blocks: Blocks | None = None,
    modules: Modules | None = None,
) -> GraphRecord:
    """Lay out boxes and the values that flow between them.

    Rows that are very long are cut, and end in ``…``; titles are kept, and have to be cut to the
    width of the box where they are drawn. Two boxes have one edge at most. Where
    a value is used in many places far from it, stubs at both ends take the place of edges.

    `boxes`, `flows`: the graph, every box after those that it reads.
    `check`: called often; may raise to cancel.
    """
    boxes = [_cut(box, metrics) for box in boxes]
    if modules is None:
        modules = Modules([""] * len(boxes), {}, FITTING)
    items = in_series(hierarchy(modules.paths, blocks, modules.calls), boxes, modules.kinds)
    calls = {call.id: _cut(call, metrics) for call in modules.calls.values()}
    expanded = _expanded(boxes, flows, items, modules.opening)
    left = collapse(boxes, flows, items, expanded, modules.kinds, modules.unit, calls)
    widths = {box.id: _width(box, metrics) for box in left.boxes}
    stubs = with_stubs(left.boxes, left.flows, metrics.quiet_width)
    # Thousands of edges have few labels.
    label_widths = {label: metrics.quiet_width(label) for label in {f.label for f in stubs.flows}}
    placed = layout(
        [_size(box, widths[box.id], stubs) for box in left.boxes],
        [(flow.source, flow.target, label_widths[flow.label]) for flow in stubs.flows],
        check,
        [_layout_item(item, metrics) for item in left.items],
        None if blocks is None else _bands_of(left, blocks),
    )
    groups = dict(_groups_of(left.items))
    families = _families(left, [family_of(box.operator) for box in boxes])
    drawn = tuple(
        replace(
            box,
            x=placed.corners[box.id][0],
            y=placed.corners[box.id][1],
            width=widths[box.id],
            height=_height(box),
            family=families[index],
            group=groups[index],
        )
        for index, box in enumerate(left.boxes)
    )
    edges = tuple(
        replace(flow, points=path.points, label_at=path.label_at)
        for flow, path in zip(stubs.flows, placed.edges, strict=True)
    )
    regions = tuple(
        Region(
            title=frame.title,
            x=x,
            y=y,
            width=width,
            height=height,
            id=frame.id,
            origins=(calls[frame.id].origins or ()) if frame.id in calls else (),
            group=around,
            family=_frame_family(frame, families),
        )
        for (frame, around), (x, y, width, height) in zip(
            _frames_in(left.items), placed.frames, strict=True
        )
    )
    return GraphRecord(
        boxes=drawn,
        edges=edges,
        width=placed.width,
        height=placed.height,
        regions=regions,
        ports=tuple(
            port
            for box in drawn
            for port in stubs.ports(box.id, box.x, box.y, box.width, box.height)
        ),
        expanded=tuple(region.id for region in regions if region.id),
        collapsible=any(box.kind == "fused" for box in boxes)
        or any(True for _other in groups_in(items)),
    )


def _expanded(
    boxes: Sequence[Box], flows: Sequence[Edge], items: Sequence[Item], opening: Opening
) -> Set[str]:
    """Return the ids of the expanded groups."""
    if opening.is_whole:
        return {group.id for group in groups_in(items)}
    if opening.expanded is None:
        return level_that_fits(boxes, flows, items, opening.fits)
    return frozenset(opening.expanded)


def _size(box: Box, width: float, stubs: Stubs) -> NodeSize:
    left, right, above = stubs.room(box.id, width)
    return NodeSize(box.id, width, _height(box), left, right, above, box.kind == "constant")


def _layout_item(item: FrameItem, metrics: TextMetrics) -> LayoutItem:
    if isinstance(item, int):
        return item
    inside = tuple(_layout_item(each, metrics) for each in item.items)
    width = (
        min(metrics.quiet_width(item.title), _WIDEST_TITLE)
        + 2 * _BETWEEN_WORDS
        + (CHEVRON if item.id else 0.0)
    )
    return Subgraph(width, inside, bar=bool(item.id))


def _frames_in(items: Sequence[FrameItem], group: str = "") -> Iterator[tuple[Frame, str]]:
    """Yield all frames, outer ones first, with the id or the title of the frame around each."""
    for item in items:
        if isinstance(item, Frame):
            yield item, group
            yield from _frames_in(item.items, item.id or item.title)


def _families(left: Collapsed, whole: Sequence[str]) -> list[str]:
    """Return the family of each box; ``whole`` are those of the boxes of the whole graph."""
    inside: dict[int, list[str]] = {}
    for index, box in enumerate(left.of):
        if left.boxes[box].kind in GROUPS:
            inside.setdefault(box, []).append(whole[index])
    return [
        family_of(box.operator) or weightiest(inside.get(index, ()))
        for index, box in enumerate(left.boxes)
    ]


def _frame_family(frame: Frame, families: Sequence[str]) -> str:
    """Return the family of an expanded group: that of its class, or else the weightiest inside."""
    inside = (
        families[each] if isinstance(each, int) else _frame_family(each, families)
        for each in frame.items
    )
    return family_of(frame.kind) or weightiest(inside)


def _groups_of(items: Sequence[FrameItem], group: str = "") -> Iterator[tuple[int, str]]:
    """Yield each box by number, with the id or the title of the innermost frame around it."""
    for item in items:
        if isinstance(item, Frame):
            yield from _groups_of(item.items, item.id or item.title)
        else:
            yield item, group


def _bands_of(left: Collapsed, blocks: Blocks) -> list[int]:
    """Return the band of each outermost item: all of an item is in one band."""
    band = {box: blocks.bands[whole] for whole, box in enumerate(left.of)}

    def first(item: FrameItem) -> int:
        return item if isinstance(item, int) else first(item.items[0])

    return [band[first(item)] for item in left.items]


def _cut(box: Box, metrics: TextMetrics) -> Box:
    """Cut the texts of rows that are wider than any box."""
    if all(metrics.quiet_width(name + value) <= _WIDEST_ROW for name, value in box.rows):
        return box
    rows = []
    for name, value in box.rows:
        name = cut_to(name, _WIDEST_ROW, metrics.quiet_width)
        room = max(_WIDEST_ROW - metrics.quiet_width(name), _WIDEST_ROW / 4)
        rows.append((name, cut_to(value, room, metrics.quiet_width)))
    return replace(box, rows=tuple(rows))


def _width(box: Box, metrics: TextMetrics) -> float:
    """Return the width of a box, an even number: edges meet it in the middle of a pixel."""
    title = min(metrics.title_width(box.title), _WIDEST_TITLE)
    rows = [
        metrics.quiet_width(name) + (metrics.quiet_width(value) + _BETWEEN_WORDS if value else 0.0)
        for name, value in box.rows
    ]
    if box.kind in PILLS:
        text = title + sum(_BETWEEN_WORDS / 2 + row for row in rows) + 2 * PADDING
        least = _LEAST_PILL
    else:
        header = min(metrics.quiet_width(box.operator), _WIDEST_ROW)
        header += (BADGE if box.strategy else 0.0) + (CHEVRON if box.kind in GROUPS else 0.0)
        text = max(title, header, *rows)
        least = _LEAST_WIDTH
    return max(least, 2.0 * math.ceil(text / 2 + PADDING))


def _height(box: Box) -> float:
    if box.kind in PILLS:
        return PILL
    return HEADER + NAME_LINE + (ROW * len(box.rows) + FOOT if box.rows else 0.0)
