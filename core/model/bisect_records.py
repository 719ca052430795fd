"""Result of a bisection: the first step after which a module differs from torch."""

from __future__ import annotations

from typing import Literal

import msgspec

from lowerscope.core.model.module_steps import Moment

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
    verdict: str  # as in `RunRecord`; ``"failed"`` if it could not be built or run
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
