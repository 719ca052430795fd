"""The decode step of a language model, declared by ``next_inputs`` in its file.

The call with the example inputs is the prefill. ``next_inputs(outputs, token)`` makes the inputs of
the next call from the outputs of the one before and the next token, of shape ``(batch, 1)``, in one
of the forms of ``example_inputs``. That call is the decode step: of the model itself, or of its
method ``decode`` where it has one, with the same parameters.

A model may keep its cache itself, in buffers or in tensors in attributes. These are inputs and
outputs of each call then, besides those of the file.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import FunctionType
from typing import Any

import msgspec
import torch

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import Dimension, InputSpec
from lowerscope.core.model.texts import _
from lowerscope.core.sources.examples import (
    Examples,
    Signature,
    arguments_of,
    as_input,
    is_tensor,
    named_arguments,
    signature_of_model,
)
from lowerscope.core.sources.inputs import gather
from lowerscope.core.sources.opened_model import OpenedModel, mentions, version_of
from lowerscope.core.sources.pytree import Count, Path, Places, leaves, mapped, numbers
from lowerscope.core.sources.user_code import user_code

NAME = "length"
"""Name of the dimension of a cache that grows, if the user gives none."""


def decode_step(prefill: OpenedModel, seed: int, after: int) -> OpenedModel:
    """Return the decode step of a model, which shares its parameters.

    `after`: number of decode steps before the one that gives the example inputs.

    Raises `LowerscopeError` if its file declares none.
    """
    if prefill.next_inputs is None or prefill.model is None:
        raise LowerscopeError(
            _("the source has no decode step"),
            where=str(prefill.path),
            todo=_("Define next_inputs(outputs, token) in the file: the inputs of the next call"),
        )
    model = _stepping(prefill.model)
    signature = signature_of_model(model, str(prefill.path))
    decoding = Decoding(prefill, model, signature, seed, after)
    origin = _("next_inputs of {file}", file=prefill.path.name)
    examples = Examples(lambda: decoding.first.values, origin)
    offered = replace(prefill.offered, signature=signature, examples=examples)
    return replace(prefill, model=model, offered=offered, decoding=decoding)


def _stepping(model: torch.nn.Module) -> torch.nn.Module:
    """Return the model whose ``forward`` is its method ``decode``, if it has one."""
    method = getattr(type(model), "decode", None)
    if method is None:
        return model
    step = copy.copy(model)
    step.__class__ = type(type(model).__name__, (type(model),), {"forward": method})
    return step


# --- A model that keeps its cache itself ---

STATE = "state"
"""Name of the input and of the output with the tensors that a model writes into its attributes."""


def with_state(opened: OpenedModel, seed: int) -> OpenedModel:
    """Return a language model with the state that it keeps as an input and an output of its calls.

    The state is what its calls write into its buffers, and into other tensors in attributes of its
    modules. A model that keeps none is returned unchanged; so is one in which a tensor of the state
    has another name as well, and one whose calls go through hooks.
    """
    model, next_inputs = opened.model, opened.next_inputs
    if model is None or next_inputs is None or opened.offered.examples.make is None:
        return opened
    names = {each.rpartition(".")[2] for each in _tensors_of(model)}
    taken = opened.offered.signature.names
    if STATE in taken or not isinstance(type(model).forward, FunctionType):
        return opened
    if model._forward_hooks or model._forward_pre_hooks:
        return opened
    if not mentions(model, names):
        return opened
    with opened.environment():
        written = _written(opened, seed)
    if not written:
        return opened
    made = copy.copy(model)
    own = type(model)
    methods = {
        name: _stateful(getattr(own, name), written)
        for name in ("forward", "decode")
        if hasattr(own, name)
    }
    try:
        made.__class__ = type(own.__name__, (own,), {**methods, "__module__": own.__module__})
    except TypeError:
        # It decides itself who may be derived from it.
        return opened
    examples = opened.offered.examples

    def given() -> Any:
        values = examples.make() if callable(examples.make) else examples.make
        before = _tensors_of(model)
        state = {key: before[name].detach().clone() for key, name in written.items()}
        return _with_state(values, state, opened, "example_inputs")

    def following(outputs: Any, token: torch.Tensor) -> Any:
        values = next_inputs(outputs["outputs"], token)
        return _with_state(values, outputs[STATE], opened, "next_inputs")

    offered = replace(
        opened.offered,
        signature=signature_of_model(made, str(opened.path)),
        examples=replace(examples, make=given),
    )
    return replace(opened, model=made, offered=offered, next_inputs=following, gives_state=True)


def _with_state(values: Any, state: Any, opened: OpenedModel, source: str) -> Any:
    args, kwargs = arguments_of(values, opened.path, source)
    return tuple(args), {**kwargs, STATE: state}


def _tensors_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the buffers of a model, and other tensors in attributes of its modules, by path."""
    found: dict[str, torch.Tensor] = {}
    for path, module in model.named_modules():
        for name, value in (*vars(module).items(), *module._buffers.items()):
            is_plain = isinstance(value, torch.Tensor) and value.layout is torch.strided
            if is_plain and not value.is_quantized:
                found[f"{path}.{name}" if path else name] = value
    return found


