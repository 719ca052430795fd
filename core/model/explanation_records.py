"""Answers to why: a wrong step, a fusion, a pass without effect, a schedule."""

from __future__ import annotations

from typing import Literal

import msgspec

from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.recipe import Override, Step
from lowerscope.core.model.run_records import OutputVerdict

Cause = Literal[
    "fused",
    # In between, or one of the two, is no operator that can be fused:
    "library-call",
    "call",
    "not-legalised",
    "no-tensorir",
    "not-annotated",
    "opaque",
    "in-place",
    "match-cast",
    "tuple",
    "field",
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
    # Of a pass, besides those of the pipeline:
    "changed",
    "unmet",
    # Of a function:
    "scheduled",
    "not-scheduled",
    "no-rule",
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


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Explanation of a fusion, of a pass, or of a function's schedule."""

    fused: bool | None = None  # ``None`` for a pass or a function
    # What did it: ``"FuseOps: fused_matmul_add"``, a pass, ``"schedule"``, ``"tuning"``, or
    # ``"rule: contraction"``; empty if nothing did.
    by: str = ""
    cause: Cause
    text: str
    cites: tuple[str, ...] = ()  # ids of nodes, bindings and functions, and figures
    change: Change | None = None


# --- Result of a bisection: the first step after which a module differs from torch ---

BisectOutcome = Literal[
    "found",
    # There is no difference to look for:
    "match",
    "rounding",
    "inconclusive",
    "not-comparable",
    "no-reference",
    # There is one, and its step cannot be told:
    "not-reproducible",
    "unclear",
]
"""Outcome of a bisection; all are described in the help page on faults."""

BisectStage = Literal["", "translate", "pass", "schedule", "build"]
"""Stage of the step: a node's translation, a pass, a primitive of a schedule, or LLVM's
optimisation."""


PROGRAM, REPORT = "reproduce.py", "report.md"
"""Names of the program of a reproduction, and of the text for a bug report."""


class ProbedModule(msgspec.Struct, frozen=True, kw_only=True):
    """A module that was built and run."""

    after: str  # the step after which it is
    # As in `RunRecord`; ``"failed"`` if it could not be built or run.
    verdict: OutputVerdict | Literal["failed"]
    reason: str = ""


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a reproduction."""

    name: str
    content: bytes


class BisectRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The first step after which the module differs from torch, and a reproduction of that."""

    outcome: BisectOutcome
    text: str  # the answer, as sentences
    stage: BisectStage = ""
    name: str = ""  # of the node, the pass or the primitive; ``LLVM``
    function: str = ""  # the function that the primitive schedules
    steps: int = 0  # number of steps that were searched
    builds: int = 0  # number of builds of the model
    probed: tuple[ProbedModule, ...] = ()  # in the order of the steps
    moment: Moment | None = None  # of the module after the step
    entity: str = ""  # id of the node
    # nodes, all_nodes: number of FX nodes of the reproduction, and of the model
    nodes: int = 0
    all_nodes: int = 0
    # Files of the reproduction: the program first, then a text for a bug report. Empty without one.
    files: tuple[WrittenFile, ...] = ()
