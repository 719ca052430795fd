"""Texts on entities and steps: tool tips, the Details pane, the status bar, headers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from lowerscope.app.document.document import Document
from lowerscope.app.document.stepping import StepLine, Stepping
from lowerscope.core.model.formatting import duration_text, share_text
from lowerscope.core.model.graph import name_of
from lowerscope.core.model.run_records import CallRun
from lowerscope.core.model.snapshot import (
    FxNode,
    FxPart,
    LibraryRecord,
    Snapshot,
    SourceLine,
)
from lowerscope.core.model.texts import _, _n

Facts = tuple[tuple[str, str], ...]

RANDOM = _("draws random numbers: not comparable")
"""Text for a node whose values are random in each run."""


def names_of(entities: tuple[str, ...], most: int = 4) -> str:
    """Return the names of entities with commas, the first few and a count of the others."""
    names = _(", ").join(name_of(entity) for entity in entities[:most])
    return (
        _("{names} and {count} more", names=names, count=len(entities) - most)
        if len(entities) > most
        else names
    )


def in_order(snapshot: Snapshot, entities: Iterable[str]) -> tuple[str, ...]:
    """Return ids of one kind in the order of the program: ``relax:main/lv2`` before ``…/lv10``."""
    ids = [*(each.id for each in snapshot.fx), *(each.id for each in snapshot.functions)]
    places = {each: at for at, each in enumerate(ids)}

    def key(entity: str) -> tuple[int, list[str | int]]:
        parts = re.split(r"(\d+)", entity)
        numbers = [int(each) if at % 2 else each for at, each in enumerate(parts)]
        return places.get(entity, len(places)), numbers

    return tuple(sorted(entities, key=key))


def find_node(snapshot: Snapshot, entity: str) -> FxNode | None:
    """Return the FX node with an id."""
    return snapshot.nodes.get(entity)


def line_text(line: SourceLine) -> str:
    """Return the location of a line: ``model.py:12``."""
    return f"{Path(line.file).name}:{line.line}"


def origin_text(function: LibraryRecord) -> str:
    """Return the origin of a function that no file registers."""
    return {"torch": _("by Lowerscope"), "tvm": _("by TVM")}.get(
        function.origin, _("not registered")
    )


def parts_text(node: FxNode) -> str:
    """Return the parts a node was decomposed into: ``8 × linear, 4 × tanh``; empty for none."""
    counts = Counter(part.target.split(".")[-2] for part in node.parts if "." in part.target)
    return _(", ").join(f"{count} × {name}" for name, count in counts.most_common())


def find_part(snapshot: Snapshot, entity: str) -> tuple[FxNode, FxPart] | None:
    """Return the part with an id, and the node that it belongs to."""
    if not entity.startswith("part:"):
        return None
    return next(
        ((node, part) for node in snapshot.fx for part in node.parts if part.id == entity), None
    )


def tensor_of(entity: str, linked: frozenset[str]) -> str:
    """Return the id of the tensor of an entity, a parameter or a constant; empty for none."""
    if entity.startswith(("param:", "const:")):
        return entity
    parameters = [each for each in linked if each.startswith("param:")]
    return parameters[0] if entity.startswith("relax:") and len(parameters) == 1 else ""


# --- Text of the panes while no model is shown ---


def nothing_words(document: Document) -> tuple[str, str]:
    """Return a title and a hint: the state, and what the user can do."""
    if document.wanted is not None:
        return _("Opening…"), _("Cancel, in the status bar, stops it.")
    if document.problems:
        return _("Not opened"), _("See Problems for the reason and the remedy.")
    return _("Nothing is open"), _("Open… (Ctrl+O) opens a model; so does a file dropped here.")


# --- Texts of a step: for the list of steps, and the headers of panes ---


def changed_text(line: StepLine) -> str:
    """Return ``4 functions changed``, or another outcome of the step."""
    words = {"failed": _("failed"), "skipped": _("not reached"), "off": _("switched off")}
    if line.status in words:
        return words[line.status]
    if line.note:
        return line.note
    count = len(line.changed)
    if not count:
        return _("nothing changed")
    return _n("{function} changed", "{count} functions changed", count, function=line.changed[0])


def left_out_text(line: StepLine) -> str:
    """Return ``⚠ leaves out f: why``, or the number of functions; empty for none."""
    count = len(line.left_out)
    if count < 2:
        return "".join(_("⚠ skips {function}", function=each) for each in line.left_out)
    return _(
        "⚠ skips {count} functions: {functions}",
        count=count,
        functions=_("; ").join(line.left_out),
    )


def step_text(line: StepLine) -> str:
    """Return a step in one line, with the names of some functions, or why it failed."""
    words = [f"{line.label} {line.title}"]
    if line.milliseconds is not None:
        words.append(duration_text(line.milliseconds))
    words.append(changed_text(line))
    if line.error:
        words.append(line.error)
    elif len(line.changed) > 1 and not line.note:
        names, more = _(", ").join(line.changed[:6]), len(line.changed) - 6
        words.append(_("{names} and {count} more", names=names, count=more) if more > 0 else names)
    if line.left_out:
        words.append(left_out_text(line))
    return " · ".join(words)


def call_text(call: CallRun, calls: Sequence[CallRun]) -> str:
    """Return the time of a call of a run, and its share of that of all of them."""
    whole = sum(each.milliseconds for each in calls)
    share = f" · {share_text(call.milliseconds / whole)}" if whole else ""
    return f"{duration_text(call.milliseconds)}{share}"


def moment_text(stepping: Stepping) -> str:
    """Return ``after 15 FuseOps``; empty if no step is current."""
    moment, line = stepping.moment, stepping.line
    if moment is None:
        return ""
    if line is not None and line.status == "failed":
        return _("before {label} {title}, which failed", label=line.label, title=line.title)
    if moment.index == 0:
        first = stepping.lines(moment.section)[0]
        return _("before {step}", step=f"{first.label} {first.title}")
    last = stepping.lines(moment.section)[moment.index - 1]
    return _("after {step}", step=f"{last.label} {last.title}")


def fate_text(document: Document, stepping: Stepping) -> str:
    """Return ``folded by FoldConstant`` if a pass has removed the selection.

    It is empty if the selection exists at the current step.
    """
    snapshot, selection = document.snapshot, document.selection
    if snapshot is None or not selection.chosen:
        return ""
    entities = [each for each in selection.chosen if each in snapshot.fates] or [
        each for each in selection.of_kind("relax") if "/" in each
    ]
    fates = [snapshot.fates.get(each) for each in entities]
    step = _last_step(stepping, snapshot)
    gone = [fate.text for fate in fates if fate is not None and fate.gone and fate.step <= step]
    return gone[0] if gone and len(gone) == len(fates) else ""


def _last_step(stepping: Stepping, snapshot: Snapshot) -> int:
    """Return the number of the recipe's last step before the current position."""
    moment = stepping.moment
    if moment is None or moment.section == "build":
        return len(snapshot.passes)
    if moment.section == "translate" or moment.index == 0:
        return 0
    return snapshot.passes[moment.index - 1].step
