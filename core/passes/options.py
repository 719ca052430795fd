"""Options of passes: their fields by signature, and conversion of values."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from tvm import ir, tirx
from tvm.target import Target

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import OptionValue
from lowerscope.core.model.snapshot import OptionKind, PassOption

Convert = Callable[[Any], Any]

_PARAMETER = re.compile(r"^(\w+)\s*(?::\s*(\S.*)?)?$")
_MODULE = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])")
_SECTION = re.compile(r"^[-=]{3,}\s*$")

CHOICES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("TopologicalSort", "order"): ("depth-first", "breadth-first"),
    ("TopologicalSort", "direction"): ("from-inputs", "from-outputs"),
    ("s_tir.HoistIfThenElse", "variant"): ("basic",),
}
"""Allowed values of options whose docstrings give them in prose."""

DEFAULTS: Mapping[str, str] = {"func_name": "main"}
"""Values of options without a default in TVM that nearly always have this value."""


@dataclass(frozen=True)
class Option:
    """An option: its record, and the conversion of a value for the pass.

    ``context_key`` is its key in TVM's ``PassContext``; empty for a parameter.
    """

    record: PassOption
    convert: Convert
    context_key: str = ""


class NoField(Exception):
    """A parameter without a default has a type that no field supports."""


def options_of(name: str, function: Callable[..., Any], given: str = "") -> tuple[Option, ...]:
    """Return the options of a function that makes a pass.

    A parameter that has a default, and a type that no field supports, is no option.

    Parameters
    ----------
    given
        A parameter that is no option since it is given otherwise.

    Raises `NoField` if another parameter has a type that no field supports.
    """
    docs = dict(_documented(inspect.getdoc(function) or ""))
    return tuple(
        option
        for parameter in signature_of(function).parameters.values()
        if parameter.name != given
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and (option := _option(name, parameter, *docs.get(parameter.name, ("", "")))) is not None
    )


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return a signature with its annotations evaluated where possible."""
    try:
        return inspect.signature(function, eval_str=True)
    except NameError:
        # Names imported for type checkers only.
        return inspect.signature(function)


def _option(name: str, parameter: inspect.Parameter, type_text: str, doc: str) -> Option | None:
    required = parameter.default is parameter.empty
    annotation = parameter.annotation
    if annotation is parameter.empty:
        annotation = type_text if required or parameter.default is None else type(parameter.default)
    found = _field(annotation)
    if found is None:
        if required:
            written = inspect.formatannotation(annotation).strip("'") if annotation else "a value"
            raise NoField(
                f"it takes {parameter.name}: {_MODULE.sub('', written)}, which no field can hold"
            )
        return None
    kind, convert, nullable = found
    default = DEFAULTS.get(parameter.name) if required else parameter.default
    required = required and default is None
    return Option(
        PassOption(
            name=parameter.name,
            kind=kind,
            default=default,
            required=required,
            nullable=nullable or (default is None and not required),
            choices=CHOICES.get((name, parameter.name), ()),
            doc=doc,
        ),
        convert,
    )


def _field(annotation: Any) -> tuple[OptionKind, Convert, bool] | None:
    """Return kind, conversion, and whether ``None`` is allowed; or ``None`` for no field."""
    if isinstance(annotation, str):
        return _field_of_text(annotation)
    plain = _PLAIN.get(annotation)
    if plain is not None:
        return plain, _same, False
    if annotation is Target:
        return "text", Target, False
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        nullable = type(None) in arguments
        for each in arguments:
            found = _field(each)
            if found is not None:
                return found[0], found[1], nullable or found[2]
        return None
    if origin in (list, tuple, typing.Sequence) and arguments[:1] == (str,):
        return "names", list, False
    if origin is typing.Literal and all(isinstance(each, str) for each in arguments):
        return "text", _same, False
    if isinstance(origin, type) and issubclass(origin, typing.Mapping):
        key, value = arguments
        if key is not str and str not in get_args(key):
            return None
        if value == list[str]:
            return "pairs", _layouts, False
        if value is ir.Expr:
            return "pairs", _extents, False
    return None


