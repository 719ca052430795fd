"""Results of the last run: figures of nodes, the prediction, and texts on times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lowerscope.app.kit.canvas.colouring import CanvasFigures, CanvasShade, Colouring
from lowerscope.app.kit.charts.bars import Bar, Bars
from lowerscope.app.kit.tables.data_table import Cell
from lowerscope.app.panes.common.descriptions import Facts, names_of
from lowerscope.core.model.formatting import (
    NONE,
    UNRELIABLE,
    are_apart,
    beside_text,
    bytes_text,
    calls_text,
    claims,
    disturbances,
    duration_text,
    error_text,
    not_finite_text,
    share_text,
)
from lowerscope.core.model.graph import Box
from lowerscope.core.model.run_records import (
    NOT_THERE,
    TOP,
    CallRun,
    DlpackTransfer,
    NodeRun,
    RunRecord,
    RunTimes,
    SideTimes,
    TransferMode,
    is_comparable,
    is_reliable,
    told_apart,
)
from lowerscope.core.model.texts import _, _n, labelled

# --- Texts on how tensors were passed to library functions ---


def hand_over_text(calls: Sequence[CallRun]) -> str:
    """Return how a node's tensors were passed; empty if its calls are no library's."""
    found = [(each.function, each.hand_over) for each in calls if each.hand_over is not None]
    texts = dict.fromkeys(
        text_of(hand_over) if len(found) == 1 else labelled(function, text_of(hand_over))
        for function, hand_over in found
    )
    return _("; ").join(texts)


def text_of(hand_over: DlpackTransfer) -> str:
    """Return ``3 inputs in place (zero copy); result copied; 40 B copied``."""
    sides = (
        (hand_over.inputs, _("input"), _("inputs")),
        (hand_over.results, _("result"), _("results")),
    )
    parts = [_side_text(hands, one, more) for hands, one, more in sides if hands]
    if hand_over.copied_bytes:
        parts.append(_("{copied_bytes} copied", copied_bytes=bytes_text(hand_over.copied_bytes)))
    return _("; ").join(parts)


def _side_text(hands: Sequence[TransferMode], one: str, more: str) -> str:
    words = {
        "in place": _("in place (zero copy)"),
        "copied": _("copied"),
        "unseen": _("not used by torch"),
    }
    counts = {hand: hands.count(hand) for hand in words if hand in hands}
    if len(counts) == 1:
        (hand,) = counts
        name = one if len(hands) == 1 else f"{len(hands)} {more}"
        return f"{name} {words[hand]}"
    listed = _(", ").join(f"{count} {words[hand]}" for hand, count in counts.items())
    return labelled(more, listed)


_STEPS = 15
"""Number of colour levels, besides the least."""

TIME, ERROR = _("time"), _("error")
"""Labels of facts."""


def figures_of(record: RunRecord | None, boxes: Iterable[Box]) -> Mapping[Colouring, CanvasFigures]:
    """Return the times and the errors of boxes, as far as a run has them, or why not."""
    if record is None:
        return {}
    runs = {each.id: each for each in record.nodes}
    shown = {box.id: _runs_of(box, runs) for box in boxes}
    found: dict[Colouring, CanvasFigures] = {"time": _times(record, shown), "error": _errors(shown)}
    for colouring, figures in found.items():
        if not figures.shades:
            why = why_no_figures(record, colouring) or _("no call of the run is shown here")
            found[colouring] = CanvasFigures(legend=(("none", why),))
    return found


def why_no_figures(record: RunRecord | None, colouring: Colouring) -> str:
    """Return why nodes have no times or errors; empty if some of them have."""
    if record is None:
        return _("Run first (F5): times and errors of nodes come from a run of this recipe")
    if colouring == "time" and any(each.milliseconds is not None for each in record.nodes):
        return ""
    if colouring == "error" and any(each.matches is not None for each in record.nodes):
        return ""
    if record.ran_on:
        return NOT_THERE
    if record.quick and not record.nodes:
        return _("A quick run of a slow model compares no nodes: Run (F5) does")
    if not record.nodes:
        return _("A source without torch has no nodes to compare")
    return next((each.reason for each in record.nodes if each.reason), "")


def run_facts(record: RunRecord | None, members: Sequence[str]) -> Facts:
    """Return time, error and hand-over of several nodes or bindings together, as facts."""
    if record is None:
        return ()
    runs = [each for each in record.nodes if each.id in members]
    calls = dict.fromkeys(index for each in runs for index in each.calls)
    facts = (
        (TIME, _time_text(record, runs)),
        (ERROR, _error_text(runs)),
        ("DLPack", hand_over_text([record.calls[index] for index in calls])),
    )
    return tuple((label, text) for label, text in facts if text)


def measured_in(box: Box) -> tuple[str, ...]:
    """Return the nodes or bindings, as they were lowered, that give a box its times and errors.

    At a step, these are the origins of the box: the run refers to the calls that they became in
    turn.
    """
    if box.kind == "group":
        return box.members
    # In the lowered graph, the members of a box are weights and scalars.
    return (box.id,) if box.origins is None else (*box.origins, *box.members)


def _runs_of(box: Box, runs: Mapping[str, NodeRun]) -> list[NodeRun]:
    return [runs[each] for each in measured_in(box) if each in runs]


def _milliseconds(record: RunRecord, runs: Iterable[NodeRun]) -> float | None:
    """Return the total time of some nodes: a call that several of them share counts once."""
    calls = {index for each in runs for index in each.calls}
    return sum(record.calls[index].milliseconds for index in calls) if calls else None


def _times(record: RunRecord, shown: Mapping[str, list[NodeRun]]) -> CanvasFigures:
    times = {
        name: taken
        for name, runs in shown.items()
        if (taken := _milliseconds(record, runs)) is not None
    }
    most = max(times.values(), default=0.0)
    shades = {
        name: CanvasShade(_level(taken / most if most else 0.0), duration_text(taken))
        for name, taken in times.items()
    }
    return CanvasFigures(shades, (("ramp", f"0 … {duration_text(most)}"),))


def _errors(shown: Mapping[str, list[NodeRun]]) -> CanvasFigures:
    worst = {
        name: max(compared, key=lambda each: (not each.matches, each.max_abs_error or 0.0))
        for name, runs in shown.items()
        if (compared := [each for each in runs if each.matches is not None])
    }
    fine = [each.max_abs_error or 0.0 for each in worst.values() if each.matches]
    above = [error for error in fine if error > 0]
    least, most = min(above, default=0.0), max(above, default=0.0)
    shades = {}
    for name, run in worst.items():
        error = run.max_abs_error or 0.0
        if not run.matches:
            shades[name] = CanvasShade(1.0, f"✕ {error_text(error)}", wrong=True)
            continue
        level = 0.0
        if error > 0:
            span = math.log10(most / least)
            # An inexact value is distinguishable from an exact one.
            level = 0.2 + 0.8 * (math.log10(error / least) / span if span else 1.0)
        shades[name] = CanvasShade(_level(level), error_text(error))
    legend = []
    if fine:
        low = 0.0 if len(above) < len(fine) else least
        legend.append(("ramp", _range_text(low, most)))
    wrong = [each.max_abs_error or 0.0 for each in worst.values() if not each.matches]
    if wrong:
        text = _range_text(min(wrong), max(wrong))
        legend.append(("wrong", _("✕ differs, {text}", text=text)))
    return CanvasFigures(shades, tuple(legend))


def _range_text(low: float, high: float) -> str:
    return error_text(low) if low == high else f"{error_text(low)} … {error_text(high)}"


def _level(share: float) -> float:
    return round(share * _STEPS) / _STEPS


def _time_text(record: RunRecord, runs: Sequence[NodeRun]) -> str:
    taken = _milliseconds(record, runs)
    if taken is None:
        return ""
    whole = sum(each.milliseconds for each in record.calls)
    parts = [duration_text(taken), share_text(taken / whole) if whole else ""]
    inside = {each.id for each in runs}
    others = dict.fromkeys(
        other for each in runs for other in each.shared_with if other not in inside
    )
    if others:
        parts.append(_("fused with {others}", others=names_of(tuple(others))))
    return " · ".join(part for part in parts if part)


def _error_text(runs: Sequence[NodeRun]) -> str:
    compared = [each for each in runs if each.matches is not None]
    if not compared and any(each.status == "inconclusive" for each in runs):
        reason = next(each.reason for each in runs if each.status == "inconclusive")
        return _("? inconclusive: {reason}", reason=reason)
    if not compared:
        return _("not compared: {reason}", reason=runs[0].reason) if len(runs) == 1 else ""
    worst = max(compared, key=lambda each: (not each.matches, each.max_abs_error or 0.0))
    text = _(
        "{max_abs_error} absolute, {max_rel_error} relative",
        max_abs_error=error_text(worst.max_abs_error),
        max_rel_error=error_text(worst.max_rel_error),
    )
    if worst.matches:
        return _("; ").join((text, worst.reason)) if worst.reason else text
    return _("✕ differs: {text}; {reason}", text=text, reason=worst.reason)


# --- The prediction of a run as bars: the five best classes of both sides ---


def show_prediction(bars: Bars, record: RunRecord | None, *, legend: bool = True) -> None:
    """Show in bars both sides' scores of the best classes of either; nothing without a record."""
    prediction = None if record is None else record.prediction
    if record is None or prediction is None:
        bars.set_bars(())
        bars.setToolTip("")
        return
    has_torch = all(each.torch is not None for each in prediction.top)
    sides = ("TVM", record.reference) if has_torch else ("TVM",)
    rows: list[Bar] = []
    for each in prediction.top:
        scores = (each.tvm,) if each.torch is None else (each.tvm, each.torch)
        rows.append(Bar(each.name, scores, _figures(scores), best=not rows))
    ours = prediction.tvm
    # A class found by one side only is always included.
    shown = [row for place, row in enumerate(rows) if place < TOP or row.name == ours]
    bars.set_bars(shown, sides if legend else ())
    said = {
        "softmax": _("The softmax of the output"),
        "output": _("The output itself, which sums to 1"),
    }
    heading = [said[prediction.scores]] if prediction.scores else []
    bars.setToolTip("\n".join([*heading, *(_line(row, sides) for row in rows)]))


