"""Index maps: arithmetic on axes, parsed without being run as Python.

An index map is written ``i, j -> i // 4, j, i % 4``: the axes, and for each new index a sum,
difference, product, ``//`` or ``%`` of axes and whole numbers.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import tirx

from lowerscope.core.ir.tensorir import known
from lowerscope.core.model.texts import _, _n
from lowerscope.core.schedule.primitive import Call
from lowerscope.core.schedule.step_errors import REFUSED, StepFailed

MAX_CHECKED = 2**18
"""Number of indices up to which a map is checked exhaustively; beyond it, TVM has to check it."""

_MAX_LENGTH = 400
_MAX_NUMBER = 2**20
_UNKNOWN = 2**16
"""Substitute for an extent that is symbolic."""
_ARROWS = ("->", "→")

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


@dataclass(frozen=True)
class IndexMap:
    """A parsed index map."""

    axes: tuple[str, ...]
    indices: tuple[ast.expr, ...]

    def evaluate(self, values: Sequence[Any]) -> list[Any]:
        """Return the new indices for `values` of the axes: numbers, arrays or variables."""
        by_name = dict(zip(self.axes, values, strict=True))
        return [_evaluate(index, by_name) for index in self.indices]

    @property
    def kept(self) -> frozenset[str]:
        """The axes that the new indices contain directly: ``i``, or ``i // 4, i % 4``.

        None where an index is subtracted: it could be below zero.
        """
        nodes = [node for index in self.indices for node in ast.walk(index)]
        if any(isinstance(node, ast.Sub | ast.USub) for node in nodes):
            return frozenset()
        texts = {ast.unparse(index) for index in self.indices}
        divided = {
            (index.left.id, ast.unparse(index.right))
            for index in self.indices
            if isinstance(index, ast.BinOp)
            and isinstance(index.op, ast.FloorDiv)
            and isinstance(index.left, ast.Name)
        }
        halves = {axis for axis, by in divided if f"{axis} % {by}" in texts}
        return frozenset(axis for axis in self.axes if axis in texts or axis in halves)

    def python(self) -> str:
        """Return the map as a lambda."""
        axes = ", ".join(self.axes)
        indices = ", ".join(self._python(index) for index in self.indices)
        return (
            f"lambda {axes}: ({indices},)"
            if len(self.indices) == 1
            else (f"lambda {axes}: ({indices})")
        )

    def _python(self, index: ast.expr) -> str:
        # TVM accepts no number as an index, and this one has the dtype of the others.
        constant = bool(self.axes) and not names_in(index)
        return f"{self.axes[0]} * 0 + {ast.unparse(index)}" if constant else ast.unparse(index)


def parse(text: str) -> IndexMap:
    """Parse an index map.

    Raises `StepFailed` if it is anything but arithmetic on its axes.
    """
    if len(text) > _MAX_LENGTH:
        raise StepFailed(
            _("an index map has at most {max_length} characters"), max_length=_MAX_LENGTH
        )
    arrow = next((each for each in _ARROWS if each in text), None)
    if arrow is None:
        raise StepFailed(_("an index map begins with its axes: i, j -> i // 4, j, i % 4"))
    left, _sep, right = text.partition(arrow)
    axes = tuple(each.strip() for each in left.strip().strip("()").split(",") if each.strip())
    for axis in axes:
        if not axis.isidentifier():
            raise StepFailed(_("{axis!r} is not the name of an axis"), axis=axis)
    if len(set(axes)) < len(axes):
        raise StepFailed(_("each axis needs a different name"))
    if not right.strip():
        raise StepFailed(_("nothing follows ->"))
    try:
        tree = ast.parse(right.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise StepFailed(
            _("{right!r} is not arithmetic: {reason}"), right=right.strip(), reason=_reason(error)
        ) from error
    indices = tuple(tree.elts) if isinstance(tree, ast.Tuple | ast.List) else (tree,)
    if not indices:
        raise StepFailed(_("an index map gives at least one index"))
    for index in indices:
        _check(index, axes)
    return IndexMap(axes, indices)


def _reason(error: BaseException) -> str:
    return str(error.msg) if isinstance(error, SyntaxError) else type(error).__name__


def _check(node: ast.expr, axes: Sequence[str]) -> None:
    """Reject all but sums, differences, products, ``//`` and ``%`` of axes and numbers."""
    if isinstance(node, ast.Name):
        if node.id not in axes:
            raise StepFailed(
                _("{id} is not one of the axes {axes}"), id=node.id, axes=_(", ").join(axes)
            )
    elif isinstance(node, ast.Constant):
        if type(node.value) is not int or node.value > _MAX_NUMBER:
            raise StepFailed(
                _("{unparse} is not a whole number up to {max_number}"),
                unparse=ast.unparse(node),
                max_number=_MAX_NUMBER,
            )
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        _check(node.operand, axes)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _check(node.left, axes)
        _check(node.right, axes)
        if isinstance(node.op, ast.FloorDiv | ast.Mod):
            right = node.right
            if not isinstance(right, ast.Constant) or right.value == 0:
                raise StepFailed(
                    _("{unparse} must divide by a number above 0"), unparse=ast.unparse(node)
                )
    else:
        text = ast.unparse(node)
        raise StepFailed(
            _("{text} is not arithmetic on the axes; write // for a division", text=text)
            if "/" in text
            else _("{text} is not arithmetic on the axes", text=text)
        )


