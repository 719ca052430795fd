"""The recipe: one frozen value that holds everything that the user decided, and nothing else.

Everything that is shown is derived from it; undo is a list of recipes; recovery replays one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal, TypeVar

import msgspec

from lowerscope.core.model.machines import Remote
from lowerscope.core.model.run_records import Measuring
from lowerscope.core.model.schedule import (
    APPLY_RULES,
    APPLY_SCHEDULES,
    APPLY_TUNED,
    SCHEDULING,
    Primitive,
    Schedule,
)
from lowerscope.core.model.tolerances import Tolerances, tolerances_of_one

VERSION = 3
"""Version of the file format; 1 had one tolerance for all dtypes, and 2 no other machine."""

SEEDS = 2**32
"""Number of seeds that torch, NumPy and Python all accept."""

Strategy = Literal["high-level", "te", "library"]
TracerName = Literal["auto", "fx", "export"]
Translator = Literal["lowerscope", "tvm-fx", "tvm-export"]

ExtensionKind = Literal["rules", "library", "passes"]

STRATEGIES: tuple[Strategy, ...] = ("high-level", "te", "library")
TRACERS: tuple[TracerName, ...] = ("auto", "fx", "export")
TRANSLATORS: tuple[Translator, ...] = ("lowerscope", "tvm-fx", "tvm-export")


class InputSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one input of the model."""

    name: str = ""  # name of the input; empty stands for the next one in order
    # Extents, or ``None`` to take them from the file. A name stands for any size of a `Dimension`;
    # the same name stands for the same size.
    shape: tuple[int | str, ...] | None = None
    # ``"float32"``, ``"int64"``, …; ``None`` to take it from the file, or float32.
    dtype: str | None = None
    # A ``.npy``, ``.npz``, ``.pt`` or image file with the value; empty for random values.
    file: str = ""
    # low, high: range of random integers, ``low`` included and ``high`` excluded
    low: int | None = None
    high: int | None = None
    # Bring the array of a file to the shape and dtype of the input, as a picture is; otherwise
    # these are what it must have.
    fit: bool = False
    # Which sample of the array's first axis is the value, and is brought to fit.
    item: int | None = None
    # Of the random values of this input alone; ``None`` to draw them with the recipe's, after the
    # model. Another one leaves the model's weights as they are.
    seed: int | None = None


