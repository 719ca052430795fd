"""Python's ``while`` on the values of tensors as ``torch.while_loop``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import Any

import torch
from torch import fx

from lowerscope.core.sources.opened_model import version_of

Steps = Callable[..., Any]


class AsTensors(ast.NodeTransformer):
    """Rewriting of what makes numbers of tensors, to calls that keep them tensors.

    `call`: returns the call of one of this module's functions, given its name and arguments.
    `numbers`: variables that are numbers before the loop.
    """

    def __init__(
        self, call: Callable[[str, list[ast.expr]], ast.expr], numbers: Collection[str]
    ) -> None:
        self._call = call
        self._numbers = numbers

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name) or node.target.id not in self._numbers:
            return node
        # A tensor would be changed in place.
        old = ast.Name(node.target.id, ast.Load())
        return ast.Assign([node.target], ast.BinOp(old, node.op, node.value))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        return self._call("both" if isinstance(node.op, ast.And) else "either", node.values)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return self._call("none", [node.operand]) if isinstance(node.op, ast.Not) else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr == "item" and not node.args:
            return self._call("number", [function.value])
        if isinstance(function, ast.Name) and function.id in ("float", "bool") and node.args:
            return self._call("number" if function.id == "float" else "truth", node.args[:1])
        return node


def truth(value: Any) -> Any:
    """Return whether a value is true: a tensor if it is one."""
    return value.reshape(()).bool() if isinstance(value, torch.Tensor) else bool(value)


def both(*values: Any) -> Any:
    return reduce(operator.and_, map(truth, values))


def either(*values: Any) -> Any:
    return reduce(operator.or_, map(truth, values))


def none(value: Any) -> Any:
    found = truth(value)
    return found.logical_not() if isinstance(found, torch.Tensor) else not found


def chosen(
    flag: Any, then: Mapping[str, Any], other: Mapping[str, Any], names: Sequence[str]
) -> tuple[Any, ...]:
    """Return each of some variables as it is after one way or the other."""

    def choice(one: Any, two: Any) -> Any:
        if one is two or one is None or two is None:
            return two if one is None else one
        if not isinstance(flag, torch.Tensor):
            return one if flag else two
        kinds = [each for each in (one, two) if isinstance(each, torch.Tensor)]
        dtype = kinds[0].dtype if kinds else None
        return torch.where(flag, *(torch.as_tensor(each, dtype=dtype) for each in (one, two)))

    return tuple(choice(then.get(each), other.get(each)) for each in names)


def number(value: Any) -> Any:
    """Return a tensor of one element as a number of Python's precision, still a tensor."""
    if not isinstance(value, torch.Tensor):
        return float(value)
    return value.reshape(()).double() if value.is_floating_point() else value.reshape(())


def as_carried(value: Any) -> torch.Tensor | None:
    """Return a value before the first step as a tensor; ``None`` if it cannot be one."""
    if isinstance(value, torch.Tensor):
        return value if value.layout is torch.strided else None
    if isinstance(value, bool | int | float):
        dtype = torch.float64 if isinstance(value, float) else None
        return torch.tensor(value, dtype=dtype)
    return None


def results_of(body: Steps, given: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
    """Return zeros like what a step gives; ``None`` if it fails or gives anything but tensors."""
    with torch.no_grad():
        try:
            results = body(*(each.detach().clone() for each in given))
        except Exception:  # of a model's own code, or of any operator
            return None
    if not all(isinstance(each, torch.Tensor) for each in results):
        return None
    return [torch.zeros_like(each) for each in results]


def graphs_of(
    test: Steps, body: Steps, carried: Sequence[torch.Tensor], others: Sequence[torch.Tensor]
) -> tuple[fx.GraphModule, fx.GraphModule] | None:
    """Return the test and the body of a loop as graphs of the values that they read.

    ``None`` if they need values of these tensors, change one in place, or give one of another shape
    or dtype.
    """
    # Imported here since few models need it.
    from torch.fx.experimental.proxy_tensor import make_fx

    given = [each.detach().clone() for each in (*carried, *others)]

    def traced(function: Steps) -> fx.GraphModule:
        tracer = make_fx(
            function, tracing_mode="fake", pre_dispatch=True, _allow_non_fake_inputs=True
        )
        made: fx.GraphModule = tracer(*given)
        own = [getattr(made, str(each.target)) for each in made.graph.find_nodes(op="get_attr")]
        read = [each for each in (*given, *own) if isinstance(each, torch.Tensor)]
        versions = [*map(version_of, read)]
        made(*given)
        if versions != [*map(version_of, read)]:
            raise TypeError
        return made

    def tested(*values: torch.Tensor) -> torch.Tensor:
        found = truth(test(*values))
        return found if isinstance(found, torch.Tensor) else torch.tensor(found)

    def stepped(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = body(*values)
        for one, other in zip(results, carried, strict=True):
            if (one.shape, one.dtype) != (other.shape, other.dtype):
                raise TypeError
        return tuple(results)

    with torch.no_grad():
        try:
            return traced(tested), traced(stepped)
        except Exception:  # of a model's own code, which may read values, or of any operator
            return None
