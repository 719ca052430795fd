"""Named pipelines (presets and the user's files), files of schedules, and names of variants."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

import msgspec

from lowerscope.core.files.atomic_write import atomic_write
from lowerscope.core.files.paths import not_done, read_plain, user_path
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import (
    BIND_PARAMS,
    OptionValue,
    Recipe,
    Step,
    applies_schedules,
    overrides_on,
)
from lowerscope.core.model.schedule import (
    APPLY_RULES,
    APPLY_TUNED,
    SCHEDULING,
    VECTOR_MATH,
    Schedule,
    shown_name,
)
from lowerscope.core.model.snapshot import Preset
from lowerscope.core.model.texts import _, _n, joined


def file_text(value: Any) -> str:
    """Return the text of a record's file."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def save(value: Any, file: str) -> Path:
    """Write a record to a file, which is replaced; return the file's path.

    Raises a `LowerscopeError` if the file cannot be written.
    """
    path = user_path(file).absolute()
    try:
        atomic_write(path, file_text(value))
    except OSError as error:
        raise not_done(_("the file cannot be written"), path, error) from None
    return path


@contextlib.contextmanager
def reading(path: Path, wrong: str, todo: str) -> Iterator[bytes]:
    """Yield the content of a file, to be decoded; explain errors.

    Raises a `LowerscopeError` if the file cannot be read, or is no such file.

    Args:
        wrong: Beginning of the message where it is no such file.
        todo: What to do then.
    """
    try:
        yield read_plain(path)
    except OSError as error:
        raise not_done(_("the file cannot be read"), path, error) from None
    except (*UNREADABLE, OverflowError) as error:
        raise LowerscopeError(
            _("{event}: {reason}", event=wrong, reason=error), where=str(path), todo=todo
        ) from None


# Files of schedules.

VERSION = 1
"""Version of the file format."""


class _Versioned(msgspec.Struct, frozen=True):
    version: int


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schedules: tuple[Schedule, ...]
    version: int = VERSION


def save_schedules(schedules: Sequence[Schedule], file: str) -> Path:
    """Write schedules to a JSON file, which is replaced; return the file's path.

    Raises a `LowerscopeError` if the file cannot be written.
    """
    return save(_File(tuple(schedules)), file)


def schedules_text(schedules: Sequence[Schedule]) -> str:
    """Return the text of a file of schedules."""
    return file_text(_File(tuple(schedules)))


def load_schedules(file: str) -> tuple[Schedule, ...]:
    """Read what `save_schedules` wrote.

    Primitives and their arguments are checked when they are applied.

    Raises a `LowerscopeError` if the file cannot be read, is of another version, or holds no
    schedules; of a field that is wrong, with its place.
    """
    path = user_path(file).absolute()
    todo = _("Choose a saved schedule")
    with reading(path, _("the file contains no schedules"), todo) as content:
        version = msgspec.json.decode(content, type=_Versioned).version
        if version != VERSION:
            raise LowerscopeError(
                _(
                    "the file has version {version}, and this Lowerscope reads version {version2}",
                    version=version,
                    version2=VERSION,
                ),
                where=str(path),
                todo=_("Open it with the Lowerscope that wrote it")
                if version > VERSION
                else _("Save it again"),
            )
        schedules = msgspec.json.decode(content, type=_File).schedules
        # The window and its children exchange no numbers of more than 64 bits.
        msgspec.msgpack.encode(schedules)
    if not schedules:
        raise LowerscopeError(_("the file contains no schedules"), where=str(path), todo=todo)
    _check_ids(schedules, path)
    return schedules


def _check_ids(schedules: Sequence[Schedule], path: Path) -> None:
    for schedule in schedules:
        counts = Counter(primitive.id for primitive in schedule.primitives)
        twice = next((each for each, count in counts.items() if count > 1), None)
        if twice is not None:
            raise LowerscopeError(
                _(
                    "several steps of the schedule of {function} are called {twice!r}",
                    function=schedule.function,
                    twice=twice,
                ),
                where=str(path),
                todo=_("Give each step its own name"),
            )


