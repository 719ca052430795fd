"""Whether a model can be called with its inputs."""

from __future__ import annotations

import inspect

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
