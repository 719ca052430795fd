"""The entry of a user's file: the class, instance or function that makes the model."""

from __future__ import annotations

import inspect
import json
import sys
import typing
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.sources.prim_funcs import is_prim_func
from lowerscope.core.sources.user_code import user_code

BUILDERS = (
    "build",
    "make",
    "create",
    "model",
    "build_model",
    "make_model",
    "create_model",
    "get_model",
)
"""Names of functions that count as model builders without an annotation."""

LOOKED_FOR = (
    "An entry is an nn.Module class or instance, an IRModule, a TensorIR function (PrimFunc), or a "
    "function without required parameters that returns one of these"
)


def find_entry(module: ModuleType, name: str, path: Path) -> tuple[str, object]:
    """Return the name and the value of the entry of a file that has been run.

    Parameters
    ----------
    module
        The file, run.
    name
        The entry that the user named; empty for the only candidate, or the one that the file
        itself names in ``entry`` or ``__all__``.
    path
        The file.

    Raises
    ------
    LowerscopeError
        If there is no such entry, no candidate, or more than one (``code="choose-entry"``).
    """
    candidates = find_candidates(module)
    if name:
        return name, _named(module, name, candidates, path)
    declared = module.__dict__.get("entry")
    if isinstance(declared, str):
        return declared, _named(module, declared, candidates, path)
    if (
        is_model(declared)
        or _is_module_class(declared, module)
        or (isinstance(declared, FunctionType) and _callable_bare(declared))
    ):
        return "entry", declared
    exported = module.__dict__.get("__all__")
    if isinstance(exported, (list, tuple)):
        candidates = {key: candidates[key] for key in exported if key in candidates} or candidates
    if not candidates:
        raise LowerscopeError("no model is found in the file", where=str(path), todo=LOOKED_FOR)
    if len(candidates) > 1:
        raise LowerscopeError(
            f"there are several candidates: {', '.join(candidates)}",
            where=str(path),
            todo=f"Name one: {path.name}:{next(iter(candidates))}",
            code="choose-entry",
            choices=tuple(candidates),
        )
    return next(iter(candidates.items()))


def find_candidates(module: ModuleType) -> dict[str, object]:
    """Return the possible entries of a file by name, in file order.

    A TensorIR function is a candidate only in the absence of others: beside a module it is a part
    of it.
    """
    public = {name: value for name, value in module.__dict__.items() if not name.startswith("_")}
    functions = [
        value
        for value in public.values()
        if isinstance(value, FunctionType)
        and _callable_bare(value)
        and value.__module__ == module.__name__
    ]
    by_name = [function for function in functions if function.__name__ in BUILDERS]
    builders = [value for value in functions if _returns_model(value) or by_name == [value]]
    found: dict[str, object] = {}
    for name, value in public.items():
        taken = (
            _is_module_class(value, module)
            or is_model(value)
            or any(value is builder for builder in builders)
        )
        if taken and not any(value is other for other in found.values()):
            found[name] = value
    whole = {name: value for name, value in found.items() if not is_prim_func(value)}
    return whole or found


def is_model(value: object) -> bool:
    """Return whether `value` is an ``nn.Module``, an ``IRModule`` or a ``PrimFunc``."""
    return isinstance(value, torch.nn.Module) or is_ir_module(value) or is_prim_func(value)


def is_ir_module(value: object) -> bool:
    """Return whether `value` is an ``IRModule``, without importing TVM."""
    tvm = sys.modules.get("tvm")
    return tvm is not None and isinstance(value, tvm.IRModule)


def parse_arguments(text: str) -> dict[str, Any]:
    """Read ``--args``.

    Raises
    ------
    LowerscopeError
        If it is not a JSON object.
    """
    todo = """Write an object, such as --args '{"hidden": 128}'"""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        # json raises other errors for numbers of thousands of digits and for very deep nesting.
        what = str(error)
        if isinstance(error, json.JSONDecodeError):
            what = f"{error.msg} at column {error.colno}"
        raise LowerscopeError(
            f"this is not JSON: {what}", where=f"--args {text}", todo=todo
        ) from None
    if not isinstance(value, dict):
        raise LowerscopeError("this is not a JSON object", where=f"--args {text}", todo=todo)
    return value


