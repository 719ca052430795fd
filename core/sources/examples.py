"""Example inputs of a file, and their accepted forms.

==========================================  ===================================================
``example_inputs`` is or returns            the model is called with
==========================================  ===================================================
a tensor                                    the one input
a tuple or a list                           its members, by position
a dict                                      its members, by keyword
a tuple of a tuple and a dict               the first's members by position, the other's by
                                            keyword
==========================================  ===================================================

Each member may be a tensor (or a NumPy array), or a nest of them, such as a cache with tensors in
its attributes; a number, a string, ``None`` or an object without tensors is passed unchanged.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch

from lowerscope.core.files.sources import DTYPES, FLOATS, write_input
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import InputSpec
from lowerscope.core.model.texts import _, _n
from lowerscope.core.sources.input_values import from_array
from lowerscope.core.sources.pytree import (
    SPARSE,
    Count,
    SparseTensor,
    forward_signature,
    leaves,
    mapped,
    path_text,
)
from lowerscope.core.sources.user_code import user_code


@dataclass(frozen=True)
class Parameter:
    """One input of a model: ``shape`` is ``None``, and ``dtype`` empty, if undeclared.

    ``by_keyword`` and ``by_position`` say how it can be passed.
    """

    name: str
    required: bool = True
    shape: tuple[int | str, ...] | None = None
    dtype: str = ""
    by_position: bool = True
    by_keyword: bool = False

    def option(self) -> str:
        """Return an example of the option that gives this input."""
        shape = (1, 784) if self.shape is None else self.shape
        return "--input " + write_input(self.name, shape, self.dtype or "float32")


@dataclass(frozen=True)
class Signature:
    """The parameters of a model, in order."""

    parameters: tuple[Parameter, ...]  # its own; keyword-only ones come last
    # Name of ``*rest``, which takes any number after those by position; empty without it.
    rest: str = ""
    keywords: bool = False  # whether it takes any keyword
    # Whether an input has to be a tensor, and not a number or a nest of tensors.
    tensors_only: bool = False
    # Dtypes of the inputs that are drawn at random if their shape and dtype are declared.
    draws: tuple[str, ...] = FLOATS

    @property
    def names(self) -> list[str]:
        """Names of `parameters`."""
        return [parameter.name for parameter in self.parameters]

    @property
    def required(self) -> list[str]:
        """Names of the parameters without a default."""
        return [parameter.name for parameter in self.parameters if parameter.required]

    @property
    def positions(self) -> list[str]:
        """Names of the parameters that can be passed by position."""
        return [parameter.name for parameter in self.parameters if parameter.by_position]

    def name(self, index: int) -> str:
        """Return the name of the input at position `index`."""
        positions = self.positions
        if index < len(positions):
            return positions[index]
        return f"{self.rest or 'input'}_{index - len(positions)}"

    def count(self) -> str:
        """Return the number of inputs in words."""
        required, most = len(self.required), len(self.parameters)
        if self.rest or self.keywords:
            return _("{required} or more", required=required)
        return str(most) if required == most else _("{low} to {high}", low=required, high=most)


def signature_of_model(model: torch.nn.Module, where: str) -> Signature:
    """Return the signature of the ``forward`` of a model.

    Raises `LowerscopeError` if it has no ``forward``.
    """
    if getattr(model.forward, "__name__", "") == "_forward_unimplemented":
        raise LowerscopeError(
            _("{name} has no forward", name=type(model).__name__),
            where=where,
            todo=_("Define it, or open another entry"),
        )
    parameters, rest, keywords = [], "", False
    for parameter in forward_signature(model).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = parameter.name
        elif parameter.kind is parameter.VAR_KEYWORD:
            keywords = True
        else:
            parameters.append(
                Parameter(
                    parameter.name,
                    parameter.default is parameter.empty,
                    by_position=parameter.kind is not parameter.KEYWORD_ONLY,
                    by_keyword=parameter.kind is not parameter.POSITIONAL_ONLY,
                )
            )
    return Signature(tuple(parameters), rest, keywords)


def signature_of_function(function: Any) -> Signature:
    """Return the signature of a Relax function."""
    parameters = tuple(_parameter_of_variable(variable) for variable in function.params)
    return Signature(parameters, tensors_only=True)


def _parameter_of_variable(variable: Any) -> Parameter:
    shape = getattr(variable.ty, "shape", None)
    extents = getattr(shape, "values", None)
    if extents is None:
        return Parameter(variable.name)
    # A constant extent has a value; a symbolic one is written as its name.
    known = tuple(getattr(extent, "value", None) or str(extent) for extent in extents)
    return Parameter(variable.name, shape=known, dtype=str(variable.ty.dtype))


_AS_THEY_ARE = (bool, int, float, complex, str, torch.dtype, torch.device, type(None))


_CODE = (type, ModuleType, FunctionType, torch.nn.Module)
"""Types of objects that are no inputs by themselves; inside of others they are passed unchanged."""


@dataclass(frozen=True, eq=False)
class ExampleInput:
    """One tensor among the inputs, as used."""

    # Of the parameter of ``forward``, or of the Relax function ``main``; within a nest, with the
    # path to it: ``batch_image``.
    name: str
    value: torch.Tensor  # on the CPU, contiguous
    origin: str  # ``"random, seed 0"``, ``"example_inputs of fashion_mlp.py"``, ``"x.npy"``
    # The spec of its random value, with the names of dynamic dimensions; ``None`` for other values.
    drawn: InputSpec | None = None

    @property
    def shape(self) -> tuple[int | str, ...]:
        """Its extents, with the names of dynamic dimensions."""
        named = None if self.drawn is None else self.drawn.shape
        return tuple(self.value.shape) if named is None else named


@dataclass(frozen=True)
class Examples:
    """Source of example inputs: ``make`` is a callable or a value, ``None`` for none."""

    make: Any
    origin: str


def is_tensor(value: object) -> bool:
    """Return whether `as_input` accepts `value` as a tensor."""
    return isinstance(value, torch.Tensor | np.ndarray | np.generic | Count) or (
        callable(getattr(value, "numpy", None)) and not isinstance(value, type)
    )


def as_input(value: object, name: str, origin: str, where: str) -> ExampleInput:
    """Return a tensor, a NumPy array or a TVM tensor as an input.

    Raises `LowerscopeError` if it is none of these, or its dtype is not supported for inputs.
    """
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
    elif isinstance(value, Count):
        tensor = torch.zeros(value, dtype=torch.bool)
    elif isinstance(value, (np.ndarray, np.generic)):
        tensor = from_array(np.asarray(value), where)
    elif callable(getattr(value, "numpy", None)):
        tensor = from_array(np.asarray(value.numpy()), where)  # type: ignore[attr-defined]
    else:
        raise _no_tensor(name, value, where)
    if str(tensor.dtype).removeprefix("torch.") not in DTYPES or tensor.layout != torch.strided:
        raise LowerscopeError(
            _(
                "the example input {name} is of {dtype}, {layout}",
                name=name,
                dtype=tensor.dtype,
                layout=tensor.layout,
            ),
            where=where,
            todo=_("Return dense tensors; the dtypes are {dtypes}", dtypes=_(", ").join(DTYPES)),
        )
    return ExampleInput(name, tensor.cpu().contiguous(), origin)


def call_examples(
    examples: Examples, signature: Signature, path: Path
) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the example arguments by name, and the names of those passed by keyword.

    Raises `LowerscopeError` if they cannot be made, or do not match the model's signature.
    """
    values = examples.make
    if callable(values):
        try:
            inspect.signature(values).bind()
        except TypeError as error:
            raise LowerscopeError(
                _("example_inputs must be callable without arguments ({error})", error=error),
                where=str(path),
            ) from None
        with user_code(path, _("making the example inputs failed")):
            values = values()
    return named_arguments(values, signature, path)


