"""``reproduce.py``: a program that reproduces a recipe with torch and TVM only.

It builds the model from its source, makes the Relax module with a block builder from the model's
own parameters, applies the passes and the schedules, builds, runs, and asserts that the outputs
match torch's. Its text is a template; this module computes the values of that.
"""

from __future__ import annotations

import base64
import builtins
import dataclasses
import enum
import hashlib
import importlib
import inspect
import json
import math
import operator
import pickle
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import torch
import tvm
from torch import nn
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import resolve_name
from tvm import relax, tirx
from tvm.support import cc

from lowerscope.core.build.build import external_functions, without_kills
from lowerscope.core.export.files import File, arrays_file, copied_file, plain_array, text_file
from lowerscope.core.export.rule_files import value_of
from lowerscope.core.files.paths import user_path
from lowerscope.core.files.python_text import (
    attribute,
    comment,
    docstring,
    is_identifier,
    keywords,
    quoted,
    quoted_lines,
)
from lowerscope.core.files.report import source_name, template
from lowerscope.core.files.sources import (
    PREFIX,
    is_in_memory,
    neighbours,
    not_in_a_file,
    source_kind,
)
from lowerscope.core.ir.before_build import CHANGES
from lowerscope.core.lowering.library import Argument, LibraryFunction, Size
from lowerscope.core.lowering.library_nodes import MethodCall, ModuleCall, content_of_module
from lowerscope.core.model.problems import TVM_ERRORS, LowerscopeError, last_line
from lowerscope.core.model.processors import MACHINE
from lowerscope.core.model.recipe import Recipe, Step, overrides_on
from lowerscope.core.model.schedule import SCHEDULING, VECTOR_MATH
from lowerscope.core.model.texts import _
from lowerscope.core.model.tolerances import Tolerance
from lowerscope.core.passes import (
    batch_norm_folding,
    bfloat16_products,
    chosen_branches,
    integer_products,
    matrix_transposes,
    own_passes,
    padded_convolutions,
    transposed,
    vector_math,
    winograd,
)
from lowerscope.core.passes.batch_norm_folding import FOLD_BATCH_NORM
from lowerscope.core.passes.bfloat16_products import MULTIPLY_BFLOAT16
from lowerscope.core.passes.catalogue import MODULES, Pass, arguments_of, find, split, user_passes
from lowerscope.core.passes.chosen_branches import CHOOSE_BRANCHES
from lowerscope.core.passes.integer_products import MULTIPLY_INTEGERS
from lowerscope.core.passes.matrix_transposes import FUSE_TRANSPOSE
from lowerscope.core.passes.own_passes import ATTACH, without_row_major
from lowerscope.core.passes.padded_convolutions import PAD_CONVOLUTION
from lowerscope.core.passes.transposed import SPLIT_TRANSPOSED
from lowerscope.core.passes.winograd import WINOGRAD
from lowerscope.core.run.execution import to_tvm
from lowerscope.core.schedule import dot_instructions
from lowerscope.core.schedule.dot_instructions import uses_dot
from lowerscope.core.sources.array_files import is_archive
from lowerscope.core.sources.onnx_models import OnnxModel, OnnxNode, side_of
from lowerscope.core.sources.opened_model import LoadedModel
from lowerscope.core.sources.parameters import is_torch_file, names_for, read_arrays
from lowerscope.core.sources.pytree import Length, Place, members
from lowerscope.core.stages import Stages
from lowerscope.core.tracing.quantised_operator import QuantisedOperator
from lowerscope.core.views.programs.builder_text import CONSTANTS_FILE
from lowerscope.core.views.programs.program_lines import Identifiers
from lowerscope.core.views.source_text import builder_of
from lowerscope.resources import PROGRAMS

PROGRAM = "reproduce.py"
ARRAYS = "reproduce.npz"
MODULE = "reproduce.json"

_STANDARD = "base64 copy ctypes dataclasses hashlib json linecache operator pickle random sys types"
"""Modules of the standard library that the program may use."""

_DEFINED = (
    "FOLDING HERE LIBRARY LibraryCall RANDOM ROW_MAJOR SEED SOURCE STORED TARGET TEXT TOLERANCES "
    "TRANSPOSED VECTOR_MATH bits call_model check check_file expected_of from_dlpack leaves "
    "load_file load_text lower main make_inputs open_model open_source parameters_of plain_of "
    "s_tir sch scheduled seed_all source tensors_of to_tvm torch transform virtual_machine "
    "with_cancellations with_stored_values with_whole_periods with_wide_bfloat16 without "
    "without_kills"
)