_DISPATCH = ("DispatchSampling", "DispatchSortScan")
_FUSE = ("LegalizeOps", "AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR")
_DATAFLOW = ("RewriteDataflowReshape", "ToNonDataflow", "RemovePurityChecking", "CallTIRRewrite")
_FOLD = (
    "ComputeChosenBranches",
    "FoldBatchNorm",
    "MultiplyIntegers",
    "SplitTransposedConvolution",
    "WinogradConvolution",
    "PadConvolution",
    "DecomposeOpsForInference",
    "MultiplyBfloat16",
    "FuseMatrixTranspose",
)
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
    _preset("none", _("No passes")),
    _preset("legalise", _("Legalise"), "LegalizeOps"),
    _preset("fuse", _("Fuse"), *_FUSE),
    _preset(
        "default-build",
        _("TVM's default build pipeline"),
        *_DISPATCH,
        "LegalizeOps",
        *_DATAFLOW,
        "StaticPlanBlockMemory",
        "RewriteCUDAGraph",
        *_RUNTIME,
    ),
    _preset(
        "cpu",
        _("TVM's CPU pipeline"),
        *_DISPATCH,
        *_FUSE,
        *_DATAFLOW,
        "StaticPlanBlockMemory",
        *_RUNTIME,
    ),
    _preset(
        "optimise-cpu",
        _("Optimise for CPU"),
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
    return _n("{count} step of your own", "{count} steps of your own", count)


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
        _("there is no pipeline {text}", text=text),
        where="--pipeline",
        todo=_(
            "Choose {value} or a saved .json file",
            value=_(", ").join(each.name for each in PRESETS),
        ),
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
    todo = _("Choose a saved pipeline")
    with reading(path, _("the file is not a saved pipeline"), todo) as content:
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
    name, _sep, rest = text.partition(":")
    options: dict[str, OptionValue] = {}
    for part in _split(rest):
        option, equals, value = part.partition("=")
        if not equals or not option.strip():
            raise LowerscopeError(
                _("{part!r} is not OPTION=VALUE", part=part.strip()),
                where=f"--pass {text}",
                todo=_EXAMPLE,
            )
        options[option.strip()] = _value(value.strip())
    if not name.strip():
        raise LowerscopeError(
            _("the name of the pass is missing"), where=f"--pass {text}", todo=_EXAMPLE
        )
    return Step(name=name.strip(), options=options)


_EXAMPLE = _("Give a name, for example FoldConstant or LegalizeOps:skip_ops=[relax.add]")


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


# --- Names of variants ---


_LOWERINGS = {"high-level": _("high-level"), "te": "TE", "library": _("library")}
_PIPELINES = {
    "none": _("no passes"),
    "legalise": _("legalised"),
    "fuse": _("fused"),
    "default-build": _("default build"),
    "cpu": _("CPU pipeline"),
}
_TRANSLATORS = {"tvm-fx": "from_fx", "tvm-export": "from_exported_program"}


def variant_names(recipes: Sequence[Recipe]) -> tuple[str, ...]:
    """Return a name for each recipe, such as ``TE · fused``: the parts that differ between them.

    Recipes without differences are named by their lowering, and equal names are numbered.
    """
    words = [[part(recipe) for part in _PARTS] for recipe in recipes]
    differing = [len(set(column)) > 1 for column in zip(*words, strict=True)]
    names = [
        " · ".join(word for word, differs in zip(row, differing, strict=True) if differs and word)
        or _lowering(recipe)
        for row, recipe in zip(words, recipes, strict=True)
    ]
    counts, seen = Counter(names), Counter[str]()
    numbered = []
    for name in names:
        seen[name] += 1
        numbered.append(f"{name} ({seen[name]})" if counts[name] > 1 else name)
    return tuple(numbered)


def target_name(target: str) -> str:
    """Return a short name of a target: for JSON, the processor or its features."""
    try:
        fields = msgspec.json.decode(target)
    except UNREADABLE:
        return target
    if not isinstance(fields, dict):
        return target
    features = fields.get("mattr")
    if isinstance(features, list):
        features = ",".join(str(each).lstrip("+") for each in features)
    parts = (fields.get("mcpu"), features)
    return " ".join(str(each) for each in parts if each) or str(fields.get("kind", target))


def _lowering(recipe: Recipe) -> str:
    return _LOWERINGS[recipe.lowering]


def _overrides(recipe: Recipe) -> str:
    overrides = overrides_on(recipe)
    if len(overrides) > 2:
        return _n("{count} override", "{count} overrides", len(overrides))
    named = (
        f"{each.pattern.removeprefix('fx:')} {_LOWERINGS[each.strategy]}" for each in overrides
    )
    return _(", ").join(named)


def _pipeline(recipe: Recipe) -> str:
    apart = (*SCHEDULING, BIND_PARAMS)
    steps = tuple(step for step in recipe.steps if step.name not in apart)
    # Later steps were added by hand.
    preset = longest_preset(steps)
    added = [step.name for step in steps[len(preset.steps) :] if step.on]
    if len(added) > 2:
        count = sum(step.on for step in steps)
        return _n("{count} step of your own", "{count} steps of your own", count)
    return " + ".join((_PIPELINES[preset.name], *added))


def _schedules(recipe: Recipe) -> str:
    on = [each for each in recipe.schedules if each.on] if applies_schedules(recipe) else []
    by = {APPLY_RULES: _("by rules"), APPLY_TUNED: _("tuned")}
    steps = [by[step.name] for step in recipe.steps if step.on and step.name in by]
    if len(on) > 2:
        named = [_n("{count} schedule", "{count} schedules", len(on))]
    else:
        scheduled = _("scheduled")
        named = [
            joined(" ", (each.function, shown_name(each.variant) if each.variant else scheduled))
            for each in on
        ]
    return _(", ").join([*named, *steps])


def _threads(recipe: Recipe) -> str:
    count = recipe.threads
    return _n("{count} thread", "{count} threads", count) if count else _("all threads")


def _parameters(recipe: Recipe) -> str:
    if not recipe.params_as_inputs:
        return ""
    bound = any(step.name == BIND_PARAMS and step.on for step in recipe.steps)
    return _("parameters bound") if bound else _("parameters as inputs")


def _inputs(recipe: Recipe) -> str:
    parts = (shape_text(each.shape or (), "") or PurePath(each.file).name for each in recipe.inputs)
    return ", ".join(part for part in parts if part)


_PARTS: tuple[Callable[[Recipe], str], ...] = (
    _lowering,
    _overrides,
    lambda recipe: _TRANSLATORS.get(recipe.translator, ""),
    lambda recipe: "" if recipe.tracer == "auto" else _("traced by {tracer}", tracer=recipe.tracer),
    _pipeline,
    _schedules,
    _parameters,
    lambda recipe: ", ".join(PurePath(each.path).name for each in recipe.extensions if each.on),
    lambda recipe: target_name(recipe.target),
    _threads,
    _inputs,
    lambda recipe: _("seed {seed}", seed=recipe.seed),
)
"""Parts of a name, in this order."""
