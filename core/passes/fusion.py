"""Operator fusion explained: the partition of ``FuseOps``, replayed on the module that it read.

``FuseOps`` groups bindings by the pattern kinds of their operators and by post-dominance: a value
is fused with the binding where all of its uses meet, if the operators on all paths to it allow
that. The replay follows TVM 0.27 (``src/relax/analysis/graph_partitioner.cc``), and keeps for each
binding why it was not fused with its post-dominator. Tests compare its groups with those of TVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import tvm
from tvm import ir, relax, tirx

from lowerscope.core.ir.relax import Bound, bound_in, callee_of, relax_functions
from lowerscope.core.model.explanation_records import Cause

MOST_FUSED = 256
"""Most bindings in a group, unless ``relax.FuseOps.max_depth`` says otherwise."""


class Kind(IntEnum):
    """Pattern kind of an operator, as ``AnnotateTIROpPattern`` writes it to its function."""

    ELEMENTWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    REDUCTION = 3
    ANCHOR = 4  # kOutEWiseFusable, such as a product of matrices
    TUPLE = 7
    OPAQUE = 8


KIND_TEXTS = {
    Kind.ELEMENTWISE: "elementwise",
    Kind.BROADCAST: "broadcast",
    Kind.INJECTIVE: "injective",
    Kind.REDUCTION: "reduction",
    Kind.ANCHOR: "out-elementwise-fusable",
    Kind.TUPLE: "tuple",
    Kind.OPAQUE: "opaque",
}


@dataclass(eq=False)
class Vertex:
    """A binding in the graph that ``FuseOps`` partitions.

    `kind`: of its operator; `barrier`: the cause, where that is opaque.
    `is_output`: whether its value leaves the dataflow block.
    `users`: the bindings that read its value, each with the kind of its operator.
    `dominator`: the binding where all of its uses meet; ``None`` if there is none.
    `path_kind`: the largest kind on the paths to it.
    `blocked`: why it was not fused with its dominator, the binding that forbids it, and the kind
    that this had by then: its own, or that of its group.
    `hoisted`: whether it reads a field of a tuple from outside its group, which is done in front of
    the fused function.
    """

    bound: Bound
    kind: Kind
    barrier: Cause | None = None
    is_output: bool = False
    users: list[tuple[Vertex, Kind]] = field(default_factory=list)
    dominator: Vertex | None = None
    depth: int = 1
    path_kind: Kind = Kind.ELEMENTWISE
    blocked: tuple[Cause, Vertex, Kind] | None = None
    hoisted: bool = False
    group: Group = field(init=False)

    def __post_init__(self) -> None:
        self.group = Group(self.kind, self.kind is Kind.ANCHOR)


@dataclass(eq=False)
class Group:
    """A set of bindings, as a union-find forest: `root` stands for all of it."""

    kind: Kind
    has_anchor: bool
    size: int = 1
    parent: Group | None = None

    @property
    def root(self) -> Group:
        """The group that this one was merged into."""
        group = self
        while group.parent is not None:
            group = group.parent
        return group


class Partition:
    """The groups that ``FuseOps`` makes of the bindings of a module."""

    def __init__(self, module: tvm.IRModule) -> None:
        self._module = module
        self.vertices: dict[str, Vertex] = {}  # by id of the binding
        self._by_variable: dict[int, Vertex] = {}
        for name, function in relax_functions(module):
            attributes = function.attrs or {}
            if not attributes.get("Primitive", 0) and attributes.get("Codegen") is None:
                self._add(name, function)
        self._dominate()
        for phase in range(3):
            for vertex in self.vertices.values():
                self._fuse(vertex, phase)
        for vertex in self.vertices.values():
            self._hoist(vertex)

    def are_fused(self, one: str, other: str) -> bool:
        """Return whether one function computes two bindings."""
        both = self.vertices[one], self.vertices[other]
        roots = {each.group.root for each in both}
        return len(roots) == 1 and not any(each.hoisted for each in both)

    def _hoist(self, vertex: Vertex) -> None:
        value = vertex.bound.value
        if isinstance(value, relax.TupleGetItem):
            source = self._by_variable.get(hash(value.tuple_value))
            if source is None or source.group.root is not vertex.group.root:
                vertex.hoisted = True
                vertex.blocked = vertex.blocked or ("field", vertex, vertex.kind)

    # The graph

    def _add(self, name: str, function: Any) -> None:
        for bound in bound_in(name, function):
            value = bound.value
            kind, barrier = self._kind_of(bound.binding, value)
            is_output = not isinstance(bound.binding.var, relax.DataflowVar)
            vertex = Vertex(bound, kind, barrier, is_output)
            for variable in read_by(value):
                source = self._by_variable.get(hash(variable))
                if source is not None:
                    source.users.append((vertex, kind))
            self.vertices[bound.id] = self._by_variable[hash(bound.binding.var)] = vertex

    def _kind_of(self, binding: Any, value: Any) -> tuple[Kind, Cause | None]:
        """Return the kind of a binding's operator, and why it is opaque, if it is."""
        if isinstance(binding, relax.MatchCast):
            return Kind.OPAQUE, "match-cast"
        if isinstance(value, relax.TupleGetItem):
            return Kind.INJECTIVE, None
        if isinstance(value, relax.Tuple):
            return Kind.OPAQUE, "tuple"
        if isinstance(value, relax.If):
            return Kind.OPAQUE, "branch"
        if not isinstance(value, relax.Call):
            return Kind.OPAQUE, "not-a-call"
        operator = value.op.name if isinstance(value.op, ir.Op) else ""
        callee = callee_of(value)
        if isinstance(callee, relax.ExternFunc):
            return Kind.OPAQUE, "library-call"
        if operator not in ("relax.call_tir", "relax.call_tir_inplace"):
            if not operator:
                return Kind.OPAQUE, "call"
            legal = value.op.get_attr("FLegalize") is not None
            return Kind.OPAQUE, "not-legalised" if legal else "no-tensorir"
        function = self._module.functions.get(callee)
        if not isinstance(function, tirx.PrimFunc):
            return Kind.OPAQUE, "library-call"
        pattern = (function.attrs or {}).get("op_pattern")
        if pattern is None:
            return Kind.OPAQUE, "not-annotated"
        kind = Kind(int(pattern))
        if kind is not Kind.OPAQUE:
            return kind, None
        return kind, "in-place" if operator.endswith("inplace") else "opaque"

    # Post-dominance

    def _dominate(self) -> None:
        for vertex in reversed(self.vertices.values()):
            if vertex.is_output or not vertex.users:
                vertex.path_kind = Kind.OPAQUE if vertex.is_output else Kind.ELEMENTWISE
                continue
            (meeting, kind), *others = vertex.users
            found: Vertex | None = meeting
            for other, other_kind in others:
                found, between = _meet(found, other)
                kind = max(kind, other_kind, between)
            vertex.path_kind = kind
            vertex.dominator = found
            vertex.depth = 1 if found is None else found.depth + 1

    # The three phases

    def _fuse(self, vertex: Vertex, phase: int) -> None:
        dominator, group = vertex.dominator, vertex.group
        if group.kind is Kind.OPAQUE or dominator is None:
            return
        if self._size_with(vertex, dominator) > MOST_FUSED:
            vertex.blocked = "depth-limit", dominator, dominator.kind
            return
        if phase == 2:
            whole = dominator.group.root
            in_tuple = dominator.group.kind is Kind.TUPLE and whole.kind <= Kind.INJECTIVE
            if group.kind <= Kind.INJECTIVE and whole.kind is not Kind.TUPLE and in_tuple:
                self._try(vertex, dominator, lambda kind, _: kind <= Kind.INJECTIVE)
            return
        if group.root is dominator.group.root:
            return
        if dominator.group.kind is Kind.TUPLE:
            vertex.blocked = "tuple", dominator, dominator.kind
        elif group.kind is Kind.ANCHOR:
            if phase == 0:
                self._fuse_anchor(vertex, dominator)
        elif group.kind <= Kind.BROADCAST:
            if vertex.path_kind <= Kind.INJECTIVE or vertex.path_kind is Kind.REDUCTION:
                self._try(vertex, dominator, _takes_elementwise)
            else:
                vertex.blocked = _cause_of(vertex, Kind.INJECTIVE)
        elif group.kind in (Kind.INJECTIVE, Kind.TUPLE):
            if phase == 1:
                self._try(vertex, dominator, lambda kind, _: kind <= Kind.INJECTIVE)
        else:
            vertex.blocked = "reduction", vertex, vertex.kind

    def _fuse_anchor(self, vertex: Vertex, dominator: Vertex) -> None:
        if vertex.path_kind is Kind.ELEMENTWISE:
            self._try(vertex, dominator, lambda kind, _: kind <= Kind.BROADCAST)
        else:
            vertex.blocked = _cause_of(vertex, Kind.ELEMENTWISE)

    def _try(self, vertex: Vertex, dominator: Vertex, allows: Callable[[Kind, bool], bool]) -> None:
        """Fuse a binding with its dominator if all paths allow it; record what forbids it."""
        between = _between(vertex, dominator)
        for each in between:
            kind = each.group.root.kind
            if not allows(kind, each is dominator):
                vertex.blocked = _forbidden(vertex, each, kind)
                return
        vertex.blocked = None
        for each in (vertex, *between):
            if each is not dominator:
                _merge(each.group.root, dominator.group.root)

    def _size_with(self, vertex: Vertex, dominator: Vertex) -> int:
        more = (each for each in (vertex, *_between(vertex, dominator)) if each is not dominator)
        return dominator.group.root.size + sum(each.group.size for each in more)


