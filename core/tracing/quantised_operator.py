"""Operators on quantised tensors that run in torch, between others that compute with integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from lowerscope.core.model.texts import _


@dataclass(frozen=True)
class Given:
    """The place of a value among the inputs of a `QuantisedOperator`."""

    index: int


class QuantisedOperator(nn.Module):
    """An operator on quantised tensors that runs in torch, on their integers.

    `called`: a module, a function, or the name of a method.
    `arguments`: its ``args`` and ``kwargs``, with a `Given` for each input.
    `scales`: scale and zero point of the inputs that have any.
    `layouts`: their memory layouts, on which torch's results may depend.
    """

    def __init__(
        self,
        called: Any,
        arguments: tuple[Any, Any],
        scales: Sequence[tuple[float, int] | None],
        layouts: Sequence[torch.memory_format],
    ) -> None:
        super().__init__()
        self.called = called
        self._arguments = arguments
        self._scales = scales
        self._layouts = layouts
        self.reason = _("its form on the integers of quantised tensors is not known")

    def forward(self, *inputs: Any) -> Any:
        values = [
            value
            if scale is None
            else torch._make_per_tensor_quantized_tensor(value, *scale).contiguous(
                memory_format=layout
            )
            for value, scale, layout in zip(inputs, self._scales, self._layouts, strict=True)
        ]

        def value_of(leaf: Any) -> Any:
            return values[leaf.index] if isinstance(leaf, Given) else leaf

        args, kwargs = fx.node.map_aggregate(self._arguments, value_of)
        if isinstance(self.called, str):
            result = getattr(args[0], self.called)(*args[1:], **kwargs)
        else:
            result = self.called(*args, **kwargs)
        return result.contiguous().int_repr() if result.is_quantized else result