def _evaluate(node: ast.expr, axes: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return axes[node.id]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp):
        return 0 - _evaluate(node.operand, axes)
    assert isinstance(node, ast.BinOp)
    return _OPERATORS[type(node.op)](_evaluate(node.left, axes), _evaluate(node.right, axes))


def _bound(node: ast.expr, extents: Mapping[str, int]) -> int:
    """Return an upper bound on all intermediate values of an index."""
    if isinstance(node, ast.Name):
        return extents[node.id]
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int)
        return node.value
    if isinstance(node, ast.UnaryOp):
        return _bound(node.operand, extents)
    assert isinstance(node, ast.BinOp)
    left, right = _bound(node.left, extents), _bound(node.right, extents)
    if isinstance(node.op, ast.Mult):
        return left * right
    return left + right if isinstance(node.op, ast.Add | ast.Sub) else max(left, right)


def names_in(index: ast.expr) -> set[str]:
    """Return the axes that an index uses."""
    return {node.id for node in ast.walk(index) if isinstance(node, ast.Name)}


def python_of(argument: object) -> str:
    """Return an index map of a recipe as a lambda; empty where it is not one."""
    try:
        return parse(argument).python() if isinstance(argument, str) else ""
    except StepFailed:
        return ""


def identity(axes: Sequence[str]) -> str:
    """Return the identity map."""
    names = ", ".join(axes)
    return f"{names} -> {names}"


def buffer_axes(dimensions: int) -> tuple[str, ...]:
    """Return names for the dimensions of a buffer: ``i``, ``j``, ``k`` and ``l``, or ``i0`` on."""
    if dimensions <= 4:
        return ("i", "j", "k", "l")[:dimensions]
    return tuple(f"i{place}" for place in range(dimensions))


def block_axes(block: Any) -> tuple[str, ...]:
    """Return the names of the axes of a block."""
    return tuple(str(axis.var.name) for axis in block.iter_vars)


def as_tvm(index_map: IndexMap, extents: Sequence[Any], what: str, dtype: str) -> tirx.IndexMap:
    """Return a map as TVM's object.

    `what`: whose axes, for the message. Raises `StepFailed` if it has another number of axes, or
    its indices do not fit into 31 bits.
    """
    if len(index_map.axes) != len(extents):
        raise StepFailed(
            _n(
                "{what} has {count} axis, and the map {axes}",
                "{what} has {count} axes, and the map {axes}",
                len(extents),
                what=what,
                axes=len(index_map.axes),
            )
        )
    sizes = [known(extent) or _UNKNOWN for extent in extents]
    by_name = dict(zip(index_map.axes, sizes, strict=True))
    if any(_bound(index, by_name) >= 2**31 for index in index_map.indices):
        raise StepFailed(_("its indices are too large"))
    variables = [tirx.Var(axis, dtype) for axis in index_map.axes]
    made = [
        tirx.const(index, dtype) if isinstance(index, int) else index
        for index in index_map.evaluate(variables)
    ]
    return tirx.IndexMap(variables, made, None)


