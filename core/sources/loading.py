"""Opening a source: a sample, a Python file or an exported program, with its inputs."""

from __future__ import annotations

import contextlib
import copy
import inspect
import json
import linecache
import sys
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import msgspec
import torch
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from tvm.relax.script.parser import entry as relax_entry
from tvm.script.parser.ir import entry as ir_entry
from tvm.tirx.script.parser import entry as tirx_entry

from lowerscope.core.files.in_memory import read_handed
from lowerscope.core.files.paths import check_readable, user_path
from lowerscope.core.files.sources import (
    MEMORY,
    PREFIX,
    input_files,
    source_files,
    source_kind,
    source_label,
    source_path,
)
from lowerscope.core.model.dimensions import Sizes
from lowerscope.core.model.problems import LowerscopeError, last_line
from lowerscope.core.model.recipe import InputSpec, Source
from lowerscope.core.model.texts import _, _n
from lowerscope.core.sources.examples import (
    ExampleInput,
    Examples,
    Signature,
    as_input,
    signature_of_function,
    signature_of_model,
)
from lowerscope.core.sources.exported import load_exported
from lowerscope.core.sources.inputs import Inputs, gather
from lowerscope.core.sources.onnx_models import load_onnx
from lowerscope.core.sources.opened_model import (
    LoadedModel,
    Offered,
    OpenedModel,
    RandomState,
    computes_gradients,
    in_eval_mode,
    seed_all,
    with_gradients,
)
from lowerscope.core.sources.parameters import load_into, read_arrays
from lowerscope.core.sources.user_code import Environment, run_file, user_code

if TYPE_CHECKING:
    import tvm


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


shorten_stacks()


def open_model(source: Source, seed: int) -> OpenedModel:
    """Open a source.

    Args:
        seed: Set before the file is run, and before its entry is called.
    """
    if source.spec.startswith(MEMORY):
        return _open_handed(source, seed)
    path = source_path(source.spec)
    kind = source_kind(path)
    if source.params:
        # Resolve now: the file may change the working directory.
        params = user_path(source.params).absolute()
        check_readable(params)
        source = msgspec.structs.replace(source, params=str(params))
    if kind == "exported":
        result = _open_exported(source, path, seed)
    elif kind == "onnx":
        result = _open_onnx(source, path, seed)
    elif kind == "scripted":
        result = _open_scripted(source, path, seed)
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

    Args:
        specs: The inputs given by the user; the file's example inputs are used for the rest.
        seed: Set before inputs are drawn.
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
        model = _that_runs(_initialised(opened, gathered, seed), gathered)
        files = () if home is None else home.files()
    fixed = offered.fixed.values()
    fields = vars(opened) | {
        "model": model,
        "files": tuple(dict.fromkeys((*opened.files, *input_files(specs), *files))),
    }
    return LoadedModel(
        **fields,
        inputs=gathered.values,
        calling=gathered.calling,
        parameters=frozenset(each.name for each in gathered.values if each in fixed),
    )


def _initialised(opened: OpenedModel, inputs: Inputs, seed: int) -> torch.nn.Module | None:
    """Return the model; a copy with shapes for these inputs if it has lazy modules.

    Raises `LowerscopeError` if it fails on them.
    """
    model = opened.model
    if model is None or not any(map(is_lazy, [*model.parameters(), *model.buffers()])):
        return model
    lazy = filter(is_lazy, [*model.parameters(), *model.buffers()])
    # Tensors without a shape cannot be copied.
    model = copy.deepcopy(model, {id(each): _empty(each) for each in lazy})
    args, kwargs = inputs.calling.arguments([each.value.clone() for each in inputs.values])
    seed_all(seed)
    try:
        with torch.no_grad():
            model(*args, **kwargs)
    except Exception as error:  # a model may raise any type
        raise LowerscopeError(
            _(
                "the lazy modules cannot be initialised, as the model fails on these inputs: "
                "{reason}",
                reason=last_line(error),
            ),
            where=opened.title,
            todo=_("check the inputs' shapes and dtypes: --input x=1,784:float32"),
            code="change-inputs",
            choices=inputs.calling.names,
        ) from error
    return model


