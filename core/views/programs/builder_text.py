"""The BlockBuilder program that makes a module, as the course builds modules with one.

The program is real: run with its constants, it makes a module that is structurally equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import tvm_ffi
from tvm import IRModule, ir, relax, tirx

from lowerscope.core.files.python_text import identifier, quoted, with_characters
from lowerscope.core.ir.relax import bound_in
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.views.programs.builder_calls import (
    BuilderScope,
    CallText,
    ConstantText,
    TypeText,
    constants_in,
    literal,
)
from lowerscope.core.views.programs.program_lines import Identifiers, ProgramLines


class FreshNames:
    """The names of variables of a block builder, as it numbers them.

    `taken`: names of functions that it has so far.
    `coming`: names of functions that it gets later, which no variable may take away.
    """

    def __init__(self, taken: Iterable[str], coming: set[str]) -> None:
        self._next = dict.fromkeys(taken, 1)
        self._coming = coming

    def hint(self, default: str, wanted: str) -> str:
        """Return the name hint that gives a variable the wanted name."""
        if self._peek(default) == wanted or wanted in self._next or wanted in self._coming:
            self._take(default)
            return ""
        self._take(wanted)
        return wanted

    def _peek(self, name: str) -> str:
        if name not in self._next:
            return name
        numbered = (f"{name}{number}" for number in count(self._next[name]))
        return next(each for each in numbered if each not in self._next)

    def _take(self, name: str) -> None:
        found = self._peek(name)
        if found != name:
            self._next[name] = int(found.removeprefix(name)) + 1
        self._next[found] = 1


class FunctionText:
    """Writer of one function."""

    def __init__(
        self, scope: BuilderScope, constants: ConstantText, fresh: FreshNames, lines: ProgramLines
    ) -> None:
        self._program = scope
        self._scope = BuilderScope(scope)
        self._types = TypeText(self._scope)
        self._calls = CallText(self._scope, constants)
        self._fresh = fresh
        self._lines = lines
        self._ids: dict[Any, str] = {}

    def write(self, name: str, function: Any, variable: Any | None) -> None:
        """Add the lines that make `function`; `variable` is what others call it by, if they do."""
        self._ids = {bound.binding: bound.id for bound in bound_in(name, function)}
        lines = self._lines
        with lines.span(f"relax:{name}"):
            self._parameters(function)
            lines.add(f"with bb.function({self._signature(name, function)}):")
            with lines.indented():
                for block in function.body.blocks:
                    self._block(block)
                output = f"bb.emit_func_output({self._calls.value(function.body.body)})"
                widened = self._widened(function)
                if variable is not None or widened:
                    title = f"{name}_gv"
                    taken = (
                        self._program.identifiers.take(title)
                        if variable is None
                        else self._program.bind(variable, title)
                    )
                    output = f"{taken} = {output}"
                lines.add(output)
            if widened:
                self._widen(taken, function)

    def _parameters(self, function: Any) -> None:
        definitions: list[str] = []
        for parameter in function.params:
            meant = self._types.type(parameter.ty)
            taken = self._scope.bind(parameter, parameter.name)
            definitions.append(f"{taken} = relax.Var({quoted(parameter.name)}, {meant})")
        self._lines.add(*self._scope.take_symbols(), *definitions)

    def _signature(self, name: str, function: Any) -> str:
        attrs = {} if function.attrs is None else dict(function.attrs.items())
        public = attrs.get("global_symbol") == name
        if public:
            attrs.pop("global_symbol")
        parameters = ", ".join(self._scope.name_of(each) for each in function.params)
        parts = [quoted(name), f"params=[{parameters}]"]
        if attrs:
            parts.append(f"attrs={literal(attrs)}")
        if not function.is_pure:
            parts.append("pure=False")
        if not public:
            parts.append("private=True")
        return ", ".join(parts)

    def _widened(self, function: Any) -> bool:
        """Return whether the return type of the function is weaker than the inferred one."""
        inferred = relax.Function(
            function.params, function.body, None, function.is_pure, function.attrs
        )
        return not tvm_ffi.structural_equal(inferred, function)

    def _widen(self, variable: str, function: Any) -> None:
        returns = self._types.type(function.ret_ty)
        made = f"bb.get()[{variable}]"
        parts = f"{made}.params, {made}.body, {returns}, {made}.is_pure, {made}.attrs"
        self._lines.add(f"bb.update_func({variable}, relax.Function({parts}))")

    # Blocks

    def _block(self, block: Any) -> None:
        if not isinstance(block, relax.DataflowBlock):
            self._bindings(block, "gv")
            return
        self._lines.add("with bb.dataflow():")
        with self._lines.indented():
            self._bindings(block, "lv")

    def _bindings(self, block: Any, default: str) -> None:
        for binding in block.bindings:
            output = default == "lv" and not isinstance(binding.var, relax.DataflowVar)
            with self._lines.span(self._ids[binding]):
                self._binding(binding, "gv" if output else default, output=output)

    def _binding(self, binding: Any, default: str, *, output: bool) -> None:
        if isinstance(binding, relax.MatchCast):
            value, meant = self._calls.value(binding.value), self._types.type(binding.ty)
            plain = not output and tvm_ffi.structural_equal(binding.ty, binding.var.ty)
            emit, args = "match_cast", f"{value}, {meant}"
            made = f"relax.MatchCast({{}}, {args})"
        else:
            args = self._value(binding)
            plain = self._infers(args, binding)
            emit = "emit_output" if output else "emit"
            made = f"relax.VarBinding({{}}, bb.normalize({args}))"
        self._lines.add(*self._scope.take_symbols())
        if plain:
            hint = self._fresh.hint(default, binding.var.name)
            asked = f", name_hint={quoted(hint)}" if hint else ""
            taken = self._scope.bind(binding.var, binding.var.name)
            self._lines.add(f"{taken} = bb.{emit}({args}{asked})")
            return
        kind = type(binding.var).__name__
        meant = self._types.type(binding.var.ty)
        taken = self._scope.bind(binding.var, binding.var.name)
        self._lines.add(
            *self._scope.take_symbols(),
            f"{taken} = relax.{kind}({quoted(binding.var.name)}, {meant})",
            f"bb.emit_normalized({made.format(taken)})",
        )

    def _value(self, binding: Any) -> str:
        value = binding.value
        if isinstance(value, relax.Function):
            raise LowerscopeError(
                f"the builder program has no form for {binding.var.name}, a function in a function",
                where=self._ids[binding],
                todo="Apply LambdaLift first, or look at the script",
            )
        if not isinstance(value, relax.If):
            return self._calls.value(value)
        condition = self._calls.value(value.cond)
        branches = [
            self._branch(f"{name}_branch", body)
            for name, body in (("true", value.true_branch), ("false", value.false_branch))
        ]
        return f"relax.If({condition}, {', '.join(branches)})"

    def _branch(self, name: str, body: Any) -> str:
        """Add the lines that make one branch of an ``If``, and return its name."""
        lines = self._lines
        taken = self._scope.identifiers.take(name)
        blocks: list[str] = []
        lines.add("bb.begin_scope()")
        for block in body.blocks:
            dataflow = isinstance(block, relax.DataflowBlock)
            lines.add(f"bb._begin_{'dataflow' if dataflow else 'binding'}_block()")
            self._bindings(block, "lv" if dataflow else "gv")
            blocks.append(self._scope.identifiers.take(f"{taken}_block"))
            lines.add(f"{blocks[-1]} = bb._end_block()")
        result = self._calls.value(body.body)
        lines.add(f"{taken} = relax.SeqExpr([{', '.join(blocks)}], {result})", "bb.end_scope()")
        return taken

    def _infers(self, text: str, binding: Any) -> bool:
        """Return whether the builder gives the variable the type that it has."""
        value = binding.value
        if isinstance(value, relax.If):
            made = relax.If(value.cond, value.true_branch, value.false_branch)
            made = relax.BlockBuilder().normalize(made)
        else:
            made = self._scope.make(text)
        return bool(tvm_ffi.structural_equal(made.ty, binding.var.ty))


def called_first(functions: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of Relax functions, each after those that it calls, and ``main`` late.

    Raises `LowerscopeError` if a function calls itself, by others or directly.
    """
    import networkx

    calls = networkx.DiGraph()
    calls.add_nodes_from(functions)
    calls.add_edges_from(
        (name, callee)
        for name, function in functions.items()
        for callee in called_by(function)
        if callee in functions
    )
    if not networkx.is_directed_acyclic_graph(calls):
        name = networkx.find_cycle(calls)[0][0]
        raise LowerscopeError(
            f"the builder program has no form for {name}, which calls itself",
            where=f"relax:{name}",
            todo="Look at the script instead",
        )
    return list(networkx.dfs_postorder_nodes(calls))


