"""Bundled samples: their files and descriptions.

The window lists them in its first paint, so this module must be fast to import.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

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

PREFIX = "sample:"


class Sample(NamedTuple):
    """A bundled sample: its name and one-line description."""

    name: str
    description: str


def sample_path(name: str) -> Path:
    """Return the file of the sample called `name`.

    Raises
    ------
    LowerscopeError
        If there is no such sample; the error lists the names.
    """
    if name not in SAMPLES:
        from lowerscope.core.sources.no_sources import no_sample

        raise no_sample(name)
    return FOLDER / f"{name}.py"


def samples() -> tuple[Sample, ...]:
    """Return every sample with the first line of its docstring."""
    return tuple(Sample(name, _title(sample_path(name).read_text("utf-8"))) for name in SAMPLES)


def _title(text: str) -> str:
    """Return the first line of a sample, which is the first of its docstring."""
    return text.removeprefix('"""').split("\n", 1)[0].removesuffix('"""').strip()
