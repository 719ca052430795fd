"""Symbolic extents of torch: tensors that have them, their text, and conditions on them.

Importing it takes seconds: it loads sympy and parts of torch.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter
from torch._dynamo.source import ConstantSource
from torch._prims_common import infer_size, make_contiguous_strides_for
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StrictMinMaxConstraint,
    statically_known_true,
)
from torch.utils._sympy.value_ranges import ValueRanges

_MOST = 4096
"""Most combinations of sizes that a condition is tested with."""


class SymbolicMode(FakeTensorMode):  # type: ignore[no-untyped-call]
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


def new_extent(environment: ShapeEnv, name: str, hint: int, span: tuple[int, int]) -> torch.SymInt:
    """Return a new symbolic extent with a range of sizes.

    `hint`: The size that torch takes for it where it needs one; conditions on it are recorded.
    """
    source = ConstantSource(name)
    constraint = StrictMinMaxConstraint(vr=ValueRanges(*span), warn_only=False)
    symbol = environment.create_symbol(
        hint, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=constraint
    )
    extent = environment.create_symintnode(symbol, hint=hint, source=source)
    assert isinstance(extent, torch.SymInt)
    return extent


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


def always_holds(condition: Any, ranges: Mapping[str, tuple[int, int]]) -> bool:
    """Return whether no tested combination of sizes violates `condition`.

    Sizes below 2 are excluded: torch treats them as general.
    """
    free = {str(symbol): symbol for symbol in condition.free_symbols}
    if any(name not in ranges for name in free):
        return True  # depends on data; checked at run time
    return not any(
        condition.subs({free[name]: size for name, size in sizes.items()}) == sympy.false
        for sizes in sizes_within({name: ranges[name] for name in free})
    )


def sizes_within(ranges: Mapping[str, tuple[int, int]]) -> Iterator[dict[str, int]]:
    """Yield combinations of sizes, all of them if they are few; none is below 2."""
    share = max(2, int(_MOST ** (1 / max(1, len(ranges)))))
    tried = [_some_of(low, high, share) for low, high in ranges.values()]
    for sizes in itertools.product(*tried):
        yield dict(zip(ranges, sizes, strict=True))


def _some_of(low: int, high: int, count: int) -> list[int]:
    low = max(2, low)
    if high - low < count:
        return list(range(low, high + 1))
    half = max(1, count // 2)
    return [*range(low, low + half), *range(high - half + 1, high + 1)]
