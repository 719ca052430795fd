"""Command lines that reproduce what the window shows: links that can be sent to others."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from lowerscope.app.document.stepping import StepLine
from lowerscope.core.files.pipelines_and_schedules import longest_preset
from lowerscope.core.model.machines import TIMEOUT, Remote
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import (
    Dimension,
    InputSpec,
    OptionValue,
    Recipe,
    Step,
    overrides_on,
)
from lowerscope.core.model.tolerances import tolerance_texts


def moment_link(
    recipe: Recipe, moment: Moment | None, line: StepLine | None, chosen: Sequence[str]
) -> str:
    """Return the command that shows a step of a recipe.

    Args:
        line: The step that `moment` comes after.
        chosen: The selected ids: of a module, the first function among them is shown.
    """
    if moment is not None and moment.section == "translate" and line is not None:
        return node_link(recipe, line.title)
    functions = [each.removeprefix("tir:") for each in chosen if each.startswith("tir:")]
    function = functions[0].partition("/")[0] if functions else ""
    of_build = moment is not None and moment.section == "build"
    return (build_link if of_build else step_link)(recipe, line, function)


def build_link(recipe: Recipe, line: StepLine | None, function: str = "") -> str:
    """Return the command that prints the module of a recipe after a pass of the build.

    Args:
        line: The pass; ``None`` for before the first.
        function: The function shown; empty for all.
    """
    return _passes_link(recipe, "0" if line is None else line.label, function, "--build")


def step_link(recipe: Recipe, line: StepLine | None, function: str = "") -> str:
    """Return the command that prints the module of a recipe after a pass: see `build_link`."""
    return _passes_link(recipe, "0" if line is None else _counted(recipe, line.label), function)


def _passes_link(recipe: Recipe, label: str, function: str, *more: str) -> str:
    words = ["lowerscope", "passes", *recipe_words(recipe), *more, "--step", label]
    return shlex.join([*words, "--function", function] if function else words)


def node_link(recipe: Recipe, node: str) -> str:
    """Return the command that prints how an FX node was translated."""
    words = ["lowerscope", "show", *recipe_words(recipe), "--stage", "translation"]
    return shlex.join([*words, "--node", node])


def recipe_words(recipe: Recipe) -> Iterator[str]:
    """Yield the source and the command line options of a recipe."""
    source, plain = recipe.source, Recipe(source=recipe.source)
    yield f"{source.spec}:{source.entry}" if source.entry else source.spec
    for option, value, default in (
        ("--args", source.args, "{}"),
        ("--params", source.params, ""),
        ("--seed", recipe.seed, plain.seed),
        ("--tracer", recipe.tracer, plain.tracer),
        ("--importer", recipe.translator, plain.translator),
        ("--lowering", recipe.lowering, plain.lowering),
        ("--target", recipe.target, plain.target),
        ("--threads", recipe.threads, plain.threads),
        ("--repeats", recipe.measuring.repeats, plain.measuring.repeats),
        ("--warm-up", recipe.measuring.warm_up, plain.measuring.warm_up),
    ):
        if value != default:
            yield from (option, str(value))
    if recipe.remote is not None:
        yield from _remote_words(recipe.remote)
    for option, given in (
        ("--trust", source.trust),
        ("--torch-compile", recipe.measuring.torch_compile),
        ("--params-as-inputs", recipe.params_as_inputs),
    ):
        if given:
            yield option
    usual = tolerance_texts(plain.tolerances)
    for dtype, text in tolerance_texts(recipe.tolerances).items():
        if text != usual[dtype]:
            yield from ("--tolerance", text)
    for spec in recipe.inputs:
        yield from ("--input", _input_text(spec))
    for dimension in recipe.dimensions:
        yield from _dimension_words(dimension)
    for override in overrides_on(recipe):
        yield from ("--override", f"{override.pattern}={override.strategy}")
    for extension in recipe.extensions:
        if extension.on:
            yield from (f"--{extension.kind}", extension.path)
    yield from _step_words(tuple(step for step in recipe.steps if step.on))


def _remote_words(remote: Remote) -> Iterator[str]:
    yield from ("--tracker", remote.tracker, "--key", remote.key)
    if remote.timeout != TIMEOUT:
        yield from ("--remote-timeout", f"{remote.timeout:g}")


def _step_words(steps: tuple[Step, ...]) -> Iterator[str]:
    """Yield the longest preset that the steps begin with, and the steps after it."""
    preset = longest_preset(steps)
    yield from ("--pipeline", preset.name)
    for step in steps[len(preset.steps) :]:
        yield from ("--pass", step_text(step))


def step_text(step: Step) -> str:
    """Return a step in the syntax of ``--pass``."""
    options = ",".join(f"{name}={value_text(value)}" for name, value in step.options.items())
    return f"{step.name}:{options}" if options else step.name


def value_text(value: OptionValue) -> str:
    """Return an option's value in the syntax of the command line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"[{','.join(value)}]" if isinstance(value, tuple) else str(value)


def _counted(recipe: Recipe, label: str) -> str:
    """Return the number of a pass in a pipeline without the disabled steps."""
    head, dot, inside = label.partition(".")
    off = sum(not step.on for step in recipe.steps[: int(head)])
    return f"{int(head) - off}{dot}{inside}"


def _input_text(spec: InputSpec) -> str:
    """Return an input in the syntax of ``--input``.

    A drawn input, or one with a seed of its own, is written as its shape alone: the module is the
    same.
    """
    if spec.file and (spec.fit or spec.item is not None):
        value = f"{spec.file}#{'' if spec.item is None else spec.item}"
        return f"{spec.name}={value}" if spec.name else value
    shape = "" if spec.shape is None else ",".join(map(str, spec.shape))
    if spec.shape is not None and len(spec.shape) < 2:
        shape = f"({shape},)" if spec.shape else "()"
    dtype = f":{spec.dtype}" if spec.dtype is not None else ""
    span = f"[{spec.low},{spec.high})" if spec.low is not None else ""
    layout = f"{shape}{dtype}{span}"
    value = f"{spec.file}@{layout}" if spec.file and layout else spec.file or layout
    return f"{spec.name}={value}" if spec.name else value


def _dimension_words(dimension: Dimension) -> Iterator[str]:
    yield from ("--dim", f"{dimension.name}={dimension.low}..{dimension.high}")
    if dimension.sizes:
        yield from ("--sizes", f"{dimension.name}={','.join(map(str, dimension.sizes))}")
