"""Lowering by parts of nodes that no rule covers as a whole."""

from __future__ import annotations

import contextlib
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import fx, nn
from torch._dispatch.python import enable_python_dispatcher
from torch._library.custom_ops import OPDEFS
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from tvm import ir, relax
from tvm.relax import op

from lowerscope.core.lowering.builder import NodeBuilder, functions_of
from lowerscope.core.lowering.complex_numbers import is_complex, rule_for
from lowerscope.core.lowering.library import Argument, Size, content_of
from lowerscope.core.lowering.library_nodes import BoundCall, LibraryNodes, hinders_rules
from lowerscope.core.lowering.rule_table import RULES, Refused, Rule, functional_form
from lowerscope.core.lowering.torch_operators import OF_SHAPE_ALONE, callee_name
from lowerscope.core.lowering.types import Info, PartLowering, UsedRule
from lowerscope.core.lowering.values import (
    Dimensions,
    EncodedTensor,
    Value,
    dtype_of,
    held_as,
    held_type,
    is_tensor,
    leaves,
    numbers_of,
    shape_of,
    size_from,
    size_of,
    size_text,
    torch_dtype,
)
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.problems import last_line
from lowerscope.core.model.texts import _
from lowerscope.core.sources.opened_model import (
    run_mode,
    transformers_as_in_a_run,
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


_BY_INDEX = frozenset(
    {
        *("getitem", "index", "index_select", "index_add", "index_put", "index_copy", "index_fill"),
        *("gather", "scatter", "scatter_add", "scatter_reduce", "take", "embedding", "one_hot"),
        "masked_scatter",
    }
)
"""Operators that read an axis by index, and so compute nothing of one without elements."""


def check_reduced(operator: str, arguments: Any, value: Value, dimensions: Dimensions) -> None:
    """Reject a reduction over an axis that may have no element: TensorIR would not set its result.

    Raises `Refused` if an extent of data is in the shapes of `arguments` and not in `value`'s.
    """
    if operator in _BY_INDEX | OF_SHAPE_ALONE:
        return
    read = [each for each in leaves(arguments) if is_tensor(each)]
    if any(map(dimensions.depend_on_data, read)) and any(map(is_tensor, leaves(value))):
        results = [each for each in leaves(value) if is_tensor(each)]
        made = {each for one in results for each in dimensions.data_in(one)}
        lost = {each for one in read for each in dimensions.data_in(one)} - made
        if not lost:
            return
        if not all(map(dimensions.are_known, results)):
            # Of another size, an axis of 1 would be broadcast.
            raise Refused(_("it is not known whether sizes that depend on the data are equal"))
        raise Refused(_("it reduces an axis that may be empty, as its size depends on the data"))


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
"""Most operators of one call: one over a long sequence would compile for minutes."""

Type = tuple[Sequence[int | str], torch.dtype]


@dataclass(frozen=True)
class NamedSize:
    """A size among the arguments of a part, as an expression of names."""

    text: str

    def __str__(self) -> str:
        return self.text


class _Sizes:
    """Named sizes as symbolic sizes of torch.

    `mode`: mode in which tensors have them, and no memory.
    """

    def __init__(self, ranges: Mapping[str, tuple[int, int]]) -> None:
        self._ranges = ranges
        if not ranges:
            self.mode: Any = FakeTensorMode(allow_non_fake_inputs=True)
            return
        # Imported here since it takes seconds, and few models need it.
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        from lowerscope.core.sources.symbolic_extents import SymbolicMode, new_extent, symbol_of

        self._environment = ShapeEnv()
        self.mode = SymbolicMode(shape_env=self._environment, allow_non_fake_inputs=True)
        self._extents: dict[str, torch.SymInt] = {}
        for (name, (low, high)), hint in zip(ranges.items(), _HINTS, strict=False):
            span = (low, max(high, 2))
            self._extents[name] = new_extent(self._environment, name, min(hint, span[1]), span)
        if len(self._extents) < len(ranges):
            raise Refused(_("it has more than {most} named sizes", most=len(_HINTS)))
        self._names = {extent.node.expr: symbol_of(name) for name, extent in self._extents.items()}

    def extent(self, size: int | str) -> int | torch.SymInt:
        """Return a size for torch."""
        if isinstance(size, int):
            return size
        extent: int | torch.SymInt = size_from(size, self._extents)
        return extent

    def text(self, size: int | torch.SymInt) -> int | str:
        """Return a size of torch's as an expression of the names."""
        if isinstance(size, int):
            return size
        from lowerscope.core.sources.symbolic_extents import named_text

        return named_text(size, self._names)

    def argument(self, value: Any) -> Any:
        """Return an argument of a part, with a `NamedSize` for a size of torch's."""
        if isinstance(value, torch.SymInt):
            text = self.text(value)
            return int(text) if str(text).isdigit() else NamedSize(str(text))
        if isinstance(value, torch.SymFloat | torch.SymBool):
            raise Refused(_("it computes numbers that are no integers from sizes"))
        return value

    def check(self) -> None:
        """Reject a call of which the operators are not the same for all sizes."""
        if not self._ranges:
            return
        from lowerscope.core.sources.symbolic_extents import always_holds

        for guard in self._environment.guards:
            if not always_holds(guard.expr.xreplace(self._names), self._ranges):
                raise Refused(SAME_FOR_ALL)


_HINTS = (37, 41, 43, 47, 53, 59, 61, 67)
"""Sizes of named dimensions at which torch's own conditions are decided."""

SAME_FOR_ALL = _("no rule covers it as a whole, and its operators are not the same for all sizes")
"""Reason why a node with named dimensions is not lowered in parts."""


def decompose(
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    types: Sequence[Type],
    covered: Callable[[OpOverload, bool], bool],
    sizes: Sequence[int | str] = (),
    ranges: Mapping[str, tuple[int, int]] | None = None,
) -> fx.GraphModule:
    """Return ``call(*args, **kwargs)`` as a graph of ATen operators.

    An operator without a rule often has rules for its parts: attention consists of matrix products
    and a softmax.

    It has a placeholder for each tensor; every node but the output has its value, without memory,
    in ``meta["val"]``, and a tensor's shape in ``meta["shape"]``. Nothing in it changes a tensor in
    place.

    `args`, `kwargs`: with an `Argument` for each tensor, and a `Size` for each size.
    `types`: shape and dtype of each of these tensors; an extent may be an expression of names.
    `sizes`: these sizes.
    `ranges`: smallest and largest size of each name.

    Raises `Refused` if the call cannot be traced without its tensors' values, has too many
    operators, or others at some sizes.
    """
    symbolic = _Sizes(ranges or {})
    recorder = _Recorder(covered, symbolic)
    own = getattr(call, "module", call)
    with (
        warnings.catch_warnings(),
        run_mode(own)(),
        transformers_as_in_a_run(),
        _without_shortcuts(),
        without_compiling(),
        # Of operators that fail without values.
        without_logs("torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes"),
        symbolic.mode,
        # Torch's own code of composite operators in C++ reads sizes as numbers.
        enable_python_dispatcher() if ranges else contextlib.nullcontext(),
    ):
        warnings.simplefilter("ignore")
        tensors = [
            recorder.placeholder(torch.empty([*map(symbolic.extent, shape)], dtype=dtype))
            for shape, dtype in types
        ]

        def given(argument: Argument | Size) -> Any:
            if isinstance(argument, Size):
                return symbolic.extent(sizes[argument.index])
            tensor = tensors[argument.index]
            return held_as(tensor, argument.dtype) if argument.dtype else tensor

        try:
            with recorder:
                bound_args, bound_kwargs = pytree.tree_map_only(
                    (Argument, Size), given, (args, dict(kwargs))
                )
                result = call(*bound_args, **bound_kwargs)
        except Refused:
            raise
        except Exception as error:  # a user's module, or a decomposition, may raise any type
            symbolic.check()
            raise Refused(
                _("it cannot be decomposed: {name}", name=type(error).__name__)
            ) from error
        symbolic.check()
        return recorder.finish(result)


_EAGER = frozenset({"flex_attention"})
"""Operators of functions that their own kernel for the CPU computes with other operators."""


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Mode that records the called operators in a graph, with uncovered ones decomposed."""

    supports_higher_order_operators = True

    def __init__(self, covered: Callable[[OpOverload, bool], bool], sizes: _Sizes) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._covered = covered
        self._sizes = sizes
        self._graph = fx.Graph()
        self._constants: dict[str, torch.Tensor] = {}
        # By identity; the tensors are kept, so that their addresses are not reused.
        self._nodes: dict[int, tuple[torch.Tensor, fx.Node]] = {}
        self._stale: set[int] = set()
        self._count = 0

    def placeholder(self, tensor: torch.Tensor) -> torch.Tensor:
        node = self._graph.placeholder(f"input_{len(self._nodes)}")
        self._note(node, tensor)
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
        elif func._schema.is_mutable:
            raise Refused(_("{func} changes its arguments", func=func))
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
        node_args, node_kwargs = pytree.tree_map(self._argument_of, (args, kwargs))
        name = functional._schema.name.rpartition("::")[2]
        node = self._graph.create_node("call_function", functional, node_args, node_kwargs, name)
        node.meta["val"] = value
        if changes:
            self._mark_views(args[0])
            # A written value takes the dtype of its destination.
            node.meta["written"] = True
            self._nodes[id(args[0])] = (args[0], node)
        if isinstance(value, torch.Tensor):
            self._note(node, value)
            return
        for index, item in enumerate(value):
            if isinstance(item, torch.Tensor):
                self._note(self._graph.call_function(_GETITEM, (node, index)), item)

    def _note(self, node: fx.Node, tensor: torch.Tensor) -> None:
        node.meta["val"] = tensor
        node.meta["shape"] = tuple(map(self._sizes.text, tensor.shape))
        self._nodes[id(tensor)] = (tensor, node)

    def _argument_of(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._node_of(value)
        return self._sizes.argument(value)

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
        self._note(node, tensor)
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
    places = np.array(_number(tensor.storage_offset()))
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        places = places[..., None] + np.arange(_number(size)) * _number(stride)
    return places.ravel()


def _number(size: int | torch.SymInt) -> int:
    return int(size.node.hint) if isinstance(size, torch.SymInt) else size


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
        shapes = [tuple(map(_name_of, shape_of(each))) for each in bound.tensors]
        sizes = tuple(map(_name_of, bound.sizes))
        extents = [size for each in bound.tensors for size in shape_of(each)]
        ranges = self._builder.dimensions.ranges_in([*extents, *bound.sizes])
        dtypes = [torch_dtype(dtype_of(each)) for each in bound.tensors]
        types = list(zip(shapes, dtypes, strict=True))
        content = (content_of(bound.args), content_of(bound.kwargs))
        key = (bound.key, *content, tuple(types), sizes, tuple(ranges.items()))
        if key not in self._graphs:
            try:
                self._graphs[key] = decompose(
                    bound.make(), bound.args, bound.kwargs, types, _is_covered, sizes, ranges
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
                return self._values_of(part.args[0], env), tuple(parts), bindings
            else:
                env[part], rule = self._lower_part(part, env)
                bound, emitted = self._builder.end_node()
                bindings.extend(bound)
                if part.target is not operator.getitem or bound:
                    parts.append(_record(part, rule, emitted, bound, names))
        raise AssertionError("a graph without an output")

    def _lower_part(self, part: fx.Node, env: Mapping[fx.Node, Value]) -> tuple[Value, UsedRule]:
        args, kwargs = (self._values_of(each, env) for each in (part.args, part.kwargs))
        if part.target is operator.getitem:
            member = RULES[operator.getitem]
            return member.lower(self._builder, *args), _used(member)
        hindrance = hinders_rules(args, kwargs, self._builder.dimensions)
        rule = rule_for(part.target, args, kwargs)
        if hindrance or rule is None:
            raise Refused(hindrance or _("no relax operator for {target}", target=part.target))
        value = rule.apply(self._builder, args, kwargs)
        check_reduced(callee_name(part.target), (args, kwargs), value, self._builder.dimensions)
        expected = part.meta["val"]
        if isinstance(expected, torch.Tensor):
            shape, dtype = part.meta["shape"], _name(expected.dtype)
            value = as_traced(
                self._builder, value, shape, dtype, written=part.meta.get("written", False)
            )
        return value, _used(rule)

    def _values_of(self, argument: Any, env: Mapping[fx.Node, Value]) -> Any:
        if isinstance(argument, fx.Node):
            return env[argument]
        if isinstance(argument, NamedSize):
            return self._builder.dimensions.extent(argument.text)
        if isinstance(argument, (tuple, list)):
            return type(argument)(self._values_of(each, env) for each in argument)
        if isinstance(argument, dict):
            return {key: self._values_of(each, env) for key, each in argument.items()}
        return argument


def _name_of(size: Any) -> int | str:
    try:
        return size if isinstance(size, int) else size_text(size)
    except KeyError:
        raise Refused(_("it has a size that torch cannot express")) from None


def _used(rule: Rule) -> UsedRule:
    return UsedRule("built-in", rule.name, rule.lower)


def _is_covered(target: OpOverload, takes_complex: bool) -> bool:
    if target is torch.ops.aten.lstm.input:
        # Its rule takes none with projections, which have other parts.
        return False
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
        shape=None if tensor is None else part.meta["shape"],
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


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
