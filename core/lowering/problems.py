"""Errors for operators without a lowering."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.records.snapshot import SourceLine


@dataclass(frozen=True)
class Uncovered:
    """A node without a lowering, and why."""

    operator: str
    node: str
    line: SourceLine | None
    reason: str

    def text(self) -> str:
        """Return the description of the node: operator, node, line and reason."""
        place = f", {PurePath(self.line.file).name}:{self.line.line}" if self.line else ""
        return f"{self.operator} (node {self.node}{place}): {self.reason}"


def uncovered_error(uncovered: Sequence[Uncovered], tracer: str) -> LowerscopeError:
    """Return one error that names every one of `uncovered`."""
    shown = "; ".join(each.text() for each in uncovered[:_SHOWN])
    more = f"; and {len(uncovered) - _SHOWN} more" if len(uncovered) > _SHOWN else ""
    line = next((each.line for each in uncovered if each.line), None)
    return LowerscopeError(
        f"no lowering for {shown}{more}",
        where=f"{line.file}:{line.line}" if line else "",
        todo=_todo(uncovered, tracer),
        code="try-export" if tracer == "fx" else "",
        details="\n".join(each.text() for each in uncovered),
    )


_SHOWN = 5


def _todo(uncovered: Sequence[Uncovered], tracer: str) -> str:
    of_data = all(each.reason.endswith(ONLY_TENSORS) for each in uncovered)
    other = ", or try --tracer export" if tracer == "fx" else ""
    if of_data:
        return f"keep it a tensor, without .item(), .tolist() and the like{other}"
    return f"write it with other operators{other}"


ONLY_TENSORS = "of data, and only tensors can be computed"
"""End of the reason for a node that computes a number from tensors."""


def reason_of(error: Exception) -> str:
    """Return a short reason why TVM, or a rule, failed."""
    needs_number = isinstance(error, TypeError) and _EXPRESSION.search(str(error))
    if needs_number or any(sign in str(error) for sign in _NEEDS_NUMBER):
        return "it needs a number where a dimension has any size"
    # A KeyError quotes its message.
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    message = str(text).strip().splitlines()
    return message[-1] if message else type(error).__name__


_NEEDS_NUMBER = (
    "int() argument must be",
    "Cannot use and / or / not operator to Expr",
    "TVM supports multiple types of integer divisions",
)
_EXPRESSION = re.compile(r"'Expr'|\b(Var|Add|Sub|Mul|Div|Mod|FloorDiv|FloorMod|Min|Max|Cast)\b")
"""Pattern of Python's and TVM's errors for an expression of a dynamic size."""
