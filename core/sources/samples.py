"""The bundled samples: where they are and what each one says of itself. Imports no torch."""

from __future__ import annotations

import ast
from pathlib import Path

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.records import SampleRecord
from lowerscope.resources import SAMPLES as FOLDER

SAMPLES = (
    "matmul_relu",
    "fashion_mlp",
    "conv_net",
    "resnet18",
    "transformer_block",
    "mlp_tvmscript",
)
"""The names of the samples, in the order in which a learner meets them."""

PREFIX = "sample:"


def sample_path(name: str) -> Path:
    """Return the file of the sample called `name`.

    Raises
    ------
    LowerscopeError
        If there is no such sample; the error lists the names.
    """
    if name not in SAMPLES:
        raise LowerscopeError(
            f"there is no sample called {name!r}" if name else "the name of the sample is missing",
            where=PREFIX + name,
            todo=f"The samples are {', '.join(SAMPLES)}",
            choices=tuple(PREFIX + sample for sample in SAMPLES),
        )
    return FOLDER / f"{name}.py"


def samples() -> tuple[SampleRecord, ...]:
    """Return every sample with the first line of its docstring."""
    return tuple(
        SampleRecord(name=name, description=first_line(sample_path(name).read_text("utf-8")))
        for name in SAMPLES
    )


def first_line(text: str) -> str:
    """Return the first line of the docstring of a Python file, or nothing."""
    docstring = ast.get_docstring(ast.parse(text)) or ""
    return docstring.split("\n", 1)[0].strip()
