"""Strategy of each node: the default, and the user's overrides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import torch
from torch import fx

from lowerscope.core.lowering.operator_names import bare_name, operator_name
from lowerscope.core.recipe import Override, Strategy

_NODE = "fx:"
"""Prefix of the name of a node in a pattern, as in the ids of nodes."""


class Choices:
    """The strategies of one graph's nodes.

    Parameters
    ----------
    default
        For nodes without an override.
    overrides
        In order; see `core.recipe.Override`. Disabled ones are ignored.
    paths
        Dotted path of the module that each node comes from, by node name.
    modules
        The modules that nodes call, by path.
    """

    def __init__(
        self,
        default: Strategy,
        overrides: Sequence[Override],
        paths: Mapping[str, str],
        modules: Mapping[str, torch.nn.Module],
    ) -> None:
        self._default = default
        self._overrides = tuple(each for each in overrides if each.on)
        self._paths = paths
        self._modules = modules

    def strategy_of(self, node: fx.Node) -> Strategy:
        """Return the strategy of a node."""
        override = self.override_of(node)
        return self._default if override is None else override.strategy

    def override_of(self, node: fx.Node) -> Override | None:
        """Return the override of a node; ``None`` for the default."""
        if not self._overrides:
            return None
        found: Override | None = None
        exact = False
        names = self._names(node)
        for override in self._overrides:
            if _names_node(override.pattern, node):
                found, exact = override, True
            elif not exact and _matches(override.pattern, names):
                found = override
        return found

    def without_match(self, nodes: Sequence[fx.Node]) -> Iterator[Override]:
        """Yield the overrides that match none of `nodes`."""
        names = [(node, self._names(node)) for node in nodes] if self._overrides else []
        for override in dict.fromkeys(self._overrides):
            if not any(
                _names_node(override.pattern, node) or _matches(override.pattern, each)
                for node, each in names
            ):
                yield override

    def _names(self, node: fx.Node) -> tuple[str, ...]:
        """Return the names that a pattern may match: node, operator, modules, innermost first."""
        operators = (operator_name(node, self._modules), bare_name(node, self._modules))
        parts = self._paths.get(node.name, "").split(".")
        paths = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
        # layer1.* includes nodes directly in layer1.
        return (node.name, *operators, *(name for path in paths if path for name in _forms(path)))


def _forms(path: str) -> tuple[str, str]:
    return path, f"{path}."


def _names_node(pattern: str, node: fx.Node) -> bool:
    return pattern.removeprefix(_NODE) == node.name


def _matches(pattern: str, names: Sequence[str]) -> bool:
    return not pattern.startswith(_NODE) and any(fnmatchcase(name, pattern) for name in names)
