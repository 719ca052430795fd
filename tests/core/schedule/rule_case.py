"""A small model that rules are for, with the same in torch: its sizes, dtypes and label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from tvm import relax, tirx

Extent = int | str
"""A number, or the name of a dimension that has any size."""

Shape = tuple[Extent, ...]
Emit = Callable[[Any], Any]

SIZES = {"n": 7, "m": 12}
"""Sizes of the named dimensions for a run of a function."""

FLOATS = ("float32", "float32", "float64", "float16", "bfloat16")
ODD = (1, 2, 3, 5, 7, 13, 17, 31)
EVEN = (4, 8, 16, 24, 32, 48, 64, 96)


@dataclass(frozen=True)
class Case:
    """A model of a few operators.

    Attributes
    ----------
    label
        All that was drawn.
    inputs
        Shape and dtype of each.
    emit
        Given what emits a binding and the inputs, returns the output.
    torch
        The same, in torch; ``None`` where torch has nothing of the kind.
    """

    label: str
    inputs: tuple[tuple[Shape, str], ...]
    emit: Callable[..., Any]
    torch: Callable[..., torch.Tensor] | None

    def module(self) -> Any:
        """Return the model as a Relax module, not legalised."""
        builder = relax.BlockBuilder()
        names = {name: tirx.Var(name, "int64") for name in SIZES}
        variables = []
        for number, (shape, dtype) in enumerate(self.inputs):
            extents = [names[each] if isinstance(each, str) else each for each in shape]
            variables.append(relax.Var(f"x{number}", relax.TensorType(extents, dtype)))
        with builder.function("main", variables):
            with builder.dataflow():
                output = builder.emit_output(self.emit(builder.emit, *variables))
            builder.emit_func_output(output)
        return builder.get()

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of the inputs in numbers."""
        return [sized(shape) for shape, _ in self.inputs]


def sized(shape: Shape) -> tuple[int, ...]:
    """Return a shape in numbers."""
    return tuple(SIZES[each] if isinstance(each, str) else each for each in shape)


def extents(symbolic: bool = False) -> st.SearchStrategy[Any]:
    """Return extents, of which few are round."""
    numbers = st.sampled_from((*ODD, *ODD, *EVEN))
    return (
        st.one_of(numbers, numbers, numbers, st.sampled_from(("n", "m"))) if symbolic else numbers
    )


def label_of(kind: str, **drawn: object) -> str:
    """Return a label."""
    return f"{kind}({', '.join(f'{name}={value}' for name, value in drawn.items())})"
