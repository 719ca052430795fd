"""The TensorIR functions of a builder program: definitions in TVMScript, and their imports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import tvm_ffi

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.python_text import identifier, with_characters
from lowerscope.core.rendering.programs.identifiers import Identifiers
from lowerscope.core.rendering.programs.program_lines import ProgramLines

_SYMBOL = re.compile(r"(\w+) = TypeVar\(")


class PrimFuncs:
    """The definitions of a module's TensorIR functions.

    Attributes
    ----------
    names
        The functions by their names in the module, in order.
    definitions
        From these names to those of the definitions.
    standard_imports, tvm_imports
        Lines that the definitions need at the top of the program.

    Parameters
    ----------
    functions
        By name.
    identifiers
        The scope that names are taken from.
    """

    def __init__(self, functions: Mapping[str, Any], identifiers: Identifiers) -> None:
        scripts = {
            name: _script(name, function, identifier(name)) for name, function in functions.items()
        }
        symbols = {
            match[1]
            for script in scripts.values()
            for line in script
            if (match := _SYMBOL.match(line))
        }
        for symbol in sorted(symbols):
            # Symbols are defined beside the functions; no function may be called like one.
            identifiers.take(symbol)
        self.names = tuple(functions)
        self.definitions = {name: identifiers.take(name) for name in functions}
        self._scripts = scripts
        imports = [
            line.removeprefix("# ")
            for script in scripts.values()
            for line in script
            if line.startswith("# from ")
        ]
        imports = [line for line in dict.fromkeys(imports) if self._needs(line)]
        self.standard_imports = [line for line in imports if "tvm" not in line]
        self.tvm_imports = sorted(line for line in imports if "tvm" in line)
        _refuse_twins(functions)

    def write(self, lines: ProgramLines) -> None:
        """Add the definitions, each with two empty lines after it."""
        for name, script in self._scripts.items():
            body = [line for line in script if not line.startswith("#")]
            while not body[0]:
                body.pop(0)
            plain, taken = identifier(name), self.definitions[name]
            body = [
                line.replace(f"def {plain}(", f"def {taken}(", 1)
                if line.startswith(f"def {plain}(")
                else line
                for line in body
            ]
            with lines.span(f"tir:{name}"):
                lines.add(*body)
            lines.add("", "")

    def _needs(self, line: str) -> bool:
        name = line.rpartition(" import ")[2].rpartition(" ")[2]
        use = re.compile(rf"\b{name}\b")
        return any(
            use.search(each)
            for script in self._scripts.values()
            for each in script
            if not each.startswith("# from ")
        )


def _script(name: str, function: Any, title: str) -> list[str]:
    lines = with_characters(str(function.script(name=title))).rstrip("\n").split("\n")
    if any(line.startswith("# Metadata") for line in lines):
        raise LowerscopeError(
            f"the builder program has no form for the constants inside {name}",
            where=f"tir:{name}",
            todo="Look at the script instead",
        )
    return lines


def _refuse_twins(functions: Mapping[str, Any]) -> None:
    """Reject equal functions of two names: a block builder makes one of them."""
    seen: dict[int, str] = {}
    for name, function in functions.items():
        key = tvm_ffi.structural_hash(function)
        if key in seen and tvm_ffi.structural_equal(function, functions[seen[key]]):
            raise LowerscopeError(
                f"{seen[key]} and {name} are equal, and a block builder makes one of the two",
                where=f"tir:{name}",
                todo="Look at the script instead",
            )
        seen[key] = name
