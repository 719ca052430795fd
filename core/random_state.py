"""The generators of random numbers that models draw from: torch's, NumPy's and Python's."""

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
        If the seed is none that all of them take.
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
    """What the generators will draw next."""

    torch: torch.Tensor
    numpy: dict[str, Any]
    python: tuple[Any, ...]

    @classmethod
    def present(cls) -> RandomState:
        """Return what they will draw now."""
        return cls(torch.get_rng_state(), np.random.get_state(legacy=False), random.getstate())

    def restore(self) -> None:
        """Let them draw the same again."""
        torch.set_rng_state(self.torch)
        np.random.set_state(self.numpy)
        random.setstate(self.python)
