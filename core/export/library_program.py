"""Python program of a model's library functions that needs only torch and TVM."""

from __future__ import annotations

import base64
import builtins
import enum
import inspect
import math
import operator
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.overrides import resolve_name

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.lowering.library import Argument, LibraryFunction, Size
from lowerscope.core.lowering.library_nodes import MethodCall, ModuleCall, content_of_module
from lowerscope.core.python_text import attribute, is_identifier, keywords, quoted

NAMES = ("LibraryCall", "LIBRARY", "tensors_of", "plain_of", "from_dlpack")
"""Names that the program defines."""

CLASS = '''\
class LibraryCall:
    """A call of torch on the tensors of TVM's virtual machine, where they lie."""

    def __init__(self, call, inputs, copies=False, returns=False, sized=False):
        self.call = call
        self.inputs = inputs  # so many tensors are read, and results are written into the others
        self.copies = copies  # torch changes what it is given
        self.returns = returns  # new tensors, as their shapes depend on data
        self.sized = sized  # the sizes of named dimensions follow the inputs

    def __call__(self, *given):
        with torch.inference_mode():
            tensors = [from_dlpack(each) for each in given[: self.inputs]]
            if self.copies:
                tensors = [each.clone() for each in tensors]
            sizes = [int(each) for each in given[self.inputs]] if self.sized else []
            results = [plain_of(each) for each in tensors_of(self.call(tensors, sizes))]
            if self.returns:
                clones = [each.clone(memory_format=torch.contiguous_format) for each in results]
                made = [tvm.runtime.from_dlpack(each) for each in clones]
                return made[0] if len(made) == 1 else made
            for place, result in zip(given[self.inputs + self.sized :], results, strict=True):
                place = from_dlpack(place)
                assert place.shape == result.shape and place.dtype == result.dtype
                place.copy_(result)
        return None


def tensors_of(value):
    """The tensors of a result, which may be a nest of tuples and lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors_of(each)


def plain_of(tensor):
    """A tensor as TVM holds it: complex numbers as pairs, eight-bit floats as bytes."""
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    tensor = tensor.resolve_conj().resolve_neg()
    if tensor.is_complex():
        return torch.view_as_real(tensor)
    return tensor.view(torch.uint8) if "float8" in str(tensor.dtype) else tensor
'''


def standard_imports(program: str) -> list[str]:
    """Return the import lines for the standard library modules that a program uses."""
    return [f"import {name}" for name in ("base64", "operator", "pickle") if f"{name}." in program]


def library_program(library: Mapping[str, LibraryFunction], own: str = "") -> str:
    """Return a class and a table of functions by name, to be registered with TVM.

    Parameters
    ----------
    own
        The name of the module of the user's file in the program; empty if it has none.

    Raises
    ------
    LowerscopeError
        If a function calls, or contains, a value without an expression; it is named.
    """
    lines = [CLASS, "", "LIBRARY = {"]
    for name, function in library.items():
        try:
            lines += (f"    {line}" for line in _entry(name, function, own))
        except _NotWritten as reason:
            raise LowerscopeError(
                f"the library function {name} cannot be written down: {reason}",
                where=name,
                todo="Lower its nodes by another strategy, or use Lowerscope itself to run it",
            ) from None
    return "\n".join([*lines, "}", ""])


class _NotWritten(Exception):
    """A value has no expression."""


def _entry(name: str, function: LibraryFunction, own: str) -> Iterator[str]:
    flags = [f"{flag}=True" for flag in ("copies", "returns", "sized") if getattr(function, flag)]
    call = _call(function, own)
    yield f"{quoted(name)}: LibraryCall("
    yield f"    lambda t, s: {call},"
    yield f"    {', '.join([f'inputs={function.inputs}', *flags])},"
    yield "),"


def _call(function: LibraryFunction, own: str) -> str:
    args = [_text(each) for each in function.args]
    named = keywords((key, _text(value)) for key, value in function.kwargs.items())
    call = function.call
    if isinstance(call, ModuleCall):
        module = module_text(call.module)
        state, *rest = args
        passed = f"({', '.join(rest)}{',' * (len(rest) == 1)})"
        options = ", ".join(f"{key!r}: {_text(value)}" for key, value in function.kwargs.items())
        more = f", {{{options}}}" if options else ""
        return f"torch.func.functional_call({module}, {state}, {passed}{more})"
    if isinstance(call, MethodCall):
        owner, *rest = args
        return f"{attribute(owner, call.name)}({', '.join([*rest, *named])})"
    return f"{function_text(call, own)}({', '.join([*args, *named])})"


