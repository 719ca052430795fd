"""Values of nodes without rules: attributes, members of tuples, and Python values."""

from __future__ import annotations

import operator
from typing import Any

from torch import fx
from tvm import ir, relax

from lowerscope.core.lowering.dimensions import SIZE_FUNCTIONS, Dimensions
from lowerscope.core.lowering.relax_values import Held, Value, is_size
from lowerscope.core.lowering.rule_table import RULES, Missing, Refused


def attribute(root: Any, path: str) -> Any:
    """Return the object at a dotted path."""
    for name in path.split("."):
        root = getattr(root, name)
    return root


def has_tensor(value: Any) -> bool:
    """Return whether a nest of values contains a tensor."""
    if isinstance(value, (tuple, list)):
        return any(has_tensor(each) for each in value)
    if isinstance(value, dict):
        return any(has_tensor(each) for each in value.values())
    return isinstance(value, ir.Expr | Held) and not is_size(value)


def reads_member(node: fx.Node, args: tuple[Any, ...]) -> bool:
    """Return whether `node` only takes a member of a tuple."""
    if node.target not in (operator.getitem, getattr) or not args:
        return False
    return isinstance(args[0], (tuple, list)) or (
        isinstance(args[0], ir.Expr) and isinstance(args[0].ty, relax.TupleType)
    )


def check_read_members(node: fx.Node, value: Value) -> None:
    """Reject a tuple of which a member is read that the rule did not compute."""
    if not isinstance(value, (tuple, list)):
        return
    missing = {index: each for index, each in enumerate(value) if isinstance(each, Missing)}
    for user in node.users if missing else ():
        index = user.args[1] if user.target is operator.getitem else None
        if not isinstance(index, int):
            raise Refused(next(iter(missing.values())).reason)
        if index % len(value) in missing:
            raise Refused(missing[index % len(value)].reason)


def is_python(node: fx.Node) -> bool:
    """Return whether `node` calls Python's own functions, or a method of a Python value."""
    if node.op == "call_method":
        return True
    if node.target in SIZE_FUNCTIONS:
        return True
    module = getattr(node.target, "__module__", "") or ""
    return module in ("_operator", "operator", "math", "builtins")


def compute(
    node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], dimensions: Dimensions
) -> Any:
    """Return the value of a call between Python values, such as the extents of a shape."""
    if any(map(is_size, args)) and node.op == "call_function":
        assert callable(node.target)
        return dimensions.compute(node.target, args)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target)
    if node.target is operator.getitem:
        return RULES[operator.getitem].lower(None, *args)
    return node.target(*args, **kwargs)
