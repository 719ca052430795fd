"""The fx tracer: ``torch.fx.symbolic_trace`` with the user's source lines."""

from __future__ import annotations

import builtins
import copy
import dis
import functools
import inspect
import itertools
import keyword
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, cast

import torch
import torch.fx.graph
from torch import fx
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from lowerscope.core.model.problems import is_interrupt
from lowerscope.core.model.snapshot import Note, SourceLine
from lowerscope.core.model.texts import _
from lowerscope.core.sources.opened_model import version_of, without_compiling
from lowerscope.core.sources.pytree import CallSpec, Nest, flattened, plain, unflattened
from lowerscope.core.tracing.evaluated_nodes import EvaluatedNodes
from lowerscope.core.tracing.example_run import may_write, memory_of, run_eagerly, tensors_in
from lowerscope.core.tracing.extents import Sizes, at_other_sizes, sizes_of
from lowerscope.core.tracing.splitting import OF_SHAPE, Split, TorchPart, without_content
from lowerscope.core.tracing.trace_errors import (
    CannotFollow,
    StateChange,
    cannot_trace,
    fx_reason,
    is_users_file,
    line_of_code,
    line_of_frame,
    where_of,
)

_FROZEN = _("forward draws random numbers here, and the graph has those of this one call")


_WRITING = frozenset({"__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__"})


class EagerCalls(TorchFunctionMode):
    """Recorder of calls into torch that involve no proxy.

    `boundary`: the code of the function that runs the tracer.

    `changes`: for each tensor that was changed in place, its memory and the user's line.
    `draws`: lines that have drawn random numbers.
    `drawn`: tensors that were drawn or computed from drawn ones, each with the name of the random
        operator.
    """

    def __init__(self, boundary: CodeType, split: Split | None) -> None:
        super().__init__()
        self.changes: list[tuple[int, SourceLine | None]] = []
        self.draws: dict[SourceLine | None, None] = {}
        self.drawn: list[tuple[torch.Tensor, str]] = []
        self._boundary = boundary
        self.split = split
        self.made: list[tuple[torch.Tensor, SourceLine | None]] = []
        """New tensors of a model that is split, with their lines."""

    def _refuse_write(self, func: Callable[..., Any], args: Sequence[Any], proxy: fx.Proxy) -> None:
        """Have a new tensor that a call writes traced values into made by the graph as well."""
        name = getattr(func, "__name__", "")
        writes = name in _WRITING or (name.endswith("_") and not name.endswith("__"))
        if self.split is None or not writes or not isinstance(args[0], torch.Tensor):
            return
        line = next((one for each, one in self.made if _shares_memory(each, args[0])), None)
        if line is not None and self.split.trace_factory(line):
            raise CannotFollow(_("it assigns to elements of a tensor"))

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        proxies = [leaf for leaf in leaves if isinstance(leaf, fx.Proxy)]
        if proxies:
            self._refuse_write(func, args, proxies[0])
            try:
                return func(*args, **(kwargs or {}))
            except TypeError:
                if not isinstance(proxies[0], _SplitProxy):
                    raise
                # torch.zeros and the like take traced numbers as they are.
                tracer = proxies[0].tracer
                return tracer.create_proxy("call_function", func, args, kwargs or {})
        tensors = [
            leaf
            for leaf in leaves
            if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided
        ]
        versions = [version_of(tensor) for tensor in tensors]
        generators = [leaf for leaf in leaves if isinstance(leaf, torch.Generator)]
        state = torch.random.get_rng_state()
        result = func(*args, **(kwargs or {}))
        line = line_of_frame(sys._getframe(1), self._boundary)
        for tensor, version in zip(tensors, versions, strict=True):
            if version_of(tensor) != version:
                self.changes.append((tensor.untyped_storage().data_ptr(), line))
        drawn = generators or not torch.equal(state, torch.random.get_rng_state())
        made = [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]
        if self.split is not None and not drawn:
            new = [
                each for each in made if not any(_shares_memory(each, other) for other in tensors)
            ]
            if new and line in self.split.written:
                return self._as_node(func, args, kwargs or {})
            self.made += [(each, line) for each in new]
        if drawn and made:
            self.draws[line] = None
            source = getattr(func, "__name__", "forward").strip("_")
        else:
            source = next(filter(None, map(self.drawn_by, tensors)), "")
        if source:
            self.drawn += [(each, source) for each in made]
        return result

    def _as_node(self, func: Callable[..., Any], args: Any, kwargs: Any) -> fx.Proxy:
        assert self.split is not None
        name = getattr(func, "__name__", "")
        if func is getattr(torch.Tensor, name, None):
            proxy: fx.Proxy = self.split.tracer.create_proxy("call_method", name, args, kwargs)
        else:
            proxy = self.split.tracer.create_proxy("call_function", func, args, kwargs)
        return proxy

    def drawn_by(self, tensor: torch.Tensor) -> str:
        """Return the random operator that a tensor's memory depends on; empty for none."""
        return next((name for each, name in self.drawn if _shares_memory(each, tensor)), "")

    def notes(self) -> tuple[Note, ...]:
        return tuple(Note(text=_FROZEN, where=where_of(line)) for line in self.draws)


