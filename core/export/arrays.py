"""Writing an array to a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.files.atomic_write import atomic_file
from lowerscope.core.user_paths import user_path


def save_array(array: np.ndarray[Any, Any], file: str) -> str:
    """Write `array` as ``.npy``, replacing an existing file; return its absolute path.

    Raises
    ------
    LowerscopeError
        If the file cannot be written.
    """
    path = user_path(file).absolute()
    try:
        with atomic_file(path) as made, made.open("wb") as stream:
            np.save(stream, array, allow_pickle=False)
    except OSError as error:
        raise LowerscopeError(
            f"it cannot be written: {error.strerror or error}",
            where=str(path),
            todo="Choose a folder that you may write to",
        ) from error
    return str(path)
