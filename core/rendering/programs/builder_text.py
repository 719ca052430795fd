"""The BlockBuilder program that makes a module, as the course builds modules with one.

The program is real: run with its constants, it makes a module that is structurally equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm_ffi
from tvm import IRModule, relax, tirx

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.python_text import identifier, quoted, with_characters
from lowerscope.core.records.snapshot import TextRecord
from lowerscope.core.rendering.programs.builder_calls import literal
from lowerscope.core.rendering.programs.builder_constants import (
    BuilderScope,
    ConstantText,
    constants_in,
)
from lowerscope.core.rendering.programs.builder_functions import (
    FreshNames,
    FunctionText,
    called_by,
    called_first,
)
from lowerscope.core.rendering.programs.program_lines import Identifiers, ProgramLines

_SYMBOL = re.compile(r"(\w+) = TypeVar\(")


class PrimFuncs:
    """The definitions of a module's TensorIR functions.

    Attributes
    ----------
    definitions
        From these names to those of the definitions.
    standard_imports, tvm_imports
        Lines that the definitions need at the top of the program.
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


CONSTANTS_FILE = "constants.npz"
"""The file beside the program, which it reads when it is run as a script."""


@dataclass(frozen=True)
class BuilderText:
    """A builder program.

    Attributes
    ----------
    record
        The program. Spans are ``tir:NAME`` for the definition of a TensorIR function,
        ``relax:FUNCTION`` and, in it, ``relax:FUNCTION/VARIABLE`` for what makes each binding.
    constants
        The arguments of its function ``build(constants)``, by name: the arrays to save in
        `CONSTANTS_FILE` beside it, with ``np.savez``.
    imports, definitions
        Its parts, for a program of more than that: the lines that it imports what it needs by, and
        the TensorIR functions with ``build``.
    """

    record: TextRecord
    constants: Mapping[str, np.ndarray]
    imports: tuple[str, ...] = ()
    definitions: str = ""


def builder_text(
    module: IRModule,
    constant_name: Callable[[Any], str] = lambda constant: "",
    reserved: Collection[str] = (),
) -> BuilderText:
    """Return the program that makes `module` with ``relax.BlockBuilder``.

    TensorIR functions stand in it as TVMScript; arrays of constants stay outside.

    Parameters
    ----------
    constant_name
        Returns the name that a Relax constant should have in the program and in the file of
        constants, such as a parameter's; an empty string for none.
    reserved
        More names that nothing in the program may have.

    Raises `LowerscopeError` if the module has something that a builder program cannot make; it is
    named.
    """
    return _Program(module, constant_name, reserved).text()


class _Program:
    def __init__(
        self, module: IRModule, constant_name: Callable[[Any], str], reserved: Collection[str]
    ) -> None:
        self._module = module
        self._scope = BuilderScope(reserved=reserved)
        self._constants = ConstantText(self._scope, constant_name)
        self._lines = ProgramLines()
        functions = {variable.name_hint: each for variable, each in module.functions_items()}
        self._variables = {each.name_hint: each for each in module.get_global_vars()}
        self._relax = {
            name: each for name, each in functions.items() if isinstance(each, relax.Function)
        }
        self._called = {name for each in self._relax.values() for name in called_by(each)}
        self._tensorir = PrimFuncs(
            {name: each for name, each in functions.items() if isinstance(each, tirx.PrimFunc)},
            self._scope.identifiers,
        )
        _refuse_others(module, functions)

    def text(self) -> BuilderText:
        order = called_first(self._relax)
        self._tensorir.write(self._lines)
        lines = self._lines
        lines.add("def build(constants: dict[str, np.ndarray]) -> tvm.IRModule:")
        with lines.indented():
            lines.add(f'"""Make the module; `constants` are the arrays of {CONSTANTS_FILE}."""')
            self._add_tensorir()
            for function in self._relax.values():
                for constant in constants_in(function):
                    self._constants.add(constant)
            if self._constants.lines:
                lines.add(*self._constants.lines, "")
            fresh = FreshNames(self._tensorir.names, set(self._relax))
            for name in order:
                called = self._is_called(name)
                FunctionText(self._scope, self._constants, fresh, lines).write(
                    name, self._relax[name], self._variables[name] if called else None
                )
                lines.add("")
            self._return()
        imports = self._imports()
        definitions = lines.record("python").text
        self._tail()
        head = [
            '"""A module, made with a block builder."""',
            "",
            "from __future__ import annotations",
            "",
            *imports,
            "",
            "",
        ]
        return BuilderText(
            record=lines.record("python", head),
            constants=self._constants.arrays,
            imports=tuple(imports),
            definitions=definitions,
        )

    def _imports(self) -> list[str]:
        names = "relax, tirx" if self._lines.uses("tirx") else "relax"
        return [
            "from pathlib import Path",
            *self._tensorir.standard_imports,
            "",
            "import numpy as np",
            "import tvm",
            f"from tvm import {names}",
            *self._tensorir.tvm_imports,
        ]

    def _add_tensorir(self) -> None:
        self._lines.add("bb = relax.BlockBuilder()")
        for name, definition in self._tensorir.definitions.items():
            call = f"bb.add_func({definition}, {quoted(name)})"
            if self._is_called(name):
                call = f"{self._scope.bind(self._variables[name], f'{name}_gv')} = {call}"
            self._lines.add(call)
        self._lines.add("")

    def _is_called(self, name: str) -> bool:
        return name in self._called

    def _return(self) -> None:
        attrs = self._module.attrs
        if attrs is None or not len(attrs.keys()):
            self._lines.add("return bb.get()")
            return
        pairs = ", ".join(f"{literal(str(key))}: {literal(value)}" for key, value in attrs.items())
        self._lines.add(f"return bb.get().with_attrs({{{pairs}}})")

    def _tail(self) -> None:
        lines = self._lines
        lines.add("", "", 'if __name__ == "__main__":')
        with lines.indented():
            lines.add(
                f'module = build(dict(np.load(Path(__file__).with_name("{CONSTANTS_FILE}"))))',
                "module.show()",
            )


def _refuse_others(module: IRModule, functions: Mapping[str, Any]) -> None:
    for name, function in functions.items():
        if not isinstance(function, relax.Function | tirx.PrimFunc):
            raise LowerscopeError(
                f"the builder program has no form for {name}, a {type(function).__name__}",
                todo="Look at the script instead",
            )
    if len(module.global_infos):
        raise LowerscopeError(
            f"the builder program has no form for {', '.join(module.global_infos)} of the module",
            todo="Look at the script instead",
        )
