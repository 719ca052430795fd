"""Blocks, loops, buffers and expressions of TensorIR functions: ids, traversal, and hashes."""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import tvm
import tvm_ffi
from tvm import DataType, ir, s_tir, tirx
from tvm.tirx.analysis import undefined_vars
from tvm.tirx.buffer import is_buffer_var

LAYOUT_FREE = "layout_free_buffers"
"""Attribute with the numbers of the arguments that are constants, whose layout may change when the
model is built: see ``AttachAttrLayoutFreeBuffers``."""

_CHILDREN = {
    s_tir.SBlockRealize: ("block",),
    s_tir.SBlock: ("init", "body"),
    tirx.For: ("body",),
    tirx.BufferStore: (),
}
"""Child fields of the frequent statements; probing for missing ones is slow."""
_ALL_CHILDREN = ("block", "init", "body", "then_case", "else_case")


@dataclass(frozen=True, slots=True)
class Part:
    """A block or a loop.

    `id`: ``tir:FUNCTION/BLOCK``, or ``tir:FUNCTION/BLOCK/VARIABLE`` for a loop, where the block is
        the first one in the loop, or else the one around it. Ids that would come twice end in
        ``#2``, ``#3`` and so on.
    `kind`: ``"block"`` or ``"loop"``.
    `statement`: the ``SBlock`` or the ``For``.
    `parent`: place of the part around it among all of them, -1 where there is none.
    """

    id: str
    kind: str
    statement: Any
    parent: int = -1


def parts_of(name: str, function: Any) -> tuple[Part, ...]:
    """Return the blocks and loops of a function in the order of its text, without the root.

    Statements that stand in the text twice, as one object, are one part.
    """
    root = root_block(function)
    found: dict[Any, int] = {}
    parents: list[int] = []
    _collect(function.body if root is None else root.body, -1, found, parents)
    inner = _first_blocks(list(found), parents)
    seen: Counter[str] = Counter()
    parts: list[Part] = []
    around = "root"
    for place, statement in enumerate(found):
        if isinstance(statement, s_tir.SBlock):
            kind, path = "block", statement.name_hint
            around = path
        else:
            block = inner[place]
            kind = "loop"
            path = f"{around if block is None else block.name_hint}/{statement.loop_var.name}"
        seen[path] += 1
        position = f"#{seen[path]}" if seen[path] > 1 else ""
        parts.append(Part(f"tir:{name}/{path}{position}", kind, statement, parents[place]))
    return tuple(parts)


def count_parts(function: Any) -> tuple[int, int, int]:
    """Return how many blocks and loops a function has, and how often its blocks run in all.

    See `parts_of`. A loop of a symbolic extent counts as one that runs once.
    """
    root = root_block(function)
    begin = function.body if root is None else root.body
    found: dict[Any, int] = {}
    parents: list[int] = []
    _collect(begin, -1, found, parents)
    times: list[int] = []
    runs = loops = 0
    for statement, parent in zip(found, parents, strict=True):
        around = times[parent] if parent >= 0 else 1
        if type(statement) is tirx.For:
            loops += 1
            around *= int(getattr(statement.extent, "value", 1))
        else:
            runs += around
        times.append(around)
    return len(found) - loops, loops, runs


def allocated_ids(name: str, function: Any) -> tuple[tuple[str, Any], ...]:
    """Return the buffers that a function allocates around all of its blocks, with their ids.

    That is ``tir:FUNCTION//BUFFER``, so that no block has the same.
    """
    root = root_block(function)
    seen: Counter[str] = Counter()
    found: list[tuple[str, Any]] = []
    for buffer in () if root is None else root.alloc_buffers:
        seen[buffer.name] += 1
        position = f"#{seen[buffer.name]}" if seen[buffer.name] > 1 else ""
        found.append((f"tir:{name}//{buffer.name}{position}", buffer))
    return tuple(found)


def _first_blocks(found: Sequence[Any], parents: Sequence[int]) -> list[Any]:
    """Return the first block in each statement, which may be the statement itself."""
    first: list[Any] = [None] * len(found)
    for place in range(len(found) - 1, -1, -1):
        if isinstance(found[place], s_tir.SBlock):
            first[place] = found[place]
        # Earlier ones come later.
        if first[place] is not None and parents[place] >= 0:
            first[parents[place]] = first[place]
    return first


