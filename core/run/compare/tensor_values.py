"""Values of a recipe's tensors: lookup by name, statistics, and files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import tvm
from tvm import relax

from lowerscope.core.files.atomic_write import atomic_file
from lowerscope.core.files.memo import key_of
from lowerscope.core.files.paths import cannot_write, user_path
from lowerscope.core.lowering.partial_module import constants_of, name_constants
from lowerscope.core.lowering.types import NamedConstant
from lowerscope.core.model.comparison_records import TensorStatistics
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.queries import SaveValuesQuery, ValuesQuery, answers
from lowerscope.core.model.snapshot import ParameterRecord, ValuesRecord
from lowerscope.core.run.execution import to_torch
from lowerscope.core.sources.pytree import identifier
from lowerscope.core.stages import Pipeline, Stages

BINS = 48
"""Bars of a histogram; fewer for integers of a small range."""

FIRST = 32
"""Number of first values that are returned."""

_CHUNK = 1 << 21
"""Number of elements processed at once, to avoid copies of a large tensor."""


def values_of(name: str, tensor: torch.Tensor) -> ValuesRecord:
    """Describe the values of `tensor`, or the magnitudes of complex ones.

    Range, mean, deviation and histogram are of finite values. The deviation is that of the whole
    population, as in ``numpy.std``.
    """
    found = statistics_of(tensor)
    edges, counts = histogram_of(tensor, found.low, found.high)
    return ValuesRecord(
        name=name,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        size=tensor.numel() * tensor.element_size(),
        count=tensor.numel(),
        low=found.low,
        high=found.high,
        mean=found.mean,
        deviation=found.deviation,
        nans=found.nans,
        infinities=found.infinities,
        zeros=found.zeros,
        edges=edges,
        counts=counts,
        first=first_of(tensor, FIRST),
    )


def statistics_of(tensor: torch.Tensor) -> TensorStatistics:
    """Return statistics of `tensor`."""
    nans = infinities = zeros = finite = 0
    low, high, mean, squares = math.inf, -math.inf, 0.0, 0.0
    for chunk in _chunks(_flat(tensor)):
        nans += int(np.isnan(chunk).sum())
        infinities += int(np.isinf(chunk).sum())
        zeros += int((chunk == 0).sum())
        numbers = chunk[np.isfinite(chunk)]
        if numbers.size:
            low, high = min(low, float(numbers.min())), max(high, float(numbers.max()))
            # Combine mean and squares of two sets, which keeps numbers far from zero exact.
            own = float(numbers.mean())
            together = finite + numbers.size
            squares += float(((numbers - own) ** 2).sum())
            squares += (own - mean) ** 2 * finite * numbers.size / together
            mean += (own - mean) * numbers.size / together
            finite = together
    return TensorStatistics(
        count=tensor.numel(),
        low=low if finite else None,
        high=high if finite else None,
        mean=mean if finite else None,
        deviation=math.sqrt(squares / finite) if finite else None,
        nans=nans,
        infinities=infinities,
        zeros=zeros,
    )


def histogram_of(
    tensor: torch.Tensor, low: float | None, high: float | None
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return edges and counts of a histogram of the finite values, which lie in `low` to `high`."""
    if low is None or high is None:
        return (), ()
    whole = not (tensor.is_floating_point() or tensor.is_complex())
    edges = _edges(low, high, whole=whole)
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for chunk in _chunks(_flat(tensor)):
        counts += np.histogram(chunk[np.isfinite(chunk)], edges)[0]
    return tuple(float(edge) for edge in edges), tuple(int(count) for count in counts)


def first_of(tensor: torch.Tensor, count: int, digits: int = 6) -> tuple[str, ...]:
    """Format the first elements of a tensor to some significant digits."""
    return tuple(_text(value, digits) for value in tensor.detach().reshape(-1)[:count].tolist())


def as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a tensor as an array; bfloat16 as float32, which represents all its values."""
    data = tensor.detach().cpu().resolve_conj().resolve_neg()
    if data.layout is not torch.strided:
        data = data.to_dense()
    return (data.float() if data.dtype is torch.bfloat16 else data).numpy()


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    data = tensor.detach().cpu()
    if data.layout is not torch.strided:
        data = data.to_dense()
    return data.reshape(-1)


def _chunks(flat: torch.Tensor) -> Iterator[np.ndarray[Any, Any]]:
    for start in range(0, flat.numel(), _CHUNK):
        chunk = flat[start : start + _CHUNK]
        yield (chunk.abs() if chunk.is_complex() else chunk).double().numpy()


def _edges(low: float, high: float, *, whole: bool) -> np.ndarray[Any, Any]:
    """Return the edges of the bars: one bar an integer if these are few."""
    if whole and high - low < BINS:
        return np.arange(low, high + 2) - 0.5
    if low == high:
        half = abs(low) / 2 or 0.5
        return np.array([low - half, high + half])
    return np.linspace(low, high, BINS + 1)


def _text(value: complex | float | int | bool, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


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

    Raises a `LowerscopeError` if there is none of this name, with the existing names.

    Parameters
    ----------
    name
        Of a parameter or buffer of the model, of a constant of the Relax module, or of an input;
        or its id, such as ``param:linear0.weight``.
    """
    kind, _, rest = name.partition(":")
    wanted = rest if kind in KINDS else name
    known: list[str] = []
    for title, tensor in _tensors(stages):
        if wanted in (title, identifier(title, ())):
            return tensor if isinstance(tensor, torch.Tensor) else to_torch(tensor)
        known.append(title)
    raise LowerscopeError(
        f"there is no parameter or constant {wanted}",
        where="--constant",
        todo=f"There are {listed(known)}" if known else "The model has none",
    )


def _tensors(stages: Stages) -> Iterator[tuple[str, torch.Tensor | tvm.runtime.Tensor]]:
    yield from _parameters(stages)
    yield from ((each.name, each.data) for each in constants_by_name(stages))
    yield from ((each.name, each.value) for each in stages.loaded.inputs)


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

    Raises a `LowerscopeError` if there is none of that name.
    """
    stages, name = pipeline.stages(query.recipe, job), query.name
    stages.loaded  # noqa: B018 - an input is known by its values
    key = key_of("values", stages.lower_key, stages.load_key, name)
    return stages.keep("values", key, lambda: values_of(name, find_tensor(stages, name)))


@answers(SaveValuesQuery)
def save_values(query: SaveValuesQuery, pipeline: Pipeline, job: Progress) -> str:
    """Write a tensor to a ``.npy`` file, replacing an existing one; return the file's path.

    Raises a `LowerscopeError` if there is no such tensor, or the file cannot be written.
    """
    tensor = find_tensor(pipeline.stages(query.recipe, job), query.name)
    return save_array(as_array(tensor), query.file)


def save_array(array: np.ndarray[Any, Any], file: str) -> str:
    """Write `array` as ``.npy``, replacing an existing file; return its absolute path.

    Raises a `LowerscopeError` if the file cannot be written.
    """
    path = user_path(file).absolute()
    try:
        with atomic_file(path) as made, made.open("wb") as stream:
            np.save(stream, array, allow_pickle=False)
    except OSError as error:
        raise cannot_write(error, path) from error
    return str(path)
