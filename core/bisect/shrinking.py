"""Shrinking of a model to the smallest program that still shows the fault of a step."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import torch
import tvm
from torch import fx, nn

from lowerscope.core.bisect.first_step import Item, Probe, Prober, Unreported
from lowerscope.core.export.reproducing import (
    Name,
    NotWritten,
    constructor_arguments,
    expression_text,
    function_text,
)
from lowerscope.core.files.approved import approve
from lowerscope.core.files.python_text import attribute, identifier, keywords
from lowerscope.core.ir.tensorir import structure_of
from lowerscope.core.model.explanation_records import BisectStage
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.recipe import Override, Recipe, Source, Step, overrides_on
from lowerscope.core.model.schedule import APPLY_SCHEDULES, Schedule
from lowerscope.core.model.texts import _
from lowerscope.core.run.torch_interpreter import TorchValues
from lowerscope.core.stages import Pipeline, Stages
from lowerscope.core.tracing.tracing import TracedModel

# --- Small torch models made of some nodes of an FX graph, as programs ---

_PLAIN = (torch.float32, torch.float64, torch.float16, torch.bfloat16)

_DIGITS = 3
"""Significant digits of the bounds of random values."""

_FEW = 4
"""Most tensors of modules that are filled by a line each."""

_SPREAD = 0.5
"""Distance from a constant to the bounds of the random values in its place."""


@dataclass(frozen=True)
class Filling:
    """A tensor of random values in the range of those in a run."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    low: float = 0.0
    high: float = 1.0

    @property
    def bounds(self) -> str:
        """The bounds, as arguments of ``uniform_``."""
        return f"{self.low!r}, {self.high!r}"

    @property
    def text(self) -> str:
        """An expression for it."""
        shape = expression_text(self.shape)
        if self.dtype is torch.bool:
            return f"torch.randint(0, 2, {shape}).bool()"
        if self.dtype.is_complex:
            return f"torch.randn({shape}, dtype={self.dtype})"
        if not self.dtype.is_floating_point:
            low, high = int(self.low), int(self.high) + 1
            return f"torch.randint({low}, {high}, {shape}, dtype={self.dtype})"
        if self.dtype is torch.float32:
            return f"torch.empty({shape}).uniform_({self.bounds})"
        if self.dtype in _PLAIN:
            return f"torch.empty({shape}, dtype={self.dtype}).uniform_({self.bounds})"
        return f"torch.empty({shape}).uniform_({self.bounds}).to({self.dtype})"


def filling_of(tensor: torch.Tensor) -> Filling:
    """Return random values like those of a tensor."""
    shape, dtype = tuple(tensor.shape), tensor.dtype
    if dtype is torch.bool or dtype.is_complex or not tensor.numel():
        return Filling(shape, dtype)
    if not dtype.is_floating_point:
        return Filling(shape, dtype, int(tensor.min()), int(tensor.max()))
    values = tensor.detach().double()
    values = values[values.isfinite()]
    if not values.numel():
        return Filling(shape, dtype)
    low, high = (_rounded(float(each)) for each in (values.min(), values.max()))
    # A constant, such as a bias of zeros, would hide faults.
    return Filling(shape, dtype, low, high) if low < high else _around(shape, dtype, low)


def _around(shape: tuple[int, ...], dtype: torch.dtype, value: float) -> Filling:
    return Filling(shape, dtype, value - _SPREAD, value + _SPREAD)


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


