"""Named dimensions as symbolic sizes of torch, and the constraints of a model on them.

Importing it takes seconds: it loads sympy and parts of torch.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter
from torch._dynamo.source import ConstantSource
from torch._prims_common import infer_size, make_contiguous_strides_for
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import (  # type: ignore[attr-defined]
    DimDynamic,
    ShapeEnv,
    ShapeGuard,
    StrictMinMaxConstraint,
    statically_known_true,
)
from torch.utils._sympy.value_ranges import ValueRanges

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.tracing.failures import where_of

# Named dimensions of a model's inputs, and the error for a model that fixes their size.

CONSTRAINT = "fixed-dimension"
"""Problem code of a model that does not take all sizes of a dimension."""

Range = tuple[int, int]


@dataclass(frozen=True)
class NamedInputs:
    """The shapes of a model's inputs, with names for some extents.

    Attributes
    ----------
    shapes
        Of the tensors in order.
    ranges
        Smallest and largest size of each name.
    """

    shapes: tuple[tuple[int | str, ...], ...]
    ranges: Mapping[str, Range]


def fixed_dimension(
    demand: str, named: NamedInputs, line: SourceLine | None, at: str = ""
) -> LowerscopeError:
    """Return the error for a model that does not take all sizes of a dimension.

    Parameters
    ----------
    demand
        Torch's constraint: ``batch == 7``.
    at
        The node that has it.
    """
    names = [name for name in named.ranges if name in demand] or list(named.ranges)
    name = names[0]
    low, high = named.ranges[name]
    place = f" at node {at}" if at else ""
    return LowerscopeError(
        f"{name} cannot be any size from {low} to {high}: torch needs {demand}{place}",
        where=where_of(line),
        todo=f"narrow --dim {name}, write a number in place of {name}, or change the model",
        code=CONSTRAINT,
    )


_MOST = 4096
"""Most combinations of sizes that a condition is tested with."""


class Symbols:
    """A torch symbol for each name.

    Attributes
    ----------
    mode
        Mode in which tensors have symbolic extents, and no memory.
    names
        Of the symbols: ``{s26: batch}``, to format extents with.
    """

    def __init__(self, named: NamedInputs, inputs: Sequence[torch.Tensor]) -> None:
        self._environment = ShapeEnv()
        self.mode = _Mode(shape_env=self._environment, allow_non_fake_inputs=True)
        self.names: dict[sympy.Symbol, sympy.Symbol] = {}
        self._named = named
        self._checked = 0
        sizes = {
            name: size
            for shape, value in zip(named.shapes, inputs, strict=True)
            for name, size in zip(shape, value.shape, strict=True)
            if isinstance(name, str)
        }
        self._extents = {name: self._symbol(name, size) for name, size in sizes.items()}

    def _symbol(self, name: str, size: int) -> torch.SymInt:
        source, environment = ConstantSource(name), self._environment
        low, high = self._named.ranges[name]
        symbol = environment.create_symbol(
            size,
            source,
            dynamic_dim=DimDynamic.DYNAMIC,
            constraint_dim=StrictMinMaxConstraint(vr=ValueRanges(low, high), warn_only=False),
        )
        self.names[symbol] = symbol_of(name)
        extent = environment.create_symintnode(symbol, hint=size, source=source)
        assert isinstance(extent, torch.SymInt)
        return extent

    def inputs(self, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return tensors with the symbolic shapes of the inputs, for use in `mode`."""
        with self.mode:
            return [
                torch.empty(
                    tuple(self._extents[each] if isinstance(each, str) else each for each in shape),
                    dtype=value.dtype,
                )
                for shape, value in zip(self._named.shapes, values, strict=True)
            ]

    def demands(self) -> Iterator[tuple[ShapeGuard, str]]:
        """Yield the new constraints on the sizes since the last call that do not always hold.

        The second of each pair is its text: ``batch == 7``.
        """
        guards = self._environment.guards[self._checked :]
        self._checked += len(guards)
        for guard in guards:
            named = guard.expr.xreplace(self.names)
            if not _always_holds(named, self._named.ranges):
                yield guard, extent_text(named)


