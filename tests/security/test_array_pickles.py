"""Pickles of arrays whose parts would make NumPy take bytes of the file for pointers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.sources.parameters import read_arrays
from lowerscope.core.sources.pickles import load_arrays


class Reduced:
    """Is pickled as a call, and a state."""

    def __init__(self, call: Callable[..., object], *args: object, state: object = None) -> None:
        self.made = (call, args) if state is None else (call, args, state)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.made


POINTER = b"\x41" * 8
FLAGLESS = (3, "|", None, None, None, -1, -1, 0)
HIDING = (3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0)


def _reconstructed(kind: object, data: object) -> Reduced:
    reconstruct = np._core.multiarray._reconstruct  # type: ignore[attr-defined]
    return Reduced(reconstruct, np.ndarray, (0,), b"b", state=(1, (1,), kind, False, data))


CASES: dict[str, Callable[[], object]] = {
    "an array over bytes": lambda: Reduced(np.ndarray, (1,), np.dtype("O"), POINTER),
    "a type without its flags": lambda: _reconstructed(
        Reduced(np.dtype, "O", False, True, state=FLAGLESS), POINTER
    ),
    "a type that hides objects": lambda: _reconstructed(
        Reduced(np.dtype, "V8", False, True, state=HIDING), POINTER
    ),
    "a buffer": lambda: Reduced(
        np._core.numeric._frombuffer,  # type: ignore[attr-defined]
        POINTER,
        Reduced(np.dtype, "O", False, True, state=FLAGLESS),
        (1,),
        "C",
    ),
    "a scalar": lambda: Reduced(
        np._core.multiarray.scalar,  # type: ignore[attr-defined]
        Reduced(np.dtype, "V8", False, True, state=HIDING),
        POINTER,
    ),
    "more than there is": lambda: Reduced(
        np._core.numeric._frombuffer,  # type: ignore[attr-defined]
        POINTER,
        np.dtype("f8"),
        (1 << 40,),
        "C",
    ),
}


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("name", sorted(CASES))
def test_no_bytes_become_pointers(tmp_path: Path, name: str, protocol: int) -> None:
    file = tmp_path / "a.pkl"
    file.write_bytes(pickle.dumps({"w0": CASES[name]()}, protocol=protocol))
    with pytest.raises(LowerscopeError) as caught:
        read_arrays(file)
    assert "\n" not in caught.value.problem.line()
    try:
        found = load_arrays(file.read_bytes())
    except Exception:
        return
    assert isinstance(found, dict)
    # To show the array would follow the pointer.
    made = isinstance(found["w0"], np.ndarray | np.void) and found["w0"].size > 0
    assert not made


@pytest.mark.parametrize("protocol", range(6))
def test_arrays_of_numbers_are_read(tmp_path: Path, protocol: int) -> None:
    numbers = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "matrix": numbers.random((3, 4)),
        "columns": np.asfortranarray(numbers.random((3, 4), dtype=np.float32)),
        "big": numbers.random(5).astype(">f8"),
        "whole": numbers.integers(0, 9, (2, 1, 3), dtype=np.int16),
        "truth": numbers.random(6) > 0.5,
        "part": numbers.random((6, 6))[::2, 1:3],
        "none": np.zeros((0, 3)),
        "scalar": np.float32(0.5),
        "zero": np.array(7, dtype=np.uint8),
    }
    file = tmp_path / "a.pkl"
    file.write_bytes(pickle.dumps(arrays, protocol=protocol))
    found = read_arrays(file)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)
        assert found[name].flags.writeable
