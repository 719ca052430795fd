"""TVMScript text of modules and functions, with the lines of their parts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from types import MappingProxyType
from typing import Any

import msgspec
from tvm import DataType, IRModule, ir, relax, s_tir, tirx
from tvm.tirx.buffer import is_buffer_var
from tvm_ffi import structural_hash

from lowerscope.core.files.python_text import with_characters
from lowerscope.core.ir.relax import Bound, binding_ids, bound_in
from lowerscope.core.ir.tensorir import Part, allocated_ids, parts_of, root_block
from lowerscope.core.model.compact_script import LANGUAGE
from lowerscope.core.model.formatting import bytes_text, shape_text
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.schedule_records import LoopKind
from lowerscope.core.model.snapshot import Card, Span, TextRecord
from lowerscope.core.model.texts import _

_MARK = "lowerscope mark "
_LINE = re.compile(rf" *# {_MARK}(\d+)")
_TAIL = re.compile(rf"  # {_MARK}(\d+)$")

Lines = tuple[int, int]


def marked_lines(
    node: Any, objects: Sequence[Any], **options: Any
) -> tuple[list[str], dict[int, Lines]]:
    """Print `node` and return the lines of `objects`.

    TVM's printer does not report the line of an object, but it writes a remark beside objects on
    request. So a script is printed with a mark for each object of interest; the marks are read and
    removed, which leaves exactly the printer's text.

    Returns the lines of the script, and for each object, by its index, the first and last line that
    belong to it, counted from 1. Objects that are not printed on a line of their own, such as a
    loop that is named in the header of a loop around it, are left out.

    `objects`: bindings, loops and blocks inside `node`.
    """
    marks = {node: f"{_MARK}{index}" for index, node in enumerate(objects)}
    printed = with_characters(node.script(obj_to_annotate=marks, **options)).split("\n")
    lines: list[str] = []
    single: dict[int, int] = {}
    headers: dict[int, int] = {}
    for line in printed:
        if whole := _LINE.fullmatch(line):
            headers[int(whole[1])] = len(lines)
        elif tail := _TAIL.search(line):
            single[int(tail[1])] = len(lines)
            lines.append(line[: tail.start()])
        else:
            lines.append(line)
    spans = {index: (line + 1, line + 1) for index, line in single.items()}
    spans |= {index: (line + 1, _end(lines, line)) for index, line in headers.items()}
    return lines, dict(sorted(spans.items()))


def _end(lines: list[str], header: int) -> int:
    """Return the last line, from 1, of the statement whose header is at index `header`."""
    indent = _indent(lines[header])
    last = header
    for index in range(header + 1, len(lines)):
        line = lines[index]
        if not line.strip():
            continue
        if _indent(line) < indent or (_indent(line) == indent and line.strip() != "else:"):
            break
        last = index
    return last + 1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


_ALLOCATED = re.compile(r" *(\w+) = T\.sblock_alloc_buffer\(")
_HEADER = re.compile(r" *for ([\w, ]+) in ")
_PARAMETER = re.compile(r"(\w+): ")
_CONSTANT = re.compile(r'metadata\["[\w.]+"\]\[\d+\]')
LOOP_KINDS: tuple[LoopKind, ...] = (
    "serial",
    "parallel",
    "vectorized",
    "unrolled",
    "thread binding",
)


def tensorir_cards(
    function: tirx.PrimFunc,
    parts: Sequence[Part],
    places: Mapping[int, Lines],
    lines: Sequence[str],
    whole: Lines,
) -> list[Card]:
    """Return the cards of a TensorIR function.

    TVM's printer does not report the names that it gives, but it writes objects in order: the
    parameters of a function, the buffers that a block allocates, the loops of a header. So names
    are read in that order, and where their number differs from that of the objects, there are no
    cards.
    """
    return [
        *_parameter_cards(function, lines, whole),
        *_allocated_cards(function, parts, places, lines, whole),
        *_loop_cards(parts, places, lines),
    ]


NameOf = Callable[[Any], str]
"""Function that returns the name of a constant; empty for none."""


def constant_cards(
    bindings: Sequence[Bound],
    places: Mapping[int, Lines],
    lines: Sequence[str],
    name_of: NameOf | None = None,
) -> tuple[list[Card], dict[str, str]]:
    """Return the cards of the constants in the lines of bindings, and their names by printed form.

    A constant has a card for either. One without a name, such as those that passes compute, is
    ``const[3]: 64×3``, with its dtype unless that is float32.
    """
    cards: list[Card] = []
    names: dict[str, str] = {}
    for index, (first, last) in places.items():
        found = [
            (number, name)
            for number in range(first, last + 1)
            for name in _CONSTANT.findall(lines[number - 1])
        ]
        value = getattr(bindings[index].binding, "value", None)
        constants = list(_constants(value)) if found else []
        if len(found) != len(constants):
            continue
        for (number, printed), constant in zip(found, constants, strict=True):
            facts = _tensor_facts(constant.value.shape, str(constant.value.dtype))
            if printed not in names and name_of is not None:
                names[printed] = name_of(constant) or _constant_text(printed, constant.value)
            for name in filter(None, (printed, names.get(printed))):
                cards.append(
                    Card(name=name, kind="constant", first=number, last=number, facts=facts)
                )
    return cards, names


def _constant_text(printed: str, tensor: Any) -> str:
    number = printed[printed.rindex("[") :]
    dtype = "" if str(tensor.dtype) == "float32" else f" {tensor.dtype}"
    return f"const{number}: {shape_text(tensor.shape)}{dtype}"


def allocated_lines(
    name: str, function: tirx.PrimFunc, lines: Sequence[str], whole: Lines
) -> Iterator[tuple[str, int]]:
    """Yield the buffers that a function allocates around all of its blocks, each with its line.

    They stand first in the function, before those that its blocks allocate.
    """
    found = [
        number
        for number, line in enumerate(lines[whole[0] - 1 : whole[1]], start=whole[0])
        if _ALLOCATED.match(line)
    ]
    for (entity, _other), number in zip(allocated_ids(name, function), found, strict=False):
        yield entity, number


def _parameter_cards(function: tirx.PrimFunc, lines: Sequence[str], whole: Lines) -> Iterator[Card]:
    header = next(
        (line for line in lines[whole[0] - 1 : whole[1]] if line.lstrip().startswith("def ")), ""
    )
    names = list(_parameters(header))
    if len(names) != len(function.params):
        return
    for name, parameter in zip(names, function.params, strict=True):
        if is_buffer_var(parameter):
            yield _buffer_card(name, parameter, whole)


def _parameters(header: str) -> Iterator[str]:
    """Yield the names of the parameters of a ``def``: those that stand in no inner brackets."""
    depth, begin = 0, header.find("(") + 1
    for place, character in enumerate(header):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        if (character == "," and depth == 1) or (character == ")" and depth == 0):
            if found := _PARAMETER.match(header[begin:place].strip()):
                yield found[1]
            begin = place + 1
            if depth == 0:
                return


def _allocated_cards(
    function: tirx.PrimFunc,
    parts: Sequence[Part],
    places: Mapping[int, Lines],
    lines: Sequence[str],
    whole: Lines,
) -> Iterator[Card]:
    root = root_block(function)
    blocks = [] if root is None else [(root, whole)]
    blocks += [
        (part.statement, places[index])
        for index, part in enumerate(parts)
        if isinstance(part.statement, s_tir.SBlock) and index in places
    ]
    wanted = [(buffer, place) for block, place in blocks for buffer in block.alloc_buffers]
    found = [
        match[1] for line in lines[whole[0] - 1 : whole[1]] if (match := _ALLOCATED.match(line))
    ]
    if len(found) == len(wanted):
        for name, (buffer, place) in zip(found, wanted, strict=True):
            yield _buffer_card(name, buffer, place)


def _loop_cards(
    parts: Sequence[Part], places: Mapping[int, Lines], lines: Sequence[str]
) -> Iterator[Card]:
    loops = [index for index in places if parts[index].kind == "loop"]
    # Loops that share a header stand in it in their order.
    for place, group in groupby(loops, key=places.__getitem__):
        indices = list(group)
        header = _HEADER.match(lines[place[0] - 1])
        names = [] if header is None else [name.strip() for name in header[1].split(",")]
        if len(names) != len(indices):
            continue
        for name, index in zip(names, indices, strict=True):
            loop = parts[index].statement
            facts = [("extent", plain_extent(loop.extent)), ("kind", LOOP_KINDS[int(loop.kind)])]
            if plain_extent(loop.min) != "0":
                facts.insert(0, ("from", plain_extent(loop.min)))
            if loop.thread_binding is not None:
                facts.append(("thread", str(loop.thread_binding.thread_tag)))
            yield Card(
                name=name,
                kind="loop",
                first=place[0],
                last=place[1],
                facts=tuple(facts),
                entity=parts[index].id,
            )


def _buffer_card(name: str, buffer: Any, place: Lines) -> Card:
    facts = (
        *_tensor_facts(buffer.ty.shape, str(buffer.ty.dtype.dtype)),
        ("scope", str(buffer.scope())),
    )
    return Card(name=name, kind="buffer", first=place[0], last=place[1], facts=facts)


def _tensor_facts(shape: Any, dtype: str) -> tuple[tuple[str, str], ...]:
    extents = [plain_extent(extent) for extent in shape]
    facts = [("shape", f"({', '.join(extents)})"), ("dtype", dtype)]
    size = tensor_bytes(extents, dtype)
    if size is not None:
        facts.append(("size", bytes_text(size)))
    return tuple(facts)


def tensor_bytes(extents: Sequence[str], dtype: str) -> int | None:
    """Return the size of a tensor in bytes; ``None`` where an extent is symbolic."""
    if not all(extent.isdigit() for extent in extents):
        return None
    return (math.prod(map(int, extents)) * _bits_of(dtype) + 7) // 8


@cache
def _bits_of(dtype: str) -> int:
    parsed = DataType(dtype)
    return int(parsed.bits) * int(parsed.lanes)


def plain_extent(extent: Any) -> str:
    """Return an extent in readable form: a number, or an expression."""
    return str(int(extent)) if isinstance(extent, (int, tirx.IntImm)) else str(extent)


def _constants(value: Any) -> Iterator[Any]:
    """Yield the constants of a value that the printer leaves to the metadata, in its order."""
    # Exact types: `isinstance` of TVM's classes is slow, and a network has thousands of these.
    kind = type(value)
    if kind is relax.Call:
        for argument in value.args:
            yield from _constants(argument)
    elif kind is relax.Tuple:
        for field in value.fields:
            yield from _constants(field)
    elif kind is ir.GenericConst and len(value.value.shape):
        yield value


_EMPTY = tirx.PrimFunc([], tirx.Evaluate(0))
_DEFINITION = re.compile(r" *def (\w+)\(")


@dataclass(frozen=True, slots=True)
class _FunctionLines:
    """The lines of one function in a module's script: indices, `end` excluded."""

    name: str
    tensorir: bool
    begin: int
    end: int


