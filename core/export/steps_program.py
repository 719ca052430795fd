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
from lowerscope.core.export.source_program import digest_of
from lowerscope.core.passes import folding, row_major, transposed, vector_math
from lowerscope.core.passes.catalogue import MODULES, Pass, find, split
from lowerscope.core.passes.folding import FOLD_BATCH_NORM
from lowerscope.core.passes.options import arguments_of
from lowerscope.core.passes.recording import PassRun
from lowerscope.core.passes.row_major import ATTACH, without_row_major
from lowerscope.core.passes.transposed import SPLIT_TRANSPOSED
from lowerscope.core.python_text import attribute, comment, docstring, quoted, quoted_lines
from lowerscope.core.recipe import Recipe, Step
from lowerscope.core.rendering.programs.program_lines import Identifiers
from lowerscope.core.schedules import SCHEDULING, VECTOR_MATH
from lowerscope.core.stages import Stages

NAMES = (
    *("TARGET", "transform", "scheduled", "without", "sch", "s_tir"),
    *("FOLDING", "TRANSPOSED", "VECTOR_MATH", "ROW_MAJOR"),
)
"""Names that the program defines."""

_OWN_STEPS: Mapping[str, tuple[ModuleType, str]] = {
    FOLD_BATCH_NORM: (folding, "fold_batch_norm"),
    SPLIT_TRANSPOSED: (transposed, "split_transposed"),
    VECTOR_MATH: (vector_math, "with_vector_math"),
}
"""Steps that are neither TVM's nor the user's: their modules, and function names."""

_BEFORE_STEPS: Mapping[str, tuple[ModuleType, str]] = {ATTACH: (row_major, "without_row_major")}
"""Functions applied before a step of TVM's that would otherwise change the module."""

SCHEDULED = '''\
def scheduled(module, schedules):
    """Schedule functions of a module, each by the function that stands for its name."""
    result = module.clone()
    for variable in module.get_global_vars():
        name = str(variable.name_hint)
        if name in schedules:
            sch = s_tir.Schedule(tvm.IRModule({name: module[variable]}))
            sch.work_on(name)
            schedules[name](sch)
            result.update_func(variable, sch.mod[name])
    return result
'''


WITHOUT = '''\
def without(module, names, step):
    """Apply a pass to a module without some of its functions, which it cannot handle."""
    others = module.clone()
    for name in names:
        del others[name]
    result = step(others).clone()
    for variable in module.get_global_vars():
        if str(variable.name_hint) in names:
            result.update_func(variable, module[variable])
    return result
'''


def steps_program(stages: Stages, recipe: Recipe, taken: Identifiers) -> str:
    """Return the program with ``transform(module, parameters)``.

    Parameters
    ----------
    taken
        Identifiers of the whole program; those of the schedules are added.
    """
    schedules = iter(stages.transformed.schedules)
    parts: list[str] = []
    lines = [
        "def transform(module, parameters):",
        '    """Apply the steps after lowering, in order."""',
    ]
    own: dict[Path, str] = {}
    needs_scheduling = False
    applied = _applied(stages, recipe)
    if applied:
        lines.append("    with TARGET:")
    for step, run in applied:
        if step.name in SCHEDULING:
            named = {}
            for each in next(schedules, ()):
                function = each.schedule.function
                named[function] = taken.take(f"schedule_{function}")
                parts.append(_schedule(named[function], function, each.lines))
            needs_scheduling = needs_scheduling or bool(named)
            lines += _scheduling(step, named)
            continue
        name = _name(step, stages)
        if _bares(name, run):
            lines.append(f"        module = {_embedded_call(_BEFORE_STEPS[name])}")
        lines += (f"        {line}" for line in _pass(step, stages, own, tuple(run.left_out)))
    lines += ["    return module", ""]
    if needs_scheduling:
        parts.insert(0, SCHEDULED)
    if any("module = without(" in line for line in lines):
        parts.insert(0, WITHOUT)
    parts[:0] = [_embedded(name) for name in own_steps(stages, recipe)]
    opened = "".join(
        f'{name} = load_file(Path({str(path)!r}), "{digest_of(path)}")\n'
        for path, name in own.items()
    )
    if opened:
        parts.insert(0, opened)
    return "\n\n".join([_target(recipe), *parts, "\n".join(lines)])