def _that_runs(model: torch.nn.Module | None, inputs: Inputs) -> torch.nn.Module | None:
    """Return a model that enables gradients by itself, if it needs them to run at all."""
    if model is None or isinstance(model, torch.jit.ScriptModule) or not computes_gradients(model):
        return model
    state = RandomState.present()

    def runs() -> bool:
        args, kwargs = inputs.calling.arguments([each.value.clone() for each in inputs.values])
        try:
            # With parameters of its own: it may train them.
            copy.deepcopy(model)(*args, **kwargs)
        except Exception:  # a model may raise any type
            return False
        finally:
            state.restore()
        return True

    with torch.no_grad():
        needs = not runs()
    with torch.enable_grad():
        return with_gradients(model) if needs and runs() else model


def _empty(tensor: Any) -> Any:
    """Return a new tensor without a shape, like another."""
    return type(tensor)(dtype=tensor.dtype)


def _without_subclasses(model: torch.nn.Module) -> torch.nn.Module:
    """Return a model with parameters of plain tensors, where torchao's pack several into one."""
    if any(map(is_traceable_wrapper_subclass, model.parameters())):
        # Imported here since few models need it.
        from torch._functorch._aot_autograd.subclass_parametrization import (
            unwrap_tensor_subclass_parameters,
        )

        unwrap_tensor_subclass_parameters(model)
    return model


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
        with user_code(path, _("moving {name} to the CPU failed", name=name)):
            built = _without_subclasses(in_eval_mode(built.cpu()))
        signature = signature_of_model(built, str(path))
        load_into(built, arrays, source.params)
    examples = _examples(entry, built, file, path)
    return OpenedModel(
        title=_title(source, name, built, path),
        path=path,
        entry=name,
        description=_description(file),
        model=None if is_ir_module(built) else built,
        module=built if is_ir_module(built) else None,
        exported=None,
        classes=_classes(file),
        reference=_reference(file, name) if is_ir_module(built) else None,
        next_inputs=_declared("next_inputs", entry, built, file),
        files=environment.files(),
        home=environment,
        offered=Offered(signature, examples, fixed, RandomState.present()),
    )


def _open_exported(source: Source, path: Path, seed: int) -> OpenedModel:
    _check_whole(source, path, _("an exported program"))
    seed_all(seed)
    program, model = load_exported(path, trust=source.trust)
    signature = signature_of_model(model, str(path))
    examples = Examples(program.example_inputs, _("example inputs of {name}", name=path.name))
    return replace(_of_file(path, model, signature, examples), exported=program)


def _open_onnx(source: Source, path: Path, seed: int) -> OpenedModel:
    _check_whole(source, path, _("an ONNX model"))
    seed_all(seed)
    model, signature, files = load_onnx(path)
    return replace(_of_file(path, model, signature), files=files)


def _open_scripted(source: Source, path: Path, seed: int) -> OpenedModel:
    _check_whole(source, path, _("a module of torch.jit"))
    seed_all(seed)
    try:
        with warnings.catch_warnings():
            # torch advises other formats.
            warnings.simplefilter("ignore", DeprecationWarning)
            model = torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]
    except Exception as error:  # torch raises several types for a damaged archive
        raise LowerscopeError(
            _("this module of torch.jit cannot be read: {reason}", reason=last_line(error)),
            where=str(path),
            todo=_("Save it again with torch.jit.save"),
        ) from None
    model = model.eval()
    return _of_file(path, model, signature_of_model(model, str(path)))


def _check_whole(source: Source, path: Path, what: str) -> None:
    """Reject settings without an effect on a file that holds a whole model."""
    for option, given in ((_("the entry"), source.entry), ("--params", source.params)):
        if given:
            raise LowerscopeError(
                _(
                    "{option} {given} has no effect on {what}",
                    option=option,
                    given=given,
                    what=what,
                ),
                where=str(path),
                todo=_("Leave it out"),
            )
    if parse_arguments(source.args):
        raise LowerscopeError(
            _("{what} takes no arguments", what=what),
            where=str(path),
            todo=_("Leave the arguments out"),
        )


def _of_file(
    path: Path, model: torch.nn.Module, signature: Signature, examples: Examples | None = None
) -> OpenedModel:
    """Return the model of a file that holds a whole one."""
    examples = examples or Examples(None, "")
    return OpenedModel(
        title=path.name,
        path=path,
        entry="",
        description="",
        model=model,
        module=None,
        exported=None,
        classes=(),
        files=(),
        offered=Offered(signature, examples, {}, RandomState.present()),
    )


