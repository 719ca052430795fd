"""What an opened source is: the model, how its inputs are made, and where its code lives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lowerscope.core.calling import Calling, Place
from lowerscope.core.nesting import mapped
from lowerscope.core.random_state import RandomState
from lowerscope.core.records.snapshot import SourceLine
from lowerscope.core.sources.environments import Environment
from lowerscope.core.sources.examples import ExampleInput, Examples
from lowerscope.core.sources.signatures import (
    Signature,
)

if TYPE_CHECKING:
    import tvm


@dataclass(frozen=True, eq=False, kw_only=True)
class OpenedModel:
    """What was opened, whatever it is called with.

    Attributes
    ----------
    title
        The sample's name, or the entry's, or the file's.
    path
        The file, absolute.
    entry
        What in a Python file was taken, by its name there; empty for an exported program.
    description
        First line of the file's docstring.
    model
        In eval mode, on the CPU; ``None`` for a source without torch.
    module
        For a file that builds an ``IRModule``.
    exported
        For a ``.pt2``.
    classes
        Names of the classes that the output tells apart, if the file has ``classes``.
    reference
        The file's function ``reference``, for a source without torch, which takes the inputs as
        arrays and returns what is to come out; or the entry's in a dict of this name.
    files
        Files whose content the result depends on: those that `source_files` finds, and what was
        imported or read from the file's folder, or below, while it was opened.
    home
        The environment of a Python file; ``None`` for an exported program.
    offered
        What its inputs can be made of.
    """

    title: str
    path: Path
    entry: str
    description: str
    model: torch.nn.Module | None
    module: tvm.IRModule | None
    exported: torch.export.ExportedProgram | None
    classes: tuple[str, ...]
    files: tuple[Path, ...]
    home: Environment | None = None
    reference: Callable[..., Any] | None = None
    offered: Offered

    def environment(self) -> contextlib.AbstractContextManager[None]:
        """Return the context in which the file's code runs: what is opened calls its functions.

        Its neighbours go by their own names, and the functions that it has registered with TVM
        are there. Within itself it does nothing; one thread at a time can be in one.

        Raises
        ------
        LowerscopeError
            When it is entered, if it is `spent`.
        """
        return contextlib.nullcontext() if self.home is None else self.home.entered()

    def registered(self) -> dict[str, SourceLine]:
        """Return where the file registers functions with TVM, by their names."""
        return {} if self.home is None else self.home.registered()

    @property
    def spent(self) -> bool:
        """Whether it must be opened again, since operators of torch that it needs are gone.

        They go when the environment of another file is entered.
        """
        return self.home is not None and self.home.spent


@dataclass(frozen=True, eq=False)
class Offered:
    """What the inputs of a model can be made of.

    Attributes
    ----------
    signature
        What the model takes.
    examples
        The file's example inputs.
    fixed
        The values of inputs that are known already, by name: a file of parameters has them.
    random
        Of the generators of random numbers once the model was built: examples draw from there on.
    """

    signature: Signature
    examples: Examples
    fixed: Mapping[str, ExampleInput]
    random: RandomState


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadedModel(OpenedModel):
    """What was opened, with its inputs.

    Attributes
    ----------
    inputs
        The tensors among the inputs as they are used, in order.
    calling
        How the model is called with them.
    parameters
        Names of the inputs of an ``IRModule`` whose values are from the file of parameters.
    """

    inputs: tuple[ExampleInput, ...]
    calling: Calling
    parameters: frozenset[str]


def form_of(loaded: LoadedModel) -> str:
    """Return what the inputs of a model are but for the values of its tensors, as a text.

    Models that were opened alike and have the same form are traced and lowered alike.
    """
    calling = loaded.calling

    def shown(leaf: Any) -> Any:
        return ("place", int(leaf)) if isinstance(leaf, Place) else leaf

    args = [mapped(each, shown) for each in calling.args]
    kwargs = {name: mapped(each, shown) for name, each in calling.kwargs.items()}
    inputs = [(each.name, each.shape, str(each.value.dtype)) for each in loaded.inputs]
    return repr((inputs, args, kwargs, sorted(loaded.parameters)))
