"""Whether a model can be called with so many inputs."""

from __future__ import annotations

import inspect

import torch

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.tracing.failures import where_of
from lowerscope.core.tracing.source_lines import line_of_code


def check_count(model: torch.nn.Module, count: int) -> None:
    """Check that ``forward`` can be called with `count` inputs.

    Raises
    ------
    LowerscopeError
        If it cannot, with the names of its parameters.
    """
    signature = inspect.signature(model.forward)
    try:
        signature.bind(*range(count))
    except TypeError as error:
        names = ", ".join(signature.parameters)
        code = getattr(inspect.unwrap(type(model).forward), "__code__", None)
        line = line_of_code(code) if code else None
        raise LowerscopeError(
            f"{type(model).__name__} takes ({names}) and was given {count} "
            f"input{'' if count == 1 else 's'}",
            where=where_of(line),
            todo="give one input for each, for example --input x=1,784:float32",
        ) from error