def _open_handed(source: Source, seed: int) -> OpenedModel:
    """Open a model in memory, which is already built."""
    if source.entry or source.params or parse_arguments(source.args):
        raise LowerscopeError(
            _("a model in memory takes no entry, no arguments and no parameters"),
            where=source_label(source.spec),
            todo=_("Give explore the finished model"),
        )
    seed_all(seed)
    header, built, inputs = read_handed(source.spec)
    if not is_model(built):
        raise LowerscopeError(
            _(
                "it is of type {name}, not an nn.Module, an IRModule or a PrimFunc",
                name=type(built).__name__,
            ),
            where=header.title,
            todo=_("Give explore a model and its inputs"),
        )
    path = Path(source.spec)
    if isinstance(built, torch.nn.Module):
        built = _without_subclasses(in_eval_mode(built.cpu()))
        signature = signature_of_model(built, header.title)
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
            signature, Examples(inputs, _("inputs of explore")), {}, RandomState.present()
        ),
    )


def _title(source: Source, entry: str, built: Any, path: Path) -> str:
    if source.spec.startswith(PREFIX):
        return source.spec.removeprefix(PREFIX)
    if source.entry or entry not in USUAL_NAMES or not isinstance(built, torch.nn.Module):
        return entry
    # ``entry = Net`` and ``model = Net()`` say less than the class, and that less than the file
    # where it is one of torch's own.
    made = type(built)
    return path.stem if made.__module__.startswith("torch.") else made.__name__


def _signature_of_module(module: Any, path: Path) -> Signature:
    main = next(
        (function for name, function in module.functions.items() if name.name_hint == "main"), None
    )
    if not hasattr(main, "params") or not type(main).__module__.startswith("tvm.relax"):
        raise LowerscopeError(
            _("the IRModule has no Relax function called main"),
            where=str(path),
            todo=_("Name the function to run `main`"),
        )
    return signature_of_function(main)


def _examples(entry: object, built: Any, file: ModuleType, path: Path) -> Examples:
    """Return the example inputs of the model, of its builder, or of the file."""
    make = _declared("example_inputs", entry, built, file)
    return Examples(make, _("example_inputs of {file}", file=path.name))


def _declared(name: str, entry: object, built: Any, file: ModuleType) -> Any:
    """Return an attribute of the model, of its builder, or of the file; ``None`` for none."""
    found = None
    if isinstance(built, torch.nn.Module):
        found = getattr(built, name, getattr(entry, name, None))
    return file.__dict__.get(name) if found is None else found


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
            _("main has no parameter called {unknown}", unknown=_(", ").join(unknown)),
            where=params,
            todo=_("Its parameters are {sorted}", sorted=_(", ").join(sorted(known))),
        )
    return arrays


def is_prim_func(value: object) -> bool:
    """Return whether `value` is a TensorIR function, without importing TVM."""
    tvm = sys.modules.get("tvm")
    return tvm is not None and isinstance(value, tvm.tirx.PrimFunc)


def with_main(built: Any, name: str, where: str) -> tvm.IRModule:
    """Return a module with a Relax function ``main`` that can be run.

    Args:
        built: A PrimFunc, or an ``IRModule``. A module that has a Relax function is returned
            unchanged; in one of TensorIR only, ``main`` or else the only function is called.
        name: Name in the module of a PrimFunc without one.

    Raises `LowerscopeError` if the function to call, or its call, is ambiguous.
    """
    import tvm
    from tvm import relax, tirx

    if isinstance(built, tvm.IRModule):
        functions = {variable.name_hint: each for variable, each in built.functions_items()}
        if any(isinstance(each, relax.Function) for each in functions.values()):
            return built
        prim_funcs = {
            title: each for title, each in functions.items() if isinstance(each, tirx.PrimFunc)
        }
        name = "main" if "main" in prim_funcs else next(iter(prim_funcs), "")
        if not prim_funcs or (len(prim_funcs) > 1 and name != "main"):
            raise LowerscopeError(
                _("the IRModule has no Relax function called main"),
                where=where,
                todo=_("Name the function to run `main`"),
            )
        function = prim_funcs[name]
    else:
        function = built
    title = name if name != "main" else _own_name(function)
    return _calling(function, title, where)


def _own_name(function: Any) -> str:
    """Return the name of the computation, since ``main`` is that of the caller."""
    outputs = _written(function)
    return str(outputs[-1].name) if outputs else "function"


