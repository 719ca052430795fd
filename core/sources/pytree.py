"""Pytrees: tuples, lists, dicts, named tuples, dataclasses, other types that torch knows, and
objects that hold tensors in their attributes, such as the caches of language models.

Members come in the order in which torch flattens them, so that inputs and outputs can be numbered
by their place in it.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.utils import _pytree as pytree

Key = str | int
Path = tuple[Key, ...]

_NOT_IN_NAMES = re.compile(r"\W+")

_COMMON_LEAVES = frozenset((torch.Tensor, torch.nn.Parameter, bool, int, float, str, type(None)))
"""Types of most leaves, which need no closer look."""


Around = Mapping[int, Any]
"""The objects around a value by id: a reference back to one of them is no member."""


def members(value: Any, around: Around | None = None) -> list[tuple[Key, Any]] | None:
    """Return keys and values of the members of a nest; ``None`` for anything else."""
    if type(value) in _COMMON_LEAVES:
        return None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value, strict=True))
    if isinstance(value, SparseTensor):
        names = ("indices", "values") if len(value.parts) == 2 else ("rows", "columns", "values")
        return list(zip(names, value.parts, strict=True))
    definition = _definition(value)
    if definition is not None:
        if definition.flatten_with_keys_fn is not None:
            return [(_key(key), each) for key, each in definition.flatten_with_keys_fn(value)[0]]
        below = list(definition.flatten_fn(value)[0])
        # The models of transformers return mappings that pytree knows without their keys.
        named = isinstance(value, Mapping) and len(value) == len(below)
        return list(zip(map(_key, value) if named else range(len(below)), below, strict=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return list(_fields(value).items())
    if isinstance(value, Mapping):
        return [(_key(key), each) for key, each in value.items()]
    if isinstance(value, tuple | list):
        return list(enumerate(value))
    held = _held(value, around or {})
    if not held:
        return None
    listed = _only_list(held)
    # A list of layers alone: ``cache.0.keys`` for the attribute ``layers[0].keys``.
    return list(held.items()) if listed is None else [(str(i), e) for i, e in enumerate(listed)]


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that are set, without running code that guards them."""
    own: Mapping[str, Any] = getattr(value, "__dict__", {})
    names = [field.name for field in dataclasses.fields(value)]
    return {
        name: own[name] if name in own else getattr(value, name)
        for name in names
        if name in own or hasattr(value, name)
    }


def _is_object(value: Any) -> bool:
    """Return whether the members of a nest are attributes that are found by their values."""
    named = dataclasses.is_dataclass(value) or isinstance(value, (tuple, list, Mapping))
    return not named and _definition(value) is None


def _definition(value: Any) -> Any:
    """Return torch's definition of a type; ``None`` for an object whose attributes are enough.

    A registered type may not be restorable: that of a cache may drop lengths and windows, and reads
    the dtype of its members.
    """
    found = pytree.SUPPORTED_NODES.get(type(value))
    is_object = found is not None and not isinstance(value, (tuple, list, Mapping))
    return None if is_object and (dataclasses.is_dataclass(value) or _held(value, {})) else found


_ATOMS = (
    *(type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, torch.nn.Module),
    *(bool, int, float, complex, str, bytes, torch.dtype, torch.device, type(None)),
    *(torch.SymInt, torch.SymFloat, torch.SymBool),
)
"""Types whose attributes are never members."""


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object that may hold tensors; empty for any other."""
    if isinstance(value, (*_ATOMS, *_VALUES)):
        return {}
    slots = [name for kind in type(value).__mro__ for name in vars(kind).get("__slots__", ())]
    return {
        **{name: getattr(value, name) for name in slots if hasattr(value, name)},
        **getattr(value, "__dict__", {}),
    }


def _held(value: Any, around: Around) -> dict[str, Any]:
    """Return the attributes of an object that hold tensors, without references back."""
    if id(value) in around:
        return {}
    return {
        name: each
        for name, each in _attributes(value).items()
        if _holds_tensor(each, {*around, id(value)})
    }


def _holds_tensor(value: Any, seen: set[int]) -> bool:
    if isinstance(value, fx.Proxy):
        # A length in an attribute is a proxy as well while the model is traced.
        type_of = getattr(value.tracer, "type_of", None)
        return type_of is None or issubclass(type_of(value.node), torch.Tensor)
    if isinstance(value, _VALUES):
        return True
    if isinstance(value, _ATOMS) or id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value, Mapping):
        below = list(value.values())
    elif isinstance(value, tuple | list):
        below = list(value)
    else:
        below = list(_attributes(value).values())
    return any(_holds_tensor(each, seen) for each in below)


def _only_list(held: Mapping[str, Any]) -> list[Any] | None:
    """Return the list that is all that an object holds, if so."""
    (first, *others) = held.values()
    return first if type(first) is list and not others else None


def is_result(leaf: Any) -> bool:
    """Return whether a leaf of a model's outputs is lowered and compared: a tensor or a number."""
    return isinstance(leaf, torch.Tensor | bool | int | float)


