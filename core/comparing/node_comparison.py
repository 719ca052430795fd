"""Comparison of each FX node with torch's value, in a run and in isolation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch

from lowerscope.core.comparing.node_findings import Found, NotCompared
from lowerscope.core.comparing.node_parts import NodeParts, Part, has_type, torch_tensor
from lowerscope.core.comparing.nodes_alone import NodesAlone
from lowerscope.core.comparing.tolerances import Tolerances
from lowerscope.core.comparing.verdicts import Difference, difference, verdict_over
from lowerscope.core.errors import last_line
from lowerscope.core.execution.threads import one_torch_thread
from lowerscope.core.execution.walking import TORCH_ERRORS, TorchValues
from lowerscope.core.records.run import STATUS_OF
from lowerscope.core.tracing.tracing import TracedModel


class NodeComparison:
    """Comparison of the values of nodes with torch's, call by call.

    A node's value in the run is compared first, and right after it the value that the node gives in
    isolation: torch's values are cached no longer than that.

    Attributes
    ----------
    in_run, alone
        Findings by node.
    """

    def __init__(
        self,
        parts: NodeParts,
        alone: NodesAlone,
        traced: TracedModel,
        inputs: Sequence[torch.Tensor],
        seed: int,
        tolerances: Tolerances,
    ) -> None:
        self.in_run: dict[str, Found] = dict(parts.reasons)
        self.alone = dict(self.in_run)
        self._parts, self._alone, self._tolerances = parts, alone, tolerances
        self._left = {name: len(each) for name, each in parts.of.items()}
        self._found: dict[str, list[Difference]] = {}
        self._unread: dict[str, Found] = {}
        uses = Counter(list(parts.of))
        for reads in alone.reads.values():
            uses.update(reads)
        self._values = TorchValues(traced.graph_module, inputs, seed, uses)

    def take(self, index: int, tensors: Sequence[torch.Tensor], stale: str = "") -> None:
        """Compare the results of a call; once for each call.

        Parameters
        ----------
        stale
            Why these are not the values of its nodes, if so.
        """
        for part in self._parts.given_by(index):
            name = part.node
            if stale:
                self._unread[name] = Found("not comparable", stale)
            elif name not in self.in_run:
                found = self._in_run(part, tensors)
                if isinstance(found, Found):
                    self.in_run[name] = found
                else:
                    self._found.setdefault(name, []).append(found)
            self._left[name] -= 1
            if not self._left[name]:
                self._finish(name)

    def _in_run(self, part: Part, tensors: Sequence[torch.Tensor]) -> Difference | Found:
        """Return the difference of a tensor, or why it was not compared."""
        if part.node in self._parts.random:
            return self._parts.random[part.node]
        actual = tensors[part.source[1]]
        if not has_type(actual, part.type):
            return Found("not comparable", "its value has another shape or dtype after the passes")
        try:
            return self._difference(actual, self._expected(part))
        except NotCompared as error:
            return error.found

    def _difference(self, actual: torch.Tensor, expected: torch.Tensor) -> Difference:
        # Steps are short: more threads would wait for each other, and take time from TVM's.
        with one_torch_thread():
            return difference(actual, expected, self._tolerances)

    def _expected(self, part: Part) -> torch.Tensor:
        try:
            return torch_tensor(self._values.of(part.node), part)
        except TORCH_ERRORS as error:
            reason = f"torch could not run the graph so far: {last_line(error)}"
            raise NotCompared(reason, "no reference") from error

    def _finish(self, name: str) -> None:
        """Record the finding of a node, and run it in isolation."""
        # Leave out unread tensors, unless there are no others.
        found = self._found.pop(name, ())
        unread = None if found else self._unread.get(name)
        self.in_run.setdefault(name, unread or _over_all(found))
        try:
            self.alone[name] = self._found_alone(name)
        except NotCompared as error:
            self.alone[name] = error.found
        for each in (name, *self._alone.reads.get(name, ())):
            self._values.used(each)

    def _found_alone(self, name: str) -> Found:
        if name in self._alone.reasons:
            return self._alone.reasons[name]
        parts = self._parts.of[name]
        expected = [self._expected(part) for part in parts]
        ran = self._alone.run(name, self._values)
        pairs = zip(ran.values, expected, strict=True)
        return _over_all([self._difference(*pair) for pair in pairs], ran.together)


def _over_all(found: Sequence[Difference], together: tuple[str, ...] = ()) -> Found:
    measured = [each for each in found if each.is_measured]
    return Found(
        STATUS_OF[verdict_over(found)],
        "; ".join(each.reason for each in found if each.reason),
        max((each.max_abs for each in measured), default=None),
        max((each.max_rel for each in measured), default=None),
        "; ".join(each.not_finite for each in found if each.not_finite),
        together,
    )