def relax_text(
    module: IRModule, bounds: Sequence[Bound] | None = None, name_of: NameOf | None = None
) -> TextRecord:
    """Return the script of the Relax functions of `module`, without the remark on metadata.

    Spans are ``relax:FUNCTION`` and, in it, ``relax:FUNCTION/VARIABLE`` for each binding. Callees
    are named as in the whole module: ``cls.dense``.

    `name_of`: returns the names of constants.
    """
    lines, functions, bindings, cards, names = _module_lines(
        _without_bodies(module), bounds, name_of, show_meta=False
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
    return _record([lines[index] for index in kept], spans, kept_cards, names)


def module_text(module: IRModule, *, show_meta: bool = False) -> TextRecord:
    """Return the script of the whole module.

    Spans are ``relax:FUNCTION``, in it ``relax:FUNCTION/VARIABLE``, and ``tir:FUNCTION``.

    `show_meta`: with the values of constants, so that the text can be read back.
    """
    lines, functions, bindings, cards, _other = _module_lines(module, show_meta=show_meta)
    return _record(lines, _spans(lines, functions, bindings), cards)


def text_key(function: Any) -> tuple[int, ...]:
    """Return what the script of a function depends on, as a key while the function exists.

    Passes copy functions that they leave alone: copies share the body, and have the same key.
    """
    if type(function) is not tirx.PrimFunc:
        return (function.__chandle__(),)
    attributes = 0 if function.attrs is None else structural_hash(function.attrs)
    parameters = (each.__chandle__() for each in function.params)
    result = structural_hash(function.ret_type)
    return function.body.__chandle__(), *parameters, attributes, result


def function_script(function: Any, name: str) -> str:
    """Return the script from the first decorator on, without the remark on omitted metadata."""
    lines = with_characters(function.script(name=name)).split("\n")
    begin = next((index for index, line in enumerate(lines) if line.startswith("@")), 0)
    end = len(lines)
    while end > begin + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return "\n".join(lines[begin:end])


def function_text(
    module: IRModule, name: str, loops: Sequence[str] | None = None, name_of: NameOf | None = None
) -> TextRecord:
    """Return the script of one function of `module`, printed alone.

    Spans of a TensorIR function are ``tir:NAME``, ``tir:NAME//BUFFER`` for what it allocates,
    ``tir:NAME/BLOCK`` and ``tir:NAME/BLOCK/VARIABLE``; those of a Relax function are as in
    `relax_text`.

    `loops`: ids for the loops of a TensorIR function, in order, in place of those that they have
        here; an empty one for a loop without.
    `name_of`: returns the names of the constants of a Relax function.

    Raises `LowerscopeError` if there is no such function, or it is external and has no text.
    """
    names = {str(variable.name_hint): variable for variable in module.get_global_vars()}
    function = module[names[name]] if name in names else None
    if isinstance(function, tirx.PrimFunc):
        parts = parts_of(name, function)
        return tensorir_text(name, function, parts if loops is None else _under(parts, loops))
    if isinstance(function, relax.Function):
        bound = bound_in(name, function)
        objects = [part.binding for part in bound]
        return _text(name, function, f"relax:{name}", bound, objects, name_of)
    raise LowerscopeError(
        _("the module has no TensorIR or Relax function {name!r}", name=name),
        todo=_("Choose one of {listed}", listed=listed(sorted(names))),
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
    name_of: NameOf | None = None,
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
    if isinstance(function, tirx.PrimFunc):
        inner = [part for part in parts if isinstance(part, Part)]
        return _record(lines, spans, tensorir_cards(function, inner, places, lines, whole))
    bound = [part for part in parts if isinstance(part, Bound)]
    return _record(lines, spans, *constant_cards(bound, places, lines, name_of))


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
    module: IRModule,
    bounds: Sequence[Bound] | None = None,
    name_of: NameOf | None = None,
    *,
    show_meta: bool,
) -> tuple[list[str], list[_FunctionLines], dict[str, Lines], list[Card], dict[str, str]]:
    bound = binding_ids(module) if bounds is None else bounds
    lines, places = marked_lines(
        module, [one.binding for one in bound], **({"show_meta": True} if show_meta else {})
    )
    cards, names = ([], {}) if show_meta else constant_cards(bound, places, lines, name_of)
    by_id = {bound[index].id: at for index, at in places.items()}
    return lines, _functions(lines), by_id, cards, names


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


def _record(
    lines: list[str],
    spans: list[Span],
    cards: Sequence[Card],
    names: Mapping[str, str] = MappingProxyType({}),
) -> TextRecord:
    return TextRecord(
        text="\n".join(lines),
        language=LANGUAGE,
        spans=tuple(spans),
        cards=tuple(cards),
        constants=dict(names),
    )
