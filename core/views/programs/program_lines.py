"""Lines of a program with the entities that they show, and expressions of TensorIR as Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

from tvm import tirx

from lowerscope.core.files.python_text import identifier
from lowerscope.core.ir.tensorir import dtype_of
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.snapshot import Span, TextRecord
from lowerscope.core.model.texts import _


def without_form(text: str, where: str = "") -> LowerscopeError:
    """Return the error for a part of a module that a program cannot express."""
    return LowerscopeError(text, where=where, todo=_("See the script instead"))


class ProgramLines:
    """Lines with indents, and spans that enclose the lines added inside."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._spans: list[Span] = []
        self._depth = 0

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self._lines)

    def add(self, *lines: str) -> None:
        """Add lines at the current indent; empty ones stay empty."""
        indent = "    " * self._depth
        self._lines.extend(indent + line if line else "" for line in lines)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Indent the lines that are added inside by a level."""
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def span(self, entity: str) -> Iterator[None]:
        """Tie the lines that are added inside to an entity; nothing for an empty one."""
        first = len(self._lines) + 1
        place = len(self._spans)
        yield
        if entity and len(self._lines) >= first:
            span = Span(entity=entity, first=first, last=len(self._lines))
            self._spans.insert(place, span)

    def uses(self, name: str) -> bool:
        """Return whether the lines use a module by its name, such as ``tirx``, before a dot."""
        use = re.compile(rf"\b{name}\.")
        return any(use.search(line) for line in self._lines)

    def record(self, language: str, head: Sequence[str] = ()) -> TextRecord:
        """Return the text below `head`, with the spans in order, outer ones first."""
        moved = len(head)
        return TextRecord(
            text="\n".join([*head, *self._lines]) + "\n",
            language=language,
            spans=tuple(
                Span(entity=span.entity, first=span.first + moved, last=span.last + moved)
                for span in self._spans
            ),
        )


class Identifiers:
    """The names that are taken in one scope of a program, and in those around it."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def inner(self) -> Identifiers:
        """Return a scope within this one."""
        return Identifiers(self._taken)

    def take(self, name: str) -> str:
        """Return an identifier like `name` that is not taken yet, and take it."""
        plain = identifier(name)
        found = plain
        if found in self._taken:
            numbered = (f"{plain}_{number}" for number in count(1))
            found = next(each for each in numbered if each not in self._taken)
        self._taken.add(found)
        return found


IF = 0
OR = 1
AND = 2
NOT = 3
COMPARE = 4
BIT_OR = 5
BIT_XOR = 6
BIT_AND = 7
SHIFT = 8
SUM = 9
PRODUCT = 10
UNARY = 11
ATOM = 12
"""Precedences of Python, from the conditional expression to names and calls."""

Written = tuple[str, int]
"""A text, and the precedence of its outermost operator."""

_OPERATORS: dict[type, tuple[str, int]] = {
    tirx.Add: ("+", SUM),
    tirx.Sub: ("-", SUM),
    tirx.Mul: ("*", PRODUCT),
    tirx.FloorDiv: ("//", PRODUCT),
    tirx.FloorMod: ("%", PRODUCT),
    tirx.BitwiseAnd: ("&", BIT_AND),
    tirx.BitwiseOr: ("|", BIT_OR),
    tirx.BitwiseXor: ("^", BIT_XOR),
    tirx.LShift: ("<<", SHIFT),
    tirx.RShift: (">>", SHIFT),
    tirx.EQ: ("==", COMPARE),
    tirx.NE: ("!=", COMPARE),
    tirx.LT: ("<", COMPARE),
    tirx.LE: ("<=", COMPARE),
    tirx.GT: (">", COMPARE),
    tirx.GE: (">=", COMPARE),
}


class ExpressionText:
    """Formatter of expressions; subclasses write those that are not operators of Python."""

    def __init__(self, name_of: Callable[[Any], str]) -> None:
        self._name_of = name_of

    def text(self, expression: Any, context: int = IF) -> str:
        """Return `expression` as text, in parentheses where its precedence is below `context`."""
        text, binds = self.written(expression)
        return text if binds >= context else f"({text})"

    def arguments(self, expressions: Any) -> str:
        """Return expressions with commas between them."""
        return ", ".join(self.text(each) for each in expressions)

    def written(self, expression: Any) -> Written:
        """Return `expression` as text, with its precedence."""
        if isinstance(expression, tirx.Var):
            return self._name_of(expression), ATOM
        if isinstance(expression, tirx.IntImm):
            return self.integer(expression)
        operator = _OPERATORS.get(type(expression))
        if operator is not None:
            return self.infix(*operator, expression.a, expression.b)
        return self.other(expression)

    def infix(self, symbol: str, binds: int, left: Any, right: Any) -> Written:
        """Return ``left symbol right``; comparisons do not chain, the others group to the left."""
        before = self.text(left, binds + 1 if binds == COMPARE else binds)
        return f"{before} {symbol} {self.text(right, binds + 1)}", binds

    def integer(self, expression: Any) -> Written:
        """Return a literal of an integer type, or of bool."""
        value = int(expression.value)
        if dtype_of(expression) == "bool":
            return str(bool(value)), ATOM
        return str(value), ATOM if value >= 0 else UNARY

    def other(self, expression: Any) -> Written:
        """Return an expression that is written differently from program to program."""
        raise NotImplementedError