RESERVED = (*_STANDARD.split(), *_DEFINED.split())
"""Names that the program defines besides those of the lowering."""

Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True)
class Reproduction:
    """The program, with the files beside it."""

    program: str
    arrays: Mapping[str, Array]  # for `ARRAYS`; empty if no such file is needed
    # For `MODULE`: the module before the passes if no program can make it; empty for none.
    module: str
    files: tuple[Path, ...]


def reproduction(stages: Stages, recipe: Recipe) -> Reproduction:
    """Return the program that reproduces a recipe.

    Raises a `LowerscopeError` if a step fails, or a part of it cannot be written as code; it is
    named.
    """
    if is_in_memory(recipe):
        raise not_in_a_file(recipe.source.spec)
    if stages.opened.gives_state:
        raise LowerscopeError(
            _(
                "the model keeps its state in its own attributes, so a program that opens the "
                "file cannot pass it in"
            ),
            where=PROGRAM,
            todo=_("Export the module and its parameters instead"),
        )
    stages.check_runs_here(_("a program that runs the model"))
    stages.transformed.check()
    registering_files(stages)
    arrays: dict[str, Array] = {}
    source, files = _source(stages.loaded, recipe, arrays)
    lowering, froms = _lowering(stages, arrays)
    names = re.findall(r"^(?:def )?(\w+)", lowering["definitions"], re.MULTILINE)
    random = () if stages.lowered is None else stages.lowered.random
    library = {} if stages.lowered is None else stages.lowered.library
    values: dict[str, Any] = {
        **{each.__name__: each for each in (attribute, digest_of, docstring, quoted, repr, str)},
        **source,
        **lowering,
        **steps_values(stages, recipe, Identifiers((*RESERVED, *names))),
        **_comparison(stages),
        "recipe": recipe,
        "title": source_name(recipe),
        "has_torch": stages.lowered is not None,
        "parameters": _parameters(stages, arrays),
        "library": library_entries(library, "source") if library else [],
        "tolerances": _tolerances(recipe),
        "random": {place: ", ".join(names) for place, names in enumerate(random) if names},
        "registering": [
            loaded.path for extension, loaded in stages.extensions if extension.kind == "library"
        ],
    }
    body = template(PROGRAMS / "reproduce.py.jinja").render(values, stored=bool(arrays))
    head = template(PROGRAMS / "head.py.jinja").render(
        values, version=version, settings=_settings(recipe), **imports_for(body, froms)
    )
    module = "" if lowering["lowering"] != "file" else str(tvm.ir.save_json(stages.module))
    return Reproduction(head + body, arrays, module, tuple(files))


_LOADING = {
    "exported": "torch.export.load(SOURCE)",
    "scripted": 'torch.jit.load(SOURCE, map_location="cpu").eval()',
    "onnx": 'onnxruntime.InferenceSession(SOURCE, providers=["CPUExecutionProvider"])',
}
"""Expressions that open a file that holds a whole model, by its kind."""


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _source(
    loaded: LoadedModel, recipe: Recipe, arrays: dict[str, Array]
) -> tuple[dict[str, Any], list[Path]]:
    """Return the values for opening the model and making its inputs, and the files it needs."""
    path, sample, files, params = loaded.path, "", list[Path](), None
    kind = source_kind(path)
    if recipe.source.spec.startswith(PREFIX):
        sample = quoted_lines(path.read_text(encoding="utf-8"))
        files = [each for each in loaded.files if each != path and each.parent == path.parent]
    if recipe.source.params and loaded.model is not None and kind == "python":
        file = user_path(recipe.source.params).absolute()
        params = {
            "path": file,
            "names": names_for(loaded.model, read_arrays(file), str(file)),
            "archive": is_archive(file),
            "of_torch": is_torch_file(file),
        }
    arguments = json.loads(recipe.source.args or "{}")
    examples = _examples(loaded)
    values = {
        "loaded": loaded,
        "path": path,
        "kind": kind,
        "loading": _LOADING,
        "has_module": loaded.module is not None,
        "sample": sample,
        "params": params,
        "given": f"**{arguments!r}" if arguments else "",
        "examples": examples,
        "inputs": []
        if examples
        else [_stored(arrays, f"input {each.name}", each.value) for each in loaded.inputs],
        "call": _call(loaded),
    }
    return values, files


