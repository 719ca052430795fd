"""Syntax of a source on the command line: ``sample:NAME``, ``FILE.py[:ENTRY]``, or another file.

A model in the memory of a Python process (`core.files.in_memory`) has a name too. The files that a
source and its recipe depend on are found without running any of them. Databases of TVM's tuning
contain whole functions and libraries in TVM's format, so that one from elsewhere is code; TVM
creates missing folders and files, which no step may do.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePath
from typing import Literal

import msgspec

from lowerscope.core.files.paths import check_readable, read_plain, user_path, why_unreadable
from lowerscope.core.files.samples import SAMPLES
from lowerscope.core.model.dimensions import EXTENT, parts_of
from lowerscope.core.model.encoding import NO_PYTHON
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.recipe import SEEDS, InputSpec, Recipe, Source, Step
from lowerscope.core.model.texts import _, sentences
from lowerscope.resources import SAMPLES as FOLDER

PREFIX = "sample:"


def sample_path(name: str) -> Path:
    """Return the file of the sample called `name`.

    Raises `LowerscopeError` if there is no such sample; the error lists the names.
    """
    if name not in SAMPLES:
        raise no_sample(name)
    return FOLDER / f"{name}.py"


Kind = Literal["python", "exported", "onnx", "scripted"]

MEMORY = "memory:"
"""Prefix of the name of a model in memory."""

ENTRY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
"""The name of a class, an instance or a function in a file."""


def parse_spec(text: str) -> tuple[str, str]:
    """Split ``SOURCE[:ENTRY]`` into the source and the entry, which may be empty.

    A path that exists is taken whole, including colons, and so is the colon of a Windows drive.

    Raises `LowerscopeError` if nothing is given, or the part behind the colon is not a name.
    """
    text = text.strip()
    if not text:
        raise LowerscopeError(
            _("no source is given"),
            todo=_("Give sample:NAME, FILE.py[:ENTRY], FILE.pt2 or FILE.onnx"),
        )
    if text.startswith(MEMORY):
        return text, ""
    if text.startswith(PREFIX):
        name, _sep, entry = text.removeprefix(PREFIX).partition(":")
        return PREFIX + name, _checked_entry(entry, text)
    if os.path.exists(user_path(text)):
        return text, ""
    path, colon, entry = text.rpartition(":")
    drive_only = len(path) == 1 and path.isalpha() and entry[:1] in ("/", "\\")
    if not colon or not path or drive_only:
        return text, ""
    if "/" in entry or "\\" in entry or entry.lower().endswith(MODELS):
        # The colon belongs to a path that does not exist; opening it reports so.
        return text, ""
    return path, _checked_entry(entry, text)


def _checked_entry(entry: str, text: str) -> str:
    if entry and not ENTRY.fullmatch(entry):
        raise LowerscopeError(
            _("{entry!r} is not the name of a class, an instance or a function", entry=entry),
            where=text,
            todo=_("Give FILE.py:ENTRY, such as model.py:Net"),
        )
    return entry


def source_path(spec: str) -> Path:
    """Return the absolute path of a source; it need not exist.

    Raises `LowerscopeError` if the source is a sample that does not exist, or a model in memory.
    """
    if spec.startswith(PREFIX):
        return sample_path(spec.removeprefix(PREFIX))
    if spec.startswith(MEMORY):
        raise not_in_a_file(spec)
    return user_path(spec).absolute()


def source_label(spec: str) -> str:
    """Return the label of a source: a sample, a model in memory, or the name of a file."""
    if spec.startswith(PREFIX):
        return spec.removeprefix(PREFIX)
    if spec.startswith(MEMORY):
        return spec.removeprefix(MEMORY).rpartition("-")[0]
    return PurePath(spec).name


def is_in_memory(recipe: Recipe) -> bool:
    """Return whether a recipe's model is in the memory of a Python process."""
    return recipe.source.spec.startswith(MEMORY)


def not_in_a_file(spec: str) -> LowerscopeError:
    """Return the error for a model in memory where a file is required."""
    return LowerscopeError(
        _(
            "{source_label} exists only in the memory of the Python process that made it",
            source_label=source_label(spec),
        ),
        where=spec,
        todo=_("Call explore(model, inputs) there; to keep it, write the model as a Python file"),
    )


def is_file(spec: str) -> bool:
    """Return whether a source is a file: no sample, and no model in memory."""
    return not spec.startswith((PREFIX, MEMORY))


