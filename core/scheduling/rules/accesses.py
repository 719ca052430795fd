"""Memory access patterns of the reads of a block, relative to its writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import sym, tirx
from tvm.ir.expr import TensorLoad

from lowerscope.core.rendering.programs.expression_text import operator_name
from lowerscope.core.scheduling.parameters import inner_expressions
from lowerscope.core.scheduling.sizes import known, mentions


@dataclass(frozen=True)
class Access:
    """Access pattern of an element that is read, for the axes of the block that reads it.

    Attributes
    ----------
    along
        For each axis, whether the next value of it is as far in what is read as it is in what is
        written.
    constant
        For each axis, whether the element is the same for all values of it.
    near
        For each axis, whether the next value of it is the next element in memory.
    """

    along: tuple[bool, ...]
    constant: tuple[bool, ...]
    near: tuple[bool, ...]


@dataclass(frozen=True)
class Accesses:
    """All reads of a block, and the axes in its conditions.

    Attributes
    ----------
    reads
        In the order of the script.
    asked
        For each axis, whether it stands in a condition.
    """

    reads: tuple[Access, ...]
    asked: tuple[bool, ...]

    def row(self, extents: Sequence[int | None]) -> int:
        """Return the number of last axes that are one row in all that is read; 0 for none.

        Parameters
        ----------
        extents
            Of the axes; ``None`` for one that is symbolic, which is in no row.
        """
        count = 0
        kinds: tuple[bool, ...] | None = None
        for axis in reversed(range(len(extents))):
            if extents[axis] != 1:
                own = tuple(each.along[axis] for each in self.reads)
                still = tuple(each.constant[axis] for each in self.reads)
                is_plain = all(a or b for a, b in zip(own, still, strict=True))
                if extents[axis] is None or not is_plain or self.asked[axis]:
                    break
                if kinds is not None and own != kinds:
                    break
                kinds = own
            count += 1
        return count if kinds is not None else 0


def accesses_of(block: Any) -> Accesses | None:
    """Return the reads of a block; ``None`` for one that does not store exactly one element."""
    store = block.body
    if not isinstance(store, tirx.BufferStore):
        return None
    axes = list(block.iter_vars)
    written = _steps(store.buffer, store.indices, axes)
    nodes = list(nodes_in(store.value))
    loads = [each for each in nodes if isinstance(each, TensorLoad)]
    conditions = [each.condition for each in nodes if isinstance(each, tirx.Select)]
    conditions += [each.args[0] for each in nodes if operator_name(each) == "if_then_else"]
    reads = []
    for load in loads:
        steps = _steps(load.source, load.indices, axes)
        reads.append(
            Access(
                along=tuple(
                    step is not None and own is not None and _equal(step, own)
                    for step, own in zip(steps, written, strict=True)
                ),
                constant=tuple(step is not None and known(step) == 0 for step in steps),
                near=tuple(step is not None and known(step) == 1 for step in steps),
            )
        )
    asked = tuple(any(mentions(each, axis.var) for each in conditions) for axis in axes)
    return Accesses(tuple(reads), asked)


def nodes_in(expression: Any) -> Iterator[Any]:
    """Yield an expression and its subexpressions."""
    yield expression
    if not isinstance(expression, tirx.Var):
        for inner in inner_expressions(expression):
            yield from nodes_in(inner)


def _steps(buffer: Any, indices: Any, axes: Sequence[Any]) -> list[Any]:
    """Return the stride of each axis; ``None`` where it is not constant."""
    analyzer = sym.Analyzer()
    for axis in axes:
        analyzer.bind(axis.var, axis.dom)
    offset: Any = 0
    stride: Any = 1
    strides: list[Any] = []
    for index, extent in zip(indices, buffer.shape, strict=True):
        # As one number, the divisions and multiplications of a reshape cancel.
        offset = offset * extent + index
    for extent in reversed(buffer.shape):
        strides.insert(0, stride)
        stride = stride * extent
    offset = analyzer.simplify(tirx.convert(offset))
    found = []
    for axis in axes:
        step = _step(offset, axis.var)
        if step is None:
            # Index by index, one that is read from memory does not affect the others.
            each = [_step(index, axis.var) for index in indices]
            step = (
                None
                if any(own is None for own in each)
                else sum(own * by for own, by in zip(each, strides, strict=True))
            )
        found.append(None if step is None else analyzer.simplify(tirx.convert(step)))
    return found


def _step(index: Any, var: Any) -> Any:
    if not mentions(index, var):
        return 0
    parts = sym.detect_linear_equation(index, [var])
    return parts[0] if len(parts) else None


def _equal(one: Any, other: Any) -> bool:
    if known(one) is not None or known(other) is not None:
        return known(one) == known(other)
    return bool(sym.Analyzer().can_prove_equal(one, other))
