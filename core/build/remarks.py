"""LLVM's remarks on a function: loops that it does not vectorize, and registers that it spills.

TVM offers no option for remarks. But LLVM reports why a loop is not vectorized if that was
requested by the loop itself. So the function's code before optimisation gets that request on each
loop, and is compiled once more, as code that a function imports; what LLVM writes to the standard
error output is read. The remarks name lines, which are those of the loops.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import tvm
from tvm import tirx

from lowerscope.core.build.assembly import with_lines
from lowerscope.core.build.build import compile_function
from lowerscope.core.model.schedule_records import Spills

_NAME, _CODE = "lowerscope_remarks", "lowerscope_content"
"""Names of equal length: they stand in strings as well."""

_DEFINE = re.compile(r'define [^@]*@"?([\w.$-]+)"?\(.*!dbg !(\d+)')
_LABEL = re.compile(r"([\w.$-]+):")
_BACK = re.compile(r"  br label %(for_begin_([\w.$]+)), !dbg")
_METADATA = re.compile(r"^!(\d+) = ", re.MULTILINE)
_REMARK = re.compile(r"(remark|warning): \S*?:(\d+):\d+: loop not vectorized: (.*)")
_VAGUE = "the optimizer was unable to perform the requested transformation"
_FAR = 1 << 20
"""Lines from here on are those of loops, by their numbers."""


def scalar_loops(function: tirx.PrimFunc, target: tvm.target.Target) -> Mapping[int, str]:
    """Return the reasons why LLVM does not vectorize loops, by their numbers in the script.

    Parallel loops count as serial ones, and loops that LLVM unrolls have none. The reason is empty
    where LLVM gives none.
    """
    plain = tvm.target.Target({**target.export(), "opt-level": 0})
    text, loops, names = _lowered(function, plain)
    marked, chosen = _requesting(text, names)
    if not chosen:
        return {}
    call = tirx.call_extern("int32", chosen, *(each.data for each in function.params))
    body = tirx.AttrStmt(
        tvm.ir.StringImm("code"),
        "pragma_import_llvm",
        tvm.ir.StringImm(marked),
        tirx.Evaluate(call),
    )
    # Sums keep their order, as without the request.
    options = [*target.export().get("cl-opt", ()), "-hints-allow-reordering:bool=0"]
    asking = tvm.target.Target({**target.export(), "cl-opt": options})
    with _stderr() as written:
        compile_function(_NAME, function.with_body(body), asking)
    found: dict[int, str] = {}
    for kind, line, reason in _REMARK.findall(written[0]):
        number = int(line) - _FAR if int(line) >= _FAR else loops.get(int(line))
        if number is not None and (kind == "remark" or number not in found):
            found[number] = "" if reason.startswith(_VAGUE) else reason
    return found


def _lowered(
    function: tirx.PrimFunc, target: tvm.target.Target
) -> tuple[str, Mapping[int, int], Mapping[str, int]]:
    """Return LLVM's code without optimisation, the innermost loop of each line, and the loops."""
    marked, chains, loops = with_lines(_NAME, _serial(function), target)
    build: Any = tvm.get_global_func("target.build.llvm")
    text = build(tvm.IRModule({tvm.ir.GlobalVar(_NAME): marked}), target).inspect_source("ll")
    return text, {line: loops[chain[-1]] for line, chain in chains.items() if chain}, loops


def _serial(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a function without threads."""
    graph = json.loads(tvm.ir.save_json(function))
    for node in graph["nodes"]:
        if node["type"] == "tirx.For" and node["data"]["kind"] == int(tirx.ForKind.PARALLEL):
            node["data"]["kind"] = int(tirx.ForKind.SERIAL)
    serial = tvm.ir.load_json(json.dumps(graph))
    assert isinstance(serial, tirx.PrimFunc)
    return serial


def _requesting(text: str, names: Mapping[str, int]) -> tuple[str, str]:
    """Return code with a request to vectorize each loop, and the name of its function."""
    free = max(int(each) for each in _METADATA.findall(text)) + 1
    metadata = [f'!{free} = !{{!"llvm.loop.vectorize.enable", i1 true}}']
    hint, free = free, free + 1
    lines: list[str] = []
    chosen = scope = block = ""
    for line in text.split("\n"):
        define, label, back = (each.match(line) for each in (_DEFINE, _LABEL, _BACK))
        if define is not None:
            chosen, scope = (define[1] if "internal" in line else chosen), define[2]
        elif label is not None:
            block = label[1]
        if back is not None and block.startswith("for_next") and back[2] in names:
            number = names[back[2]] + _FAR
            metadata += [
                f"!{free} = distinct !{{!{free}, !{free + 1}, !{hint}}}",
                f"!{free + 1} = !DILocation(line: {number}, column: 1, scope: !{scope})",
            ]
            line += f", !llvm.loop !{free}"
            free += 2
        lines.append(line)
    text = "\n".join((*lines, *metadata))
    return text.replace(_NAME, _CODE), chosen.replace(_NAME, _CODE)


@contextmanager
def _stderr() -> Iterator[list[str]]:
    """Collect what is written to the standard error output; what is no remark is written on."""
    written: list[str] = []
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield written
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            text = file.read().decode(errors="replace")
            written.append(text)
            others = [each for each in text.splitlines() if not _REMARK.match(each)]
            if others:
                os.write(2, ("\n".join(others) + "\n").encode())


# --- Spilled registers ---

_STORED = re.compile(r"v?mov[au]p[sd]\s+%([xyz]mm\d+), -?\d*\(%r[sb]p\)|st[rp]\s+q\d+.*\[sp")
_LOADED = re.compile(r"v?mov[au]p[sd]\s+-?\d*\(%r[sb]p\), %[xyz]mm|ld[rp]\s+q\d+.*\[sp")
_USED = re.compile(r"-?\d*\(%r[sb]p\), %[xyz]mm")
_JUMP = re.compile(r"\s+(?:j\w+|b(?:\.\w+)?|cbnz|cbz)\s+.*?(\.LBB\w+)")
_CALLS = re.compile(r"\s+(?:call|bl)\w*\s")


def spills_of(assembly: str) -> Spills | None:
    """Return the spills of the innermost loop that has most; ``None`` without any.

    Loops that call functions are left out: these keep no vector registers.
    """
    lines = [each for each in assembly.splitlines() if each.strip() and not each.startswith("\t.")]
    places = {found[1]: place for place, each in enumerate(lines) if (found := _LABEL.match(each))}
    loops = [
        (places[found[1]], place)
        for place, each in enumerate(lines)
        if (found := _JUMP.match(each)) and places.get(found[1], place) < place
    ]
    worst: Spills | None = None
    for begin, end in loops:
        inside = lines[begin : end + 1]
        holds_other = any(begin <= b and e <= end and (b, e) != (begin, end) for b, e in loops)
        if holds_other or any(map(_CALLS.match, inside)):
            continue
        stored = sum(bool(_STORED.search(each)) for each in inside)
        loaded = sum(bool(_LOADED.search(each) or _USED.search(each)) for each in inside)
        if stored + loaded > (0 if worst is None else worst.stored + worst.loaded):
            count = sum(not _LABEL.match(each) for each in inside)
            worst = Spills(stored=stored, loaded=loaded, instructions=count)
    return worst
