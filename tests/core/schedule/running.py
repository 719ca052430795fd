"""Functions are built and run beside the unscheduled ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import tirx

from tests.core.quick_code import quick_code

SYMBOLIC = 7
"""Sizes of symbolic extents for a run of a function."""


class Runner:
    """Runs functions on random inputs; the results of unscheduled ones are kept."""

    def __init__(self, target: tvm.target.Target) -> None:
        self._target = target
        self._expected: dict[str, tuple[list[Any], list[Any]]] = {}

    def difference(self, name: str, before: tirx.PrimFunc, after: tirx.PrimFunc) -> str | None:
        """Return what is wrong with `after`; ``None`` if it computes what `before` does."""
        if name not in self._expected:
            inputs = self._inputs(before)
            self._expected[name] = inputs, self._run(before, inputs)
        inputs, expected = self._expected[name]
        try:
            got = self._run(after, inputs)
        except (RuntimeError, ValueError, TypeError, AttributeError, KeyError) as error:
            return f"does not build or run: {str(error).strip().splitlines()[-1][:300]}"
        for place, (mine, theirs) in enumerate(zip(got, expected, strict=True)):
            if mine.dtype.kind == "f":
                scale = float(np.nanmax(np.abs(theirs), initial=1.0))
                # Of half precision, what is summed in another order differs in the last bits.
                few = max(1e-3, 20 * float(np.finfo(mine.dtype).eps))
                least = few * scale if mine.dtype == np.float16 else 1e-4 * scale
                near = np.allclose(mine, theirs, rtol=few, atol=least, equal_nan=True)
            else:
                near = bool(np.array_equal(mine, theirs))
            if not near:
                return f"argument {place} differs"
        return None

    def _inputs(self, func: tirx.PrimFunc) -> list[Any]:
        random = np.random.default_rng(0)
        made: list[Any] = []
        for param in func.params:
            if not hasattr(param.ty, "shape"):
                made.append(SYMBOLIC)
                continue
            shape = [
                int(extent) if isinstance(extent, tirx.IntImm) else SYMBOLIC
                for extent in param.ty.shape
            ]
            dtype = str(param.ty.dtype)
            if dtype.startswith("float"):
                made.append(random.uniform(-1, 1, shape).astype(dtype))
            elif dtype == "bool":
                made.append(random.integers(0, 2, shape).astype(dtype))
            else:
                made.append(random.integers(0, 3, shape).astype(dtype))
        return made

    def _run(self, func: tirx.PrimFunc, inputs: list[Any]) -> list[Any]:
        module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
        built = quick_code(module, self._target)
        arguments = [
            tvm.runtime.tensor(each) if isinstance(each, np.ndarray) else each for each in inputs
        ]
        built["main"](*arguments)
        return [each.numpy() for each in arguments if not isinstance(each, int)]
