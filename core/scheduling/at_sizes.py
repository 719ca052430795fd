"""Specialisation of a TensorIR function to one size, to be counted, called and measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.tirx.buffer import is_buffer_var

from lowerscope.core.errors import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.scheduling.sizes import known
from lowerscope.core.scheduling.sizes_at_calls import Given


@dataclass(frozen=True)
class AtSizes:
    """A function at one size.

    Attributes
    ----------
    function
        It, for any size, as the model calls it; numbers that it takes are constants in it.
    static
        It, with all extents as numbers.
    text
        The size, such as ``"batch = 5"``; empty where there is but one.
    """

    function: tirx.PrimFunc
    static: tirx.PrimFunc
    text: str = ""


def at_sizes(function: tirx.PrimFunc, given: Given | None) -> AtSizes:
    """Return a function at the size at which it is called.

    Parameters
    ----------
    given
        The arguments of its call; ``None`` where they are not known.

    Raises
    ------
    LowerscopeError
        If they are needed and not known, or are not what the function takes.
    """
    if not is_symbolic(function):
        return AtSizes(function, function)
    if given is None:
        raise LowerscopeError(
            "its size is computed at run time, or nothing in main calls it, so it cannot be run"
            " alone",
            where="schedule",
            todo="Run the model with it and compare that with torch",
        )
    numbers = {
        parameter: tirx.IntImm(str(parameter.ty.dtype), each)
        for parameter, each in zip(function.params, given, strict=True)
        if isinstance(each, int)
    }
    sizes = {str(parameter.name): int(each.value) for parameter, each in numbers.items()}
    try:
        bound = function.specialize(numbers) if numbers else function
        shapes = [each for each in given if not isinstance(each, int)]
        buffers = _buffers(bound, shapes, sizes)
        static = bound.specialize(buffers) if buffers else bound
    except TVM_ERRORS as error:
        raise LowerscopeError(
            f"it cannot be had at one size: {last_line(error)}", where="schedule"
        ) from error
    text = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    return AtSizes(bound, static, text)


def _buffers(
    function: tirx.PrimFunc, shapes: list[tuple[int, ...]], sizes: dict[str, int]
) -> dict[Any, Any]:
    """Return buffers of one size in place of those of any; add the names in them to `sizes`.

    An extent is set where its variable occurs for the first time; others follow from it.
    """
    buffers = {}
    for parameter, shape in zip(function.params, shapes, strict=True):
        before = len(sizes)
        extents = []
        for extent, size in zip(parameter.ty.shape, shape, strict=True):
            if isinstance(extent, tirx.Var) and str(extent.name) not in sizes:
                sizes[str(extent.name)] = size
                extents.append(tirx.IntImm(str(extent.ty.dtype), size))
            else:
                extents.append(extent)
        if len(sizes) > before:
            dtype = str(parameter.ty.dtype.dtype)
            buffers[parameter] = tirx.decl_buffer(extents, dtype, name=str(parameter.name))
    return buffers


def is_symbolic(function: tirx.PrimFunc) -> bool:
    """Return whether a parameter of the function has a symbolic shape, or is a number."""
    return any(
        not is_buffer_var(each) or any(known(extent) is None for extent in each.ty.shape)
        for each in function.params
    )
