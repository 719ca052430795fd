"""Checks that a model can be called with its inputs."""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Any

import torch

from lowerscope.core.calling import Calling, by_position
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.tracing.failures import where_of
from lowerscope.core.tracing.source_lines import forward_line


def positional_call(model: torch.nn.Module, count: int) -> Calling:
    """Return the call of ``forward`` with `count` tensors; ``*rest`` names them rest_0, …"""
    names: list[str] = []
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{index}" for index in range(count - len(names))]
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            names.append(parameter.name)
    names += [f"input_{index}" for index in range(len(names), count)]
    return by_position(names[:count])


def check_call(model: torch.nn.Module, calling: Calling) -> None:
    """Check that ``forward`` takes the arguments of `calling`.

    Raises
    ------
    LowerscopeError
        If it cannot, with the names of its parameters.
    """
    if _plainly_takes(model.forward, calling):
        return
    signature = inspect.signature(model.forward)
    try:
        signature.bind(*calling.args, **calling.kwargs)
    except TypeError as error:
        names = ", ".join(signature.parameters)
        count = len(calling.args) + len(calling.kwargs)
        raise LowerscopeError(
            f"{type(model).__name__} takes ({names}) and was given {count} "
            f"input{'' if count == 1 else 's'}",
            where=where_of(forward_line(model)),
            todo="give one input for each, for example --input x=1,784:float32",
        ) from error


def _plainly_takes(function: Any, calling: Calling) -> bool:
    """Return whether a function has a parameter for each tensor, and a default for all others.

    This is the usual case; making a signature takes as long as tracing a layer.
    """
    code: CodeType | None = getattr(function, "__code__", None)
    told = hasattr(function, "__wrapped__") or hasattr(function, "__signature__")
    if code is None or told or code.co_kwonlyargcount or not calling.is_flat:
        return False
    most = code.co_argcount - inspect.ismethod(function)
    return most - len(function.__defaults__ or ()) <= len(calling.args) <= most
