"""The model and its nodes in float64, by which rounding is told from a fault; its error budget."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import torch
from torch import fx
from torch.func import functional_call
from torch.overrides import TorchFunctionMode

from lowerscope.core.model.comparison_records import WeightDtype
from lowerscope.core.model.problems import LowerscopeError, is_interrupt
from lowerscope.core.run.checking import reductions_of
from lowerscope.core.run.compare.verdicts import Exact, PreciseRun, as_far, noise_between
from lowerscope.core.run.execution import Reference, copied
from lowerscope.core.run.torch_interpreter import TORCH_ERRORS, TorchValues
from lowerscope.core.sources.opened_model import in_eval_mode
from lowerscope.core.sources.pytree import CallSpec, mapped
from lowerscope.core.tracing.example_run import dtypes_of
from lowerscope.core.tracing.tracing import TracedModel


def rounding_of_sums(function: Any, coarsest: torch.dtype) -> float:
    """Return the relative rounding of the sums in a TensorIR function, in any order.

    A sum of ``K`` terms of either sign, or of one, is off by up to about ``sqrt(K)`` roundings of
    the dtype that it accumulates in. A coarser dtype than the model itself has is no rounding of
    the model.

    Args:
        coarsest: The coarsest of the dtypes that the model computes in.
    """
    most = torch.finfo(coarsest).eps
    return sum(
        math.sqrt(terms) * min(torch.finfo(kind).eps, most) / 2
        for terms, dtype in reductions_of(function)
        if isinstance(kind := getattr(torch, dtype, None), torch.dtype) and kind.is_floating_point
    )


def longest_sums(functions: Mapping[str, Any], coarsest: torch.dtype) -> float:
    """Return the largest relative rounding of the sums in any of the functions."""
    return max((rounding_of_sums(each, coarsest) for each in functions.values()), default=0.0)


def dtypes_computed_in(traced: TracedModel) -> dict[str, torch.dtype]:
    """Return the coarsest dtype of floats in which each node, or one before it, is computed.

    Inputs and weights are exact. Nodes that no float goes into are absent.
    """
    found: dict[str, torch.dtype] = {}
    for node in traced.graph_module.graph.nodes:
        before = [found[each.name] for each in node.all_input_nodes if each.name in found]
        known = _dtypes_of_call(traced, node)
        if not (before or known):
            continue
        for name in (node.name, *traced.mutations.get(node.name, ())):
            found[name] = _coarsest(before + known)
    return found


def _dtypes_of_call(traced: TracedModel, node: fx.Node) -> list[torch.dtype]:
    own = dtypes_of(traced.values[node.name]) if node.op.startswith("call") else ()
    return [_FLOATS[each] for each in own if each in _FLOATS]


def _coarsest(dtypes: Iterable[torch.dtype]) -> torch.dtype:
    return max(dtypes, key=lambda each: torch.finfo(each).eps, default=torch.float64)


_FLOATS = {
    str(each).removeprefix("torch."): each
    for each in (torch.bfloat16, torch.float16, torch.float32, torch.float64)
}


MOST_BYTES = 1 << 26
"""Limit on the parameters that are kept in float64, in bytes, and on each part of a larger one."""

_WIDE = {
    torch.bfloat16: torch.float64,
    torch.float16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}

_CASTS: Mapping[Any, torch.dtype] = {
    torch.Tensor.float: torch.float32,
    torch.Tensor.half: torch.float16,
    torch.Tensor.bfloat16: torch.bfloat16,
    torch.Tensor.cfloat: torch.complex64,  # type: ignore[attr-defined]
}


_DRAWING = frozenset(
    {"rand", "rand_like", "randn", "randn_like", "normal", "normal_", "uniform_", "bernoulli"}
)
"""Functions that draw other random numbers in another dtype."""

_RMS_NORMS = frozenset(
    {torch.nn.functional.rms_norm, torch.rms_norm, torch.ops.aten.rms_norm.default}
)
"""Functions that add the epsilon of their dtype unless another is given, the fourth argument."""


def precise_run(
    model: torch.nn.Module, inputs: Sequence[torch.Tensor], seed: int, calling: CallSpec
) -> PreciseRun | None:
    """Run a model in float64 instead of each narrower dtype.

    Returns ``None`` if that fails, or computes something else at each call.
    """
    parts = dict(itertools.chain(model.named_parameters(), model.named_buffers()))
    held, weights = [*parts.values(), *inputs], WideWeights()
    mode = Widened(held, weights)
    wide = _WideModel(model, {k: widened(parts[k]) for k in parts.keys() - _widened_late(model)})
    try:
        outputs, shaken, again = (
            _outputs(wide, [widened(each) for each in inputs], seed, calling, each)
            for each in (mode, Widened(held, weights, seed), Widened(held, weights))
        )
    except BaseException as error:
        if is_interrupt(error):
            raise
        # The model requires its own dtypes: its rounding is unknown.
        return None
    if not all(map(_is_same, outputs, again)):
        return None

    @cache
    def sides() -> list[tuple[torch.Tensor, ...]]:
        modes = _shaking_more(held, weights, seed, mode.coarsest)
        try:
            return [
                _outputs(wide, [widened(each) for each in inputs], seed, calling, other)
                for other in modes
            ]
        except LowerscopeError:
            return []

    return PreciseRun(outputs, mode.coarsest, shaken=shaken, sides=sides if mode.jumps else None)


def _is_same(value: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two results are equal, but for the order of sums in float64."""
    if value.shape != other.shape or value.dtype is not other.dtype:
        return False
    return torch.allclose(value, other, rtol=1e-9, atol=1e-12, equal_nan=True)