def forbidden_alone(vertex: Vertex, user: Vertex) -> tuple[Cause, Vertex, Kind] | None:
    """Return why a binding cannot be fused with a user even if that is the only one, as `blocked`.

    ``None`` if their own kinds allow it.
    """
    kind = vertex.group.kind
    if kind is Kind.REDUCTION:
        return "reduction", vertex, kind
    most = {Kind.ANCHOR: Kind.ELEMENTWISE, Kind.INJECTIVE: Kind.INJECTIVE}.get(kind, Kind.REDUCTION)
    return None if user.kind <= most else _forbidden(vertex, user, user.kind)


def _takes_elementwise(kind: Kind, is_last: bool) -> bool:
    return kind <= Kind.INJECTIVE or (is_last and kind in (Kind.REDUCTION, Kind.ANCHOR))


def _cause_of(vertex: Vertex, most: Kind) -> tuple[Cause, Vertex, Kind]:
    """Return why the operators on the paths to a dominator forbid fusion."""
    dominator = vertex.dominator
    assert dominator is not None
    each = max(_between(vertex, dominator), key=lambda each: (each.kind > most, each.kind))
    return _forbidden(vertex, each, each.kind)


def _forbidden(vertex: Vertex, other: Vertex, kind: Kind) -> tuple[Cause, Vertex, Kind]:
    if other.barrier is not None:
        return other.barrier, other, kind
    both_complex = vertex.group.kind is Kind.ANCHOR and kind in (Kind.ANCHOR, Kind.REDUCTION)
    return "reduces-twice" if both_complex else "pattern", other, kind


