"""Assembly of the functions of a library, with a source mapping to its LLVM IR.

LLVM writes no remarks into the output that TVM requests. But it carries the line numbers of
instructions into the assembly; so the library's own IR, with the line number on each instruction of
the function, is compiled to assembly once more.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm
from tvm import tirx
from tvm.ir.instrument import pass_instrument

from lowerscope.core.build.build import compile_function
from lowerscope.core.ir.tensorir import parts_of

_DEFINE = re.compile(r'define .*?@"?([\w.$-]+)"?\(')
_NAME = re.compile(r'@"?([\w.$-]+)"?')
_ANY_NAME = re.compile(r'[%@#]"?[\w.$-]+"?')
_OWN = re.compile(r"define (?:private|internal) ")
_SHARED = "__tvm_set_raised"
_DEBUG_RECORD = re.compile(r" +#dbg_")
_ATTACHMENT = re.compile(r",? ![a-z][\w.]* !\d+")
_LOCATION = re.compile(r"!dbg !(\d+)")
_WIDE_REMARK = re.compile(r" {3,}; ")
_BLOCK_LABEL = re.compile(r'"?([\w.$-]+)"?:(?: |$)')


@dataclass(frozen=True)
class LlvmLine:
    """A line of a function in LLVM IR.

    `text`: without debug information and metadata for LLVM's own passes.
    `location`: number of the ``DILocation`` that is attached to it; 0 if there is none.
    """

    text: str
    block: str = ""
    label: bool = False
    location: int = 0


@dataclass(frozen=True)
class LlvmFunction:
    """A function of a library, and the names of the others that it refers to."""

    name: str
    lines: tuple[LlvmLine, ...]
    own: bool
    refers: frozenset[str]


def functions_of(text: str) -> dict[str, LlvmFunction]:
    """Return the functions that LLVM IR defines, by name."""
    found: dict[str, LlvmFunction] = {}
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        define = _DEFINE.match(lines[index])
        if define is None:
            index += 1
            continue
        end = lines.index("}", index)
        found[define[1]] = _function(define[1], lines[index : end + 1])
        index = end + 1
    return found


def piece_of(functions: Mapping[str, LlvmFunction], name: str) -> tuple[LlvmFunction, ...]:
    """Return the functions of a library that TensorIR function `name` was compiled to.

    These are the one that computes, those that threads run, and, last, the entry point, which
    checks its arguments. LLVM may have inlined all into that. Helpers shared by all functions of
    the library are not included.
    """
    entry = functions.get(entry_of(name))
    if entry is None:
        return ()
    piece: dict[str, LlvmFunction] = {}
    waiting = [entry]
    while waiting:
        function = waiting.pop(0)
        if function.name in piece:
            continue
        piece[function.name] = function
        referred = [functions[each] for each in sorted(function.refers) if each in functions]
        waiting += [each for each in referred if each.own and not each.name.startswith(_SHARED)]
    del piece[entry.name]
    return (*piece.values(), entry)


def entry_of(name: str) -> str:
    """Return the symbol by which the virtual machine calls TensorIR function `name`."""
    return f"__tvm_ffi_{name}"


def with_helpers(
    functions: Mapping[str, LlvmFunction], piece: Sequence[LlvmFunction]
) -> frozenset[str]:
    """Return the names of the functions of `piece`, and of all functions they refer to."""
    names: set[str] = set()
    waiting = [each.name for each in piece]
    while waiting:
        name = waiting.pop()
        if name not in names and name in functions:
            names.add(name)
            waiting += functions[name].refers
    return frozenset(names)


def _function(name: str, lines: Sequence[str]) -> LlvmFunction:
    refers = {each for line in lines[1:] for each in _NAME.findall(line)}
    cleaned: list[LlvmLine] = []
    block = ""
    for line in lines:
        if _DEBUG_RECORD.match(line):
            continue
        location = _LOCATION.search(line)
        label = _BLOCK_LABEL.match(line)
        if label is not None:
            block = label[1]
            text = _WIDE_REMARK.sub("  ; ", line)
        else:
            text = _ATTACHMENT.sub("", line)
        inside = block if line not in (lines[0], "}") and line else ""
        number = 0 if location is None else int(location[1])
        cleaned.append(LlvmLine(text, inside, label is not None, number))
    return LlvmFunction(name, tuple(cleaned), _OWN.match(lines[0]) is not None, frozenset(refers))


def shape_of(function: LlvmFunction) -> tuple[str, ...]:
    """Return the lines of a function without names, to compare two functions by.

    The arguments of a helper depend on its other callers.
    """
    return tuple(_shape(line) for line in function.lines[1:])


def _shape(line: LlvmLine) -> str:
    if line.label:
        return "label"
    if f"@{_SHARED}" in line.text:
        return "raise"
    return _ANY_NAME.sub("%", line.text)


_DEBUG = re.compile(r",? !dbg !\d+")
_UNIT = re.compile(r"^!(\d+) = distinct !DICompileUnit\(.*?file: !(\d+)", re.MULTILINE)
_ANY_METADATA = re.compile(r"^!(\d+) = ", re.MULTILINE)
_LOC = re.compile(r"\t\.loc\t\d+ (\d+)")
_NOISE = re.compile(r"\.(cfi_\w+|loc|file|size|type|globl|p2align|section|text|hidden|weak)\b|#|$")
_LABEL = re.compile(r"([\w.$]+):")
_PLACE = re.compile(r"\.L(?:BB|CPI|JTI)\d+_\d+")


@dataclass(frozen=True)
class AssemblyLine:
    """A line of assembly.

    ``source`` is the index of its line of LLVM IR, over all functions of the piece; ``None`` for no
    such line.
    """

    text: str
    source: int | None = None
    label: str = ""


def assembly_of(
    library: str, functions: Mapping[str, LlvmFunction], piece: Sequence[LlvmFunction]
) -> list[AssemblyLine]:
    """Return the assembly of some functions of a library.

    `library`: the LLVM IR of the library, as TVM writes it.
    `piece`: those to write, in this order. Constants and jump tables that they use come before
        them.
    """
    text = _numbered(library, functions, piece)
    with tempfile.TemporaryDirectory(prefix="lowerscope-") as folder:
        path = Path(folder) / "piece.ll"
        path.write_text(text, encoding="utf-8")
        assembly = tvm.runtime.load_module(str(path)).inspect_source("asm")
    return _cut(assembly, piece)


def _numbered(
    library: str, functions: Mapping[str, LlvmFunction], piece: Sequence[LlvmFunction]
) -> str:
    """Return the part of a library that `piece` needs, with line numbers on its instructions."""
    kept = with_helpers(functions, piece)
    unit = _UNIT.search(library)
    assert unit is not None, "TVM makes a unit of debug information for each library"
    free = max(int(number) for number in _ANY_METADATA.findall(library)) + 1
    metadata = [f"!{free} = !DISubroutineType(types: !{free + 1})", f"!{free + 1} = !{{null}}"]
    scopes: dict[str, tuple[int, int]] = {}
    number, begin = free + 2, 0
    for each in piece:
        scopes[each.name] = (number, begin)
        metadata.append(
            f'!{number} = distinct !DISubprogram(name: "{each.name}", scope: !{unit[2]}, '
            f"file: !{unit[2]}, type: !{free}, "
            f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{unit[1]})"
        )
        number += 1
        begin += len(each.lines)
    lines: list[str] = []
    name, skipping, index = "", False, 0
    for line in library.split("\n"):
        define = _DEFINE.match(line)
        if define is not None:
            name, index = define[1], 0
            skipping = name not in kept
        if not skipping and not (name and line.lstrip().startswith("#dbg_")):
            if name:
                plain = _DEBUG.sub("", line)
                if name in scopes:
                    scope, begin = scopes[name]
                    plain, located = _with_number(plain, scope, index == 0, number)
                    if located:
                        metadata.append(
                            f"!{number} = !DILocation(line: {begin + index + 1}, scope: !{scope})"
                        )
                        number += 1
                lines.append(plain)
                index += 1
            elif not line.startswith("@llvm.global_ctors"):  # It names a function that is not kept.
                lines.append(line)
        if line == "}":
            name, skipping = "", False
    return "\n".join([*lines, *metadata, ""])


def _with_number(line: str, scope: int, define: bool, number: int) -> tuple[str, bool]:
    """Return a line with its location attached if possible, and whether it has one now."""
    if define:
        return f"{line.removesuffix(' {')} !dbg !{scope} {{", False
    # A switch spans several lines; attach to the last one.
    ends = line.startswith("  ]") or (line[:2] == "  " and line[2:3] != " ")
    if not ends or line.endswith("["):
        return line, False
    return f"{line}, !dbg !{number}", True


def _cut(assembly: str, piece: Sequence[LlvmFunction]) -> list[AssemblyLine]:
    """Return the lines of the functions of `piece`, without linker and debugger directives."""
    lines = assembly.split("\n")
    starts = {
        match[1].removeprefix(".L"): index
        for index, line in enumerate(lines)
        if (match := _LABEL.match(line))
    }
    blocks = [line.block for function in piece for line in function.lines]
    found: list[AssemblyLine] = []
    for function in piece:
        if found:
            found.append(AssemblyLine(""))
        begin = starts[function.name]
        end = next(i for i in range(begin, len(lines)) if ".cfi_endproc" in lines[i])
        body = list(_body(lines[begin:end], function.name))
        for label in dict.fromkeys(_constants(body)):
            at = starts[label.removeprefix(".L")]
            found.append(AssemblyLine(lines[at], label=label))
            found += [AssemblyLine(line) for line in _data(lines, at + 1)]
        found += _with_names(body, blocks, "//" if "aarch64" in assembly[:400] else "#")
    return found


def _body(lines: Sequence[str], name: str) -> list[AssemblyLine]:
    body: list[AssemblyLine] = []
    source: int | None = None
    for line in lines:
        location = _LOC.match(line)
        if location is not None:
            source = int(location[1]) - 1 if location[1] != "0" else None
        label = _LABEL.match(line)
        if label is not None:
            if label[1].startswith(".LBB") or label[1].removeprefix(".L") == name:
                body.append(AssemblyLine(f"{label[1]}:", label=label[1]))
        elif not _NOISE.match(line.strip()):
            body.append(AssemblyLine(line.expandtabs(8), source))
    return body


def _constants(body: Sequence[AssemblyLine]) -> list[str]:
    """Return the labels of constants and jump tables that the instructions refer to."""
    return [
        label
        for line in body
        for label in _PLACE.findall(line.text)
        if not label.startswith(".LBB")
    ]


def _data(lines: Sequence[str], begin: int) -> list[str]:
    end = begin
    while end < len(lines) and re.match(
        r"\t\.(long|quad|short|byte|zero|ascii|word|xword)", lines[end]
    ):
        end += 1
    return [line.expandtabs(8).split(" #")[0].rstrip() for line in lines[begin:end]]


def _with_names(
    body: Sequence[AssemblyLine], blocks: Sequence[str], remark: str
) -> list[AssemblyLine]:
    """Write the names of LLVM's blocks beside the labels, as LLVM's verbose output does."""
    named: list[AssemblyLine] = []
    for index, line in enumerate(body):
        if not line.label.startswith(".LBB"):
            named.append(line)
            continue
        votes: Counter[str] = Counter()
        first: int | None = None
        for later in body[index + 1 :]:
            if later.label:
                break
            if later.source is not None:
                votes[blocks[later.source]] += 1
                first = later.source if first is None else first
        block = votes.most_common(1)[0][0] if votes else ""
        text = f"{line.text:14}{remark} %{block}" if block else line.text
        named.append(AssemblyLine(text, first if block else None, line.label))
    return named


Chain = tuple[str, ...]
"""The enclosing loops of a line or block, outermost first."""

_UNIQUE = "lowerscope{}loop"
_BLOCK = re.compile(r"for_(begin|body|end)_(lowerscope\d+loop)(.*)")
_OUTSIDE = re.compile(r"preheader|\.ph\b|\.lr\.ph")
_UNKNOWN = re.compile(r"peel|crit_edge|loopexit|exit|split")
_DI_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)", re.MULTILINE)
_STATEMENTS = frozenset(
    f"tirx.{name}"
    for name in (
        "For",
        "While",
        "BufferStore",
        "Evaluate",
        "Bind",
        "AllocBuffer",
        "DeclBuffer",
        "AttrStmt",
        "IfThenElse",
    )
)
_CHILDREN = ("body", "seq", "then_case", "else_case")


@dataclass(frozen=True)
class LineTable:
    """A function compiled alone, with unique loop names.

    `loops`: ids of the function's loops by these names, in text order.
    `passes`: the names of the passes for TensorIR, and the function after each; ``None`` if the
        pass did not process it.
    """

    loops: Mapping[str, str]
    passes: tuple[tuple[str, tirx.PrimFunc | None], ...]
    target: tvm.target.Target

    def loops_after(self, index: int) -> tuple[str, ...]:
        """Return the ids of the loops of the function after a pass, in text order.

        An id is empty for a loop that was not in the function before.
        """
        function = self.passes[index][1]
        parts = () if function is None else parts_of("", function)
        return tuple(
            self.loops.get(str(part.statement.loop_var.name), "")
            for part in parts
            if part.kind == "loop"
        )

    @property
    def lowered(self) -> tirx.PrimFunc | None:
        """The function as passed to LLVM."""
        given = [function for _, function in self.passes if function is not None]
        return given[-1] if given else None


def make_twin(name: str, function: tirx.PrimFunc, target: tvm.target.Target) -> LineTable:
    """Compile a function as the TensorIR build receives it, with unique loop names."""
    renamed = _renamed(function)
    originals = [part for part in parts_of(name, function) if part.kind == "loop"]
    copies = [part for part in parts_of(name, renamed) if part.kind == "loop"]
    loops = {
        str(copy.statement.loop_var.name): original.id
        for original, copy in zip(originals, copies, strict=True)
    }
    passes: list[tuple[str, tirx.PrimFunc | None]] = []
    with tvm.transform.PassContext(instruments=[pass_instrument(_Noting)(name, passes)]):
        compile_function(name, renamed, target)
    return LineTable(loops, tuple(passes), target)


class _Noting:
    """Pass instrument that notes a function after each pass, in the order in which they began."""

    def __init__(self, name: str, passes: list[tuple[str, tirx.PrimFunc | None]]) -> None:
        self._name, self._passes = name, passes
        self._open: list[int] = []

    def _function_in(self, module: tvm.IRModule) -> tirx.PrimFunc | None:
        found = (each for key, each in module.functions_items() if key.name_hint == self._name)
        return next(found, None)

    def run_before_pass(self, module: tvm.IRModule, info: Any) -> None:
        self._open.append(len(self._passes))
        self._passes.append((str(info.name), self._function_in(module)))

    def run_after_pass(self, module: tvm.IRModule, info: Any) -> None:
        index, function = self._open.pop(), self._function_in(module)
        # Code for another device is split off, and the function continues unchanged.
        if function is not None:
            self._passes[index] = (str(info.name), function)


def with_lines(
    name: str, function: tirx.PrimFunc, target: tvm.target.Target
) -> tuple[tirx.PrimFunc, dict[int, Chain], dict[str, int]]:
    """Return a function as passed to LLVM, with a line number on each statement.

    Returns:
        The function; the loops around each line, by unique names; and the numbers of these loops,
        in text order.
    """
    twin = make_twin(name, function, target)
    lowered = twin.lowered
    assert lowered is not None, "it was compiled"
    marked, chains = _with_lines(lowered)
    return marked, chains, {loop: number for number, loop in enumerate(twin.loops)}


def _renamed(function: tirx.PrimFunc) -> tirx.PrimFunc:
    graph = json.loads(tvm.ir.save_json(function))
    nodes = graph["nodes"]
    variables = [node["data"]["loop_var"] for node in nodes if node["type"] == "tirx.For"]
    for number, variable in enumerate(variables):
        nodes[variable]["data"]["name"] = len(nodes)
        nodes.append({"type": "ffi.String", "data": _UNIQUE.format(number)})
    renamed = tvm.ir.load_json(json.dumps(graph))
    assert isinstance(renamed, tirx.PrimFunc)
    return renamed


@dataclass(frozen=True)
class Origins:
    """Source mapping of lines of LLVM IR.

    `kept`: ids of the loops of which LLVM has kept a block.
    """

    lines: tuple[Chain, ...]
    kept: frozenset[str]


def origins_of(twin: LineTable, name: str, piece: Sequence[LlvmFunction]) -> Origins | None:
    """Return the loops that each line of the functions of `piece` comes from.

    ``None`` if LLVM's code for the function alone differs from that in the library.
    """
    lowered = twin.lowered
    if lowered is None:
        return None
    marked, chains = _with_lines(lowered)
    module = tvm.IRModule({tvm.ir.GlobalVar(name): marked})
    build = tvm.get_global_func("target.build.llvm")
    text = build(module, twin.target).inspect_source("ll")
    alone = piece_of(functions_of(text), name)
    if [shape_of(each) for each in alone] != [shape_of(each) for each in piece]:
        return None
    lines = {int(number): int(line) for number, line in _DI_LOCATION.findall(text)}
    parents = {chain[-1]: chain for chain in chains.values() if chain}
    blocks = {line.block for function in alone for line in function.lines}
    kept = {
        chain[-1]
        for block in blocks
        if (chain := _block_chain(block, parents)) and not _ended_by(block)
    }

    def chain_of(line: LlvmLine) -> Chain | None:
        return chains.get(lines.get(line.location, 0))

    found = [
        tuple(twin.loops[each] for each in chain)
        for function in alone
        for chain in _chains_in(function, chain_of, parents, kept)
    ]
    return Origins(tuple(found), frozenset(twin.loops[each] for each in kept))


def _chains_in(
    function: LlvmFunction,
    chain_of: Callable[[LlvmLine], Chain | None],
    parents: Mapping[str, Chain],
    kept: set[str],
) -> Iterator[Chain]:
    """Yield the loops of each line.

    An instruction may come from a statement in a loop, and be outside it: it belongs to the loop if
    its block does, or if no block of the loop remains.
    """
    inner: dict[str, Chain] = {}
    for line in function.lines:
        chain = chain_of(line)
        if chain is not None and not line.label:
            inner[line.block] = _common(inner.get(line.block, chain), chain)
    for line in function.lines:
        if not line.block:
            yield ()
            continue
        around = _block_chain(line.block, parents)
        chain = inner.get(line.block, ()) if line.label else chain_of(line)
        if around is None:
            yield chain or ()
        elif chain is None or line.label:
            yield around
        else:
            ended = _ended_by(line.block)
            within = tuple(
                each for each in chain if each in around or (each not in kept and each != ended)
            )
            yield within if len(within) >= len(around) else around


def _block_chain(block: str, parents: Mapping[str, Chain]) -> Chain | None:
    """Return the loops of a block by its label; ``None`` if the label does not identify them."""
    match = _BLOCK.match(block)
    if match is None or _UNKNOWN.search(match[3]):
        return None
    chain = parents.get(match[2])
    if chain is None:
        return None
    outside = match[1] == "end" or _OUTSIDE.search(match[3])
    return chain[:-1] if outside else chain


def _ended_by(block: str) -> str:
    match = _BLOCK.match(block)
    return match[2] if match is not None and match[1] == "end" else ""


def _common(one: Chain, other: Chain) -> Chain:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return one[:length]


def _with_lines(function: tirx.PrimFunc) -> tuple[tirx.PrimFunc, dict[int, Chain]]:
    """Return a function with a line number on each statement, and the loops by line number."""
    graph = json.loads(tvm.ir.save_json(function))
    nodes = graph["nodes"]
    chains: dict[int, Chain] = {}
    seen: Counter[int] = Counter()
    source = len(nodes)
    nodes.append({"type": "ir.SourceName", "data": "TensorIR"})

    def walk(index: int, chain: Chain) -> None:
        node = nodes[index]
        data = node.get("data")
        if node["type"] == "ffi.Array":
            for child in data:
                walk(child, chain)
            return
        if not isinstance(data, dict):
            return
        if node["type"] == "tirx.For":
            # Of a vector loop that is computed element by element, TVM makes one with a suffix.
            loop = nodes[nodes[data["loop_var"]]["data"]["name"]]["data"]
            chain = (*chain, loop.partition(".")[0])
        if node["type"] in _STATEMENTS:
            seen[index] += 1
            if seen[index] > 1:
                # A statement that occurs twice in the function.
                chain = _common(chain, chains[index + 1])
            chains[index + 1] = chain
        for key in _CHILDREN:
            if key in data and isinstance(data[key], int):
                walk(data[key], chain)

    walk(nodes[graph["root_index"]]["data"]["body"], ())
    for index in seen:
        span = {"source_name": source, "line": index + 1, "column": 1}
        nodes[index]["data"]["span"] = len(nodes)
        nodes.append({"type": "ir.Span", "data": {**span, "end_line": index + 1, "end_column": 1}})
    marked = tvm.ir.load_json(json.dumps(graph))
    assert isinstance(marked, tirx.PrimFunc)
    return marked, chains