def other_text(leaf: Any) -> str:
    """Return the text of a leaf that is neither a tensor nor a number."""
    if isinstance(leaf, str):
        return repr(leaf)
    if isinstance(leaf, type):
        return f"class {leaf.__qualname__}"
    if leaf is None or isinstance(leaf, (complex, bytes, torch.dtype, torch.device)):
        return str(leaf)
    return type(leaf).__qualname__


def leaves(value: Any, path: Path = (), around: Around | None = None) -> Iterator[tuple[Path, Any]]:
    """Yield the leaves of a nest with their paths, in order."""
    below = members(value, around)
    if below is None:
        yield path, value
        return
    inside = {**(around or {}), id(value): value}
    for key, each in below:
        yield from leaves(each, (*path, key), inside)


def mapped(value: Any, change: Callable[[Any], Any], around: Around | None = None) -> Any:
    """Return a new nest of the same types with `change` applied to every leaf.

    `around`: the copies of the objects around it.
    """
    around = around or {}
    if id(value) in around:
        return around[id(value)]
    below = members(value, around)
    if below is None:
        return change(value)
    held = _held(value, around) if _is_object(value) else {}
    if not held:
        inside = {**around, id(value): value}
        return _with_members(value, [mapped(each, change, inside) for _, each in below])
    copied = object.__new__(type(value))
    inside = {**around, id(value): copied}
    for name, each in _attributes(value).items():
        # The model may change the rest as well, such as a flag for each layer.
        new = mapped(each, change, inside) if name in held else own_copy(each, inside)
        object.__setattr__(copied, name, new)
    return copied


class Nest:
    """Structure of a nest with objects that hold tensors, with a `Place` for each leaf."""

    def __init__(self, template: Any) -> None:
        self.template = template
        self._form = form(template)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nest) and self._form == other._form

    __hash__ = None  # type: ignore[assignment]

    def is_leaf(self) -> bool:
        return False


def flattened(value: Any) -> tuple[list[Any], Any]:
    """Return the leaves of a nest, those in objects included, and its structure."""
    found, spec = pytree.tree_flatten(value)
    if all(members(each) is None for each in found):
        return found, spec
    found = []

    def place(leaf: Any) -> Place:
        found.append(leaf)
        return Place(len(found) - 1)

    return found, Nest(mapped(value, place))


def unflattened(values: Sequence[Any], structure: Any) -> Any:
    """Return the nest of a structure with these leaves."""
    if isinstance(structure, Nest):
        return mapped(structure.template, lambda leaf: values[leaf])
    return pytree.tree_unflatten(values, structure)


def plain(value: Any, around: Around | None = None) -> Any:
    """Return a nest of tuples, lists and dicts alone; types with named members become dicts.

    A leaf of a type that a graph cannot hold becomes its text.
    """
    below = members(value, around)
    if below is None:
        return value if isinstance(value, _IN_GRAPHS) else other_text(value)
    inside = {**(around or {}), id(value): value}
    made = [plain(each, inside) for _, each in below]
    if any(isinstance(key, str) for key, _ in below):
        return {key: each for (key, _), each in zip(below, made, strict=True)}
    return made if isinstance(value, list) else tuple(made)