def source_kind(path: Path) -> Kind:
    """Return the kind of source of a file.

    Raises `LowerscopeError` if there is no such file, it cannot be opened, or it is neither Python
    nor exported.
    """
    failure = why_unreadable(path)
    if isinstance(failure, FileNotFoundError):
        raise missing_source(path)
    if isinstance(failure, IsADirectoryError):
        raise folder_source(path)
    check_readable(path)
    match path.suffix.lower():
        case ".py":
            return "python"
        case ".pt2":
            return "exported"
        case ".onnx":
            return "onnx"
        case suffix if suffix in SCRIPTED and is_scripted(path):
            return "scripted"
        case _:
            raise unknown_kind(path)


def is_scripted(path: Path) -> bool:
    """Return whether a file is an archive of ``torch.jit.save``, and not weights alone."""
    if not path.is_file():
        # To read a pipe would wait for its writer.
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/constants.pkl") for name in archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


MODELS = (".py", ".pt2", ".onnx")
SCRIPTED = (".pt", ".pth", ".ts")
"""Suffixes of files of ``torch.jit.save``; those of weights have the same."""
WEIGHTS = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".pkl", ".npz")
"""Suffixes of files that hold parameters of a model, but no model."""

_OTHERS = {
    ".tflite": _("a TensorFlow Lite model"),
    ".pb": _("a TensorFlow model"),
    ".h5": _("a Keras model"),
    ".keras": _("a Keras model"),
}
_SHOWN = 4


def missing_source(path: Path) -> LowerscopeError:
    """Return the error for a source that does not exist, with a similar name."""
    close = _close_to(path)
    todo = _("Did you mean {close}?", close=close) if close else _("Check the path of the source")
    return LowerscopeError(_("there is no such file"), where=str(path), todo=todo)


def folder_source(path: Path) -> LowerscopeError:
    """Return the error for a folder, with the files in it that can be opened."""
    models = [each.name for each in _inside(path) if each.suffix.lower() in MODELS]
    if models:
        todo = _("Open one of its files: {listed}", listed=listed(models, _SHOWN))
    elif (path / "config.json").is_file():
        todo = _(
            "Open a Python file that makes its model, for example by AutoModel.from_pretrained "
            "of this folder"
        )
    else:
        todo = _("Open a Python file with a model, a .pt2 or an .onnx")
    return LowerscopeError(_("this is a folder, not a file"), where=str(path), todo=todo)


def unknown_kind(path: Path) -> LowerscopeError:
    """Return the error for a file that is neither Python nor an exported program."""
    suffix = path.suffix.lower()
    what = _(
        "{suffix} is neither .py nor .pt2 nor .onnx", suffix=suffix or _("a file without a suffix")
    )
    todo = _("Open a Python file with a model, a program of torch.export.save, or an ONNX model")
    if suffix in WEIGHTS:
        what = _("this {suffix} file holds weights, and cannot be opened as a model", suffix=suffix)
        todo = _(
            "Open the model's Python file, and load this one into it: --params {name}",
            name=path.name,
        )
    elif suffix in _OTHERS:
        what = _("{others} cannot be opened", others=_OTHERS[suffix])
        todo = _("Open the PyTorch model, or convert this one to ONNX")
    elif suffix == ".ipynb":
        what = _("a notebook cannot be opened")
        todo = _("Call explore(model, inputs) in it: from lowerscope.core import explore")
    return LowerscopeError(what, where=str(path), todo=todo)


def no_sample(name: str) -> LowerscopeError:
    """Return the error for a sample that does not exist."""
    close = difflib.get_close_matches(name, SAMPLES, 1)
    meant = _("Did you mean {close}?", close=PREFIX + close[0]) if close else ""
    return LowerscopeError(
        _("there is no sample called {name!r}", name=name)
        if name
        else _("the name of the sample is missing"),
        where=PREFIX + name,
        todo=sentences(meant, _("The samples are {samples}", samples=_(", ").join(SAMPLES))),
        choices=tuple(PREFIX + sample for sample in SAMPLES),
    )


def _close_to(path: Path) -> str:
    if path.name in SAMPLES:
        return PREFIX + path.name
    if difflib.get_close_matches(path.name, [PREFIX.removesuffix(":")], 1, 0.8):
        return f"{PREFIX}NAME"
    names = [each.name for each in _inside(path.parent) if each.suffix.lower() in MODELS]
    return next(iter(difflib.get_close_matches(path.name, names, 1)), "")


