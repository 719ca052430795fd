"""Sets of inputs: a folder of files, or arrays whose first axis is the samples.

A file in a folder, and an array whose name matches no input, is for the model's first input. Inputs
that are missing from a set keep their values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lowerscope.core.files.paths import check_readable, user_path
from lowerscope.core.files.sources import ARRAYS, IMAGES
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import InputSpec
from lowerscope.core.sources.array_files import UnreadableArrays, is_archive, read_npy, read_npz
from lowerscope.core.sources.examples import ExampleInput
from lowerscope.core.sources.input_values import LABELS, fitted, from_array, read

_FILES = (*IMAGES, *ARRAYS)


@dataclass(frozen=True, eq=False)
class Sample:
    """One sample: its title, its input specs, and its label, empty for none."""

    title: str
    inputs: tuple[InputSpec, ...]
    label: str = ""


class InputSet:
    """Samples of the inputs of a model, read one by one.

    Attributes:
        samples: In order; files of a folder by natural sort order.
    """

    def __init__(self, path: Path, inputs: Sequence[ExampleInput], classes: Sequence[str]) -> None:
        self._path = path
        self._inputs = inputs
        self._given = [inputs[0]]
        self._arrays: Mapping[str, np.ndarray[Any, Any]] = {}
        if path.is_dir():
            self.samples = self._files()
        else:
            self.samples = self._rows(classes)

    def values(self, place: int) -> tuple[torch.Tensor, ...]:
        """Return the values of all inputs for a sample.

        Raises `LowerscopeError` if its file cannot be read, or does not fit.
        """
        specs = {spec.name: spec for spec in self.samples[place].inputs}
        return tuple(
            self._value(each, specs[each.name]) if each.name in specs else each.value
            for each in self._inputs
        )

    def _value(self, like: ExampleInput, spec: InputSpec) -> torch.Tensor:
        shape, dtype = tuple(like.value.shape), str(like.value.dtype).removeprefix("torch.")
        array = self._arrays.get(like.name)
        if array is None or spec.item is None:
            return read(spec, like.name, shape, dtype)[0]
        value = from_array(np.asarray(array[spec.item]), str(self._path))
        return fitted(value, shape, dtype, str(self._path)).contiguous()

    def _files(self) -> tuple[Sample, ...]:
        found = [each for each in self._path.iterdir() if each.suffix.lower() in _FILES]
        if not found:
            raise LowerscopeError(
                "no input is in this folder",
                where=str(self._path),
                todo="Put pictures, .npy or .npz files into it, one a sample",
            )
        found.sort(key=lambda each: [int(t) if t.isdecimal() else t for t in _parts(each.name)])
        return tuple(Sample(each.name, self._specs(each, None)) for each in found)

    def _rows(self, classes: Sequence[str]) -> tuple[Sample, ...]:
        check_readable(self._path, "set of inputs")
        arrays = _arrays(self._path)
        names = [each for each in arrays if each not in LABELS]
        self._given = [each for each in self._inputs if each.name in names]
        if not self._given and len(names) == 1:
            self._given = [self._inputs[0]]
            arrays[self._inputs[0].name] = arrays[names[0]]
        if not self._given:
            first = self._inputs[0].name
            raise LowerscopeError(
                f"it has no array called {first}; it has {', '.join(names) or 'none'}",
                where=str(self._path),
                todo=f"Save it with np.savez(file, {first}=...), samples first",
            )
        self._arrays = {each.name: arrays[each.name] for each in self._given}
        counts = {name: len(array) if array.ndim else 0 for name, array in self._arrays.items()}
        count = min(counts.values())
        if not count or len(set(counts.values())) > 1:
            said = ", ".join(f"{name} has {each}" for name, each in counts.items())
            raise LowerscopeError(
                f"its arrays have no samples, or not as many of each input: {said}",
                where=str(self._path),
                todo="Give arrays with one sample after the other",
            )
        # Report a misfit once, not for each sample.
        for each, spec in zip(self._given, self._specs(self._path, 0), strict=True):
            self._value(each, spec)
        labels = next((arrays[name] for name in LABELS if name in arrays), None)
        words = [""] * count if labels is None else self._labels(labels, count, classes)
        return tuple(
            Sample(f"sample {place}", self._specs(self._path, place), words[place])
            for place in range(count)
        )

    def _labels(
        self, labels: np.ndarray[Any, Any], count: int, classes: Sequence[str]
    ) -> list[str]:
        """Return the class names of the samples, or their class numbers."""
        flat = labels.reshape(-1)
        if len(flat) != count or flat.dtype.kind not in "iuUb":
            raise LowerscopeError(
                f"its labels are {labels.shape} of {labels.dtype}, for {count} samples",
                where=str(self._path),
                todo="Give the number, or the name, of a class for each sample",
            )
        if flat.dtype.kind == "U":
            return [str(each) for each in flat]
        numbers = [int(each) for each in flat]
        known = range(len(classes))
        return [classes[each] if each in known else str(each) for each in numbers]

    def _specs(self, file: Path, item: int | None) -> tuple[InputSpec, ...]:
        return tuple(
            InputSpec(
                name=each.name,
                shape=tuple(each.value.shape),
                dtype=str(each.value.dtype).removeprefix("torch."),
                file=str(file),
                fit=True,
                item=item,
            )
            for each in self._given
        )


def open_set(path: str, inputs: Sequence[ExampleInput], classes: Sequence[str]) -> InputSet:
    """Return the set of inputs in a folder, an ``.npz`` or an ``.npy``.

    Raises `LowerscopeError` if it does not exist, or is of another kind.
    """
    place = user_path(path).absolute()
    if not place.is_dir() and place.suffix.lower() not in (".npz", ".npy"):
        raise LowerscopeError(
            "this is no set of inputs",
            where=path,
            todo="Give a folder of pictures or .npy files, or an .npz with samples first",
        )
    if not inputs:
        raise LowerscopeError("the model takes no inputs", where=path)
    return InputSet(place, inputs, classes)


def _parts(name: str) -> list[str]:
    return re.split(r"(\d+)", name.lower())


def _arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    try:
        return read_npz(path)[1] if is_archive(path) else {"x": read_npy(path)}
    except UnreadableArrays as error:
        raise LowerscopeError(
            f"this is not a file of NumPy arrays ({error})", where=str(path)
        ) from None