def _calling(function: Any, name: str, where: str) -> tvm.IRModule:
    """Return a module of `function` and a ``main`` that passes it its destinations."""
    import tvm
    from tvm import relax
    from tvm.tirx.buffer import is_buffer_var

    params = list(function.params)
    for parameter in params:
        if not is_buffer_var(parameter):
            raise LowerscopeError(
                _("its argument {name} is not a tensor", name=parameter.name),
                where=where,
                todo=_("Write a Relax function main that calls it"),
            )
    written = _written(function)
    count = sum(any(each.same_as(parameter) for each in written) for parameter in params)
    outputs = params[len(params) - count :]
    if not count or not all(any(o.same_as(each) for each in written) for o in outputs):
        raise LowerscopeError(
            _("it must write to its last arguments, and only to these"),
            where=where,
            todo=_(
                "Give te.create_prim_func the inputs first and then the results, or write a "
                "Relax function main that calls it"
            ),
        )
    types = _types(params, where)
    inputs = params[: len(params) - count]
    builder = relax.BlockBuilder()
    callee = builder.add_func(function.without_attr("global_symbol"), _plain(name))
    variables = [relax.Var(each.name, types[each]) for each in inputs]
    out = [types[each] for each in outputs]
    with builder.function("main", variables):
        with builder.dataflow():
            call = relax.call_tir(callee, variables, out if count > 1 else out[0])
            result = builder.emit_output(builder.emit(call))
        builder.emit_func_output(result)
    module = builder.get()
    assert isinstance(module, tvm.IRModule)
    return module


def _types(params: list[Any], where: str) -> dict[Any, Any]:
    """Return the types of the tensors in ``main``, with fresh symbolic variables."""
    from tvm import relax, tirx

    symbols: dict[Any, Any] = {}
    types: dict[Any, Any] = {}
    for parameter in params:
        shape = []
        for extent in parameter.ty.shape:
            if isinstance(extent, tirx.Var):
                extent = symbols.setdefault(extent, tirx.Var(extent.name, "int64"))
            elif not isinstance(extent, tirx.IntImm):
                raise LowerscopeError(
                    _(
                        "the extent {extent} of its argument {name} is neither a number nor a "
                        "symbol",
                        extent=extent,
                        name=parameter.name,
                    ),
                    where=where,
                    todo=_("Write a Relax function main that calls it"),
                )
            else:
                extent = int(extent)
            shape.append(extent)
        types[parameter] = relax.TensorType(shape, str(parameter.ty.dtype.dtype))
    return types


def _plain(name: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in name) or "function"


def _written(function: Any) -> list[Any]:
    """Return the buffers that a function stores to, each once; a subregion counts as its buffer."""
    import tvm_ffi
    from tvm import s_tir, tirx

    stored: list[Any] = []
    blocks: list[Any] = []
    tvm_ffi.structural_walk(
        function.body, ((tirx.BufferStore, stored.append), (s_tir.SBlock, blocks.append))
    )
    matches = [match for block in blocks for match in block.match_buffers]
    whole = {match.buffer: match.source.source for match in matches}
    found: dict[Any, None] = {}
    for buffer in (each.buffer for each in stored):
        while buffer in whole:
            buffer = whole[buffer]
        found[buffer] = None
    return list(found)


BUILDERS = (
    "build",
    "make",
    "create",
    "model",
    "build_model",
    "make_model",
    "create_model",
    "get_model",
)
"""Names of functions that count as model builders without an annotation."""

USUAL_NAMES = (*BUILDERS, "entry", "net", "network", "module")
"""Names of entries that say nothing about a model."""

_OWN_NAME = "model"
"""Name of the candidate that is meant where a file has several, such as a model before and after it
is quantised."""

LOOKED_FOR = _(
    "An entry is an nn.Module class or instance, an IRModule, a TensorIR function (PrimFunc), or a "
    "function without required parameters that returns one of these"
)