def _between(vertex: Vertex, dominator: Vertex) -> list[Vertex]:
    """Return the bindings on the paths from `vertex`, without it, to `dominator`, with it."""
    found: dict[int, Vertex] = {}
    waiting = [vertex]
    while waiting:
        for user, _ in waiting.pop().users:
            if id(user) not in found:
                found[id(user)] = user
                if user is not dominator:
                    waiting.append(user)
    return list(found.values())


def _merge(child: Group, parent: Group) -> None:
    if child is parent:
        return
    parent.size += child.size
    child.parent = parent
    if child.has_anchor:
        parent.has_anchor = True
        parent.kind = max(child.kind, parent.kind)


def _meet(one: Vertex | None, other: Vertex | None) -> tuple[Vertex | None, Kind]:
    """Return the lowest common ancestor of two bindings, and the largest kind on the way to it."""
    kind = Kind.ELEMENTWISE
    while one is not other:
        if one is None or other is None:
            return None, kind
        if one.depth >= other.depth:
            lower, one_moves = one, True
        else:
            lower, one_moves = other, False
        level = one.depth == other.depth
        kind = max(kind, lower.path_kind)
        if level:
            kind = max(kind, other.path_kind)
            one, other = one.dominator, other.dominator
        elif one_moves:
            one = one.dominator
        else:
            other = other.dominator
    return one, kind


def read_by(value: Any) -> Iterator[Any]:
    """Yield the variables that a binding's value reads, each time that it does."""
    if isinstance(value, relax.Var):
        yield value
    elif isinstance(value, relax.Tuple):
        for each in value.fields:
            yield from read_by(each)
    elif isinstance(value, relax.TupleGetItem):
        yield from read_by(value.tuple_value)
    elif isinstance(value, relax.Call):
        for each in value.args:
            yield from read_by(each)
    elif isinstance(value, relax.If):
        for each in relax.analysis.free_vars(value):
            yield each