def _examples(loaded: LoadedModel) -> str:
    """Return an expression for the inputs if they are the examples of the source."""
    examples = loaded.offered.examples
    made = loaded.calling.is_flat and all(each.origin == examples.origin for each in loaded.inputs)
    if not made or not loaded.inputs or (loaded.exported is None and examples.make is None):
        return ""
    owner = "model" if hasattr(loaded.model, "example_inputs") else "source"
    return f"{owner}.example_inputs{'()' if callable(examples.make) else ''}"


def _call(loaded: LoadedModel) -> str:
    calling = loaded.calling
    args = [_argument(each) for each in calling.args]
    args += keywords((name, _argument(each)) for name, each in calling.kwargs.items())
    return "*inputs" if calling.is_flat else ", ".join(args)


def _argument(value: Any) -> str:
    if isinstance(value, Length):
        return f"inputs[{int(value)}].shape[0]"
    if isinstance(value, Place):
        return f"inputs[{int(value)}]"
    below = members(value)
    if below is None:
        if isinstance(value, torch.device):
            return f"torch.{value!r}"
        if type(value) in _PLAIN:
            return f'float("{value}")' if value in _INFINITE or value != value else repr(value)
        raise _without_form(value)
    texts = [_argument(each) for _other, each in below]
    kind = type(value)
    if kind is list:
        return f"[{', '.join(texts)}]"
    if kind is tuple:
        return f"({', '.join(texts)}{',' * (len(texts) == 1)})"
    if kind is dict and all(type(key) in (str, int, bool) for key in value):
        return f"{{{', '.join(f'{key!r}: {t}' for key, t in zip(value, texts, strict=True))}}}"
    is_named = hasattr(value, "_fields") or dataclasses.is_dataclass(value)
    if is_named and kind.__module__.startswith("lowerscope_source_"):
        given = ", ".join(keywords(zip((str(key) for key, _other in below), texts, strict=True)))
        return f"{attribute('source', *kind.__qualname__.split('.'))}({given})"
    raise _without_form(value)


_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.layout)
_INFINITE = (math.inf, -math.inf)


def _without_form(value: Any) -> LowerscopeError:
    return LowerscopeError(
        _("an input is of type {name}, which cannot be written as code", name=type(value).__name__),
        where=PROGRAM,
        todo=_("Give the model tensors, or tuples, lists, dicts and dataclasses of tensors"),
    )


def _stored(arrays: dict[str, Array], name: str, tensor: torch.Tensor) -> str:
    """Add a tensor to the file beside the program; return an expression for it."""
    arrays[name] = _bits(tensor)
    dtype = str(tensor.dtype)
    is_same = str(arrays[name].dtype) == dtype.removeprefix("torch.")
    return f"torch.from_numpy(STORED[{quoted(name)}])" + ("" if is_same else f".view({dtype})")


def _bits(tensor: torch.Tensor) -> Array:
    """Return a tensor as an array; if NumPy lacks its dtype, as integers of the same bits.

    The program has the same function.
    """
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.view(torch.uint16)
    elif "float8" in str(tensor.dtype):
        tensor = tensor.view(torch.uint8)
    found: Array = tensor.numpy()
    return found


