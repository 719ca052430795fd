"""TVM's own converters, for operators without a rule of ours.

The stock importers are silently wrong for a number of operators and arguments. So the ones used are
a list, each entry of which is tested against torch; others are rejected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import torch
from torch import fx
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter
from tvm.relax.frontend.torch.fx_translator import TorchFXImporter

from lowerscope.core.lowering.builder import NodeBuilder
from lowerscope.core.lowering.relax_values import Value
from lowerscope.core.lowering.rule_table import Refused

_FX: frozenset[Any] = frozenset(
    {
        torch.diagonal,
        "diagonal",
        torch.bucketize,
    }
)
"""Functions and methods that `TorchFXImporter` converts correctly."""

_EXPORT: frozenset[str] = frozenset(
    {
        "diagonal.default",
        "bucketize.Tensor",
    }
)
"""ATen overloads that `ExportedProgramImporter` converts correctly."""


class StockConverters:
    """TVM's converters, on the same builder, node map and parameters as the rules."""

    def __init__(
        self, builder: NodeBuilder, env: dict[fx.Node, Value], graph_module: fx.GraphModule
    ) -> None:
        self._builder = builder
        self._env = env
        self._graph_module = graph_module

    @cached_property
    def _fx(self) -> Any:
        importer = self._on_our_values(TorchFXImporter())
        importer.named_modules = dict(self._graph_module.named_modules())
        return importer

    @cached_property
    def _export(self) -> Any:
        return self._on_our_values(ExportedProgramImporter())

    def _on_our_values(self, importer: Any) -> Any:
        importer.block_builder = self._builder
        importer.env = self._env
        importer.params = _Parameters(self._builder)
        return importer

    def find(self, node: fx.Node) -> partial[Value] | None:
        """Return `_convert` bound to the converter of `node`, or ``None``."""
        target: Any = node.target
        if isinstance(target, torch._ops.OpOverload):
            name = target.__name__
            converter = self._export.convert_map.get(name) if name in _EXPORT else None
        elif target in _FX:
            name = target if isinstance(target, str) else target.__name__
            converter = self._fx.convert_map.get(name)
        else:
            return None
        return None if converter is None else partial(_convert, converter, node)

    @staticmethod
    def name(node: fx.Node) -> str:
        """Return the label of the conversion of `node` as a rule."""
        target: Any = node.target
        return f"TVM: {target if isinstance(target, str) else target.__name__}"


class _Parameters(dict[torch.Tensor, Value]):
    """Mapping that finds every parameter; the importers expect those they added themselves."""

    def __init__(self, builder: NodeBuilder) -> None:
        super().__init__()
        self._builder = builder

    def __missing__(self, tensor: torch.Tensor) -> Value:
        return self._builder.constant(tensor)

    def get(self, tensor: Any, default: Any = None) -> Any:
        return default if tensor is None else self._builder.constant(tensor)


def _convert(converter: Callable[[fx.Node], Value], node: fx.Node) -> Value:
    try:
        return converter(node)
    except (AssertionError, KeyError, NotImplementedError, TypeError, ValueError) as error:
        # The importers raise these for unsupported arguments.
        raise Refused(f"TVM's converter does not take it: {error}") from error
