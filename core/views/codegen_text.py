"""Text of compiled code: bytecode, LLVM IR and assembly, mapped to bindings and loops.

The code of TensorIR functions is that of a build, or of one function at a step of its schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import tvm
from tvm import tirx

from lowerscope.core.build.assembly import (
    Chain,
    LineTable,
    LlvmFunction,
    Origins,
    assembly_of,
    entry_of,
    functions_of,
    make_twin,
    origins_of,
    piece_of,
)
from lowerscope.core.build.build import FIRST_FOR_TENSORIR, compile_function, llvm_modules
from lowerscope.core.files.memo import key_of
from lowerscope.core.ir.before_build import before_build
from lowerscope.core.ir.relax import BUILTIN
from lowerscope.core.ir.tensorir import Part, blocks_in, parts_of, prim_funcs_of
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line, listed
from lowerscope.core.model.snapshot import Span, TextRecord
from lowerscope.core.model.texts import _, joined
from lowerscope.core.passes.bindings import inverse
from lowerscope.core.run.calls import CallsOf, bytecode_of, functions_in, match_calls
from lowerscope.core.stages import Stages


@dataclass(frozen=True)
class Library:
    """The code of TensorIR functions in a module of LLVM: LLVM IR, whole and by function."""

    text: str
    functions: Mapping[str, LlvmFunction]


@dataclass(frozen=True)
class CompiledFunctions:
    """Compiled functions and their code.

    `key`: of all that it was made from.
    `functions`: as they were given to the build of TensorIR.
    `library`: Their code.
    `about`: description, where it is not part of the model's build.
    """

    key: str
    functions: Mapping[str, tirx.PrimFunc]
    library: Library
    about: str = ""


def compiled(stages: Stages, name: str, moment: Moment | None = None) -> CompiledFunctions:
    """Return the functions of the model's build; at a step of a schedule, `name` alone.

    Raises `LowerscopeError` if TVM cannot compile the function.
    """
    if moment is None or moment.section != "schedule":
        key = key_of("library", stages.build_key)
        build = stages.recorded
        module = build.built.executable.mod
        libraries = stages.keep("library", key, lambda: _libraries(module), _size)
        return CompiledFunctions(stages.build_key, build.tensorir, _with_code(libraries, name))
    function = prim_funcs_of(stages.module_at(moment)).get(name)
    if function is None:
        return CompiledFunctions("", {}, Library("", {}))
    function = function.with_attr("global_symbol", name)
    # As it is built: its twin is compared with the code line by line.
    function = before_build(tvm.IRModule({name: function}))[name]
    key = key_of("alone", stages.moment_key(moment), moment, name, str(stages.target))
    built = stages.keep("library", key, lambda: _alone(stages, name, function), _size)
    library = _with_code(built, name)
    about = _("by itself, after step {index} of its schedule", index=moment.index)
    if not moment.index:
        about = _("by itself, before it is scheduled")
    return CompiledFunctions(key, {name: function}, library, about)


def twin_of(stages: Stages, made: CompiledFunctions, name: str) -> LineTable:
    """Return the twin of a function, cached."""
    function = made.functions[name]
    key = key_of("twin", made.key, name)
    return stages.keep("twin", key, lambda: make_twin(name, function, stages.target))


def _size(libraries: Sequence[Library]) -> int:
    return 4 * sum(len(each.text) for each in libraries)


def _alone(stages: Stages, name: str, function: tirx.PrimFunc) -> tuple[Library, ...]:
    try:
        built = compile_function(name, function, stages.target).mod
    except TVM_ERRORS as error:
        raise LowerscopeError(
            _("TVM could not compile the function: {last_line}", last_line=last_line(error)),
            where=name,
            todo=_("Undo the last step; the log has TVM's whole message"),
            details=str(error),
        ) from error
    return _libraries(built)


def _libraries(module: Any) -> tuple[Library, ...]:
    texts = [each.inspect_source("ll") for each in llvm_modules(module)]
    return tuple(Library(text, functions_of(text)) for text in texts)


def _with_code(libraries: Sequence[Library], name: str) -> Library:
    """Return the library with the code of a function; an empty one if none has it."""
    entry = entry_of(name)
    return next((each for each in libraries if entry in each.functions), Library("", {}))


def code_alone(
    stages: Stages, key: str, name: str, function: tirx.PrimFunc, view: Literal["llvm", "asm"]
) -> str:
    """Return the LLVM IR or the assembly of a function that is compiled by itself.

    `key`: of all that it was made from.

    Raises `LowerscopeError` if TVM cannot compile it.
    """
    built = stages.keep("library", key, lambda: _alone(stages, name, function), _size)
    library = _with_code(built, name)
    piece = piece_of(library.functions, name)
    if view == "llvm":
        return "\n".join(line.text for each in piece for line in each.lines)
    lines = assembly_of(library.text, library.functions, piece)
    return "\n".join(line.text for line in lines)


def bytecode_text(stages: Stages, name: str) -> TextRecord:
    """Return the bytecode of a Relax function, ``main`` if no name is given.

    The line of a call has the spans of the function that it calls and of the binding, before the
    passes, that it comes from.

    Raises `LowerscopeError` if there is no such function.
    """
    name = name or "main"
    executable = stages.recorded.built.executable.as_text()
    lines = bytecode_of(executable, name)
    if not lines:
        known = functions_in(executable)
        raise LowerscopeError(
            _("there is no bytecode of {name}", name=name),
            where="bytecode",
            todo=_(
                "Choose one of {listed}; TensorIR functions have LLVM IR and assembly",
                listed=listed(known),
            ),
            choices=known,
        )
    calls = CallsOf(stages.recorded, name).calls
    matches = match_calls(lines, [call.event for call in calls])
    earlier = inverse(stages.transformed.bindings)
    spans = [Span(entity=f"relax:{name}", first=1, last=len(lines))]
    for index, number in matches.items():
        binding, callee = calls[number].binding, calls[number].callee
        if callee in stages.recorded.tensorir:
            spans.append(Span(entity=f"tir:{callee}", first=index + 1, last=index + 1))
        elif not callee.startswith(BUILTIN):
            spans.append(Span(entity=f"ext:{callee}", first=index + 1, last=index + 1))
        spans += [
            Span(entity=each, first=index + 1, last=index + 1)
            for each in earlier.get(binding, (binding,))
        ]
    text = "\n".join(line.text for line in lines)
    return TextRecord(text=text, language="bytecode", spans=tuple(spans))


def native_text(
    stages: Stages, view: Literal["llvm", "asm"], name: str, moment: Moment | None = None
) -> TextRecord:
    """Return the LLVM IR or the assembly of a TensorIR function, with the lines of its loops.

    `moment`: of a schedule: the function is compiled by itself then. Otherwise it is the build's.

    Raises `LowerscopeError` if there is no such function, or no code for it.
    """
    made = compiled(stages, name, moment)
    piece = _piece(made, name)
    origins = origins_of(twin_of(stages, made, name), name, piece)
    gaps: list[int] = []
    if view == "llvm":
        lines = [line.text for function in piece for line in function.lines]
        gaps = list(accumulate(len(function.lines) for function in piece[:-1]))
        chains = _chains(origins, range(len(lines)))
    else:
        code = assembly_of(made.library.text, made.library.functions, piece)
        lines = [line.text for line in code]
        chains = _chains(origins, [line.source for line in code])
    head = _head(stages, made, name)
    return _record(made.functions[name], name, head, lines, chains, origins, view, gaps)


def loops_at(stages: Stages, name: str, index: int) -> tuple[str, ...] | None:
    """Return the ids of the loops of a function after a pass of the build, in the text's order.

    Lowering removes blocks and names of loops: the ids are those of the original loops. ``None``
    where the function has kept its own, before the passes for TensorIR.
    """
    build = stages.recorded
    names = [run.name for run in build.runs]
    if name not in build.tensorir or FIRST_FOR_TENSORIR not in names[:index]:
        return None
    begin = names.index(FIRST_FOR_TENSORIR)
    twin = twin_of(stages, compiled(stages, name), name)
    if [each for each, _other in twin.passes] != names[begin:]:
        return None
    return twin.loops_after(index - begin - 1)


def _piece(made: CompiledFunctions, name: str) -> tuple[LlvmFunction, ...]:
    known = tuple(made.functions)
    if not known:
        raise LowerscopeError(
            _("the module has no TensorIR function, so LLVM was given nothing"),
            where=name,
            todo=_("Lower some nodes as TE, or add the pass LegalizeOps"),
        )
    if name not in known:
        raise LowerscopeError(
            _("there is no TensorIR function {name}", name=name)
            if name
            else _("no function was named"),
            where="--function",
            todo=_("Choose one of {listed}", listed=listed(known)),
            choices=known,
        )
    piece = piece_of(made.library.functions, name)
    if not piece:
        raise LowerscopeError(
            _("the library has no code for {name}", name=name),
            where=name,
            todo=_("See its caller, which may include it now"),
        )
    return piece


def _chains(origins: Origins | None, sources: Iterable[int | None]) -> list[Chain]:
    return [
        () if origins is None or source is None else origins.lines[source] for source in sources
    ]


def _head(stages: Stages, made: CompiledFunctions, name: str) -> str:
    whole = _("{name} for {target}", name=name, target=_target_text(stages))
    return joined(_(", "), (whole, made.about)) if made.about else whole


def _record(
    function: tirx.PrimFunc,
    name: str,
    title: str,
    lines: Sequence[str],
    chains: Sequence[Chain],
    origins: Origins | None,
    language: str,
    gaps: Sequence[int],
) -> TextRecord:
    """Return a text with a header on the loops that have no block of their own."""
    parts = parts_of(name, function)
    present = {loop for chain in chains for loop in chain}
    remark = ";" if language == "llvm" else "#"
    head: list[tuple[str, str]] = [(f"{remark} {title}", "")]
    if origins is None:
        head.append(
            (
                _(
                    "{remark} Lines have no loops: compiled alone, the function differs.",
                    remark=remark,
                ),
                "",
            )
        )
    else:
        head += [
            (f"{remark} {text}", "" if part.id in present else part.id)
            for part in parts
            if part.kind == "loop" and (text := _fate(part, present, origins.kept))
        ]
    written = [text for text, _other in head] + [""]
    spans = [
        Span(entity=entity, first=number, last=number)
        for number, (_other, entity) in enumerate(head, start=1)
        if entity
    ]
    numbers: list[int] = []
    for index, line in enumerate(lines):
        if index in gaps:
            written.append("")
        written.append(line)
        numbers.append(len(written))
    spans += _spans(lines, chains, numbers, parts)
    spans.sort(key=lambda span: (span.first, -span.last))
    whole = Span(entity=f"tir:{name}", first=1, last=len(written))
    return TextRecord(text="\n".join(written), language=language, spans=(whole, *spans))


def _target_text(stages: Stages) -> str:
    target = stages.target
    processor = str(target.attrs.get("mcpu", "")) if hasattr(target, "attrs") else ""
    return f"{target.kind.name}, {processor}" if processor else str(target.kind.name)


def _fate(part: Part, present: set[str], kept: frozenset[str]) -> str:
    """Describe what became of a loop without a block of its own; empty where it has one."""
    if part.id in kept:
        return ""
    path = part.id.partition("/")[2]
    loop = part.statement
    if part.id in present:
        return _("{path}: no block has its name; LLVM merged, unrolled or vectorized it", path=path)
    if isinstance(loop.extent, tirx.IntImm) and int(loop.extent) == 1:
        return _("{path}: removed, since it runs once", path=path)
    if loop.kind == tirx.ForKind.VECTORIZED:
        return _("{path}: vectorized by TVM, so that each instruction covers all of it", path=path)
    if loop.kind == tirx.ForKind.UNROLLED:
        return _("{path}: unrolled by TVM", path=path)
    return _("{path}: no code remains", path=path)


def _spans(
    lines: Sequence[str], chains: Sequence[Chain], numbers: Sequence[int], parts: Sequence[Part]
) -> list[Span]:
    """Return the spans of loops and blocks: unbroken runs of lines, outer loops first.

    A block has the lines of the loop around it, which comes after it: pointing at code selects the
    loop.
    """
    loops = [part.id for part in parts if part.kind == "loop"]
    runs = {
        loop: list(_runs(lines, [loop in chain for chain in chains], numbers)) for loop in loops
    }
    blocks: dict[str, list[str]] = {}
    for part in parts:
        if part.kind == "block":
            loop = _loop_of(part, parts, lambda each: bool(runs[each]))
            blocks.setdefault(loop, []).append(part.id)
    return [
        Span(entity=entity, first=first, last=last)
        for loop in loops
        for entity in (*blocks.get(loop, ()), loop)
        for first, last in runs[loop]
    ]


def _runs(
    lines: Sequence[str], inside: Sequence[bool], numbers: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of each run of lines; empty ones do not end it."""
    first = last = 0
    for line, within, number in zip(lines, inside, numbers, strict=True):
        if within:
            first = first or number
            last = number
        elif line and first:
            yield first, last
            first = 0
    if first:
        yield first, last


def _loop_of(block: Part, parts: Sequence[Part], has_lines: Callable[[str], bool]) -> str:
    """Return the innermost loop that has lines and no other block in it; empty if there is none."""
    found = ""
    for part in parts:
        if part.kind == "loop" and has_lines(part.id):
            inner = list(blocks_in(part.statement))
            if len(inner) == 1 and inner[0].same_as(block.statement):
                found = part.id
    return found
