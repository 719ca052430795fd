"""Example files of the course tour, as editable copies."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
from PIL import Image

from lowerscope.core.files.paths import cannot_write
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.resources import HELP, SAMPLES

PARAMETERS = "mlp_params.pkl"
"""The trained perceptron in the course's own format: a pickle of ``w0``, ``b0``, ``w1``, ``b1``."""

PICTURE = "boot.png"
"""A picture of the last class, not in the training data."""

_NAMES = {
    "w0": "linear0.weight",
    "b0": "linear0.bias",
    "w1": "linear1.weight",
    "b1": "linear1.bias",
}


def write_course(folder: Path, *, force: bool) -> tuple[Path, ...]:
    """Write the files of `resources/help/course` to a folder, with parameters and a picture.

    Raises a `LowerscopeError` if a file exists and `force` is not given, or the folder cannot be
    written.
    """
    sources = sorted((HELP / "course").glob("*.py"))
    names = (*(source.name for source in sources), PARAMETERS, PICTURE)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            if not force and (folder / name).exists():
                raise LowerscopeError(
                    "the file is there already",
                    where=str(folder / name),
                    todo="Choose another folder, or add --force to overwrite it",
                )
        for source in sources:
            (folder / source.name).write_bytes(source.read_bytes())
        with np.load(SAMPLES / "fashion_mlp.npz") as trained:
            arrays = {name: trained[title] for name, title in _NAMES.items()}
            (folder / PARAMETERS).write_bytes(pickle.dumps(arrays))
            Image.fromarray(trained["pictures"][-1]).save(folder / PICTURE)
    except OSError as error:
        raise cannot_write(error, error.filename or folder) from error
    return tuple(folder / name for name in names)