def _inside(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir())
    except (OSError, ValueError):
        # The folder does not exist either, or may not be read.
        return []


# --- Syntax of ``--input``, and validation of `InputSpec`. Imports no torch ---
#
# ========================================  =====================================================
# ``x=1,784:float32``                       random normal values; the dtype may be left out
# ``x=batch,784:float32``                   the same, for any size of the dimension ``batch``
# ``x=batch``                               the same, of one dimension that ``--dim`` declares
# ``tokens=1,7:int64[0,50)``                random integers, 0 included and 50 excluded
# ``mask=1,7:bool``                         random truth values
# ``scale=():float32``                      a scalar
# ``x=shoe.png``                            a ``.npy``, ``.npz``, ``.pt`` or image file
# ``x=shoe.png@1,1,28,28:float32``          the same with the shape, or dtype, that it must have
# ``x=shoes.npz#3``                         a sample of the array's first axis, fitted to the input
# ``x=shoe.npy#``                           the whole array, fitted to the input
# ``1,784``                                 without a name: the next input in order
# ========================================  =====================================================

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")
DTYPES = (*FLOATS, *INTEGERS, *COMPLEX, "bool")

DEFAULT_RANGE = (0, 10)
"""Default range of random integers."""

ARRAYS = (".npy", ".npz", ".pt", ".pth")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")

MANY_SAMPLES = "many-samples"
"""Problem code of a file that holds many samples where one is needed."""

LARGEST = 2**63 - 1
"""Largest extent that is accepted, regardless of memory."""

FORMS = _("NAME=1,784:float32, NAME=1,7:int64[0,50) or NAME=FILE")
_WRITE_FORMS = _("Write {forms}", forms=FORMS)

_SAMPLE = re.compile(r"(.+)#(\d*)", re.DOTALL)
_NAMED = re.compile(r"([^\W\d]\w*(?:\.\w+)*)\s*=\s*(.*)", re.DOTALL)
_EXTENT = r"(?:[-+]?\d+|[^\W\d]\w*(?:\s*\+\s*\d+)?)"
_LAYOUT = re.compile(
    # A lone name is a file, unless a dimension of that name is declared.
    rf"(?P<shape>\(\s*\)|\(?\s*(?![^\W\d]\w*\s*$){_EXTENT}\s*"
    rf"(,\s*{_EXTENT}\s*)*,?\s*\)?)?"
    r"\s*(:\s*(?P<dtype>[A-Za-z]\w*)\s*(\[\s*(?P<low>-?\d+)\s*,\s*(?P<high>-?\d+)\s*\))?)?\s*"
)


def parse_input(text: str, dimensions: Collection[str] = ()) -> InputSpec:
    """Parse one ``--input``: see the table above.

    Args:
        dimensions: The names declared by ``--dim``. A lone one is a shape if there is no file of
            that name.
    """
    named = _NAMED.fullmatch(text.strip())
    # The path to a tensor within an input may be written as Python writes it.
    name, value = (named[1].replace(".", "_"), named[2]) if named else ("", text.strip())
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
        shape=None if shape is None else tuple(map(_extent, re.findall(_EXTENT, shape))),
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
    name, plus, more = text.partition("+")
    if EXTENT.fullmatch(name.strip()):
        return f"{name.strip()} + {_whole(more)}" if plus else text
    return _whole(text)


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
            _("{value} is neither a readable file nor a declared dimension", value=value),
            where=option(text),
            todo=_(
                "Declare it: --dim {value}=1..64; or give {forms} (.npy, .npz, .pt or an image)",
                value=value,
                forms=FORMS,
            ),
        )
    raise LowerscopeError(
        _("this is neither a shape nor a readable file") if value else _("nothing is given"),
        where=option(text),
        todo=_("Give {forms} (.npy, .npz, .pt or an image)", forms=FORMS),
    )


def check_input(spec: InputSpec, where: str) -> None:
    """Raise a `LowerscopeError` if `spec` describes an impossible input."""
    problem = _problem_of(spec)
    if problem is not None:
        what, todo = problem
        raise LowerscopeError(what, where=where, todo=todo)