def check_injective(index_map: IndexMap, extents: Sequence[Any]) -> None:
    """Reject a map that sends two indices to one, or one below zero.

    Raises `StepFailed` if it does, with two such indices; or if that cannot be determined.
    """
    if index_map.kept.issuperset(index_map.axes):
        return
    sizes = [known(extent) for extent in extents]
    numbers = [size for size in sizes if size is not None]
    if len(numbers) == len(sizes) and math.prod(numbers) <= MAX_CHECKED:
        _check_all(index_map, numbers)
        return
    # It must hold for other extents than these as well; TVM decides by divisibility.
    ranges = [size or _UNKNOWN for size in sizes]
    dtype = "int64"
    made = as_tvm(index_map, ranges, "it", dtype)
    try:
        made.non_surjective_inverse([_range(size, dtype) for size in ranges])
    except REFUSED as error:
        raise StepFailed(_("it is not known whether each new index has one old index")) from error


def _range(size: int, dtype: str) -> Any:
    return tvm.ir.Range(tirx.const(0, dtype), tirx.const(size, dtype))


def _check_all(index_map: IndexMap, sizes: Sequence[int]) -> None:
    count = math.prod(sizes)
    if count == 0:
        return
    grid = np.unravel_index(np.arange(count, dtype=np.int64), tuple(sizes) or (1,))
    made = rows_of(index_map.evaluate(list(grid) if sizes else []), count)
    if made.min() < 0:
        place = int(np.argmax((made < 0).any(axis=0)))
        raise StepFailed(_("{at} has an index below 0"), at=_at(grid, place))
    strides = made.max(axis=1) + 1
    if math.prod(int(each) for each in strides) >= 2**31:
        raise StepFailed(_("its indices are too large"))
    flat = np.ravel_multi_index(tuple(made), tuple(int(each) for each in strides))
    _other, first, which = np.unique(flat, return_index=True, return_inverse=True)
    if len(first) < count:
        place = int(np.argmax(first[which] != np.arange(count)))
        raise StepFailed(
            _("it is not a bijection: {at} and {at2} get the same index"),
            at=_at(grid, int(first[which][place])),
            at2=_at(grid, place),
        )


def rows_of(indices: Sequence[Any], count: int) -> Any:
    """Return indices, each a number or an array, as rows of `count` columns."""
    rows = [np.broadcast_to(np.asarray(index, dtype=np.int64), (count,)) for index in indices]
    return np.stack(rows) if rows else np.zeros((1, count), dtype=np.int64)


def _at(grid: Sequence[Any], place: int) -> str:
    return "(" + ", ".join(str(int(axis[place])) for axis in grid) + ")"


def dtype_of(block: Any) -> str:
    """Return the dtype of a block's indices."""
    for axis in block.iter_vars:
        return str(axis.var.ty.dtype)
    return "int64"


def of_block(call: Call) -> tirx.IndexMap:
    """Return the map of a primitive that maps the axes of its block."""
    block, index_map = call.block, parse(call.values["index_map"])
    extents = [axis.dom.extent for axis in block.iter_vars]
    return as_tvm(index_map, extents, str(block.name_hint), dtype_of(block))


def of_block_bijective(call: Call) -> tirx.IndexMap:
    """Return the map of a primitive that gives a block other axes."""
    made, extents = of_block(call), [axis.dom.extent for axis in call.block.iter_vars]
    check_injective(parse(call.values["index_map"]), extents)
    return made


def of_buffer(call: Call) -> tirx.IndexMap:
    """Return the map of a primitive that maps the dimensions of a buffer."""
    buffer, index_map = accessed(call.block, call.values["buffer"]), parse(call.values["index_map"])
    made = as_tvm(index_map, buffer.ty.shape, str(buffer.name), dtype_of(call.block))
    check_injective(index_map, buffer.ty.shape)
    return made


def accessed(block: Any, name: str) -> Any:
    """Return the buffer of a name that a block reads or writes.

    Raises `StepFailed` if it does neither.
    """
    buffers = buffers_of(block)
    if name not in buffers:
        raise StepFailed(
            _("{name_hint} accesses {buffers}, and not {name}"),
            name_hint=block.name_hint,
            buffers=_(", ").join(buffers),
            name=name,
        )
    return buffers[name]


def buffers_of(block: Any) -> dict[str, Any]:
    """Return the buffers that a block reads and writes, by their names."""
    return {str(region.source.name): region.source for region in (*block.reads, *block.writes)}


def axes_of(block: Any, buffer: object) -> tuple[str, ...]:
    """Return the axes of a block, or with the name of a buffer the dimensions of that."""
    if isinstance(buffer, str) and buffer in buffers_of(block):
        return buffer_axes(len(accessed(block, buffer).ty.shape))
    return block_axes(block)
