"""One Relax function of a builder program, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

import tvm_ffi
from tvm import ir, relax

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.python_text import quoted
from lowerscope.core.relax_bindings import bound_in
from lowerscope.core.rendering.programs.builder_calls import CallText, TypeText, literal
from lowerscope.core.rendering.programs.builder_constants import BuilderScope, ConstantText
from lowerscope.core.rendering.programs.program_lines import ProgramLines


class FreshNames:
    """The names of variables of a block builder, as it numbers them.

    Parameters
    ----------
    taken
        Names of functions that it has so far.
    coming
        Names of functions that it gets later, which no variable may take away.
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
        self,
        scope: BuilderScope,
        constants: ConstantText,
        fresh: FreshNames,
        lines: ProgramLines,
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
