"""Lowering by parts of nodes that no rule covers as a whole."""

from __future__ import annotations

import contextlib
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import fx, nn
from torch._library.custom_ops import OPDEFS
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from tvm import ir, relax
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, functions_of
from lowerscope.core.lowering.complex_numbers import is_complex, rule_for
from lowerscope.core.lowering.library import Argument, content_of
from lowerscope.core.lowering.library_nodes import BoundCall, LibraryNodes, hinders_rules
from lowerscope.core.lowering.rule_table import RULES, Refused, Rule, functional_form
from lowerscope.core.lowering.types import Info, PartLowering, UsedRule
from lowerscope.core.lowering.values import (
    Dimensions,
    EncodedTensor,
    Value,
    dtype_of,
    held_as,
    held_type,
    is_tensor,
    numbers_of,
    shape_of,
    size_of,
    torch_dtype,
)
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.problems import last_line
from lowerscope.core.model.texts import _
from lowerscope.core.sources.opened_model import (
    padding_as_in_a_run,
    run_mode,
    without_compiling,
    without_logs,
)


def as_traced(
    builder: NodeBuilder, value: Value, shape: tuple[int | str, ...], dtype: str, *, written: bool
) -> Value:
    """Return `value`, checked to have the shape and dtype that torch computed.

    `written`: whether it is written into a tensor of that dtype, which casts it.

    Raises `Refused` if it has another shape or dtype.
    """
    if isinstance(value, EncodedTensor):
        held = held_type(shape, dtype)
        if held is None or value.dtype != dtype:
            raise Refused(
                _(
                    "its result would be {text}, where the model has {shape}",
                    text=value.dtype,
                    shape=dtype,
                )
            )
        made = as_traced(builder, value.value, *held, written=False)
        return value if made is value.value else replace(value, value=made)
    if is_tensor(value) and numbers_of(value.ty.shape) == shape and dtype_of(value) == dtype:
        return value
    dimensions = builder.dimensions
    if value is None:
        raise Refused(
            _(
                "its result would be {text}, where the model has {shape}",
                text=None,
                shape=_tensor_text(shape, dtype),
            )
        )
    if not is_tensor(value):
        return value
    if not dimensions.are_known(value):
        raise Refused(_("the shape of its result depends on the data"))
    if written and dtype_of(value) != dtype:
        value = builder.emit(op.astype(value, dtype))
    # The traced sizes are those of the example inputs where they depend on data.
    traced = shape_of(value) if dimensions.depend_on_data(value) else dimensions.shape(shape)
    if traced is None or (len(traced) != len(shape)):
        traced = dimensions.shape(shape)
    if traced is None:
        return value
    made = shape_of(value)
    if (
        dtype_of(value) != dtype
        or len(made) != len(traced)
        or any(map(dimensions.never_same, made, traced))
    ):
        text = _tensor_text(made, dtype_of(value))
        raise Refused(
            _(
                "its result would be {text}, where the model has {shape}",
                text=text,
                shape=_tensor_text(shape, dtype),
            )
        )
    if all(map(dimensions.same, made, traced)):
        return value
    # Checked at run time if it cannot be proved.
    return builder.match_cast(value, relax.TensorType(traced, dtype))


def check_members(value: Value, info: Info, dimensions: Dimensions) -> None:
    """Reject a tuple with a member of another shape or dtype than torch's."""
    if isinstance(value, (tuple, list)) and len(value) == len(info.items):
        for each, item in zip(value, info.items, strict=True):
            _check(each.ty if is_tensor(each) else None, item, dimensions)
    elif isinstance(value, ir.Expr) and isinstance(value.ty, relax.TupleType):
        for field, item in zip(value.ty.fields, info.items, strict=False):
            _check(field, item, dimensions)