def _shares_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one is other:
        return True
    if one.layout is not torch.strided or other.layout is not torch.strided:
        return False
    memory = one.untyped_storage().data_ptr()
    return bool(memory) and memory == other.untyped_storage().data_ptr()


def attribute_code(base: str, target: str) -> str:
    """Return the Python code of a dotted path: ``getattr(self.layers, 'lambda').weight``."""
    code = base
    for name in target.split("."):
        plain = name.isidentifier() and not keyword.iskeyword(name)
        code = f"{code}.{name}" if plain else f"getattr({code}, {name!r})"
    return code


def quote_attribute_names() -> None:
    """Patch torch.fx to support attributes of any name.

    They may be keywords, or contain quotes and line breaks, which torch.fx does not escape.
    """
    torch.fx.graph._format_target = attribute_code


quote_attribute_names()


def trace_symbolically(
    model: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    calling: CallSpec,
    own: Sequence[torch.Tensor],
    split: Split | None = None,
) -> tuple[fx.GraphModule, dict[str, SourceLine], tuple[Note, ...], Sequence[Exception]]:
    """Trace `model` with one placeholder for each of `inputs`, called as `calling` says.

    The output is a nest of tuples, lists and dicts, whatever the model returns. Parameters of
    ``forward`` beyond the inputs keep their defaults, so that ``if mask is None`` is decided as in
    a run of the model.

    Returns the graph over the model's own parameters, the user's line of each node that has one, by
    node name, notes, and the errors of the tracer that the model has caught.

    `own`: the model's tensors that are no parameters.
    `split`: the statements of the model that run in torch; ``None`` for none.

    Raises `LowerscopeError` if the model fails on the inputs, or cannot be traced.
    """
    buffers = [name for name, _other in model.named_buffers()]
    state = [(tensor, version_of(tensor)) for tensor in own]
    tracer = _Tracer(calling, inputs) if split is None else _SplitTracer(calling, inputs, split)
    tracer.modes = {each: each.training for each in model.modules()}
    calls = EagerCalls(trace_symbolically.__code__, split)
    whole: dict[Note, None] = {}
    try:
        # Same state as in a run, which a model may query.
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=[]),
            calls,
            _classes_of_values(),
            _both_branches(split),
            _through_wrapped(whole),
            without_compiling(),
        ):
            graph = tracer.trace(model)
    except BaseException as error:
        if is_interrupt(error):
            raise
        if isinstance(error, Exception) and split is None:
            run_eagerly(model, inputs, calling)
        raise cannot_trace(error) from error
    in_place = list(_changes_in_place(model, state, calls))
    changes = [*in_place, *_assignments(model, buffers, tracer.lines)]
    if split is not None and changes:
        split.restore_state()
    if changes and (split is None or (in_place and not split.takes_changes)):
        raise changes[0].error()
    _rename_reserved(model, graph)
    graph_module = fx.GraphModule(tracer.root, graph, type(model).__name__)
    _mark_drawn(graph_module, calls)
    lines = {node.name: line for node, line in tracer.lines.items()}
    return graph_module, lines, (*calls.notes(), *whole, *_left_out(changes)), tracer.errors


@contextmanager
def _through_wrapped(whole: dict[Note, None]) -> Iterator[None]:
    """Let functions that ``torch.fx.wrap`` makes nodes be traced in the body, where possible.

    `whole`: takes notes on the others, which stay nodes.
    """
    create = fx._symbolic_trace._create_wrapped_func

    def create_wrapped(function: Any) -> Any:
        as_node = create(function)
        if not isinstance(function, FunctionType):
            return as_node

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            proxies = [
                each
                for each in pytree.tree_leaves((args, kwargs))
                if isinstance(each, fx.Proxy) and isinstance(each.tracer, _Tracer)
            ]
            if not proxies:
                return as_node(*args, **kwargs)
            tracer = cast(_Tracer, proxies[0].tracer)
            before, caught = len(tracer.graph.nodes), len(tracer.errors)
            # Torch takes a module from its stack only if its call ends well.
            state = {name: copy.copy(getattr(tracer, name)) for name in _TRACED}
            try:
                return function(*args, **kwargs)
            except Exception as error:
                name, reason = function.__name__, fx_reason(error)
                text = _("{name} is one node: {reason}", name=name, reason=reason)
                whole[Note(text=text, where=where_of(line_of_code(function.__code__)))] = None
                made = [*tracer.graph.nodes][before:]
                for node in reversed(made):
                    tracer.graph.erase_node(node)
                del tracer.errors[caught:]
                for name, value in state.items():
                    setattr(tracer, name, value)
                return as_node(*args, **kwargs)

        return wrapped

    fx._symbolic_trace._create_wrapped_func = create_wrapped  # type: ignore[assignment]
    try:
        yield
    finally:
        fx._symbolic_trace._create_wrapped_func = create


_TRACED = ("module_stack", "num_calls", "_taken")
"""Attributes of a tracer that each call changes."""

