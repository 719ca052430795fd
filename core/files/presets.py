"""Named pipelines: those that come with Lowerscope, and the user's own files.

This module imports neither torch nor TVM, so that the window can offer the presets at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from lowerscope.core.files.paths import user_path
from lowerscope.core.files.pipelines_and_schedules import reading, save
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import BIND_PARAMS, OptionValue, Recipe, Step
from lowerscope.core.model.schedule import APPLY_RULES, VECTOR_MATH
from lowerscope.core.model.snapshot import Preset

_DISPATCH = ("DispatchSampling", "DispatchSortScan")
_FUSE = ("LegalizeOps", "AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR")
_DATAFLOW = ("RewriteDataflowReshape", "ToNonDataflow", "RemovePurityChecking", "CallTIRRewrite")
_FOLD = ("FoldBatchNorm", "SplitTransposedConvolution", "DecomposeOpsForInference")
_PACK = ("SplitLayoutRewritePreproc", "FoldConstant", "DeadCodeElimination")
_RUNTIME = (
    "LowerAllocTensor",
    "KillAfterLastUse",
    "LowerRuntimeBuiltin",
    "ComputePrimValue",
    "VMShapeLower",
    "AttachGlobalSymbol",
)


def _preset(name: str, title: str, *steps: str) -> Preset:
    return Preset(name=name, title=title, steps=tuple(Step(name=each) for each in steps))


# TVM's are from tvm/relax/pipeline.py and tvm/relax/backend/cpu_generic/pipeline.py.
PRESETS = (
    _preset("none", "No passes"),
    _preset("legalise", "Legalise", "LegalizeOps"),
    _preset("fuse", "Fuse", *_FUSE),
    _preset(
        "default-build",
        "TVM's default build pipeline",
        *_DISPATCH,
        "LegalizeOps",
        *_DATAFLOW,
        "StaticPlanBlockMemory",
        "RewriteCUDAGraph",
        *_RUNTIME,
    ),
    _preset(
        "cpu",
        "TVM's CPU pipeline",
        *_DISPATCH,
        *_FUSE,
        *_DATAFLOW,
        "StaticPlanBlockMemory",
        *_RUNTIME,
    ),
    _preset(
        "optimise-cpu",
        "Optimise for CPU",
        *_FOLD,
        *_DISPATCH,
        *_FUSE,
        "DeadCodeElimination",
        VECTOR_MATH,
        "AttachAttrLayoutFreeBuffers",
        APPLY_RULES,
        *_PACK,
        *_DATAFLOW,
        "StaticPlanBlockMemory",
        *_RUNTIME,
    ),
)
"""The pipelines that come with Lowerscope."""


def with_pipeline(recipe: Recipe, steps: tuple[Step, ...]) -> Recipe:
    """Return `recipe` with other steps; the one that binds parameters stays, as the first."""
    if not any(step.name == BIND_PARAMS for step in steps):
        steps = (*(step for step in recipe.steps if step.name == BIND_PARAMS), *steps)
    return msgspec.structs.replace(recipe, steps=steps)


def preset_of(recipe: Recipe) -> Preset | None:
    """Return the preset of a recipe's steps, ignoring the one that binds parameters."""
    steps = tuple(step for step in recipe.steps if step.name != BIND_PARAMS)
    return next((preset for preset in PRESETS if preset.steps == steps), None)


def longest_preset(steps: tuple[Step, ...]) -> Preset:
    """Return the longest preset that is a prefix of `steps`; the empty one always is."""
    begun = (each for each in PRESETS if steps[: len(each.steps)] == each.steps)
    return max(begun, key=lambda each: len(each.steps))


def pipeline_title(recipe: Recipe) -> str:
    """Return a short name of a recipe's pipeline."""
    preset = preset_of(recipe)
    if preset is not None:
        return preset.title
    count = sum(step.on for step in recipe.steps)
    return f"{count} step{'' if count == 1 else 's'} of your own"


def find_pipeline(text: str) -> Preset:
    """Return the preset named `text`, or that of a file of this name.

    Raises `LowerscopeError` if there is neither.
    """
    for preset in PRESETS:
        if preset.name == text:
            return preset
    if text.endswith(".json"):
        return load_preset(text)
    raise LowerscopeError(
        f"there is no pipeline {text}",
        where="--pipeline",
        todo=f"Choose {', '.join(each.name for each in PRESETS)}, or a .json file that was saved",
    )


def save_preset(preset: Preset, file: str) -> Path:
    """Write a list of steps to a file, replacing an existing one; return the file's path.

    Raises `LowerscopeError` if the file cannot be written.
    """
    return save(preset, file)


def load_preset(file: str) -> Preset:
    """Read a file of `save_preset`.

    Raises `LowerscopeError` if the file cannot be read, or is no list of steps, with the invalid
    field.
    """
    path = user_path(file).absolute()
    todo = "Choose a file that was saved as a pipeline"
    with reading(path, "it is no saved pipeline", todo) as content:
        preset = msgspec.json.decode(content, type=Preset)
        # Messages between the window and its children cannot contain integers of more than 64 bits.
        msgspec.msgpack.encode(preset)
    return preset


def parse_step(text: str) -> Step:
    """Parse ``NAME[:OPTION=VALUE,…]``; options are checked when the pass is applied.

    Values are written as in JSON, or as texts without quotes; ``[a,b]`` is a list of texts.

    Raises `LowerscopeError` if there is no name, or the text after it is not of the form
    ``OPTION=VALUE``.
    """
    name, _, rest = text.partition(":")
    options: dict[str, OptionValue] = {}
    for part in _split(rest):
        option, equals, value = part.partition("=")
        if not equals or not option.strip():
            raise LowerscopeError(
                f"{part.strip()!r} is not OPTION=VALUE", where=f"--pass {text}", todo=_EXAMPLE
            )
        options[option.strip()] = _value(value.strip())
    if not name.strip():
        raise LowerscopeError("it names no pass", where=f"--pass {text}", todo=_EXAMPLE)
    return Step(name=name.strip(), options=options)


_EXAMPLE = "Write for example --pass FoldConstant or --pass LegalizeOps:skip_ops=[relax.add]"


def _split(text: str) -> Iterator[str]:
    """Yield the parts between commas that are outside of brackets and quotes."""
    depth, quoted, begin = 0, False, 0
    for index, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif not quoted and character in "[]":
            depth += 1 if character == "[" else -1
        elif character == "," and not quoted and depth == 0:
            yield text[begin:index]
            begin = index + 1
    if text[begin:].strip():
        yield text[begin:]


def _value(text: str) -> OptionValue:
    if text.startswith("[") and text.endswith("]"):
        return tuple(str(_value(each.strip())) for each in _split(text[1:-1]))
    try:
        value: OptionValue = msgspec.json.decode(text, type=bool | int | float | str | None)
    except UNREADABLE:
        return text
    return value
