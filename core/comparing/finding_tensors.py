"""The tensors of a recipe by name: parameters, buffers, constants of the Relax module, inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from tvm import relax

from lowerscope.core.errors import LowerscopeError, listed
from lowerscope.core.execution.running import to_torch
from lowerscope.core.lowering.lowered import NamedConstant
from lowerscope.core.lowering.parameters import constants_of, name_constants
from lowerscope.core.nesting import identifier
from lowerscope.core.records.model import ParameterRecord
from lowerscope.core.stages import Stages

KINDS = ("param", "const", "input")
"""Before the names in the ids of tensors."""


def constants_by_name(stages: Stages) -> tuple[NamedConstant, ...]:
    """Return the constants of the Relax module before the passes, each once."""
    lowered, traced = stages.lowered, stages.traced
    if lowered is not None and traced is not None:
        return name_constants(lowered.module, traced.graph_module, lowered)
    functions = [
        function
        for function in stages.module.functions.values()
        if isinstance(function, relax.Function)
    ]
    found = dict.fromkeys(each for function in functions for each in constants_of(function))
    return tuple(
        NamedConstant(f"constant_{number}", False, each) for number, each in enumerate(found)
    )


def constant_records(stages: Stages) -> tuple[ParameterRecord, ...]:
    """Return the constants of the Relax module that are none of the model's parameters."""
    own = {name for name, _ in _parameters(stages)}
    return tuple(
        ParameterRecord(
            id=f"const:{each.name}",
            name=each.name,
            shape=tuple(each.data.shape),
            dtype=str(each.data.dtype),
            size=each.data.numpy().nbytes,
            kind="constant",
        )
        for each in constants_by_name(stages)
        if each.name not in own
    )


def find_tensor(stages: Stages, name: str) -> torch.Tensor:
    """Return the tensor called `name`: ``linear0.weight``, ``linear0_weight`` or ``constant_0``.

    Parameters
    ----------
    name
        Of a parameter or buffer of the model, of a constant of the Relax module, or of an input;
        the id of one, such as ``param:linear0.weight``, is taken as well.

    Raises
    ------
    LowerscopeError
        If there is none of this name, with the names that there are.
    """
    kind, _, rest = name.partition(":")
    wanted = rest if kind in KINDS else name
    known: list[str] = []
    for title, tensor in _tensors(stages):
        if wanted in (title, identifier(title, ())):
            return tensor()
        known.append(title)
    raise LowerscopeError(
        f"there is no parameter or constant {wanted}",
        where="--constant",
        todo=f"There are {listed(known)}" if known else "The model has none",
    )


def _tensors(stages: Stages) -> Iterator[tuple[str, Callable[[], torch.Tensor]]]:
    for name, tensor in _parameters(stages):
        yield name, partial(_itself, tensor)
    for constant in constants_by_name(stages):
        yield constant.name, partial(to_torch, constant.data)
    for each in stages.loaded.inputs:
        yield each.name, partial(_itself, each.value)


def _itself(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _parameters(stages: Stages) -> Iterator[tuple[str, torch.Tensor]]:
    model = stages.loaded.model
    if model is not None:
        yield from model.named_parameters(remove_duplicate=False)
        yield from model.named_buffers(remove_duplicate=False)
