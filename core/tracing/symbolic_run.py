"""A run of a traced graph, or of the model itself, on tensors with symbolic extents."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import ShapeGuard  # type: ignore[attr-defined]
from torch.overrides import TorchFunctionMode

from lowerscope.core.model.problems import LowerscopeError, is_interrupt
from lowerscope.core.model.snapshot import SourceLine
from lowerscope.core.sources.call_spec import CallSpec
from lowerscope.core.tracing.example_run import NodeInfo, describe
from lowerscope.core.tracing.failures import (
    first_line,
    is_users_file,
    line_of_frame,
    source_line,
    where_of,
)
from lowerscope.core.tracing.symbolic_sizes import NamedInputs, Symbols, fixed_dimension, named_text


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


def _chain_matmul(*matrices: torch.Tensor) -> torch.Tensor:
    return _multi_dot(matrices)


def _lstm(input: torch.Tensor, states: Any, *options: Any) -> tuple[torch.Tensor, ...]:
    return *_recurrent(input, states[0], *options), torch.empty_like(states[1])


def _recurrent(input: torch.Tensor, state: torch.Tensor, *options: Any) -> tuple[torch.Tensor, ...]:
    _parameters, has_biases, _layers, _dropout, _train, is_bidirectional, _batch_first = options
    if not isinstance(has_biases, bool):
        raise NotImplementedError("the sequences are packed")
    features = state.shape[-1] * (2 if is_bidirectional else 1)
    return input.new_empty((*input.shape[:-1], features)), torch.empty_like(state)


_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    torch.kron: _kron,
    torch.Tensor.kron: _kron,
    torch.take_along_dim: _take_along_dim,
    torch.Tensor.take_along_dim: _take_along_dim,
    torch.linalg.multi_dot: _multi_dot,
    torch.chain_matmul: _chain_matmul,
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
    with _without_values(symbols), SymbolicSizes():
        recorder.run(*symbols.inputs(inputs), enable_io_processing=False)
    return recorder.values


class _Recorder(fx.Interpreter):
    """Interpreter that records the value of each node."""

    def __init__(
        self,
        graph_module: fx.GraphModule,
        symbols: Symbols,
        named: NamedInputs,
        lines: Mapping[str, SourceLine],
    ) -> None:
        super().__init__(graph_module)
        self.extra_traceback = False
        self.values: dict[str, NodeInfo] = {}
        self._symbols = symbols
        self._named = named
        self._lines = lines

    def run_node(self, n: fx.Node) -> Any:
        line = self._lines.get(n.name)
        try:
            value = super().run_node(n)
        except BaseException as error:  # operators may raise any type
            if is_interrupt(error):
                raise
            raise LowerscopeError(
                f"torch cannot follow named dimensions through node {n.name}: {first_line(error)}",
                where=where_of(line),
                todo="try --tracer export, or write numbers in place of the names",
                code="try-export",
            ) from error
        for _, demand in self._symbols.demands():
            raise fixed_dimension(demand, self._named, line, n.name)
        self.values[n.name] = describe(value, lambda each: named_text(each, self._symbols.names))
        return value


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
        with torch.no_grad(), torch.random.fork_rng(devices=[]), symbols.mode:
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
