"""State of the random number generators that models use: torch's, NumPy's and Python's."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.recipe import SEEDS


def seed_all(seed: int) -> None:
    """Seed torch, NumPy and Python.

    Raises
    ------
    LowerscopeError
        If one of them does not accept the seed.
    """
    if not 0 <= seed < SEEDS:
        raise LowerscopeError(
            f"the seed {seed} is out of range",
            where="--seed",
            todo=f"Give one from 0 to {SEEDS - 1}",
        )
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


@dataclass(frozen=True, eq=False)
class RandomState:
    """State of the generators."""

    torch: torch.Tensor
    numpy: dict[str, Any]
    python: tuple[Any, ...]

    @classmethod
    def present(cls) -> RandomState:
        """Return the current state."""
        return cls(torch.get_rng_state(), np.random.get_state(legacy=False), random.getstate())

    def restore(self) -> None:
        """Restore this state."""
        torch.set_rng_state(self.torch)
        np.random.set_state(self.numpy)
        random.setstate(self.python)
