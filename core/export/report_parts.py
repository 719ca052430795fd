"""The parts of a report as HTML: tables whose cells have their exact figures, and little else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import msgspec

from lowerscope.core.dimensions import sizes_text
from lowerscope.core.recipe import to_json
from lowerscope.core.records.run import COMPARED, NodeRun, NodeStatus, OutputRecord, RunRecord
from lowerscope.core.records.times import SideTimes
from lowerscope.core.records.variant import (
    Variant,
    fastest,
    other_sides,
    our_times,
    ratio_of,
)
from lowerscope.core.rendering.time_text import claims_text
from lowerscope.core.rendering.verdict_text import not_finite_text, status_words, verdict_words
from lowerscope.core.strategy_names import STRATEGY_NAMES

NONE = "–"


class Cell(msgspec.Struct, frozen=True):
    """A cell: its words, the figure behind them, and the classes of its look."""

    text: str
    value: float | None = None
    kind: str = ""

    def html(self) -> str:
        """Return it as HTML."""
        kind = f' class="{self.kind}"' if self.kind else ""
        return f"<td{kind}{_data(self.value)}>{escape(self.text)}</td>"


def table(
    titles: Sequence[str], rows: Sequence[Sequence[Cell]], name: str, kinds: Sequence[str] = ()
) -> str:
    """Return a table that can be sorted by its titles.

    Parameters
    ----------
    name
        What it is called by a screen reader.
    kinds
        Classes of the rows; none for all alike.
    """
    columns = range(len(titles))
    figures = [any("figure" in row[column].kind for row in rows) for column in columns]
    heads = "".join(
        f'<th scope="col"{_class("figure" if figure else "")}>'
        f'<button type="button">{escape(title)}</button></th>'
        for title, figure in zip(titles, figures, strict=True)
    )
    lines = [
        f"<tr{_class(kind)}>{''.join(cell.html() for cell in row)}</tr>"
        for row, kind in zip(rows, kinds or [""] * len(rows), strict=True)
    ]
    return (
        f'<div class="wide"><table class="sortable" aria-label="{escape(name)}">'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n"
        + "\n".join(lines)
        + "\n</tbody></table></div>"
    )


def verdict_pill(variant: Variant) -> str:
    """Return what the run came to, in a word with its colour and its mark."""
    if variant.record is None or variant.problem is not None:
        return '<span class="pill wrong">✕ failed</span>'
    words, role = _verdict(variant.record)
    return f'<span class="pill {role}">{escape(words)}</span>'


def _verdict(record: RunRecord) -> tuple[str, str]:
    """Return words and role of a verdict, with the number of elements that are not finite."""
    words, role = verdict_words(record.verdict, record.reference)
    return " · ".join(filter(None, (words, not_finite_text(record.not_finite_count)))), role


def variants_table(variants: Sequence[Variant]) -> str:
    """Return the table of variants with their times as bars, and torch's below them."""
    best, others = fastest(variants), other_sides(variants)
    records = [each.record for each in variants if each.record is not None]
    times = [each.tvm_ms for each in records] + [each.milliseconds for each in others]
    longest = max(times, default=0.0)
    side = records[0].reference if records else "torch"
    rows = [_variant_row(each, longest) for each in variants]
    kinds = ["best" if each in best else "" for each in variants]
    for each in others:
        rows.append([Cell(each.side, kind="quiet"), *_time(each.milliseconds, each, longest)])
        rows[-1] += [Cell(""), *_empty(5)]
        kinds.append("reference")
    titles = ("variant", "ms", "spread", "time", "verdict", f"{side} ms", f"TVM / {side}")
    return table((*titles, "abs error", "functions", "build ms"), rows, "Variants", kinds)


