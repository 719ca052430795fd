"""Torch's runs of a traced model node by node, and its time for each node."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import fx

from lowerscope.core.ir.relax import calls_of
from lowerscope.core.model.progress import Progress
from lowerscope.core.model.texts import _
from lowerscope.core.run.execution import copied
from lowerscope.core.run.standalone import quarters, repeated
from lowerscope.core.sources.opened_model import in_eval_mode, run_mode
from lowerscope.core.stages import Stages
from lowerscope.core.tracing.tracing import TracedModel

TORCH_ERRORS = (
    *(RuntimeError, TypeError, ValueError, LookupError, AttributeError),
    *(AssertionError, ArithmeticError),
)
"""Exceptions that torch raises if it cannot run a graph node by node."""


class TorchInterpreter:
    """A traced model in eval mode, run up to one node after the other.

    Args:
        graph_module: It is copied, as a run may change its tensors.
        inputs: The values of its placeholders, in order; they are not changed.
        wanted: The nodes whose values are needed. They are cached, as they were just after the
            node, until they have been taken.
        module: A copy of the model to run in its place, as in float64.
    """

    def __init__(
        self,
        graph_module: fx.GraphModule,
        inputs: Sequence[torch.Tensor],
        seed: int,
        wanted: Collection[str],
        module: torch.nn.Module | None = None,
    ) -> None:
        if module is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                module = in_eval_mode(copied(graph_module))
        # Keep the nodes of the original: a copy may rename them.
        self._interpreter = fx.Interpreter(module, graph=graph_module.graph)
        self._mode = run_mode(module)
        self._interpreter.args_iter = iter([value.detach().clone() for value in inputs])
        self._nodes = iter(graph_module.graph.nodes)
        self._wanted = wanted
        self._kept: dict[str, Any] = {}
        self._numbers = _seeded(seed)

    @contextmanager
    def _run(self) -> Iterator[None]:
        """Run nodes with random numbers of their own: other runs go on in between."""
        others = torch.get_rng_state()
        torch.set_rng_state(self._numbers)
        try:
            with self._mode():
                yield
        finally:
            self._numbers = torch.get_rng_state()
            torch.set_rng_state(others)

    def take(self, name: str) -> Any:
        """Run up to a node, and return its value as it was just after it.

        Raises any error of torch on the way. Each value can be taken once.
        """
        interpreter = self._interpreter
        with self._run():
            while name not in self._kept:
                node = next(self._nodes)
                value = interpreter.env[node] = interpreter.run_node(node)
                for dead in interpreter.user_to_last_uses.get(node, ()):
                    del interpreter.env[dead]
                if node.name in self._wanted:
                    self._kept[node.name] = _cloned(value)
        return self._kept.pop(name)

    def forget(self, name: str) -> None:
        """Drop a value that was not taken."""
        self._kept.pop(name, None)

    def calls(self, names: Collection[str]) -> tuple[Callable[[], Any], ...]:
        """Run up to the last of some nodes, and return functions that run each of them again.

        Each is given copies of its arguments in the run. Nodes that call nothing are left out.
        Raises any error of torch on the way.
        """
        interpreter, left = self._interpreter, set(names)
        found: list[Callable[[], Any]] = []
        with self._run():
            while left:
                node = next(self._nodes)
                if node.name in left and node.op.startswith("call_"):
                    args, kwargs = interpreter.fetch_args_kwargs_from_env(node)
                    call = getattr(interpreter, node.op)
                    found.append(partial(call, node.target, tuple(_cloned(args)), _cloned(kwargs)))
                left.discard(node.name)
                interpreter.env[node] = interpreter.run_node(node)
                for dead in interpreter.user_to_last_uses.get(node, ()):
                    del interpreter.env[dead]
        return tuple(found)


def _seeded(seed: int) -> torch.Tensor:
    """Return the state of torch's random numbers after a seed."""
    return torch.Generator().manual_seed(seed).get_state()


