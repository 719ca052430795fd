"""Relax functions of a loop whose number of steps depends on data.

``torch.while_loop`` becomes a function of one step, and two that call it. The virtual machine calls
functions on the stack of the process, which a call for each step would fill; so a call of ``steps``
takes up to ``2**level`` steps, by two calls of the level below, and ``loop`` begins at level 0 and
goes up. A loop of a million steps is twenty calls deep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import ir, relax
from tvm.relax import op
from tvm.relax.utils import copy_with_new_vars

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.values import Value


@dataclass(frozen=True)
class Step:
    """One step of a loop.

    `given`: the variables that it reads: `count` values that each step changes, and others.
    `bindings`: what it computes, of these variables.
    `results`: whether another step follows, and the changed values.
    """

    given: Sequence[Any]
    count: int
    bindings: Sequence[Any]
    results: Sequence[Any]


def add_loop(builder: NodeBuilder, name: str, step: Step) -> ir.GlobalVar:
    """Add the functions of a loop to a module under construction; return the one to be called.

    It is called with whether there is a first step, a level of 0, and what a step reads; it returns
    the values after the last step.
    """
    level, zero = relax.Var("level", relax.TensorType((), "int64")), relax.const(0, "int64")
    one = relax.const(1, "int64")
    # As operators or functions, by the node's strategy.
    higher, lower, more = (
        _value_of(builder, expression)
        for expression in (op.add(level, one), op.subtract(level, one), op.greater(level, zero))
    )
    flag = relax.Var("more", relax.TensorType((), "bool"))
    changed, others = list(step.given[: step.count]), list(step.given[step.count :])
    state = relax.TupleType([flag.ty, *(each.ty for each in changed)])
    values = relax.TupleType([each.ty for each in changed])

    def variable(title: str, params: Sequence[Any], result: Any) -> ir.GlobalVar:
        made = ir.GlobalVar(builder.unused_name(f"{name}{title}"))
        relax.expr._update_type(made, relax.FuncType([each.ty for each in params], result))
        return made

    def add(variable: ir.GlobalVar, params: Sequence[Any], blocks: Any, out: Any) -> None:
        body = relax.SeqExpr(blocks, out)
        function = relax.Function(params, body, out.ty, True)
        # Named sizes are variables of each function.
        builder.functions[variable] = builder.normalize(copy_with_new_vars(function))

    of_step = variable("_step", step.given, state)
    of_steps = variable("_steps", [level, *step.given], state)
    of_loop = variable("", [flag, level, *step.given], values)

    out = relax.Var("out", state)
    whole = relax.VarBinding(out, builder.normalize(relax.Tuple(list(step.results))))
    add(of_step, step.given, [relax.DataflowBlock([*step.bindings, whole])], out)

    again, less, first = (
        relax.Var("again", flag.ty),
        relax.Var("less", level.ty),
        relax.Var("half", state),
    )
    go, half = _members(builder, first, ("more", *(each.name for each in changed)))
    rest = relax.Var("out", state)
    both = [
        relax.VarBinding(less, lower),
        relax.VarBinding(first, _call(of_steps, [less, *step.given])),
        *half,
        relax.VarBinding(
            rest,
            _choice(
                builder,
                go[0],
                lambda: _call(of_steps, [less, *go[1:], *others]),
                lambda: first,
            ),
        ),
    ]
    out = relax.Var("out", state)
    chosen = relax.If(
        again,
        relax.SeqExpr([relax.BindingBlock(both)], rest),
        _sequence(_call(of_step, step.given)),
    )
    blocks = [
        relax.BindingBlock([relax.VarBinding(again, more)]),
        relax.BindingBlock([relax.VarBinding(out, builder.normalize(chosen))]),
    ]
    add(of_steps, [level, *step.given], blocks, out)

    after, deeper = relax.Var("after", state), relax.Var("deeper", level.ty)
    go, members = _members(builder, after, ("more", *(each.name for each in changed)))
    result = relax.Var("out", values)
    on = [
        relax.VarBinding(after, _call(of_steps, [level, *step.given])),
        *members,
        relax.VarBinding(deeper, higher),
        relax.VarBinding(result, _call(of_loop, [go[0], deeper, *go[1:], *others])),
    ]
    out = relax.Var("out", values)
    chosen = relax.If(
        flag,
        relax.SeqExpr([relax.BindingBlock(on)], result),
        _sequence(builder.normalize(relax.Tuple(changed))),
    )
    block = relax.BindingBlock([relax.VarBinding(out, builder.normalize(chosen))])
    add(of_loop, [flag, level, *step.given], [block], out)
    return of_loop


def call_loop(loop: ir.GlobalVar, flag: Value, given: Sequence[Value]) -> Value:
    """Return the call of a loop that begins with the values `given`."""
    return _call(loop, [flag, relax.const(0, "int64"), *given])


def _value_of(builder: NodeBuilder, expression: Any) -> Any:
    builder.emit(expression)
    bindings, _emitted = builder.end_node()
    return bindings[-1].value


def _members(builder: NodeBuilder, whole: Any, names: Sequence[str]) -> tuple[list[Any], list[Any]]:
    """Return a variable for each member of a tuple, and their bindings."""
    items = [builder.normalize(relax.TupleGetItem(whole, index)) for index in range(len(names))]
    made = [relax.Var(name, each.ty) for name, each in zip(names, items, strict=True)]
    return made, [relax.VarBinding(*pair) for pair in zip(made, items, strict=True)]


def _call(function: ir.GlobalVar, args: Sequence[Any]) -> Any:
    call = relax.Call(function, list(args))
    relax.expr._update_type(call, function.ty.ret)
    return call


def _sequence(value: Any) -> Any:
    variable = relax.Var("value", value.ty)
    return relax.SeqExpr([relax.BindingBlock([relax.VarBinding(variable, value)])], variable)


def _choice(
    builder: NodeBuilder, flag: Any, one: Callable[[], Any], other: Callable[[], Any]
) -> Any:
    return builder.normalize(relax.If(flag, _sequence(one()), _sequence(other())))
