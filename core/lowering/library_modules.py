"""Modules as functions of their inputs and parameters."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from lowerscope.core.lowering.library import content_of

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

    Attributes
    ----------
    module
        That copy.
    """

    def __init__(self, module: nn.Module) -> None:
        memory: dict[int, Any] = {}
        for parameter in module.parameters():
            empty = nn.Parameter(parameter.detach().to("meta"), requires_grad=False)
            memory[id(parameter)] = empty
        for buffer in module.buffers():
            memory[id(buffer)] = buffer.detach().to("meta")
        self.module = copy.deepcopy(module, memory)

    def __call__(self, tensors: dict[str, torch.Tensor], *args: Any, **kwargs: Any) -> Any:
        """Return what the module returns with `tensors` as its parameters and buffers."""
        return torch.func.functional_call(self.module, tensors, args, kwargs)


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
