"""Preservation of a model's state while its ``forward`` is run."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_DEPTH = 4
"""Depth limit of nested containers, starting with ``__dict__``."""
_MAPPINGS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, set, deque)
_CONTAINERS = frozenset((*_MAPPINGS, *_SEQUENCES))
_PLAIN = frozenset((bool, int, float, str, type(None)))

Containers = dict[int, tuple[Any, Any]]
"""Containers with copies of their content, by id."""


@contextmanager
def unchanged(model: torch.nn.Module) -> Iterator[tuple[torch.Tensor, ...]]:
    """Restore attributes of `model`, and the content of its containers and tensors, at the end.

    The body is given the tensors: buffers, and tensors in attributes that are neither buffers nor
    parameters.

    A tracer leaves values that ``forward`` assigns or appends, and its own constants, on the model;
    a model that counts its calls changes its buffers in each run.
    """
    containers: Containers = {}
    tensors: dict[int, torch.Tensor] = {}
    for module in model.modules():
        _look_through(module.__dict__, _DEPTH, containers, tensors)
    contents = [(tensor, tensor.clone()) for tensor in tensors.values()]
    try:
        yield tuple(tensors.values())
    finally:
        for container, before in containers.values():
            _put_back(container, before)
        with torch.no_grad():
            for tensor, content in contents:
                if not torch.equal(tensor, content):
                    tensor.copy_(content)


def _look_through(
    value: Any, depth: int, containers: Containers, tensors: dict[int, torch.Tensor]
) -> None:
    """Record each container in `value` with its content by id, and the tensors in it."""
    kind = type(value)
    if kind in _CONTAINERS:
        if depth and id(value) not in containers:
            containers[id(value)] = value, value.copy()
            for item in value.values() if kind in _MAPPINGS else value:
                # Skip flags and the like, of which each module has a dozen.
                if type(item) not in _PLAIN:
                    _look_through(item, depth - 1, containers, tensors)
    elif kind is tuple:
        for item in value if depth else ():
            _look_through(item, depth - 1, containers, tensors)
    elif isinstance(value, torch.Tensor):
        # A forward that changes parameters is rejected; copying all would double the memory.
        own = not isinstance(value, torch.nn.Parameter) and not value.is_inference()
        if own and value.layout is torch.strided and value.device.type == "cpu":
            tensors[id(value)] = value


def _put_back(container: Any, before: Any) -> None:
    if not container and not before:
        return
    container.clear()
    if isinstance(container, (list, deque)):
        container.extend(before)
    else:
        container.update(before)
