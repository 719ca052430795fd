"""Output files, written atomically, and those of a recipe's module: scripts, steps, differences."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from lowerscope.core.files.atomic_write import atomic_file, remove_leftovers
from lowerscope.core.files.paths import cannot_write
from lowerscope.core.files.pipelines_and_schedules import schedules_text
from lowerscope.core.files.python_text import is_identifier
from lowerscope.core.files.report import template
from lowerscope.core.ir.relax import relax_functions
from lowerscope.core.ir.script import function_text, module_text
from lowerscope.core.ir.tensorir import prim_funcs_of
from lowerscope.core.lowering.partial_module import constants_of
from lowerscope.core.model.artifacts import EXISTS
from lowerscope.core.model.line_difference import unified_text
from lowerscope.core.model.module_steps import ComparedModule, Moment
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Recipe, binds_params
from lowerscope.core.model.schedule import Applied
from lowerscope.core.model.texts import _
from lowerscope.core.passes.recording import pass_labels
from lowerscope.core.run.execution import to_numpy
from lowerscope.core.schedule.code import Code, program, program_by_name
from lowerscope.core.stages import Stages
from lowerscope.core.views.module_difference import module_difference
from lowerscope.core.views.programs.builder_text import CONSTANTS_FILE
from lowerscope.core.views.source_text import builder_of, constant_bytes
from lowerscope.resources import PROGRAMS

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class File:
    """An output file."""

    name: str
    write: Callable[[Path], object]


def text_file(name: str, text: str) -> File:
    return File(name, lambda path: path.write_text(text, encoding="utf-8"))


def arrays_file(name: str, arrays: Mapping[str, Any]) -> File:
    """Return an ``.npz`` of arrays."""

    def write(path: Path) -> None:
        with path.open("wb") as stream:
            np.savez(stream, **arrays)

    return File(name, write)


def plain_array(tensor: tvm.runtime.Tensor, kinds: Container[str]) -> tuple[Array, str]:
    """Return a tensor as an array that ``numpy.load`` reads, and the call that restores its dtype.

    Args:
        kinds: NumPy's characters of the dtypes that need none; arrays of others are integers.
    """
    array, dtype = tensor.numpy(), str(tensor.dtype)
    if str(array.dtype) == dtype and array.dtype.char in kinds:
        return array, ""
    return array.view(f"u{array.dtype.itemsize}"), f'.view("{dtype}")'


def copied_file(name: str, source: Path) -> File:
    """Return a copy of a file."""
    return File(name, lambda path: path.write_bytes(source.read_bytes()))


def file_name(text: str) -> str:
    """Return a text as a file name, or a part of one, that is valid on any system."""
    plain = _NOT_IN_NAMES.sub("_", text)[:_LONGEST].strip(".") or "_"
    return f"_{plain}" if plain.partition(".")[0].casefold() in _DEVICES else plain


def file_names(texts: Iterable[str]) -> dict[str, str]:
    """Return a file name for each text; no two differ by case only."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for text in dict.fromkeys(texts):
        plain = file_name(text)
        names = chain([plain], (f"{plain}_{number}" for number in count(1)))
        found[text] = next(each for each in names if each.casefold() not in taken)
        taken.add(found[text].casefold())
    return found


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST = 120
_DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)))
)
"""Names that Windows reserves for devices, whatever the suffix."""


def check_absent(folder: Path, names: Sequence[str], replacing: Sequence[str] = ()) -> None:
    """Raise if files exist other than those of `replacing`.

    Raises a `LowerscopeError` with the code `EXISTS`, and the existing files.
    """
    there = [name for name in names if _is_there(folder / name)]
    if set(there) - set(replacing):
        raise LowerscopeError(
            _("the file already exists, and {count} more", count=len(there) - 1)
            if there[1:]
            else _("the file already exists"),
            where=str(folder / there[0]),
            todo=_("Choose another folder, or overwrite it: --force"),
            code=EXISTS,
            choices=tuple(there),
        )


def write_files(folder: Path, files: Sequence[File]) -> tuple[Path, ...]:
    """Write files to a folder, replacing existing ones; return their paths.

    Raises a `LowerscopeError` if one cannot be written; an existing one is then unchanged.
    """
    remove_leftovers()
    for file in files:
        path = folder / file.name
        try:
            with atomic_file(path, parents=True) as made:
                file.write(made)
        except OSError as error:
            raise cannot_write(error, path) from error
    return tuple(folder / file.name for file in files)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise cannot_write(error, path) from error
    return True


