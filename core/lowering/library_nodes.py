"""The library strategy: lowers a node to a call of torch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree
from tvm import ir, relax
from tvm_ffi import structural_equal

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.library import Argument, Call, LibraryFunctions, Size, content_of
from lowerscope.core.lowering.rule_table import Missing, Refused, constant
from lowerscope.core.lowering.torch_operators import (
    bare_name,
    has_shape_from_data,
    is_random,
    operator_name,
)
from lowerscope.core.lowering.types import Info
from lowerscope.core.lowering.values import (
    BYTES,
    COMPLEX,
    Dimensions,
    EncodedTensor,
    Value,
    dtype_of,
    extents_of,
    held_type,
    is_dtype,
    is_size,
    is_tensor,
    leaves,
    torch_dtype,
)
from lowerscope.core.model.texts import _
from lowerscope.core.sources.opened_model import uses_gradients

_STATE = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")
_HOOKS = "_hooks"
_SIZES: dict[type[nn.Module], tuple[str, ...]] = {
    nn.Linear: ("in_features", "out_features"),
    **dict.fromkeys((nn.Conv1d, nn.Conv2d, nn.Conv3d), ("in_channels", "out_channels")),
    **dict.fromkeys((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d), ("num_features",)),
    nn.Embedding: ("num_embeddings", "embedding_dim"),
}
"""Attributes that the parameters' shapes imply, and that ``forward`` does not read."""


