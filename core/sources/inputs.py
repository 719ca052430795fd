"""Inputs of a model: those given by the user, and the file's example inputs for the rest."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from lowerscope.core.files.sources import DTYPES, check_input
from lowerscope.core.model.dimensions import Sizes
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import InputSpec
from lowerscope.core.model.texts import _, _n
from lowerscope.core.sources.examples import (
    ExampleInput,
    Examples,
    Parameter,
    Signature,
    as_input,
    call_examples,
    is_tensor,
)
from lowerscope.core.sources.input_values import draw, read
from lowerscope.core.sources.opened_model import seed_all
from lowerscope.core.sources.pytree import CallSpec, Place, Places, mapped


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a model, in order, and its call signature."""

    values: tuple[ExampleInput, ...]
    calling: CallSpec


@dataclass(frozen=True)
class _Argument:
    """An argument: the names of its tensors, and its nest with a `Place` for each of them.

    ``keyword`` is true if the example passes it by keyword.
    """

    names: tuple[str, ...]
    nest: Any
    keyword: bool = False


def gather(
    specs: tuple[InputSpec, ...],
    signature: Signature,
    examples: Examples,
    fixed: Mapping[str, ExampleInput],
    seed: int,
    path: Path,
    sizes: Sizes,
) -> Inputs:
    """Return the inputs of a model.

    Args:
        specs: Given by the user; a spec without a name is for the next input in order.
        fixed: Inputs whose values are already known, by name, for inputs without a spec.
        seed: Set before the first value is drawn.

    Raises `LowerscopeError` if a value cannot be made, is not a tensor, or the number of inputs is
    """
    arguments: dict[str, _Argument] = {}
    found: dict[str, ExampleInput] = {}
    if examples.make is not None and _wants_examples(specs, signature, fixed, path):
        arguments, found = _example_arguments(examples, signature, path)
    elif examples.make is not None and any(not (each.dtype or each.file) for each in specs):
        # Only for the dtypes: without them, values are as if there were no examples.
        with contextlib.suppress(LowerscopeError):
            found = _example_arguments(examples, signature, path)[1]
    by_name = _assign(specs, _Offered(signature, arguments), path)
    if examples.make is None:
        by_name |= _drawn(signature, {*by_name, *fixed})
    _add_given(arguments, [*by_name, *fixed], path)
    missing = [name for name in signature.required if name not in arguments]
    if missing or (not signature.parameters and signature.rest and not arguments):
        raise _nothing_given(missing or ["x"], signature, path)
    seed_all(seed)
    values: list[ExampleInput] = []
    filled: dict[str, Any] = {}
    for name in dict.fromkeys([*signature.names, *arguments]):
        if name not in arguments:
            continue
        places = []
        for leaf in arguments[name].names:
            places.append(Place(len(values)))
            if leaf in by_name:
                spec, example = by_name[leaf], found.get(leaf)
                values.append(_given(spec, leaf, example, signature, seed, sizes))
            else:
                values.append(fixed[leaf] if leaf in fixed else found[leaf])
        filled[name] = _renumbered(arguments[name], places)
    names = tuple(each.name for each in values)
    keywords = {name for name, argument in arguments.items() if argument.keyword}
    return Inputs(tuple(values), CallSpec(names, *_in_order(filled, keywords, signature, path)))


def _wants_examples(
    specs: tuple[InputSpec, ...],
    signature: Signature,
    fixed: Mapping[str, ExampleInput],
    path: Path,
) -> bool:
    """Return whether the example inputs are needed: making them may take long, or fail."""
    named = {spec.name for spec in specs if spec.name}
    if not specs or not named <= set(signature.names):
        # A name that is no parameter may be that of a tensor within an example.
        return True
    if any(spec.file and spec.shape is None for spec in specs):
        # A picture is made to fit the example.
        return True
    given = _assign(specs, _Offered(signature, {}), path)
    return any(name not in given and name not in fixed for name in signature.required)


def _example_arguments(
    examples: Examples, signature: Signature, path: Path
) -> tuple[dict[str, _Argument], dict[str, ExampleInput]]:
    """Return the arguments of the examples by name, and their tensors by name."""
    places = Places()
    arguments: dict[str, _Argument] = {}
    found: dict[str, ExampleInput] = {}
    values, keywords = call_examples(examples, signature, path)
    for name, value in values.items():
        before = len(places.names)
        nest, tensors = places.add(name, value, is_tensor)
        leaves = tuple(places.names[before:])
        arguments[name] = _Argument(leaves, nest, name in keywords)
        for leaf, tensor in zip(leaves, tensors, strict=True):
            found[leaf] = as_input(tensor, leaf, examples.origin, str(path))
    return arguments, found


def _drawn(signature: Signature, given: set[str]) -> dict[str, InputSpec]:
    """Return the inputs to draw at random: those whose shape and dtype the source declares."""
    shapes = _known_shapes(signature)
    return {
        each.name: InputSpec(name=each.name, shape=shapes[each.name], dtype=each.dtype)
        for each in signature.parameters
        if each.name not in given and each.name in shapes and each.dtype in signature.draws
    }


