"""The passes that a step of a recipe can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm import relax

Values = Mapping[str, Any]
"""Tensors that are known for arguments of ``main``, by name."""

CATALOGUE: dict[str, Callable[[Values], Any]] = {
    # Makes constants of the parameters that are arguments of main.
    "BindParams": lambda values: relax.transform.BindParams("main", dict(values)),
    # Turns each relax operator into a call_tir of a TensorIR function.
    "LegalizeOps": lambda _: relax.transform.LegalizeOps(),
}
