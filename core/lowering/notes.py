"""Notes on a lowering for the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import fx

from lowerscope.core.errors import Problem
from lowerscope.core.lowering.user_rules import UserRule
from lowerscope.core.recipe import Override
from lowerscope.core.records.snapshot import Note, SourceLine


class Notes:
    """Collector of notes; nodes with the same reason share one.

    Parameters
    ----------
    lines
        The user's line of each node that has one, by node name.
    """

    def __init__(self, lines: Mapping[str, SourceLine]) -> None:
        self._lines = lines
        self._in_torch: dict[str, list[fx.Node]] = {}
        self._random: set[str] = set()
        self._without_rule: dict[tuple[str, str], list[str]] = {}
        self._unused_rules: list[Note] = []

    def runs_in_torch(self, node: fx.Node, cause: str, *, random: bool) -> None:
        """Add a note that a node runs in torch because of `cause`; `random` if it draws numbers."""
        self._in_torch.setdefault(cause, []).append(node)
        if random:
            self._random.add(cause)

    def rule_failed(self, node: fx.Node, rule: UserRule, problem: Problem) -> None:
        """Add a note that a user's rule is not used for a node, with the reason."""
        key = (problem.where, f"{rule.name}: {problem.what}")
        self._without_rule.setdefault(key, []).append(node.name)

    def unused_rules(self, rules: Iterable[UserRule]) -> None:
        """Add a note on rules whose operators no node calls."""
        self._unused_rules += [
            Note(text=f"{rule.name}: no node calls what it is for", where=rule.where)
            for rule in rules
        ]

    def all(
        self, not_legalised: Iterable[str], without_match: Iterable[Override]
    ) -> tuple[Note, ...]:
        """Return the notes.

        Parameters
        ----------
        not_legalised
            Names of operators that stayed although TE was chosen.
        without_match
            Overrides that match no node.
        """
        notes = [
            Note(text=f"{text}; lowered without it: {', '.join(names)}", where=where)
            for (where, text), names in self._without_rule.items()
        ]
        notes += self._unused_rules
        notes += [self._note(cause, nodes) for cause, nodes in self._in_torch.items()]
        notes += [
            Note(text=f"{name} has no TensorIR form here and stays an operator")
            for name in sorted(not_legalised)
        ]
        notes += [
            Note(text="it matches no node", where=f"--override {each.pattern}={each.strategy}")
            for each in without_match
        ]
        return tuple(notes)

    def _note(self, cause: str, nodes: list[fx.Node]) -> Note:
        names = ", ".join(node.name for node in nodes)
        kind = "node" if len(nodes) == 1 else "nodes"
        random = "; its values cannot be compared" if cause in self._random else ""
        line = next((self._lines[node.name] for node in nodes if node.name in self._lines), None)
        return Note(
            text=f"{cause}; runs in torch{random} ({kind} {names})",
            where=f"{line.file}:{line.line}" if line else "",
        )
