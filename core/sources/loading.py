"""Opening a source: a sample, a Python file or an exported program, with its inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from lowerscope.core.calling import Calling
from lowerscope.core.dimensions import Sizes
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.recipe import InputSpec, Source
from lowerscope.core.records import SourceLine
from lowerscope.core.sources.entries import build, find_entry, is_ir_module, parse_arguments
from lowerscope.core.sources.environments import Environment
from lowerscope.core.sources.examples import ExampleInput, Examples, as_input
from lowerscope.core.sources.exported import load_exported
from lowerscope.core.sources.files import source_files
from lowerscope.core.sources.inputs import gather, seed_all
from lowerscope.core.sources.package_types import register_package_types
from lowerscope.core.sources.parameters import load_into, read_arrays
from lowerscope.core.sources.prim_funcs import is_prim_func, with_main
from lowerscope.core.sources.samples import PREFIX
from lowerscope.core.sources.signatures import (
    Signature,
    signature_of_function,
    signature_of_model,
)
from lowerscope.core.sources.spec import check_readable, source_kind, source_path, user_path
from lowerscope.core.sources.user_code import run_file, user_code

if TYPE_CHECKING:
    import tvm

__all__ = ["ExampleInput", "LoadedModel", "load"]


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """What was opened.

    Attributes
    ----------
    title
        The sample's name, or the entry's, or the file's.
    path
        The file, absolute.
    description
        First line of the file's docstring.
    model
        In eval mode, on the CPU; ``None`` for a source without torch.
    module
        For a file that builds an ``IRModule``.
    exported
        For a ``.pt2``.
    inputs
        The tensors among the inputs as they are used, in order.
    calling
        How the model is called with them.
    parameters
        Names of the inputs of an ``IRModule`` whose values are from the file of parameters.
    classes
        Names of the classes that the output tells apart, if the file has ``classes``.
    reference
        The file's function ``reference``, for a source without torch, which takes the inputs as
        arrays and returns what is to come out; or the entry's in a dict of this name.
    files
        Files whose content the result depends on: those that `source_files` finds, and what was
        imported or read from the file's folder, or below, while it was opened.
    home
        The environment of a Python file; ``None`` for an exported program.
    """

    title: str
    path: Path
    description: str
    model: torch.nn.Module | None
    module: tvm.IRModule | None
    exported: torch.export.ExportedProgram | None
    inputs: tuple[ExampleInput, ...]
    calling: Calling
    classes: tuple[str, ...]
    files: tuple[Path, ...]
    home: Environment | None = None
    parameters: frozenset[str] = frozenset()
    reference: Callable[..., Any] | None = None

    def environment(self) -> contextlib.AbstractContextManager[None]:
        """Return the context in which the file's code runs: what is opened calls its functions.

        Its neighbours go by their own names, and the functions that it has registered with TVM
        are there. Within itself it does nothing; one thread at a time can be in one.

        Raises
        ------
        LowerscopeError
            When it is entered, if it is `spent`.
        """
        return contextlib.nullcontext() if self.home is None else self.home.entered()

    def registered(self) -> dict[str, SourceLine]:
        """Return where the file registers functions with TVM, by their names."""
        return {} if self.home is None else self.home.registered()

    @property
    def spent(self) -> bool:
        """Whether it must be opened again, since operators of torch that it needs are gone.

        They go when the environment of another file is entered.
        """
        return self.home is not None and self.home.spent


def load(
    source: Source, inputs: tuple[InputSpec, ...], seed: int, sizes: Sizes | None = None
) -> LoadedModel:
    """Open a source.

    Parameters
    ----------
    source
        What to open.
    inputs
        What the user said of the inputs; the file's example inputs are taken for the rest.
    seed
        Set before the file is run, before its entry is called, and before inputs are drawn.
    sizes
        Of the dimensions that `inputs` name.

    Raises
    ------
    LowerscopeError
        If the source, its parameters or its inputs cannot be had; the error says why.
    """
    path = source_path(source.spec)
    kind = source_kind(path)
    if source.params:
        check_readable(user_path(source.params), "parameters")
    if kind == "exported":
        result = _load_exported(source, path, inputs, seed, sizes or {})
    else:
        environment = Environment(path)
        with environment.loading():
            result = _load_python(source, environment, inputs, seed, sizes or {})
    files = dict.fromkeys((*source_files(source, inputs), *result.files))
    return replace(result, files=tuple(files))


def _load_python(
    source: Source,
    environment: Environment,
    specs: tuple[InputSpec, ...],
    seed: int,
    sizes: Sizes,
) -> LoadedModel:
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
    gathered = gather(specs, signature, examples, fixed, seed, path, sizes)
    return LoadedModel(
        title=_title(source, name),
        path=path,
        description=(file.__doc__ or "").strip().partition("\n")[0].strip(),
        model=None if is_ir_module(built) else built,
        module=built if is_ir_module(built) else None,
        exported=None,
        inputs=gathered.values,
        calling=gathered.calling,
        classes=_classes(file),
        reference=_reference(file, name) if is_ir_module(built) else None,
        files=environment.files(),
        home=environment,
        parameters=frozenset(each.name for each in gathered.values if each in fixed.values()),
    )


def _load_exported(
    source: Source, path: Path, specs: tuple[InputSpec, ...], seed: int, sizes: Sizes
) -> LoadedModel:
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
    gathered = gather(specs, signature, examples, {}, seed, path, sizes)
    return LoadedModel(
        title=path.name,
        path=path,
        description="",
        model=model,
        module=None,
        exported=program,
        inputs=gathered.values,
        calling=gathered.calling,
        classes=(),
        files=(),
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