MOST_INSIDE = 10_000_000
"""Size limit of constants in the script, in bytes; larger ones are in a file beside it."""

_INFINITE = re.compile(r'R\.const\("(-?inf|nan)"')
_IMPORT = re.compile(r"^# (from .* import .*)$", re.MULTILINE)
_OWN_DTYPES = frozenset("?bBhHiIlLqQefdFD")


def script_files(module: tvm.IRModule, name: str = "module") -> Iterator[File]:
    """Yield the loadable script of a module, with its constants.

    Up to `MOST_INSIDE` bytes of constants are in its metadata, and ``tvm.script.from_source``
    parses it. Above that, they are in an ``.npz`` beside it, and the script is a Python file to
    import.
    """
    _check_names(module)
    if constant_bytes(module) <= MOST_INSIDE:
        yield text_file(f"{name}.py", _readable(module_text(module, show_meta=True).text))
        return
    text = _readable(module_text(module).text)
    constants = tuple(
        dict.fromkeys(
            constant
            for function in _in_order(text, module)
            for constant in constants_of(function)
            if constant.value.shape
        )
    )
    arrays, lines = {}, []
    for number, constant in enumerate(constants):
        arrays[f"constant{number}"], view = plain_array(constant.value, _OWN_DTYPES)
        lines.append((number, view, str(constant.value.dtype)))
    stem = PurePosixPath(name).name
    body = _IMPORT.sub("", text).partition("# Metadata")[0].strip()
    given = {"metadata": {"ir.GenericConst": list(constants)}, **_imported(text)}
    if not _reads_back(body, given, module):
        # The order differs from the printed one: fall back to TVM's own metadata.
        yield text_file(f"{name}.py", _readable(module_text(module, show_meta=True).text))
        return
    program = template(PROGRAMS / "module.py.jinja").render(
        stem=stem,
        how=f": `from {stem} import Module`" if stem.isidentifier() else "",
        imports=_IMPORT.findall(text),
        constants=lines,
        body=body,
    )
    yield text_file(f"{name}.py", program)
    yield arrays_file(f"{name}.npz", arrays)


def _check_names(module: tvm.IRModule) -> None:
    for variable in module.get_global_vars():
        _check_name(str(variable.name_hint))


def _check_name(name: str) -> None:
    """Reject a function whose name would become code: TVM writes it verbatim."""
    if not is_identifier(name):
        raise LowerscopeError(
            _("the function name {name!r} cannot be used in a script", name=name),
            where=name,
            todo=_("Give the function a name of letters, digits and _"),
        )


def _reads_back(text: str, given: Mapping[str, object], module: tvm.IRModule) -> bool:
    try:
        found = tvm.script.from_source(text, extra_vars=given)
    except (tvm.error.DiagnosticError, IndexError, RuntimeError, TypeError, ValueError):
        return False
    return bool(tvm_ffi.structural_equal(found, module))


def _imported(text: str) -> dict[str, object]:
    """Return the imported values of a script by name."""
    found: dict[str, object] = {"tvm": tvm}
    for line in _IMPORT.findall(text):
        path, _sep, name = line.removeprefix("from ").partition(" import ")
        name, _sep, title = name.partition(" as ")
        found[title or name] = getattr(importlib.import_module(path), name)
    return found


def _in_order(text: str, module: tvm.IRModule) -> Iterator[relax.Function]:
    """Yield the Relax functions of a module in the order of its script."""
    functions = dict(relax_functions(module))
    for name in re.findall(r"^    def (\w+)\(", text, re.MULTILINE):
        if name in functions:
            yield functions[name]


def _readable(text: str) -> str:
    # TVM writes these constants as strings, which it does not parse.
    return _INFINITE.sub(r'R.const(float("\1")', text)


def plain_files(stages: Stages) -> Iterator[File]:
    """Yield the script of the module without its constants, for reading."""
    _check_names(stages.completed)
    yield text_file("script.py", module_text(stages.completed).text)


def builder_files(stages: Stages) -> Iterator[File]:
    """Yield the block builder program of the module, with its constants."""
    built = builder_of(stages, stages.completed)
    yield text_file("builder.py", built.record.text)
    yield arrays_file(CONSTANTS_FILE, built.constants)


