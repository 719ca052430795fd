"""Named dimensions as symbolic sizes of torch, and the constraints of a model on them.

Importing it takes seconds: it loads sympy and parts of torch.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import (  # type: ignore[attr-defined]
    ShapeEnv,
    ShapeGuard,
)
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from lowerscope.core.model.dimensions import parts_of
from lowerscope.core.model.problems import LowerscopeError, is_interrupt
from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.model.texts import _
from lowerscope.core.sources.opened_model import transformers_as_in_a_run, without_logs
from lowerscope.core.sources.pytree import CallSpec
from lowerscope.core.sources.symbolic_extents import (
    SymbolicMode,
    always_holds,
    extent_text,
    named_text,
    new_extent,
    symbol_of,
)
from lowerscope.core.tracing.example_run import NodeInfo, describe
from lowerscope.core.tracing.extents import at_other_sizes, expression_of, sizes_of
from lowerscope.core.tracing.grouping import Group
from lowerscope.core.tracing.splitting import TorchPart, without_content
from lowerscope.core.tracing.trace_errors import (
    NamedInputs,
    first_line,
    fixed_dimension,
    is_users_file,
    line_of_frame,
    source_line,
    traceback_text,
    where_of,
)


class Symbols:
    """A torch symbol for each name.

    `mode`: Mode in which tensors have symbolic extents, and no memory.
    `names`: of the symbols: ``{s26: batch}``, to format extents with.
    """

    def __init__(self, named: NamedInputs, inputs: Sequence[torch.Tensor]) -> None:
        self._environment = ShapeEnv()
        self.mode = SymbolicMode(shape_env=self._environment, allow_non_fake_inputs=True)
        self.names: dict[sympy.Symbol, sympy.Symbol] = {}
        self._named = named
        self._checked = 0
        sizes = {
            name: size
            for shape, value in zip(named.shapes, inputs, strict=True)
            for name, size in zip(shape, value.shape, strict=True)
            if isinstance(name, str)
        }
        self._extents = {
            name: self._symbol(name, size) for name, size in sizes.items() if name in named.ranges
        }
        for text in sizes.keys() - self._extents.keys():
            name, more = parts_of(text)
            self._extents[text] = self._extents[name] + more

    def _symbol(self, name: str, size: int) -> torch.SymInt:
        extent = new_extent(self._environment, name, size, self._named.ranges[name])
        self.names[extent.node.expr] = symbol_of(name)
        return extent

    def outputs_of(
        self,
        outputs_at: Sequence[tuple[Mapping[str, int], Any]],
        varies: Sequence[Sequence[bool]],
    ) -> Any:
        """Return the outputs of a node that runs in torch, with extents of the names.

        `outputs_at`: its outputs, a nest of tensors without content, at some sizes.
        `varies`: for each tensor, the axes whose extents depend on data.

        Raises `ValueError` if an extent is no simple expression of the sizes.
        """
        names = {name: self._extents[name] for name in self._named.ranges if name in self._extents}
        made: list[Any] = []
        axes = iter(varies)
        first_outputs, spec = pytree.tree_flatten(outputs_at[0][1])
        flat = [(sizes, pytree.tree_leaves(outputs)) for sizes, outputs in outputs_at]
        for index, first in enumerate(first_outputs):
            found = [(sizes, outputs[index]) for sizes, outputs in flat]
            if not isinstance(first, torch.Tensor):
                raise ValueError(_("it gives a number"))
            if any(each.dim() != first.dim() for _sizes, each in found):
                raise ValueError(_("the rank of a result depends on the sizes"))
            of_data = next(axes, (False,) * first.dim())
            shape: list[Any] = []
            for axis in range(first.dim()):
                if of_data[axis]:
                    shape.append(self._environment.create_unbacked_symint())
                    continue
                formula = expression_of([(dict(at), each.shape[axis]) for at, each in found])
                if formula is None:
                    raise ValueError(_("a result has a shape that is no expression of the sizes"))
                shape.append(formula[1](names))
            made.append(torch.empty(shape, dtype=first.dtype))
        return pytree.tree_unflatten(made, spec)

    def inputs(self, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return tensors with the symbolic shapes of the inputs, for use in `mode`."""
        with self.mode:
            return [
                torch.empty(
                    tuple(self._extents[each] if isinstance(each, str) else each for each in shape),
                    dtype=value.dtype,
                )
                for shape, value in zip(self._named.shapes, values, strict=True)
            ]

    def demands(self) -> Iterator[tuple[ShapeGuard, str]]:
        """Yield the new constraints on the sizes since the last call that do not always hold.

        The second of each pair is its text: ``batch == 7``.
        """
        guards = self._environment.guards[self._checked :]
        self._checked += len(guards)
        for guard in guards:
            named = guard.expr.xreplace(self.names)
            if not _is_general(guard) and not always_holds(named, self._named.ranges):
                yield guard, extent_text(named)