def _line(row: Bar, sides: Sequence[str]) -> str:
    scores = (f"{side} {score:.1%}" for side, score in zip(sides, row.values, strict=True))
    return labelled(row.name, _(", ").join(scores))


def _figures(scores: Sequence[float]) -> str:
    """Return the scores of both sides, once if they look the same: ``98.2%``, ``98.2 · 91.0%``."""
    texts = list(dict.fromkeys(f"{each:.1%}" for each in scores))
    return " · ".join([*(each.removesuffix("%") for each in texts[:-1]), texts[-1]])


def verdict_state(record: RunRecord) -> tuple[str, str, str]:
    """Return role, words and figure of the verdict on a run, as a `Pill` shows them."""
    role, words = {
        "match": ("right", _("matches {reference}", reference=record.reference)),
        "differ": ("wrong", _("differs from {reference}", reference=record.reference)),
        "rounding": ("near", _("differs by rounding")),
        "inconclusive": ("unsure", _("inconclusive")),
        "not-comparable": ("neutral", _("not comparable")),
        "no-reference": ("neutral", _("ran, no reference")),
    }[record.verdict]
    figures = []
    if record.verdict in ("match", "rounding", "differ"):
        figures.append(error_text(record.max_abs_error))
    figures.append(not_finite_text(record.not_finite_count))
    return role, words, " · ".join(filter(None, figures))


