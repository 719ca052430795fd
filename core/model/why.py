"""Explanations: why nodes were fused, a pass changed nothing, and a function is scheduled."""

from __future__ import annotations

from typing import Literal

import msgspec

from lowerscope.core.model.recipe import Override, Step

Cause = Literal[
    "fused",
    # In between, or one of the two, is no operator that can be fused:
    "library-call",
    "call",
    "not-legalised",
    "not-annotated",
    "opaque",
    "in-place",
    "match-cast",
    "tuple",
    "branch",
    "not-a-call",
    # The rules of `FuseOps`:
    "output",
    "used-elsewhere",
    "reduction",
    "reduces-twice",
    "pattern",
    "depth-limit",
    "fusion-disabled",
    # The pipeline:
    "pass-missing",
    "pass-off",
    "pass-order",
    "removed",
    # The nodes themselves:
    "same-binding",
    "not-adjacent",
    "no-code",
    "unknown",
]
"""Cause of an answer; all are described in the help page on fusion."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the recipe that alters an answer, as one step that can be undone.

    ``steps`` and ``overrides`` replace those of the recipe; ``None`` leaves them as they are.
    """

    text: str
    steps: tuple[Step, ...] | None = None
    overrides: tuple[Override, ...] | None = None


class FusionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Explanation why two nodes are computed by one function, or not."""

    fused: bool
    by: str  # the pass that fused them, and the function: ``"FuseOps: fused_matmul_add"``
    cause: Cause
    text: str
    cites: tuple[str, ...] = ()  # ids of nodes, bindings and functions, and figures
    change: Change | None = None


class PassAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Explanation of what a pass changed, or why it changed nothing."""

    changed: bool
    step: int  # its place in the pipeline, from 1; 0 if it is tried at the end
    by: str  # name of the pass
    text: str
    cites: tuple[str, ...] = ()  # ids of bindings and functions
    change: Change | None = None


class FunctionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Explanation why a function is scheduled as it is, or not at all."""

    scheduled: bool
    by: str  # ``"schedule"``, ``"tuning"`` or ``"rule: contraction"``
    text: str
    steps: tuple[str, ...] = ()  # each primitive, with its reason
    cites: tuple[str, ...] = ()
    change: Change | None = None
