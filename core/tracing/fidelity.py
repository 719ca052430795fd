"""Checks that a traced graph behaves as the model beyond the traced call."""

from __future__ import annotations

import inspect
import sys
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from typing import Any

import numpy as np
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.snapshot import Note
from lowerscope.core.model.texts import _, _n, enumeration
from lowerscope.core.sources.opened_model import (
    RandomState,
    is_written,
    mark_written,
    run_mode,
    version_of,
)
from lowerscope.core.sources.pytree import (
    CallSpec,
    flattened,
    leaves,
    path_text,
    plain,
    unflattened,
)
from lowerscope.core.tracing.example_run import call_eagerly, tensors_in
from lowerscope.core.tracing.trace_errors import forward_line, is_users_file, where_of

_MAPPINGS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, set, deque)
_COPIED = frozenset((*_MAPPINGS, *_SEQUENCES))
_PLAIN = frozenset((bool, int, float, str, type(None)))

Containers = dict[int, tuple[Any, Any]]
"""Containers with copies of their content, by id."""


@contextmanager
def unchanged(model: torch.nn.Module) -> Iterator[tuple[torch.Tensor, ...]]:
    """Restore attributes of `model`, and the content of its containers and tensors, at the end.

    The body is given the tensors: buffers, and tensors in attributes that are neither buffers nor
    parameters.

    A tracer leaves values that ``forward`` assigns or appends, and its own constants, on the model;
    a model that counts its calls changes its buffers in each run. Parameters get the tensors back
    that they had as ``data``; their content is restored where `observe` has seen that ``forward``
    changes it: copying all would double the memory.
    """
    tensors, restore = kept_state(model)
    try:
        yield tensors
    finally:
        restore()


def kept_state(
    model: torch.nn.Module,
) -> tuple[tuple[torch.Tensor, ...], Callable[[], None]]:
    """Return the tensors that `unchanged` gives to its body, and what restores the model."""
    containers: Containers = {}
    tensors: dict[int, torch.Tensor] = {}
    for module in model.modules():
        _look_through(module.__dict__, _DEPTH, containers, tensors)
    held = [(each, each.data) for each in model.parameters() if _can_be_restored(each)]
    written = [each for each, _data in held if is_written(each)]
    contents = [(tensor, tensor.detach().clone()) for tensor in (*tensors.values(), *written)]

    def restore() -> None:
        for container, before in containers.values():
            _put_back(container, before)
        with torch.no_grad():
            for parameter, data in held:
                parameter.data = data
            for tensor, content in contents:
                if not torch.equal(tensor, content):
                    tensor.copy_(content)

    return tuple(tensors.values()), restore


def apart_from(state: Iterable[torch.Tensor], result: Any) -> Any:
    """Return a result with copies in place of the tensors whose memory is to be restored."""
    memory = {_memory(each) for each in state if each.layout is torch.strided}
    if not memory:
        return result

    def is_own(value: Any) -> bool:
        is_plain = isinstance(value, torch.Tensor) and value.layout is torch.strided
        return is_plain and _memory(value) in memory

    found, structure = flattened(result)
    if not any(map(is_own, found)):
        return result
    return unflattened([each.clone() if is_own(each) else each for each in found], structure)