def figures(record: RunRecord) -> str:
    """Return the figures of a run that matter most, side by side."""
    shown = [("TVM", f"{ms_text(record.tvm_ms)} ms")]
    if record.torch_ms is not None:
        shown.append((record.reference, f"{ms_text(record.torch_ms)} ms"))
        shown.append((f"TVM / {record.reference}", _ratio(record).text))
    if record.max_abs_error is not None:
        shown.append(("largest absolute error", error_text(record.max_abs_error)))
        shown.append(("largest relative error", error_text(record.max_rel_error)))
        tolerance = f"{record.atol:g} + {record.rtol:g} × |{record.reference}|"
        shown.append(("tolerance", tolerance))
    shown.append(("TensorIR functions", f"{record.functions:,}"))
    shown.append(("built in", f"{record.build_ms:,.0f} ms"))
    if record.prediction is not None:
        shown.append(("predicted by TVM", record.prediction.tvm))
        if record.prediction.torch:
            shown.append(("predicted by torch", record.prediction.torch))
    parts = (f"<div><span>{escape(name)}</span><b>{escape(text)}</b></div>" for name, text in shown)
    claims = "" if record.times is None else claims_text(record.times)
    said = f'<p class="quiet">{escape(claims[:1].upper() + claims[1:])}</p>' if claims else ""
    return f'<div class="figures">{"".join(parts)}</div>{said}'


def outputs_table(record: RunRecord) -> str:
    """Return the outputs of a run, and its sizes where it was run at several."""
    titles = ("output", "shape", "dtype", "abs error", "rel error", "status")
    parts = [
        "<h3>Outputs</h3>",
        table(titles, [_output(each, record.reference) for each in record.outputs], "Outputs"),
    ]
    if record.sizes:
        rows = [
            [
                Cell(sizes_text(each.sizes)),
                _error(each.max_abs_error),
                _ms(each.tvm_ms),
                _ms(each.torch_ms),
                Cell(
                    f"{each.verdict}: {each.reason}" if each.reason else each.verdict,
                    kind=verdict_words(each.verdict)[1],
                ),
            ]
            for each in record.sizes
        ]
        heads = ("size", "abs error", "TVM ms", f"{record.reference} ms", "status")
        parts += ["<h3>Sizes</h3>", table(heads, rows, "Sizes")]
    return "\n".join(parts)


def nodes_table(record: RunRecord) -> str:
    """Return the FX nodes of a run; empty where there are none."""
    nodes = [each for each in record.nodes if each.id.startswith("fx:")]
    if not nodes:
        return ""
    titles = ("node", "how", "functions", "abs error", "rel error", "alone", "TVM ms", "torch ms")
    rows = [_node(each, record) for each in nodes]
    return "<h3>Nodes</h3>\n" + table((*titles, "status"), rows, "Nodes")


def functions_table(record: RunRecord) -> str:
    """Return what the run calls, with the time of all calls of each; empty for nothing."""
    spent: dict[str, list[float]] = {}
    for call in record.calls:
        spent.setdefault(call.function, []).append(call.milliseconds)
    total = sum(map(sum, spent.values()))
    if not spent:
        return ""
    rows = [
        [
            Cell(name),
            Cell(str(len(times)), float(len(times)), "figure"),
            _ms(sum(times)),
            Cell(f"{sum(times) / total:.1%}" if total else NONE, sum(times), "figure"),
        ]
        for name, times in sorted(spent.items(), key=lambda item: -sum(item[1]))
    ]
    return "<h3>Calls</h3>\n" + table(("function", "calls", "ms", "share"), rows, "Calls")


def recipe_text(variant: Variant, place: str) -> str:
    """Return the recipe as JSON, with a button that copies it; `place` is an id of its own."""
    return (
        f'<h3>Recipe <button type="button" class="copy" data-of="{place}">Copy</button></h3>\n'
        f'<pre id="{place}">{escape(to_json(variant.recipe))}</pre>'
    )


def ms_text(value: float | None) -> str:
    """Return a time with the digits that mean something."""
    if value is None:
        return NONE
    return f"{value:.4f}" if value < 1 else f"{value:,.3f}" if value < 100 else f"{value:,.1f}"


def error_text(value: float | None) -> str:
    """Return an error with two digits; a dash where there is none."""
    if value is None:
        return NONE
    return f"{value:.1e}" if math.isfinite(value) else "∞"


