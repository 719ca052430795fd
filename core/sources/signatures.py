"""Signatures of models: the parameters of ``forward``, or of a Relax function."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.sources.input_option import write_input


@dataclass(frozen=True)
class Parameter:
    """One input of a model: ``shape`` and ``dtype`` are empty if undeclared.

    ``by_keyword`` and ``by_position`` say how it can be passed.
    """

    name: str
    required: bool = True
    shape: tuple[int | str, ...] = ()
    dtype: str = ""
    by_position: bool = True
    by_keyword: bool = False

    def option(self) -> str:
        """Return an example of the option that gives this input."""
        return "--input " + write_input(self.name, self.shape or (1, 784), self.dtype or "float32")


@dataclass(frozen=True)
class Signature:
    """The parameters of a model, in order.

    Attributes
    ----------
    parameters
        Its own; keyword-only ones come last.
    rest
        Name of ``*rest``, which takes any number after those by position; empty without it.
    keywords
        Whether it takes any keyword.
    tensors_only
        Whether an input has to be a tensor, and not a number or a nest of tensors.
    """

    parameters: tuple[Parameter, ...]
    rest: str = ""
    keywords: bool = False
    tensors_only: bool = False

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
            return f"{required} or more"
        return str(most) if required == most else f"{required} to {most}"


def signature_of_model(model: torch.nn.Module, where: str) -> Signature:
    """Return the signature of the ``forward`` of a model.

    Raises
    ------
    LowerscopeError
        If it has no ``forward``.
    """
    if getattr(model.forward, "__name__", "") == "_forward_unimplemented":
        raise LowerscopeError(
            f"{type(model).__name__} has no forward",
            where=where,
            todo="Define it, or open another entry",
        )
    parameters, rest, keywords = [], "", False
    for parameter in inspect.signature(model.forward).parameters.values():
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
