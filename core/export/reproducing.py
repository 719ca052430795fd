"""``reproduce.py``: a program that reproduces a recipe with torch and TVM only.

It builds the model from its source, makes the Relax module with a block builder from the model's
own parameters, applies the passes and the schedules, builds, runs, and asserts that the outputs
match torch's.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
import tvm
from tvm import relax

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.calling import external_functions
from lowerscope.core.export import (
    library_program,
    running_program,
    source_program,
    steps_program,
)
from lowerscope.core.export.report import source_name
from lowerscope.core.export.source_program import BITS, Stored, bits, model_tensors
from lowerscope.core.python_text import docstring, quoted
from lowerscope.core.recipe import Recipe, overrides_on
from lowerscope.core.rendering.programs.builder_text import CONSTANTS_FILE, BuilderText
from lowerscope.core.rendering.programs.program_lines import Identifiers
from lowerscope.core.sources.spec import is_in_memory, not_in_a_file
from lowerscope.core.stages import Stages
from lowerscope.core.texts import builder_of

PROGRAM = "reproduce.py"
ARRAYS = "reproduce.npz"
MODULE = "reproduce.json"

_STANDARD = "base64 copy dataclasses hashlib json linecache operator pickle random sys types"
"""Modules of the standard library that the program may use."""

RESERVED = (
    *("STORED", "bits", "lower", "parameters_of", "torch"),
    *_STANDARD.split(),
    *source_program.NAMES,
    *steps_program.NAMES,
    *library_program.NAMES,
    *running_program.NAMES,
)
"""Names that the program defines besides those of the lowering."""


@dataclass(frozen=True)
class Reproduction:
    """The program, with the files beside it.

    Attributes
    ----------
    program
        Its text.
    arrays
        For `ARRAYS`; empty if no such file is needed.
    module
        For `MODULE`: the module before the passes if no program can make it; empty for none.
    files
        To be copied.
    """

    program: str
    arrays: Mapping[str, np.ndarray]
    module: str
    files: tuple[Path, ...]


def reproduction(stages: Stages, recipe: Recipe) -> Reproduction:
    """Return the program that reproduces a recipe.

    Raises
    ------
    LowerscopeError
        If a step fails, or a part of it cannot be written as code; it is named.
    """
    if is_in_memory(recipe):
        raise not_in_a_file(recipe.source.spec)
    stages.check_runs_here("the program runs the model")
    stages.transformed.check()
    _check_functions(stages)
    stored = Stored(ARRAYS)
    own = steps_program.own_steps(stages, recipe)
    opening, files = source_program.source_program(stages, recipe, stored, embeds=bool(own))
    lowering, imports, module = _lowering(stages, stored)
    taken = Identifiers((*RESERVED, *re.findall(r"^(?:def )?(\w+)", lowering, re.MULTILINE)))
    steps = steps_program.steps_program(stages, recipe, taken)
    lowered = stages.lowered
    library = {} if lowered is None else lowered.library
    parts = [opening, lowering, _parameters(stages, stored), steps]
    if library:
        parts.append(library_program.library_program(library, "source"))
    more = _extension_files(stages)
    parts += [running_program.running_program(stages, recipe, library=bool(library), more=more)]
    if stored.arrays:
        parts.insert(0, f'STORED = dict(np.load(HERE / "{ARRAYS}"))\n')
    body = "\n\n".join(parts)
    head = _head(stages, recipe, body, imports)
    return Reproduction(f"{head}\n\n{body}", stored.arrays, module, tuple(files))


def _check_functions(stages: Stages) -> None:
    """Reject functions that a file of rules registers: it imports Lowerscope."""
    called = external_functions(stages.completed)
    for extension, loaded in stages.extensions:
        both = sorted(set(loaded.functions) & set(called))
        if extension.kind == "rules" and both:
            raise LowerscopeError(
                f"{', '.join(both)} is registered by a file of rules, which needs Lowerscope",
                where=str(loaded.path),
                todo="Register the function in a file of its own, and give that with --library",
            )


def _extension_files(stages: Stages) -> tuple[Path, ...]:
    return tuple(
        loaded.path for extension, loaded in stages.extensions if extension.kind == "library"
    )


def _lowering(stages: Stages, stored: Stored) -> tuple[str, tuple[str, ...], str]:
    """Return the program of ``lower(model)``, its imports, and the module if it is a file."""
    lines = ["def lower(model):", '    """Make the Relax module."""']
    if stages.lowered is None and stages.loaded.module is not None:
        try:
            built = builder_of(stages, stages.module, RESERVED)
        except LowerscopeError:
            # The module is the file's own, or a wrapper with a single call.
            return "\n".join([*lines, "    return model", ""]), (), ""
        if any(isinstance(f, relax.Function) for f in stages.module.functions.values()):
            same = f"    if isinstance(model, tvm.IRModule) and {_HAS_RELAX}:"
            lines += [same, "        return model"]
        return _built(built, lines, stages, stored), built.imports, ""
    try:
        built = builder_of(stages, stages.module, RESERVED)
    except LowerscopeError:
        lines += [
            f'    text = (HERE / "{MODULE}").read_text(encoding="utf-8")',
            "    return tvm.ir.load_json(text)",
            "",
        ]
        return "\n".join(lines), (), str(tvm.ir.save_json(stages.module))
    return _built(built, lines, stages, stored), built.imports, ""


_HAS_RELAX = 'any(type(each).__name__ == "Function" for each in model.functions.values())'


def _built(built: BuilderText, lines: list[str], stages: Stages, stored: Stored) -> str:
    """Return the block builder program of a module, on the model's own tensors."""
    known = _by_content(stages)
    texts = []
    for name, array in built.constants.items():
        own = known.get(_content(array))
        if own:
            texts.append(f"{quoted(name)}: bits(tensors[{quoted(own)}]),")
        else:
            key = f"constant {name}"
            stored.arrays[key] = array
            texts.append(f"{quoted(name)}: STORED[{quoted(key)}],")
    if any("tensors[" in text for text in texts):
        lines.append(_TENSORS)
    lines += ["    constants = {", *(f"        {text}" for text in texts), "    }"]
    lines += ["    return build(constants)", ""]
    definitions = built.definitions.replace(f"the arrays of {CONSTANTS_FILE}", "arrays by name")
    return "\n".join([*([BITS, ""] if texts else []), definitions, *lines])