def _problem_of(spec: InputSpec) -> tuple[str, str] | None:
    if spec.dtype is not None and spec.dtype not in DTYPES:
        return _("there is no dtype called {dtype!r}", dtype=spec.dtype), _(
            "The dtypes are {dtypes}", dtypes=_(", ").join(DTYPES)
        )
    given = bool(spec.file)
    if spec.shape is None and not given:
        return _("the shape is missing"), _WRITE_FORMS
    if spec.shape is not None:
        problem = _problem_of_shape(spec.shape, given)
        if problem is not None:
            return problem
    if spec.item is not None and spec.item > LARGEST:
        return _("there is no sample {item}", item=spec.item), _(
            "Give the number of a sample, up to {largest}", largest=LARGEST
        )
    if spec.seed is not None and not 0 <= spec.seed < SEEDS:
        return _("the seed {seed} is out of range", seed=spec.seed), _(
            "Give one from 0 to {seeds}", seeds=SEEDS - 1
        )
    if spec.low is None and spec.high is None:
        return None
    if given:
        return _("a range is for random integers, not for a file"), _("Leave the range out")
    if spec.dtype not in INTEGERS:
        return (
            _("a range is for random integers, not for {dtype}", dtype=spec.dtype or "float32"),
            _("Leave the range out, or give an integer dtype"),
        )
    low, high = integer_range(spec)
    least, most = bounds(spec.dtype)
    if low >= high or low < least or high > most + 1:
        return (
            _("[{low},{high}) is not a range of {dtype}", low=low, high=high, dtype=spec.dtype),
            _("Give one from {least} up, with the first number below the second", least=least),
        )
    return None


