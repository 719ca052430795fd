"""The passes that a step of a recipe can name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relax

CATALOGUE: dict[str, Callable[[], Any]] = {
    # Turns each relax operator into a call_tir of a TensorIR function.
    "LegalizeOps": relax.transform.LegalizeOps,
}