class _Writes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Restores the parameters that the body changes, and marks them as written.

    An operator that writes the memory of parameters finds their content copied before, whatever
    view of them it is given, such as ``weight.data``.
    """

    supports_higher_order_operators = True

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._model = model
        parameters = model.named_parameters()
        self.own = {name: each for name, each in parameters if _can_be_restored(each)}
        self._data = {name: each.detach() for name, each in self.own.items()}
        self._contents: dict[str, torch.Tensor] = {}
        self._in_memory: dict[int, list[str]] = {}
        for name, each in self._data.items():
            self._in_memory.setdefault(_memory(each), []).append(name)

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # it would import dynamo, which takes seconds

    def names(self) -> list[str]:
        """Return the names of the parameters that have been changed or replaced so far."""
        now = dict(self._model.named_parameters())
        return [
            name
            for name, data in self._data.items()
            if name in self._contents or name not in now or now[name].data_ptr() != data.data_ptr()
        ]

    def values(self) -> dict[str, torch.Tensor]:
        """Return copies of these parameters, of those that have the shape that they had."""
        now = dict(self._model.named_parameters())
        return {
            name: now[name].detach().clone()
            for name in self.names()
            if name in now and now[name].shape == self._data[name].shape
        }

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for place, name in _writes(func):
            for each in tensors_in(args[place] if place < len(args) else kwargs.get(name)):
                if each.layout is torch.strided:
                    self._keep(self._in_memory.get(_memory(each), ()))
        return func(*args, **kwargs)

    def _keep(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self._contents:
                self._contents[name] = self._data[name].clone()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        for name in self.names():
            mark_written(self.own[name])
        with torch.no_grad():
            for name, content in self._contents.items():
                self._data[name].copy_(content)


def _memory(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _writes(func: Any) -> Iterator[tuple[int, str]]:
    """Yield the place and name of each argument that an operator writes."""
    schema = getattr(func, "_schema", None)
    for place, argument in enumerate(schema.arguments if schema is not None else ()):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield place, argument.name


def _look_through(
    value: Any, depth: int, containers: Containers, tensors: dict[int, torch.Tensor]
) -> None:
    """Record each container in `value` with its content by id, and the tensors in it."""
    kind = type(value)
    if kind in _COPIED:
        if depth and id(value) not in containers:
            containers[id(value)] = value, value.copy()
            for item in value.values() if kind in _MAPPINGS else value:
                # Skip flags and the like, of which each module has a dozen.
                if type(item) not in _PLAIN:
                    _look_through(item, depth - 1, containers, tensors)
    elif kind is tuple:
        for item in value if depth else ():
            _look_through(item, depth - 1, containers, tensors)
    elif (
        isinstance(value, torch.Tensor)
        and not isinstance(value, torch.nn.Parameter)
        and _can_be_restored(value)
    ):
        tensors[id(value)] = value


def _can_be_restored(value: torch.Tensor) -> bool:
    # In a run, the buffers of what runs in torch are inference tensors themselves.
    is_own = torch.is_inference_mode_enabled() or not value.is_inference()
    return is_own and value.layout is torch.strided and value.device.type == "cpu"


def _put_back(container: Any, before: Any) -> None:
    if not container and not before:
        return
    container.clear()
    if isinstance(container, (list, deque)):
        container.extend(before)
    else:
        container.update(before)


_SECOND_CALL = 1.0
"""Time limit of a call that is repeated without another reason, in seconds."""

_DEPTH = 4
"""Depth limit of nested containers that are compared."""

_OF_TORCH = frozenset(vars(torch.nn.Module()))
"""Attributes that every module has."""

_CONTAINERS = (dict, list, tuple, set)


@dataclass(frozen=True)
class Behaviour:
    """Observations of a call of the model on the example inputs.

    `draws`: whether it draws random numbers of torch's.
    `in_place`: whether it changes its buffers, or other tensors of its own, in place.
    `trains`: whether it changes its parameters at each call.
    `repeats`: whether it computes the same again from the same state.
    `notes`: Behaviour that a graph of one call cannot reproduce.
    """

    outputs: Any
    draws: bool
    in_place: bool
    trains: bool
    repeats: bool
    notes: tuple[Note, ...]


def observe(
    model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], calling: CallSpec
) -> Behaviour:
    """Call `model` once, or twice if needed; its state and all generators are restored.

    Parameters that only the first call changes, as where ``forward`` masks or clamps them, keep
    the values that it gives them.

    Raises `LowerscopeError` if the model fails on these inputs.
    """
    start = RandomState.present()
    try:
        with unchanged(model) as tensors, run_mode(model)(), _Writes(model) as writes:
            versions = [version_of(each) for each in tensors]
            before = _attributes(model)
            begin = time.perf_counter()
            own = (*tensors, *model.parameters())
            outputs = apart_from(own, call_eagerly(model, inputs, calling))
            is_quick = time.perf_counter() - begin < _SECOND_CALL
            draws = not torch.equal(torch.get_rng_state(), start.torch)
            python = _generators_drawn(start)
            after = _attributes(model)
            # The tracers report or reject its changes.
            in_place = versions != [version_of(each) for each in tensors]
            changed: list[str] = []
            differs = ""
            settled = writes.values()
            if is_quick or settled or _changed(before, after):
                torch.set_rng_state(start.torch)
                again = call_eagerly(model, inputs, calling)
                changed = _changed(after, _attributes(model))
                if not in_place:
                    differs = difference(again, outputs, compare_values=not draws)
            trained = writes.names()
            if differs or not _same(settled, writes.values(), 1):
                settled = {}
        with torch.no_grad():
            for name, content in settled.items():
                writes.own[name].copy_(content)
        if settled:
            trained = []
        if trained and differs:
            torch.set_rng_state(start.torch)
            with unchanged(model), run_mode(model)():
                again = call_eagerly(model, inputs, calling)
            from_start = difference(again, outputs, compare_values=not draws)
    finally:
        start.restore()
    where = where_of(forward_line(model))
    texts = []
    if changed:
        texts.append(
            _(
                "forward changes {names} at each call, and the graph has the value of one call",
                names=_first_of(changed),
            )
        )
    if python:
        texts.append(
            _(
                "forward draws random numbers from {python}, and the graph has those of one call",
                python=python,
            )
        )
    repeats = not differs or bool(texts)
    if not repeats and trained:
        repeats = not from_start
        texts.append(
            _(
                "forward changes its parameters {names} at each call, as in training; the lowered "
                "model keeps the values that they have when it is opened",
                names=_first_of(trained),
            )
        )
    elif not repeats:
        texts.append(
            _("forward returns other values at each call, and the graph has those of one call")
        )
    notes = tuple(Note(text=each, where=where) for each in texts)
    return Behaviour(outputs, draws, in_place, bool(trained), repeats, notes)


class Observed:
    """The behaviour of a model, or the error of a model that fails on its inputs."""

    def __init__(
        self, model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], calling: CallSpec
    ) -> None:
        self._error: LowerscopeError | None = None
        try:
            self._behaviour = observe(model, inputs, calling)
        except LowerscopeError as error:
            self._error = error

    @property
    def fails(self) -> bool:
        return self._error is not None

    def check(self) -> None:
        """Raise the `LowerscopeError` of a model that fails."""
        if self._error is not None:
            raise self._error

    @property
    def behaviour(self) -> Behaviour:
        """The behaviour; raises a `LowerscopeError` if the model fails."""
        self.check()
        return self._behaviour


def _first_of(names: Sequence[str]) -> str:
    return _(", ").join((*names[:3], *(["…"] if len(names) > 3 else [])))


def differs_from_model(
    outputs: Any, behaviour: Behaviour, tracer: str, model: torch.nn.Module
) -> tuple[Note, ...]:
    """Return a note if a graph's outputs are not the model's on the same inputs."""
    if not behaviour.repeats:
        return ()
    reason = difference(outputs, plain(behaviour.outputs), compare_values=not behaviour.draws)
    if not reason:
        return ()
    text = _(
        "the graph traced by torch.{tracer} does not compute the same as the model ({reason}): "
        "Python takes another branch, or has another value, while tracing",
        tracer=tracer,
        reason=reason,
    )
    return (Note(text=text, where=where_of(forward_line(model))),)


def difference(actual: Any, expected: Any, *, compare_values: bool) -> str:
    """Return the first difference between two nests of outputs; empty for none."""
    ours, theirs = list(leaves(actual)), list(leaves(expected))
    if len(ours) != len(theirs):
        return _n(
            "{count} output, not {theirs}",
            "{count} outputs, not {theirs}",
            len(ours),
            theirs=len(theirs),
        )
    for (_other, one), (path, other) in zip(ours, theirs, strict=True):
        name = path_text(path, "output")
        if isinstance(one, torch.Tensor) and isinstance(other, bool | int | float):
            # A graph gives a number of data as a tensor, of the dtype that it has for others.
            other = torch.tensor(other)
            if not one.dim() and torch.can_cast(other.dtype, one.dtype):
                other = other.to(one.dtype)
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
            if one.shape != other.shape or one.dtype != other.dtype:
                return _("{name} has another shape or dtype", name=name)
            if compare_values and not _close(one, other):
                return _("{name} has other values", name=name)
        elif type(one) is not type(other):
            return _("{name} has another type", name=name)
        elif compare_values and not (one == other or (one != one and other != other)):
            return _("{name} has another value", name=name)
    return ""


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.layout is not torch.strided or one.is_quantized or "float8" in str(one.dtype):
        return True
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    sizes = torch.nan_to_num(other.abs(), posinf=0.0)
    largest = float(sizes.max()) if sizes.numel() else 0.0
    # The operators may be reordered; a wrong branch or constant differs by more.
    near = float(torch.finfo(one.dtype).eps ** 0.5)
    return torch.allclose(one, other, rtol=near, atol=near * largest / 10, equal_nan=True)


def _generators_drawn(start: RandomState) -> str:
    """Return the names of the generators that have drawn since `start`."""
    now = RandomState.present()
    found = []
    if now.python != start.python:
        found.append("Python")
    if not _same(now.numpy, start.numpy, _DEPTH):
        found.append("NumPy")
    return enumeration(found)


def _attributes(model: torch.nn.Module) -> dict[str, Any]:
    """Return the model's own attributes and buffers by dotted name, containers copied."""
    found: dict[str, Any] = {}
    for path, module in model.named_modules():
        prefix = f"{path}." if path else ""
        for name, value in (*vars(module).items(), *module._buffers.items()):
            if name not in _OF_TORCH:
                found[prefix + name] = _copied(value, _DEPTH)
    return found


