"""Generated code that applies a recipe's steps: TVM's passes, and schedules as Python."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import tvm
from tvm import tirx

from lowerscope.core.execution.environment import MACHINE
from lowerscope.core.passes import folding, row_major, transposed, vector_math
from lowerscope.core.passes.catalogue import MODULES, Pass, find
from lowerscope.core.passes.context_options import split
from lowerscope.core.passes.folding import FOLD_BATCH_NORM
from lowerscope.core.passes.options import arguments_of
from lowerscope.core.passes.row_major import ATTACH, without_row_major
from lowerscope.core.passes.transposed import SPLIT_TRANSPOSED
from lowerscope.core.python_text import attribute, comment, quoted, quoted_lines
from lowerscope.core.recipe import Recipe, Step
from lowerscope.core.rendering.programs.identifiers import Identifiers
from lowerscope.core.schedules import SCHEDULING, VECTOR_MATH
from lowerscope.core.stages import Stages

_OWN_STEPS: Mapping[str, tuple[ModuleType, str]] = {
    FOLD_BATCH_NORM: (folding, "fold_batch_norm"),
    SPLIT_TRANSPOSED: (transposed, "split_transposed"),
    VECTOR_MATH: (vector_math, "with_vector_math"),
}
"""Steps that are neither TVM's nor the user's: their modules, and function names."""

_BEFORE_STEPS: Mapping[str, tuple[ModuleType, str]] = {ATTACH: (row_major, "without_row_major")}
"""Functions applied before a step of TVM's that would otherwise change the module."""


def steps_values(stages: Stages, recipe: Recipe, taken: Identifiers) -> dict[str, Any]:
    """Return the values of the template for ``transform(module, parameters)``.

    Parameters
    ----------
    taken
        Identifiers of the whole program; those of the schedules are added.
    """
    applied_schedules = iter(stages.transformed.schedules)
    schedules: dict[str, tuple[str, Sequence[str]]] = {}
    lines: list[str] = []
    own_files: dict[Path, str] = {}
    embedded: dict[str, str] = {}
    # Each step that is on, with the run of its pass.
    runs = (run for run in stages.transformed.runs if run.depth == 0 and run.status != "off")
    for step, run in zip((step for step in recipe.steps if step.on), runs, strict=True):
        if step.name in SCHEDULING:
            named = {}
            for each in next(applied_schedules, ()):
                function = each.schedule.function
                named[function] = taken.take(f"schedule_{function}")
                schedules[named[function]] = function, each.lines
            lines += _scheduling(step, named)
            continue
        found = find(step.name, stages.passes, step.name)
        name = found.type.name
        if name in _BEFORE_STEPS and without_row_major(run.before) is not run.before:
            # It drops layouts before the step, as Lowerscope's version of the step does.
            lines.append(f"module = {_embedded_call(_BEFORE_STEPS[name], embedded)}")
        if name in _OWN_STEPS:
            lines.append(f"module = {_embedded_call(_OWN_STEPS[name], embedded)}")
        else:
            lines += _pass(found, step, own_files, tuple(run.left_out))
    return {
        "target": _target(recipe),
        "own_files": own_files,
        "own_steps": embedded,
        "schedules": schedules,
        "steps": lines,
    }


def _target(recipe: Recipe) -> str:
    if recipe.target == "native":
        cores = min(recipe.threads or MACHINE, MACHINE)
        cpu = 'tvm.get_global_func("target.llvm_get_system_cpu")()'
        return f'{{"kind": "llvm", "mcpu": {cpu}, "num-cores": {cores}}}'
    text = repr(recipe.target)
    return f"json.loads({text})" if recipe.target.lstrip().startswith("{") else text


def _scheduling(step: Step, named: Mapping[str, str]) -> Iterator[str]:
    yield comment(step.name)
    if named:
        yield "module = scheduled("
        yield "    module,"
        yield "    {"
        yield from (f"        {quoted(function)}: {name}," for function, name in named.items())
        yield "    },"
        yield ")"


def _embedded_call(found: tuple[ModuleType, str], embedded: dict[str, str]) -> str:
    """Add the text of an own step's module, with its imports of Lowerscope inlined; call it."""
    module, function = found
    name = module.__name__.rpartition(".")[2].upper()
    text = inspect.getsource(module)
    for line, path, names in re.findall(
        r"^(from (lowerscope\S*) import (.+))$", text, re.MULTILINE
    ):
        there = importlib.import_module(path)
        made = [inspect.getsource(getattr(there, each.strip())) for each in names.split(",")]
        # Definitions cannot stand among the imports: move them below.
        text = text.replace(f"{line}\n", "")
        text += "\n\n" + "\n\n".join(made)
    embedded[name] = quoted_lines(text)
    return f"{name}.{function}(module)"


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
        return made if _is_made(found) else f"{made}({', '.join(arguments)})"
    for dialect, path in MODULES:
        if dialect == found.type.dialect and hasattr(importlib.import_module(path), title):
            return f"{path}.{title}({', '.join(arguments)})"
    raise AssertionError(f"{found.type.name} is in none of TVM's modules")


def _is_made(found: Pass) -> bool:
    """Return whether the user's file defines the pass itself, not a function that makes it."""
    return found.make.__module__ == "lowerscope.core.passes.user_passes"


def _text(value: Any, step: Step, name: str) -> str:
    if isinstance(value, tvm.target.Target):
        return f"tvm.target.Target({step.options[name]!r})"
    if isinstance(value, tirx.IntImm):
        return f'tirx.const({int(value)}, "{value.dtype}")'
    if isinstance(value, dict):
        pairs = (f"{key!r}: {_text(each, step, name)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    return repr(value)