def is_plain(value: Any) -> bool:
    """Return whether a nest is made of tuples, lists and dicts alone."""
    below = members(value)
    if below is None:
        return isinstance(value, _IN_GRAPHS)
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
        elif key.isidentifier() or (text and key.isdecimal()):
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
    definition = _definition(value)
    if definition is not None:
        return definition.unflatten_fn(list(made), definition.flatten_fn(value)[1])
    if isinstance(value, SparseTensor):
        return SparseTensor(tuple(made), value.shape)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = _fields(value)
        if isinstance(value, Mapping):
            # Its items and its attributes are the same; only its constructor sets both.
            return type(value)(**dict(zip(names, made, strict=True)))
        copied = object.__new__(type(value))
        for name, each in {**_attributes(value), **dict(zip(names, made, strict=True))}.items():
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
        """Return the tensor; a `RuntimeError` says which indices are none of it.

        Unchecked, torch would read and write other memory at them: they are inputs of the graph.
        """
        if len(self.parts) == 2:
            return torch.sparse_coo_tensor(
                *self.parts, self.shape, is_coalesced=True, check_invariants=True
            )
        rows, columns, values = self.parts
        return torch.sparse_csr_tensor(
            rows, columns, values, size=self.shape, check_invariants=True
        )


SPARSE = (torch.sparse_coo, torch.sparse_csr)
"""Layouts of tensors that can be inputs, besides dense ones."""


def own_copy(value: Any, around: Around | None = None) -> Any:
    """Return a copy of an object without tensors, which a call may change; else the value.

    `around`: the copies of the objects around it, to which it may refer back.
    """
    if around and id(value) in around:
        return around[id(value)]
    if isinstance(value, _ATOMS) or _holds_module(value, set()):
        return value
    try:
        return copy.deepcopy(value, dict(around or {}))
    except (TypeError, ValueError, RuntimeError, AttributeError):
        return value


def form(value: Any, seen: tuple[int, ...] = ()) -> Any:
    """Return a nest with a `Place` for each tensor as tuples and texts, which tell it apart."""
    if isinstance(value, Place):
        return (type(value).__name__, int(value))
    if isinstance(value, _ATOMS) or id(value) in seen:
        return "…" if id(value) in seen else repr(value)
    if isinstance(value, Mapping):
        below = [(str(key), each) for key, each in value.items()]
    elif isinstance(value, (tuple, list)):
        below = [(str(index), each) for index, each in enumerate(value)]
    else:
        below = list(_attributes(value).items()) or [("", repr(value))]
    around = (*seen, id(value))
    return (type(value).__qualname__, *((key, form(each, around)) for key, each in below))


def _holds_module(value: Any, seen: set[int]) -> bool:
    if isinstance(value, torch.nn.Module):
        return True
    if isinstance(value, _ATOMS) or id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value, Mapping):
        below = list(value.values())
    elif isinstance(value, (tuple, list, set)):
        below = list(value)
    else:
        below = list(_attributes(value).values())
    return any(_holds_module(each, seen) for each in below)


class Place(int):
    """Placeholder for the tensor of this number among the arguments of a call: a leaf of a nest."""


class Length(Place):
    """Placeholder for a number that is the length of the tensor of this number."""


class Count(int):
    """A number of an object that differs from call to call, such as the tokens in a cache.

    It is passed as the length of a tensor, so that one graph serves all numbers.
    """


def numbers(
    value: Any, path: Path = (), around: Around | None = None
) -> Iterator[tuple[Path, Any, int]]:
    """Yield the integers in the attributes of objects in a nest: path, object and value."""
    below = members(value, around)
    if below is not None and not isinstance(value, (tuple, list, Mapping)):
        for name, each in _attributes(value).items():
            if type(each) is int:
                yield (*path, name), value, each
    inside = {**(around or {}), id(value): value}
    for key, each in below or ():
        yield from numbers(each, (*path, key), inside)


_VALUES = (torch.Tensor, np.ndarray, np.generic, Place, Count, fx.Proxy)
"""Types of leaves that are tensors, or stand for one."""

_IN_GRAPHS = (
    *(torch.Tensor, fx.Proxy, bool, int, float, complex, str, type(None)),
    *(torch.dtype, torch.device, torch.SymInt, torch.SymFloat, torch.SymBool),
)
"""Types of leaves that the output of a graph may have."""


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
            if isinstance(leaf, Length):
                return values[leaf].shape[0]
            return values[leaf] if isinstance(leaf, Place) else own_copy(leaf)

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
            kind = Length if isinstance(leaf, Count) else Place
            return kind(len(self.names) - 1)

        return mapped(value, place), tensors

    def _unused(self, name: str) -> str:
        while name in self._used:
            self._used[name] += 1
            name = f"{name}_{self._used[name] - 1}"
        self._used[name] = 1
        return name