class TorchValues:
    """Torch's values of nodes from one run; each is cached until its last use.

    Args:
        uses: Number of future uses of a node's value, by node.
        module: As of `TorchInterpreter`.
    """

    def __init__(
        self,
        graph_module: fx.GraphModule,
        inputs: Sequence[torch.Tensor],
        seed: int,
        uses: Mapping[str, int],
        module: torch.nn.Module | None = None,
    ) -> None:
        self._left = dict(uses)
        self._kept: dict[str, Any] = {}
        self._failure: Exception | None = None
        self._walk = TorchInterpreter(graph_module, inputs, seed, self._left, module)

    def of(self, name: str) -> Any:
        """Return the value of a node.

        Raises any error of torch on the way there, and again for each node after that.
        """
        if name not in self._kept:
            if self._failure is not None:
                raise self._failure
            try:
                self._kept[name] = self._walk.take(name)
            except Exception as error:
                self._failure = error.with_traceback(None)
                raise
        return self._kept[name]

    def used(self, name: str) -> None:
        """Count one use."""
        self._left[name] -= 1
        if not self._left[name]:
            del self._left[name]
            self._kept.pop(name, None)
            self._walk.forget(name)


def _cloned(value: Any) -> Any:
    """Copy the tensors in a value: a later operator may write into them."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, tuple):
        # A tuple and a list differ as indices.
        parts = [_cloned(each) for each in value]
        kind = type(value)
        return kind(*parts) if hasattr(kind, "_make") else kind(parts)
    if isinstance(value, list):
        return [_cloned(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _cloned(each) for key, each in value.items()}
    return value


@dataclass(frozen=True)
class Nodes:
    """The FX nodes that a function computes, completely or in part."""

    names: tuple[str, ...] = ()
    # Whether torch does more for them than the function: other functions compute a part.
    does_more: bool = False


def nodes_of(stages: Stages, function: str) -> Nodes:
    """Return the nodes of the first call of a function that can be scheduled.

    There are none for a source without torch, or for a function that no binding of ``main`` calls.
    """
    lowered, unscheduled = stages.lowered, stages.unscheduled
    calls = calls_of(unscheduled.module)
    own = calls.get(f"tir:{function}", ())
    if lowered is None or not own:
        return Nodes()
    calling = {each for bindings in calls.values() for each in bindings}
    became = unscheduled.bindings_in_main
    names: list[str] = []
    does_more = False
    for node in lowered.nodes.values():
        after = {
            each
            for name in node.bindings
            for each in became.get(f"relax:main/{name}", ())
            if each in calling
        }
        if own[0] in after:
            names.append(node.node)
            does_more = does_more or len(after) > 1
    return Nodes(tuple(names), does_more)


def torch_ms(stages: Stages, names: Sequence[str], seed: int, progress: Progress) -> float | None:
    """Return the median time of torch for nodes, in sequence, on the example inputs.

    Each is called by itself with its arguments in a run of the model.

    Returns:
        ``None`` if the nodes call nothing.
    """
    traced = stages.traced
    if traced is None or not names:
        return None
    progress.report(_("Measuring torch"))
    values = [each.value for each in stages.loaded.inputs]
    with stages.running():
        calls = TorchInterpreter(traced.graph_module, values, seed, ()).calls(names)
        if not calls:
            return None

        def measure(number: int) -> float:
            start = time.perf_counter()
            for _turn in range(number):
                for call in calls:
                    call()
            return (time.perf_counter() - start) / number

        with run_mode(traced.graph_module)():
            return quarters(repeated(measure, progress.check))[1] * 1000


BUDGET = 0.5
"""Total time of the measurements of all nodes, in seconds."""

REPEATS = 20
"""Most measurements of a node; at least one is made."""


def torch_times(
    traced: TracedModel, inputs: Sequence[torch.Tensor], seed: int, progress: Progress
) -> dict[str, float]:
    """Return the median time of each node that calls something, in milliseconds, by name.

    For a graph that torch cannot run node by node, up to the failing node.
    """
    names = [node.name for node in traced.graph_module.graph.nodes]
    walk = TorchInterpreter(traced.graph_module, inputs, seed, ())
    share = BUDGET / max(1, len(names))
    found: dict[str, float] = {}
    for name in names:
        progress.check()
        try:
            for call in walk.calls([name]):
                found[name] = statistics.median(_seconds(call, share)) * 1000
        except TORCH_ERRORS:
            # The comparison reports it for each node concerned.
            return found
    return found


def _seconds(call: Callable[[], object], share: float) -> list[float]:
    """Return the times of some calls, until they have used their share."""
    times: list[float] = []
    with torch.inference_mode(), warnings.catch_warnings():
        # torch's warnings of the model's calls were shown when it was traced.
        warnings.simplefilter("ignore")
        while not times or (len(times) < REPEATS and sum(times) < share):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return times