def find_entry(module: ModuleType, name: str, path: Path) -> tuple[str, object]:
    """Return the name and the value of the entry of a file that has been run.

    Args:
        name: The entry that the user named; empty for the only candidate, or the one that the file
            itself names in ``entry`` or ``__all__``, or calls ``model``.

    Raises `LowerscopeError` if there is no such entry, no candidate, or more than one
    """
    candidates = find_candidates(module)
    if name:
        return name, _named(module, name, candidates, path)
    declared = module.__dict__.get("entry")
    if isinstance(declared, str):
        return declared, _named(module, declared, candidates, path)
    if (
        is_model(declared)
        or _is_module_class(declared, module)
        or (isinstance(declared, FunctionType) and _callable_bare(declared))
    ):
        return "entry", declared
    exported = module.__dict__.get("__all__")
    if isinstance(exported, (list, tuple)):
        candidates = {key: candidates[key] for key in exported if key in candidates} or candidates
    if not candidates:
        raise LowerscopeError(_("no model found in the file"), where=str(path), todo=LOOKED_FOR)
    # A file that makes a model of its classes and builders means that one.
    meant = _whole({name: value for name, value in candidates.items() if is_model(value)})
    if not meant:
        meant = _whole(candidates)
    if len(meant) == 1:
        return next(iter(meant.items()))
    if _OWN_NAME in candidates:
        return _OWN_NAME, candidates[_OWN_NAME]
    if len(candidates) > 1:
        raise LowerscopeError(
            _("there are several candidates: {candidates}", candidates=_(", ").join(candidates)),
            where=str(path),
            todo=_("Name one: {name}:{next}", name=path.name, next=next(iter(candidates))),
            code="choose-entry",
            choices=tuple(candidates),
        )
    return next(iter(candidates.items()))


def find_candidates(module: ModuleType) -> dict[str, object]:
    """Return the possible entries of a file by name, in file order.

    A TensorIR function is a candidate only in the absence of others: beside a module it is a part
    of it.
    """
    public = {name: value for name, value in module.__dict__.items() if not name.startswith("_")}
    functions = [
        value
        for value in public.values()
        if isinstance(value, FunctionType)
        and _callable_bare(value)
        and value.__module__ == module.__name__
    ]
    by_name = [function for function in functions if function.__name__ in BUILDERS]
    builders = [value for value in functions if _returns_model(value) or by_name == [value]]
    found: dict[str, object] = {}
    for name, value in public.items():
        taken = (
            _is_module_class(value, module)
            or is_model(value)
            or any(value is builder for builder in builders)
        )
        if taken and not any(value is other for other in found.values()):
            found[name] = value
    whole = {name: value for name, value in found.items() if not is_prim_func(value)}
    return whole or found


def _whole(candidates: Mapping[str, object]) -> dict[str, object]:
    """Return the candidates without the modules and classes that others are made of."""
    parts = {
        name
        for key, value in candidates.items()
        for name, other in candidates.items()
        if name != key and _is_made_of(value, other)
    }
    return {key: value for key, value in candidates.items() if key not in parts}


def _is_made_of(value: object, part: object) -> bool:
    if isinstance(value, torch.nn.Module):
        return any(part is each for each in value.modules())
    if not (isinstance(value, type) and isinstance(part, type)):
        return False
    return any(part is each for each in _globals_of(value))


def _globals_of(made: type) -> list[object]:
    """Return the globals that the methods of a class name, or the file's functions in them."""
    names = getattr(sys.modules.get(made.__module__), "__dict__", {})
    found: list[object] = []
    codes = [_code_of(each) for each in vars(made).values()]
    while codes:
        code = codes.pop()
        if code is None:
            continue
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
        for each in (names[name] for name in code.co_names if name in names):
            if not any(each is other for other in found):
                found.append(each)
                if getattr(each, "__module__", None) == made.__module__:
                    codes.append(_code_of(each))
    return found


def _code_of(value: object) -> CodeType | None:
    function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
    return getattr(function, "__code__", None)


def is_model(value: object) -> bool:
    """Return whether `value` is an ``nn.Module``, an ``IRModule`` or a ``PrimFunc``."""
    return isinstance(value, torch.nn.Module) or is_ir_module(value) or is_prim_func(value)


def is_ir_module(value: object) -> bool:
    """Return whether `value` is an ``IRModule``, without importing TVM."""
    tvm = sys.modules.get("tvm")
    return tvm is not None and isinstance(value, tvm.IRModule)


def parse_arguments(text: str) -> dict[str, Any]:
    """Read ``--args``.

    Raises `LowerscopeError` if it is not a JSON object.
    """
    todo = _('Give an object, such as {"hidden": 128}')
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        # json raises other errors for numbers of thousands of digits and for very deep nesting.
        what = str(error)
        if isinstance(error, json.JSONDecodeError):
            what = _("{msg} at column {colno}", msg=error.msg, colno=error.colno)
        raise LowerscopeError(
            _("this is not JSON: {what}", what=what), where=f"--args {text}", todo=todo
        ) from None
    if not isinstance(value, dict):
        raise LowerscopeError(_("this is not a JSON object"), where=f"--args {text}", todo=todo)
    return value


