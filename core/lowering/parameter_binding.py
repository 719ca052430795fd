"""Conversion of a model's parameters from constants to arguments of ``main``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
import tvm
from torch import fx
from tvm import ir, relax

from lowerscope.core.lowering.builder import memory_of
from lowerscope.core.lowering.types import LoweredModel, NamedConstant
from lowerscope.core.sources.pytree import identifier


def constants_of(function: Any) -> tuple[Any, ...]:
    """Return the constants that a Relax function reads, each once, in order."""
    found: dict[Any, None] = {}

    def visit(expression: Any) -> None:
        # Compare exact types: TVM's classes are abstract in Python, and `isinstance` is slow.
        if type(expression) is ir.GenericConst:
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
