"""Model in a virtual machine on another machine: inputs are sent, outputs fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import tvm
from tvm import relax

from lowerscope.core.execution.running import to_torch, to_tvm
from lowerscope.core.measuring import BUDGET, LEAST, REPEATS, Measuring
from lowerscope.core.remote.session import Session

_ENTRY = "main"

_NOTHING = 1e-6
"""Lower bound on the time of a call, in seconds."""


class RemoteExecution:
    """An executable on a server, with its inputs set.

    Parameters
    ----------
    module
        As `shipping.ship` returns it.
    """

    def __init__(self, session: Session, module: Any) -> None:
        self._session = session
        self._device = session.device()
        self._machine: Any = session.call(
            "starting the virtual machine", lambda: relax.VirtualMachine(module, self._device)
        )

    def take(self, inputs: Sequence[torch.Tensor | tvm.runtime.Tensor]) -> None:
        """Send new inputs."""

        def send() -> None:
            sent = [sent_to(self._device, value) for value in inputs]
            self._machine.set_input(_ENTRY, *sent)

        self._session.call("sending the inputs", send)

    def outputs(self) -> tuple[torch.Tensor, ...]:
        """Run once and fetch the outputs, with tuples flattened."""
        self._session.call("running", lambda: self._machine.invoke_stateful(_ENTRY))

        def fetch() -> tuple[torch.Tensor, ...]:
            found = self._machine.get_outputs(_ENTRY)
            return tuple(fetched(each) for each in _leaves(found))

        return self._session.call("fetching the outputs", fetch)

    def seconds(self, measuring: Measuring, share: float, *, again: bool) -> list[float]:
        """Return the times of some calls, each measured by the server's clock.

        Parameters
        ----------
        share
            Of the time that measuring should take.
        again
            Whether it may be called often: side effects of a function occur once a call.
        """
        for _ in range(measuring.warm_up - 1):
            self._session.call("warming up", lambda: self._machine.invoke_stateful(_ENTRY))
        # The evaluator makes a warm-up call before.
        once = max(self._timed(1)[0], _NOTHING)
        most = REPEATS if again else 0
        repeats = measuring.repeats or max(LEAST, min(most, int(BUDGET * share / once)))
        return self._timed(repeats, once * repeats)

    def _timed(self, repeats: int, expected: float = 0.0) -> list[float]:
        def measure() -> list[float]:
            evaluator = self._machine.time_evaluator(
                "invoke_stateful", self._device, number=1, repeat=repeats
            )
            return [float(each) for each in evaluator(_ENTRY).results]

        limit = self._session.remote.timeout + 2 * expected
        return self._session.call("measuring", measure, limit)


def sent_to(device: Any, value: torch.Tensor | tvm.runtime.Tensor) -> Any:
    """Return a copy of a tensor on a remote device."""
    ours = to_tvm(value) if isinstance(value, torch.Tensor) else value
    theirs = tvm.runtime.empty(ours.shape, ours.dtype, device)
    return theirs.copyfrom(ours) if all(ours.shape) else theirs


def fetched(value: Any) -> torch.Tensor:
    """Return a local copy of a remote tensor or number."""
    if not isinstance(value, tvm.runtime.Tensor):
        return to_torch(value)
    ours = tvm.runtime.empty(value.shape, value.dtype)
    if all(value.shape):
        value.copyto(ours)
    return to_torch(ours)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for each in value:
            yield from _leaves(each)
    else:
        yield value