def build(entry: object, name: str, arguments: Mapping[str, Any], path: Path) -> object:
    """Call the entry if it is a class or a function, and return the model.

    Raises
    ------
    LowerscopeError
        If arguments are missing or unknown, the call fails, or it does not return a model.
    """
    where = f"{path}:{name}"
    if is_model(entry):
        if arguments:
            raise LowerscopeError(
                f"{name} is built already and takes no arguments",
                where=where,
                todo="Leave --args out",
            )
        return entry
    assert callable(entry)
    _check_arguments(entry, name, arguments, where)
    with user_code(path, f"builds {name}"):
        model = entry(**arguments)
    if not is_model(model):
        raise LowerscopeError(
            f"{name} returns {_article(type(model).__name__)}, not an nn.Module, an IRModule or a "
            "PrimFunc",
            where=where,
            todo=LOOKED_FOR,
        )
    return model


def _named(module: ModuleType, name: str, candidates: Mapping[str, object], path: Path) -> object:
    value: object = module
    for part in name.split("."):
        value = getattr(value, part, None)
    usable = is_model(value) or (
        issubclass(value, torch.nn.Module) if isinstance(value, type) else callable(value)
    )
    if usable:
        return value
    listed = ", ".join(candidates)
    if value is None:
        what = f"there is no {name}"
    else:
        kind = (
            f"the class {name}"
            if isinstance(value, type)
            else f"{name}, {_article(type(value).__name__)},"
        )
        what = f"{kind} is not a model"
    raise LowerscopeError(
        what,
        where=str(path),
        todo=f"The file has {listed}" if candidates else LOOKED_FOR,
        code="choose-entry" if candidates else "",
        choices=tuple(candidates),
    )


def _is_module_class(value: object, module: ModuleType) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, torch.nn.Module)
        and value.__module__ == module.__name__
    )


def _callable_bare(function: FunctionType) -> bool:
    return not _required(inspect.signature(function))


def _required(signature: inspect.Signature) -> list[str]:
    return [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _returns_model(function: FunctionType) -> bool:
    annotation: object = function.__annotations__.get("return")
    if isinstance(annotation, str):
        try:
            annotation = typing.get_type_hints(function).get("return")
        except (NameError, AttributeError, TypeError, SyntaxError):
            # The annotation may be imported under TYPE_CHECKING only; its name is enough.
            return str(annotation).rpartition(".")[2].strip("\"'") in (
                "Module",
                "IRModule",
                "PrimFunc",
            )
    if not isinstance(annotation, type):
        return False
    tvm = sys.modules.get("tvm")
    return issubclass(annotation, torch.nn.Module) or (
        tvm is not None and issubclass(annotation, (tvm.IRModule, tvm.tirx.PrimFunc))
    )


def _check_arguments(entry: Any, name: str, arguments: Mapping[str, Any], where: str) -> None:
    try:
        signature = inspect.signature(entry)
    except (TypeError, ValueError):
        # Some builtins have no signature; the call itself reports the error.
        return
    parameters = signature.parameters.values()
    unknown = [key for key in arguments if key not in signature.parameters]
    if unknown and not any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        known = ", ".join(
            parameter.name
            for parameter in parameters
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        )
        raise LowerscopeError(
            f"{name} takes no argument {', '.join(unknown)}",
            where=where,
            todo=f"It takes {known}" if known else "It takes none: leave --args out",
        )
    missing = [key for key in _required(signature) if key not in arguments]
    if missing:
        example = ", ".join(f'"{key}": ...' for key in missing)
        raise LowerscopeError(
            f"{name} needs the argument{'s' * (len(missing) > 1)} {', '.join(missing)}",
            where=where,
            todo=f"Give --args '{{{example}}}'",
            code="give-args",
            choices=(f"{{{example}}}",),
        )


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
