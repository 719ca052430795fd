"""Opening a source: a sample, a Python file or an exported program, with its inputs."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import linecache
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import msgspec
import torch
from tvm.relax.script.parser import entry as relax_entry
from tvm.script.parser.ir import entry as ir_entry
from tvm.tirx.script.parser import entry as tirx_entry

from lowerscope.core.files.in_memory import read_handed
from lowerscope.core.files.paths import check_readable, user_path
from lowerscope.core.files.source_files import input_files, source_files
from lowerscope.core.files.sources import MEMORY, PREFIX, source_kind, source_label, source_path
from lowerscope.core.model.dimensions import Sizes
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import InputSpec, Source
from lowerscope.core.sources.entries import (
    build,
    find_entry,
    is_ir_module,
    is_model,
    is_prim_func,
    parse_arguments,
    with_main,
)
from lowerscope.core.sources.examples import (
    ExampleInput,
    Examples,
    Signature,
    as_input,
    signature_of_function,
    signature_of_model,
)
from lowerscope.core.sources.exported import load_exported
from lowerscope.core.sources.import_isolation import Environment
from lowerscope.core.sources.inputs import gather
from lowerscope.core.sources.opened_model import (
    LoadedModel,
    Offered,
    OpenedModel,
    RandomState,
    seed_all,
)
from lowerscope.core.sources.parameters import load_into, read_arrays
from lowerscope.core.sources.user_code import run_file, user_code

# Fast ``inspect.stack`` for TVM's parser of TVMScript, without the source of every frame.
#
# At every decorator, also of a text that is parsed, the parser calls ``inspect.stack()``, of which
# it reads two things: the line of code two frames up, and local variables of the functions around
# it. ``inspect`` looks for the source of every frame among thousands of modules; opening a script
# of 22 functions, it took 0.33 of 0.80 s.

_READ = 4
"""Number of frames whose line of code is given; the parser reads that of the third."""


def stack(context: int = 1) -> list[inspect.FrameInfo]:
    """Return the frames from the caller's on, as ``inspect.stack`` does; far ones without code."""
    found: list[inspect.FrameInfo] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code, number = frame.f_code, frame.f_lineno
        line = ""
        if context and len(found) < _READ:
            # The file may have been edited and loaded again.
            linecache.checkcache(code.co_filename)
            line = linecache.getline(code.co_filename, number, frame.f_globals)
        lines, index = ([line], 0) if line else (None, None)
        found.append(inspect.FrameInfo(frame, code.co_filename, number, code.co_name, lines, index))
        frame = frame.f_back
    return found


def shorten_stacks() -> None:
    """Make TVM's parser use `stack` from now on."""
    inspecting = ModuleType("inspect", inspect.__doc__)
    inspecting.__dict__.update(vars(inspect), stack=stack)
    for entry in (tirx_entry, ir_entry, relax_entry):
        entry.inspect = inspecting


_CACHES = ("transformers", "transformers.integrations.executorch")
"""Package whose models return key-value caches, and its module that registers them."""


def register_package_types() -> None:
    """Register containers of packages that the user's file has imported with torch's pytree.

    Models return such types, and torch flattens only registered ones.
    """
    package, module = _CACHES
    if package not in sys.modules:
        return
    try:
        register = importlib.import_module(module).register_dynamic_cache_export_support
    except (ImportError, AttributeError):
        # A version without it; torch then reports the unknown type.
        return
    register()


shorten_stacks()


def open_model(source: Source, seed: int) -> OpenedModel:
    """Open a source.

    Parameters
    ----------
    seed
        Set before the file is run, and before its entry is called.

    Raises `LowerscopeError` if the source or its parameters cannot be loaded; the error says why.
    """
    if source.spec.startswith(MEMORY):
        return _open_handed(source, seed)
    path = source_path(source.spec)
    kind = source_kind(path)
    if source.params:
        # Resolve now: the file may change the working directory.
        params = user_path(source.params).absolute()
        check_readable(params, "parameters")
        source = msgspec.structs.replace(source, params=str(params))
    if kind == "exported":
        result = _open_exported(source, path, seed)
    else:
        environment = Environment(path)
        with environment.loading():
            result = _open_python(source, environment, seed)
    files = dict.fromkeys((*source_files(source, ()), *result.files))
    return replace(result, files=tuple(files))


def with_inputs(
    opened: OpenedModel, specs: tuple[InputSpec, ...], seed: int, sizes: Sizes | None = None
) -> LoadedModel:
    """Return an opened source with its inputs.

    Parameters
    ----------
    specs
        The inputs given by the user; the file's example inputs are used for the rest.
    seed
        Set before inputs are drawn.

    Raises `LowerscopeError` if the inputs cannot be made; the error says why.
    """
    offered, home = opened.offered, opened.home
    # Resolve now: the file may change the working directory.
    specs = tuple(
        msgspec.structs.replace(
            each, file=str(user_path(each.file).absolute()) if each.file else ""
        )
        for each in specs
    )
    with contextlib.nullcontext() if home is None else home.loading():
        # Restore the state after the build, so that the examples are the same each time.
        offered.random.restore()
        gathered = gather(
            specs,
            offered.signature,
            offered.examples,
            offered.fixed,
            seed,
            opened.path,
            sizes or {},
        )
        files = () if home is None else home.files()
    fixed = offered.fixed.values()
    fields = vars(opened) | {
        "files": tuple(dict.fromkeys((*opened.files, *input_files(specs), *files)))
    }
    return LoadedModel(
        **fields,
        inputs=gathered.values,
        calling=gathered.calling,
        parameters=frozenset(each.name for each in gathered.values if each in fixed),
    )


