"""Partially lowered modules, and parameters bound in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch
import tvm
import tvm_ffi
from torch import fx
from tvm import ir, relax
from tvm.relax.analysis import free_vars

from lowerscope.core.lowering.builder import functions_of, memory_of
from lowerscope.core.lowering.types import LoweredModel, NamedConstant
from lowerscope.core.lowering.values import EncodedTensor, Value
from lowerscope.core.sources.pytree import identifier


def constants_of(function: Any) -> tuple[Any, ...]:
    """Return the tensors that a Relax function has as constants, each once, in order."""
    found: dict[Any, None] = {}

    def visit(expression: Any) -> None:
        # Compare exact types: TVM's classes are abstract in Python, and `isinstance` is slow.
        # The dtype of an allocation is a constant as well, without a tensor.
        if type(expression) is ir.GenericConst and isinstance(expression.value, tvm.runtime.Tensor):
            found[expression] = None

    relax.analysis.post_order_visit(function, visit)
    return tuple(found)


def name_constants(
    module: tvm.IRModule, graph_module: fx.GraphModule, lowered: LoweredModel
) -> tuple[NamedConstant, ...]:
    """Name the constants of ``main`` of a lowered model; a name comes once."""
    names: dict[Any, str] = dict(_names(graph_module, lowered.constants))
    used: set[str] = set()
    result: list[NamedConstant] = []
    for number, constant in enumerate(constants_of(module["main"])):
        name = names.get(constant)
        title = _unused(name or f"constant_{number}", used)
        result.append(NamedConstant(title, name is not None, constant))
    return tuple(result)


def _names(
    graph_module: fx.GraphModule, constants: Iterable[tuple[torch.Tensor, Any]]
) -> Iterator[tuple[Any, str]]:
    by_memory: dict[Any, str] = {}
    by_bytes: dict[tuple[int, int], str] = {}
    for name, tensor in _tensors_of(graph_module):
        by_memory.setdefault(memory_of(tensor), name)
        if tensor.layout is torch.strided and tensor.numel():
            by_bytes.setdefault(_bytes_of(tensor), name)
    for tensor, constant in constants:
        found: str | None = by_memory.get(memory_of(tensor))
        if found is None and tensor.layout is torch.strided and tensor.numel():
            # A dtype that TVM lacks is encoded as a view of another.
            found = by_bytes.get(_bytes_of(tensor))
        if found is not None:
            yield constant, found


def _tensors_of(graph_module: fx.GraphModule) -> Iterator[tuple[str, torch.Tensor]]:
    yield from graph_module.named_parameters(remove_duplicate=False)
    yield from graph_module.named_buffers(remove_duplicate=False)
    for node in graph_module.graph.nodes:
        if node.op == "get_attr":
            value: Any = graph_module
            for part in str(node.target).split("."):
                value = getattr(value, part)
            if isinstance(value, torch.Tensor):
                yield str(node.target), value


def _bytes_of(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor.numel() * tensor.element_size()


def _unused(name: str, used: set[str]) -> str:
    title, count = name, 1
    while title in used:
        title, count = f"{name}_{count}", count + 1
    used.add(title)
    return title


def with_parameters_as_inputs(lowered: LoweredModel, graph_module: fx.GraphModule) -> LoweredModel:
    """Return the same module with the model's tensors as arguments of ``main``, after its inputs.

    They are named as in the model: ``linear0_weight``. Constants that are not the model's, such as
    numbers, stay. A tensor under two names is one argument.
    """
    main = lowered.module["main"]
    used = {variable.name for variable in main.params}
    variables: dict[Any, Any] = {}
    arguments: dict[str, NamedConstant] = {}
    for named in name_constants(lowered.module, graph_module, lowered):
        if named.from_model:
            name = _unused(identifier(named.name, ()), used)
            variables[named.constant] = relax.Var(name, named.constant.ty)
            arguments[name] = named
    module = tvm.IRModule(lowered.module.functions, attrs=lowered.module.attrs)
    module["main"] = _replaced(lowered.module, main, variables)
    return replace(lowered, module=module, arguments=arguments)


def with_constants(module: tvm.IRModule, constants: Mapping[Any, Any]) -> tvm.IRModule:
    """Return `module` with free variables of ``main`` replaced by constants."""
    if not constants:
        return module
    made = tvm.IRModule(module.functions, attrs=module.attrs)
    made["main"] = _replaced(module, module["main"], {}, constants)
    return made


def _replaced(
    module: tvm.IRModule,
    main: Any,
    variables: Mapping[Any, Any],
    constants: Mapping[Any, Any] | None = None,
) -> Any:
    mutator = _Replacing(module, variables, constants or {})
    body = mutator.visit_expr(main.body)
    params = [*main.params, *variables.values()]
    return relax.Function(params, body, main.ret_ty, main.is_pure, main.attrs)


@relax.expr_functor.mutator
class _Replacing(relax.PyExprMutator):  # type: ignore[misc]
    """Mutator that replaces constants by variables, or the reverse, and keeps bound variables."""

    def __init__(
        self, module: tvm.IRModule, variables: Mapping[Any, Any], constants: Mapping[Any, Any]
    ) -> None:
        super().__init__(module)
        self._variables = variables
        self._constants = constants

    def visit_generic_const_(self, op: Any) -> Any:
        return self._variables.get(op, op)

    def visit_var_(self, op: Any) -> Any:
        return self._constants.get(op, op)


def module_prefix(lowered: LoweredModel, graph: fx.Graph, count: int) -> tvm.IRModule:
    """Return the partial module after the first `count` nodes.

    It has the bindings of these nodes, the functions that they call, and the inputs and parameters
    that the graph has reached. It returns the value of the last node: several values as a tuple,
    and an empty tuple before the first.

    `count`: from 0 to the number of nodes, which gives the lowered module itself.
    """
    if count >= len(graph.nodes):
        return lowered.module
    main = lowered.module["main"]
    bindings = _bindings(main)
    part = next(islice(_parts(lowered, graph), count, None))
    bindings = bindings[: part.bindings]
    whole = _function(main, bindings, part)
    used = functions_of(bindings, dict(lowered.module.functions_items()))
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
    if isinstance(value, EncodedTensor):
        yield value.value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from leaves_of(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from leaves_of(each)
    elif isinstance(value, ir.Expr) and isinstance(value.ty, relax.TensorType | relax.TupleType):
        yield value


@dataclass(frozen=True)
class _Part:
    """Content of ``main`` after some of the nodes.

    `bindings`: number of its bindings, without those that name the return value.
    `returned`: the returned expressions: the value of the latest node with tensors.
    """

    bindings: int
    params: tuple[Any, ...]
    returned: tuple[Any, ...]


def changes_of_nodes(
    lowered: LoweredModel,
    graph: fx.Graph,
    between: Callable[[tvm.IRModule, tvm.IRModule], tuple[str, ...]],
) -> list[tuple[str, ...]]:
    """Return, for each node, the functions that differ between the modules before and after it.

    `between`: returns the functions that differ between two modules. It is called for the last node
        only: the additions of the others are known.
    """
    changes: list[tuple[str, ...]] = []
    seen: set[str] = set()
    parts = list(_parts(lowered, graph))
    for node, before, after in zip(graph.nodes, parts[:-1], parts[1:], strict=True):
        main = ("main",) if _differs(before, after) else ()
        added = [name for name in lowered.nodes[node.name].functions if name not in seen]
        seen.update(added)
        changes.append((*main, *dict.fromkeys(map(str, added))))
    last = (module_prefix(lowered, graph, len(parts) - 2), lowered.module)
    return [*changes[:-1], between(*last)] if changes else []


def _differs(before: _Part, after: _Part) -> bool:
    if (before.bindings, len(before.params)) != (after.bindings, len(after.params)):
        return True
    if len(before.returned) != len(after.returned):
        return True
    # Constants with the same values have the same text.
    pairs = zip(before.returned, after.returned, strict=True)
    return not all(tvm_ffi.structural_equal(one, other) for one, other in pairs)


def _parts(lowered: LoweredModel, graph: fx.Graph) -> Iterator[_Part]:
    """Yield the content of ``main`` before the first node, and after each of them."""
    main = lowered.module["main"]
    bindings = _bindings(main)
    stand_ins = _arguments(lowered, main)
    given = len(main.params) - len(lowered.arguments)
    inputs, arguments = list(main.params)[:given], list(main.params)[given:]
    returned: tuple[Any, ...] = ()
    read: set[Any] = set()
    come = done = 0

    def part() -> _Part:
        leaving = set(returned)
        used = [each for each in arguments if each in read or each in leaving]
        return _Part(done, (*inputs[:come], *used), returned)

    yield part()
    for node in graph.nodes:
        known = lowered.nodes[node.name]
        come += node.op == "placeholder"
        for binding in bindings[done : done + len(known.bindings)]:
            read.update(free_vars(binding.value))
        done += len(known.bindings)
        leaves = tuple(leaves_of(known.value))
        if leaves:
            returned = tuple(stand_ins.get(each, each) for each in leaves)
        yield part()


def _bindings(main: Any) -> list[Any]:
    return [binding for block in main.body.blocks for binding in block.bindings]


def _function(main: Any, bindings: Sequence[Any], part: _Part) -> Any:
    builder = relax.BlockBuilder()
    bound = {binding.var for binding in bindings}
    leaving = {value: relax.Var("gv", value.ty) for value in part.returned if value in bound}
    block = [*bindings, *(relax.VarBinding(var, value) for value, var in leaving.items())]
    results = [leaving.get(value, value) for value in part.returned]
    with builder.function("main", params=list(part.params), attrs=dict(main.attrs.items())):
        builder._end_block()
        if block:
            builder._func._blocks.append(relax.DataflowBlock(block))
        builder._begin_binding_block()
        builder.emit_func_output(results[0] if len(results) == 1 else relax.Tuple(results))
    return builder.get()["main"]


def _arguments(lowered: LoweredModel, main: Any) -> Mapping[Any, Any]:
    """Return the arguments of ``main`` that were constants, by constant."""
    return {
        lowered.arguments[variable.name].constant: variable
        for variable in main.params
        if variable.name in lowered.arguments
    }