def _check(field: Any, item: Info, dimensions: Dimensions) -> None:
    if not isinstance(field, relax.TensorType) or item.shape is None:
        return
    traced = dimensions.shape(item.shape)
    if not dimensions.is_known(field.shape):
        raise Refused(_("the shape of its result depends on the data"))
    if traced is None:
        return
    made, dtype = tuple(map(size_of, field.shape.values)), str(field.dtype.dtype)
    if (
        dtype != item.dtype
        or len(made) != len(traced)
        or any(map(dimensions.never_same, made, traced))
    ):
        expected = _tensor_text(item.shape, item.dtype)
        raise Refused(
            _(
                "a member would be {made}, and torch expects {expected}",
                made=_tensor_text(made, dtype),
                expected=expected,
            )
        )


def _tensor_text(shape: Sequence[object], dtype: str) -> str:
    return f"{shape_text(shape)} {dtype}"


MOST = 2000
"""Most operators of one call: an LSTM over a long sequence would compile for minutes."""

Type = tuple[Sequence[int], torch.dtype]


def decompose(
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    types: Sequence[Type],
    covered: Callable[[OpOverload, bool], bool],
) -> fx.GraphModule:
    """Return ``call(*args, **kwargs)`` as a graph of ATen operators.

    An operator without a rule often has rules for its parts: an LSTM consists of matrix products
    and elementwise operators.

    It has a placeholder for each tensor; every node but the output has its value, without memory,
    in ``meta["val"]``. Nothing in it changes a tensor in place.

    `args`, `kwargs`: with an `Argument` for each tensor.
    `types`: shape and dtype of each of these tensors.

    Raises `Refused` if the call cannot be traced without its tensors' values, or has too many
    operators.
    """
    recorder = _Recorder(covered)
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    own = getattr(call, "module", call)
    with (
        warnings.catch_warnings(),
        run_mode(own)(),
        padding_as_in_a_run(),
        _without_shortcuts(),
        without_compiling(),
        without_logs("torch._subclasses.fake_tensor"),  # of operators that fail without values
        fake,
    ):
        warnings.simplefilter("ignore")
        tensors = [
            recorder.placeholder(torch.empty(tuple(shape), dtype=dtype)) for shape, dtype in types
        ]

        def given(argument: Argument) -> torch.Tensor:
            tensor = tensors[argument.index]
            return held_as(tensor, argument.dtype) if argument.dtype else tensor

        try:
            with recorder:
                bound_args, bound_kwargs = pytree.tree_map_only(
                    Argument, given, (args, dict(kwargs))
                )
                result = call(*bound_args, **bound_kwargs)
        except Refused:
            raise
        except Exception as error:  # a user's module, or a decomposition, may raise any type
            raise Refused(
                _("it cannot be decomposed: {name}", name=type(error).__name__)
            ) from error
        return recorder.finish(result)