def _data(value: float | None) -> str:
    """Return the attribute by which a cell is sorted, as JavaScript writes numbers."""
    if value is None or math.isnan(value):
        return ""
    return f' data-value="{"Infinity" if math.isinf(value) else repr(value)}"'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _variant_row(variant: Variant, longest: float) -> list[Cell]:
    record, status = variant.record, Cell("✕ failed", kind="wrong")
    if variant.problem is not None:
        status = Cell(f"✕ failed: {variant.problem.what}", kind="wrong")
    if record is None:
        return [Cell(variant.name), *_empty(2), Cell(""), status, *_empty(5)]
    if variant.problem is None:
        words, role = _verdict(record)
        status = Cell(words, kind=role)
    return [
        Cell(variant.name),
        *_time(record.tvm_ms, our_times(record), longest),
        status,
        _ms(record.torch_ms),
        _ratio(record),
        _error(record.max_abs_error),
        Cell(f"{record.functions:,}", float(record.functions), "figure"),
        Cell(f"{record.build_ms:,.0f}", record.build_ms, "figure"),
    ]


class _Bar(Cell, frozen=True):
    """A cell that is a bar: its value is the share of the longest one."""

    def html(self) -> str:
        width = 100 * (self.value or 0.0)
        return f'<td class="bar"{_data(self.value)}><i style="width:{width:.2f}%"></i></td>'


def _time(milliseconds: float, times: SideTimes | None, longest: float) -> tuple[Cell, Cell, Cell]:
    """Return the cells of a time, of its spread, and of its bar."""
    spread = Cell(NONE, kind="quiet figure")
    if times is not None:
        words = f"{ms_text(times.low)} – {ms_text(times.high)}"
        spread = Cell(words, times.high - times.low, "quiet figure")
    bar = _Bar("", milliseconds / longest if longest else 0.0)
    return Cell(ms_text(milliseconds), milliseconds, "figure time"), spread, bar


def _ratio(record: RunRecord) -> Cell:
    ratio, told = ratio_of(record)
    if ratio is None:
        return Cell(NONE, kind="figure")
    return Cell(f"{ratio:.3g}" if told else f"≈ {ratio:.3g}", ratio, "figure")


def _empty(count: int) -> list[Cell]:
    return [Cell(NONE, kind="quiet figure") for _ in range(count)]


def _ms(value: float | None) -> Cell:
    return Cell(ms_text(value), value, "figure")


def _error(value: float | None) -> Cell:
    return Cell(error_text(value), value, "figure")


def _output(output: OutputRecord, reference: str) -> list[Cell]:
    words, role = verdict_words(output.verdict, reference)
    return [
        Cell(output.name),
        Cell("×".join(map(str, output.shape)) or "scalar"),
        Cell(output.dtype),
        _error(output.max_abs_error),
        _error(output.max_rel_error),
        Cell(f"{words}: {output.reason}" if output.reason else words, kind=role),
    ]


def _status(status: NodeStatus) -> tuple[str, str]:
    return status_words(status) if status in COMPARED else ("– not compared", "quiet")


def _node(node: NodeRun, record: RunRecord) -> list[Cell]:
    called = dict.fromkeys(record.calls[index].function for index in node.calls)
    status, role = _status(node.status)
    first = "first difference" if node.id == record.first_difference else ""
    alone = ""
    if node.own_matches is not None and node.own_matches != node.matches:
        alone = f"alone it {_status(node.own_status)[0].partition(' ')[2]}"
    said = ": ".join(each for each in (status, node.not_finite or node.reason) if each)
    return [
        Cell(node.id.removeprefix("fx:")),
        Cell(STRATEGY_NAMES.get(node.strategy, ""), kind=node.strategy),
        Cell(", ".join(called)),
        _error(node.max_abs_error),
        _error(node.max_rel_error),
        _error(node.own_abs_error),
        _ms(node.milliseconds),
        _ms(node.torch_ms),
        Cell("; ".join(each for each in (said, alone, first) if each), kind=role),
    ]
