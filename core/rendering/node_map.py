"""The node map: the value of each FX node as the module is made, node by node."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from torch import fx
from tvm import ir

from lowerscope.core.lowering.growing import changes_of_nodes
from lowerscope.core.lowering.lowered import LoweredModel
from lowerscope.core.lowering.parameters import name_constants
from lowerscope.core.lowering.relax_values import Held, Value, is_size
from lowerscope.core.lowering.rule_table import Missing
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.passes.recording import FunctionChanges
from lowerscope.core.records.steps import TranslationRecord
from lowerscope.core.relax_bindings import Bound

_TYPED = re.compile(r"T\.int64\((-?\d+)\)")
"""A number as the script writes it where its type counts."""

_IN_MAIN = "relax:main/"

MOST = 6
"""Maximum number of named members of a tuple."""


def translation_records(
    lowered: LoweredModel, graph_module: fx.GraphModule, bounds: Sequence[Bound]
) -> tuple[TranslationRecord, ...]:
    """Return a record of each FX node in the order in which they were translated.

    Parameters
    ----------
    bounds
        The bindings of the lowered module.
    """
    names = ValueNames(lowered, graph_module, bounds)
    seen: set[str] = set()
    records: list[TranslationRecord] = []
    changes = changes_of_nodes(lowered, graph_module.graph, FunctionChanges().between_modules)
    steps = zip(lowered.nodes.values(), changes, strict=True)
    for number, (each, changed) in enumerate(steps, start=1):
        added = tuple(name for name in each.functions if name not in seen)
        seen.update(added)
        value = names.text(each.value)
        records.append(
            TranslationRecord(
                number=number,
                node=f"fx:{each.node}",
                bindings=tuple(f"relax:main/{name}" for name in each.bindings),
                functions=tuple(str(name) for name in added),
                changed=changed,
                value=value,
                rebound=tuple(f"fx:{name}" for name in each.rebound),
            )
        )
    return tuple(records)


class ValueNames:
    """Formatter of the values of nodes: variables as in the script, constants by their names."""

    def __init__(
        self, lowered: LoweredModel, graph_module: fx.GraphModule, bounds: Sequence[Bound]
    ) -> None:
        self._lowered, self._graph_module = lowered, graph_module
        self._variables: dict[str, str] = {
            bound.variable: bound.name for bound in bounds if bound.id.startswith(_IN_MAIN)
        }

    @cached_property
    def _constants(self) -> Mapping[Any, str]:
        # Few models have a node with a constant value, and naming these visits each.
        lowered = self._lowered
        named = name_constants(lowered.module, self._graph_module, lowered)
        return {
            **{each.constant: each.name for each in named},
            **{each.constant: name for name, each in lowered.arguments.items()},
        }

    def text(self, value: Value) -> str:
        """Return a value in a few words; empty where a node has none."""
        if value is None:
            return ""
        return self._text(value)

    def _text(self, value: Value) -> str:
        if isinstance(value, Held):
            return f"{self._text(value.value)} as {value.dtype}"
        if isinstance(value, Missing):
            return f"unknown: {value.reason}"
        if isinstance(value, (tuple, list)):
            members = [self._text(each) for each in value[:MOST]]
            if len(value) > MOST:
                members.append(f"and {len(value) - MOST} more")
            return f"[{', '.join(members)}]" if isinstance(value, list) else _tuple(members)
        if isinstance(value, dict):
            pairs = (f"{key}: {self._text(each)}" for key, each in value.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, ir.GenericConst):
            name = self._constants.get(value)
            return name if name is not None else _constant(value)
        if isinstance(value, ir.Var) and not is_size(value):
            name = str(value.name)
            return self._variables.get(name, name)
        return _TYPED.sub(r"\1", str(value)) if isinstance(value, ir.Expr) else str(value)


def _tuple(members: list[str]) -> str:
    return f"({members[0]},)" if len(members) == 1 else f"({', '.join(members)})"


def _constant(value: Any) -> str:
    shape = shape_text(value.value.shape, "")
    return f"constant {shape or value.value.numpy()} {value.value.dtype}"
