"""TVMScript text of modules and functions, with the lines of their parts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from tvm import IRModule, relax, tirx

from lowerscope.core.errors import LowerscopeError, listed
from lowerscope.core.python_text import with_characters
from lowerscope.core.records.snapshot import Card, Span, TextRecord
from lowerscope.core.relax_bindings import Bound, binding_ids, bound_in
from lowerscope.core.rendering.line_marks import Lines, marked_lines
from lowerscope.core.rendering.script_cards import allocated_lines, constant_cards, tensorir_cards
from lowerscope.core.tensorir_parts import Part, parts_of

_LANGUAGE = "tvmscript"
_EMPTY = tirx.PrimFunc([], tirx.Evaluate(0))
_DEFINITION = re.compile(r" *def (\w+)\(")


@dataclass(frozen=True, slots=True)
class _FunctionLines:
    """The lines of one function in a module's script: indices, `end` excluded."""

    name: str
    tensorir: bool
    begin: int
    end: int


def relax_text(module: IRModule, bounds: Sequence[Bound] | None = None) -> TextRecord:
    """Return the script of the Relax functions of `module`, without the remark on metadata.

    Spans are ``relax:FUNCTION`` and, in it, ``relax:FUNCTION/VARIABLE`` for each binding. Callees
    are named as in the whole module: ``cls.dense``.

    Parameters
    ----------
    module
        The module.
    bounds
        Its bindings, where they are known.
    """
    lines, functions, bindings, cards = _module_lines(
        _without_bodies(module), bounds, show_meta=False
    )
    left_out = [range(part.begin, part.end) for part in functions if part.tensorir]
    remark = next((i for i, line in enumerate(lines) if line.startswith("# Metadata")), None)
    if remark is not None:
        left_out.append(range(remark, len(lines)))
    dropped = {index for part in left_out for index in part}
    kept = [index for index in range(len(lines)) if index not in dropped]
    while kept and not lines[kept[-1]]:
        kept.pop()
    number = {index + 1: position + 1 for position, index in enumerate(kept)}
    spans = [
        Span(entity=span.entity, first=number[span.first], last=number[span.last])
        for span in _spans(lines, [part for part in functions if not part.tensorir], bindings)
    ]
    kept_cards = [
        msgspec.structs.replace(card, first=number[card.first], last=number[card.last])
        for card in cards
        if card.first in number
    ]
    return _record([lines[index] for index in kept], spans, kept_cards)


def module_text(module: IRModule, *, show_meta: bool = False) -> TextRecord:
    """Return the script of the whole module.

    Spans are ``relax:FUNCTION``, in it ``relax:FUNCTION/VARIABLE``, and ``tir:FUNCTION``.

    Parameters
    ----------
    module
        The module.
    show_meta
        With the values of constants, so that the text can be read back.
    """
    lines, functions, bindings, cards = _module_lines(module, show_meta=show_meta)
    return _record(lines, _spans(lines, functions, bindings), cards)


def function_script(function: Any, name: str) -> str:
    """Return the script from the first decorator on, without the remark on omitted metadata."""
    lines = with_characters(function.script(name=name)).split("\n")
    begin = next((index for index, line in enumerate(lines) if line.startswith("@")), 0)
    end = len(lines)
    while end > begin + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return "\n".join(lines[begin:end])


def function_text(module: IRModule, name: str, loops: Sequence[str] | None = None) -> TextRecord:
    """Return the script of one function of `module`, printed alone.

    Spans of a TensorIR function are ``tir:NAME``, ``tir:NAME//BUFFER`` for what it allocates,
    ``tir:NAME/BLOCK`` and ``tir:NAME/BLOCK/VARIABLE``; those of a Relax function are as in
    `relax_text`.

    Parameters
    ----------
    loops
        Ids for the loops of a TensorIR function, in order, in place of those that they have here;
        an empty one for a loop without.

    Raises
    ------
    LowerscopeError
        If there is no such function, or it is external and has no text.
    """
    names = {str(variable.name_hint): variable for variable in module.get_global_vars()}
    function = module[names[name]] if name in names else None
    if isinstance(function, tirx.PrimFunc):
        parts = parts_of(name, function)
        return tensorir_text(name, function, parts if loops is None else _under(parts, loops))
    if isinstance(function, relax.Function):
        bound = bound_in(name, function)
        return _text(name, function, f"relax:{name}", bound, [part.binding for part in bound])
    raise LowerscopeError(
        f"the module has no TensorIR or Relax function {name!r}",
        todo=f"Choose one of {listed(sorted(names))}",
        choices=tuple(sorted(names)),
    )


def tensorir_text(name: str, function: tirx.PrimFunc, parts: Sequence[Part]) -> TextRecord:
    """Return the script of a TensorIR function as `function_text` does, with the ids of `parts`."""
    return _text(name, function, f"tir:{name}", parts, [part.statement for part in parts])