_EAGER = frozenset({"flex_attention"})
"""Operators of functions that their own kernel for the CPU computes with other operators."""


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Mode that records the called operators in a graph, with uncovered ones decomposed."""

    supports_higher_order_operators = True

    def __init__(self, covered: Callable[[OpOverload, bool], bool]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._covered = covered
        self._graph = fx.Graph()
        self._constants: dict[str, torch.Tensor] = {}
        # By identity; the tensors are kept, so that their addresses are not reused.
        self._nodes: dict[int, tuple[torch.Tensor, fx.Node]] = {}
        self._stale: set[int] = set()
        self._count = 0

    def placeholder(self, tensor: torch.Tensor) -> torch.Tensor:
        node = self._graph.placeholder(f"input_{len(self._nodes)}")
        node.meta["val"] = tensor
        self._nodes[id(tensor)] = (tensor, node)
        return tensor

    def finish(self, result: Any) -> fx.GraphModule:
        self._graph.output(pytree.tree_map_only(torch.Tensor, self._node_of, result))
        self._graph.eliminate_dead_code()
        return fx.GraphModule(self._constants, self._graph)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        eager = getattr(func, "py_kernels", {}).get(_COMPOSITE)
        if isinstance(func, HigherOrderOperator) and str(func) in _EAGER and eager is not None:
            with self:
                return eager(*args, **kwargs)
        if not isinstance(func, OpOverload):
            raise Refused(_("it calls {func}", func=func))
        if func.namespace == "prim":  # attributes, such as the device
            return func(*args, **kwargs)
        functional = _functional(func)
        if not self._covered(functional, any(map(_is_complex, pytree.tree_leaves((args, kwargs))))):
            decomposition = _decompositions().get(func)
            if decomposition is not None:
                with self:
                    value = decomposition(*args, **kwargs)
                if value is not NotImplemented:
                    return value
            elif func._can_decompose():
                with self:
                    value = func.decompose(*args, **kwargs)
                if value is not NotImplemented:
                    return value
            elif _is_composite(func):
                with self:
                    return func._op_dk(_COMPOSITE, *args, **kwargs)
        value = func(*args, **kwargs)
        if func not in _WITHOUT_VALUE and any(
            isinstance(each, torch.Tensor) for each in pytree.tree_leaves(value)
        ):
            self._record(func, functional, args, kwargs, value)
        return value

    def _record(
        self,
        func: OpOverload,
        functional: OpOverload,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        value: Any,
    ) -> None:
        self._count += 1
        if self._count > MOST:
            raise Refused(_("it consists of more than {most} operators", most=MOST))
        changes = func._schema.is_mutable
        if changes and functional is func:
            raise Refused(_("{func} changes its arguments", func=func))
        node_args, node_kwargs = pytree.tree_map_only(torch.Tensor, self._node_of, (args, kwargs))
        name = functional._schema.name.rpartition("::")[2]
        node = self._graph.create_node("call_function", functional, node_args, node_kwargs, name)
        node.meta["val"] = value
        if changes:
            self._mark_views(args[0])
            # A written value takes the dtype of its destination.
            node.meta["written"] = True
            self._nodes[id(args[0])] = (args[0], node)
        if isinstance(value, torch.Tensor):
            self._nodes[id(value)] = (value, node)
            return
        for index, item in enumerate(value):
            if isinstance(item, torch.Tensor):
                member = self._graph.call_function(_GETITEM, (node, index))
                member.meta["val"] = item
                self._nodes[id(item)] = (item, member)

    def _mark_views(self, changed: torch.Tensor) -> None:
        """Record the other tensors that view memory changed in place."""
        storage = changed.untyped_storage()._cdata
        for tensor, _other in self._nodes.values():
            shared = tensor is not changed and tensor.untyped_storage()._cdata == storage
            if shared and _overlap(tensor, changed):
                self._stale.add(id(tensor))

    def _node_of(self, tensor: torch.Tensor) -> fx.Node:
        if id(tensor) in self._stale:
            raise Refused(_("it reads a tensor that it has changed through a view"))
        known = self._nodes.get(id(tensor))
        if known is not None:
            return known[1]
        constant = tensor.constant if isinstance(tensor, FakeTensor) else tensor
        if constant is None:
            raise Refused(_("it reads a tensor that is not among its arguments"))
        name = f"constant_{len(self._constants)}"
        self._constants[name] = constant
        node = self._graph.create_node("get_attr", name)
        node.meta["val"] = tensor
        self._nodes[id(tensor)] = (tensor, node)
        return node


def _is_complex(value: Any) -> bool:
    return value.is_complex() if isinstance(value, torch.Tensor) else is_complex(value)


_GETITEM = operator.getitem
_WITHOUT_VALUE = frozenset({torch.ops.aten._assert_tensor_metadata.default})


def _overlap(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors of one storage share elements."""
    if first.dtype != second.dtype:
        return True
    places = [_places(each) for each in (first, second)]
    return bool(np.isin(*places).any())


def _places(tensor: torch.Tensor) -> Any:
    """Return the storage positions of a tensor's elements."""
    places = np.array(tensor.storage_offset())
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        places = places[..., None] + np.arange(size) * stride
    return places.ravel()


@cache
def _decompositions() -> Mapping[OpOverload, Callable[..., Any]]:
    table = torch.export.default_decompositions()
    return dict(table.items())  # type: ignore[no-untyped-call]


_COMPOSITE = torch._C.DispatchKey.CompositeExplicitAutograd