_TENSORS = "    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}"


def _by_content(stages: Stages) -> dict[tuple[str, tuple[int, ...], str], str]:
    """Return the names of the model's tensors by content."""
    model = stages.loaded.model
    if model is None:
        return {}
    found: dict[tuple[str, tuple[int, ...], str], str] = {}
    for name, tensor in model_tensors(model).items():
        if tensor.layout is torch.strided and not tensor.is_quantized:
            found.setdefault(_content(bits(tensor)), name)
    return found


def _content(array: np.ndarray) -> tuple[str, tuple[int, ...], str]:
    data = np.ascontiguousarray(array)
    return str(array.dtype), array.shape, hashlib.sha256(data.data).hexdigest()


def _parameters(stages: Stages, stored: Stored) -> str:
    """Return ``parameters_of``: the arguments of ``main`` that are values of the model."""
    lines = ["def parameters_of(model, inputs):"]
    lines.append('    """The values of arguments of main that are no inputs, by name."""')
    names = [each.name for each in stages.loaded.inputs]
    if stages.lowered is None:
        known = [f"{quoted(name)}: inputs[{names.index(name)}]" for name in stages.parameters]
        return "\n".join([*lines, f"    return {{{', '.join(known)}}}", ""])
    if not stages.parameters:
        return "\n".join([*lines, "    return {}", ""])
    assert stages.loaded.model is not None
    tensors = _by_content(stages)
    lines += [_TENSORS, "    return {"]
    for name, value in stages.parameters.items():
        tensor = torch.utils.dlpack.from_dlpack(value)
        own = tensors.get(_content(bits(tensor)))
        text = f"tensors[{quoted(own)}]" if own else stored.add(f"parameter {name}", tensor)
        lines.append(f"        {quoted(name)}: {text},")
    return "\n".join([*lines, "    }", ""])


def _head(stages: Stages, recipe: Recipe, body: str, imports: tuple[str, ...]) -> str:
    name = source_name(recipe)
    versions = f"torch {version('torch')} and apache-tvm {version('apache-tvm')}"
    standard = [
        f"import {each}"
        for each in _STANDARD.split()
        if re.search(rf"(?<![\w.]){re.escape(each)}\.", body)
    ]
    froms = [line for line in imports if line.startswith("from ") and " tvm" not in line]
    tvms = [line for line in imports if line.startswith("from tvm.")]
    used = [each for each in ("relax", "s_tir", "tirx") if re.search(rf"\b{each}\.", body)]
    modules = dict.fromkeys(re.findall(r"\b(tvm\.(?:\w+\.)*transform|tvm\.relax\.backend)\.", body))
    tensorise = "import tvm.s_tir.tensor_intrin" if "sch.tensorize(" in body else ""
    side = running_program.side_of(stages)
    lines = [
        f'"""{docstring(name)}, lowered, built and run; it has to compute what {side} does.',
        "",
        f"Written by Lowerscope {version('lowerscope')}. It needs torch and TVM, and nothing else;",
        f"it was written with {versions}.",
        "",
        *_settings(recipe),
        '"""',
        "",
        "from __future__ import annotations",
        "",
        *standard,
        *dict.fromkeys(["from pathlib import Path", *froms]),
        "",
        "import numpy as np",
        "import torch",
        "import tvm",
        *(f"import {each}" for each in modules if each != "tvm.transform"),
        *filter(None, [tensorise]),
        *([f"from tvm import {', '.join(used)}"] if used else []),
        *tvms,
        *(["from torch.utils.dlpack import from_dlpack"] if "LIBRARY" in body else []),
        "",
        "HERE = Path(__file__).resolve().parent",
        f"SEED = {recipe.seed}",
    ]
    return "\n".join(lines) + "\n"


def _settings(recipe: Recipe) -> list[str]:
    steps = ", ".join(step.name for step in recipe.steps if step.on) or "none"
    own = ", ".join(f"{each.pattern}={each.strategy}" for each in overrides_on(recipe))
    facts = {
        "Lowering": recipe.lowering + (f", but {own}" if own else ""),
        "Steps": steps,
        "Target": recipe.target,
    }
    lines = [f"{name}: {text}" for name, text in facts.items()]
    return [docstring(each) for line in lines for each in textwrap.wrap(line, 96)]