class _Mode(FakeTensorMode):  # type: ignore[no-untyped-call]
    """Torch's mode for tensors without memory, with a workaround for one of its crashes."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        # If the extent is not 1, torch sets the tensor's own sizes again, by references into the
        # list of sizes that this frees. The overload for several dimensions uses a separate list.
        if func is torch.ops.aten.squeeze_.dim:
            func, args = torch.ops.aten.squeeze_.dims, (args[0], [args[1]])
        elif func in _VIEWS and _is_contiguous(args[0]):
            # Torch compares extents before and after one by one, which excludes some sizes.
            return _contiguous_view(*args)
        return super().__torch_dispatch__(func, types, args, kwargs or {})


_VIEWS = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)


def _is_contiguous(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is contiguous for all sizes, as far as torch can tell."""
    strides = make_contiguous_strides_for(tensor.shape)
    return all(map(statically_known_true, map(operator.eq, tensor.stride(), strides)))


def _contiguous_view(tensor: torch.Tensor, shape: Sequence[Any]) -> torch.Tensor:
    whole = infer_size(tuple(shape), tensor.numel())
    return tensor.as_strided(whole, make_contiguous_strides_for(whole))


def symbol_of(name: str) -> sympy.Symbol:
    """Return the symbol for a name in formatted expressions."""
    return sympy.Symbol(name, integer=True, positive=True)


def extent_text(expression: sympy.Basic) -> str:
    """Format an expression over names as Python: ``2*batch``, ``(height - 1)//2 + 1``."""
    return str(_Writer().doprint(expression))


class _Writer(StrPrinter):  # type: ignore[misc]
    """Printer that writes torch's own functions of sizes as Python's operators."""

    # Torch's functions define the default method, which doubles the parentheses.
    printmethod = "_named_text"

    def _print_FloorDiv(self, expression: sympy.Expr) -> str:
        return self._operation("//", expression)

    def _print_Mod(self, expression: sympy.Expr) -> str:
        return self._operation(" % ", expression)

    _print_PythonMod = _print_Mod
    _print_CleanDiv = _print_IntTrueDiv = _print_FloorDiv

    def _print_Max(self, expression: sympy.Expr) -> str:
        return f"max({', '.join(map(self._print, expression.args))})"

    def _print_Min(self, expression: sympy.Expr) -> str:
        return f"min({', '.join(map(self._print, expression.args))})"

    def _print_Relational(self, expression: sympy.core.relational.Relational) -> str:
        sign = {"Eq": "==", "Ne": "!="}.get(type(expression).__name__.title()[:2], "")
        sign = sign or expression.rel_op
        return f"{self._print(expression.lhs)} {sign} {self._print(expression.rhs)}"

    def _operation(self, sign: str, expression: sympy.Expr) -> str:
        left, right = expression.args
        level = PRECEDENCE["Mul"]
        return f"{self.parenthesize(left, level)}{sign}{self.parenthesize(right, level, True)}"


def named_text(extent: Any, names: Mapping[sympy.Symbol, sympy.Symbol]) -> str:
    """Format a symbolic extent of torch with the names in it."""
    return extent_text(extent.node.expr.xreplace(names))


def _always_holds(condition: Any, ranges: Mapping[str, Range]) -> bool:
    """Return whether no tested combination of sizes violates `condition`.

    Sizes below 2 are excluded: torch treats them as general.
    """
    free = sorted(condition.free_symbols, key=str)
    if any(str(symbol) not in ranges for symbol in free):
        return True  # depends on data; checked at run time
    share = max(2, int(_MOST ** (1 / max(1, len(free)))))
    tried = [_some_of(*ranges[str(symbol)], share) for symbol in free]
    for sizes in itertools.product(*tried):
        if condition.subs(dict(zip(free, sizes, strict=True))) == sympy.false:
            return False
    return True


def _some_of(low: int, high: int, count: int) -> list[int]:
    low = max(2, low)
    if high - low < count:
        return list(range(low, high + 1))
    half = max(1, count // 2)
    return [*range(low, low + half), *range(high - half + 1, high + 1)]