@cache
def _is_composite(func: OpOverload) -> bool:
    """Return whether an operator of a library is written with other operators of torch.

    A ``torch.library.custom_op`` is opaque on purpose.
    """
    if func.namespace in ("aten", "prims") or func._schema.name in OPDEFS:
        return False
    name = ".".join(filter(None, (func._schema.name, func._schema.overload_name)))
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, _COMPOSITE))


@cache
def _functional(func: OpOverload) -> OpOverload:
    """Return the functional form of `func`; `func` itself if there is none."""
    found = functional_form(func)
    return func if found is None else found


@contextlib.contextmanager
def _without_shortcuts() -> Iterator[None]:
    """Disable torch's fused operators for whole layers, which have no rules."""
    fast, onednn = torch.backends.mha.get_fastpath_enabled(), torch._C._get_mkldnn_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        torch._C._set_mkldnn_enabled(onednn)


_KEPT: WeakKeyDictionary[nn.Module, dict[Any, fx.GraphModule | str]] = WeakKeyDictionary()
"""Cache by traced graph of the decompositions of its calls, or the reasons why they fail."""


NUMBERS_ONLY = _("no rule covers it as a whole, and it is decomposed only where shapes are numbers")
"""Reason why a node with named dimensions is not lowered in parts."""


class Parts:
    """Lowering of one graph's nodes in parts."""

    def __init__(self, builder: NodeBuilder, library: LibraryNodes, root: fx.GraphModule) -> None:
        self._builder = builder
        self._library = library
        self._graphs = _KEPT.setdefault(root, {})

    def lower(
        self,
        node: fx.Node,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        checked: Callable[[Value], Value],
    ) -> tuple[Value, tuple[PartLowering, ...]]:
        """Lower one node of the graph; the builder has its bindings as those of the node.

        The value is a tensor, or a nest of tuples of tensors and ``None``.

        `checked`: returns the value in the form of the node, or rejects it.

        Raises `Refused` if it cannot be decomposed into operators that are covered by rules.
        """
        builder = self._builder
        stayed = set(builder.not_legalised)
        builder.discard_node()
        kept, _other = builder.end_node()
        try:
            bound = self._library.bind(node, args, kwargs)
            graph_module = self._graph_of(bound)
            value, parts, bindings = self._lower_all(node, graph_module, bound)
            value = checked(value)
            builder.restore([*kept, *bindings])
            return value, parts
        except Exception as error:  # TVM raises many types for failed inference
            builder.discard_node()
            builder.restore(kept)
            builder.not_legalised = stayed
            if isinstance(error, Refused):
                raise
            raise Refused(last_line(error)) from error

    def _graph_of(self, bound: BoundCall) -> fx.GraphModule:
        """Return the decomposition of a call, cached for equal calls."""
        shapes = [shape_of(tensor) for tensor in bound.tensors]
        if bound.sizes or not all(isinstance(extent, int) for each in shapes for extent in each):
            raise Refused(NUMBERS_ONLY)
        types = [(shape_of(each), torch_dtype(dtype_of(each))) for each in bound.tensors]
        key = (bound.key, content_of(bound.args), content_of(bound.kwargs), tuple(types))
        if key not in self._graphs:
            try:
                self._graphs[key] = decompose(
                    bound.make(), bound.args, bound.kwargs, types, _is_covered
                )
            except Refused as refusal:
                self._graphs[key] = str(refusal)
        graph_module = self._graphs[key]
        if isinstance(graph_module, str):
            raise Refused(graph_module)
        return graph_module

    def _lower_all(
        self, node: fx.Node, graph_module: fx.GraphModule, call: BoundCall
    ) -> tuple[Value, tuple[PartLowering, ...], list[Any]]:
        env: dict[fx.Node, Value] = {}
        parts: list[PartLowering] = []
        bindings: list[Any] = []
        names: dict[fx.Node, str] = {}
        inputs = zip(_names_of(node, call), call.tensors, strict=True)
        for part in graph_module.graph.nodes:
            if part.op == "placeholder":
                names[part], env[part] = next(inputs)
            elif part.op == "get_attr":
                env[part] = self._library.constant(getattr(graph_module, str(part.target)))
            elif part.op == "output":
                return _values_of(part.args[0], env), tuple(parts), bindings
            else:
                env[part], rule = self._lower_part(part, env)
                bound, emitted = self._builder.end_node()
                bindings.extend(bound)
                if part.target is not operator.getitem or bound:
                    parts.append(_record(part, rule, emitted, bound, names))
        raise AssertionError("a graph without an output")

    def _lower_part(self, part: fx.Node, env: Mapping[fx.Node, Value]) -> tuple[Value, UsedRule]:
        args, kwargs = _values_of(part.args, env), _values_of(part.kwargs, env)
        if part.target is operator.getitem:
            member = RULES[operator.getitem]
            return member.lower(self._builder, *args), _used(member)
        hindrance = hinders_rules(args, kwargs, self._builder.dimensions)
        rule = rule_for(part.target, args, kwargs)
        if hindrance or rule is None:
            raise Refused(hindrance or _("no relax operator for {target}", target=part.target))
        value = rule.apply(self._builder, args, kwargs)
        expected = part.meta["val"]
        if isinstance(expected, torch.Tensor):
            shape, dtype = tuple(expected.shape), _name(expected.dtype)
            value = as_traced(
                self._builder, value, shape, dtype, written=part.meta.get("written", False)
            )
        return value, _used(rule)