# --- Texts on the times of a whole run: claims, and the method ---


def bars_of(times: RunTimes) -> tuple[Bar, ...]:
    """Return a bar for each side; one that is faster than all others is the best."""
    return tuple(
        Bar(
            side.side,
            (side.milliseconds,),
            duration_text(side.milliseconds),
            "" if side is times.sides[0] else "other",
            (side.low, side.high),
            _is_fastest(side, times),
        )
        for side in times.sides
    )


def _is_fastest(side: SideTimes, times: RunTimes) -> bool:
    others = [each for each in times.sides if each is not side]
    return (
        bool(others)
        and is_reliable(times)
        and all(
            is_comparable(side, each)
            and told_apart(side, each)
            and side.milliseconds < each.milliseconds
            for each in others
        )
    )


def claims_of(times: RunTimes) -> str:
    """Return how many times faster or slower TVM is, and the threads."""
    return " · ".join([*claims(times), threads_text(times)])


def short_claim(times: RunTimes) -> str:
    """Return the claim on TVM against the reference, shown after our time."""
    if len(times.sides) < 2:
        return ""
    ours, other = times.sides[:2]
    if not is_reliable(times):
        return _(
            "{side} {milliseconds}, unreliable",
            side=other.side,
            milliseconds=duration_text(other.milliseconds),
        )
    if not is_comparable(ours, other):
        return _(
            "{side} {milliseconds}", side=other.side, milliseconds=duration_text(other.milliseconds)
        )
    told = told_apart(ours, other)
    return beside_text(ours.milliseconds, other.milliseconds, other.side, told=told)


def ratio_cell(ours: float | None, other: float | None, times: RunTimes | None) -> Cell:
    """Return a cell with how many times slower or faster a part of a run is than in torch."""
    if not ours or not other:
        return Cell(NONE, "quiet")
    ratio, sure = ours / other, times is None or is_reliable(times)
    role = "quiet" if not are_apart(ours, other) else "wrong" if ours > other else "right"
    return Cell(
        beside_text(ours, other, about=not sure),
        role if sure else "unsure",
        tooltip="" if sure else UNRELIABLE,
        value=ratio,
    )


def how_of(times: RunTimes) -> str:
    """Return the method of measurement: disturbances, torch.compile, repeats, warm-up."""
    return " · ".join(_how(times))


def _how(times: RunTimes) -> Iterator[str]:
    yield from disturbances(times)
    if times.compile_problem:
        yield _(
            "torch.compile does not work: {compile_problem}", compile_problem=times.compile_problem
        )
    yield calls_text(times)
    if times.compile_ms is not None:
        took = duration_text(times.compile_ms)
        yield _("torch.compile took {took}", took=took)


def threads_text(times: RunTimes) -> str:
    """Return the number of threads of each side."""
    first, *others = [side.threads for side in times.sides] or [None]
    if first is not None and not others:
        return _n("{count} thread", "{count} threads", first)
    if first is not None and set(others) == {first}:
        return _n("{count} thread each", "{count} threads each", first)
    known = [side for side in times.sides if side.threads is not None]
    return _(", ").join(
        _n(
            "{side} with {count} thread",
            "{side} with {count} threads",
            each.threads or 0,
            side=each.side,
        )
        for each in known
    )
