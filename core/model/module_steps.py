"""Steps of timelines: of the translation, of the recipe's passes, and of the build.

The lists are light; texts and differences are computed when a step is selected. Everything here is
plain, frozen and serialisable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from lowerscope.core.model.encoding import Row
from lowerscope.core.model.formatting import error_text
from lowerscope.core.model.graph import GraphRecord
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _n

Section = Literal["translate", "passes", "schedule", "build", "run"]
"""Section of the list of steps: FX nodes translated, the recipe's passes, the primitives of the
schedule of a function, the passes of the build, or the calls of a run."""


APART: tuple[Section, ...] = ("schedule", "run")
"""Sections whose steps belong to the final module."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """Position in a section: after its first ``index`` steps; 0 is before the first.

    In the section ``"schedule"``, ``function`` is the one whose schedule it is; otherwise empty.
    """

    section: Section
    index: int
    function: str = ""


class PassRecord(Row, frozen=True, kw_only=True):
    """One pass that was applied, or is to be."""

    number: int  # its place in the list, from 1: `Moment.index` for the module after it
    name: str  # TVM's own
    # Its number as it is shown: ``"4"`` for the fourth that no other one has called, ``"4.17"`` for
    # the seventeenth of the passes inside of that.
    label: str = ""
    depth: int = 0  # 0 for a pass that no other one has called
    parent: int = 0  # number of the pass that called it; 0 where none did
    # Place of the recipe's step that it belongs to, from 1; 0 for one of the build's own.
    step: int = 0
    milliseconds: float = 0.0  # with the passes inside of it
    changed: tuple[str, ...] = ()  # names of the functions that it changed, added or removed
    # added, removed: how many of them were not there before, or are not there after it
    added: int = 0
    removed: int = 0
    # The functions that it has left as they were, each with the reason: ``f: why``.
    left_out: tuple[str, ...] = ()
    # ``"done"``; ``"failed"``, with the ``error``; ``"skipped"`` for what comes after a pass that
    # failed; ``"off"`` for a step that is switched off.
    status: Literal["done", "failed", "skipped", "off"] = "done"
    error: str = ""


class BindingEffect(Row, frozen=True, kw_only=True):
    """Effect of a pass that removed a binding (folded, fused, eliminated)."""

    text: str  # ``"folded by FoldConstant"``, ``"fused into fused_matmul_add by FuseOps"``
    step: int  # `PassRecord.step` of the pass
    gone: bool = True  # whether it was eliminated: it is not a part of something else either


class TranslationRecord(Row, frozen=True, kw_only=True):
    """The translation of one FX node."""

    number: int  # its place in the list, from 1: `Moment.index` for the module after it
    node: str  # id of the FX node
    # bindings, functions: ids of the bindings that it added to ``main``, and names of the functions
    # that it added to the module
    bindings: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    # Names of the functions that differ between the module before it and after it, which returns
    # the value of the latest node: an output that returns no more than that changes nothing.
    changed: tuple[str, ...] = ()
    value: str = ""  # its value from then on: the name of a variable, or a description
    # Ids of the nodes that it writes in place: these have its value as well from then on.
    rebound: tuple[str, ...] = ()


# Differences as the window and the command line show them: plain, frozen, serialisable values.

Status = Literal["same", "changed", "added", "removed"]
"""Status of a function, a binding or a line, from the old side to the new one."""


class ComparedModule(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison: the module of a recipe at a step, or after all of its steps.

    ``before`` stands for the input of that step. That is not always the module after the step
    before: a pass may contain others.
    """

    recipe: Recipe
    moment: Moment | None = None
    before: bool = False


LineStatus = Literal[Status, "moved-in", "moved-out"]
"""Status of a line: ``"moved-in"`` where it came from another function, and ``"moved-out"`` where
it went into another one."""


class Run(msgspec.Struct, frozen=True, array_like=True):
    """Consecutive lines with the same status."""

    status: LineStatus  # ``"changed"`` lines are on both sides, each one beside its counterpart
    # old, new: the first line on either side, from 1; of lines that a side does not have, the one
    # before which they would stand
    old: int
    new: int
    length: int  # number of lines
    # Of moved lines: the function that has ``old``, or ``new``; of changed lines whose old ones
    # went into another function as well: that function.
    other: str = ""


class ConstantDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A constant that has other values on the new side: ``different`` of its ``count`` values.

    ``largest`` is the largest difference of two of them; ``None`` where none is a number.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    count: int
    different: int
    largest: float | None

    def line(self) -> str:
        """Return it in words."""
        if self.largest is None:
            return _n(
                "{different:,} of {count:,} value of {name} differs",
                "{different:,} of {count:,} values of {name} differ",
                self.count,
                name=self.name,
                different=self.different,
            )
        return _n(
            "{different:,} of {count:,} value of {name} differs, by {largest}",
            "{different:,} of {count:,} values of {name} differ, by {largest} at most",
            self.count,
            name=self.name,
            different=self.different,
            largest=error_text(self.largest),
        )


class FunctionDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of one function."""

    name: str  # its name in the module
    kind: Literal["relax", "tensorir", ""]  # ``"relax"``, ``"tensorir"``, or empty for other text
    status: Status  # whether it stands on both sides, and is the same
    # old, new: the texts; one that stands on one side alone is empty on the other, and where
    # nothing changed, ``new`` is empty as well
    old: str
    new: str
    runs: tuple[Run, ...]  # all lines of both texts, in order
    # added, removed, changed: numbers of lines
    added: int = 0
    removed: int = 0
    changed: int = 0
    # moved_in, moved_out: numbers of lines that came from other functions, or went into them
    moved_in: int = 0
    moved_out: int = 0
    # The constants that have other values: the lines do not show these. A function in which nothing
    # else differs is ``"changed"`` all the same, and all of its lines are the same.
    constants: tuple[ConstantDifference, ...] = ()
    # old_names, new_names: names of the constants in either text, by their printed form
    old_names: Mapping[str, str] = {}
    new_names: Mapping[str, str] = {}


class DifferenceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two modules, function by function, in the order of the new one.

    ``old_label`` and ``new_label`` describe the sides; ``language`` is that of the texts.
    """

    old_label: str
    new_label: str
    functions: tuple[FunctionDifference, ...]
    language: str = "tvmscript"
    # Effect of the step between the sides, in words: names of code are between backticks. Empty
    # where the sides are not the two ends of a step, or of all passes.
    sentence: str = ""
    # Both labels and the sentence in English, for a patch.
    english: tuple[str, str, str] = ("", "", "")
    # Ids of two functions that the step fused: the reason can be explained.
    fused: tuple[str, ...] = ()


class NodeDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One binding or parameter of a Relax function in the difference of two graphs."""

    id: str  # of its box in `GraphDifference.graph`
    status: Status
    # old, new: its ids on either side; empty where it is not there
    old: str
    new: str
    name: str  # the variable, or ``old → new`` where it has another one
    # before, after: what its value is on either side: ``R.add``, ``call_tir dense``
    before: str
    after: str


class GraphDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Difference of two graphs in one drawing: equal nodes of both sides are one box.

    ``nodes`` has an entry for each box, in the order of the program. The ``strategy`` of a box is
    the status of its node, empty where nothing changed.
    """

    old_label: str
    new_label: str
    function: str
    graph: GraphRecord
    nodes: tuple[NodeDifference, ...]