def _copied(value: Any, depth: int) -> Any:
    if isinstance(value, dict) and depth:
        return {key: _copied(each, depth - 1) for key, each in value.items()}
    if isinstance(value, _CONTAINERS) and depth:
        return [_copied(each, depth - 1) for each in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the names of attributes that are new or have another value."""
    missing = object()
    return [
        name for name, value in after.items() if not _same(before.get(name, missing), value, _DEPTH)
    ]


def _same(one: Any, other: Any, depth: int) -> bool:
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.shape == other.shape and one.dtype == other.dtype and _close(one, other)
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            _same(each, other[key], depth - 1) for key, each in one.items()
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(
            _same(*pair, depth - 1) for pair in zip(one, other, strict=True)
        )
    if isinstance(one, (bool, int, float, complex, str, bytes, np.generic)):
        return bool(one == other) or (one != one and other != other)
    # Changes within objects of other classes show in the model's outputs.
    return True


_ANSWERS: tuple[tuple[Any, str, bool], ...] = (
    (torch, "is_inference_mode_enabled", True),
    (torch.compiler, "is_compiling", False),
    (torch.compiler, "is_dynamo_compiling", False),
    (torch.compiler, "is_exporting", False),
)
"""Queries of a model on its state of execution, with the answers in a run."""


@contextmanager
def as_in_a_run(model: torch.nn.Module) -> Iterator[None]:
    """Answer queries of `model`, but not of torch itself, in the body as in a run.

    In the files of its modules, ``type`` is replaced: a traced value has the type of its tensor.
    """
    real = [(owner, name, getattr(owner, name)) for owner, name, _other in _ANSWERS]
    files = [each for each in _namespaces(model) if "type" not in each]

    def restore() -> None:
        for owner, name, own in real:
            setattr(owner, name, own)

    dynamo = sys.modules.get("torch._dynamo.trace_rules")
    if dynamo is not None:
        dynamo.get_torch_obj_rule_map()
    before_import = _BeforeImport("torch._dynamo", restore)
    sys.meta_path.insert(0, before_import)
    try:
        for (owner, name, own), (_other, _other, answer) in zip(real, _ANSWERS, strict=True):
            setattr(owner, name, _answering(own, answer))
        for names in files:
            names["type"] = _Type
        yield
    finally:
        for names in files:
            names.pop("type", None)
        restore()
        sys.meta_path.remove(before_import)


class _BeforeImport(MetaPathFinder):
    """Calls `act` before a module is imported.

    torch._dynamo keeps the functions of torch that it finds: it would keep those of `as_in_a_run`.
    """

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self._name, self._act = name, act

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == self._name:
            self._act()


def _answering(own: Callable[[], bool], answer: bool) -> Callable[[], bool]:
    def query() -> bool:
        return answer if is_users_file(sys._getframe(1).f_code.co_filename) else own()

    return query


def _namespaces(model: torch.nn.Module) -> list[dict[str, Any]]:
    """Return the global names of the user's files that define functions called by `model`."""
    found: dict[int, dict[str, Any]] = {}
    bases = {base for each in model.modules() for base in type(each).__mro__}
    for base in bases:
        function = inspect.unwrap(vars(base).get("forward", base))
        names = getattr(function, "__globals__", None)
        if names is not None and is_users_file(function.__code__.co_filename):
            found[id(names)] = names
    return list(found.values())


class _AsType(type):
    """The class of `_Type`, which can be called and queried like ``type``."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if len(args) != 1:
            return type(*args, **options)
        (value,) = args
        kind = type(value)
        if issubclass(kind, fx.Proxy) and hasattr(value.tracer, "type_of"):
            return value.tracer.type_of(value.node)
        if issubclass(kind, FakeTensor):
            return torch.nn.Parameter if isinstance(value, torch.nn.Parameter) else torch.Tensor
        return kind

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, type)


class _Type(type, metaclass=_AsType):
    """Replacement for ``type``."""