def build(entry: object, name: str, arguments: Mapping[str, Any], path: Path) -> object:
    """Call the entry if it is a class or a function, and return the model.

    Raises `LowerscopeError` if arguments are missing or unknown, the call fails, or it does not
    return a model.
    """
    where = f"{path}:{name}"
    if is_model(entry):
        if arguments:
            raise LowerscopeError(
                _("{name} is built already and takes no arguments", name=name),
                where=where,
                todo=_("Leave the arguments out"),
            )
        return entry
    assert callable(entry)
    _check_arguments(entry, name, arguments, where)
    with user_code(path, _("building {name} failed", name=name)):
        model = entry(**arguments)
    if not is_model(model):
        raise LowerscopeError(
            _(
                "{name} returns {article}, not an nn.Module, an IRModule or a PrimFunc",
                name=name,
                article=_article(type(model).__name__),
            ),
            where=where,
            todo=LOOKED_FOR,
        )
    return model


def _named(module: ModuleType, name: str, candidates: Mapping[str, object], path: Path) -> object:
    value: object = module
    for part in name.split("."):
        value = getattr(value, part, None)
    usable = is_model(value) or (
        issubclass(value, torch.nn.Module) if isinstance(value, type) else callable(value)
    )
    if usable:
        return value
    listed = _(", ").join(candidates)
    if value is None:
        what = _("there is no {name}", name=name)
    else:
        kind = (
            _("the class {name}", name=name)
            if isinstance(value, type)
            else f"{name}, {_article(type(value).__name__)},"
        )
        what = _("{kind} is not a model", kind=kind)
    raise LowerscopeError(
        what,
        where=str(path),
        todo=_("The file has {listed}", listed=listed) if candidates else LOOKED_FOR,
        code="choose-entry" if candidates else "",
        choices=tuple(candidates),
    )


def _is_module_class(value: object, module: ModuleType) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, torch.nn.Module)
        and value.__module__ == module.__name__
    )


def _callable_bare(function: FunctionType) -> bool:
    return not _required(inspect.signature(function))


def _required(signature: inspect.Signature) -> list[str]:
    return [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _returns_model(function: FunctionType) -> bool:
    annotation: object = function.__annotations__.get("return")
    if isinstance(annotation, str):
        try:
            annotation = typing.get_type_hints(function).get("return")
        except (NameError, AttributeError, TypeError, SyntaxError):
            # The annotation may be imported under TYPE_CHECKING only; its name is enough.
            return str(annotation).rpartition(".")[2].strip("\"'") in (
                "Module",
                "IRModule",
                "PrimFunc",
            )
    if not isinstance(annotation, type):
        return False
    tvm = sys.modules.get("tvm")
    return issubclass(annotation, torch.nn.Module) or (
        tvm is not None and issubclass(annotation, (tvm.IRModule, tvm.tirx.PrimFunc))
    )


def _check_arguments(entry: Any, name: str, arguments: Mapping[str, Any], where: str) -> None:
    try:
        signature = inspect.signature(entry)
    except (TypeError, ValueError):
        # Some builtins have no signature; the call itself reports the error.
        return
    parameters = signature.parameters.values()
    unknown = [key for key in arguments if key not in signature.parameters]
    if unknown and not any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
        known = _(", ").join(
            parameter.name
            for parameter in parameters
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        )
        raise LowerscopeError(
            _("{name} takes no argument {unknown}", name=name, unknown=_(", ").join(unknown)),
            where=where,
            todo=_("It takes {known}", known=known)
            if known
            else _("It takes no arguments: leave them out"),
        )
    missing = [key for key in _required(signature) if key not in arguments]
    if missing:
        example = ", ".join(f'"{key}": ...' for key in missing)
        raise LowerscopeError(
            _n(
                "{name} needs the argument {missing}",
                "{name} needs the arguments {missing}",
                len(missing),
                name=name,
                missing=_(", ").join(missing),
            ),
            where=where,
            todo=_("Give its arguments: --args '{{{example}}}'", example=example),
            code="give-args",
            choices=(f"{{{example}}}",),
        )


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
