"""The rows and bars of the page Variants: of the variants, and of the functions of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QCoreApplication

from lowerscope.app.runs.variants import KeptRun
from lowerscope.app.views.time_words import how_of
from lowerscope.app.widgets.charts.bars import Bar
from lowerscope.app.widgets.table import Cell, Column, Row
from lowerscope.core.errors import Problem
from lowerscope.core.model.formatting import (
    duration_text,
    durations_text,
    error_text,
    ratio_text,
)
from lowerscope.core.model.labels import STATUS_MARKS
from lowerscope.core.records.difference import FunctionDifference, Status
from lowerscope.core.records.run import RunRecord
from lowerscope.core.records.variant import (
    FunctionTimes,
    Variant,
    fastest,
    other_sides,
    our_times,
    ratio_of,
)
from lowerscope.core.rendering.time_text import unreliable_text
from lowerscope.core.rendering.verdict_text import not_finite_text, verdict_words

ROLES = {"same": "quiet", "changed": "", "added": "added", "removed": "removed"}


def variant_columns() -> tuple[Column, ...]:
    """Return the columns of the table of variants."""
    return (
        Column("", width=46, tooltip=_tr("● the one that is shown, ★ the fastest")),
        Column(_tr("variant"), width=148, stretch=True, editable=True),
        Column(_tr("TVM"), numeric=True, width=84),
        Column(_tr("verdict"), width=104),
        Column(_tr("spread"), numeric=True, width=110, tooltip=_tr("Quarters of TVM's times")),
        Column(_tr("torch"), numeric=True, width=84),
        Column(_tr("ratio"), numeric=True, width=60, tooltip=_tr("TVM's time in that of torch")),
        Column(_tr("error"), numeric=True, width=66, tooltip=_tr("The largest absolute one")),
        Column(_tr("functions"), numeric=True, width=76),
        Column(_tr("built in"), numeric=True, width=84),
    )


def variant_row(run: KeptRun, variant: Variant, *, shown: bool, best: bool) -> Row:
    """Return the row of a variant."""
    record = run.record
    facts = [
        *([_tr("● it is what is shown")] if shown else []),
        *([_tr("★ the fastest that does not differ, as far as it can be told")] if best else []),
        *([_tr("The files have changed since it was run")] if run.outdated else []),
        _tr("Return or a double click goes back to it, F2 gives it a name, Del deletes it"),
    ]
    marks = ("●" if shown else "") + ("★" if best else "")
    spoken = [*([_tr("shown")] if shown else []), *([_tr("fastest")] if best else [])]
    name = Cell(
        variant.name,
        "quiet" if run.outdated else "",
        bold=shown,
        tooltip="\n".join((variant.name, *facts)),
    )
    first = Cell(marks, "right" if best else "accent", spoken=", ".join(spoken))
    failed = None if run.problem is None else _failed(run.problem, record)
    if record is None:
        assert failed is not None
        none = Cell("–", "quiet")
        return Row(run.id, (first, name, none, failed, *(none for _ in range(6))))
    return Row(
        run.id,
        (
            first,
            name,
            Cell(
                duration_text(record.tvm_ms),
                "right" if best else "",
                bold=best,
                value=record.tvm_ms,
            ),
            failed or _verdict(record, run.outdated),
            _spread(record),
            _duration(record.torch_ms),
            _ratio(record),
            Cell(error_text(record.max_abs_error), value=record.max_abs_error),
            Cell(f"{record.functions:,}", value=float(record.functions)),
            Cell(duration_text(record.build_ms), value=record.build_ms),
        ),
    )


def variant_bars(variants: Sequence[Variant]) -> tuple[Bar, ...]:
    """Return a bar for each variant that ran, and one for torch."""
    best = fastest(variants)
    ran = [(each.name, each.record, each in best) for each in variants if each.record is not None]
    bars = []
    for name, record, is_best in ran:
        text = duration_text(record.tvm_ms)
        times = our_times(record)
        spread = None if times is None else (times.low, times.high)
        bars.append(Bar(name, (record.tvm_ms,), text, "", spread, is_best))
    for each in other_sides(variants):
        text = duration_text(each.milliseconds)
        bars.append(Bar(each.side, (each.milliseconds,), text, "other", (each.low, each.high)))
    return tuple(bars)


def function_columns() -> tuple[Column, ...]:
    """Return the columns of the functions of two variants, A and B."""
    return (
        Column(_tr("function"), width=120),
        Column("A", numeric=True, width=73, tooltip=_tr("The time of its calls in the first")),
        Column("B", numeric=True, width=73, tooltip=_tr("The time of its calls in the second")),
        Column(_tr("difference"), numeric=True, width=78, falling=True),
        Column(_tr("text"), width=76, tooltip=_tr("How its script has changed from A to B")),
        Column(_tr("calls"), numeric=True, width=56),
        Column(_tr("nodes"), stretch=True),
    )


def function_row(times: FunctionTimes, texts: Mapping[str, FunctionDifference]) -> Row:
    """Return the row of a function that one of two variants calls."""
    one_side = ""
    if not times.old_calls:
        one_side = _tr("only in B")
    elif not times.new_calls:
        one_side = _tr("only in A")
    counts = str(times.old_calls)
    if times.old_calls != times.new_calls:
        counts = f"{times.old_calls} → {times.new_calls}"
    apart = times.difference
    sign = "+" if apart > 0 else "−" if apart < 0 else ""
    nodes = ", ".join(each.removeprefix("fx:") for each in times.nodes)
    return Row(
        times.name,
        (
            Cell(times.name, tooltip=times.name),
            _duration(times.old_ms if times.old_calls else None),
            _duration(times.new_ms if times.new_calls else None),
            Cell(f"{sign}{duration_text(abs(apart))}", value=apart),
            _text(texts.get(times.name), one_side),
            Cell(counts, value=float(times.new_calls)),
            Cell(nodes, "quiet", tooltip=nodes),
        ),
    )


def _failed(problem: Problem, before: RunRecord | None) -> Cell:
    facts = [problem.line()]
    if before is not None:
        facts.append(_tr("The figures are of the run before"))
    return Cell(_tr("✕ failed: {0}").format(problem.what), "wrong", tooltip="\n".join(facts))


def _verdict(record: RunRecord, outdated: bool) -> Cell:
    words, role = verdict_words(record.verdict)
    text = " · ".join(filter(None, (words, not_finite_text(record.not_finite_count))))
    first = record.first_difference.removeprefix("fx:")
    more = [record.reason] if record.reason else []
    if first:
        more.append(_tr("The first node that differs is {0}").format(first))
    if outdated:
        text = _tr("{0}, as it was").format(text)
    return Cell(text, role, tooltip="\n".join(more))


def _spread(record: RunRecord) -> Cell:
    times = our_times(record)
    if times is None:
        return Cell("–", "quiet")
    found = "" if record.times is None else how_of(record.times)
    words = durations_text(times.low, times.high)
    return Cell(words, "quiet", tooltip=found, value=times.high - times.low)


def _ratio(record: RunRecord) -> Cell:
    ratio, told = ratio_of(record)
    if ratio is None:
        return Cell("–", "quiet")
    if told:
        return Cell(ratio_text(ratio), value=ratio)
    why = unreliable_text(record.times) or _tr("The times scatter more than they differ")
    return Cell(ratio_text(ratio, about=True), "quiet", tooltip=why, value=ratio)


def _duration(milliseconds: float | None) -> Cell:
    role = "quiet" if milliseconds is None else ""
    return Cell(duration_text(milliseconds), role, value=milliseconds)


def _text(difference: FunctionDifference | None, one_side: str) -> Cell:
    if one_side:
        return Cell(one_side, "quiet")
    if difference is None:
        return Cell("")
    counts: tuple[tuple[Status, int], ...] = (
        ("added", difference.added),
        ("removed", difference.removed),
        ("changed", difference.changed + len(difference.constants)),
    )
    if difference.status == "same":
        return Cell(_tr("= same"), "quiet")
    parts = [f"{STATUS_MARKS[status]}{count}" for status, count in counts if count]
    spoken = ", ".join(f"{count} {status}" for status, count in counts if count)
    return Cell(" ".join(parts), spoken=spoken, tooltip=_tr("lines: {0}").format(spoken))


def _tr(text: str) -> str:
    return QCoreApplication.translate("VariantsPage", text)
