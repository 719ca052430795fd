"""Syntax of ``--input``, and validation of `InputSpec`. Imports no torch.

========================================  =====================================================
``x=1,784:float32``                       random normal values; the dtype may be left out
``x=batch,784:float32``                   the same, for any size of the dimension ``batch``
``x=batch``                               the same, of one dimension that ``--dim`` declares
``tokens=1,7:int64[0,50)``                random integers, 0 included and 50 excluded
``mask=1,7:bool``                         random truth values
``scale=():float32``                      a scalar
``x=shoe.png``                            a ``.npy``, ``.npz``, ``.pt`` or image file
``x=shoe.png@1,1,28,28:float32``          the same with the shape, or dtype, that it must have
``x=shoes.npz#3``                         a sample of the array's first axis, made to fit the input
``x=shoe.npy#``                           the whole array, made to fit the input
``1,784``                                 without a name: the next input in order
========================================  =====================================================
"""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Collection
from pathlib import Path

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.recipe import SEEDS, InputSpec
from lowerscope.core.user_paths import user_path

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
DTYPES = (*FLOATS, *INTEGERS, "bool")

DEFAULT_RANGE = (0, 10)
"""Default range of random integers."""

ARRAYS = (".npy", ".npz", ".pt", ".pth")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")

MANY_SAMPLES = "many-samples"
"""Problem code of a file that holds many samples where one is needed."""

EXTENT = re.compile(r"[^\W\d]\w*")
"""The name of a dimension."""

LARGEST = 2**63 - 1
"""Largest extent that is accepted, regardless of memory."""

FORMS = "NAME=1,784:float32, NAME=1,7:int64[0,50) or NAME=FILE"

_SAMPLE = re.compile(r"(.+)#(\d*)", re.DOTALL)
_NAMED = re.compile(r"([^\W\d]\w*)\s*=\s*(.*)", re.DOTALL)
_LAYOUT = re.compile(
    # A lone name is a file, unless a dimension of that name is declared.
    r"(?P<shape>\(\s*\)|\(?\s*(?![^\W\d]\w*\s*$)(?:[-+]?\d+|[^\W\d]\w*)\s*"
    r"(,\s*(?:[-+]?\d+|[^\W\d]\w*)\s*)*,?\s*\)?)?"
    r"\s*(:\s*(?P<dtype>[A-Za-z]\w*)\s*(\[\s*(?P<low>-?\d+)\s*,\s*(?P<high>-?\d+)\s*\))?)?\s*"
)


def parse_input(text: str, dimensions: Collection[str] = ()) -> InputSpec:
    """Parse one ``--input``: see the table at the top of this module.

    Parameters
    ----------
    dimensions
        The names declared by ``--dim``. A lone one is a shape if there is no file of that name.

    Raises `LowerscopeError` if the text has none of these forms; the error lists the forms.
    """
    named = _NAMED.fullmatch(text.strip())
    name, value = (named[1], named[2]) if named else ("", text.strip())
    if value.strip() in dimensions and not os.path.exists(user_path(value)):
        value = f"{value},"
    layout = _LAYOUT.fullmatch(value)
    file, item, fit = "", None, False
    if not value or layout is None:
        file, layout = _parse_file(value, text)
        sampled = _SAMPLE.fullmatch(file)
        if sampled is not None and not os.path.exists(user_path(file)):
            file, item, fit = sampled[1], _whole(sampled[2]) if sampled[2] else None, True
    shape, dtype, low, high = (
        (layout.group("shape", "dtype", "low", "high")) if layout else [None] * 4
    )
    spec = InputSpec(
        name=name,
        shape=None if shape is None else tuple(map(_extent, re.findall(r"[-+]?\w+", shape))),
        dtype=dtype,
        file=file,
        low=None if low is None else _whole(low),
        high=None if high is None else _whole(high),
        fit=fit,
        item=item,
    )
    check_input(spec, option(text))
    return spec


def _extent(text: str) -> int | str:
    return text if EXTENT.fullmatch(text) else _whole(text)


def _whole(text: str) -> int:
    """Return an integer; for one with very many digits, another that is too large as well."""
    return int(text[:25])


def option(text: str) -> str:
    """Return the option as it was written, for error messages."""
    return f"--input {text}"


