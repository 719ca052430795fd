"""Entries of the operator table: an operator, its forms, and the arguments of its calls.

A form is the text of an expression, such as ``torch.add(x, y, alpha=2)``: what is run is what the
page shows. Its names are those of the entry's arguments, and those of `NAMES`. A module,
``nn.ReLU()(x)``, is made once, outside of ``forward``.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import nn

Drawn = dict[str, Any]
Draw = st.SearchStrategy[Any] | Callable[[Drawn], st.SearchStrategy[Any]]
"""A strategy for one argument, or what makes it of the arguments that were drawn before."""


@dataclass(frozen=True)
class Entry:
    """One operator or module.

    Attributes
    ----------
    name
        Of the operator.
    arguments
        How each argument is drawn, in order; tensors become inputs of the model.
    text
        Expressions that have all three strategies, its forms, with semicolons between them.
    in_torch
        Expressions that have the library strategy alone, with a part of the reason for it.
    operators_stay
        Whether TE leaves Relax operators, which have no TensorIR form.
    loose_export
        Whether some operators that ``torch.export`` makes of the forms run in torch.
    random
        Whether the values are drawn anew, so that only shape and dtype are compared.
    tracers
        That can trace the forms.
    tolerance
        Relative and absolute, where float32 does not give 1e-4.
    """

    name: str
    arguments: Mapping[str, Draw]
    text: str = ""
    in_torch: Mapping[str, str] = field(default_factory=dict)
    operators_stay: bool = False
    loose_export: bool = False
    random: bool = False
    tracers: tuple[str, ...] = ("fx", "export")
    tolerance: float = 1e-4

    @property
    def forms(self) -> tuple[str, ...]:
        """The expressions of the text."""
        return tuple(self.text.split("; ")) if self.text else ()

    @property
    def all_forms(self) -> tuple[str, ...]:
        """All expressions, those of the library alone last."""
        return (*self.forms, *self.in_torch)

    def examples(self) -> st.SearchStrategy[Drawn]:
        """Return a strategy for the arguments of all forms."""

        @st.composite
        def draw_all(draw: Any) -> Drawn:
            drawn: Drawn = {}
            for name, each in self.arguments.items():
                drawn[name] = draw(each(drawn) if callable(each) else each)
            return drawn

        return draw_all()

    def dtypes(self) -> tuple[str, ...]:
        """Return the dtypes that the tensors among the arguments are drawn in."""
        found = (getattr(each, "dtypes", ()) for each in self.arguments.values())
        return tuple(dict.fromkeys(dtype for dtypes in found for dtype in dtypes))


@dataclass(frozen=True)
class Form:
    """A form that can be called with the tensors and options of an example."""

    text: str
    module: nn.Module | None
    call: Callable[..., Any]


def compile_form(text: str, names: tuple[str, ...], drawn: Drawn) -> Form:
    """Return the form of a text; modules are made with the options that were drawn."""
    body = ast.parse(text, mode="eval").body
    found = _ModuleCalls()
    body = found.visit(body)
    options = {name: each for name, each in drawn.items() if not is_tensor(each)}
    module = eval(found.text, {**NAMES, **options}) if found.text else None
    parameters = ", ".join(("_module", *names))
    return Form(text, module, eval(f"lambda {parameters}: {ast.unparse(body)}", NAMES))


class _ModuleCalls(ast.NodeTransformer):
    """Replaces what makes the module of a form by its name."""

    def __init__(self) -> None:
        self.text = ""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Call):
            assert not self.text, "a form has one module"
            self.text = ast.unparse(node.func)
            node.func = ast.Name("_module", ast.Load())
        return self.generic_visit(node)


def is_tensor(value: Any) -> bool:
    """Return whether a drawn value is an input of the model."""
    return isinstance(value, torch.Tensor)


def assign(tensor: torch.Tensor, index: Any, value: Any) -> torch.Tensor:
    """Write into a tensor and return it: an assignment as an expression."""
    tensor[index] = value
    return tensor


def trained(module: nn.Module) -> nn.Module:
    """Return a module in training mode."""
    return module.train()


NAMES: dict[str, Any] = {
    "torch": torch,
    "F": F,
    "nn": nn,
    "aten": torch.ops.aten,
    "operator": operator,
    "math": math,
    "assign": assign,
    "trained": trained,
}