@dataclass(frozen=True)
class Call:
    """One node that calls something.

    `callee`: an expression for what is called; empty for a module.
    `module`: name of the class of a module.
    `given`: the arguments of its constructor.
    `state`: random values of its parameters and buffers.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    callee: str = ""
    module: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Filling] = field(default_factory=dict)
    is_method: bool = False

    def text(self, owner: str) -> str:
        """Return the expression of the call; `owner` is the attribute that has the module."""
        args = [expression_text(each) for each in self.args]
        named = keywords((key, expression_text(value)) for key, value in self.kwargs.items())
        if self.is_method:
            subject, *args = args
            return f"{attribute(subject, self.callee)}({', '.join([*args, *named])})"
        return f"{self.callee or f'self.{owner}'}({', '.join([*args, *named])})"


@dataclass(frozen=True)
class SmallModel:
    """A torch model of some nodes.

    `inputs`, `tensors`: the random values of its inputs, and of its own tensors, by name.
    `returned`: names of the nodes whose values it returns.
    """

    inputs: Mapping[str, Filling]
    tensors: Mapping[str, Filling]
    calls: tuple[Call, ...]
    returned: tuple[str, ...]

    def text(self) -> str:
        """Return the program: a class ``Model`` and a function ``example_inputs``."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield "class Model(torch.nn.Module):"
        if self.tensors or any(each.module for each in self.calls):
            yield "    def __init__(self):"
            yield "        super().__init__()"
            yield from (f"        {each}" for each in self._attributes())
            yield ""
        yield f"    def forward({', '.join(('self', *self.inputs))}):"
        *calls, last = ((each.name, each.text(_attribute(each.name))) for each in self.calls)
        for name, text in calls:
            yield f"        {name} = {text}"
        if self.returned == (last[0],):
            yield f"        return {last[1]}"
        else:
            yield f"        {last[0]} = {last[1]}"
            yield f"        return {', '.join(self.returned)}"
        yield ""
        yield ""
        yield "def example_inputs():"
        members = [each.text for each in self.inputs.values()]
        yield f"    return ({', '.join(members)}{',' * (len(members) == 1)})"

    def _attributes(self) -> Iterator[str]:
        for name, filling in self.tensors.items():
            if filling.dtype.is_floating_point:
                yield f"self.{name} = torch.nn.Parameter({filling.text})"
            else:
                yield f'self.register_buffer("{name}", {filling.text})'
        bounds = []
        for call in self.calls:
            if not call.module:
                continue
            owner = f"self.{_attribute(call.name)}"
            given = keywords((key, expression_text(each)) for key, each in call.given.items())
            yield f"{owner} = {call.module}({', '.join(given)})"
            bounds += [
                (attribute(owner, *name.split(".")), filling.bounds)
                for name, filling in call.state.items()
            ]
        if len(bounds) > _FEW and not self.tensors:
            state = "self.state_dict().values()"
            yield f"floats = [each for each in {state} if each.dtype.is_floating_point]"
            yield f"bounds = [{', '.join(f'({each})' for _owner, each in bounds)}]"
            yield "for each, (low, high) in zip(floats, bounds, strict=True):"
            yield "    each.uniform_(low, high)"
        else:
            yield from (f"torch.nn.init.uniform_({owner}, {each})" for owner, each in bounds)

    @property
    def extents(self) -> tuple[int, ...]:
        """The sizes in it that are more than 1, the largest first."""
        found: dict[int, None] = {}

        def note(value: int) -> int:
            if value > 1:
                found[value] = None
            return value

        self.with_numbers(note)
        return tuple(sorted(found, reverse=True))

    def with_numbers(self, change: Callable[[int], int]) -> SmallModel:
        """Return the same model with other integers in its shapes and arguments."""

        def filled(given: Mapping[str, Filling]) -> dict[str, Filling]:
            return {
                name: replace(each, shape=_mapped(each.shape, change))
                for name, each in given.items()
            }

        calls = tuple(
            replace(
                each,
                args=_mapped(each.args, change),
                kwargs=_mapped(dict(each.kwargs), change),
                given=_mapped(dict(each.given), change),
            )
            for each in self.calls
        )
        return replace(self, inputs=filled(self.inputs), tensors=filled(self.tensors), calls=calls)

    def with_extent(self, name: str, axis: int, extent: int) -> SmallModel:
        """Return the same model with another extent of an input."""
        filling = self.inputs[name]
        shape = (*filling.shape[:axis], extent, *filling.shape[axis + 1 :])
        return replace(self, inputs={**self.inputs, name: replace(filling, shape=shape)})


def _mapped(value: Any, change: Callable[[int], int]) -> Any:
    if type(value) is int:
        return change(value)
    if isinstance(value, slice):
        return slice(*(_mapped(each, change) for each in (value.start, value.stop, value.step)))
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(each, change) for each in value)
    if isinstance(value, dict):
        return {key: _mapped(each, change) for key, each in value.items()}
    return value


