"""Models that compute gradients in ``forward``, which torch's inference mode does not allow."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch

_NAMES = frozenset(
    {"enable_grad", "set_grad_enabled", "requires_grad_", "requires_grad", "jacobian", "hessian"}
)


def without_gradients(called: Any) -> AbstractContextManager[None]:
    """Return the mode to call a model or a function in: inference mode, if it allows that."""
    return torch.no_grad() if uses_gradients(called) else torch.inference_mode()


def uses_gradients(called: Any) -> bool:
    """Return whether the Python code of a model or a function enables gradients."""
    functions = list(_functions_of(called))
    seen: set[types.CodeType] = set()
    while functions:
        function = functions.pop()
        codes = [function.__code__]
        while codes:
            code = codes.pop()
            if code in seen:
                continue
            seen.add(code)
            if not _NAMES.isdisjoint(code.co_names):
                return True
            codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
            for name in code.co_names:
                known = function.__globals__.get(name)
                if isinstance(known, types.FunctionType) and _is_own(known):
                    functions.append(known)
    return False


def _functions_of(called: Any) -> Iterator[types.FunctionType]:
    if isinstance(called, types.FunctionType):
        yield called
    if not isinstance(called, torch.nn.Module):
        return
    for module in called.modules():
        parts = [*vars(module).values()]
        parts += [each for base in type(module).__mro__ for each in vars(base).values()]
        for each in parts:
            function = getattr(each, "__func__", each)
            if _is_own(function):
                yield function


def _is_own(value: Any) -> bool:
    """Return whether a value is a function that is not torch's."""
    return isinstance(value, types.FunctionType) and not str(value.__module__).startswith(
        ("torch.", "torch_", "lowerscope.")
    )
