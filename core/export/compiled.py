"""Compiled library of a recipe, with a loader that needs torch and TVM only."""

from __future__ import annotations

import base64
import builtins
import enum
import inspect
import math
import operator
import pickle
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import resolve_name
from tvm.support import cc

from lowerscope.core.build.build import external_functions
from lowerscope.core.export.files import File, arrays_file, copied_file, plain_array, text_file
from lowerscope.core.files.python_text import attribute, is_identifier, keywords, quoted
from lowerscope.core.files.report import template
from lowerscope.core.files.source_files import neighbours
from lowerscope.core.lowering.library import Argument, LibraryFunction, Size
from lowerscope.core.lowering.library_nodes import MethodCall, ModuleCall, content_of_module
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.run.execution import to_tvm
from lowerscope.core.stages import Stages
from lowerscope.resources import PROGRAMS

FOLDER = "library"


def compiled_files(stages: Stages) -> Iterator[File]:
    """Yield the library, its loader, the functions that it calls by name, and arguments for a run.

    Constants are in the library. Parameters that are arguments of ``main`` are in
    ``arguments.npz``, as are the inputs.

    Raises a `LowerscopeError` if there is no C compiler to link with; or a function that the model
    calls is registered by a file that cannot be copied.
    """
    stages.check_runs_here("a library is linked")
    _check_compiler()
    lowered = stages.lowered
    library = {} if lowered is None else lowered.library
    registering = registering_files(stages)
    executable = stages.built.executable

    def link(path: Path) -> None:
        try:
            executable.export_library(str(path))
        except TVM_ERRORS as error:
            raise LowerscopeError(
                f"the library could not be linked: {last_line(error)}",
                where=f"{FOLDER}/model.so",
                todo="See that the C compiler works, or name another in the variable CXX",
                details=str(error),
            ) from error

    yield File(f"{FOLDER}/model.so", link)
    names = []
    for path in registering:
        names.append(path.stem)
        beside = [each for each in neighbours(path) if each.is_relative_to(path.parent)]
        for each in (path, *beside):
            yield copied_file(f"{FOLDER}/{each.relative_to(path.parent)}", each)
    if library:
        entries = library_entries(library)
        used = [each for each in ("base64", "operator", "pickle") if f"{each}." in "".join(entries)]
        program = template(PROGRAMS / "torch_functions.py.jinja")
        text = program.render(standard=used, library=entries)
        yield text_file(f"{FOLDER}/torch_functions.py", text)
        names.append("torch_functions")
    values = stages.arguments([each.value for each in stages.loaded.inputs])
    arrays, views = {}, []
    for number, value in enumerate(values):
        tensor = to_tvm(value) if isinstance(value, torch.Tensor) else value
        arrays[str(number)], view = plain_array(tensor, _OWN_DTYPES)
        views.append(view)
    yield arrays_file(f"{FOLDER}/arguments.npz", arrays)
    loader = template(PROGRAMS / "load.py.jinja")
    yield text_file(
        f"{FOLDER}/load.py", loader.render(names=names, views=views, is_identifier=is_identifier)
    )


_OWN_DTYPES = frozenset("?bBhHiIlLqQefd")


def _check_compiler() -> None:
    compiler = cc.get_cc()
    if compiler is None or shutil.which(compiler) is None:
        named = f": {compiler} is not there" if compiler else ""
        raise LowerscopeError(
            f"a library is linked by a C compiler, and there is none{named}",
            where="library",
            todo="Install gcc or clang (Debian and Ubuntu: apt-get install g++), or name one in "
            "the variable CXX",
        )


def registering_files(stages: Stages) -> list[Path]:
    """Return the user's files that register functions called by the model.

    Raises a `LowerscopeError` if one is a file of rules: it imports Lowerscope.
    """
    called = set(external_functions(stages.completed))
    left, found = set(called), []
    for extension, loaded in stages.extensions:
        both = called & set(loaded.functions)
        if both and extension.kind == "rules":
            raise LowerscopeError(
                f"{', '.join(sorted(both))} is registered by a file of rules, which needs "
                "Lowerscope",
                where=str(loaded.path),
                todo="Register the function in a file of its own, and give that with --library",
            )
        if both:
            found.append(loaded.path)
            left -= both
    if left & set(stages.loaded.registered()):
        found.append(stages.loaded.path)
    return found


def library_entries(library: Mapping[str, LibraryFunction], own: str = "") -> list[str]:
    """Return the lines of a table of functions by name, to be registered with TVM.

    Raises a `LowerscopeError` if a function calls, or contains, a value without an expression; it
    is named.

    Parameters
    ----------
    own
        The name of the module of the user's file in the program; empty if it has none.
    """
    lines: list[str] = []
    for name, function in library.items():
        try:
            lines += _entry(name, function, own)
        except _NotWritten as reason:
            raise LowerscopeError(
                f"the library function {name} cannot be written down: {reason}",
                where=name,
                todo="Lower its nodes by another strategy, or use Lowerscope itself to run it",
            ) from None
    return lines


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

    Raises `_NotWritten` if there is none.
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