def _text(
    name: str,
    function: Any,
    entity: str,
    parts: Sequence[Part] | Sequence[Bound],
    objects: Sequence[Any],
) -> TextRecord:
    lines, places = marked_lines(function, objects, name=name)
    begin = next(index for index, line in enumerate(lines) if line.startswith("@"))
    whole = begin + 1, _last_of(lines, begin, len(lines))
    places = _with_swallowed(parts, places)
    spans = [Span(entity=entity, first=whole[0], last=whole[1])]
    if isinstance(function, tirx.PrimFunc):
        spans += [
            Span(entity=each, first=line, last=line)
            for each, line in allocated_lines(name, function, lines, whole)
        ]
    spans.extend(
        Span(entity=parts[index].id, first=first, last=last)
        for index, (first, last) in places.items()
    )
    return _record(lines, spans, _cards(function, parts, places, lines, whole))


def _cards(
    function: Any,
    parts: Sequence[Part] | Sequence[Bound],
    places: Mapping[int, Lines],
    lines: Sequence[str],
    whole: Lines,
) -> list[Card]:
    if isinstance(function, tirx.PrimFunc):
        inner = [part for part in parts if isinstance(part, Part)]
        return tensorir_cards(function, inner, places, lines, whole)
    return constant_cards([part for part in parts if isinstance(part, Bound)], places, lines)


def _under(parts: Sequence[Part], loops: Sequence[str]) -> list[Part]:
    """Return blocks as they are, and loops under other ids."""
    ids = iter(loops)
    named = [replace(part, id=next(ids, "")) if part.kind == "loop" else part for part in parts]
    return [part for part in named if part.id]


def _with_swallowed(
    parts: Sequence[Part] | Sequence[Bound], places: dict[int, Lines]
) -> dict[int, Lines]:
    """Give loops in a shared header the lines of the outermost loop of the header."""
    result: dict[int, Lines] = {}
    for index, part in enumerate(parts):
        if index in places:
            result[index] = places[index]
        elif isinstance(part, Part) and part.kind == "loop" and index - 1 in result:
            result[index] = result[index - 1]
    return result


def _module_lines(
    module: IRModule, bounds: Sequence[Bound] | None = None, *, show_meta: bool
) -> tuple[list[str], list[_FunctionLines], dict[str, Lines], list[Card]]:
    bound = binding_ids(module) if bounds is None else bounds
    lines, places = marked_lines(
        module, [one.binding for one in bound], **({"show_meta": True} if show_meta else {})
    )
    cards = [] if show_meta else constant_cards(bound, places, lines)
    return lines, _functions(lines), {bound[index].id: at for index, at in places.items()}, cards


def _without_bodies(module: IRModule) -> IRModule:
    """Return `module` with empty TensorIR functions of the same names.

    Printing the functions of a network takes most of the time; the Relax functions read the same.
    """
    functions = dict(module.functions_items())
    tensorir = [each for each, value in functions.items() if isinstance(value, tirx.PrimFunc)]
    if not tensorir:
        return module
    functions.update(dict.fromkeys(tensorir, _EMPTY))
    return IRModule(functions, attrs=module.attrs, global_infos=module.global_infos)


def _functions(lines: list[str]) -> list[_FunctionLines]:
    """Find the functions in a module's script: decorators alone stand at the class's indent."""
    begins = [index for index, line in enumerate(lines) if line.startswith("    @")]
    if not begins:
        return []
    functions: list[_FunctionLines] = []
    for begin, next_begin in zip(begins, [*begins[1:], len(lines)], strict=True):
        end = next(
            (
                index
                for index in range(begin + 1, next_begin)
                if lines[index] and not lines[index].startswith("    ")
            ),
            next_begin,
        )
        definition = _DEFINITION.match(lines[begin + 1])
        assert definition is not None, f"no function below the decorator {lines[begin]!r}"
        tensorir = lines[begin].startswith("    @T.")
        functions.append(_FunctionLines(definition[1], tensorir, begin, end))
    return functions


def _spans(
    lines: list[str], functions: Sequence[_FunctionLines], bindings: dict[str, Lines]
) -> list[Span]:
    spans: list[Span] = []
    for part in functions:
        kind = "tir" if part.tensorir else "relax"
        entity = f"{kind}:{part.name}"
        last = _last_of(lines, part.begin, part.end)
        spans.append(Span(entity=entity, first=part.begin + 1, last=last))
        if not part.tensorir:
            spans.extend(
                Span(entity=binding, first=first, last=end)
                for binding, (first, end) in bindings.items()
                if binding.startswith(f"{entity}/")
            )
    return spans


def _last_of(lines: list[str], begin: int, end: int) -> int:
    """Return the last line, from 1, between two indices that is not empty or a remark on it all."""
    while end > begin + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return end


def _record(lines: list[str], spans: list[Span], cards: Sequence[Card]) -> TextRecord:
    return TextRecord(
        text="\n".join(lines), language=_LANGUAGE, spans=tuple(spans), cards=tuple(cards)
    )