def _problem_of_shape(shape: tuple[int | str, ...], given: bool) -> tuple[str, str] | None:
    if any(isinstance(extent, int) and extent < 1 for extent in shape):
        extents = ", ".join(map(str, shape))
        return _("the extents ({extents}) must be 1 or more", extents=extents), _WRITE_FORMS
    if any(isinstance(extent, int) and extent > LARGEST for extent in shape):
        return _("an extent is larger than {largest}", largest=LARGEST), _WRITE_FORMS
    names = [parts_of(extent)[0] for extent in shape if isinstance(extent, str)]
    for name in names:
        if not EXTENT.fullmatch(name) or keyword.iskeyword(name):
            return _("{name!r} cannot be the name of a dimension", name=name), _(
                "Choose another name"
            )
    if names and given:
        return (
            _("the dimension {name} can have any size, and a file has one", name=names[0]),
            _("Give numbers for the shape of a file, or leave the file out"),
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


# --- All paths in a recipe: files of models, inputs, extensions and databases ---


def with_absolute_paths(recipe: Recipe) -> Recipe:
    """Return a recipe with absolute paths, which are valid from any working directory."""
    return with_paths(recipe, lambda path: str(user_path(path).absolute()))


def with_paths(recipe: Recipe, change: Callable[[str], str]) -> Recipe:
    """Return a recipe with each path in it changed; samples and models in memory have none."""

    def changed(path: str) -> str:
        return change(path) if path else path

    replace = msgspec.structs.replace
    source = recipe.source
    spec = changed(source.spec) if is_file(source.spec) else source.spec
    return replace(
        recipe,
        source=replace(source, spec=spec, params=changed(source.params)),
        inputs=tuple(replace(each, file=changed(each.file)) for each in recipe.inputs),
        extensions=tuple(replace(each, path=changed(each.path)) for each in recipe.extensions),
        steps=tuple(with_database(each, changed) for each in recipe.steps),
    )


APPLY_DATABASE = "MetaScheduleApplyDatabase"
"""The pass, and its option `WORK_DIR`."""

WORK_DIR = "work_dir"

_FILES = ("database_workload.json", "database_tuning_record.json")


def database_files(recipe: Recipe) -> tuple[str, ...]:
    """Return the existing database files that a recipe's steps apply, as absolute paths."""
    folders = (_folder(step) for step in recipe.steps if step.on)
    files = (_files(each) for each in folders if each and "\0" not in each)
    return tuple(str(file) for each in files for file in each if file.is_file())


def with_database(step: Step, change: Callable[[str], str]) -> Step:
    """Return a step with the path of its database changed, if it applies one."""
    folder = _folder(step)
    if not folder:
        return step
    return msgspec.structs.replace(step, options={**step.options, WORK_DIR: change(folder)})


def _folder(step: Step) -> str:
    folder = step.options.get(WORK_DIR)
    applies = step.name.rpartition(".")[2] == APPLY_DATABASE
    return folder if applies and isinstance(folder, str) else ""


def check_database(folder: str | None) -> None:
    """Raise a `LowerscopeError` unless a folder contains a database."""
    missing = [file for file in _files(folder or "") if not file.is_file()]
    if not folder or missing:
        raise LowerscopeError(
            _("there is no file {name}", name=missing[0].name)
            if folder
            else _("the option work_dir is missing"),
            where=folder or APPLY_DATABASE,
            todo=_("Give work_dir the folder that TVM's tuning has written"),
        )


def _files(folder: str) -> tuple[Path, ...]:
    return tuple(Path(folder).absolute() / name for name in _FILES)


def input_files(inputs: tuple[InputSpec, ...]) -> tuple[Path, ...]:
    """Return the existing files that inputs are read from, without repeats."""
    named = dict.fromkeys(user_path(spec.file).absolute() for spec in inputs if spec.file)
    return tuple(file for file in named if file.is_file())


def source_files(source: Source, inputs: tuple[InputSpec, ...]) -> tuple[Path, ...]:
    """Return the existing files behind a source and its inputs, without repeats.

    They are the file itself, the parameters, the inputs' files, the Python files in its folder that
    it imports, directly or transitively, and the files in its folder that these mention by name.

    Raises `LowerscopeError` if the source is a sample that does not exist.
    """
    if source.spec.startswith(MEMORY):
        return input_files(inputs)
    path = source_path(source.spec)
    found = {path: None}
    if source.params:
        found[user_path(source.params).absolute()] = None
    found |= dict.fromkeys(input_files(inputs))
    if path.suffix.lower() == ".py":
        found |= dict.fromkeys(neighbours(path))
    return tuple(file for file in found if file.is_file())


def neighbours(path: Path, folder: Path | None = None) -> tuple[Path, ...]:
    """Return the files in and below a folder that `path` imports or mentions.

    The folder is that of `path`, unless `path` is a module of a package.
    """
    folder = folder or path.parent
    found: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        for file in map(Path, filter(os.path.isfile, _candidates(waiting.pop(), folder))):
            if file not in found and file != path:
                found[file] = None
                if file.suffix == ".py":
                    waiting.append(file)
    return tuple(found)


_parsed: dict[tuple[Path, Path], tuple[tuple[int, int], tuple[str, ...]]] = {}
"""Cache of `_candidates`: size and modification time of a file, and its candidates."""


def _candidates(path: Path, folder: Path) -> tuple[str, ...]:
    """Return the names that a Python file imports or mentions, existing or not."""
    try:
        status = path.stat()
        stamp = (status.st_size, status.st_mtime_ns)
        known = _parsed.get((path, folder))
        if known is None or known[0] != stamp:
            mentions = _find(ast.parse(read_plain(path)))
            found = (file for each in mentions for file in _meant(each, path, folder))
            known = _parsed[path, folder] = (stamp, tuple(dict.fromkeys(map(str, found))))
    except (OSError, *NO_PYTHON):
        # Running the file reports the error; an unreadable file mentions nothing.
        return ()
    return known[1]


Mention = tuple[int | None, str, str]
"""Level, module and name of an import; or ``None``, an empty module, and a possible file name."""


def _meant(mention: Mention, path: Path, folder: Path) -> Iterator[Path]:
    level, module, name = mention
    if level is None:
        yield folder / name
    else:
        start = folder if level == 0 else path.parents[level - 1]
        yield from _module_files(start, module)
        if name:
            yield from _module_files(start, f"{module}.{name}" if module else name)


_IMPORTING = ("import_module", "__import__")
"""Functions that import the module named by a string."""


def _find(tree: ast.AST) -> Iterator[Mention]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((0, alias.name, "") for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                yield from ((level, module or "", alias.name) for alias in names)
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]) if (
                ast.unparse(function).rpartition(".")[2] in _IMPORTING
            ):
                yield (0, name, "")
            case ast.Constant(value=str(name)) if 0 < len(name) < 200 and "\0" not in name:
                if "." in name and not Path(name).is_absolute():
                    yield (None, "", name)


def _module_files(folder: Path, name: str) -> Iterator[Path]:
    """Yield the files that importing the dotted `name` from `folder` would run."""
    place = folder
    for part in filter(None, name.split(".")):
        place = place / part
        yield place.with_name(part + ".py")
        yield place / "__init__.py"