def named_arguments(
    values: Any, signature: Signature, path: Path, source: str = "example_inputs"
) -> tuple[dict[str, Any], frozenset[str]]:
    """Return arguments by name, and the names of those passed by keyword: see this module.

    Args:
        source: What has returned the values: the name of a function or a variable of the file.
    """
    args, kwargs = arguments_of(values, path, source)
    arguments = {
        name: mapped(value, _taken_apart)
        for name, value in _by_name(args, kwargs, signature, path, source).items()
    }
    for name, value in arguments.items():
        _check_leaves(name, value, signature, path)
    return arguments, frozenset(kwargs)


def _taken_apart(leaf: Any) -> Any:
    sparse = isinstance(leaf, torch.Tensor) and leaf.layout in SPARSE
    return SparseTensor.of(leaf.cpu()) if sparse else leaf


def arguments_of(values: Any, path: Path, source: str) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Return the arguments by position and by keyword: see the table at the top of this module."""
    if isinstance(values, Mapping):
        return (), values
    if is_tensor(values):
        return (values,), {}
    if not isinstance(values, tuple | list) or hasattr(values, "_fields"):
        raise LowerscopeError(
            _(
                "{source} returns a {name}, not a tuple of tensors",
                source=source,
                name=type(values).__name__,
            ),
            where=str(path),
            todo=_("Return a tuple, with a comma even around one: return (x,)"),
        )
    match values:
        case (tuple() as args, dict() as kwargs) if not hasattr(args, "_fields"):
            return args, kwargs
    return tuple(values), {}


def _by_name(
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    signature: Signature,
    path: Path,
    source: str,
) -> dict[str, Any]:
    names = signature.names
    taken = _("Its inputs are {names}", names=_(", ").join(names)) if names else _("It takes none")
    if len(args) > len(signature.positions) and not signature.rest:
        raise LowerscopeError(
            _n(
                "{source} returns {count} input, but the model takes {taken}",
                "{source} returns {count} inputs, but the model takes {taken}",
                len(args),
                source=source,
                taken=signature.count(),
            ),
            where=str(path),
            todo=taken,
        )
    arguments = {signature.name(index): value for index, value in enumerate(args)}
    by_keyword = [each.name for each in signature.parameters if each.by_keyword]
    for name, value in kwargs.items():
        if name in arguments:
            raise LowerscopeError(
                _("{source} gives {name} twice", source=source, name=name), where=str(path)
            )
        if not isinstance(name, str) or (name not in by_keyword and not signature.keywords):
            raise LowerscopeError(
                _(
                    "{source} gives {name} by keyword, which the model does not take",
                    source=source,
                    name=name,
                ),
                where=str(path),
                todo=_(
                    "{taken}; for an input that is itself a dict, return ({{...}},)", taken=taken
                ),
            )
        arguments[name] = value
    return arguments


def _check_leaves(name: str, value: Any, signature: Signature, path: Path) -> None:
    if signature.tensors_only and not is_tensor(value):
        raise _no_tensor(name, value, str(path))
    for place, leaf in leaves(value):
        held = getattr(leaf, "__dict__", None) is not None and (
            bool(place) or not isinstance(leaf, _CODE)
        )
        if not is_tensor(leaf) and not held and not isinstance(leaf, _AS_THEY_ARE):
            raise _no_tensor(path_text(place, name), leaf, str(path))


def _no_tensor(name: str, value: object, where: str) -> LowerscopeError:
    return LowerscopeError(
        _(
            "the input {name} is of type {name2}, not a tensor",
            name=name,
            name2=type(value).__name__,
        ),
        where=where,
        todo=_("Return tensors, or tuples, lists, dicts and dataclasses of tensors and numbers"),
    )