def _outputs(
    model: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    seed: int,
    calling: CallSpec,
    mode: Widened,
) -> tuple[torch.Tensor, ...]:
    reference = Reference(model, inputs, seed, calling)
    with in_float64(mode):
        return reference.outputs()


def widened(value: torch.Tensor) -> torch.Tensor:
    """Return a copy in float64, or complex128; of integers and booleans, in their own dtype."""
    return value.detach().to(_WIDE.get(value.dtype, value.dtype), copy=True)


class _WideModel(torch.nn.Module):
    """A model with replaced parameters and buffers."""

    def __init__(self, model: torch.nn.Module, parts: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self._model, self._parts = model, dict(parts)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return functional_call(self._model, self._parts, args, kwargs)


def _widened_late(model: torch.nn.Module) -> set[str]:
    """Return the names of the parameters that `Widened` sees, and widens, at each use.

    It does not see those in TorchScript. Buffers may be written into.
    """
    return {
        f"{prefix}.{name}" if prefix else name
        for prefix, module in model.named_modules()
        if not isinstance(module, torch.jit.ScriptModule)
        for name in module._parameters
    }


class WideWeights:
    """Parameters in float64, each made at its first use, and kept as long as there is room.

    Args:
        change: Makes values in float64 other ones.
    """

    def __init__(self, change: Callable[[torch.Tensor], torch.Tensor] | None = None) -> None:
        self._change = change
        self._kept: dict[int, tuple[torch.nn.Parameter, torch.Tensor]] = {}
        self._room = MOST_BYTES

    def of(self, parameter: torch.nn.Parameter) -> torch.Tensor:
        """Return the parameter in float64; one of integers as it is."""
        if self._change is None and parameter.dtype not in _WIDE:
            return parameter
        if id(parameter) in self._kept:
            return self._kept[id(parameter)][1]
        made = self._made(parameter)
        if made.nbytes <= self._room:
            self._room -= made.nbytes
            self._kept[id(parameter)] = parameter, made
        return made

    def is_large(self, parameter: Any) -> bool:
        """Return whether a value is a parameter that is not to be in float64 as a whole."""
        return (
            isinstance(parameter, torch.nn.Parameter)
            and parameter.dtype in _WIDE
            and parameter.numel() * 8 > MOST_BYTES > 0
        )

    def parts(self, parameter: torch.nn.Parameter, axis: int) -> Iterator[torch.Tensor]:
        """Yield slices of a large parameter in float64, one part after the other."""
        if axis and self._change is not None:
            # A slice along the first axis has a scale of its own.
            yield self._made(parameter)
            return
        count = -(-parameter.numel() * 8 // MOST_BYTES)
        yield from map(self._made, parameter.detach().chunk(count, axis))

    def rows(self, parameter: torch.nn.Parameter, places: torch.Tensor) -> torch.Tensor:
        """Return some rows of a large parameter in float64."""
        rows = parameter.detach()[places.flatten()]
        return self._made(rows).reshape(*places.shape, *parameter.shape[1:])

    def _made(self, values: torch.Tensor) -> torch.Tensor:
        made = widened(values)
        if self._change is not None and made.is_floating_point():
            made = self._change(made)
        return made


_JUMPING = frozenset(
    {"remainder", "mod", "fmod", "frac", "floor_divide", "floordiv", "floor", "ceil", "round"}
    | {"trunc", "fix", "sign", "sgn", "heaviside"}
    | {"fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine"}
)
"""Functions of floats whose values jump where they are rounded the other way."""

_TO_INTEGERS = frozenset({"long", "int", "short", "char", "byte"})


def _is_cast_to_integers(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a function makes integers of floats, which jumps as `floor` does."""
    if not args or not isinstance(args[0], torch.Tensor) or not args[0].is_floating_point():
        return False
    if name in ("to", "type", "type_as", "_to_copy"):
        given = (getattr(each, "dtype", each) for each in (*args[1:], *kwargs.values()))
        kinds = (each for each in given if isinstance(each, torch.dtype))
        return any(not (each.is_floating_point or each.is_complex) for each in kinds)
    return name in _TO_INTEGERS


class Widened(TorchFunctionMode):
    """Mode that computes in float64 instead of narrower dtypes, and records the coarsest.

    Args:
        weights: Parameters in float64.
        seed: If given, the result of each function is rounded up or down at random, as if in the
            coarsest dtype.
        roundings: How many roundings that are.
        apart: Whether functions that jump are given other roundings of one tensor.

    Attributes:
        jumps: Whether a function was called whose value jumps.
    """

    def __init__(
        self,
        values: Sequence[torch.Tensor],
        weights: WideWeights,
        seed: int | None = None,
        roundings: float = 1.0,
        *,
        apart: bool = False,
    ) -> None:
        super().__init__()
        self.coarsest = torch.float64
        self.jumps = False
        self._weights, self._roundings, self._apart = weights, roundings, apart
        self._random = None if seed is None else torch.Generator().manual_seed(seed)
        for each in values:
            self.note(each.dtype)

    def note(self, dtype: torch.dtype) -> None:
        """Record that the model itself has values of `dtype`."""
        if dtype in _WIDE and torch.finfo(dtype).eps > torch.finfo(self.coarsest).eps:
            self.coarsest = dtype

    def _wide(self, value: Any) -> Any:
        if isinstance(value, torch.nn.Parameter):
            return self._weights.of(value)
        if not isinstance(value, torch.dtype):
            return value
        self.note(value)
        return _WIDE.get(value, value)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if torch.is_autocast_enabled("cpu"):
            # Autocast casts float32 only, and leaves float64 unchanged.
            self.note(torch.get_autocast_dtype("cpu"))
        name = func.__name__.partition(".")[0]
        is_cast = _is_cast_to_integers(name, args, kwargs or {})
        if is_cast or name.strip("_") in _JUMPING or (kwargs or {}).get("rounding_mode"):
            self.jumps = True
            if self._apart and (name.startswith("__") or not name.endswith("_")):
                args = tuple(mapped(each, self._shaken_tensor) for each in args)
        if name in _DRAWING:
            return self._drawn(func, name, args, kwargs or {})
        if (found := self._of_large(func, args, kwargs or {})) is not None:
            return self._shaken_unless_view(found, ())
        if func in _RMS_NORMS and (kwargs or {}).get("eps", *args[3:] or (None,)) is None:
            # 16-bit values are summed in float32, which has the epsilon then.
            own = torch.float64 if self.coarsest is torch.float64 else torch.float32
            args, kwargs = args[:3], {**(kwargs or {}), "eps": torch.finfo(own).eps}
        args = tuple(mapped(each, self._wide) for each in args)
        if func in _CASTS:
            self.note(_CASTS[func])
            return args[0].to(_WIDE[_CASTS[func]])
        result = func(*args, **{k: mapped(each, self._wide) for k, each in (kwargs or {}).items()})
        return self._shaken_unless_view(result, args)

    def _of_large(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> torch.Tensor | None:
        """Return the value of a function of a large weight, of which a part is in float64.

        ``None`` for other functions, and without such a weight.
        """
        place = _WITH_WEIGHT.get(func)
        if place is None or len(args) <= place or not self._weights.is_large(args[place]):
            return None
        if func in _EMBEDDINGS:
            # The other arguments are about gradients, but for `max_norm`.
            given = args[3:4] if place else ()
            if kwargs.get("max_norm", *given or (None,)) is not None:
                return None
            return self._weights.rows(args[place], args[1 - place])
        if kwargs or args[place].dim() != 2:
            return None
        if func in _LINEAR:
            rows, weight, *bias = args
            parts = self._weights.parts(weight, 0)
            product = _side_by_side(torch.nn.functional.linear, self._wide(rows), parts)
        else:
            *bias, rows, weight = args
            parts = self._weights.parts(weight, 1)
            product = _side_by_side(torch.matmul, self._wide(rows), parts)
        return product + self._wide(bias[0]) if bias and bias[0] is not None else product

    def _shaken_unless_view(self, result: Any, args: tuple[Any, ...]) -> Any:
        if self._random is None or not isinstance(result, torch.Tensor):
            return result
        given = {_storage(each) for each in args if isinstance(each, torch.Tensor)}
        # A view has been rounded already, and what was written in place has other views.
        return result if _storage(result) in given else self.shaken(result)

    def _drawn(
        self,
        func: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Draw random numbers in the model's own dtype: in float64, torch draws others."""

        def own(value: Any) -> Any:
            is_wide = isinstance(value, torch.Tensor) and value.dtype is torch.float64
            return value.to(self.coarsest) if is_wide else value

        narrow = mapped(args, own)
        if name.endswith("_"):
            return args[0].copy_(func(*narrow, **kwargs))
        if name.startswith("rand") and kwargs.get("dtype") is None:
            dtype = self.coarsest if name.endswith("_like") else torch.float32
            kwargs = {**kwargs, "dtype": dtype}
        return widened(func(*narrow, **{k: mapped(each, own) for k, each in kwargs.items()}))

    def _shaken_tensor(self, value: Any) -> Any:
        return self.shaken(value) if isinstance(value, torch.Tensor) else value

    def shaken(self, value: torch.Tensor) -> torch.Tensor:
        """Return float64 values with one rounding up or down at each.

        That of what is smaller than the least normal number is as large as its own.
        """
        if value.dtype is not torch.float64 or self._random is None:
            return value
        signs = torch.rand(value.shape, generator=self._random, dtype=torch.float32).sub_(0.5)
        kind = torch.finfo(self.coarsest)
        size = value.abs().clamp_(min=kind.tiny).mul_(self._roundings * kind.eps / 2)
        return value + signs.sign_().double() * size.masked_fill_(value == 0, 0)


_SHAKES = 16
"""Runs with more roundings, of which one takes the other side of a jump almost always."""


def _shaking_more(
    values: Sequence[torch.Tensor], weights: WideWeights, seed: int, coarsest: torch.dtype
) -> Iterator[Widened]:
    """Yield modes that round by as much as a model does that computes in `coarsest`."""
    for place in range(1, _SHAKES + 1):
        apart = place % 2 == 0
        mode = Widened(values, weights, seed + place, as_far(coarsest), apart=apart)
        mode.note(coarsest)
        yield mode


def _side_by_side(
    product: Callable[..., torch.Tensor], rows: torch.Tensor, parts: Iterator[torch.Tensor]
) -> torch.Tensor:
    return torch.cat([product(rows, each) for each in parts], -1)


_ATEN = torch.ops.aten
_LINEAR = frozenset((torch.nn.functional.linear, _ATEN.linear.default))
_EMBEDDINGS = frozenset((torch.nn.functional.embedding, _ATEN.embedding.default))
_WITH_WEIGHT: Mapping[Any, int] = {
    **dict.fromkeys(_LINEAR, 1),
    torch.nn.functional.embedding: 1,
    _ATEN.embedding.default: 0,
    **dict.fromkeys((torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__), 1),
    **dict.fromkeys((torch.mm, torch.Tensor.mm, _ATEN.mm.default, _ATEN.matmul.default), 1),
    **dict.fromkeys((torch.addmm, _ATEN.addmm.default), 2),
}
"""Functions of which a part of the value depends on a part of a weight, and its place."""


def _storage(value: torch.Tensor) -> int:
    return value.untyped_storage().data_ptr()


@contextlib.contextmanager
def in_float64(mode: Widened) -> Iterator[None]:
    """Compute in float64 in the body."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with mode:
            yield
    finally:
        torch.set_default_dtype(usual)


def own_copy(graph: fx.GraphModule) -> fx.GraphModule:
    """Return a copy of a traced model for inference."""
    module = in_eval_mode(copied(graph))
    assert isinstance(module, fx.GraphModule)
    return module


def wide_copy(graph: fx.GraphModule) -> fx.GraphModule:
    """Return a copy that `Widened` can run: its buffers and other tensors are float64."""
    module = own_copy(graph)
    late = _widened_late(module)
    wide: dict[int, torch.Tensor] = {}

    def of(value: torch.Tensor) -> torch.Tensor:
        if id(value) not in wide:
            made = widened(value)
            is_parameter = isinstance(value, torch.nn.Parameter)
            wide[id(value)] = torch.nn.Parameter(made, False) if is_parameter else made
        return wide[id(value)]

    for prefix, each in list(module.named_modules()):
        owned = itertools.chain(each._parameters.items(), each._buffers.items())
        tensors = ((k, v) for k, v in vars(each).items() if isinstance(v, torch.Tensor))
        for name, value in [*owned, *tensors]:
            is_late = (f"{prefix}.{name}" if prefix else name) in late
            if value is not None and value.dtype in _WIDE and not is_late:
                setattr(each, name, of(value))
    return module


# --- Values of FX nodes in float64: in the run of the whole model, and of each node alone ---

ERRORS = (*TORCH_ERRORS, RecursionError, NotImplementedError, LowerscopeError)
"""Exceptions of a node that cannot be computed in float64: its rounding is unknown then."""


class Float64Nodes:
    """A traced model in float64; nothing is computed before a value is requested.

    Args:
        pending: Returns the nodes whose values in the run may still be requested.
        sums: Relative rounding of the longest sums in the built module, by its functions' names.
    """

    def __init__(
        self,
        traced: TracedModel,
        inputs: Sequence[torch.Tensor],
        seed: int,
        pending: Callable[[], Sequence[str]],
        sums: Mapping[str, float],
    ) -> None:
        self._traced, self._inputs, self._seed = traced, inputs, seed
        self._pending, self._sums = pending, sums
        self._nodes = {each.name: each for each in traced.graph_module.graph.nodes}
        self._weights = WideWeights()
        self._mode = Widened((), self._weights)
        self._shaking = Widened((), self._weights, seed)
        self._values: tuple[TorchValues, TorchValues] | None = None
        self._awaited: frozenset[str] = frozenset()
        self._alone: fx.Interpreter | None = None
        self._failed = False

    @cached_property
    def _computed_in(self) -> Mapping[str, torch.dtype]:
        return dtypes_computed_in(self._traced)

    def computed_in(self, name: str) -> torch.dtype | None:
        """Return the coarsest dtype that a node depends on: see `dtypes_computed_in`."""
        return self._computed_in.get(name)

    def in_run(self, name: str, path: Sequence[Any]) -> Exact | None:
        """Return a tensor of a node in the run; ``None`` if it cannot be computed."""
        if self._failed:
            return None
        try:
            if self._values is None:
                self._values = self._started()
            found = []
            for values, mode in zip(self._values, (self._mode, self._shaking), strict=True):
                with in_float64(mode):
                    found.append(at_path(values.of(name), path))
            value, other = found
        except ERRORS:
            self._failed = True
            return None
        sums = max(self._sums.values(), default=0.0)
        noise = noise_between(value, other)
        sides = partial(self._sides_in_run, name, path) if self._mode.jumps else None
        return Exact(value, self._mode.coarsest, sums, noise, self.computed_in(name), sides)

    def _sides_in_run(self, name: str, path: Sequence[Any]) -> list[torch.Tensor]:
        original = self._traced.graph_module
        inputs = [widened(each) for each in self._inputs]
        found = []
        try:
            for mode in _shaking_more((), self._weights, self._seed, self._mode.coarsest):
                wide = wide_copy(original)
                values = TorchValues(original, inputs, self._seed, {name: 1}, wide)
                with in_float64(mode):
                    found.append(at_path(values.of(name), path))
        except ERRORS:
            return []
        return found

    def used(self, name: str) -> None:
        """Drop the value of a node."""
        if self._values is not None and name in self._awaited:
            for each in self._values:
                each.used(name)

    def alone(
        self,
        name: str,
        paths: Sequence[Sequence[Any]],
        reads: Sequence[str],
        values: TorchValues,
        functions: Sequence[str],
    ) -> list[Exact] | None:
        """Return the tensors of a node alone; ``None`` if they cannot be computed.

        Args:
            reads: Nodes whose values it is given, which are torch's in `values`.
            functions: Names of the built functions that compute it.
        """
        mode = Widened((), self._weights)
        shaking = Widened((), self._weights, self._seed)
        try:
            found = [at_path(self.computed(name, reads, values, mode), path) for path in paths]
            moved = [at_path(self.computed(name, reads, values, shaking), path) for path in paths]
            # The result is rounded to its own dtype.
            for path in paths:
                mode.note(at_path(values.of(name), path).dtype)
        except ERRORS:
            return None
        sums = sum(self._sums.get(each, 0.0) for each in dict.fromkeys(functions))
        computed_in = self._computed_alone(name, reads)

        def sides(path: Sequence[Any]) -> list[torch.Tensor]:
            modes = _shaking_more((), self._weights, self._seed, mode.coarsest)
            return [at_path(self.computed(name, reads, values, each), path) for each in modes]

        return [
            Exact(
                *(each, mode.coarsest, sums, noise_between(each, shifted), computed_in),
                sides=partial(sides, path) if mode.jumps else None,
            )
            for each, shifted, path in zip(found, moved, paths, strict=True)
        ]

    def _computed_alone(self, name: str, reads: Collection[str]) -> torch.dtype:
        """Return the coarsest dtype of a node and those before it, after those it is given."""
        pending, found = [self._nodes[name]], set[fx.Node]()
        while pending:
            node = pending.pop()
            if node not in found:
                found.add(node)
                pending += [each for each in node.all_input_nodes if each.name not in reads]
        return _coarsest(each for node in found for each in _dtypes_of_call(self._traced, node))

    def computed(self, name: str, reads: Sequence[str], values: TorchValues, mode: Widened) -> Any:
        """Compute a node in float64 from torch's values of the nodes that it reads.

        Raises any of `ERRORS`.
        """
        graph = self._traced.graph_module.graph
        places = {each: i for i, each in enumerate(n for n in graph.nodes if n.op == "placeholder")}
        interpreter = self._interpreter()
        known: dict[fx.Node, Any] = {}

        def taken(value: Any) -> Any:
            def of(tensor: Any) -> Any:
                if not isinstance(tensor, torch.Tensor):
                    return tensor
                mode.note(tensor.dtype)
                return mode.shaken(widened(tensor))

            return mapped(value, of)

        def value(node: fx.Node) -> Any:
            if node not in known:
                known[node] = made(node)
            return known[node]

        def made(node: fx.Node) -> Any:
            if node.name != name and node.name in reads:
                return taken(values.of(node.name))
            if node.op == "placeholder":
                return taken(self._inputs[places[node]])
            given = {each: value(self._changed(each, node)) for each in node.all_input_nodes}
            if node.name in self._traced.mutations:
                # What else reads them is computed later or earlier.
                given = {each: mapped(part, _own) for each, part in given.items()}
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), given.__getitem__)
            self._note_weights(node, mode)
            with in_float64(mode):
                return getattr(interpreter, node.op)(node.target, args, kwargs)

        with torch.inference_mode():
            return value(self._nodes[name])

    def _changed(self, node: fx.Node, reader: fx.Node) -> fx.Node:
        """Return the node whose value another reads in place of one changed before it."""
        last = node
        for name, changed in self._traced.mutations.items():
            if node.name in changed and last < self._nodes[name] < reader:
                last = self._nodes[name]
        return last

    def _note_weights(self, node: fx.Node, mode: Widened) -> None:
        """Record the dtypes that the model itself has the weights of a node in."""
        module = self._traced.graph_module
        if node.op == "call_module":
            part = module.get_submodule(str(node.target))
            for each in itertools.chain(part.parameters(), part.buffers()):
                mode.note(each.dtype)
        elif node.op == "get_attr":
            value: Any = module
            for step in str(node.target).split("."):
                value = getattr(value, step)
            if isinstance(value, torch.Tensor):
                mode.note(value.dtype)

    def _interpreter(self) -> fx.Interpreter:
        graph_module = self._traced.graph_module
        if self._alone is None:
            self._alone = fx.Interpreter(wide_copy(graph_module), graph=graph_module.graph)
        return self._alone

    def _started(self) -> tuple[TorchValues, TorchValues]:
        original = self._traced.graph_module
        for each in (*original.parameters(), *original.buffers(), *self._inputs):
            self._mode.note(each.dtype)
            self._shaking.note(each.dtype)
        self._awaited = frozenset(self._pending())
        inputs, uses = [widened(each) for each in self._inputs], dict.fromkeys(self._awaited, 1)
        plain, other = (
            TorchValues(original, inputs, self._seed, uses, wide_copy(original))
            for _side in range(2)
        )
        return plain, other


def _own(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def at_path(value: Any, path: Sequence[Any]) -> torch.Tensor:
    """Return the tensor at a path into a node's value."""
    for step in path:
        value = value[step]
    return value if isinstance(value, torch.Tensor) else torch.tensor(value)


# --- The error budget of a run: where rounding grows, and the cost of narrower weights ---
# A model is run node by node in float64. Beside that, each node is computed alone on these exact
# values: as torch does, which tells the error that it makes itself from the one that it was given;
# and with its weights rounded to a narrower dtype. Nothing of the model is changed.


@dataclass(frozen=True)
class NodeBudget:
    """The exact value of a node, and relative errors of it: root mean squares.

    `made`: by torch's node alone, given exact values in its own dtype. `narrow_made`, `narrow`:
    with narrow weights, of the node alone and of the whole run.
    """

    exact: torch.Tensor
    made: float | None
    narrow_made: float | None
    narrow: float | None


class Referee:
    """A traced model in float64, beside torch's nodes and narrower weights.

    Args:
        names: Nodes whose values are requested, in graph order.
        dtype: Of narrow weights; empty for none.
    """

    def __init__(
        self,
        traced: TracedModel,
        inputs: Sequence[torch.Tensor],
        seed: int,
        names: Collection[str],
        dtype: WeightDtype,
    ) -> None:
        graph = traced.graph_module
        self._nodes = {each.name: each for each in graph.graph.nodes}
        self._changed = {*traced.mutations, *itertools.chain(*traced.mutations.values())}
        uses = Counter(names)
        uses.update(given.name for name in names for given in self._nodes[name].all_input_nodes)
        self._mode = Widened((), WideWeights())
        wide = [widened(each) for each in inputs]
        self._own = own_copy(graph)
        self._wide = wide_copy(graph)
        self._exact = TorchValues(graph, wide, seed, uses, wide_copy(graph))
        self._torch = TorchValues(graph, inputs, seed, uses)
        self._narrow_module: fx.GraphModule | None = None
        self._narrow: TorchValues | None = None
        self._narrow_mode = Widened((), WideWeights(lambda each: narrowed(each, dtype)))
        for each in (*graph.parameters(), *graph.buffers(), *inputs):
            self._mode.note(each.dtype)
            self._narrow_mode.note(each.dtype)
        if dtype:
            self._narrow_module = wide_copy(graph)
            _narrow_own(self._narrow_module, graph, dtype)
            self._narrow = TorchValues(graph, wide, seed, Counter(names), self._narrow_module)

    def of(self, name: str, path: Sequence[Any]) -> NodeBudget:
        """Return a tensor of a node.

        Raises any of `ERRORS` if it cannot be computed in float64.
        """
        with in_float64(self._mode):
            exact = at_path(self._exact.of(name), path)
        with in_float64(self._narrow_mode):
            narrow = None if self._narrow is None else at_path(self._narrow.of(name), path)
        weighted = self._has_weights(name)
        narrow_alone = None
        if weighted:
            narrow_alone = self._alone(name, self._narrow_module, self._narrow_mode, _same)
        right = self._alone(
            name, self._wide, self._mode, lambda *each: _cast(_cast(*each), each[0])
        )
        own = None if right is None else self._alone(name, self._own, None, _cast)
        return NodeBudget(
            exact,
            made=None if own is None else relative_error(at_path(own, path), at_path(right, path)),
            narrow_made=None
            if narrow_alone is None
            else relative_error(at_path(narrow_alone, path), exact),
            narrow=None if narrow is None else relative_error(narrow, exact),
        )

    def used(self, name: str) -> None:
        """Drop the values that nothing else needs."""
        given = (each.name for each in self._nodes[name].all_input_nodes)
        for each in (name, *given):
            self._exact.used(each)
            self._torch.used(each)
        if self._narrow is not None:
            self._narrow.used(name)

    def _has_weights(self, name: str) -> bool:
        node, module = self._nodes[name], self._narrow_module
        if module is None:
            return False
        if node.op == "call_module":
            part = module.get_submodule(str(node.target))
            return any(each.is_floating_point() for each in part.parameters())
        return any(each.op == "get_attr" for each in node.all_input_nodes)

    def _alone(
        self,
        name: str,
        module: fx.GraphModule | None,
        mode: Widened | None,
        given_as: Callable[[Any, Any], Any],
    ) -> Any | None:
        """Compute a node on the exact values of its inputs.

        Returns ``None`` if it changes tensors in place, computes nothing, or fails.

        Args:
            mode: ``None`` for torch's own dtypes.
            given_as: Makes an input of its exact value and torch's.
        """
        node = self._nodes[name]
        given = {each.name for each in node.all_input_nodes}
        if module is None or not node.op.startswith("call_") or self._changed & {name, *given}:
            return None
        interpreter = fx.Interpreter(module, graph=node.graph)

        def value(each: fx.Node) -> Any:
            if each.op == "get_attr":
                return interpreter.fetch_attr(str(each.target))
            return given_as(self._exact.of(each.name), self._torch.of(each.name))

        try:
            # Before the mode, which would leave out the casts.
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), value)
            with torch.random.fork_rng(devices=[]), torch.inference_mode():
                # In each dtype, the same random numbers.
                torch.manual_seed(0)
                with nullcontext() if mode is None else in_float64(mode):
                    return getattr(interpreter, node.op)(node.target, args, kwargs)
        except ERRORS:
            return None


def _same(value: Any, _like: Any) -> Any:
    return value


def _cast(value: Any, like: Any) -> Any:
    """Return a value with the dtypes of another one of the same structure."""
    if isinstance(value, torch.Tensor):
        return value.to(like.dtype)
    if isinstance(value, (tuple, list)):
        return type(value)(_cast(*each) for each in zip(value, like, strict=True))
    return value


def _narrow_own(module: fx.GraphModule, original: fx.GraphModule, dtype: WeightDtype) -> None:
    """Round the weights of a copy that it does not share with its original."""
    shared = set(map(id, original.parameters()))
    with torch.no_grad():
        for each in itertools.chain(module.parameters(), module.buffers()):
            if each.is_floating_point() and id(each) not in shared:
                each.copy_(narrowed(each, dtype))


def narrowed(weight: torch.Tensor, dtype: WeightDtype) -> torch.Tensor:
    """Return the values of a weight in a narrower dtype.

    To ``int8``, each slice along the first axis has a scale of its own. Vectors stay as they are,
    and so do infinite elements, such as those of a mask.
    """
    if dtype != "int8":
        return weight.to(getattr(torch, dtype)).to(weight.dtype)
    if weight.dim() < 2:
        return weight
    finite = weight.isfinite()
    sizes = weight.abs().where(finite, 0)
    largest = sizes.amax(dim=tuple(range(1, weight.dim())), keepdim=True)
    scale = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
    return ((weight / scale).round().clamp(-127, 127) * scale).where(finite, weight)


def relative_error(value: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the root mean square of an error, relative to that of the finite exact values."""
    if not exact.numel():
        return 0.0
    kind = torch.complex128 if exact.is_complex() else torch.float64
    value, exact = value.to(kind), exact.to(kind)
    same = (value == exact) | (value.isnan() & exact.isnan())
    error = float((value - exact).abs().masked_fill(same, 0).square().mean().sqrt())
    size = float(exact.abs().masked_fill(~exact.isfinite(), 0).square().mean().sqrt())
    return error / size if size else error