def function_text(called: Callable[..., Any], own: str = "") -> str:
    """Return an expression for a function of torch, of Python's, or of the user's file.

    Raises
    ------
    _NotWritten
        If there is none.
    """
    if isinstance(called, torch._ops.OpOverload):
        return attribute("torch.ops", *str(called).split("."))
    title = getattr(called, "__name__", "")
    if getattr(operator, title, None) is called:
        return f"operator.{title}"
    if getattr(builtins, title, None) is called:
        return title
    module = getattr(called, "__module__", None) or ""
    for name in (str(resolve_name(called) or ""), f"{module}.{title}"):
        if name.startswith("torch.") and _named(name) is called:
            return name
    if own and module.startswith("lowerscope_source_"):
        return attribute(own, *getattr(called, "__qualname__", title).split("."))
    raise _NotWritten(f"it calls {module}.{title}, which is not torch's")


def _named(name: str) -> Any:
    """Return the object that a dotted name refers to; ``None`` if there is none."""
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value


def module_text(module: nn.Module) -> str:
    """Return an expression for a module like this one, without values of its parameters.

    It is the call of its class if that makes the same; otherwise the module is pickled.
    """
    text = _constructed(module)
    if text:
        return text
    try:
        data = base64.b85encode(pickle.dumps(module)).decode()
    except Exception as error:  # a module may hold anything, and pickle raises anything
        raise _NotWritten(f"it calls {type(module).__name__}, {error}") from None
    return f"pickle.loads(base64.b85decode({data!r}))"


def _constructed(module: nn.Module) -> str:
    kind = type(module)
    name = f"torch.nn.{kind.__name__}"
    if getattr(nn, kind.__name__, None) is not kind:
        return ""
    given = []
    for parameter in list(inspect.signature(kind).parameters.values()):
        title = parameter.name
        if title in ("device", "dtype") or not hasattr(module, title):
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = getattr(module, title)
        if title == "bias" and not isinstance(value, bool):
            value = value is not None
        if parameter.default is not parameter.empty and _same(value, parameter.default):
            continue
        try:
            given.append(f"{title}={_text(value)}")
        except _NotWritten:
            return ""
    device = 'device="meta"' if "device" in inspect.signature(kind).parameters else ""
    evaluated = "" if module.training else ".eval()"
    text = f"{name}({', '.join([*given, *filter(None, [device])])}){evaluated}"
    try:
        made = eval(text, {"torch": torch})
    except Exception:  # whatever the constructor raises, it does not make this module
        return ""
    return text if content_of_module(made) == content_of_module(module) else ""


def _same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)


def _text(value: Any) -> str:
    """Return an expression for an argument of a call."""
    if isinstance(value, Argument):
        tensor = f"t[{value.index}]"
        if "complex" in value.dtype:
            return f"torch.view_as_complex({tensor})"
        return f"{tensor}.view(torch.{value.dtype})" if value.dtype else tensor
    if isinstance(value, Size):
        return f"s[{value.index}]"
    if type(value) in (tuple, list, torch.Size):
        inside = ", ".join(map(_text, value))
        if type(value) is list:
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if type(value) is dict:
        return f"{{{', '.join(f'{key!r}: {_text(each)}' for key, each in value.items())}}}"
    if isinstance(value, slice):
        return f"slice({', '.join(map(_text, (value.start, value.stop, value.step)))})"
    if isinstance(value, torch.device):
        return f"torch.{value!r}"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is ...:
        return "..."
    plain = bool, int, float, complex, str, type(None), torch.dtype, torch.layout
    if type(value) in (*plain, torch.memory_format):
        return repr(value)
    if isinstance(value, enum.Enum):
        kind = type(value)
        names = [*kind.__module__.split("."), *kind.__qualname__.split("."), value.name]
        if all(map(is_identifier, names)):
            return ".".join(names)
    raise _NotWritten(f"an argument is a {type(value).__name__}")