def _target(recipe: Recipe) -> str:
    text = repr(recipe.target)
    if recipe.target == "native":
        cores = min(recipe.threads or MACHINE, MACHINE)
        cpu = 'tvm.get_global_func("target.llvm_get_system_cpu")()'
        text = f'{{"kind": "llvm", "mcpu": {cpu}, "num-cores": {cores}}}'
    elif recipe.target.lstrip().startswith("{"):
        text = f"json.loads({recipe.target!r})"
    return f"TARGET = tvm.target.Target({text})\n"


def _schedule(name: str, function: str, code: Sequence[str]) -> str:
    lines = code or ("pass",)
    return "\n".join(
        [
            f"def {name}(sch):",
            f'    """Schedule {docstring(function)}."""',
            *(f"    {x}" for x in lines),
            "",
        ]
    )


def _scheduling(step: Step, named: Mapping[str, str]) -> Iterator[str]:
    yield f"        {comment(step.name)}"
    if not named:
        return
    yield "        module = scheduled("
    yield "            module,"
    yield "            {"
    for function, name in named.items():
        yield f"                {quoted(function)}: {name},"
    yield "            },"
    yield "        )"


def own_steps(stages: Stages, recipe: Recipe) -> tuple[str, ...]:
    """Return the steps whose modules are embedded in the program."""
    applied = ((_name(step, stages), run) for step, run in _applied(stages, recipe))
    return tuple(
        dict.fromkeys(name for name, run in applied if name in _OWN_STEPS or _bares(name, run))
    )


def _name(step: Step, stages: Stages) -> str:
    return find(step.name, stages.passes, step.name).type.name


def _applied(stages: Stages, recipe: Recipe) -> list[tuple[Step, PassRun]]:
    """Return the enabled steps, each with its pass run."""
    runs = (run for run in stages.transformed.runs if run.depth == 0 and run.status != "off")
    return list(zip((step for step in recipe.steps if step.on), runs, strict=True))


def _bares(name: str, run: PassRun) -> bool:
    """Return whether the program drops layouts before a step, as Lowerscope's version does."""
    return name in _BEFORE_STEPS and without_row_major(run.before) is not run.before


def _embedded_call(found: tuple[ModuleType, str]) -> str:
    module, function = found
    return f"{module.__name__.rpartition('.')[2].upper()}.{function}(module)"


def _embedded(name: str) -> str:
    """Return the lines of an own step's module, with its imports of Lowerscope inlined."""
    module, _ = {**_OWN_STEPS, **_BEFORE_STEPS}[name]
    text = inspect.getsource(module)
    for line, path, names in re.findall(
        r"^(from (lowerscope\S*) import (.+))$", text, re.MULTILINE
    ):
        there = importlib.import_module(path)
        made = [inspect.getsource(getattr(there, each.strip())) for each in names.split(",")]
        # Definitions cannot stand among the imports: move them below.
        text = text.replace(f"{line}\n", "")
        text += "\n\n" + "\n\n".join(made)
    title = module.__name__.rpartition(".")[2]
    return f"{title.upper()} = load_text({title + '.py'!r}, {quoted_lines(text)})\n"


def _pass(
    step: Step, stages: Stages, own: dict[Path, str], left_out: Sequence[str]
) -> Iterator[str]:
    found = find(step.name, stages.passes, step.name)
    if found.type.name in _OWN_STEPS:
        yield f"module = {_embedded_call(_OWN_STEPS[found.type.name])}"
        return
    arguments, config = split(found.options, arguments_of(found.options, step.options, step.name))
    texts = [f"{name}={_text(value, step, name)}" for name, value in arguments.items()]
    if found.given == "params":
        texts.append(f"{found.given}=parameters")
    given = f", config={config!r}" if config else ""
    yield f"with tvm.transform.PassContext(opt_level=3{given}):"
    made = _made(found, texts, own)
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
    return found.make.__module__ == "lowerscope.core.passes.catalogue"


def _text(value: Any, step: Step, name: str) -> str:
    if isinstance(value, tvm.target.Target):
        return f"tvm.target.Target({step.options[name]!r})"
    if isinstance(value, tirx.IntImm):
        return f'tirx.const({int(value)}, "{value.dtype}")'
    if isinstance(value, dict):
        pairs = (f"{key!r}: {_text(each, step, name)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    return repr(value)