def _known_shapes(signature: Signature) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the inputs whose extents the source declares in full."""
    return {
        each.name: shape
        for each in signature.parameters
        if (shape := tuple(e for e in each.shape or () if isinstance(e, int))) == each.shape
    }


class _Offered:
    """The names allowed in an option: parameters, or the tensors of their examples."""

    def __init__(self, signature: Signature, arguments: Mapping[str, _Argument]) -> None:
        self.signature = signature
        names: list[str] = []
        for name in dict.fromkeys([*signature.names, *arguments]):
            argument = arguments.get(name)
            names += argument.names if argument is not None and argument.names else (name,)
        self.names = names

    def takes(self, name: str) -> bool:
        """Return whether `name` is allowed for an input."""
        signature = self.signature
        return name in (*self.names, *signature.names) or bool(signature.rest or signature.keywords)


def _assign(specs: tuple[InputSpec, ...], offered: _Offered, path: Path) -> dict[str, InputSpec]:
    """Return the user's specs by the name of the input."""
    signature, names = offered.signature, offered.names
    found: dict[str, InputSpec] = {}
    for spec in specs:
        check_input(spec, f"--input {spec.name}".strip())
        if spec.name in found:
            raise LowerscopeError(
                _("the input {name} is given twice", name=spec.name), where=str(path)
            )
        if spec.name and not offered.takes(spec.name):
            raise LowerscopeError(
                _("the model has no input called {name}", name=spec.name),
                where=str(path),
                todo=_("Its inputs are {names}", names=_(", ").join(names))
                if names
                else _("It takes none"),
            )
        if spec.name:
            found[spec.name] = spec
    free = [name for name in names if name not in found]
    for spec in specs:
        if spec.name:
            continue
        if not free and not signature.rest:
            raise LowerscopeError(
                _n(
                    "{count} input is given, but the model takes {taken}",
                    "{count} inputs are given, but the model takes {taken}",
                    len(specs),
                    taken=signature.count(),
                ),
                where=str(path),
                todo=_("Its inputs are {names}", names=_(", ").join(names))
                if names
                else _("Leave them out"),
            )
        found[free.pop(0) if free else signature.name(len(found))] = spec
    return found


def _add_given(arguments: dict[str, _Argument], given: list[str], path: Path) -> None:
    """Add the arguments that are given as a whole, replacing those of the examples."""
    leaves = {leaf for argument in arguments.values() for leaf in argument.names}
    for name in given:
        if name in leaves:
            continue
        argument = arguments.get(name)
        if argument is not None and argument.names:
            raise LowerscopeError(
                _(
                    "the input {name} is made of {names}",
                    name=name,
                    names=_(", ").join(argument.names),
                ),
                where=str(path),
                todo=_("Give these: {option}", option=Parameter(argument.names[0]).option()),
            )
        arguments[name] = _Argument((name,), Place(0))


def drawn_at(inputs: Sequence[ExampleInput], sizes: Sizes, seed: int) -> tuple[ExampleInput, ...]:
    """Return `inputs` at other sizes: random values are redrawn, the others are unchanged."""
    seed_all(seed)
    return tuple(
        each if each.drawn is None else ExampleInput(each.name, *draw(each.drawn, seed, sizes))
        for each in inputs
    )


def _given(
    spec: InputSpec,
    name: str,
    example: ExampleInput | None,
    signature: Signature,
    seed: int,
    sizes: Sizes,
) -> ExampleInput:
    kind = None if example is None else str(example.value.dtype).removeprefix("torch.")
    if not spec.file:
        declared = {each.name: each.dtype for each in signature.parameters}.get(name)
        if spec.dtype is None and (kind or declared in DTYPES):
            spec = msgspec.structs.replace(spec, dtype=kind or declared)
        return ExampleInput(name, *draw(spec, seed, sizes), drawn=spec)
    like = _known_shapes(signature).get(name)
    if example is not None:
        like = tuple(example.value.shape)
    return ExampleInput(name, *read(spec, name, like, kind))


def _renumbered(argument: _Argument, places: list[Place]) -> Any:
    left = iter(places)
    return mapped(
        argument.nest, lambda leaf: type(leaf)(next(left)) if isinstance(leaf, Place) else leaf
    )


def _in_order(
    filled: Mapping[str, Any], keywords: set[str], signature: Signature, path: Path
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments by position, and by keyword after the first that is left out."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    gap: Parameter | None = None
    for parameter in signature.parameters:
        if parameter.name not in filled or parameter.name in keywords:
            gap = gap or (parameter if parameter.by_position else None)
        if parameter.name not in filled:
            continue
        if parameter.by_position and gap is None:
            args.append(filled[parameter.name])
        elif parameter.by_keyword:
            kwargs[parameter.name] = filled[parameter.name]
        else:
            raise _left_out(gap, path)
    more = {name: nest for name, nest in filled.items() if name not in signature.names}
    for name, nest in more.items():
        if not _is_numbered(name, signature):
            kwargs[name] = nest
        elif gap is not None:
            raise _left_out(gap, path)
        else:
            args.append(nest)
    return tuple(args), kwargs


def _is_numbered(name: str, signature: Signature) -> bool:
    """Return whether an input that is not a parameter belongs to ``*rest``."""
    if not signature.rest:
        return False
    return not signature.keywords or name.removeprefix(f"{signature.rest}_").isdecimal()


def _left_out(gap: Parameter | None, path: Path) -> LowerscopeError:
    assert gap is not None
    return LowerscopeError(
        _("the input {name} is missing, and later ones are given", name=gap.name),
        where=str(path),
        todo=_("They are passed by position; give it as well: {option}", option=gap.option()),
        code="give-inputs",
        choices=(gap.name,),
    )


def _nothing_given(missing: list[str], signature: Signature, path: Path) -> LowerscopeError:
    by_name = {parameter.name: parameter for parameter in signature.parameters}
    options = " ".join((by_name.get(name) or Parameter(name)).option() for name in missing)
    return LowerscopeError(
        _n(
            "the input {names} is not described",
            "the inputs {names} are not described",
            len(missing),
            names=_(", ").join(missing),
        ),
        where=str(path),
        todo=_(
            "Give shapes of your own: {options}; or define example_inputs() in the file",
            options=options,
        )
        if path.suffix == ".py"
        else _("Give shapes of your own: {options}", options=options),
        code="give-inputs",
        choices=tuple(missing),
    )