def _lowering(stages: Stages, arrays: dict[str, Array]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the values of ``lower(model)``, and the imports of the builder program."""
    values = {"definitions": "", "constants": [], "has_relax": False}
    is_own = stages.lowered is None and stages.loaded.module is not None
    try:
        built = builder_of(stages, stages.module, RESERVED)
    except LowerscopeError:
        # The module is the file's own, or a wrapper with a single call; or no program can make it.
        return {**values, "lowering": "given" if is_own else "file"}, ()
    known, texts = tensors_by_content(stages), []
    for name, array in built.constants.items():
        own = known.get(content_of_array(array))
        if own is None:
            arrays[f"constant {name}"] = array
        text = f"bits(tensors[{quoted(own)}])" if own else f"STORED[{quoted(f'constant {name}')}]"
        texts.append(f"{quoted(name)}: {text},")
    definitions = built.definitions.replace(f"the arrays of {CONSTANTS_FILE}", "arrays by name")
    functions = stages.module.functions.values()
    has_relax = is_own and any(isinstance(each, relax.Function) for each in functions)
    return {
        "lowering": "built",
        "definitions": definitions,
        "constants": texts,
        "has_relax": has_relax,
    }, built.imports


def tensors_by_content(stages: Stages) -> dict[tuple[str, tuple[int, ...], str], str]:
    """Return the names of the model's tensors by content."""
    model = stages.loaded.model
    if model is None or isinstance(model, OnnxModel):
        return {}
    found: dict[tuple[str, tuple[int, ...], str], str] = {}
    for name, tensor in {**dict(model.named_parameters()), **dict(model.named_buffers())}.items():
        if tensor.layout is torch.strided and not tensor.is_quantized:
            found.setdefault(content_of_array(_bits(tensor)), name)
    return found


def content_of_array(array: Array) -> tuple[str, tuple[int, ...], str]:
    data = np.ascontiguousarray(array)
    return str(array.dtype), array.shape, hashlib.sha256(data.data).hexdigest()


def _parameters(stages: Stages, arrays: dict[str, Array]) -> list[str]:
    """Return the arguments of ``main`` that are values of the model, as members of a dict."""
    if stages.lowered is None:
        names = [each.name for each in stages.loaded.inputs]
        return [f"{quoted(name)}: inputs[{names.index(name)}]" for name in stages.parameters]
    found, known = [], tensors_by_content(stages) if stages.parameters else {}
    for name, value in stages.parameters.items():
        tensor = torch.utils.dlpack.from_dlpack(value)
        own = known.get(content_of_array(_bits(tensor)))
        text = f"tensors[{quoted(own)}]" if own else _stored(arrays, f"parameter {name}", tensor)
        found.append(f"{quoted(name)}: {text}")
    return found


def _comparison(stages: Stages) -> dict[str, Any]:
    """Return the reference of the outputs, the compiled modules, and the functions for them."""
    side = "the module before its steps"
    has_model = stages.loaded.model is not None
    if has_model:
        side = side_of(stages.loaded.model)
    elif stages.loaded.reference is not None:
        side = "NumPy"
    compiled, embedded = text_to_compile("module", stages.completed)
    before = ""
    if not has_model and side != "NumPy":
        before, more = text_to_compile("lower(model)", stages.module)
        embedded |= more
    return {
        "side": side,
        "has_model": has_model,
        "compiled": compiled,
        "compiled_before": before,
        "embedded": embedded,
    }


def text_to_compile(name: str, module: tvm.IRModule) -> tuple[str, dict[str, str]]:
    """Return the expression of the compiled module, and the functions that it needs."""
    text, embedded = name, {}
    for change in (without_kills, *CHANGES.values()):
        changed = change(module)
        if changed is not module:
            text, module = f"{change.__name__}({text})", changed
            embedded[change.__name__] = inspect.getsource(change)
    return text, embedded


def _tolerances(recipe: Recipe) -> dict[str, tuple[float, float]]:
    chosen: dict[str, Tolerance] = msgspec.structs.asdict(recipe.tolerances)
    found = {dtype: (each.rtol, each.atol) for dtype, each in chosen.items()}
    parts = {"complex128": "float64", "complex64": "float32", "complex32": "float16"}
    return found | {dtype: found[part] for dtype, part in parts.items()}


def imports_for(body: str, imports: tuple[str, ...]) -> dict[str, Any]:
    """Return the values of the template for the modules that a program uses."""
    modules = dict.fromkeys(re.findall(r"\b(tvm\.(?:\w+\.)*transform|tvm\.relax\.backend)\.", body))
    tensorized = [line for line in body.splitlines() if "sch.tensorize(" in line]
    if not all(map(uses_dot, tensorized)):
        modules["tvm.s_tir.tensor_intrin"] = None
    froms = [line for line in imports if line.startswith("from ") and " tvm" not in line]
    return {
        "standard": [
            each for each in _STANDARD.split() if re.search(rf"(?<![\w.]){re.escape(each)}\.", body)
        ],
        "froms": dict.fromkeys(["from pathlib import Path", *froms]),
        "modules": [each for each in modules if each != "tvm.transform"],
        "used": [each for each in ("relax", "s_tir", "tirx") if re.search(rf"\b{each}\.", body)],
        "of_tvm": [line for line in imports if line.startswith("from tvm.")],
        "library": "LIBRARY" in body,
    }


def _settings(recipe: Recipe) -> list[str]:
    steps = ", ".join(step.name for step in recipe.steps if step.on) or "none"
    own = ", ".join(f"{each.pattern}={each.strategy}" for each in overrides_on(recipe))
    facts = {
        "Lowering": recipe.lowering + (f", but {own}" if own else ""),
        "Steps": steps,
        "Target": recipe.target,
    }
    lines = [f"{name}: {text}" for name, text in facts.items()]
    return [each for line in lines for each in textwrap.wrap(line, 96)]


_OWN_STEPS: Mapping[str, tuple[ModuleType, str]] = {
    CHOOSE_BRANCHES: (chosen_branches, "choose_branches"),
    FOLD_BATCH_NORM: (batch_norm_folding, "fold_batch_norm"),
    SPLIT_TRANSPOSED: (transposed, "split_transposed"),
    WINOGRAD: (winograd, "winograd"),
    PAD_CONVOLUTION: (padded_convolutions, "pad_convolutions"),
    MULTIPLY_INTEGERS: (integer_products, "multiply_integers"),
    MULTIPLY_BFLOAT16: (bfloat16_products, "multiply_bfloat16"),
    FUSE_TRANSPOSE: (matrix_transposes, "fuse_transposes"),
    VECTOR_MATH: (vector_math, "with_vector_math"),
}
"""Steps that are neither TVM's nor the user's: their modules, and function names."""

_BEFORE_STEPS: Mapping[str, tuple[ModuleType, str]] = {ATTACH: (own_passes, "without_row_major")}
"""Functions applied before a step of TVM's that would otherwise change the module."""


def steps_values(stages: Stages, recipe: Recipe, taken: Identifiers) -> dict[str, Any]:
    """Return the values of the template for ``transform(module, parameters)``."""
    applied_schedules = iter(stages.transformed.schedules)
    schedules: dict[str, tuple[str, Sequence[str]]] = {}
    by_step: list[list[str]] = []
    own_files: dict[Path, str] = {}
    embedded: dict[str, str] = {}
    # Each step that is on, with the run of its pass.
    runs = (run for run in stages.transformed.runs if run.depth == 0 and run.status != "off")
    for step, run in zip((step for step in recipe.steps if step.on), runs, strict=True):
        lines: list[str] = []
        by_step.append(lines)
        if step.name in SCHEDULING:
            named = {}
            for each in next(applied_schedules, ()):
                function = each.schedule.function
                named[function] = taken.take(f"schedule_{function}")
                schedules[named[function]] = function, each.lines()
            if any(uses_dot(line) for name in named.values() for line in schedules[name][1]):
                lines.append(f"{_embedded((dot_instructions, 'register'), embedded)}()")
            lines += _scheduling(step, named)
            continue
        found = find(step.name, stages.passes, step.name)
        name = found.type.name
        if name in _BEFORE_STEPS and without_row_major(run.before) is not run.before:
            # It drops layouts before the step, as Lowerscope's version of the step does.
            lines.append(f"module = {_embedded(_BEFORE_STEPS[name], embedded)}(module)")
        if name in _OWN_STEPS:
            lines.append(f"module = {_embedded(_OWN_STEPS[name], embedded)}(module)")
        else:
            lines += _pass(found, step, own_files, tuple(run.left_out))
    return {
        "target": _target(recipe),
        "own_files": own_files,
        "own_steps": embedded,
        "schedules": schedules,
        "by_step": by_step,
        "steps": [line for lines in by_step for line in lines],
    }


def _target(recipe: Recipe) -> str:
    if recipe.target == "native":
        cores = min(recipe.threads or MACHINE, MACHINE)
        cpu = 'tvm.get_global_func("target.llvm_get_system_cpu")()'
        return f'{{"kind": "llvm", "mcpu": {cpu}, "num-cores": {cores}}}'
    text = repr(recipe.target)
    return f"json.loads({text})" if recipe.target.lstrip().startswith("{") else text


_LINE = 88
"""Most characters of a line in the body of a function."""


def _scheduling(step: Step, named: Mapping[str, str]) -> Iterator[str]:
    yield comment(step.name)
    if not named:
        return
    pairs = ", ".join(f"{quoted(function)}: {name}" for function, name in named.items())
    line = f"module = scheduled(module, {{{pairs}}})"
    if len(line) <= _LINE:
        yield line
    else:
        yield "module = scheduled("
        yield "    module,"
        yield "    {"
        yield from (f"        {quoted(function)}: {name}," for function, name in named.items())
        yield "    },"
        yield ")"


_ENGLISH = "def _(text, /, **values):\n    return text.format(**values)\n"
"""Texts in the program: in English, as its own."""


def _embedded(found: tuple[ModuleType, str], embedded: dict[str, str]) -> str:
    """Add the text of an own module, with its imports of Lowerscope inlined; name its function."""
    module, function = found
    name = module.__name__.rpartition(".")[2].upper()
    text = inspect.getsource(module)
    for line, path, names in re.findall(
        r"^(from (lowerscope\S*) import (.+))$", text, re.MULTILINE
    ):
        there = importlib.import_module(path)
        named = [getattr(there, each.strip()) for each in names.split(",")]
        made = [_ENGLISH if each is _ else inspect.getsource(each) for each in named]
        # Definitions cannot stand among the imports: move them below.
        text = text.replace(f"{line}\n", "")
        text += "\n\n" + "\n\n".join(made)
    embedded[name] = quoted_lines(text)
    return f"{name}.{function}"


def _pass(
    found: Pass, step: Step, own_files: dict[Path, str], left_out: Sequence[str]
) -> Iterator[str]:
    arguments, config = split(found.options, arguments_of(found.options, step.options, step.name))
    texts = [f"{name}={_text(value, step, name)}" for name, value in arguments.items()]
    if found.given == "params":
        texts.append(f"{found.given}=parameters")
    given = f", config={config!r}" if config else ""
    yield f"with tvm.transform.PassContext(opt_level=3{given}):"
    made = _made(found, texts, own_files)
    if left_out:
        yield f"    module = without(module, {tuple(left_out)!r}, {made})"
    else:
        yield f"    module = {made}(module)"


def _made(found: Pass, arguments: list[str], own: dict[Path, str]) -> str:
    """Return an expression for a pass."""
    title = found.type.name.rpartition(".")[2]
    if found.type.line is not None:
        file = own.setdefault(Path(found.type.line.file), f"OWN_{len(own)}")
        made = attribute(file, title)
        # It is the pass itself, or a function that makes it.
        is_made = found.make.__module__ == user_passes.__module__
        return made if is_made else f"{made}({', '.join(arguments)})"
    for dialect, path in MODULES:
        if dialect == found.type.dialect and hasattr(importlib.import_module(path), title):
            return f"{path}.{title}({', '.join(arguments)})"
    raise AssertionError(f"{found.type.name} is in none of TVM's modules")


def _text(value: Any, step: Step, name: str) -> str:
    if isinstance(value, tvm.target.Target):
        return f"tvm.target.Target({step.options[name]!r})"
    if isinstance(value, tirx.IntImm):
        return f'tirx.const({int(value)}, "{value.dtype}")'
    if isinstance(value, dict):
        pairs = (f"{key!r}: {_text(each, step, name)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    return repr(value)


FOLDER = "library"


def compiled_files(stages: Stages) -> Iterator[File]:
    """Yield the library, its loader, the functions that it calls by name, and arguments for a run.

    Constants are in the library. Parameters that are arguments of ``main`` are in
    ``arguments.npz``, as are the inputs.

    Raises a `LowerscopeError` if there is no C compiler to link with; or a function that the model
    calls is registered by a file that cannot be copied.
    """
    stages.check_runs_here(_("an export of the library"))
    _check_compiler()
    lowered = stages.lowered
    library = {} if lowered is None else lowered.library
    registering = registering_files(stages)
    executable = stages.built.executable

    def link(path: Path) -> None:
        try:
            executable.export_library(str(path))
        except TVM_ERRORS as error:
            raise LowerscopeError(
                _("the library could not be linked: {last_line}", last_line=last_line(error)),
                where=f"{FOLDER}/model.so",
                todo=_("Check that the C compiler works, or name another in the variable CXX"),
                details=str(error),
            ) from error

    yield File(f"{FOLDER}/model.so", link)
    names = []
    for path in registering:
        names.append(path.stem)
        beside = [each for each in neighbours(path) if each.is_relative_to(path.parent)]
        for each in (path, *beside):
            yield copied_file(f"{FOLDER}/{each.relative_to(path.parent)}", each)
    if library:
        entries = library_entries(library)
        used = [each for each in ("base64", "operator", "pickle") if f"{each}." in "".join(entries)]
        program = template(PROGRAMS / "torch_functions.py.jinja")
        text = program.render(standard=used, library=entries)
        yield text_file(f"{FOLDER}/torch_functions.py", text)
        names.append("torch_functions")
    values = stages.arguments([each.value for each in stages.loaded.inputs])
    arrays, views = {}, []
    for number, value in enumerate(values):
        tensor = to_tvm(value) if isinstance(value, torch.Tensor) else value
        arrays[str(number)], view = plain_array(tensor, _OWN_DTYPES)
        views.append(view)
    yield arrays_file(f"{FOLDER}/arguments.npz", arrays)
    loader = template(PROGRAMS / "load.py.jinja")
    yield text_file(
        f"{FOLDER}/load.py", loader.render(names=names, views=views, is_identifier=is_identifier)
    )


_OWN_DTYPES = frozenset("?bBhHiIlLqQefd")


def _check_compiler() -> None:
    compiler = cc.get_cc()
    if compiler is None or shutil.which(compiler) is None:
        raise LowerscopeError(
            _("linking a library needs a C compiler, and {compiler} is missing", compiler=compiler)
            if compiler
            else _("linking a library needs a C compiler, and there is none"),
            where="library",
            todo=_(
                "Install gcc or clang (Debian and Ubuntu: apt-get install g++), or name one in "
                "the variable CXX"
            ),
        )


def registering_files(stages: Stages) -> list[Path]:
    """Return the user's files that register functions called by the model.

    Raises a `LowerscopeError` if one is a file of rules: it imports Lowerscope.
    """
    called = set(external_functions(stages.completed))
    left, found = set(called), []
    for extension, loaded in stages.extensions:
        both = called & set(loaded.functions)
        if both and extension.kind == "rules":
            raise LowerscopeError(
                _(
                    "{functions} is registered by a file of rules, which needs Lowerscope",
                    functions=_(", ").join(sorted(both)),
                ),
                where=str(loaded.path),
                todo=_("Register the function in a file of its own, and load that: --library FILE"),
            )
        if both:
            found.append(loaded.path)
            left -= both
    if left & set(stages.loaded.registered()):
        found.append(stages.loaded.path)
    return found


def library_entries(library: Mapping[str, LibraryFunction], own: str = "") -> list[str]:
    """Return the lines of a table of functions by name, to be registered with TVM.

    Raises a `LowerscopeError` if a function calls, or contains, a value without an expression; it
    is named.

    Args:
        own: The name of the module of the user's file in the program; empty if it has none.
    """
    lines: list[str] = []
    for name, function in library.items():
        try:
            lines += _entry(name, function, own)
        except NotWritten as reason:
            raise LowerscopeError(
                _(
                    "the library function {name} cannot be written as code: {reason}",
                    name=name,
                    reason=reason,
                ),
                where=name,
                todo=_("Lower its nodes by another strategy, or use Lowerscope itself to run it"),
            ) from None
    return lines


class NotWritten(Exception):
    """A value has no expression."""


def _entry(name: str, function: LibraryFunction, own: str) -> Iterator[str]:
    flags = [f"{flag}=True" for flag in ("copies", "returns", "sized") if getattr(function, flag)]
    call = _function_call(function, own)
    yield f"{quoted(name)}: LibraryCall("
    yield f"    lambda t, s: {call},"
    yield f"    {', '.join([f'inputs={function.inputs}', *flags])},"
    yield "),"


def _function_call(function: LibraryFunction, own: str) -> str:
    args = [expression_text(each) for each in function.args]
    named = keywords((key, expression_text(value)) for key, value in function.kwargs.items())
    call = function.call
    if isinstance(call, ModuleCall):
        module = module_text(call.module)
        state, *rest = args
        passed = f"({', '.join(rest)}{',' * (len(rest) == 1)})"
        options = ", ".join(
            f"{key!r}: {expression_text(value)}" for key, value in function.kwargs.items()
        )
        more = f", {{{options}}}" if options else ""
        return f"torch.func.functional_call({module}, {state}, {passed}{more})"
    if isinstance(call, MethodCall):
        owner, *rest = args
        return f"{attribute(owner, call.name)}({', '.join([*rest, *named])})"
    return f"{function_text(call, own)}({', '.join([*args, *named])})"


def function_text(called: Callable[..., Any], own: str = "") -> str:
    """Return an expression for a function of torch, of Python's, or of the user's file.

    Raises `NotWritten` if there is none.
    """
    if isinstance(called, torch._ops.OpOverload):
        return attribute("torch.ops", *str(called).split("."))
    title = getattr(called, "__name__", "")
    if getattr(operator, title, None) is called:
        return f"operator.{title}"
    if getattr(builtins, title, None) is called:
        return title
    module = getattr(called, "__module__", None) or ""
    for name in (str(resolve_name(called) or ""), f"{module}.{title}"):
        if name.startswith("torch.") and value_of(name) is called:
            return name
    if own and module.startswith("lowerscope_source_"):
        return attribute(own, *getattr(called, "__qualname__", title).split("."))
    raise NotWritten(
        _("it calls {module}.{title}, which is not torch's", module=module, title=title)
    )


def module_text(module: nn.Module) -> str:
    """Return an expression for a module like this one, without values of its parameters.

    It is the call of its class if that makes the same; otherwise the module is pickled.
    """
    text = _constructed(module)
    if text:
        return text
    if isinstance(module, OnnxNode):
        raise NotWritten(_("it calls {kind} of onnxruntime", kind=module.kind))
    if isinstance(module, QuantisedOperator):
        raise NotWritten(_("it calls torch on quantised tensors"))
    try:
        data = base64.b85encode(pickle.dumps(module)).decode()
    except Exception as error:  # a module may hold anything, and pickle raises anything
        raise NotWritten(
            _(
                "it calls {name}, which cannot be pickled: {error}",
                name=type(module).__name__,
                error=error,
            )
        ) from None
    return f"pickle.loads(base64.b85decode({data!r}))"


def _constructed(module: nn.Module) -> str:
    given = constructor_arguments(module)
    if given is None:
        return ""
    args = keywords((name, expression_text(value)) for name, value in given.items())
    kind = type(module)
    device = 'device="meta"' if "device" in inspect.signature(kind).parameters else ""
    evaluated = "" if module.training else ".eval()"
    return f"torch.nn.{kind.__name__}({', '.join([*args, *filter(None, [device])])}){evaluated}"


def constructor_arguments(module: nn.Module) -> dict[str, Any] | None:
    """Return the arguments with which the class of a module of torch makes one like it.

    ``None`` if there are none.
    """
    kind = type(module)
    if getattr(nn, kind.__name__, None) is not kind:
        return None
    given: dict[str, Any] = {}
    known = inspect.signature(kind).parameters
    for title, parameter in known.items():
        if title in ("device", "dtype") or not hasattr(module, title):
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value = getattr(module, title)
        if title == "bias" and not isinstance(value, bool):
            value = value is not None
        default = parameter.default
        if type(value) is type(default) and bool(value == default):
            continue
        try:
            expression_text(value)
        except NotWritten:
            return None
        given[title] = value
    try:
        made = kind(**given, **({"device": "meta"} if "device" in known else {}))
    except Exception:  # whatever the constructor raises, it does not make this module
        return None
    made.train(module.training)
    return given if content_of_module(made) == content_of_module(module) else None


class Name(str):
    """An expression in an argument of a call."""

    __slots__ = ()


def expression_text(value: Any) -> str:
    """Return an expression for an argument of a call.

    Raises `NotWritten` if there is none.
    """
    if isinstance(value, Name):
        return str(value)
    if isinstance(value, Argument):
        tensor = f"t[{value.index}]"
        if "complex" in value.dtype:
            return f"torch.view_as_complex({tensor})"
        return f"{tensor}.view(torch.{value.dtype})" if value.dtype else tensor
    if isinstance(value, Size):
        return f"s[{value.index}]"
    if type(value) in (tuple, list, torch.Size):
        inside = ", ".join(map(expression_text, value))
        if type(value) is list:
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if type(value) is dict:
        pairs = (f"{key!r}: {expression_text(each)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, slice):
        return f"slice({', '.join(map(expression_text, (value.start, value.stop, value.step)))})"
    if isinstance(value, PackedSequence):
        return f"torch.nn.utils.rnn.PackedSequence({', '.join(map(expression_text, value))})"
    if isinstance(value, torch.device):
        return f"torch.{value!r}"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is ...:
        return "..."
    plain = bool, int, float, complex, str, type(None), torch.dtype, torch.layout
    if type(value) in (*plain, torch.memory_format):
        return repr(value)
    if isinstance(value, enum.Enum):
        kind = type(value)
        names = [*kind.__module__.split("."), *kind.__qualname__.split("."), value.name]
        if all(map(is_identifier, names)):
            return ".".join(names)
    raise NotWritten(_("an argument is of type {name}", name=type(value).__name__))
