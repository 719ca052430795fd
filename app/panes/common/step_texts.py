"""Texts of a step: for the list of steps, and the headers of panes."""

from __future__ import annotations

from collections.abc import Sequence

from lowerscope.app.document.document import Document
from lowerscope.app.document.stepping import StepLine, Stepping
from lowerscope.core.model.formatting import duration_text, share_text
from lowerscope.core.model.run_records import CallRun
from lowerscope.core.model.snapshot import Snapshot
from lowerscope.core.model.texts import _, _n


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
        functions="; ".join(line.left_out),
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
        names, more = ", ".join(line.changed[:6]), len(line.changed) - 6
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