def _open_python(source: Source, environment: Environment, seed: int) -> OpenedModel:
    path = environment.path
    arguments = parse_arguments(source.args)
    seed_all(seed)
    file = run_file(environment)
    name, entry = find_entry(file, source.entry, path)
    seed_all(seed)
    built: Any = build(entry, name, arguments, path)
    fixed: dict[str, ExampleInput] = {}
    arrays = read_arrays(user_path(source.params)) if source.params else {}
    if is_ir_module(built) or is_prim_func(built):
        built = with_main(built, name, f"{path}:{name}")
        signature = _signature_of_module(built, path)
        known = {parameter.name for parameter in signature.parameters}
        origin = Path(source.params).name
        fixed = {
            key: as_input(array, key, origin, source.params)
            for key, array in _only_known(arrays, known, source.params).items()
        }
    else:
        with user_code(path, f"moves {name} to the CPU"):
            built = built.cpu().eval()
        signature = signature_of_model(built, str(path))
        load_into(built, arrays, source.params)
        register_package_types()
    examples = _examples(entry, built, file, path)
    return OpenedModel(
        title=_title(source, name),
        path=path,
        entry=name,
        description=_description(file),
        model=None if is_ir_module(built) else built,
        module=built if is_ir_module(built) else None,
        exported=None,
        classes=_classes(file),
        reference=_reference(file, name) if is_ir_module(built) else None,
        files=environment.files(),
        home=environment,
        offered=Offered(signature, examples, fixed, RandomState.present()),
    )


def _open_exported(source: Source, path: Path, seed: int) -> OpenedModel:
    for option, given in (("the entry", source.entry), ("--params", source.params)):
        if given:
            raise LowerscopeError(
                f"{option} {given} has no meaning for an exported program",
                where=str(path),
                todo="Leave it out",
            )
    if parse_arguments(source.args):
        raise LowerscopeError(
            "an exported program takes no arguments", where=str(path), todo="Leave --args out"
        )
    seed_all(seed)
    program, model = load_exported(path, trust=source.trust)
    signature = signature_of_model(model, str(path))
    examples = Examples(program.example_inputs, f"example inputs of {path.name}")
    return OpenedModel(
        title=path.name,
        path=path,
        entry="",
        description="",
        model=model,
        module=None,
        exported=program,
        classes=(),
        files=(),
        offered=Offered(signature, examples, {}, RandomState.present()),
    )


def _open_handed(source: Source, seed: int) -> OpenedModel:
    """Open a model in memory, which is already built."""
    if source.entry or source.params or parse_arguments(source.args):
        raise LowerscopeError(
            "a model in memory takes no entry, no arguments and no parameters",
            where=source_label(source.spec),
            todo="Give explore the model as it is to be",
        )
    seed_all(seed)
    header, built, inputs = read_handed(source.spec)
    if not is_model(built):
        raise LowerscopeError(
            f"it is of type {type(built).__name__}, not an nn.Module, an IRModule or a PrimFunc",
            where=header.title,
            todo="Give explore a model and its inputs",
        )
    path = Path(source.spec)
    if isinstance(built, torch.nn.Module):
        built = built.cpu().eval()
        signature = signature_of_model(built, header.title)
        register_package_types()
    else:
        built = with_main(built, header.title, header.title)
        signature = _signature_of_module(built, path)
    if inputs is None:
        inputs = getattr(built, "example_inputs", None)
    return OpenedModel(
        title=header.title,
        path=path,
        entry="",
        description="",
        model=None if is_ir_module(built) else built,
        module=built if is_ir_module(built) else None,
        exported=None,
        classes=(),
        files=(),
        offered=Offered(
            signature, Examples(inputs, "inputs of explore"), {}, RandomState.present()
        ),
    )


def _title(source: Source, entry: str) -> str:
    if source.spec.startswith(PREFIX):
        return source.spec.removeprefix(PREFIX)
    return entry


def _signature_of_module(module: Any, path: Path) -> Signature:
    main = next(
        (function for name, function in module.functions.items() if name.name_hint == "main"), None
    )
    if not hasattr(main, "params") or not type(main).__module__.startswith("tvm.relax"):
        raise LowerscopeError(
            "the IRModule has no Relax function called main",
            where=str(path),
            todo="Name the function that is to be run `main`",
        )
    return signature_of_function(main)


def _examples(entry: object, built: Any, file: ModuleType, path: Path) -> Examples:
    """Return the example inputs of the model, of its builder, or of the file."""
    make = None
    if isinstance(built, torch.nn.Module):
        make = getattr(built, "example_inputs", getattr(entry, "example_inputs", None))
    if make is None:
        make = file.__dict__.get("example_inputs")
    return Examples(make, f"example_inputs of {path.name}")


def _description(file: ModuleType) -> str:
    text = file.__doc__ if isinstance(file.__doc__, str) else ""
    return text.strip().partition("\n")[0].strip()


def _classes(file: ModuleType) -> tuple[str, ...]:
    classes = file.__dict__.get("classes")
    if isinstance(classes, (tuple, list)) and all(isinstance(name, str) for name in classes):
        return tuple(classes)
    return ()


def _reference(file: ModuleType, entry: str) -> Callable[..., Any] | None:
    reference = file.__dict__.get("reference")
    if isinstance(reference, dict):
        reference = reference.get(entry)
    return reference if callable(reference) and not isinstance(reference, type) else None


def _only_known(arrays: dict[str, Any], known: set[str], params: str) -> dict[str, Any]:
    unknown = sorted(set(arrays) - known)
    if unknown:
        raise LowerscopeError(
            f"main has no parameter called {', '.join(unknown)}",
            where=params,
            todo=f"Its parameters are {', '.join(sorted(known))}",
        )
    return arrays