def _parse_file(value: str, text: str) -> tuple[str, re.Match[str] | None]:
    """Split ``FILE[@SHAPE:DTYPE]``; a file that exists is taken whole."""
    if value and os.path.exists(user_path(value)):
        return value, None
    path, at, rest = value.rpartition("@")
    layout = _LAYOUT.fullmatch(rest) if at and path and rest else None
    file = path if layout else value
    if Path(file).suffix.lower().partition("#")[0] in (*ARRAYS, *IMAGES):
        return file, layout
    if EXTENT.fullmatch(value):
        raise LowerscopeError(
            f"{value} is neither a file that can be read nor a dimension that is declared",
            where=option(text),
            todo=f"Declare it with --dim {value}=1..64, or write {FORMS} (.npy, .npz, .pt or an "
            "image)",
        )
    raise LowerscopeError(
        "this is neither a shape nor a file that can be read" if value else "nothing is given",
        where=option(text),
        todo=f"Write {FORMS} (.npy, .npz, .pt or an image)",
    )


def check_input(spec: InputSpec, where: str) -> None:
    """Raise a `LowerscopeError` if `spec` describes an impossible input."""
    problem = _problem_of(spec)
    if problem is not None:
        what, todo = problem
        raise LowerscopeError(what, where=where, todo=todo)


def _problem_of(spec: InputSpec) -> tuple[str, str] | None:
    if spec.dtype is not None and spec.dtype not in DTYPES:
        return f"there is no dtype called {spec.dtype!r}", f"The dtypes are {', '.join(DTYPES)}"
    given = bool(spec.file) or spec.drawing is not None
    if spec.shape is None and not given:
        return "the shape is missing", f"Write {FORMS}"
    if spec.shape is not None:
        problem = _problem_of_shape(spec.shape, given)
        if problem is not None:
            return problem
    if spec.item is not None and spec.item > LARGEST:
        return f"there is no sample {spec.item}", f"Write the number of one, up to {LARGEST}"
    if spec.seed is not None and not 0 <= spec.seed < SEEDS:
        return f"the seed {spec.seed} is out of range", f"Give one from 0 to {SEEDS - 1}"
    if spec.low is None and spec.high is None:
        return None
    if given:
        return "a range is for random integers, not for a file", "Leave the range out"
    if spec.dtype not in INTEGERS:
        return (
            f"a range is for random integers, not for {spec.dtype or 'float32'}",
            "Leave the range out, or give an integer dtype",
        )
    low, high = integer_range(spec)
    least, most = bounds(spec.dtype)
    if low >= high or low < least or high > most + 1:
        return (
            f"[{low},{high}) is not a range of {spec.dtype}",
            f"Give one from {least} up, with the first number below the second",
        )
    return None


def _problem_of_shape(shape: tuple[int | str, ...], given: bool) -> tuple[str, str] | None:
    if any(isinstance(extent, int) and extent < 1 for extent in shape):
        extents = ", ".join(map(str, shape))
        return f"the extents ({extents}) must be 1 or more", f"Write {FORMS}"
    if any(isinstance(extent, int) and extent > LARGEST for extent in shape):
        return f"an extent is larger than {LARGEST}", f"Write {FORMS}"
    names = [extent for extent in shape if isinstance(extent, str)]
    for name in names:
        if not EXTENT.fullmatch(name) or keyword.iskeyword(name):
            return f"{name!r} cannot be the name of a dimension", "Choose another name"
    if names and given:
        return (
            f"the dimension {names[0]} has any size, and a file has one",
            "Write numbers for the shape of a file, or leave the file out",
        )
    return None


def integer_range(spec: InputSpec) -> tuple[int, int]:
    """Return the range of the random integers of `spec`, the end excluded."""
    low = DEFAULT_RANGE[0] if spec.low is None else spec.low
    high = max(DEFAULT_RANGE[1], low + 1) if spec.high is None else spec.high
    return low, high


def bounds(dtype: str) -> tuple[int, int]:
    """Return the least and the greatest value of an integer dtype."""
    bits = int(re.sub(r"\D", "", dtype))
    if dtype.startswith("u"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def write_input(name: str, shape: tuple[int | str, ...], dtype: str) -> str:
    """Return the option that describes an input: the inverse of `parse_input`."""
    extents = ",".join(map(str, shape)) or "()"
    return f"{name}={extents}:{dtype}"