def _field_of_text(text: str) -> tuple[OptionKind, Convert, bool] | None:
    """Parse the type of a parameter in a docstring, such as ``Optional[String]``."""
    nullable = "Optional" in text or "None" in text
    bare = re.sub(r"Optional\[(.*)\]", r"\1", text.split(",")[0]).strip().lower()
    kinds: Mapping[str, OptionKind] = {
        "bool": "bool",
        "boolean": "bool",
        "int": "int",
        "float": "float",
        "str": "text",
        "string": "text",
    }
    if bare in ("target", "tvm.target.target"):
        return "text", Target, nullable
    return (kinds[bare], _same, nullable) if bare in kinds else None


_PLAIN: Mapping[Any, OptionKind] = {bool: "bool", int: "int", float: "float", str: "text"}


def _same(value: Any) -> Any:
    return value


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    for text in value:
        name, _, rest = text.partition("=")
        yield name.strip(), rest.strip()


def _layouts(value: Any) -> dict[str, list[str]]:
    return {name: rest.split() for name, rest in _pairs(value)}


def _extents(value: Any) -> dict[str, Any]:
    return {name: tirx.const(int(rest), "int64") for name, rest in _pairs(value)}


def _documented(doc: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield name, type and text of each parameter in a numpydoc docstring."""
    lines = doc.splitlines()
    at = next(
        (
            index + 2
            for index, line in enumerate(lines[:-1])
            if line.strip() == "Parameters" and _SECTION.match(lines[index + 1].strip())
        ),
        len(lines),
    )
    name, kind, text = "", "", list[str]()
    for index in range(at, len(lines)):
        line = lines[index]
        if index + 1 < len(lines) and _SECTION.match(lines[index + 1].strip()):
            break
        begins = None if line.startswith(" ") else _PARAMETER.match(line)
        if begins is not None:
            if name:
                yield name, (kind, "\n".join(text).strip())
            name, kind, text = begins[1], begins[2] or "", []
        else:
            text.append(line.strip())
    if name:
        yield name, (kind, "\n".join(text).strip())


def arguments_of(
    options: tuple[Option, ...], values: Mapping[str, OptionValue], where: str
) -> dict[str, Any]:
    """Return the arguments of a pass for the values of its options.

    Raises `LowerscopeError` if there is no such option, a value does not fit it, or one is missing;
    it is named.
    """
    known = {each.record.name: each for each in options}
    for name in values:
        if name not in known:
            raise LowerscopeError(
                f"there is no option {name}",
                where=where,
                todo=f"Its options are: {', '.join(known)}" if known else "It has no options",
            )
    arguments: dict[str, Any] = {}
    for name, option in known.items():
        record = option.record
        if name not in values:
            if record.required:
                raise LowerscopeError(
                    f"the option {name} is missing", where=where, todo=f"Give {_described(record)}"
                )
            if name in DEFAULTS:
                arguments[name] = record.default
            continue
        value = values[name]
        if not _fits(record, value):
            raise LowerscopeError(
                f"the option {name} cannot be {value!r}",
                where=where,
                todo=f"Give {_described(record)}",
            )
        try:
            arguments[name] = None if value is None else option.convert(value)
        except (ValueError, TypeError, RuntimeError) as error:
            raise LowerscopeError(
                f"the option {name} cannot be {value!r}: {error}",
                where=where,
                todo=f"Give {_described(record)}",
            ) from error
    return arguments


def _fits(option: PassOption, value: OptionValue) -> bool:
    if value is None:
        return option.nullable
    if option.choices:
        return value in option.choices
    match option.kind:
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "text":
            return isinstance(value, str)
        case "names":
            return isinstance(value, tuple)
        case "pairs":
            return isinstance(value, tuple) and all("=" in each for each in value)


def _described(option: PassOption) -> str:
    """Describe the accepted values of an option."""
    words = {
        "bool": "true or false",
        "int": "a whole number",
        "float": "a number",
        "text": "a text",
        "names": "a list of texts, as [a,b]",
        "pairs": "a list of name=value, as [a=1,b=2]",
    }
    described = " or ".join(option.choices) if option.choices else words[option.kind]
    return f"{described}, or null" if option.nullable else described