def root_block(function: Any) -> Any | None:
    """Return the block that ``s_tir`` functions have around everything, or ``None``."""
    body = function.body
    if isinstance(body, s_tir.SBlockRealize) and body.block.name_hint == "root":
        return body.block
    return None


def _collect(statement: Any, parent: int, found: dict[Any, int], parents: list[int]) -> None:
    """Collect the blocks and loops of a statement, each once, with the place of its parent."""
    kind = type(statement)
    if kind is tirx.SeqStmt:
        for child in statement.seq:
            _collect(child, parent, found, parents)
        return
    if kind in (s_tir.SBlock, tirx.For):
        if statement not in found:
            found[statement] = len(found)
            parents.append(parent)
        parent = found[statement]
    for field in _CHILDREN.get(kind, _ALL_CHILDREN):
        child = getattr(statement, field, None)
        if isinstance(child, tirx.Stmt):
            _collect(child, parent, found, parents)


def blocks_in(statement: Any) -> Iterator[Any]:
    """Yield the blocks of a statement, itself among them, in the order of the text."""
    found: dict[Any, int] = {}
    _collect(statement, -1, found, [])
    return (part for part in found if isinstance(part, s_tir.SBlock))


def structure_of(function: Any) -> str:
    """Return a hash of a TensorIR function, without its name and attributes.

    The names of its blocks are part of the hash: primitives name blocks by these. Names of loops
    and buffers are not.
    """
    bare = tirx.PrimFunc(function.params, function.body, function.ret_type)
    blocks = "/".join(block.name_hint for block in blocks_in(function.body))
    whole = f"{tvm_ffi.structural_hash(bare) & (1 << 64) - 1:016x}/{blocks}"
    return blake2b(whole.encode(), digest_size=8).hexdigest()


def prim_funcs_of(module: tvm.IRModule) -> dict[str, tirx.PrimFunc]:
    """Return the TensorIR functions of a module by name."""
    return {
        str(variable.name_hint): function
        for variable, function in module.functions_items()
        if isinstance(function, tirx.PrimFunc)
    }


def known(value: Any) -> int | None:
    """Return an extent as a number; ``None`` for one that is symbolic."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, tirx.IntImm) else None


def mentions(value: Any, var: Any) -> bool:
    """Return whether a variable occurs in an expression."""
    return any(var.same_as(each) for each in undefined_vars(value))


ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    tirx.Add: operator.add,
    tirx.Sub: operator.sub,
    tirx.Mul: operator.mul,
    tirx.FloorDiv: operator.floordiv,
    tirx.FloorMod: operator.mod,
}
"""Operations on indices, of numbers and arrays."""

_OPERANDS = ("a", "b", "value", "condition", "true_value", "false_value", "body", "base")

Role = Literal["input", "output", "both"]


@dataclass(frozen=True)
class Parameter:
    """A buffer that a function is called with.

    `shape`: extents; ``None`` where one is symbolic. `role`: ``"both"`` is read before it is
    written. `loads` and `stores`: number of reads and writes of its elements in one call; infinite
    where an extent is symbolic, 0 where that cannot be determined.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    role: Role
    buffer: Any
    loads: float = 0
    stores: float = 0

    @property
    def size(self) -> int | None:
        """Size in bytes; ``None`` where the shape is symbolic."""
        return None if self.shape is None else self._bytes(math.prod(self.shape))

    @property
    def read(self) -> int | None:
        """Upper bound on the bytes that are read: of a table, the rows that are looked up."""
        return 0 if self.role == "output" else self._touched(self.loads)

    @property
    def written(self) -> int | None:
        """Upper bound on the bytes that are written."""
        return 0 if self.role == "input" else self._touched(self.stores)

    def _touched(self, times: float) -> int | None:
        if self.size is None or not 0 < times < math.inf:
            return self.size
        return min(self.size, self._bytes(int(times)))

    def _bytes(self, elements: int) -> int:
        kind = DataType(self.dtype)
        return (elements * int(kind.bits) * int(kind.lanes) + 7) // 8


def parameters_of(function: Any) -> tuple[Parameter, ...] | None:
    """Return the buffers of a function in order; ``None`` if it has other parameters as well."""
    if not all(is_buffer_var(each) for each in function.params):
        return None
    accesses = _Accesses()
    accesses.statement(function.body, 1)
    return tuple(_parameter(each, accesses) for each in function.params)