_RESERVED = {*dir(fx.GraphModule({}, fx.Graph()))} - {*dir(torch.nn.Module())}
"""Attributes of every graph module, such as ``code`` and ``graph``, that a model may have too."""


def _rename_reserved(model: torch.nn.Module, graph: fx.Graph) -> None:
    """Give attributes of `model` that a graph module has by itself another name in `graph`."""
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module"):
            name, dot, rest = str(node.target).partition(".")
            if name in _RESERVED:
                setattr(model, f"{name}_", getattr(model, name))
                node.target = f"{name}_{dot}{rest}"


def _mark_drawn(graph_module: fx.GraphModule, calls: EagerCalls) -> None:
    """Store the random operator that a constant depends on in its ``meta["drawn"]``."""
    if not calls.drawn:
        return
    for node in graph_module.graph.find_nodes(op="get_attr"):
        value = operator.attrgetter(str(node.target))(graph_module)
        name = calls.drawn_by(value) if isinstance(value, torch.Tensor) else ""
        if name:
            node.meta["drawn"] = name


@dataclass(frozen=True)
class _Change:
    """A change of the model's own tensors by ``forward``, which has no node.

    `name`: of what changes: ``buffer count``.
    `reason`: why a graph alone cannot have it.
    """

    name: str
    reason: str
    where: str

    def error(self) -> StateChange:
        return StateChange(
            _("torch.fx cannot trace the model: {fx_reason}", fx_reason=self.reason),
            where=self.where,
            todo=_("try another tracer: --tracer export"),
            code="try-export",
        )


def _left_out(changes: Sequence[_Change]) -> Iterator[Note]:
    if changes:
        names = [each.name for each in changes]
        shown = _(", ").join((*names[:3], *(["…"] if len(names) > 3 else [])))
        text = _("the model changes its {name}; the lowered one does not", name=shown)
        yield Note(text=text, where=changes[0].where)


def _changes_in_place(
    model: torch.nn.Module, state: Sequence[tuple[torch.Tensor, int]], calls: EagerCalls
) -> Iterator[_Change]:
    names = {id(buffer): f"buffer {name}" for name, buffer in model.named_buffers()}
    changed = dict(calls.changes)
    for tensor, version in state:
        memory = tensor.untyped_storage().data_ptr()
        if version_of(tensor) != version or (memory and memory in changed):
            name = names.get(id(tensor), _("own tensor"))
            reason = _("it changes its {get} in place", get=name)
            yield _Change(name, reason, where_of(changed.get(memory)))


def _assignments(
    model: torch.nn.Module, buffers: Sequence[str], lines: Mapping[fx.Node, SourceLine]
) -> Iterator[_Change]:
    """Yield the assignments to buffers."""
    for name in buffers:
        value: Any = model
        for part in name.split("."):
            value = getattr(value, part)
        if isinstance(value, fx.Proxy):
            reason = _("it assigns to its buffer {name}", name=name)
            yield _Change(f"buffer {name}", reason, where_of(lines.get(value.node)))


def module_paths(graph_module: fx.GraphModule) -> dict[str, str]:
    """Return the dotted path of the module that each node comes from, by node name."""
    paths: dict[str, str] = {}
    for node in graph_module.graph.nodes:
        if node.op == "call_module":
            paths[node.name] = str(node.target)
            continue
        stack = node.meta.get("nn_module_stack")
        paths[node.name] = next(reversed(stack.values()))[0] if stack else ""
    return paths


