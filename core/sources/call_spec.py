"""Call signature of a model: its arguments, with numbered places for the tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lowerscope.core.sources.pytree import identifier, leaves, mapped


class Place(int):
    """Placeholder for the tensor of this number among the arguments of a call: a leaf of a nest."""


@dataclass(frozen=True, eq=False)
class CallSpec:
    """The arguments of a call of a model, with a `Place` for each tensor."""

    # Of the places in order: ``x``, ``batch_image`` for the member ``image`` of the argument
    # ``batch``, ``layers_0`` for the first member of ``layers``.
    names: tuple[str, ...]
    # args, kwargs: arguments by position and by keyword; numbers, texts and ``None`` stand in them
    # as they are
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_flat(self) -> bool:
        """Return whether all arguments are tensors by position."""
        return not self.kwargs and self.args == tuple(map(Place, range(len(self.names))))

    def arguments(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return new arguments with `values` in the places."""

        def fill(leaf: Any) -> Any:
            return values[leaf] if isinstance(leaf, Place) else leaf

        args = tuple(mapped(each, fill) for each in self.args)
        return args, {name: mapped(each, fill) for name, each in self.kwargs.items()}


def by_position(names: Sequence[str]) -> CallSpec:
    """Return a call with a tensor for each name, by position."""
    return CallSpec(tuple(names), tuple(map(Place, range(len(names)))))


class Places:
    """Places and names of the tensors among arguments, each name once."""

    def __init__(self) -> None:
        self.names: list[str] = []  # Of the places so far.
        self._used: Counter[str] = Counter()

    def add(self, root: str, value: Any, is_tensor: Callable[[Any], bool]) -> tuple[Any, list[Any]]:
        """Return the argument called `root` with places in it, and its tensors in order."""
        paths = iter([path for path, _ in leaves(value)])
        tensors: list[Any] = []

        def place(leaf: Any) -> Any:
            path = next(paths)
            if not is_tensor(leaf):
                return leaf
            tensors.append(leaf)
            self.names.append(self._unused(identifier(root, path)))
            return Place(len(self.names) - 1)

        return mapped(value, place), tensors

    def _unused(self, name: str) -> str:
        while name in self._used:
            self._used[name] += 1
            name = f"{name}_{self._used[name] - 1}"
        self._used[name] = 1
        return name
