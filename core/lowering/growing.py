"""The module as it stood after some of the FX nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tvm
from torch import fx
from tvm import ir, relax
from tvm.relax.analysis import free_vars

from lowerscope.core.lowering.builder import functions_of
from lowerscope.core.lowering.lowered import LoweredModel
from lowerscope.core.lowering.relax_values import Held, Value


def module_after(lowered: LoweredModel, graph: fx.Graph, count: int) -> tvm.IRModule:
    """Return the module as it stood after the first `count` nodes.

    It has the bindings of these nodes, the functions that they call, and the inputs and parameters
    that the graph has come to. It returns what the last node stands for: several values as a tuple,
    and nothing, an empty tuple, before the first.

    Parameters
    ----------
    graph
        The one that was lowered.
    count
        From 0 to the number of nodes, with which it is the lowered module itself.
    """
    nodes = list(graph.nodes)
    if count >= len(nodes):
        return lowered.module
    done = nodes[:count]
    main = lowered.module["main"]
    every = [binding for block in main.body.blocks for binding in block.bindings]
    bindings = every[: sum(len(lowered.nodes[node.name].bindings) for node in done)]
    inputs = sum(node.op == "placeholder" for node in done)
    returned = _latest(lowered, done)
    whole = _function(lowered, main, bindings, inputs, returned)
    used = functions_of(bindings)
    functions = {
        variable: function
        for variable, function in lowered.module.functions_items()
        if variable.name_hint in used
    }
    return tvm.IRModule(
        {**functions, lowered.module.get_global_var("main"): whole}, attrs=lowered.module.attrs
    )


def leaves_of(value: Value) -> Iterator[Any]:
    """Yield the Relax expressions in the value of a node: tensors, and tuples of them."""
    if isinstance(value, Held):
        yield value.value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from leaves_of(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from leaves_of(each)
    elif isinstance(value, ir.Expr) and isinstance(value.ty, relax.TensorType | relax.TupleType):
        yield value


def _latest(lowered: LoweredModel, done: list[fx.Node]) -> list[Any]:
    """Return what the last of the nodes stands for that stands for tensors."""
    for node in reversed(done):
        leaves = list(leaves_of(lowered.nodes[node.name].value))
        if leaves:
            return leaves
    return []


def _function(
    lowered: LoweredModel, main: Any, bindings: list[Any], inputs: int, returned: list[Any]
) -> Any:
    stand_ins = _arguments(lowered, main)
    values = [stand_ins.get(value, value) for value in returned]
    builder = relax.BlockBuilder()
    bound = {binding.var for binding in bindings}
    leaving = {value: relax.Var("gv", value.ty) for value in values if value in bound}
    block = [*bindings, *(relax.VarBinding(var, value) for value, var in leaving.items())]
    results = [leaving.get(value, value) for value in values]
    read = {var for binding in bindings for var in free_vars(binding.value)} | set(values)
    given = len(main.params) - len(lowered.arguments)
    params = [
        *main.params[: min(inputs, given)],
        *(each for each in main.params[given:] if each in read),
    ]
    with builder.function("main", params=params, attrs=dict(main.attrs.items())):
        builder._end_block()
        if block:
            builder._func._blocks.append(relax.DataflowBlock(block))
        builder._begin_binding_block()
        builder.emit_func_output(results[0] if len(results) == 1 else relax.Tuple(results))
    return builder.get()["main"]


def _arguments(lowered: LoweredModel, main: Any) -> Mapping[Any, Any]:
    """Map the constants that have become arguments of ``main`` to these."""
    return {
        lowered.arguments[variable.name].constant: variable
        for variable in main.params
        if variable.name in lowered.arguments
    }
