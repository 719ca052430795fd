"""A library function as lines of Python: its torch function, and the code around it."""

from __future__ import annotations

from typing import Any

from torch.overrides import resolve_name

from lowerscope.core.lowering.library import Argument, LibraryFunction, Size
from lowerscope.core.lowering.library_modules import ModuleCall
from lowerscope.core.lowering.library_nodes import MethodCall


def library_call_text(function: LibraryFunction) -> str:
    """Return the code that the virtual machine runs when it calls a library function.

    The tensors that it passes are ``t0``, ``t1``, … in order, the sizes of named dimensions
    ``size0``, …; `LibraryFunction.__call__` does the same for every function.
    """
    count = function.inputs
    passed = [f"t{index}" for index in range(count)]
    sizes = ["sizes"] if function.sized else []
    results = [] if function.returns else ["*results"]
    lines = [
        f'@tvm.register_global_func("{function.name}")',
        f"def call({', '.join([*passed, *sizes, *results])}):",
    ]
    if passed:
        kept = "copied, as torch changes them" if function.copies else "read where they lie"
        clone = ".clone()" if function.copies else ""
        read = ", ".join(f"from_dlpack({name}){clone}" for name in passed)
        lines.append(f"    {', '.join(passed)} = {read}  # {kept}")
    lines += [
        "    with torch.inference_mode():",
        f"        made = {_call_text(function)}",
    ]
    if function.returns:
        lines.append("    return made  # new tensors: their shapes depend on data")
    else:
        lines.append("    for place, result in zip(results, tensors_of(made)):")
        lines.append("        from_dlpack(place).copy_(result)  # into the memory that TVM planned")
    return "\n".join(lines)


def called_by(function: LibraryFunction) -> Any:
    """Return the torch callee of a library function: a function, or a class of modules.

    For a method of a tensor, its name.
    """
    call = function.call
    if isinstance(call, ModuleCall):
        return type(call.module)
    return call.name if isinstance(call, MethodCall) else call


def name_of_called(function: LibraryFunction) -> str:
    """Return the name of the callee: ``torch.conv2d``, ``torch.nn.modules.linear.Linear``."""
    called = called_by(function)
    if isinstance(called, str):
        return f"torch.Tensor.{called}"
    if isinstance(called, type):
        return f"{called.__module__}.{called.__qualname__}"
    return str(resolve_name(called) or getattr(called, "__qualname__", called))


def _call_text(function: LibraryFunction) -> str:
    args = [_text(each) for each in function.args]
    named = [f"{name}={_text(value)}" for name, value in function.kwargs.items()]
    call = function.call
    if isinstance(call, ModuleCall):
        state, *rest = [*args, *named]
        whole = ", ".join([f"{call.module!r}".split("\n")[0], state, f"({', '.join(rest)},)"])
        return f"torch.func.functional_call({whole})"
    if isinstance(call, MethodCall):
        owner, *rest = [*args, *named]
        return f"{owner}.{call.name}({', '.join(rest)})"
    return f"{name_of_called(function)}({', '.join([*args, *named])})"


def _text(value: Any) -> str:
    if isinstance(value, Argument):
        return f"view_as_{value.dtype}(t{value.index})" if value.dtype else f"t{value.index}"
    if isinstance(value, Size):
        return f"sizes[{value.index}]"
    if isinstance(value, tuple):
        inside = ", ".join(_text(each) for each in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, list):
        return f"[{', '.join(_text(each) for each in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_text(each)}' for key, each in value.items())}}}"
    return repr(value)