class Dimension(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes that a name in the shapes of inputs may stand for."""

    name: str  # as it stands in `InputSpec.shape`
    # low, high: the smallest and the largest size, both included
    low: int = 1
    high: int = 1024
    # Sizes of a run, one after the other; a single one is that of every run. Empty for the size
    # that the model is traced at and the ends of the range.
    sizes: tuple[int, ...] = ()


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A model to open."""

    spec: str  # ``sample:NAME``, or the path of a file
    # The class, instance or function in a Python file; empty for the only candidate.
    entry: str = ""
    args: str = "{}"  # keyword arguments of the entry, as a JSON object
    # An ``.npz``, a pickle of NumPy arrays or a ``.pt`` of tensors to load into the model's
    # parameters; empty for none.
    params: str = ""
    trust: bool = False  # whether a ``.pt2`` is opened even though it could run code
    # Open the decode step of a language model: the call with what ``next_inputs`` of the file makes
    # of the outputs of the call before.
    decode: bool = False
    after: int = 0  # decode steps before the one that is opened


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy for some nodes, instead of the recipe's default."""

    # ``fx:relu_1`` for this node alone; otherwise a name, or a pattern with ``*``, ``?`` and
    # ``[…]``, of nodes (``relu_1``), of a module and all that is under it (``layer1``,
    # ``layer1.*``), or of operators (``conv2d``). An override with the exact name of a node wins
    # over the others for that node; apart from that, a later one wins over an earlier one.
    pattern: str
    strategy: Strategy  # how these nodes are lowered
    on: bool = True  # whether it counts


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """A Python file of the user's own that takes part in the lowering or in the run."""

    path: str  # the file
    # ``"rules"`` for lowering rules (see `core.rules`), ``"library"`` for functions that it
    # registers with TVM by ``tvm.register_global_func``, ``"passes"`` for passes of TVM that it
    # defines. A rule file may register functions too.
    kind: ExtensionKind
    on: bool = True  # whether it takes part


OptionValue = bool | int | float | str | tuple[str, ...] | None
"""The value of an option of a pass."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the transformation: a pass."""

    # In `core.passes.catalogue`, or in a file of the recipe's extensions of the kind ``"passes"``.
    name: str
    on: bool = True  # whether it is applied
    options: dict[str, OptionValue] = {}  # those that differ from the pass's own defaults, by name

    def __hash__(self) -> int:
        # A recipe is looked up in tables, and a dict has no hash of its own.
        return hash((self.name, self.on, frozenset(self.options.items())))


NATIVE = "native"
"""The target that is this machine's own processor, with all its instructions."""

ANY_PROCESSOR = "llvm"
"""The target that is any processor of this machine's kind; its vectors are the shortest."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """All decisions of the user."""

    source: Source  # the model to open
    version: int = VERSION
    seed: int = 0  # set before the entry is called, and before inputs are drawn
    # Settings of the inputs; empty to take the file's example inputs.
    inputs: tuple[InputSpec, ...] = ()
    # The ranges of names in the shapes of `inputs`; a name that is not among them has the range
    # that a `Dimension` has by itself.
    dimensions: tuple[Dimension, ...] = ()
    # ``"fx"`` (``torch.fx.symbolic_trace``), ``"export"`` (``torch.export``), or ``"auto"``: fx,
    # and export for what fx cannot trace.
    tracer: TracerName = "auto"
    # Translator from the graph to a Relax module: ``"lowerscope"``, our rules; ``"tvm-fx"`` and
    # ``"tvm-export"``, TVM's own ``from_fx`` and ``from_exported_program``, which are wrong in
    # places and shown as they are.
    translator: Translator = "lowerscope"
    lowering: Strategy = "high-level"  # the strategy of nodes that have no choice of their own
    overrides: tuple[Override, ...] = ()  # the strategies of nodes that have one
    # Files with rules and with library functions, in order: of two rules for the same operator and
    # strategy, and of two functions of the same name, the later one counts.
    extensions: tuple[Extension, ...] = ()
    # Whether the model's parameters are arguments of ``main``, and not constants in it. The step
    # ``BindParams`` makes constants of them.
    params_as_inputs: bool = False
    # The passes after lowering, in order; among them ``ApplySchedules``.
    steps: tuple[Step, ...] = (Step(name="LegalizeOps"),)
    # Schedules of functions; names are unique among those that can apply to one function. They can
    # be shown and edited without a step that applies them to the model.
    schedules: tuple[Schedule, ...] = ()
    tolerances: Tolerances = Tolerances()  # for the comparison with torch, by dtype
    measuring: Measuring = Measuring()  # how a run is timed; the number of threads is in `threads`
    # `NATIVE`, `ANY_PROCESSOR`, or a TVM target as JSON. A new recipe of a user has `NATIVE`.
    target: str = ANY_PROCESSOR
    threads: int = 0  # of TVM and of torch; 0 for all that the machine has
    # The machine that runs the executable; ``None`` for this one. Torch runs here.
    remote: Remote | None = None


BIND_PARAMS = "BindParams"
"""The step that makes constants of the parameters that are arguments of ``main``."""


def overrides_on(recipe: Recipe) -> tuple[Override, ...]:
    """Return the overrides that are switched on, in order."""
    return tuple(each for each in recipe.overrides if each.on)


def binds_params(recipe: Recipe) -> bool:
    """Return whether a step that makes constants of parameters is switched on."""
    return any(step.name == BIND_PARAMS and step.on for step in recipe.steps)


def applies_schedules(recipe: Recipe) -> bool:
    """Return whether a step that applies schedules to the model is switched on."""
    return any(step.name == APPLY_SCHEDULES and step.on for step in recipe.steps)


def schedules_functions(recipe: Recipe) -> bool:
    """Return whether a step that schedules functions, by hand or by rules, is switched on."""
    return any(step.name in SCHEDULING and step.on for step in recipe.steps)


def applies_tuned(recipe: Recipe) -> bool:
    """Return whether a step that schedules functions as tuning has found is switched on."""
    return any(step.name == APPLY_TUNED and step.on for step in recipe.steps)


def with_tuned(recipe: Recipe) -> Recipe:
    """Return `recipe` with the step that applies tuning results, in place of rules or else last."""
    if any(step.name == APPLY_TUNED for step in recipe.steps):
        return recipe
    tuned = Step(name=APPLY_TUNED)
    steps = tuple(tuned if step.name == APPLY_RULES else step for step in recipe.steps)
    if tuned not in steps:
        steps = (*steps, tuned)
    return msgspec.structs.replace(recipe, steps=steps)


def steps_before_schedules(recipe: Recipe) -> tuple[Step, ...]:
    """Return the steps before the first one that schedules functions; all, where none does."""
    steps = recipe.steps
    applying = (place for place, step in enumerate(steps) if step.name in SCHEDULING and step.on)
    return steps[: next(applying, len(steps))]


def applied_to_model(recipe: Recipe, on: bool) -> Recipe:
    """Return `recipe` with the step that applies schedules on, at the end if it was not there.

    It comes before the one that schedules by rules: a schedule goes before a rule.
    """
    names = [step.name for step in recipe.steps]
    place = names.index(APPLY_RULES) if APPLY_RULES in names else len(names)
    return _with_step(recipe, APPLY_SCHEDULES, on, place)


def ruled_in_model(recipe: Recipe, on: bool) -> Recipe:
    """Return `recipe` with the step that schedules by rules on, at the end if it was not there."""
    return _with_step(recipe, APPLY_RULES, on, len(recipe.steps))


def _with_step(recipe: Recipe, name: str, on: bool, place: int) -> Recipe:
    steps = recipe.steps
    if not any(step.name == name for step in steps):
        steps = (*steps[:place], Step(name=name), *steps[place:])
    switched = tuple(
        msgspec.structs.replace(step, on=on) if step.name == name else step for step in steps
    )
    return msgspec.structs.replace(recipe, steps=switched)


def without_steps(recipe: Recipe) -> Recipe:
    """Return `recipe` with no pass applied."""
    return msgspec.structs.replace(recipe, steps=())


def without_schedules(recipe: Recipe) -> Recipe:
    """Return `recipe` with no function scheduled."""
    return msgspec.structs.replace(recipe, schedules=())


def with_params_as_inputs(recipe: Recipe, on: bool) -> Recipe:
    """Return `recipe` with parameters as inputs of ``main``, or as constants.

    As inputs, there is the step ``BindParams``, switched off at first.
    """
    recipe = msgspec.structs.replace(recipe, params_as_inputs=on)
    if on:
        return with_bound_params(recipe, binds_params(recipe))
    steps = tuple(step for step in recipe.steps if step.name != BIND_PARAMS)
    return msgspec.structs.replace(recipe, steps=steps)


def with_bound_params(recipe: Recipe, on: bool) -> Recipe:
    """Return `recipe` with the step ``BindParams`` switched on or off; it is the first one."""
    steps = recipe.steps
    if not any(step.name == BIND_PARAMS for step in steps):
        steps = (Step(name=BIND_PARAMS), *steps)
    changed = tuple(
        msgspec.structs.replace(step, on=on) if step.name == BIND_PARAMS else step for step in steps
    )
    return msgspec.structs.replace(recipe, steps=changed)


def to_json(recipe: Recipe) -> str:
    """Return `recipe` as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(recipe), indent=2).decode()