class _Tracer(fx.Tracer):
    """Tracer that records the innermost line of the user's at the creation of each node.

    torch's own ``record_stack_traces`` writes the whole stack as text for every node, including
    torch's frames, and takes longer than the tracing itself.
    """

    def __init__(self, calling: CallSpec, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.lines: dict[fx.Node, SourceLine] = {}
        self._calling = calling
        self._inputs = inputs
        self._values = EvaluatedNodes(inputs)
        self._evaluates = False
        self._casts = torch.is_autocast_enabled("cpu")
        self._taken: set[int] = set()
        self.modes: dict[torch.nn.Module, bool] = {}
        self.errors: list[Exception] = []
        """Errors of reading values, which the model may catch."""

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Proxy(node, self)

    def to_bool(self, obj: fx.Proxy) -> bool:
        with self.noting():
            return bool(super().to_bool(obj))

    def iter(self, obj: fx.Proxy) -> Iterator[Any]:
        with self.noting():
            return super().iter(obj)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Record an error of the body."""
        try:
            yield
        except Exception as error:
            self.errors.append(error)
            raise

    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        # A node of a whole module would skip its hooks, and has the mode of before the trace.
        changed = (self.modes.get(each, each.training) != each.training for each in m.modules())
        if _has_hooks(m) or any(changed):
            return False
        return super().is_leaf_module(m, module_qualified_name)

    def type_of(self, node: fx.Node) -> type:
        """Return the type of a node's value on the example inputs."""
        kind = type(self.value_of(node))
        return torch.Tensor if kind is torch.nn.Parameter else kind

    def value_of(self, node: fx.Node) -> Any:
        """Return a node's value on the example inputs, of which the elements are not read."""
        return self._value_in(self._values, node)

    def _value_in(self, values: EvaluatedNodes, node: fx.Node, *, content: bool = False) -> Any:
        with self._evaluating():
            return values.of(node, self.root, content=content)

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Let the body compute values: calls of modules in it make no nodes."""
        before, self._evaluates = self._evaluates, True
        try:
            with torch.random.fork_rng(devices=[]), torch._C.DisableTorchFunction():
                yield
        finally:
            self._evaluates = before

    def call_module(self, m: Any, forward: Any, args: Any, kwargs: Any) -> Any:
        if self._evaluates:
            return forward(*args, **kwargs)
        if isinstance(m, torch.jit.ScriptModule):
            raise CannotFollow(_compiled(m))
        return super().call_module(m, forward, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: Any) -> Any:
        if self._evaluates:
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)

    def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
        if torch.is_autocast_enabled("cpu") and not self._casts:
            # The node would not be marked as created inside, and its value would differ.
            raise CannotFollow(
                _("it leaves out torch.autocast, which casts the computation inside")
            )
        node = self._elements_of(super().create_node(*args, **kwargs))
        if self._taken and may_write(node) and self._shows_taken(node):
            raise CannotFollow(_("it changes in place memory that it also reads in another way"))
        is_gradient = node.target is getattr and node.args[1] == "grad"
        if node.target in _GRADIENTS or is_gradient:
            raise CannotFollow(_("it computes gradients"))
        if "functorch" in str(getattr(node.target, "__module__", "")):
            raise CannotFollow(_("it calls torch.vmap or another transform of functions"))
        line = line_of_frame(sys._getframe(1), trace_symbolically.__code__)
        if line is None and node.target is getattr:
            # x.shape makes its node on first use, wherever that is.
            line = self.lines.get(node.all_input_nodes[0])
        if line is not None:
            self.lines[node] = line
        return node

    def _elements_of(self, node: fx.Node) -> fx.Node:
        """Return `node`, or for ``as_strided`` one that takes the elements: it reads memory."""
        if node.target not in ("as_strided", torch.as_strided) or len(node.all_input_nodes) != 1:
            return node
        value, result = self.value_of(node.all_input_nodes[0]), self.value_of(node)
        elements = torch.arange(value.numel()).view(value.shape)
        memory = torch.full((value.untyped_storage().nbytes() // value.element_size(),), -1)
        memory.as_strided(value.shape, value.stride(), value.storage_offset()).copy_(elements)
        places = memory.as_strided(result.shape, result.stride(), result.storage_offset()).clone()
        if (places < 0).any():
            return node
        index = cast(fx.Node, self.create_arg(places))
        node.op, node.target = "call_function", torch.take
        node.args, node.kwargs = (node.all_input_nodes[0], index), {}
        node.prepend(index)
        self.keep(result)
        return node

    def keep(self, value: torch.Tensor) -> None:
        """Refuse later changes of a value's memory in place, which the graph would not show."""
        self._taken.add(memory_of(value))

    def _shows_taken(self, node: fx.Node) -> bool:
        """Return whether a node that writes has memory of which elements were taken."""
        values = [self.value_of(each) for each in node.all_input_nodes[:1]]
        return any(memory_of(each) in self._taken for each in tensors_in(values))

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        function = inspect.unwrap(root_fn)
        line = line_of_code(function.__code__)
        proxies = []
        for name in self._calling.names:
            proxy = self.create_proxy("placeholder", name, (), {})
            if line is not None:
                self.lines[proxy.node] = line
            proxies.append(proxy)
        args, kwargs = self._calling.arguments(proxies)

        called = self.root_call(root_fn)

        def forward(root: torch.nn.Module, *_unused: fx.Proxy) -> Any:
            return plain(called(root, *args, **kwargs))

        return forward, [self.root, *proxies]

    def root_call(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that calls the model."""
        # The tracer replaces Module.__call__, which calls hooks.
        return torch.nn.Module._call_impl if _has_hooks(self.root) else forward


_GRADIENTS = (torch.autograd.grad, torch.autograd.backward, "backward", "requires_grad_")


class _SplitTracer(_Tracer):
    """Tracer of a model that is split: sizes that do not depend on data are numbers.

    Whether they do shows on other inputs of the same shapes.
    """

    def create_arg(self, a: Any) -> Any:
        return a.now() if _of_class(a, _SplitProxy) else super().create_arg(a)

    def is_tensor(self, value: Any) -> bool:
        """Return whether a value is a tensor, traced or not."""
        if _of_class(value, fx.Proxy):
            return issubclass(self.type_of(value.node), torch.Tensor)
        return _of_class(value, torch.Tensor)

    def known_extents(self, node: fx.Node) -> list[int | None] | None:
        """Return the extents that a tensor has for all inputs, ``None`` for others.

        There are none if its rank differs.
        """
        shapes = [getattr(each, "shape", ()) for each in self.values_of(node, content=False)]
        if len({*map(len, shapes)}) != 1:
            return None
        return [axis[0] if len({*axis}) == 1 else None for axis in zip(*shapes, strict=True)]

    def __init__(self, calling: CallSpec, inputs: Sequence[torch.Tensor], split: Split) -> None:
        super().__init__(calling, inputs)
        split.tracer = self
        self._split = split
        if not split.values:
            split.values = [EvaluatedNodes(each) for each in (inputs, *varied(inputs))]
            if split.named is not None:
                own = sizes_of(split.named, inputs)
                for each in split.values:
                    each.sizes = own
                for sizes, values in at_other_sizes(split.named, inputs):
                    split.values.append(EvaluatedNodes(values))
                    split.values[-1].sizes = sizes
        for each in split.values:
            each.begin()
        self._values, *self._others = split.values
        self._conditions: Any = None

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _SplitProxy(node, self)

    def to_bool(self, obj: fx.Proxy) -> bool:
        known = self._by_sizes(obj.node)
        return super().to_bool(obj) if known is None else known

    def _by_sizes(self, condition: fx.Node) -> bool | None:
        """Return what a condition is at all sizes of named dimensions, if it depends on no data."""
        if self._split.named is None or not isinstance(self.value_of(condition), bool):
            return None
        # Imported here since it takes seconds, and few models need it.
        from lowerscope.core.tracing.symbolic_sizes import Conditions

        with self._evaluating():
            if self._conditions is None:
                self._conditions = Conditions(
                    self.root, self.graph, self._inputs, self._split.named
                )
            known: bool | None = self._conditions.value(condition)
            return known

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        with super()._evaluating(), self._split.suspended():
            yield

    def values_of(self, node: fx.Node, *, content: bool) -> list[Any]:
        """Return a node's value on the example inputs, and on others that the model takes."""
        values = [self._value_in(self._values, node, content=content)]
        for other in list(self._others):
            try:
                values.append(self._value_in(other, node, content=content))
            except Exception:  # a model may reject inputs by any error
                self._others.remove(other)
        return values

    def has_known_shape(self, node: fx.Node) -> bool:
        """Return whether a tensor has the same shape for all inputs."""
        first, *others = self.values_of(node, content=False)
        return isinstance(first, torch.Tensor) and all(
            isinstance(each, torch.Tensor) and each.shape == first.shape for each in others
        )

    def call_module(self, m: Any, forward: Any, args: Any, kwargs: Any) -> Any:
        reason = None if self._evaluates else self._split.whole(m)
        if isinstance(m, torch.jit.ScriptModule) and not self._evaluates:
            reason = _compiled(m)
        if reason is None:
            return super().call_module(m, forward, args, kwargs)
        inputs: list[Any] = [args, kwargs]
        objects: dict[str, Nest] = {}
        for index, name in enumerate(("args", "kwargs")):
            leaves, structure = flattened(inputs[index])
            if isinstance(structure, Nest):
                inputs[index], objects[name] = leaves, structure
        part = self._split.part_of(m, reason, objects)
        title = getattr(m, "original_name", type(m).__name__).lower()
        return self.call_part(part, title, tuple(inputs))

    def root_call(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        if self._split.whole(self.root) is None:
            return super().root_call(forward)
        return lambda root, *args, **kwargs: self.call_module(root, forward, args, kwargs)

    def _keep_aliases(self, own: Sequence[Any], given: Sequence[Any], made: Sequence[Any]) -> None:
        """Keep the inputs of a part that are results of it too, for the example or other inputs."""
        memory = {memory_of(each) for each in tensors_in(made)}
        for value, other in zip(own, given, strict=True):
            if any(memory_of(each) in memory for each in tensors_in([other])):
                for each in tensors_in([value]):
                    self.keep(each)

    def call_part(self, part: TorchPart, title: str, inputs: tuple[Any, ...]) -> Any:
        """Add a call of a part to the graph; return its result, with traced values in it."""
        name, count = title, 1
        while hasattr(self.root, name):
            name, count = f"{title}_{count}", count + 1
        # No submodule: a container may be running those that it has.
        vars(self.root)[name] = part
        nodes = self.create_arg(inputs)
        results: list[tuple[list[Any], Any]] = []
        sizes: list[Sizes] = []
        own: Any = _mutable(fx.node.map_arg(nodes, self.value_of))
        part.given = [pytree.tree_structure(each) for each in own]
        for values, at in self._values_of_all(nodes):
            try:
                with self._evaluating():
                    results.append(flattened(part.result(*values)))
                    sizes.append(at)
            except CannotFollow:
                raise
            except Exception:
                if not results:
                    raise
                continue
            self._keep_aliases(own, values, results[-1][0])
        (leaves, spec), *others = results
        if any(other != spec for _each, other in others):
            if not part.is_last:
                raise CannotFollow(_("the number of its results depends on the data"))
            # Nothing reads them in the graph, and the part rejects inputs with another structure.
            part.reason = _(
                "{reason}; the number of results depends on the data, and has to be that with the "
                "example inputs",
                reason=part.reason,
            )
            del results[1:], sizes[1:]
            others = []
        outputs = part.settle(leaves, spec, [each for each, _other in others])
        part.at_sizes = [
            (at, tuple(without_content(found[index]) for index in outputs))
            for at, (found, _spec) in zip(sizes, results, strict=True)
            if at
        ]
        if not outputs and all(each == leaves for each, _other in others):
            return unflattened(leaves, spec)
        proxy: Any = self.create_proxy("call_module", name, inputs, {})
        made = dict(part.constants)
        made |= {index: proxy[number] for number, index in enumerate(outputs)}
        return unflattened([made[index] for index in range(len(leaves))], spec)

    def call_loop(
        self,
        title: str,
        graphs: Sequence[fx.GraphModule],
        carried: tuple[Any, ...],
        others: tuple[Any, ...],
    ) -> list[fx.Proxy]:
        """Add a loop of a test and a body to the graph; return the values after it."""
        held = []
        for part, graph in zip(("test", "body"), graphs, strict=True):
            names = (
                f"{title}_{part}" + (f"_{number}" if number else "") for number in itertools.count()
            )
            name = next(each for each in names if not hasattr(self.root, each))
            vars(self.root)[name] = graph
            held.append(self.create_proxy("get_attr", name, (), {}))
        loop = torch.ops.higher_order.while_loop
        made: Any = self.create_proxy("call_function", loop, (*held, carried, others), {})
        return [made[index] for index in range(len(carried))]

    def _values_of_all(self, nodes: Any) -> Iterator[tuple[Any, Sizes]]:
        """Yield the values of a nest of nodes for each of the inputs, with their named sizes."""
        read: list[fx.Node] = []
        fx.node.map_arg(nodes, read.append)
        for node in read:
            self.values_of(node, content=True)
        # Those of the inputs that the model takes.
        found = {node: self.values_of(node, content=True) for node in read}
        for number, inputs in enumerate((self._values, *self._others) if read else [self._values]):
            values = {node: _cloned(each[number]) for node, each in found.items()}
            yield _mutable(fx.node.map_arg(nodes, values.__getitem__)), inputs.sizes


def _compiled(module: torch.jit.ScriptModule) -> str:
    return _("torch.jit has compiled {name}", name=module.original_name)


def _mutable(value: Any) -> Any:
    """Return a nest of arguments of a node with lists and dicts that can be changed."""
    if isinstance(value, list):
        return [*map(_mutable, value)]
    if isinstance(value, dict):
        return {key: _mutable(each) for key, each in value.items()}
    return tuple(map(_mutable, value)) if type(value) is tuple else value


def _cloned(value: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, torch.clone, value)


def varied(inputs: Sequence[torch.Tensor]) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield other inputs of the same shapes, on which branches and sizes may differ."""

    for scale, kind in ((-1.0, "flip"), (0.0, "min"), (100.0, "max"), (1.0, "more"), (1.0, "less")):
        yield tuple(_varied(value, scale, kind) for value in inputs)


def _varied(value: torch.Tensor, scale: float, kind: str) -> torch.Tensor:
    if value.layout is not torch.strided or not value.numel():
        return value
    if value.is_floating_point() or value.is_complex():
        return value * scale
    if kind == "flip":
        return ~value if value.dtype is torch.bool else value.flatten().flip(0).view(value.shape)
    if value.dtype is torch.bool:
        return torch.full_like(value, kind == "max")
    if kind == "more":
        return value + 1
    return (
        (value - 1).clamp(min=0)
        if kind == "less"
        else torch.full_like(value, getattr(value, kind)())
    )


def _has_hooks(module: torch.nn.Module) -> bool:
    kept = torch.nn.modules.module
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or kept._global_forward_hooks
        or kept._global_forward_pre_hooks
    )


_READING_CLASS = ("LOAD_ATTR", "LOAD_METHOD", "MATCH_CLASS")
"""Instructions by which Python code reads the class of a value itself."""

_of_class = isinstance


def _isinstance(value: Any, kinds: Any) -> bool:
    """Return ``isinstance``; for a proxy in the user's code, that of its value."""
    if type(value) in (_Proxy, _SplitProxy):
        code = sys._getframe(1).f_code
        if is_users_file(code.co_filename) or code is torch.is_tensor.__code__:
            return _is_value_of(value, kinds)
    return _of_class(value, kinds)


def _is_value_of(proxy: _Proxy, kinds: Any) -> bool:
    return _of_class(proxy, kinds)  # this frame must be on top: `_Proxy.__class__` checks for it


_is_callable = callable


def _callable(value: Any) -> bool:
    """Return ``callable``; a proxy of fx can be called, the tensor that it stands for cannot."""
    return type(value) not in (_Proxy, _SplitProxy) and _is_callable(value)


@contextmanager
def _classes_of_values() -> Iterator[None]:
    """Make ``isinstance`` in the user's code see the types of the values of proxies."""
    vars(builtins).update(isinstance=_isinstance, callable=_callable)
    try:
        yield
    finally:
        vars(builtins).update(isinstance=_of_class, callable=_is_callable)


@contextmanager
def _both_branches(split: Split | None) -> Iterator[None]:
    """Make ``torch.cond`` on a traced value compute both branches, if the model is split.

    A user's file may have imported the function by name, so it is changed itself.
    """
    function = cast(FunctionType, inspect.unwrap(torch.cond))
    own = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__
    )

    def cond(pred: Any, *args: Any, **kwargs: Any) -> Any:
        if split is None or not _of_class(pred, fx.Proxy):
            return own(pred, *args, **kwargs)
        return split.cond(pred, *args, **kwargs)

    code = function.__code__
    vars(builtins)[_COND] = cond
    function.__code__ = _cond.__code__
    try:
        yield
    finally:
        function.__code__ = code
        del vars(builtins)[_COND]


_COND = "__lowerscope_cond__"


def _cond(*args: Any, **kwargs: Any) -> Any:
    return __lowerscope_cond__(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


class _Proxy(fx.Proxy):
    """A proxy whose ``+=`` is an in-place node, and whose ``isinstance`` is that of its value.

    Without the methods for ``+=``, Python falls back to ``+``, and the graph computes something
    else than the model if the changed tensor has another name.
    """

    @property
    def __class__(self) -> type:
        frame = sys._getframe(1)
        code = frame.f_code
        # Functions of torch that are written in C read the class as well, with the user's frame on
        # top, and would access the memory of a tensor that is none.
        if code is _is_value_of.__code__ or (
            is_users_file(code.co_filename)
            and dis.opname[code.co_code[frame.f_lasti]] in _READING_CLASS
        ):
            return cast(_Tracer, self.tracer).type_of(self.node)
        return _Proxy

    @__class__.setter
    def __class__(self, kind: type) -> None:
        raise TypeError("the class of a traced value cannot be assigned")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Copy what it stands for; fx copies the graph and the tracer with it."""
        is_tensor = issubclass(cast(_Tracer, self.tracer).type_of(self.node), torch.Tensor)
        return self.clone() if is_tensor else self

    def _number(self) -> Any:
        with cast(_Tracer, self.tracer).noting():
            raise TypeError("a traced value is no number")

    __float__ = __int__ = __complex__ = _number


_ALL = slice(None)


def _are_fixed(keys: Sequence[Any]) -> bool:
    """Return whether keys are numbers, ranges of numbers and ``...``, which give a view."""
    bounds = [
        each for key in keys if type(key) is slice for each in (key.start, key.stop, key.step)
    ]
    are_keys = all(each is ... or type(each) in (int, slice) for each in keys)
    return are_keys and all(each is None or type(each) is int for each in bounds)


def _all_keys(keys: Sequence[Any], rank: int) -> list[Any]:
    """Return the keys of an assignment, one an axis."""
    if not _are_fixed(keys):
        raise CannotFollow(_("it assigns to elements of a tensor"))
    missing = [_ALL] * (rank - sum(each is not ... for each in keys))
    before = list(itertools.takewhile(lambda each: each is not ..., keys))
    return [*before, *missing, *keys[len(before) + 1 :]]


def _with_part(owner: Any, keys: Sequence[Any], axis: int, value: Any) -> Any:
    """Return a tensor like `owner` with the part at `keys`, from an axis on, replaced."""
    while keys and keys[0] == _ALL:
        keys, axis = keys[1:], axis + 1
    if not keys:
        if isinstance(value, bool | int | float):
            return torch.full_like(owner, value)
        return value.expand_as(owner).to(owner.dtype)
    key, *rest = keys
    if type(key) is int:
        part = _with_part(owner.select(axis, key), rest, axis, value)
        return torch.select_scatter(owner, part, axis, key)
    part = _with_part(owner[(*[_ALL] * axis, key)], rest, axis + 1, value)
    return torch.slice_scatter(owner, part, axis, key.start, key.stop, key.step or 1)


def _place(key: Any, tracer: _SplitTracer) -> Any:
    """Return a key beside tensors as ``index_put`` takes it: ``None`` for all of an axis."""
    if tracer.is_tensor(key):
        return key
    if type(key) is int:
        return torch.tensor(key)
    if key == _ALL:
        return None
    raise CannotFollow(_("it assigns to elements of a tensor"))


_OF_SIZES = frozenset({"shape", "size", "numel", "nelement", "stride", "is_contiguous"})
"""Attributes and methods of tensors that depend on their extents."""


_PARTS = {"select": 2, "narrow": 3}
"""Methods that take a part of a tensor, and the number of their arguments."""

_NOT_WRITING = frozenset(
    {
        *("squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "as_strided_"),
        *("resize_", "resize_as_", "set_", "detach_", "requires_grad_", "rename_", "bernoulli_"),
    }
)
"""Methods of tensors whose results are not those of the ones without ``_``, in the same shape."""


class _SplitProxy(_Proxy):
    """A proxy of a model that is split: it has the sizes of its value if these are known.

    What is written into a part of a tensor is written into the tensor: ``x[:, :2].add_(1)`` is
    ``x[:, :2] = x[:, :2] + 1``.
    """

    _part: tuple[_SplitProxy, tuple[Any, ...]] | None = None
    """The tensor that it is a part of, and the keys."""
    _writes: int = 0
    """The number of writes into it so far; of a part, into the whole tensor until it was taken."""

    def __getitem__(self, key: Any) -> Any:
        made = super().__getitem__(key)  # type: ignore[misc]
        keys = key if isinstance(key, tuple) else (key,)
        if cast(_SplitTracer, self.tracer).is_tensor(self) and _are_fixed(keys):
            made._part, made._writes = (self, keys), self._whole()._writes
        return made

    def _whole(self) -> _SplitProxy:
        return self if self._part is None else self._part[0]._whole()

    def now(self) -> fx.Node:
        """Return the node of its value: of a part, taken again if the tensor was written since."""
        if self._part is not None and self._writes != self._whole()._writes:
            owner, keys = self._part
            made = owner[keys]
            self.node, self._writes = made.node, made._writes
        return self.node

    def _written(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that assigns the result of `function` to the part."""
        assert self._part is not None
        owner, keys = self._part

        def write(*args: Any, **kwargs: Any) -> Any:
            owner[keys] = function(*args, **kwargs)
            return self

        return write

    def _in_place(self, name: str) -> Any:
        """Return a method that writes into a part of a tensor; ``None`` if none is known."""
        if name == "copy_":
            return self._written(lambda value, non_blocking=False: value)
        if name in ("fill_", "zero_"):
            return self._written(lambda value=0: value)
        plain = name.removesuffix("_")
        known = hasattr(torch.Tensor, plain) and name not in _NOT_WRITING
        return self._written(super().__getattr__(plain)) if known else None

    def __getattr__(self, name: str) -> Any:
        tracer = cast(_SplitTracer, self.tracer)
        if name.endswith("_") and not name.endswith("__"):
            method = None if self._part is None else self._in_place(name)
            if method is not None:
                return method
            self._whole()._writes += 1
        if name in _PARTS and tracer.is_tensor(self):

            def part(*args: Any, **kwargs: Any) -> Any:
                fixed = all(type(each) is int and each >= 0 for each in args)
                if not fixed or len(args) != _PARTS[name]:
                    return tracer.create_proxy("call_method", name, (self, *args), kwargs)
                axis, start, *length = args
                key = slice(start, start + length[0]) if length else start
                return self[(*[_ALL] * axis, key)]

            return part
        if name not in OF_SHAPE or tracer.type_of(self.node) is not torch.Tensor:
            return super().__getattr__(name)
        if tracer.has_known_shape(self.node):
            return getattr(tracer.value_of(self.node), name)
        known = tracer.known_extents(self.node)
        if known is None:
            return super().__getattr__(name)
        if name not in _OF_SIZES:
            return getattr(tracer.value_of(self.node), name)
        if name not in ("shape", "size") or all(each is None for each in known):
            return super().__getattr__(name)
        own: Any = super().__getattr__("shape")
        extents = tuple(own[i] if each is None else each for i, each in enumerate(known))
        if name == "shape":
            return extents
        return lambda dim=None: extents if dim is None else extents[dim]

    def __len__(self) -> int:
        value = cast(_SplitTracer, self.tracer).value_of(self.node)
        if isinstance(value, torch.Tensor):
            extents = self.shape
            is_known = isinstance(extents, tuple) and type(extents[0]) is int
            return int(extents[0] if is_known else super().__len__())
        return len(value) if isinstance(value, tuple) else super().__len__()

    def __setitem__(self, key: Any, value: Any) -> None:
        keys = key if isinstance(key, tuple) else (key,)
        tracer = cast(_SplitTracer, self.tracer)
        dtype = tracer.value_of(self.node).dtype
        if not any(map(tracer.is_tensor, keys)):
            new = _with_part(self, _all_keys(keys, tracer.value_of(self.node).dim()), 0, value)
            self.copy_(new)
            return
        places = [_place(each, tracer) for each in keys]
        if isinstance(value, bool | int | float):
            value = torch.tensor(value, dtype=dtype)
        if not any(each is None for each in places):
            self.index_put_(tuple(places), value)
            return
        put = torch.ops.aten.index_put_.default
        self._whole()._writes += 1
        tracer.create_proxy("call_function", put, (self, places, value.to(dtype)), {})

    def __iter__(self) -> Any:
        errors = cast(_SplitTracer, self.tracer).errors
        count = len(errors)
        try:
            return super().__iter__()
        except fx.proxy.TraceError:
            own: Any = self
            members = [own[index] for index in range(len(self))]
            del errors[count:]
            return iter(members)


def _enter_in_place(name: str) -> None:
    def in_place(proxy: fx.Proxy, other: Any) -> fx.Proxy:
        if isinstance(proxy, _SplitProxy) and proxy._part is not None:
            plain = getattr(operator, f"__{name[1:]}__")
            made: fx.Proxy = proxy._written(plain)(proxy, other)
            return made
        if isinstance(proxy, _SplitProxy):
            proxy._writes += 1
        return proxy.tracer.create_proxy(
            "call_function", getattr(operator, name), (proxy, other), {}
        )

    setattr(_Proxy, f"__{name}__", in_place)


for _name in (
    *("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor"),
):
    _enter_in_place(_name)
