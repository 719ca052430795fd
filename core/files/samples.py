"""Bundled samples: their names and descriptions.

The first paint of the window lists them, so this imports nothing slow.
"""

from __future__ import annotations

from typing import NamedTuple

from lowerscope.core.model.texts import _
from lowerscope.resources import SAMPLES as FOLDER

SAMPLES = (
    "matmul_relu",
    "matmul",
    "fashion_mlp",
    "conv_net",
    "resnet18",
    "depthwise_net",
    "transformer_block",
    "mlp_tvmscript",
)
"""The names of the samples, in the order in which a learner meets them."""


class Sample(NamedTuple):
    """A bundled sample: its name and one-line description."""

    name: str
    description: str


def samples() -> tuple[Sample, ...]:
    """Return every sample with the first line of its file, which is the first of its docstring."""
    # `tests.catalogue` extracts these texts from the files.
    return tuple(Sample(name, _(title_of(name))) for name in SAMPLES)


def title_of(name: str) -> str:
    """Return the description of a sample, in English."""
    with (FOLDER / f"{name}.py").open(encoding="utf-8") as file:
        return file.readline().strip().removeprefix('"""').removesuffix('"""').strip()
