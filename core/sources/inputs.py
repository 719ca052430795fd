"""The inputs of a model: what the user gave, and the example inputs of the file for the rest."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.recipe import InputSpec
from lowerscope.core.sources.input_option import DTYPES, check_input, write_input
from lowerscope.core.sources.input_values import draw, from_array, read
from lowerscope.core.sources.user_code import user_code


@dataclass(frozen=True, eq=False)
class ExampleInput:
    """One input as it is used.

    Attributes
    ----------
    name
        The parameter of ``forward``, or of the Relax function ``main``.
    value
        On the CPU, contiguous.
    origin
        ``"random, seed 0"``, ``"example_inputs of fashion_mlp.py"``, ``"x.npy"``.
    """

    name: str
    value: torch.Tensor
    origin: str


@dataclass(frozen=True)
class Parameter:
    """One input that a model takes: ``shape`` and ``dtype`` are empty where nothing says them."""

    name: str
    required: bool = True
    shape: tuple[int | str, ...] = ()
    dtype: str = ""

    def option(self) -> str:
        """Return the option that gives this input, to be shown as an example."""
        return "--input " + write_input(self.name, self.shape or (1, 784), self.dtype or "float32")


@dataclass(frozen=True)
class Signature:
    """What a model takes, by position. ``more`` is true if it takes any number after these."""

    parameters: tuple[Parameter, ...]
    more: bool = False

    def name(self, index: int) -> str:
        """Return the name of the input at `index`."""
        if index < len(self.parameters):
            return self.parameters[index].name
        return f"input{index}"


def signature_of_model(model: torch.nn.Module, where: str) -> Signature:
    """Return what the ``forward`` of a model takes.

    Raises
    ------
    LowerscopeError
        If it has no ``forward``, or takes an input by keyword only.
    """
    if getattr(model.forward, "__name__", "") == "_forward_unimplemented":
        raise LowerscopeError(
            f"{type(model).__name__} has no forward",
            where=where,
            todo="Define it, or open another entry",
        )
    parameters = []
    more = False
    for parameter in inspect.signature(model.forward).parameters.values():
        required = parameter.default is parameter.empty
        match parameter.kind:
            case parameter.VAR_POSITIONAL:
                more = True
            case parameter.KEYWORD_ONLY if required:
                raise LowerscopeError(
                    f"forward takes {parameter.name} by keyword only",
                    where=where,
                    todo="Inputs are passed by position: remove the * before it",
                )
            case parameter.POSITIONAL_ONLY | parameter.POSITIONAL_OR_KEYWORD:
                parameters.append(Parameter(parameter.name, required))
    return Signature(tuple(parameters), more)


def signature_of_function(function: Any) -> Signature:
    """Return what a Relax function takes."""
    return Signature(tuple(_parameter_of_variable(variable) for variable in function.params))


def _parameter_of_variable(variable: Any) -> Parameter:
    shape = getattr(variable.ty, "shape", None)
    extents = getattr(shape, "values", None)
    if extents is None:
        return Parameter(variable.name)
    # A constant extent has its value; a symbolic one is written as its name.
    known = tuple(getattr(extent, "value", None) or str(extent) for extent in extents)
    return Parameter(variable.name, shape=known, dtype=str(variable.ty.dtype))


@dataclass(frozen=True)
class Examples:
    """Where example inputs come from: ``make`` is a callable or a value, ``None`` for none."""

    make: Any
    origin: str


def gather(
    specs: tuple[InputSpec, ...],
    signature: Signature,
    examples: Examples,
    fixed: Mapping[str, ExampleInput],
    seed: int,
    path: Path,
) -> tuple[ExampleInput, ...]:
    """Return the inputs of a model.

    Parameters
    ----------
    specs
        What the user said; without a name, the next input in order.
    signature
        What the model takes.
    examples
        The example inputs, for what the user did not say.
    fixed
        Inputs whose values are known already, by name, for what the user did not say.
    seed
        Set before the first value is drawn.
    path
        The source.

    Raises
    ------
    LowerscopeError
        If a value cannot be had, is not a tensor, or the number of inputs is wrong;
        ``code="give-inputs"`` where the user must say more.
    """
    by_name = _assign(specs, signature, path)
    needed = [name for name in _required(signature) if name not in by_name and name not in fixed]
    pictures = [spec for spec in by_name.values() if spec.file and spec.shape is None]
    found: dict[str, ExampleInput] = {}
    if examples.make is not None and (needed or pictures or not by_name):
        found = _call_examples(examples, signature, path)
    missing = [name for name in needed if name not in found]
    if missing or (not signature.parameters and signature.more and not (found or by_name)):
        raise _nothing_given(missing or ["x"], signature, path)
    seed_all(seed)
    values: dict[str, ExampleInput] = {}
    for name in dict.fromkeys([*_names(signature), *by_name, *found]):
        if name in by_name:
            values[name] = _given(by_name[name], name, found.get(name), seed)
        elif name in fixed:
            values[name] = fixed[name]
        elif name in found:
            values[name] = found[name]
    return _in_order(values, signature, path)


def seed_all(seed: int) -> None:
    """Seed torch, NumPy and Python.

    Raises
    ------
    LowerscopeError
        If the seed is none that all of them take.
    """
    import random

    if not 0 <= seed < 2**32:
        raise LowerscopeError(
            f"the seed {seed} is out of range", where="--seed", todo="Give one from 0 to 4294967295"
        )
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def as_input(value: object, name: str, origin: str, where: str) -> ExampleInput:
    """Return a tensor, a NumPy array or a TVM tensor as an input.

    Raises
    ------
    LowerscopeError
        If it is none of these, or its dtype is none that an input may have.
    """
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
    elif isinstance(value, (np.ndarray, np.generic)):
        tensor = from_array(np.asarray(value), where)
    elif callable(getattr(value, "numpy", None)):
        tensor = from_array(np.asarray(value.numpy()), where)  # type: ignore[attr-defined]
    else:
        raise LowerscopeError(
            f"the example input {name} is of type {type(value).__name__}, not a tensor",
            where=where,
            todo="Return a tuple of tensors; give numbers to the constructor instead",
        )
    if str(tensor.dtype).removeprefix("torch.") not in DTYPES or tensor.layout != torch.strided:
        raise LowerscopeError(
            f"the example input {name} is of {tensor.dtype}, {tensor.layout}",
            where=where,
            todo=f"Return dense tensors; the dtypes are {', '.join(DTYPES)}",
        )
    return ExampleInput(name, tensor.cpu().contiguous(), origin)


def _assign(specs: tuple[InputSpec, ...], signature: Signature, path: Path) -> dict[str, InputSpec]:
    """Return what the user said by the name of the input."""
    names = _names(signature)
    found: dict[str, InputSpec] = {}
    for spec in specs:
        check_input(spec, f"--input {spec.name or 'without a name'}")
        if spec.name in found:
            raise LowerscopeError(f"the input {spec.name} is given twice", where=str(path))
        if spec.name and spec.name not in names and not signature.more:
            raise LowerscopeError(
                f"the model has no input called {spec.name}",
                where=str(path),
                todo=f"Its inputs are {', '.join(names)}" if names else "It takes none",
            )
        if spec.name:
            found[spec.name] = spec
    free = [name for name in names if name not in found]
    for spec in specs:
        if spec.name:
            continue
        if not free and not signature.more:
            raise LowerscopeError(
                f"{len(specs)} inputs are given, but the model takes {_count(signature)}",
                where=str(path),
                todo=f"Its inputs are {', '.join(names)}" if names else "Leave them out",
            )
        found[free.pop(0) if free else f"input{len(found)}"] = spec
    return found


def _given(spec: InputSpec, name: str, example: ExampleInput | None, seed: int) -> ExampleInput:
    if not spec.file:
        return ExampleInput(name, *draw(spec, seed))
    like = None if example is None else tuple(example.value.shape)
    return ExampleInput(name, *read(spec, name, like))


def _call_examples(examples: Examples, signature: Signature, path: Path) -> dict[str, ExampleInput]:
    values = examples.make
    if callable(values):
        try:
            inspect.signature(values).bind()
        except TypeError as error:
            raise LowerscopeError(
                f"example_inputs must be callable without arguments ({error})", where=str(path)
            ) from None
        with user_code(path, "makes its example inputs"):
            values = values()
    if isinstance(values, (torch.Tensor, np.ndarray)):
        values = (values,)
    if not isinstance(values, (tuple, list)):
        raise LowerscopeError(
            f"example_inputs gives a {type(values).__name__}, not a tuple of tensors",
            where=str(path),
            todo="Return a tuple, with a comma even around one: return (x,)",
        )
    if len(values) > len(signature.parameters) and not signature.more:
        raise LowerscopeError(
            f"example_inputs gives {len(values)} inputs, but the model takes {_count(signature)}",
            where=str(path),
            todo=f"Its inputs are {', '.join(_names(signature))}",
        )
    names = [signature.name(index) for index in range(len(values))]
    return {
        name: as_input(value, name, examples.origin, str(path))
        for name, value in zip(names, values, strict=True)
    }


def _in_order(
    values: Mapping[str, ExampleInput], signature: Signature, path: Path
) -> tuple[ExampleInput, ...]:
    """Return the inputs by position; a later one needs all that come before it."""
    names = _names(signature)
    present = [name in values for name in names]
    gap = next((i for i, there in enumerate(present) if not there), len(names))
    if any(present[gap:]) or (gap < len(names) and len(values) > gap):
        raise LowerscopeError(
            f"the input {names[gap]} is missing before those that follow it",
            where=str(path),
            todo=f"Inputs are passed by position: give {signature.parameters[gap].option()}",
            code="give-inputs",
            choices=(names[gap],),
        )
    return tuple(values.values())


def _nothing_given(missing: list[str], signature: Signature, path: Path) -> LowerscopeError:
    by_name = {parameter.name: parameter for parameter in signature.parameters}
    options = " ".join((by_name.get(name) or Parameter(name)).option() for name in missing)
    return LowerscopeError(
        f"nothing says what the input{'s' if len(missing) > 1 else ''} {', '.join(missing)} "
        f"{'are' if len(missing) > 1 else 'is'}",
        where=str(path),
        todo=f"Give {options} with your own shapes, or define example_inputs() in the file",
        code="give-inputs",
        choices=tuple(missing),
    )


def _names(signature: Signature) -> list[str]:
    return [parameter.name for parameter in signature.parameters]


def _required(signature: Signature) -> list[str]:
    return [parameter.name for parameter in signature.parameters if parameter.required]


def _count(signature: Signature) -> str:
    required, most = len(_required(signature)), len(signature.parameters)
    if signature.more:
        return f"{required} or more"
    return str(most) if required == most else f"{required} to {most}"
