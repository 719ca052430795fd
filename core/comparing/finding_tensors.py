"""Lookup of a recipe's tensors by name: parameters, buffers, constants, inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from tvm import relax

from lowerscope.core.comparing.tensor_values import as_array, values_of
from lowerscope.core.errors import LowerscopeError, listed
from lowerscope.core.execution.running import to_torch
from lowerscope.core.export.arrays import save_array
from lowerscope.core.lowering.lowered import NamedConstant
from lowerscope.core.lowering.parameters import constants_of, name_constants
from lowerscope.core.memo import key_of
from lowerscope.core.model.queries import SaveValuesQuery, ValuesQuery, answers
from lowerscope.core.nesting import identifier
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Progress
from lowerscope.core.records.model import ParameterRecord, ValuesRecord
from lowerscope.core.stages import Stages

KINDS = ("param", "const", "input")
"""Prefixes of the ids of tensors."""


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
    """Return the constants of the Relax module that are no parameters of the model."""
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
    """Return the tensor `name`: ``linear0.weight``, ``linear0_weight`` or ``constant_0``.

    Parameters
    ----------
    name
        Of a parameter or buffer of the model, of a constant of the Relax module, or of an input;
        or its id, such as ``param:linear0.weight``.

    Raises
    ------
    LowerscopeError
        If there is none of this name, with the existing names.
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


def _is_cached(query: ValuesQuery, pipeline: Pipeline, job: Progress) -> bool:
    return pipeline.stages(query.recipe, job).has_module()


@answers(ValuesQuery, _is_cached)
def values(query: ValuesQuery, pipeline: Pipeline, job: Progress) -> ValuesRecord:
    """Return statistics of the values of a parameter, a buffer, a constant or an input.

    Raises
    ------
    LowerscopeError
        If there is none of that name.
    """
    stages, name = pipeline.stages(query.recipe, job), query.name
    stages.loaded  # noqa: B018 - an input is known by its values
    key = key_of("values", stages.lower_key, stages.load_key, name)
    return stages.keep("values", key, lambda: values_of(name, find_tensor(stages, name)))


@answers(SaveValuesQuery)
def save_values(query: SaveValuesQuery, pipeline: Pipeline, job: Progress) -> str:
    """Write a tensor to a ``.npy`` file, replacing an existing one; return the file's path.

    Raises
    ------
    LowerscopeError
        If there is no such tensor, or the file cannot be written.
    """
    tensor = find_tensor(pipeline.stages(query.recipe, job), query.name)
    return save_array(as_array(tensor), query.file)