def _parameter(variable: Any, accesses: _Accesses) -> Parameter:
    extents = tuple(variable.ty.shape)
    static = all(isinstance(each, tirx.IntImm) for each in extents)
    role: Role = "input"
    if variable in accesses.written:
        role = "both" if variable in accesses.read_first else "output"
    return Parameter(
        name=str(variable.name),
        dtype=str(variable.ty.dtype.dtype),
        shape=tuple(int(each.value) for each in extents) if static else None,
        role=role,
        buffer=variable,
        loads=accesses.loads.get(variable, 0),
        stores=accesses.stores.get(variable, 0),
    )


class _Accesses:
    """Accesses of buffers: those that are written, and those that are read before, in text order.

    ``loads`` and ``stores`` count how often, for each.
    """

    def __init__(self) -> None:
        self.read_first: set[Any] = set()
        self.loads: dict[Any, float] = defaultdict(float)
        self.stores: dict[Any, float] = defaultdict(float)
        self._whole: dict[Any, Any] = {}

    @property
    def written(self) -> Set[Any]:
        return self.stores.keys()

    def statement(self, statement: Any, times: float) -> None:
        kind = type(statement)
        if kind is s_tir.SBlockRealize:
            for match in statement.block.match_buffers:
                source = match.source.source
                self._whole[match.buffer] = self._whole.get(source, source)
            # Where a reduction begins, its block writes the element that it then reads.
            if statement.block.init is not None:
                self.statement(statement.block.init, times)
            self.statement(statement.block.body, times)
            return
        for expression in expressions_in(statement):
            for load in loads_in(expression):
                source = self._whole.get(load.source, load.source)
                self.loads[source] += times
                if source not in self.written:
                    self.read_first.add(source)
        if kind is tirx.BufferStore:
            self.stores[self._whole.get(statement.buffer, statement.buffer)] += times
        if kind is tirx.For:
            extent = statement.extent
            times *= int(extent.value) if isinstance(extent, tirx.IntImm) else math.inf
        for inner in statements_in(statement):
            self.statement(inner, times)


def statements_in(statement: Any) -> Iterator[Any]:
    """Yield the direct child statements of a statement, in the order of the text."""
    if type(statement) is tirx.SeqStmt:
        yield from statement.seq
        return
    for field in ("block", "init", "body", "then_case", "else_case"):
        inner = getattr(statement, field, None)
        if isinstance(inner, tirx.Stmt):
            yield inner


def expressions_in(statement: Any) -> Iterator[Any]:
    """Yield the expressions of a statement itself."""
    yield from getattr(statement, "indices", ())
    for field in ("value", "condition", "predicate", "extent"):
        expression = getattr(statement, field, None)
        if isinstance(expression, ir.Expr):
            yield expression


def inner_expressions(expression: Any) -> Iterator[Any]:
    """Yield the direct operands of an expression."""
    for field in _OPERANDS:
        operand = getattr(expression, field, None)
        if isinstance(operand, ir.Expr):
            yield operand
    if isinstance(expression, ir.Call):
        yield from (each for each in expression.args if isinstance(each, ir.Expr))
    if isinstance(expression, ir.TensorLoad):
        yield from expression.indices


def loads_in(expression: Any) -> list[Any]:
    """Return the elements of buffers that an expression reads."""
    return collected(expression, ir.TensorLoad)


def divides_by_data(function: Any) -> bool:
    """Return whether a function divides an integer by a value that it loads."""
    return any(
        "float" not in dtype_of(each.a) and loads_in(each.b)
        for each in collected(function.body, _DIVISIONS)
    )


_DIVISIONS = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)


def collected(body: Any, kinds: Any) -> list[Any]:
    """Return the nodes of some types in a statement or an expression."""
    found: list[Any] = []
    tvm_ffi.structural_walk(body, (kinds, found.append))
    return found


def nodes_in(expression: Any) -> Iterator[Any]:
    """Yield an expression and its subexpressions."""
    yield expression
    if not isinstance(expression, tirx.Var):
        for inner in inner_expressions(expression):
            yield from nodes_in(inner)


def dtype_of(expression: Any) -> str:
    """Return the dtype of a TensorIR expression, as ``"float32"``."""
    return str(expression.ty.dtype)


def operator_name(expression: Any) -> str:
    """Return the name of the operator that is called, as ``"exp"``; empty if none is."""
    if not isinstance(expression, ir.Call):
        return ""
    return str(getattr(expression.op, "name", "")).rpartition(".")[2]