def from_json(text: str | bytes) -> Recipe:
    """Read what `to_json` wrote.

    Raises a `msgspec.ValidationError` if the text is not a recipe, with the field that is wrong.
    """
    written = msgspec.json.decode(text, type=_Written)
    if written.version >= _TOLERANCES_BY_DTYPE or not written.tolerances:
        recipe = msgspec.json.decode(text, type=Recipe)
        return msgspec.structs.replace(recipe, version=max(VERSION, written.version))
    fields = msgspec.json.decode(text)
    fields |= {"version": VERSION, "tolerances": tolerances_of_one(written.tolerances)}
    return msgspec.convert(fields, Recipe)


_TOLERANCES_BY_DTYPE = 2
"""The version from which there is a tolerance for each dtype."""


class _Written(msgspec.Struct):
    """Header that determines how a recipe's file is read."""

    version: int = VERSION
    tolerances: dict[str, Any] = {}


# --- Parts of a recipe that are applied, and can be switched off, one by one ---
#
# They are passes, steps of schedules, and strategies of nodes. A child writes which of them it
# applies into memory that outlives it (`sandbox.running_call`), so that the one that crashed it is
# known.

_T = TypeVar("_T")


@dataclass(frozen=True)
class Part:
    """A part of a recipe."""

    kind: Literal["step", "primitive", "override"]  # kind of the part
    place: int  # from 0, among the recipe's steps, schedules or overrides
    name: str  # of the pass, the primitive, or the pattern of the nodes
    primitive: str = ""  # `Primitive.id` of a step of a schedule; empty otherwise
    function: str = ""  # the function that such a schedule was made for


def step_text(number: int, step: Step) -> str:
    """Return the text form of a pass; its number counts from 1."""
    return f"step {number - 1} {step.name}"


def override_text(overrides: Sequence[Override], override: Override) -> str:
    """Return the text form of one of the recipe's overrides."""
    return f"override {overrides.index(override)} {override.pattern}"


def primitive_text(schedules: Sequence[Schedule], schedule: Schedule, primitive: Primitive) -> str:
    """Return the text form of a step of one of the recipe's schedules."""
    return f"primitive {schedules.index(schedule)} {primitive.id} {primitive.name}"


