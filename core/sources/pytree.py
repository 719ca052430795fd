"""Pytrees: tuples, lists, dicts, named tuples, dataclasses, and other types that torch knows.

Members come in the order in which torch flattens them, so that inputs and outputs can be numbered
by their place in it.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

Key = str | int
Path = tuple[Key, ...]

_NOT_IN_NAMES = re.compile(r"\W+")


def members(value: Any) -> list[tuple[Key, Any]] | None:
    """Return keys and values of the members of a nest; ``None`` for anything else."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True))
    if isinstance(value, SparseTensor):
        names = ("indices", "values") if len(value.parts) == 2 else ("rows", "columns", "values")
        return list(zip(names, value.parts, strict=True))
    definition = pytree.SUPPORTED_NODES.get(type(value))
    if definition is not None:
        if definition.flatten_with_keys_fn is not None:
            return [(_key(key), each) for key, each in definition.flatten_with_keys_fn(value)[0]]
        below = list(definition.flatten_fn(value)[0])
        # The models of transformers return mappings that pytree knows without their keys.
        named = isinstance(value, Mapping) and len(value) == len(below)
        return list(zip(map(_key, value) if named else range(len(below)), below, strict=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        return [(_key(key), each) for key, each in value.items()]
    if isinstance(value, tuple | list):
        return list(enumerate(value))
    return None


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the leaves of a nest with their paths, in order."""
    below = members(value)
    if below is None:
        yield path, value
        return
    for key, each in below:
        yield from leaves(each, (*path, key))


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a new nest of the same types with `change` applied to every leaf."""
    below = members(value)
    if below is None:
        return change(value)
    return _with_members(value, [mapped(each, change) for _, each in below])


def plain(value: Any) -> Any:
    """Return a nest of tuples, lists and dicts alone; types with named members become dicts."""
    below = members(value)
    if below is None:
        return value
    made = [plain(each) for _, each in below]
    if any(isinstance(key, str) for key, _ in below):
        return {key: each for (key, _), each in zip(below, made, strict=True)}
    return made if isinstance(value, list) else tuple(made)


def is_plain(value: Any) -> bool:
    """Return whether a nest is made of tuples, lists and dicts alone."""
    below = members(value)
    if below is None:
        return True
    return type(value) in (tuple, list, dict) and all(is_plain(each) for _, each in below)


def path_text(path: Path, root: str = "") -> str:
    """Return a path as Python writes it: ``hidden[0].state``.

    Args:
        root: The root of the path; may be empty where its first key is a name.
    """
    text = root
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif key.isidentifier():
            text += f".{key}" if text else key
        else:
            text += f"[{key!r}]"
    return text


def identifier(root: str, path: Path) -> str:
    """Return a path as one name: ``batch_image`` for the member ``image`` of ``batch``."""
    return _NOT_IN_NAMES.sub("_", "_".join((root, *(str(key) for key in path))))


def _key(key: Any) -> Key:
    if isinstance(key, pytree.SequenceKey):
        key = key.idx
    elif isinstance(key, pytree.MappingKey):
        key = key.key
    elif isinstance(key, pytree.GetAttrKey):
        key = key.name
    return key if isinstance(key, str) or type(key) is int else str(key)


def _with_members(value: Any, made: Sequence[Any]) -> Any:
    """Return a nest like `value` with other members, without running a constructor of the user's
    where that can be avoided."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        named: Any = type(value)
        return named._make(made)
    definition = pytree.SUPPORTED_NODES.get(type(value))
    if definition is not None:
        return definition.unflatten_fn(list(made), definition.flatten_fn(value)[1])
    if isinstance(value, SparseTensor):
        return SparseTensor(tuple(made), value.shape)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        if isinstance(value, Mapping):
            # Its items and its attributes are the same; only its constructor sets both.
            return type(value)(**dict(zip(names, made, strict=True)))
        copied = object.__new__(type(value))
        for name, each in {**vars(value), **dict(zip(names, made, strict=True))}.items():
            object.__setattr__(copied, name, each)
        return copied
    if isinstance(value, Mapping):
        return dict(zip(value, made, strict=True))
    return list(made) if isinstance(value, list) else tuple(made)


@dataclass(frozen=True, eq=False)
class SparseTensor:
    """A sparse tensor as the dense ones that it consists of.

    `parts`: indices and values of a COO tensor; row offsets, columns and values of a CSR one.
    """

    parts: tuple[Any, ...]
    shape: torch.Size

    @classmethod
    def of(cls, value: torch.Tensor) -> SparseTensor:
        """Take a tensor apart."""
        if value.layout is torch.sparse_coo:
            value = value.coalesce()
            return cls((value.indices(), value.values()), value.shape)
        return cls((value.crow_indices(), value.col_indices(), value.values()), value.shape)

    def whole(self) -> Any:
        """Return the tensor."""
        if len(self.parts) == 2:
            return torch.sparse_coo_tensor(*self.parts, self.shape, is_coalesced=True)
        return torch.sparse_csr_tensor(*self.parts, self.shape)


SPARSE = (torch.sparse_coo, torch.sparse_csr)
"""Layouts of tensors that can be inputs, besides dense ones."""


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
        kwargs = {name: mapped(each, fill) for name, each in self.kwargs.items()}
        return _with_sparse(args), _with_sparse(kwargs)


def _with_sparse(value: Any) -> Any:
    """Return a nest with its sparse tensors put together."""
    if isinstance(value, SparseTensor):
        return value.whole()
    if type(value) in (tuple, list):
        return type(value)(map(_with_sparse, value))
    if type(value) is dict:
        return {key: _with_sparse(each) for key, each in value.items()}
    return value


def forward_signature(model: Any) -> inspect.Signature:
    """Return the signature of ``forward``, also of a module that ``torch.jit`` has compiled."""
    schema = getattr(model.forward, "schema", None)
    if schema is None:
        return inspect.signature(model.forward)
    own = schema.arguments[1:]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    defaults = [
        each.default_value if each.has_default_value() else inspect.Parameter.empty for each in own
    ]
    return inspect.Signature(
        [
            inspect.Parameter(each.name, kind, default=default)
            for each, default in zip(own, defaults, strict=True)
        ]
    )


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