def parameter_files(stages: Stages) -> Iterator[File]:
    """Yield the parameters that are arguments of ``main``, if there are any.

    Those of bfloat16, which NumPy does not have, are float32.

    Raises a `LowerscopeError` if there are none.
    """
    arguments = {variable.name for variable in stages.completed["main"].params}
    values = {name: value for name, value in stages.parameters.items() if name in arguments}
    if not values:
        bound = binds_params(stages.recipe)
        raise LowerscopeError(
            _("no parameter is an argument of main"),
            where="parameters",
            todo=_("Leave out the step BindParams")
            if bound
            else _("Make the parameters inputs: --params-as-inputs"),
        )
    yield arrays_file("parameters.npz", {name: to_numpy(each) for name, each in values.items()})


def step_files(stages: Stages, which: str) -> Iterator[File]:
    """Yield the module after each step that changed it, or after one."""
    for number, label, name in _steps(stages, which, first=True):
        module = stages.module_at(Moment(section="passes", index=number))
        yield from script_files(module, f"steps/{label}-{file_name(name)}")


def patch_files(stages: Stages, recipe: Recipe, which: str) -> Iterator[File]:
    """Yield the changes of each step, or of one, as ``diff -u`` writes them."""
    for number, label, name in _steps(stages, which, first=False):
        sides = tuple(
            ComparedModule(recipe=recipe, moment=Moment(section="passes", index=index))
            for index in (_before(stages, number), number)
        )
        record = module_difference(stages, stages, (sides[0], sides[1]))
        yield text_file(f"patches/{label}-{file_name(name)}.patch", unified_text(record) + "\n")


def _before(stages: Stages, number: int) -> int:
    """Return the last pass before another one that is a step itself; 0 for none."""
    runs = stages.transformed.runs
    return max((n for n, run in enumerate(runs[: number - 1], 1) if run.depth == 0), default=0)


def _steps(stages: Stages, which: str, *, first: bool) -> Iterator[tuple[int, str, str]]:
    """Yield number, label and name of the requested steps."""
    runs = stages.transformed.runs
    known = {
        label: (number, run)
        for number, (run, label) in enumerate(zip(runs, pass_labels(runs), strict=True), start=1)
    }
    if which:
        if which == "0" and first:
            yield 0, "0", "lowered"
            return
        if which not in known:
            outer = [label for label in known if "." not in label]
            raise LowerscopeError(
                _("there is no step {which}", which=which),
                where=f"step:{which}",
                todo=_("Choose one of {listed}", listed=_(", ").join(outer))
                if outer
                else _("The pipeline has no steps"),
            )
        number, run = known[which]
        stages.transformed.module_after(number)
        yield number, which, run.name
        return
    if first:
        yield 0, "0", "lowered"
    for label, (number, run) in known.items():
        changed = run.after is not None and not run.after.same_as(run.before)
        if run.depth == 0 and changed:
            yield number, label, run.name


def function_files(stages: Stages, which: str) -> Iterator[File]:
    """Yield the script of each function, or of one."""
    module = stages.completed
    names = [*(n for n, _other in relax_functions(module)), *prim_funcs_of(module)]
    files = file_names((*names, which))
    for name in [which] if which else names:
        _check_name(name)
        yield text_file(f"functions/{files[name]}.py", function_text(module, name).text + "\n")


def schedule_files(stages: Stages, recipe: Recipe, which: str) -> Iterator[File]:
    """Yield the schedules of all functions, or of one.

    They are those that were applied to the model, by hand or by rules; and the recipe's other
    schedules. Programs of the latter fetch blocks by name.

    Raises a `LowerscopeError` if there is none, or none of that function.
    """
    applied: dict[str, Applied] = {
        each.schedule.function: each for step in stages.transformed.schedules for each in step
    }
    kept = {each.function: each for each in recipe.schedules if each.on and each.primitives}
    names = [which] if which else list(dict.fromkeys((*applied, *kept)))
    missing = [name for name in names if name not in applied and name not in kept]
    if missing or not names:
        there = _(", ").join(dict.fromkeys((*applied, *kept)))
        raise LowerscopeError(
            _("{function} has no schedule", function=which)
            if which
            else _("no function has a schedule"),
            where=f"schedule:{which}" if which else "schedule",
            todo=_("Choose one of {listed}", listed=there)
            if there
            else _("Schedule a function, or load a schedule: --schedule FILE"),
        )
    schedules = [applied[name].schedule if name in applied else kept[name] for name in names]
    yield text_file("schedules.json", schedules_text(schedules))
    files = file_names((*applied, *kept))
    for name, schedule in zip(names, schedules, strict=True):
        text = (
            program(name, replace(Code(), lines=applied[name].lines()))
            if name in applied
            else program_by_name(schedule)
        )
        yield text_file(f"schedules/{files[name]}.py", text)