def part_of(recipe: Recipe, text: str) -> Part | None:
    """Return the part of a recipe that a text form, possibly truncated, stands for.

    ``None`` where the recipe has no such part.
    """
    kind, _, rest = text.partition(" ")
    number, _, written = rest.partition(" ")
    if not number.isdecimal() or not written:
        return None
    place = int(number)
    if kind == "step":
        step = _at(recipe.steps, place)
        part = None if step is None else Part("step", place, step.name)
    elif kind == "override":
        override = _at(recipe.overrides, place)
        part = None if override is None else Part("override", place, override.pattern)
    else:
        identity, _, written = written.partition(" ")
        schedule = _at(recipe.schedules, place)
        steps = () if schedule is None else schedule.primitives
        found = next((each for each in steps if each.id == identity), None)
        if schedule is None or found is None:
            return None
        part = Part("primitive", place, found.name, found.id, schedule.function)
    return part if part is not None and part.name.startswith(written) else None


def without_part(recipe: Recipe, part: Part) -> Recipe:
    """Return `recipe` with one of its parts switched off, not removed."""
    if part.kind == "step":
        steps = _replaced(recipe.steps, part.place, _off)
        return msgspec.structs.replace(recipe, steps=steps)
    if part.kind == "override":
        overrides = _replaced(recipe.overrides, part.place, _off)
        return msgspec.structs.replace(recipe, overrides=overrides)

    def left_out(schedule: Schedule) -> Schedule:
        primitives = tuple(
            _off(each) if each.id == part.primitive else each for each in schedule.primitives
        )
        return msgspec.structs.replace(schedule, primitives=primitives)

    schedules = _replaced(recipe.schedules, part.place, left_out)
    return msgspec.structs.replace(recipe, schedules=schedules)


_Switched = TypeVar("_Switched", Step, Primitive, Override)


def _off(part: _Switched) -> _Switched:
    return msgspec.structs.replace(part, on=False)


def _replaced(values: Sequence[_T], place: int, make: Callable[[_T], _T]) -> tuple[_T, ...]:
    return tuple(make(each) if index == place else each for index, each in enumerate(values))


def _at(values: Sequence[_T], place: int) -> _T | None:
    return values[place] if place < len(values) else None


# --- The versions that results depend on ---

VERSIONS = tuple(version(name) for name in ("torch", "apache-tvm", "lowerscope"))
"""Versions of torch, TVM and Lowerscope."""


Item = TypeVar("Item", bound=msgspec.Struct)


def inserted(steps: tuple[Item, ...], place: int, step: Item) -> tuple[Item, ...]:
    return (*steps[:place], step, *steps[place:])


def removed(steps: tuple[Item, ...], place: int) -> tuple[Item, ...]:
    return tuple(each for at, each in enumerate(steps) if at != place)


def moved(steps: tuple[Item, ...], place: int, to: int) -> tuple[Item, ...]:
    """Move a step to a place of the new list, or to its nearest end."""
    to = max(0, min(to, len(steps) - 1))
    return inserted(removed(steps, place), to, steps[place])


def replaced(steps: tuple[Item, ...], place: int, step: Item) -> tuple[Item, ...]:
    return tuple(step if at == place else each for at, each in enumerate(steps))


def changed(steps: tuple[Item, ...], place: int, **fields: Any) -> tuple[Item, ...]:
    """Change fields of the step at a place."""
    return tuple(
        msgspec.structs.replace(each, **fields) if at == place else each
        for at, each in enumerate(steps)
    )


class WindowLayout(msgspec.Struct, frozen=True, kw_only=True):
    """Layout of the window, in logical pixels, and the selection.

    Sessions of earlier versions have Qt's own values instead, which are not read.
    """

    size: tuple[int, int] = (0, 0)  # of the window, before it was maximised
    maximised: bool = False
    mode: str = ""  # key of the current mode; empty in earlier versions
    widths: dict[str, dict[str, int]] = {}  # of the panes, by mode and by name
    closed: tuple[str, ...] = ()  # panes at the side that were closed
    pinned: bool = False  # whether the inspector stays without a selection
    drawer: int = 0  # height of the drawer
    selection: tuple[str, ...] = ()  # ids of the selection


def document_of(recipe: Recipe | None) -> tuple[str, str] | None:
    """Return the source and the entry that a recipe opens, which identify its document."""
    return None if recipe is None else (recipe.source.spec, recipe.source.entry)


def with_trust(recipe: Recipe, *, trust: bool) -> Recipe:
    """Return a recipe whose source may run code when it is opened, or may not."""
    return with_source(recipe, trust=trust)


def with_source(recipe: Recipe, **changes: object) -> Recipe:
    """Return `recipe` with fields of its source changed."""
    source = msgspec.structs.replace(recipe.source, **changes)
    return msgspec.structs.replace(recipe, source=source)