def _names_of_memory(model: torch.nn.Module) -> Counter[int]:
    """Return how many parameters and attributes of modules have each memory, or hold it."""
    own = vars(torch.nn.Module()).keys()
    found: Counter[int] = Counter()
    for module in model.modules():
        kept = [each for name, each in vars(module).items() if name not in own]
        for _path, leaf in leaves([kept, *module._buffers.values(), *module._parameters.values()]):
            if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided:
                found[leaf.untyped_storage().data_ptr()] += 1
    return found


def _holder(model: torch.nn.Module, path: str) -> tuple[dict[str, Any], str]:
    """Return the dict of a module that has the tensor at a path, and its key there."""
    parent, _dot, name = path.rpartition(".")
    module = model.get_submodule(parent)
    return (module._buffers if name in module._buffers else vars(module)), name


def _written(opened: OpenedModel, seed: int) -> dict[str, str]:
    """Return the paths of the tensors that the first two calls write, by their keys in the state.

    It is empty if a call fails, which is reported when the model is traced.
    """
    model = opened.model
    assert model is not None
    before = _tensors_of(model)
    contents = {name: each.detach().clone() for name, each in before.items()}
    versions = {name: version_of(each) for name, each in before.items()}
    step = _stepping(model)
    decoding = Decoding(opened, step, signature_of_model(step, str(opened.path)), seed)
    shared = _names_of_memory(model)
    try:
        decoding.first  # noqa: B018
        after = _tensors_of(model)
        shared |= _names_of_memory(model)
    except LowerscopeError:
        return {}
    finally:
        changed = {
            name
            for name, each in before.items()
            if version_of(each) != versions[name] or not _is_same(each, contents[name])
        }
        for name, value in before.items():
            holder, key = _holder(model, name)
            if name in changed:
                with torch.no_grad():
                    value.copy_(contents[name])
            holder[key] = value
    names = [
        name
        for name, value in before.items()
        if name in after
        and (after[name] is not value or name in changed)
        and (after[name].shape, after[name].dtype) == (value.shape, value.dtype)
    ]
    memory = (each[name].untyped_storage().data_ptr() for each in (before, after) for name in names)
    if any(shared[each] > 1 for each in memory):
        return {}
    keys = [name.replace(".", "_") for name in names]
    return dict(zip(keys if len(set(keys)) == len(keys) else names, names, strict=True))


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors of one type have the same bits."""
    first, second = (each.detach().resolve_conj().resolve_neg() for each in (one, other))
    first, second = (each.contiguous().reshape(-1) for each in (first, second))
    return torch.equal(first.view(torch.uint8), second.view(torch.uint8))


def _stateful(own: Callable[..., Any], written: Mapping[str, str]) -> Callable[..., Any]:
    """Return a method that takes the state by keyword, and returns it beside the outputs."""

    @functools.wraps(own)
    def method(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        state = kwargs.pop(STATE)
        holders = {key: _holder(self, name) for key, name in written.items()}
        before = {key: holder[name] for key, (holder, name) in holders.items()}
        try:
            for key, (holder, name) in holders.items():
                holder[name] = state[key].clone()
            outputs = own(self, *args, **kwargs)
            after = {key: holder[name] for key, (holder, name) in holders.items()}
        finally:
            for key, (holder, name) in holders.items():
                holder[name] = before[key]
        return {"outputs": outputs, STATE: after}

    signature = inspect.signature(own)
    parameters = list(signature.parameters.values())
    last = parameters[-1:] if parameters[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    more = inspect.Parameter(STATE, inspect.Parameter.KEYWORD_ONLY)
    parameters = [*parameters[: len(parameters) - len(last)], more, *last]
    vars(method)["__signature__"] = signature.replace(parameters=parameters)
    return method


def greedy(outputs: Any) -> torch.Tensor:
    """Return the most likely next token, of shape ``(batch, 1)``.

    The first output of floats is the scores of each token of the vocabulary, at the last position.

    Raises `LowerscopeError` if there is none.
    """
    scores = next(
        (
            leaf
            for _path, leaf in leaves(outputs)
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.dim()
        ),
        None,
    )
    if scores is None:
        raise LowerscopeError(
            _("the model returns no scores of tokens"),
            where="next_inputs",
            todo=_("Return the logits as the first output"),
        )
    last = scores[:, -1] if scores.dim() > 2 else scores.reshape(-1, scores.shape[-1])
    return last.argmax(-1, keepdim=True)


@dataclass(frozen=True)
class FirstStep:
    """The inputs of the decode step that is opened.

    `values`: in a form of ``example_inputs``, with a `Count` for each number that changes.
    `shapes`: the shapes of its tensors in this step and in the next one, by name.
    `counts`: the paths of the numbers that change.
    """

    values: Any
    tensors: Mapping[str, torch.Tensor]
    shapes: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]
    counts: frozenset[Path]


class Decoding:
    """The steps of a model in torch, and the inputs of each."""

    def __init__(
        self,
        prefill: OpenedModel,
        model: torch.nn.Module,
        signature: Signature,
        seed: int,
        after: int = 0,
    ) -> None:
        self._prefill = prefill
        self._model = model
        self._signature = signature
        self._seed = seed
        self._after = after

    @cached_property
    def first(self) -> FirstStep:
        """The decode step that is opened; the environment must be entered."""
        opened = self._prefill
        offered, prefill = opened.offered, opened.model
        assert prefill is not None
        offered.random.restore()
        given = gather(
            (), offered.signature, offered.examples, offered.fixed, self._seed, opened.path, {}
        )
        args, kwargs = given.calling.arguments([each.value.clone() for each in given.values])
        failure = _("computing the first tokens failed")
        with torch.no_grad(), user_code(opened.path, failure):
            outputs = prefill(*args, **kwargs)
            for _step in range(self._after):
                args, kwargs = self.arguments(outputs, greedy(outputs))
                outputs = self._model(*args, **kwargs)
            one, keywords = self._arguments(outputs, greedy(outputs))
            kept = {name: mapped(each, _cloned) for name, each in one.items()}
            positional = [each for name, each in one.items() if name not in keywords]
            outputs = self._model(*positional, **{name: one[name] for name in keywords})
            two, _keywords = self._arguments(outputs, greedy(outputs))
        before, after = _numbers(kept), _numbers(two)
        counts = frozenset(
            path for path, number in before.items() if after.get(path, number) != number
        )
        first, second = self._tensors(kept, counts), self._tensors(two, counts)
        shapes = {
            name: (tuple(each.shape), tuple(second.get(name, each).shape))
            for name, each in first.items()
        }
        counted = _counted(kept, counts)
        by_position = tuple(each for name, each in counted.items() if name not in keywords)
        by_keyword = {name: each for name, each in counted.items() if name in keywords}
        return FirstStep((by_position, by_keyword), first, shapes, counts)

    def arguments(
        self, outputs: Any, token: torch.Tensor
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the next call, by position and by keyword."""
        named, keywords = self._arguments(outputs, token)
        positional = tuple(each for name, each in named.items() if name not in keywords)
        return positional, {name: named[name] for name in named if name in keywords}

    def inputs(self, outputs: Any, token: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the tensors among the inputs of the next call, by name."""
        return self._tensors(self._arguments(outputs, token)[0], self.first.counts)

    def _arguments(
        self, outputs: Any, token: torch.Tensor
    ) -> tuple[dict[str, Any], frozenset[str]]:
        opened = self._prefill
        assert opened.next_inputs is not None
        with user_code(opened.path, _("making the inputs of the next step failed")):
            values = opened.next_inputs(outputs, token)
        return named_arguments(values, self._signature, opened.path, "next_inputs")

    def _tensors(
        self, arguments: Mapping[str, Any], counts: frozenset[Path]
    ) -> dict[str, torch.Tensor]:
        """Return the tensors among named arguments; a number that changes is one of its length."""
        places = Places()
        found: list[Any] = []
        for name, value in _counted(arguments, counts).items():
            found += places.add(name, value, is_tensor)[1]
        where = str(self._prefill.path)
        return {
            name: as_input(value, name, "", where).value
            for name, value in zip(places.names, found, strict=True)
        }

    def described(
        self, given: Sequence[Dimension], steps: int
    ) -> tuple[tuple[InputSpec, ...], dict[str, Growing]]:
        """Return the inputs whose sizes change from step to step, and their dimensions by name.

        Args:
            given: Named by the user; sizes that change are named by these, in order.
            steps: Number of steps that the range of a dimension allows if the user gives none.
        """
        names = iter([*(each.name for each in given), NAME, *(f"{NAME}_{n}" for n in range(2, 99))])
        ranges = {each.name: each for each in given}
        changing = {
            name: list(zip(one, two, strict=True))
            for name, (one, two) in self.first.shapes.items()
            if one != two and len(one) == len(two)
        }
        # Sizes that change alike are one dimension and what is added to it: a mask has an element
        # for each token in the cache and one for the next.
        found: dict[int, list[int]] = {}
        for size, following in itertools.chain.from_iterable(changing.values()):
            if size != following and size not in found.setdefault(following - size, []):
                found[following - size].append(size)
        of_sizes: dict[tuple[int, int], str] = {}
        bases: dict[tuple[int, int], str] = {}
        for change, every in found.items():
            least = min(every)
            base = bases[least, least + change] = next(names)
            for size in every:
                more = size - least
                of_sizes[size, size + change] = f"{base} + {more}" if more else base
        specs = []
        for name, pairs in changing.items():
            shape = tuple(of_sizes.get(pair, pair[0]) for pair in pairs)
            value = self.first.tensors[name]
            whole = not value.is_floating_point() and value.dtype is not torch.bool
            specs.append(
                InputSpec(
                    name=name,
                    shape=shape,
                    dtype=str(value.dtype).removeprefix("torch."),
                    low=int(value.min()) if whole else None,
                    high=int(value.max()) + 1 if whole else None,
                )
            )
        growing = {}
        for sizes, name in bases.items():
            dimension = ranges.get(name) or Dimension(name=name, high=max(sizes) + steps)
            if not dimension.low <= sizes[0] <= dimension.high:
                raise LowerscopeError(
                    _(
                        "{name} is {size} at token {token}, and its range ends at {high}",
                        name=name,
                        size=sizes[0],
                        token=self._after + 2,
                        high=dimension.high,
                    ),
                    todo=_(
                        "Widen the range of {name} to {high}", name=name, high=max(sizes) + steps
                    ),
                )
            if self._after:
                # The sizes of earlier steps have a function of their own.
                end = {"low": sizes[0]} if sizes[0] < sizes[1] else {"high": sizes[0]}
                dimension = msgspec.structs.replace(dimension, **end)
            growing[name] = Growing(dimension, *sizes)
        return tuple(specs), growing


@dataclass(frozen=True)
class Growing:
    """A dimension that changes from step to step: its range, and its sizes in two steps."""

    dimension: Dimension
    size: int
    next_size: int

    @property
    def is_fixed(self) -> bool:
        """Return whether its range is one size."""
        return self.dimension.low == self.dimension.high

    @property
    def steps(self) -> int:
        """Number of steps until its size has left the range."""
        change = self.next_size - self.size
        end = self.dimension.high if change > 0 else self.dimension.low
        return (end - self.size) // change + 1

    def within(self, low: int, high: int) -> Growing:
        """Return it with another range."""
        return replace(self, dimension=msgspec.structs.replace(self.dimension, low=low, high=high))


def _counted(arguments: Mapping[str, Any], counts: frozenset[Path]) -> dict[str, Any]:
    """Return a copy of arguments with a `Count` for each number at the paths `counts`."""
    copied = {name: mapped(each, lambda leaf: leaf) for name, each in arguments.items()}
    for path, owner, number in _all_numbers(copied):
        if path in counts and owner is copied:
            copied[str(path[-1])] = Count(number)
        elif path in counts:
            object.__setattr__(owner, str(path[-1]), Count(number))
    return copied


def _cloned(leaf: Any) -> Any:
    return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf


def _all_numbers(arguments: dict[str, Any]) -> list[tuple[Path, Any, int]]:
    """Return the integers among arguments and in the attributes of their objects."""
    found = [((name,), arguments, each) for name, each in arguments.items() if type(each) is int]
    return [
        *found,
        *(each for name, value in arguments.items() for each in numbers(value, (name,))),
    ]


def _numbers(arguments: dict[str, Any]) -> dict[Path, int]:
    return {path: number for path, _owner, number in _all_numbers(arguments)}