def _used(rule: Rule) -> UsedRule:
    return UsedRule("built-in", rule.name, rule.lower)


def _is_covered(target: OpOverload, takes_complex: bool) -> bool:
    return rule_for(target, [1j] if takes_complex else [], {}) is not None


def _record(
    part: fx.Node,
    rule: UsedRule,
    emitted: tuple[str, ...],
    bindings: list[Any],
    names: Mapping[fx.Node, str],
) -> PartLowering:
    value = part.meta["val"]
    tensor = value if isinstance(value, torch.Tensor) else None
    return PartLowering(
        name=part.name,
        target="getitem" if part.target is operator.getitem else str(part.target),
        args=_arguments(part, names),
        shape=None if tensor is None else tuple(tensor.shape),
        dtype="" if tensor is None else _name(tensor.dtype),
        rule=f"{rule.name}: {', '.join(emitted)}" if emitted else rule.name,
        bindings=tuple(binding.var.name for binding in bindings),
        functions=functions_of(bindings),
        used=rule,
    )


def _names_of(node: fx.Node, call: BoundCall) -> list[str]:
    """Return the names of a call's tensors: parameters of its module, and nodes."""
    names = list(call.args[0]) if node.op == "call_module" else []
    fx.node.map_arg((node.args, node.kwargs), lambda each: names.append(each.name))
    if len(names) == len(call.tensors):
        return names
    # A tuple argument stands for several tensors.
    return [getattr(tensor, "name", "constant") for tensor in call.tensors]


def _arguments(part: fx.Node, names: Mapping[fx.Node, str]) -> str:
    """Return the text of a part's arguments, without those that have no effect."""
    named = [
        f"{key}={_argument_text(value, names)}"
        for key, value in part.kwargs.items()
        if value is not None and key not in ("device", "pin_memory", "layout")
    ]
    return ", ".join([*(_argument_text(each, names) for each in part.args), *named])


def _argument_text(argument: Any, names: Mapping[fx.Node, str]) -> str:
    if isinstance(argument, fx.Node):
        return names.get(argument, argument.name)
    if isinstance(argument, (tuple, list)):
        return f"[{', '.join(_argument_text(each, names) for each in argument)}]"
    return str(argument).removeprefix("torch.")


def _values_of(argument: Any, env: Mapping[fx.Node, Value]) -> Any:
    if isinstance(argument, fx.Node):
        return env[argument]
    if isinstance(argument, (tuple, list)):
        return type(argument)(_values_of(each, env) for each in argument)
    if isinstance(argument, dict):
        return {key: _values_of(each, env) for key, each in argument.items()}
    return argument


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