def _attribute(name: str) -> str:
    """Return the name of an attribute of a module."""
    return f"{name}_" if hasattr(nn.Module, name) else name


_TAKEN = ("torch", "operator", "self", "Model", "example_inputs")


class Parts:
    """The nodes of a traced model, and what each is in a run of torch.

    Args:
        inputs: The values of the placeholders.
    """

    def __init__(self, traced: TracedModel, inputs: Sequence[torch.Tensor], seed: int) -> None:
        self._module = traced.graph_module
        self._nodes: dict[str, fx.Node] = {each.name: each for each in self._module.graph.nodes}
        self._names = {
            each: f"{plain}_" if plain in _TAKEN else plain
            for each in self._nodes
            if (plain := identifier(each))
        }
        self._values: dict[str, Any] = {}
        uses = {name: 1 for name, each in self._nodes.items() if each.op != "output"}
        values = TorchValues(self._module, inputs, seed, uses)
        for name in uses:
            self._values[name] = _described(values.of(name))
            values.used(name)
        # Calls that can be written, and have a value.
        self._calls = {
            name: call
            for name, each in self._nodes.items()
            if each.op.startswith("call_") and (call := self._call(each)) is not None
        }

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The nodes that a small model can have, in order."""
        return tuple(self._calls)

    def model_of(self, names: Collection[str]) -> tuple[SmallModel, tuple[str, ...]] | None:
        """Return the model of some nodes, with random inputs in place of the others, and its nodes.

        Nodes that need a value which no random tensor can replace are left out. ``None`` if none of
        the rest returns a tensor.
        """
        kept: dict[str, Call] = {}
        inputs: dict[str, Filling] = {}
        tensors: dict[str, Filling] = {}
        for name in self._calls:
            node = self._nodes[name]
            outside = [each for each in node.all_input_nodes if each.name not in kept]
            if name not in names or any(self._values[each.name] is _NEST for each in outside):
                continue
            kept[name] = self._calls[name]
            for each in outside:
                found = self._values[each.name]
                if isinstance(found, Filling):
                    own = each.op == "get_attr"
                    (tensors if own else inputs)[self._names[each.name]] = found
        texts: dict[fx.Node, Any] = {
            node: self._text(node, name in kept) for name, node in self._nodes.items() if node.users
        }
        calls = tuple(
            replace(
                call,
                args=_with_nodes(self._nodes[name].args, texts),
                kwargs=_with_nodes(dict(self._nodes[name].kwargs), texts),
            )
            for name, call in kept.items()
        )
        returned = tuple(
            self._names[name]
            for name in kept
            if isinstance(self._values[name], Filling)
            and not any(user.name in kept for user in self._nodes[name].users)
        )
        if not returned or not inputs:
            return None
        return SmallModel(inputs, tensors, calls, returned), tuple(kept)

    def _text(self, node: fx.Node, kept: bool) -> Any:
        """Return what stands for a node in arguments: its name, or its value."""
        found = self._values.get(node.name)
        name = self._names[node.name]
        if kept:
            return Name(name)
        if isinstance(found, Filling):
            return Name(f"self.{name}" if node.op == "get_attr" else name)
        return None if found is None or found is _NEST else found.value

    def _call(self, node: fx.Node) -> Call | None:
        """Return the call of a node without its arguments; ``None`` if it cannot be written."""
        name, place = self._names[node.name], Name("x")
        try:
            arguments = _with_nodes(
                (node.args, dict(node.kwargs)), dict.fromkeys(node.all_input_nodes, place)
            )
            expression_text(arguments)
            if node.op == "call_method":
                return Call(name, (), {}, callee=str(node.target), is_method=True)
            if node.op == "call_function":
                assert callable(node.target)
                return Call(name, (), {}, callee=function_text(node.target))
        except NotWritten:
            return None
        module = self._module.get_submodule(str(node.target))
        given = constructor_arguments(module)
        if given is None:
            return None
        state = {
            key: filling_of(tensor)
            for key, tensor in (*module.named_parameters(), *module.named_buffers())
            if tensor.dtype in _PLAIN
        }
        return Call(
            name, (), {}, module=f"torch.nn.{type(module).__name__}", given=given, state=state
        )


@dataclass(frozen=True)
class _Plain:
    """A value that has an expression."""

    value: Any


_NEST = _Plain(None)
"""Stands for values that neither a random tensor nor an expression can replace."""


def _described(value: Any) -> Filling | _Plain:
    if isinstance(value, torch.Tensor):
        return filling_of(value) if value.layout is torch.strided else _NEST
    try:
        expression_text(value)
    except NotWritten:
        return _NEST
    return _Plain(value)


def _with_nodes(value: Any, texts: Mapping[fx.Node, Any]) -> Any:
    """Return arguments of a node as plain containers, with something else for each node."""
    if isinstance(value, fx.Node):
        return texts[value]
    if isinstance(value, slice):
        return slice(*(_with_nodes(each, texts) for each in (value.start, value.stop, value.step)))
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, tuple):
        return tuple(_with_nodes(each, texts) for each in value)
    if isinstance(value, list):
        return [_with_nodes(each, texts) for each in value]
    if isinstance(value, Mapping):
        return {key: _with_nodes(each, texts) for key, each in value.items()}
    return value


# --- The search for the smallest of these programs ---


SECONDS = 150.0
"""Processor time after which the smallest model so far is taken."""

FEW = 4
"""Number of neighbouring nodes that are tried where no half of the model shows the fault."""

EXTENTS = (2, 3, 4, 8, 16)
"""Sizes that are tried in place of larger ones."""


@dataclass(frozen=True)
class Small:
    """A small model that shows the fault, and its recipe.

    `before`: the module before the step; ``None`` for the translation.
    `after`: the module after it.
    `probe`: the run of the module after the step.
    """

    model: SmallModel
    recipe: Recipe
    stages: Stages
    before: tvm.IRModule | None
    after: tvm.IRModule
    probe: Probe


class Shrinking:
    """The search for the smallest model that shows the fault of a step.

    Args:
        item: The step.
        folder: For the programs of the models that are tried.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        recipe: Recipe,
        item: Item,
        inputs: Sequence[torch.Tensor],
        folder: Path,
        progress: Progress,
    ) -> None:
        self._pipeline, self._item, self._folder = pipeline, item, folder
        self._progress = progress
        self._tried = 0
        self._end = time.process_time() + SECONDS
        self._quiet = Unreported(progress)
        self._stages = pipeline.stages(recipe, self._quiet)
        traced, lowered = self._stages.traced, self._stages.lowered
        assert traced is not None
        assert lowered is not None
        self._tracer = traced.tracer
        self._strategies = {name: each.strategy for name, each in lowered.nodes.items()}
        self._recipe = self._up_to(recipe)
        with self._stages.running():
            self.parts = Parts(traced, inputs, recipe.seed)

    def smallest(self, first: Sequence[str] = ()) -> Small | None:
        """Return the smallest model that was found; ``None`` if no part of the model shows it.

        Args:
            first: Names of nodes that may be enough.
        """
        names, found = self._fewest(first)
        if found is None:
            return None
        found = self._with_fewer_steps(found, names)
        return self._with_smaller_shapes(found, names)

    def _up_to(self, recipe: Recipe) -> Recipe:
        """Return the recipe up to the step."""
        steps = list(recipe.steps[: self._item.step])
        steps = [each for each in steps[:-1] if each.on] + steps[-1:]
        return msgspec.structs.replace(
            recipe,
            steps=tuple(steps),
            schedules=recipe.schedules if steps else (),
            inputs=(),
            dimensions=(),
            overrides=(),
            tracer=self._tracer,
        )

    def imported(self, small: Small) -> Small | None:
        """Return a small model as TVM's importer lowers it; ``None`` if that hides the fault."""
        if self._item.stage == "translate" or small.recipe.params_as_inputs:
            return None
        recipe = msgspec.structs.replace(
            small.recipe,
            translator="tvm-export",
            tracer="auto",
            lowering="high-level",
            overrides=(),
        )
        try:
            found = (self._judged(small.model, each) for each in self._with_schedules(recipe))
            return next((each for each in found if each is not None), None)
        except LowerscopeError:
            return None

    # Fewer nodes

    def _fewest(self, first: Sequence[str]) -> tuple[tuple[str, ...], Small | None]:
        names, found = self.parts.names, None
        if first:
            found = self._of_nodes(first)
            names = tuple(first) if found else names
        while (part := self._part_of(names)) is not None:
            names, found = part
        if len(names) > 2 * FEW and (part := self._few_of(names)) is not None:
            names, found = part
        return self._without_single_nodes(names, found)

    def _few_of(self, names: Sequence[str]) -> tuple[tuple[str, ...], Small] | None:
        """Return a few neighbouring nodes that show the fault."""
        for start in range(0, len(names) - FEW // 2, FEW // 2):
            part = tuple(names[start : start + FEW])
            if (found := self._of_nodes(part)) is not None:
                return part, found
        return None

    def _part_of(self, names: Sequence[str]) -> tuple[tuple[str, ...], Small] | None:
        """Return half of some neighbouring nodes that shows the fault."""
        size = (len(names) + 1) // 2
        if size == len(names):
            return None
        starts = dict.fromkeys((0, len(names) - size, (len(names) - size) // 2))
        for start in starts:
            part = tuple(names[start : start + size])
            if (found := self._of_nodes(part)) is not None:
                return part, found
        return None

    def _without_single_nodes(
        self, names: Sequence[str], found: Small | None
    ) -> tuple[tuple[str, ...], Small | None]:
        """Leave out groups of nodes, and then single ones, as long as the fault shows."""
        names, size = tuple(names), max(1, len(names) // 2)
        while True:
            for start in range(0, len(names), size):
                rest = (*names[:start], *names[start + size :])
                if rest and (other := self._of_nodes(rest)) is not None:
                    names, found = rest, other
                    break
            else:
                if size == 1:
                    return names, found
                size //= 2
            size = min(size, max(1, len(names) // 2))

    def _of_nodes(self, names: Sequence[str]) -> Small | None:
        made = self.parts.model_of(names)
        return None if made is None else self._tried_model(*made, self._recipe)

    # Fewer steps, smaller shapes

    def _with_fewer_steps(self, found: Small, names: Sequence[str]) -> Small:
        for place in reversed(range(len(found.recipe.steps) - 1)):
            steps = found.recipe.steps
            fewer = (*steps[:place], *steps[place + 1 :])
            found = self._better(found, found.model, names, fewer)
        return found

    def _with_smaller_shapes(self, found: Small, names: Sequence[str]) -> Small:
        for extent in found.model.extents:
            for smaller in (each for each in EXTENTS if each < extent):
                model = found.model.with_numbers(
                    lambda value, old=extent, new=smaller: new if value == old else value  # type: ignore[misc]
                )
                better = self._better(found, model, names, found.recipe.steps)
                if better is not found:
                    found = better
                    break
        for name, filling in found.model.inputs.items():
            for axis, extent in enumerate(filling.shape):
                for smaller in (each for each in EXTENTS if each < extent):
                    model = found.model.with_extent(name, axis, smaller)
                    better = self._better(found, model, names, found.recipe.steps)
                    if better is not found:
                        found = better
                        break
        return found

    def _better(
        self, found: Small, model: SmallModel, names: Sequence[str], steps: tuple[Step, ...]
    ) -> Small:
        """Return the small model with another program or other steps, if that shows the fault."""
        if steps == found.recipe.steps and model == found.model:
            return found
        if not runs_in_torch(model):
            return found
        recipe = msgspec.structs.replace(self._recipe, steps=steps)
        made = self.parts.model_of(names)
        kept = names if made is None else made[1]
        return self._tried_model(model, kept, recipe) or found

    # One model

    def _tried_model(self, model: SmallModel, names: Sequence[str], recipe: Recipe) -> Small | None:
        """Return a model, if it shows the fault of the step."""
        if time.process_time() > self._end:
            return None
        self._tried += 1
        self._progress.report(
            _(
                "Shrinking, model {count}: {nodes} of {all} nodes",
                count=self._tried,
                nodes=len(model.calls),
                all=len(self.parts.names),
            )
        )
        try:
            return self._shown(model, names, recipe)
        except LowerscopeError:
            # It cannot be traced, lowered, built or run.
            return None

    def _shown(self, model: SmallModel, names: Sequence[str], recipe: Recipe) -> Small | None:
        path = self._folder / f"small_model_{self._tried}.py"
        text = f"{imports_of(model)}\n\n\n{model.text()}"
        path.write_text(text, encoding="utf-8")
        approve(path, text.encode())
        recipe = msgspec.structs.replace(recipe, source=Source(spec=str(path), entry="Model"))
        recipe = self._with_strategies(recipe, names)
        for each in self._with_schedules(recipe):
            found = self._judged(model, each)
            if found is not None:
                return found
        return None

    def _judged(self, model: SmallModel, recipe: Recipe) -> Small | None:
        stages = self._pipeline.stages(recipe, self._quiet)
        before, after = sides_of(stages, self._item.stage)
        prober = Prober(stages, recipe, self._quiet)
        found = prober.probe(after)
        if not found.differs:
            return None
        if before is not None and not prober.probe(before).is_right:
            return None
        return Small(model, recipe, stages, before, after, found)

    def _with_strategies(self, recipe: Recipe, names: Sequence[str]) -> Recipe:
        """Return the recipe with the strategies that the nodes had in the model."""
        if not overrides_on(self._stages.recipe):
            return recipe
        traced = self._pipeline.stages(recipe, self._quiet).traced
        assert traced is not None
        nodes = [each for each in traced.graph_module.graph.nodes if each.op.startswith("call_")]
        overrides = tuple(
            Override(pattern=f"fx:{node.name}", strategy=self._strategies[name])  # type: ignore[arg-type]
            for node, name in zip(nodes, names, strict=False)
            if self._strategies[name] not in ("", recipe.lowering)
        )
        return msgspec.structs.replace(recipe, overrides=overrides)

    def _with_schedules(self, recipe: Recipe) -> Iterator[Recipe]:
        """Yield the recipe for each function that can have the schedule of the step."""
        item = self._item
        if item.stage != "schedule" or recipe.steps[-1].name != APPLY_SCHEDULES:
            yield msgspec.structs.replace(recipe, schedules=())
            return
        stages = self._pipeline.stages(recipe, self._quiet)
        for name, function in stages.functions.by_name.items():
            states = self._pipeline.replays.replay(
                name, function, stages.target, item.primitives, self._progress.check
            )
            if all(each.status != "failed" for each in states[-1].steps):
                schedule = Schedule(
                    function=name, structure=structure_of(function), primitives=item.primitives
                )
                yield msgspec.structs.replace(recipe, schedules=(schedule,))


def sides_of(stages: Stages, stage: BisectStage) -> tuple[tvm.IRModule | None, tvm.IRModule]:
    """Return the modules before and after the last step; of the translation, that alone.

    Raises a `LowerscopeError` if a step fails.
    """
    if stage == "translate":
        return None, stages.module
    after = stages.completed
    last = [each for each in stages.transformed.runs if each.depth == 0][-1]
    return last.before, after


def imports_of(model: SmallModel) -> str:
    """Return the imports of a model's program."""
    return "import operator\n\nimport torch" if "operator." in model.text() else "import torch"


def runs_in_torch(model: SmallModel) -> bool:
    names: dict[str, Any] = {}
    state = torch.get_rng_state()
    with contextlib.suppress(Exception), torch.inference_mode():
        # The text is our own; whatever torch raises, the shapes do not fit.
        exec(f"{imports_of(model)}\n{model.text()}", names)
        names["Model"]().eval()(*names["example_inputs"]())
        torch.set_rng_state(state)
        return True
    torch.set_rng_state(state)
    return False


def is_optimised_wrongly(small: Small) -> bool:
    """Return whether a small model is right if LLVM does not optimise."""
    try:
        return Prober(small.stages, small.recipe).without_optimisation(small.after).is_right
    except LowerscopeError:
        return False