def called_by(function: Any) -> Sequence[str]:
    """Return the names of the functions of the module that a Relax function calls, each once."""
    names: dict[str, None] = {}

    def visit(expression: Any) -> None:
        if isinstance(expression, ir.GlobalVar):
            names[expression.name_hint] = None

    relax.analysis.post_order_visit(function, visit)
    return tuple(names)


_SYMBOL = re.compile(r"(\w+) = TypeVar\(")


class PrimFuncs:
    """The definitions of a module's TensorIR functions.

    `definitions`: from these names to those of the definitions.
    `standard_imports`, `tvm_imports`: lines that the definitions need at the top of the program.
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

    `record`: the program. Spans are ``tir:NAME`` for the definition of a TensorIR function,
        ``relax:FUNCTION`` and, in it, ``relax:FUNCTION/VARIABLE`` for what makes each binding.
    `constants`: the arguments of its function ``build(constants)``, by name: the arrays to save in
        `CONSTANTS_FILE` beside it, with ``np.savez``.
    `imports`, `definitions`: its parts, for a program of more than that: the lines that it imports
        what it needs by, and the TensorIR functions with ``build``.
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

    `constant_name`: returns the name that a Relax constant should have in the program and in the
        file of constants, such as a parameter's; an empty string for none.
    `reserved`: More names that nothing in the program may have.

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
