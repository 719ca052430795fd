"""Decomposition of one torch call into ATen operators, on tensors without memory.

An operator, function or module without a rule often has rules for its parts: an LSTM consists of
matrix products and elementwise operators. torch's own decompositions are applied until the rest is
covered by rules, or cannot be decomposed further.
"""

from __future__ import annotations

import contextlib
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import fx
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from lowerscope.core.lowering.library import Argument
from lowerscope.core.lowering.rule_table import Refused, functional_form

MOST = 2000
"""Most operators of one call: an LSTM over a long sequence would compile for minutes."""

Type = tuple[Sequence[int], torch.dtype]


def decompose(
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    types: Sequence[Type],
    covered: Callable[[OpOverload], bool],
) -> fx.GraphModule:
    """Return ``call(*args, **kwargs)`` as a graph of ATen operators.

    Parameters
    ----------
    args, kwargs
        With an `Argument` for each tensor.
    types
        Shape and dtype of each of these tensors.
    covered
        Whether to keep an operator.

    Returns
    -------
    graph_module
        With a placeholder for each tensor; every node but the output has its value, without memory,
        in ``meta["val"]``. Nothing in it changes a tensor in place.

    Raises
    ------
    Refused
        If the call cannot be traced without its tensors' values, or has too many operators.
    """
    recorder = _Recorder(covered)
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with warnings.catch_warnings(), torch.inference_mode(), _without_shortcuts(), fake:
        warnings.simplefilter("ignore")
        tensors = [
            recorder.placeholder(torch.empty(tuple(shape), dtype=dtype)) for shape, dtype in types
        ]
        bound_args, bound_kwargs = pytree.tree_map_only(
            Argument, lambda each: tensors[each.index], (args, dict(kwargs))
        )
        try:
            with recorder:
                result = call(*bound_args, **bound_kwargs)
        except Refused:
            raise
        except Exception as error:  # a user's module, or a decomposition, may raise any type
            raise Refused(f"it cannot be broken up: {type(error).__name__}") from error
        return recorder.finish(result)


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Mode that records the called operators in a graph, with uncovered ones decomposed."""

    def __init__(self, covered: Callable[[OpOverload], bool]) -> None:
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
        if not isinstance(func, OpOverload):
            raise Refused(f"it calls {func}")
        if func.namespace == "prim":  # attributes, such as the device
            return func(*args, **kwargs)
        functional = _functional(func)
        if not self._covered(functional):
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
            raise Refused(f"it is more than {MOST} operators")
        changes = func._schema.is_mutable
        if changes and functional is func:
            raise Refused(f"{func} changes its arguments")
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
        for tensor, _ in self._nodes.values():
            shared = tensor is not changed and tensor.untyped_storage()._cdata == storage
            if shared and _overlap(tensor, changed):
                self._stale.add(id(tensor))

    def _node_of(self, tensor: torch.Tensor) -> fx.Node:
        if id(tensor) in self._stale:
            raise Refused("it reads a tensor that it has changed through a view")
        known = self._nodes.get(id(tensor))
        if known is not None:
            return known[1]
        constant = tensor.constant if isinstance(tensor, FakeTensor) else tensor
        if constant is None:
            raise Refused("it reads a tensor that is not among its arguments")
        name = f"constant_{len(self._constants)}"
        self._constants[name] = constant
        node = self._graph.create_node("get_attr", name)
        node.meta["val"] = tensor
        self._nodes[id(tensor)] = (tensor, node)
        return node


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
