"""Context of the node that is being lowered, and its provenance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from torch import fx

from lowerscope.core.lowering.builder import functions_of
from lowerscope.core.lowering.lowered import NodeLowering, PartLowering, UsedRule
from lowerscope.core.lowering.relax_values import Value
from lowerscope.core.lowering.user_rules import UserRule
from lowerscope.core.recipe import Strategy


@dataclass
class Current:
    """Context of the node being lowered: strategy, rules, and the reason for running in torch.

    Attributes
    ----------
    strategy
        The one that is tried, and finally the one that was used.
    rule
        The name of the rule.
    cause
        Why it runs in torch although another strategy was chosen.
    user_rule, without
        The user's rule that lowered it, and the message about one that failed.
    parts, used
        As in `NodeLowering`.
    """

    strategy: Strategy
    rule: str = ""
    cause: str = ""
    user_rule: UserRule | None = None
    without: str = ""
    parts: tuple[PartLowering, ...] = ()
    used: list[UsedRule] = field(default_factory=list)

    def note_rule(
        self,
        kind: Literal["built-in", "tvm", "library", "python"],
        name: str,
        function: Callable[..., Any],
    ) -> None:
        """Record a rule that lowers the node or a part of it."""
        self.used.append(UsedRule(kind, name, function))

    def take_user_rule(self, own: UserRule) -> None:
        """Record that a user's rule has lowered the node."""
        self.user_rule = own
        self.used.insert(0, UsedRule("user", own.name, own.function))

    def provenance(
        self,
        node: fx.Node,
        bindings: list[Any],
        emitted: tuple[str, ...],
        value: Value,
        rebound: tuple[str, ...],
        *,
        is_random: bool,
    ) -> NodeLowering:
        """Return the provenance of the lowered node.

        Parameters
        ----------
        bindings, emitted
            As `NodeBuilder.end_node` returned them.
        value, rebound
            As in `NodeLowering`.
        is_random
            Whether the node draws random numbers.
        """
        names = tuple(binding.var.name for binding in bindings)
        functions = functions_of(bindings)
        used = tuple(self.used)
        if not bindings or node.op == "output":
            return NodeLowering(
                node.name, "", "", names, functions, used=used, value=value, rebound=rebound
            )
        in_torch = self.strategy == "library"
        return NodeLowering(
            node.name,
            self.strategy,
            self._shown_rule(emitted),
            names,
            functions,
            reason=f"{self.cause}; runs in torch" if in_torch and self.cause else "",
            random=in_torch and is_random,
            line=None if self.user_rule is None else self.user_rule.line,
            parts=self.parts,
            used=used,
            value=value,
            rebound=rebound,
        )

    def _shown_rule(self, emitted: tuple[str, ...]) -> str:
        if self.user_rule is not None:
            return shown(self.user_rule)
        rule = self.rule
        if self.strategy != "library":
            if self.parts:
                emitted = tuple(dict.fromkeys(part.target for part in self.parts))
            rule = f"{rule}: {', '.join(emitted)}" if emitted else rule
        return f"{rule}{self.without}"


def shown(own: UserRule) -> str:
    """Return the label of a user's rule: ``my_relu, my_rules.py:12``."""
    return f"{own.name}, {PurePath(own.line.file).name}:{own.line.line}"