def tensors_of(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return the parameters and buffers of a module by name, each once."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


class ModuleCall:
    """The ``forward`` of a module with its parameters and buffers as arguments.

    It holds a copy of the module without weights, so that it neither changes with the user's module
    nor keeps its memory.
    """

    def __init__(self, module: nn.Module) -> None:
        self.trained: frozenset[str] = frozenset()
        """Names of the parameters of which it may compute gradients."""
        if not takes_tensors(module):
            self.module = module
            return
        memory: dict[int, Any] = {}
        for parameter in module.parameters():
            empty = nn.Parameter(parameter.detach().to("meta"), requires_grad=False)
            memory[id(parameter)] = empty
        for buffer in module.buffers():
            memory[id(buffer)] = buffer.detach().to("meta")
        for each in module.modules():
            # As the weight that a hook makes of parameters; torch copies none with a gradient.
            for value in vars(each).values():
                if isinstance(value, torch.Tensor) and not value.is_leaf:
                    memory[id(value)] = value.detach().clone()
        self.module = copy.deepcopy(module, memory)
        self._places = list(_places(self.module))
        if uses_gradients(module):
            self.trained = frozenset(
                name for name, each in module.named_parameters() if each.requires_grad
            )

    def __call__(self, tensors: dict[str, torch.Tensor], *args: Any, **kwargs: Any) -> Any:
        """Return what the module returns with `tensors` as its parameters and buffers."""
        if not tensors:
            return self.module(*args, **kwargs)
        tensors = {
            name: each.detach().requires_grad_() if name in self.trained else each
            for name, each in tensors.items()
        }
        # As torch.func.functional_call, which looks for the places and for tied tensors each time.
        empty = [held[key] for held, key, _name in self._places]
        for held, key, name in self._places:
            held[key] = tensors[name]
        try:
            return self.module(*args, **kwargs)
        finally:
            for (held, key, _name), each in zip(self._places, empty, strict=True):
                held[key] = each


def _places(module: nn.Module) -> Iterator[tuple[Any, Any, str]]:
    """Yield each place of a parameter or buffer: dict or list, key, and the name in `tensors_of`.

    The model may hold some in attributes of its own too.
    """
    names = {id(each): name for name, each in tensors_of(module).items()}
    for each in module.modules():
        own = vars(each)
        for held in (own, *(value for value in own.values() if isinstance(value, dict | list))):
            for key, value in held.items() if isinstance(held, dict) else enumerate(held):
                if id(value) in names:
                    yield held, key, names[id(value)]


def takes_tensors(module: nn.Module) -> bool:
    """Return whether a module can be called with other tensors as its parameters and buffers."""
    return not any(isinstance(each, torch.jit.ScriptModule) for each in module.modules())


def content_of_module(module: nn.Module) -> tuple[Any, ...]:
    """Return a key that is equal for modules whose ``forward`` differs only by its tensors."""
    return tuple(_content(module))


def _content(module: nn.Module) -> Iterator[Any]:
    yield type(module)
    for name, value in sorted(vars(module).items()):
        if name in _STATE or name in _SIZES.get(type(module), ()):
            continue
        if name.endswith(_HOOKS):
            yield content_of(list(value.values()) if value else [])
        elif name not in _DERIVED:
            yield name, content_of(value)
    yield tuple(name for name, value in module._parameters.items() if value is not None)
    yield tuple(name for name, value in module._buffers.items() if value is not None)
    for name, child in module._modules.items():
        yield name
        if child is not None:
            yield from _content(child)


_DERIVED = ("_flat_weights", "_is_full_backward_hook")
"""Attributes that follow from the rest."""


def changes_buffers(module: nn.Module) -> bool:
    """Return whether the module may write into its buffers when it is called."""
    return module.training and next(module.buffers(), None) is not None


_NONE = "none"


def gives_tensors(info: Info) -> bool:
    """Return whether a node's value is a tensor, or a tuple of tensors and ``None``."""
    return has_tensors(info) and all(
        leaf.shape is not None or leaf.text == _NONE for leaf in _leaves(info)
    )


def has_tensors(info: Info) -> bool:
    """Return whether there is a tensor in a node's value."""
    return any(leaf.shape is not None for leaf in _leaves(info))


def hinders_rules(
    args: Any, kwargs: Any, dimensions: Dimensions, *, takes_encoded: bool = True
) -> str:
    """Return why only torch can take these values; empty if rules can."""
    for value in leaves([args, kwargs], slices=True):
        ruled = takes_encoded and (COMPLEX.keys() | BYTES)
        if isinstance(value, EncodedTensor) and not (ruled and value.dtype in ruled):
            return _("TVM has no {dtype}", dtype=value.dtype)
        if isinstance(value, Missing):
            return value.reason
        if is_tensor(value) and not dimensions.are_known(value):
            return _("the shape of its input depends on the data")
    return ""


def unknown_among(node: fx.Node, args: Any, kwargs: Any, dimensions: Dimensions) -> Missing | None:
    """Return a placeholder for a number that `node` would compute from a data-dependent shape.

    Reading it is an error, except in a check; ``None`` if the number is known.
    """
    for value in leaves([args, kwargs], slices=True):
        if isinstance(value, Missing):
            return value
        if is_tensor(value) and not dimensions.are_known(value):
            return Missing(_("{name} is known only when the model runs", name=node.name))
    return None


@dataclass(frozen=True)
class BoundCall:
    """The call that a node makes.

    `key`: Equal for nodes that make the same call.
    `args`, `kwargs`: with an `Argument` for each tensor, parameters of a module included, and a
        `Size` for each size of a named dimension.
    `changes_buffers`: whether it may write into buffers of the module that it calls.
    """

    key: Any
    make: Callable[[], Call]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: list[Value]
    sizes: list[Any]
    changes_buffers: bool


class LibraryNodes:
    """Lowering of one graph's nodes to calls of library functions."""

    def __init__(
        self, builder: NodeBuilder, modules: Mapping[str, nn.Module], engine: str = "torch"
    ) -> None:
        self.functions = LibraryFunctions(engine)
        self._builder = builder
        self._modules = modules
        # The number of true elements of each mask that was counted.
        self._counts: list[tuple[Value, Any]] = []

    def lower(
        self,
        node: fx.Node,
        info: Info,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        mutates: bool,
    ) -> tuple[Value, str]:
        """Lower one node to a tensor, or a nest of tuples of tensors and ``None``.

        `mutates`: whether it changes tensors among its arguments.

        Raises `Refused` if an argument or a result has an unsupported type.
        """
        tensors = [leaf for leaf in _leaves(info) if leaf.shape is not None]
        from_data = self._has_shape_from_data(node, args, kwargs) or any(
            self._builder.dimensions.shape(leaf.shape or ()) is None for leaf in tensors
        )
        bound = self.bind(node, args, kwargs)
        # Equal calls may share a function; random ones must not.
        key = (bound.key, node.name) if is_random(node, self._modules) else bound.key
        name = self.functions.name_for(
            operator_name(node, self._modules),
            key,
            bound.make,
            bound.args,
            bound.kwargs,
            len(bound.tensors),
            copies=mutates or bound.changes_buffers,
            returns=from_data,
            sized=bool(bound.sizes),
        )
        sizes = [relax.ShapeExpr(bound.sizes)] if bound.sizes else []
        given = [*bound.tensors, *sizes]
        results = (
            self._call_for_data(
                node,
                name,
                given,
                tensors,
                self._shapes_by_torch(node, name, bound, args),
                self._counted(node, args, kwargs),
            )
            if from_data
            else self._call_into(node, name, given, tensors)
        )
        value = _nest(info, results)
        if isinstance(node.target, type) and issubclass(node.target, tuple):
            # A named tuple, such as a packed sequence: what it is passed to knows it by its class.
            value = node.target._make(value)  # type: ignore[attr-defined]
        return value, name

    def bind(self, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundCall:
        """Return the call that `node` makes, with its tensors separated from other arguments.

        Raises `Refused` if an argument has an unsupported type.
        """
        key: Any = node.target
        changes = False
        if node.op == "call_module":
            module = self._modules[str(node.target)]
            changes = changes_buffers(module)
            held = tensors_of(module) if takes_tensors(module) else {}
            state = {name: self.constant(each) for name, each in held.items()}
            args, key = (state, *args), content_of_module(module)
        tensors: list[Value] = []
        sizes: list[Any] = []
        bound_args, bound_kwargs = self._bind((args, kwargs), tensors, sizes)
        call = partial(self._call_of, node)
        return BoundCall(key, call, bound_args, bound_kwargs, tensors, sizes, changes)

    def constant(self, tensor: torch.Tensor) -> Value:
        """Return one of the model's tensors as a constant, encoded if TVM lacks its dtype."""
        return constant(self._builder, tensor)

    def _call_of(self, node: fx.Node) -> Call:
        if node.op == "call_module":
            return ModuleCall(self._modules[str(node.target)])
        if isinstance(node.target, str):
            return MethodCall(node.target)
        return node.target

    def _has_shape_from_data(
        self, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        if has_shape_from_data(node, self._modules, args, _is_mask, is_tensor):
            return True
        if "varies" in node.meta:
            return any(map(any, node.meta["varies"]))
        if _is_recorded(node):
            # By torch.export, so an extent that depends on data is a symbol.
            return False
        return any(
            (is_tensor(value) and self._builder.dimensions.depend_on_data(value))
            or (is_size(value) and self._builder.dimensions.is_of_data(value))
            for value in leaves([args, kwargs], slices=True)
        )

    def _bind(self, value: Any, tensors: list[Value], sizes: list[Any]) -> Any:
        """Return `value` with an `Argument` for each tensor, which is added to `tensors`.

        Sizes of named dimensions are replaced in the same way.
        """
        if is_tensor(value):
            return _argument(tensors, value)
        if isinstance(value, EncodedTensor):
            return _argument(tensors, value.value, value.dtype)
        if isinstance(value, ir.Expr) and isinstance(value.ty, relax.TupleType):
            fields = range(len(value.ty.fields))
            return tuple(
                self._bind(self._builder.emit(value[each]), tensors, sizes) for each in fields
            )
        if isinstance(value, Missing):
            raise Refused(value.reason)
        if is_size(value):
            sizes.append(value)
            return Size(len(sizes) - 1)
        if isinstance(value, ir.Expr):
            raise Refused(_("an argument is a {name}", name=type(value).__name__))
        if isinstance(value, tuple) and hasattr(value, "_make"):
            return value._make(self._bind(each, tensors, sizes) for each in value)
        if isinstance(value, list) or type(value) is tuple:
            # torch.fx has a class of lists, and one of dicts, of its own.
            kind = list if isinstance(value, list) else tuple
            return kind(self._bind(each, tensors, sizes) for each in value)
        if isinstance(value, dict):
            return {key: self._bind(each, tensors, sizes) for key, each in value.items()}
        if isinstance(value, slice):
            parts = (value.start, value.stop, value.step)
            return slice(*(self._bind(each, tensors, sizes) for each in parts))
        return value

    def _call_into(
        self, node: fx.Node, name: str, tensors: list[Value], leaves: Sequence[Info]
    ) -> Iterator[Value]:
        """Emit a call that writes into tensors of known shapes."""
        types = [
            relax.TensorType(self._builder.dimensions.shape(shape), dtype)
            for shape, dtype in map(_held_type, leaves)
        ]
        out = types[0] if len(types) == 1 else types
        result = self._builder.emit(relax.call_dps_packed(name, tensors, out))
        for index, leaf in enumerate(leaves):
            value = result if len(leaves) == 1 else self._builder.emit(result[index])
            yield _as_held(value, leaf)

    def _call_for_data(
        self,
        node: fx.Node,
        name: str,
        tensors: list[Value],
        leaves: Sequence[Info],
        shapes: Sequence[Sequence[Any]],
        counted: Value,
    ) -> Iterator[Value]:
        """Emit a call that returns new tensors, and name their extents that depend on data.

        `shapes`: those of `_shapes_by_torch`.
        `counted`: the mask that decides about the one extent of each that does; ``None`` if there
            is none.
        """
        held = [_held_type(leaf) for leaf in leaves]
        types = [relax.TensorType(dtype=dtype, ndim=len(shape)) for shape, dtype in held]
        out = types[0] if len(types) == 1 else relax.TupleType(types)
        call = relax.call_pure_packed(name, *tensors, ty_args=[out])
        result = self._builder.emit(call)
        for index, (leaf, (shape, dtype)) in enumerate(zip(leaves, held, strict=True)):
            value = result if len(leaves) == 1 else self._builder.emit(result[index])
            assert leaf.shape is not None
            prefix = node.name if len(leaves) == 1 else f"{node.name}_{index}"
            own = shapes[index] if len(shapes) == len(leaves) else None
            extents = self._extents(node, index, leaf.shape, prefix, own)
            if counted is not None:
                extents = self._with_count(node, index, extents, counted)
            # The parts of a complex number have a known extent.
            whole = [*extents, *shape[len(extents) :]]
            matched = self._builder.match_cast(value, relax.TensorType(whole, dtype))
            yield _as_held(matched, leaf)

    def _shapes_by_torch(
        self, node: fx.Node, name: str, bound: BoundCall, args: tuple[Any, ...]
    ) -> list[list[Any]]:
        """Return the shapes of a call's tensors, with the extents of its arguments in them.

        They follow from torch's functions for tensors without values. An extent that is no number
        and none of theirs is ``None``; without shapes, all are unknown.
        """
        called = type(self._modules[str(node.target)]) if node.op == "call_module" else node.target
        of_torch = str(getattr(called, "__module__", None) or "torch").startswith(_OF_TORCH)
        if not of_torch or has_shape_from_data(node, self._modules, args, _is_mask, is_tensor):
            return []
        types = [each.ty for each in bound.tensors]
        if not all(isinstance(each.shape, relax.ShapeExpr) for each in types):
            return []
        # Imported here since it takes seconds, and few models need it.
        from lowerscope.core.lowering.shape_propagation import shapes_of

        return shapes_of(
            self.functions.by_name[name].run,
            [(extents_of(each.shape), torch_dtype(str(each.dtype.dtype))) for each in types],
            bound.sizes,
        )

    def _extents(
        self,
        node: fx.Node,
        index: int,
        shape: Sequence[int | str],
        prefix: str,
        own: Sequence[Any] | None,
    ) -> list[Any]:
        """Return the extents of one tensor of a node: numbers, or variables known when it runs."""
        dimensions = self._builder.dimensions
        symbolic = _symbolic_shape(node, index)
        varies = node.meta.get("varies")
        if varies is None and bare_name(node, self._modules) in ("nonzero", "argwhere"):
            varies = [(True, False)]
        found: list[Any] = []
        for axis, size in enumerate(shape):
            name = f"{prefix}_dim{axis}"
            known = dimensions.extent(size)
            if symbolic is not None:
                of_symbol = dimensions.extent(symbolic[axis])
                known = dimensions.of_data(name, symbolic[axis]) if of_symbol is None else of_symbol
            elif own is not None and is_size(own[axis]):
                known = own[axis]
            elif own is not None and own[axis] == size and not (varies and varies[index][axis]):
                pass
            elif varies is None or varies[index][axis] or known is None:
                known = dimensions.of_data(name)
            found.append(known)
        return found

    def _counted(self, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
        """Return the mask of which a node takes the elements that are true; ``None`` for none."""
        name = bare_name(node, self._modules)
        given = [*args, *(kwargs[key] for key in ("input", "condition") if key in kwargs)]
        if name in ("nonzero", "argwhere") or (name == "where" and len(given) == 1):
            return given[0]
        if name == "masked_select" and len(args) == 2 and all(map(is_tensor, args)):
            return args[1] if _have_same_shape(*args) else None
        if name in ("getitem", "index") and len(args) == 2:
            entries = args[1] if isinstance(args[1], tuple | list) else [args[1]]
            masks = [each for each in entries if is_tensor(each)]
            return masks[0] if len(masks) == 1 and _is_mask(masks[0]) else None
        return None

    def _with_count(
        self, node: fx.Node, index: int, extents: list[Any], counted: Value
    ) -> list[Any]:
        """Return the extents of a result with the number of true elements of a mask in them."""
        dimensions = self._builder.dimensions
        symbolic = _symbolic_shape(node, index)
        axes = [
            i for i, each in enumerate(extents) if is_size(each) and dimensions.is_of_data(each)
        ]
        if len(axes) != 1:
            return extents
        (axis,) = axes
        for mask, count in self._counts:
            if mask.same_as(counted):
                if symbolic is not None:
                    dimensions.name_extent(count, str(symbolic[axis]))
                return [*extents[:axis], count, *extents[axis + 1 :]]
        self._counts.append((counted, extents[axis]))
        return extents


_OF_TORCH = ("torch", "_operator")
"""Modules whose functions compute shapes without values."""


def _have_same_shape(one: Value, other: Value) -> bool:
    shapes = [each.ty.shape for each in (one, other)]
    return all(isinstance(each, relax.ShapeExpr) for each in shapes) and bool(
        structural_equal(*shapes)
    )


def _is_recorded(node: fx.Node) -> bool:
    """Return whether torch.export recorded the shapes of all tensors of a node, all of numbers."""
    recorded = node.meta.get("val")
    tensors = [each for each in pytree.tree_leaves(recorded) if isinstance(each, torch.Tensor)]
    return bool(tensors) and all(type(size) is int for each in tensors for size in each.shape)


def _symbolic_shape(node: fx.Node, index: int) -> list[Any] | None:
    """Return the shape of one tensor of a node that torch.export recorded, symbols as text."""
    tensors = [
        each
        for each in pytree.tree_leaves(node.meta.get("val"))
        if isinstance(each, torch.Tensor)
    ]  # fmt: skip
    if not any(isinstance(size, torch.SymInt) for each in tensors for size in each.shape):
        return None
    return [size if isinstance(size, int) else str(size) for size in tensors[index].shape]


class MethodCall:
    """Call of the method ``name`` of its first argument."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, owner: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(owner, self.name)(*args, **kwargs)


def _argument(tensors: list[Value], value: Value, dtype: str = "") -> Argument:
    tensors.append(value)
    return Argument(len(tensors) - 1, dtype)


def _leaves(info: Info) -> Iterator[Info]:
    if info.shape is None and info.items and not info.text.startswith("{"):
        for item in info.items:
            yield from _leaves(item)
    else:
        yield info


def _nest(info: Info, results: Iterator[Value]) -> Value:
    if info.shape is not None:
        return next(results)
    return tuple(_nest(item, results) for item in info.items) if info.items else None


def _held_type(info: Info) -> tuple[tuple[Any, ...], str]:
    assert info.shape is not None
    held = held_type(info.shape, info.dtype)
    if held is None:
        raise Refused(_("TVM has no {dtype}", dtype=info.dtype))
    return held


def _as_held(value: Value, info: Info) -> Value:
    return value if is_dtype(info.dtype) else EncodedTensor(value, info.dtype)


def _is_mask(value: Any) -> bool:
    return is_tensor(value) and dtype_of(value) == "bool"
