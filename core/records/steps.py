"""Steps of timelines: of the translation, of the recipe's passes, and of the build.

The lists are light; texts and differences are computed when a step is selected. Everything here is
plain, frozen and serialisable. This module imports neither torch nor TVM.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Clock = Literal["translate", "passes", "schedule", "build", "run"]
"""Kind of a timeline: FX nodes translated, the recipe's passes, the primitives of the schedule of a
function, the passes of the build, or the calls of a run."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """Position in a timeline: after its first ``index`` steps; 0 is before the first.

    In the timeline ``"schedule"``, ``function`` is the one whose schedule it is; otherwise empty.
    """

    clock: Clock
    index: int
    function: str = ""


class PassRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One pass that was applied, or is to be.

    Attributes
    ----------
    number
        Its place in the list, from 1: `Moment.index` for the module after it.
    label
        Its number as it is shown: ``"4"`` for the fourth that no other one has called, ``"4.17"``
        for the seventeenth of the passes inside of that.
    name
        TVM's own.
    depth
        0 for a pass that no other one has called.
    parent
        Number of the pass that called it; 0 where none did.
    step
        Place of the recipe's step that it belongs to, from 1; 0 for one of the build's own.
    milliseconds
        With the passes inside of it.
    changed
        Names of the functions that it changed, added or removed.
    left_out
        The functions that it has left as they were, each with the reason: ``f: why``.
    status
        ``"done"``; ``"failed"``, with the ``error``; ``"skipped"`` for what comes after a pass that
        failed; ``"off"`` for a step that is switched off.
    """

    number: int
    name: str
    label: str = ""
    depth: int = 0
    parent: int = 0
    step: int = 0
    milliseconds: float = 0.0
    changed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    status: Literal["done", "failed", "skipped", "off"] = "done"
    error: str = ""


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """Effect of a pass that removed a binding (folded, fused, eliminated).

    Attributes
    ----------
    text
        ``"folded by FoldConstant"``, ``"fused into fused_matmul_add by FuseOps"``.
    step
        `PassRecord.step` of the pass.
    gone
        Whether it was eliminated: it is not a part of something else either.
    """

    text: str
    step: int
    gone: bool = True


class TranslationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The translation of one FX node.

    Attributes
    ----------
    number
        Its place in the list, from 1: `Moment.index` for the module after it.
    node
        Id of the FX node.
    bindings, functions
        Ids of the bindings that it added to ``main``, and names of the functions that it added to
        the module.
    changed
        Names of the functions that differ between the module before it and after it, which returns
        the value of the latest node: an output that returns no more than that changes nothing.
    value
        Its value from then on: the name of a variable, or a description.
    rebound
        Ids of the nodes that it writes in place: these have its value as well from then on.
    """

    number: int
    node: str
    bindings: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    value: str = ""
    rebound: tuple[str, ...] = ()
