"""The step that computes only the side of a branch that is chosen.

A branch on the values of tensors is traced on both sides, and ``R.where`` selects its results by a
condition. This step moves what only one side reads into functions that ``R.If`` calls.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import tvm
import tvm_ffi
from tvm import ir, relax

CHOOSE_BRANCHES = "ComputeChosenBranches"

WORTH = 2**18
"""Least work of a side, in elements and products: a call takes some microseconds."""


def choose_branches(module: tvm.IRModule) -> tvm.IRModule:
    """Return a module in which each large side of a branch is computed only if it is chosen.

    Both sides become functions of their own, one of which ``R.If`` calls in a third. The variables
    stay. Calls of functions outside of the module stay where they are, and so do branches with
    named extents.
    """
    waiting = [
        (variable, function)
        for variable, function in module.functions_items()
        if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr)
    ]
    made = dict(module.functions_items())
    taken = {str(each.name_hint) for each in made}
    while waiting:
        variable, function = waiting.pop()
        change = _Change(function, taken)
        made[variable] = change.run()
        made |= change.functions
        # A side may have branches itself.
        waiting += change.sides
    changed = any(not each.same_as(module.functions.get(name)) for name, each in made.items())
    return tvm.IRModule(made, attrs=module.attrs) if changed else module


@dataclass(frozen=True)
class _Branch:
    """Selections by one condition, next to each other, and the bindings that only they need.

    `places`, `selects`: the selections.
    `moved`: places of the bindings that only the values selected if the condition holds need, and
        of those that only the others need.
    """

    places: range
    selects: Sequence[Any]
    moved: tuple[Sequence[int], Sequence[int]]


class _Change:
    """The branches of one function.

    `functions`: those that were made, and `sides` among them, which may have branches themselves.
    """

    def __init__(self, function: relax.Function, taken: set[str]) -> None:
        self.functions: dict[ir.GlobalVar, relax.Function] = {}
        self.sides: list[tuple[ir.GlobalVar, relax.Function]] = []
        self._function = function
        self._taken = taken
        self._builder = relax.BlockBuilder()

    def run(self) -> relax.Function:
        """Return the function with calls in place of its branches."""
        function = self._function
        blocks = list(function.body.blocks)
        for number, block in enumerate(blocks):
            if not isinstance(block, relax.DataflowBlock):
                continue
            bindings = list(block.bindings)
            found = False
            while (branch := _last_branch(bindings)) is not None:
                bindings = self._without(bindings, branch)
                found = True
            if found:
                blocks[number] = relax.DataflowBlock(bindings)
        if not self.functions:
            return function
        body = relax.SeqExpr(blocks, function.body.body)
        made = relax.Function(
            function.params, body, function.ret_ty, function.is_pure, function.attrs
        )
        return self._builder.normalize(made)

    def _without(self, bindings: Sequence[Any], branch: _Branch) -> list[Any]:
        """Return bindings with a call of a new function in place of a branch."""
        condition = branch.selects[0].value.args[0]
        results = [[each.value.args[side] for each in branch.selects] for side in (1, 2)]
        bodies = [[bindings[each] for each in moved] for moved in branch.moved]
        reads = _free([*bodies[0], *bodies[1]], [*results[0], *results[1]])
        sides = [
            self._side(name, body, values, reads)
            for name, body, values in zip(("then", "otherwise"), bodies, results, strict=True)
        ]
        call = self._choice(condition, sides, reads)
        variables = [each.var for each in branch.selects]
        if len(variables) == 1:
            new = [relax.VarBinding(variables[0], call)]
        else:
            whole = relax.DataflowVar(f"{variables[0].name}_branch", call.ty)
            new = [relax.VarBinding(whole, call)]
            for index, each in enumerate(variables):
                item = self._builder.normalize(relax.TupleGetItem(whole, index))
                new.append(relax.VarBinding(each, item))
        gone = {*branch.moved[0], *branch.moved[1]}
        before = [
            each for place, each in enumerate(bindings[: branch.places.start]) if place not in gone
        ]
        return [*before, *new, *bindings[branch.places.stop :]]

    def _side(
        self, name: str, bindings: Sequence[Any], results: Sequence[Any], reads: Sequence[Any]
    ) -> ir.GlobalVar:
        params = [relax.Var(each.name, each.ty) for each in reads]
        given = dict(zip(reads, params, strict=True))
        body = [_replaced(each, given) for each in bindings]
        values = [_replaced(each, given) for each in results]
        value = values[0] if len(values) == 1 else self._builder.normalize(relax.Tuple(values))
        out = relax.Var("out", _type_of(results))
        block = relax.DataflowBlock([*body, relax.VarBinding(out, value)])
        made = relax.Function(params, relax.SeqExpr([block], out), out.ty, True)
        variable = self._add(name, made)
        self.sides.append((variable, made))
        return variable

    def _choice(
        self, condition: Any, sides: Sequence[ir.GlobalVar], reads: Sequence[Any]
    ) -> relax.Call:
        """Return the call of a function that calls one side or the other."""
        flag = relax.Var("condition", condition.ty)
        params = [relax.Var(each.name, each.ty) for each in reads]
        kind = sides[0].ty.ret
        branches = []
        for side in sides:
            call = relax.Call(side, params)
            relax.expr._update_type(call, kind)
            variable = relax.Var("chosen", kind)
            block = relax.BindingBlock([relax.VarBinding(variable, call)])
            branches.append(relax.SeqExpr([block], variable))
        choice = self._builder.normalize(relax.If(flag, *branches))
        out = relax.Var("out", kind)
        body = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(out, choice)])], out)
        function = self._add("branch", relax.Function([flag, *params], body, kind, True))
        call = relax.Call(function, [condition, *reads])
        relax.expr._update_type(call, kind)
        return call

    def _add(self, name: str, function: relax.Function) -> ir.GlobalVar:
        names = (f"{name}_{number}" if number else name for number in count())
        title = next(each for each in names if each not in self._taken)
        self._taken.add(title)
        variable = ir.GlobalVar(title)
        function = self._builder.normalize(function)
        relax.expr._update_type(variable, function.ty)
        self.functions[variable] = function
        return variable


def _last_branch(bindings: Sequence[Any]) -> _Branch | None:
    """Return the last branch with a side that is worth it; it may have others in its sides."""
    if not any(map(_selects, bindings)):
        return None
    reads = [_read([getattr(each, "value", None)]) for each in bindings]
    movable = [_is_movable(each, read) for each, read in zip(bindings, reads, strict=True)]
    for last in reversed(range(len(bindings))):
        if not _selects(bindings[last]):
            continue
        condition, first = bindings[last].value.args[0], last
        while first and _selects(bindings[first - 1], condition):
            first -= 1
        selects = bindings[first : last + 1]
        own = {each.var for each in selects}
        if any(own & each.keys() for each in reads[first : last + 1]):
            continue
        moved = _moved(bindings, reads, movable, first, last)
        if any(_work(bindings[each] for each in side) >= WORTH for side in moved):
            return _Branch(range(first, last + 1), selects, moved)
    return None


def _moved(
    bindings: Sequence[Any],
    reads: Sequence[Collection[Any]],
    movable: Sequence[bool],
    first: int,
    last: int,
) -> tuple[list[int], list[int]]:
    """Return the bindings that only one side of a branch reads, for each side in order.

    `reads`: the variables that each binding reads. `movable`: whether it may be in a side.
    """
    places = {each.var: place for place, each in enumerate(bindings)}
    # Of each binding, the sides that read it: 0 stands for anything else.
    readers: list[set[int]] = [set() for _each in bindings]
    moved: tuple[list[int], list[int]] = [], []
    for place in reversed(range(len(bindings))):
        binding = bindings[place]
        if first <= place <= last:
            for side, each in enumerate(binding.value.args):
                for variable in _read([each]):
                    if variable in places:
                        readers[places[variable]].add(side)
            continue
        side = 0
        if place < first and len(readers[place]) == 1 and movable[place]:
            (side,) = readers[place]
        if side:
            moved[side - 1].insert(0, place)
        for variable in reads[place]:
            if variable in places:
                readers[places[variable]].add(side)
    return moved


def _selects(binding: Any, condition: Any = None) -> bool:
    """Return whether a binding selects by one condition, or by `condition`."""
    value = getattr(binding, "value", None)
    if not isinstance(value, relax.Call) or _operator(value) != "relax.where":
        return False
    flag, *sides = value.args
    if not isinstance(flag, relax.Var) or flag.ty.ndim != 0:
        return False
    if condition is not None and not flag.same_as(condition):
        return False
    # A side may be a number for all elements.
    return all(
        _is_static(each.ty) and tvm_ffi.structural_equal(each.ty, value.ty) for each in sides
    )


def _is_movable(binding: Any, reads: Collection[Any]) -> bool:
    value = getattr(binding, "value", None)
    if not isinstance(binding, relax.VarBinding) or not isinstance(binding.var, relax.DataflowVar):
        return False
    if isinstance(value, relax.Call):
        own = _operator(value)
        if not own or (own.startswith("relax.call_") and own != "relax.call_tir"):
            return False
    # A side has no variables for named extents.
    return isinstance(value, relax.Call | relax.Tuple | relax.TupleGetItem | relax.Var) and all(
        _is_static(each.ty) for each in (binding.var, *reads)
    )


def _is_static(kind: Any) -> bool:
    if isinstance(kind, relax.TupleType):
        return all(map(_is_static, kind.fields))
    shape = getattr(kind, "shape", None)
    return isinstance(shape, relax.ShapeExpr) and all(
        isinstance(each, tvm.tirx.IntImm) for each in shape.values
    )


def _operator(call: Any) -> str:
    return str(call.op.name) if isinstance(call.op, ir.Op) else ""


def _work(bindings: Iterable[Any]) -> int:
    """Return about how much the bindings compute: elements, and products of sums of products."""
    found = 0
    for binding in bindings:
        kind = binding.var.ty
        if not isinstance(kind, relax.TensorType):
            continue
        elements = math.prod(int(each) for each in kind.shape.values)
        name = _operator(binding.value) if isinstance(binding.value, relax.Call) else ""
        if name == "relax.matmul":
            elements *= int(binding.value.args[0].ty.shape.values[-1])
        elif name.startswith("relax.nn.conv"):
            elements *= math.prod(int(each) for each in binding.value.args[1].ty.shape.values[1:])
        found += elements
    return found


def _read(values: Iterable[Any]) -> dict[Any, None]:
    """Return the variables in expressions, in order."""
    found: dict[Any, None] = {}

    def note(each: Any) -> None:
        if isinstance(each, relax.Var):
            found[each] = None

    for value in values:
        if isinstance(value, ir.Expr):
            relax.analysis.post_order_visit(value, note)
    return found


def _free(bindings: Sequence[Any], results: Collection[Any]) -> list[Any]:
    """Return the variables that bindings and results read and do not bind."""
    bound = {each.var for each in bindings}
    read = _read([*(each.value for each in bindings), *results])
    return [each for each in read if each not in bound]


def _replaced(value: Any, given: dict[Any, Any]) -> Any:
    return tvm_ffi.structural_map(value, (relax.Var, lambda each: given.get(each, each)))


def _type_of(values: Sequence[Any]) -> Any:
    kinds = [each.ty for each in values]
    return kinds[0] if len(kinds) == 1 else relax.TupleType(kinds)