def _is_general(guard: ShapeGuard) -> bool:
    """Return whether a result at sizes that violate a constraint is that at the others.

    Torch compares an extent with 1, and takes the general branch: the tensor is not broadcast. Or
    it compares strides, to tell the memory layout.
    """
    place = guard.sloc.framework_loc
    name = getattr(place, "name", "")
    if name in ("_broadcast_shapes", "infer_size"):
        return isinstance(guard.expr, sympy.Ne) and guard.expr.args[1] == 1
    return name in _LAYOUT


_LAYOUT = (
    "check_contiguous_sizes_strides",
    "is_channels_last_contiguous_2d",
    "is_channels_last_contiguous_3d",
)
"""Torch's functions that compare strides."""


class SymbolicSizes(TorchFunctionMode):
    """Mode that replaces torch's functions by those of this module, which compute no values.

    Torch's own code of these functions reads the sizes of tensors as integers, which specialises a
    symbolic size to the traced one.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return _FUNCTIONS.get(func, func)(*args, **(kwargs or {}))


def _kron(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    rank = max(input.dim(), other.dim())
    first, second = ((1,) * (rank - each.dim()) + each.shape for each in (input, other))
    shape = [a * b for a, b in zip(first, second, strict=True)]
    return input.new_empty(shape, dtype=torch.result_type(input, other))


def _take_along_dim(
    input: torch.Tensor, indices: torch.Tensor, dim: int | None = None
) -> torch.Tensor:
    if dim is None:
        return torch.empty_like(indices.flatten(), dtype=input.dtype)
    # All axes but the indexed one are broadcast.
    shapes = [list(each.shape) for each in (input, indices)]
    for shape in shapes:
        shape[dim] = 1
    whole = list(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    whole[dim] = indices.shape[dim]
    return input.new_empty(whole)


def _multi_dot(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return functools.reduce(torch.matmul, tensors)


def _lstm(input: torch.Tensor, states: Any, *options: Any) -> tuple[torch.Tensor, ...]:
    return *_recurrent(input, states[0], *options), torch.empty_like(states[1])


def _recurrent(input: torch.Tensor, state: torch.Tensor, *options: Any) -> tuple[torch.Tensor, ...]:
    _parameters, has_biases, _layers, _dropout, _train, is_bidirectional, _batch_first = options
    if not isinstance(has_biases, bool):
        raise NotImplementedError(_("the sequences are packed"))
    features = state.shape[-1] * (2 if is_bidirectional else 1)
    return input.new_empty((*input.shape[:-1], features)), torch.empty_like(state)


_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    torch.kron: _kron,
    torch.Tensor.kron: _kron,
    torch.take_along_dim: _take_along_dim,
    torch.Tensor.take_along_dim: _take_along_dim,
    torch.linalg.multi_dot: _multi_dot,
    torch.chain_matmul: lambda *matrices: _multi_dot(matrices),
    torch.lstm: _lstm,
    torch.gru: _recurrent,
    torch.rnn_tanh: _recurrent,
    torch.rnn_relu: _recurrent,
}


def run_symbolically(
    graph_module: fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    named: NamedInputs,
    lines: Mapping[str, SourceLine],
) -> dict[str, NodeInfo]:
    """Return the value of each node by name, with the names of dimensions in it.

    Raises `LowerscopeError` if the graph does not take all sizes (code ``"fixed-dimension"``), or
    torch cannot trace it without the values of tensors (code ``"try-export"``).
    """
    symbols = Symbols(named, inputs)
    recorder = _Recorder(graph_module, symbols, named, lines)
    recorder.groups = _groups_at_sizes(graph_module, inputs, named)
    with _without_values(symbols), SymbolicSizes():
        recorder.run(*symbols.inputs(inputs), enable_io_processing=False)
    return recorder.values


OutputsAt = list[tuple[Mapping[str, int], Any]]
"""The outputs of a node as tensors without content, each with the sizes that they were found at."""


def _groups_at_sizes(
    graph_module: fx.GraphModule, inputs: Sequence[torch.Tensor], named: NamedInputs
) -> dict[str, OutputsAt]:
    """Return the outputs of the groups that hold parts which run in torch, by name of their nodes.

    What is in such a group computes with numbers that tensors without content do not have.
    """
    groups = [
        node
        for node in graph_module.graph.find_nodes(op="call_module", sort=False)
        if isinstance(group := graph_module.get_submodule(str(node.target)), Group)
        and any(isinstance(each, TorchPart) for each in group.modules())
    ]
    found: dict[str, OutputsAt] = {node.name: [] for node in groups}
    if groups:
        own = sizes_of(named, inputs), tuple(inputs)
        for sizes, values in itertools.chain([own], at_other_sizes(named, inputs)):
            run = _GroupOutputs(graph_module)
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                try:
                    run.run(*(each.clone() for each in values), enable_io_processing=False)
                except Exception:  # a model may reject inputs by any error
                    if not any(found.values()):
                        raise
                    continue
            for name, outputs in found.items():
                outputs.append((sizes, run.outputs[name]))
    return found


class _GroupOutputs(fx.Interpreter):
    """Interpreter that records the outputs of groups without their content."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        super().__init__(graph_module)
        self.extra_traceback = False
        self.outputs: dict[str, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if n.op == "call_module" and isinstance(self.fetch_attr(str(n.target)), Group):
            self.outputs[n.name] = pytree.tree_map(without_content, value)
        return value


class _Recorder(fx.Interpreter):
    """Interpreter that records the value of each node."""

    def __init__(
        self,
        graph_module: torch.nn.Module,
        symbols: Symbols,
        named: NamedInputs,
        lines: Mapping[str, SourceLine],
        graph: fx.Graph | None = None,
    ) -> None:
        super().__init__(graph_module, graph=graph)
        self.extra_traceback = False
        self.values: dict[str, NodeInfo] = {}
        self._symbols = symbols
        self._named = named
        self._lines = lines
        self.groups: Mapping[str, OutputsAt] = {}
        """Outputs of the groups with parts that run in torch, by name of their nodes."""

    def _value_of(self, n: fx.Node) -> Any:
        part = self.fetch_attr(str(n.target)) if n.op == "call_module" else None
        known = part.at_sizes if isinstance(part, TorchPart) else self.groups.get(n.name)
        if known is not None:
            return self._symbols.outputs_of(known, n.meta.get("varies", ()))
        if n.target is torch.ops.higher_order.while_loop:
            # Each step gives what it takes.
            return tuple(map(torch.empty_like, self.fetch_args_kwargs_from_env(n)[0][2]))
        return super().run_node(n)

    def run_node(self, n: fx.Node) -> Any:
        line = self._lines.get(n.name)
        try:
            value = self._value_of(n)
        except BaseException as error:  # operators may raise any type
            if is_interrupt(error):
                raise
            raise LowerscopeError(
                _(
                    "torch cannot follow named dimensions through node {name}: {first_line}",
                    name=n.name,
                    first_line=first_line(error),
                ),
                where=where_of(line),
                todo=_(
                    "try another tracer: --tracer export; or give numbers in place of the names"
                ),
                details=traceback_text(error),
                code="try-export",
            ) from error
        for _other, demand in self._symbols.demands():
            raise fixed_dimension(demand, self._named, line, n.name)
        self.values[n.name] = describe(value, lambda each: named_text(each, self._symbols.names))
        return value


class Conditions:
    """The conditions on sizes in a graph that is being traced."""

    def __init__(
        self,
        root: torch.nn.Module,
        graph: fx.Graph,
        inputs: Sequence[torch.Tensor],
        named: NamedInputs,
    ) -> None:
        self._symbols = Symbols(named, inputs)
        self._recorder = _Recorder(root, self._symbols, named, {}, graph)
        self._inputs = iter(self._symbols.inputs(inputs))

    def value(self, condition: fx.Node) -> bool | None:
        """Return whether a condition holds at all sizes, or at none; ``None`` for others."""
        env = self._recorder.env
        try:
            with _without_values(self._symbols), SymbolicSizes():
                for node in _read_by(condition, env):
                    is_input = node.op == "placeholder"
                    env[node] = next(self._inputs) if is_input else self._recorder.run_node(node)
                value = env[condition]
                known = bool(value) if isinstance(value, bool | torch.SymBool) else None
        except Exception:  # operators may raise any type where values are missing
            return None
        return known if next(self._symbols.demands(), None) is None else None


def _read_by(last: fx.Node, known: Mapping[fx.Node, Any]) -> list[fx.Node]:
    """Return the nodes of a graph that a node reads and that are not known, and all inputs."""
    wanted = {last}
    for node in reversed(last.graph.nodes):
        if node.op == "placeholder" or node in wanted:
            wanted |= {node, *node.all_input_nodes}
    return [node for node in last.graph.nodes if node in wanted and node not in known]


def find_demand(
    model: torch.nn.Module, inputs: Sequence[torch.Tensor], calling: CallSpec, named: NamedInputs
) -> LowerscopeError | None:
    """Return why `model` does not take all sizes of a dimension; ``None`` if unknown."""
    symbols = Symbols(named, inputs)
    found: list[tuple[str, SourceLine | None]] = []

    def look(line: SourceLine | None) -> None:
        found.extend((demand, _line_of(guard) or line) for guard, demand in symbols.demands())

    args, kwargs = calling.arguments(symbols.inputs(inputs))
    try:
        with _without_values(symbols), _AfterEachCall(look):
            model(*args, **kwargs)
    except BaseException as error:
        if is_interrupt(error):
            raise
        # The failure was reported already; the constraints so far may explain it.
        look(None)
    look(None)
    if not found:
        return None
    return fixed_dimension(found[0][0], named, found[0][1])


@contextmanager
def _without_values(symbols: Symbols) -> Iterator[None]:
    # These have specialised code for some sizes, which is not the model's constraint.
    onednn, nnpack = torch._C._get_mkldnn_enabled(), torch._C._get_nnpack_enabled()
    attention = torch.backends.mha.get_fastpath_enabled()
    torch._C._set_mkldnn_enabled(False)
    torch._C._set_nnpack_enabled(False)
    # On tensors without memory it returns an empty tensor instead of None.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=[]),
            transformers_as_in_a_run(),
            # Of operators that fail without values.
            without_logs("torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes"),
            symbols.mode,
        ):
            yield
    finally:
        torch._C._set_mkldnn_enabled(onednn)
        torch._C._set_nnpack_enabled(nnpack)
        torch.backends.mha.set_fastpath_enabled(attention)


class _AfterEachCall(TorchFunctionMode):
    """Mode that reports the user's line of each call into torch after the call."""

    def __init__(self, tell: Callable[[SourceLine | None], None]) -> None:
        super().__init__()
        self._tell = tell

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        line = line_of_frame(sys._getframe(1), find_demand.__code__)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self._tell(line)


def _line_of(guard: ShapeGuard) -> SourceLine | None:
    """Return the user's line that compares sizes itself, as in ``if x.shape[0] == 7``."""
    place = guard.sloc.framework_loc
    if place is None or isinstance(place, str) or not is_users_file(place.filename):
        return None
    return source_line(place.filename, int(place.lineno or 0))
