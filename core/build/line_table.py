"""Source mapping from the LLVM IR of a TensorIR function to its loops.

Passes drop annotations of statements, and several loops may have the same name; so the function is
compiled once more, alone: with unique names of its loops, and a line number on each statement
before LLVM gets it. LLVM's code for it is the same, and the names of its blocks and the numbers on
its instructions give the origin of each.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.ir.instrument import pass_instrument

from lowerscope.core.build.assembly import LlvmFunction, LlvmLine, functions_of, piece_of, shape_of
from lowerscope.core.build.build import compile_function
from lowerscope.core.ir.tensorir import parts_of

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

    Attributes
    ----------
    loops
        Ids of the function's loops by these names, in text order.
    passes
        The names of the passes for TensorIR, and the function after each; ``None`` if the pass did
        not process it.
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

    Attributes
    ----------
    kept
        Ids of the loops of which LLVM has kept a block.
    """

    lines: tuple[Chain, ...]
    kept: frozenset[str]


def origins_of(twin: LineTable, name: str, piece: Sequence[LlvmFunction]) -> Origins | None:
    """Return the loops that each line of the functions of `piece` comes from.

    Returns
    -------
    Origins or None
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
            chain = (*chain, nodes[nodes[data["loop_var"]]["data"]["name"]]["data"])
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
