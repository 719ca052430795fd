"""The rows of the table of metrics: a function's work and speed, beside torch's."""

from __future__ import annotations

from collections.abc import Iterator

from lowerscope.app.views.number_words import tr
from lowerscope.app.widgets.table import Cell, Row
from lowerscope.core.model.formatting import (
    NONE,
    bytes_text,
    duration_text,
    durations_text,
    figure_text,
    operations_text,
    share_text,
)
from lowerscope.core.records.numbers import Measured, Work
from lowerscope.core.rendering.time_text import UNRELIABLE


def work_rows(work: Work) -> Iterator[Row]:
    """Yield the rows on the work of one call."""
    read, written = (
        tr("not known") if each is None else bytes_text(each) for each in (work.read, work.written)
    )
    flops = tr("not known") if work.flops is None else operations_text(work.flops)
    in_model = tr("In one run of the model")
    if work.at:
        traced = tr("The size that the model is traced at; the function takes others as well")
        yield _row("at", tr("at the size"), work.at, tooltip=traced)
    yield _row("calls", tr("calls"), f"{work.calls:,}", tooltip=in_model)
    yield _row("flops", tr("operations"), flops)
    yield _row("read", tr("reads"), read)
    yield _row("written", tr("writes"), written)
    yield _row("intensity", tr("FLOP per byte"), figure_text(work.intensity))


def measured_rows(measured: Measured, work: Work | None) -> Iterator[Row]:
    """Yield the rows on speed; torch's rates if it computes exactly the same."""
    torch = measured.torch_ms
    nodes = ", ".join(measured.torch_nodes)
    of_torch = Cell("–")
    if torch is not None and measured.torch_does_more:
        more = tr("The function is a part of {0} only; torch computes all of it").format(nodes)
        of_torch = Cell(f"({duration_text(torch)})", "quiet", tooltip=more)
    elif torch is not None:
        of_torch = Cell(duration_text(torch), bold=True, tooltip=nodes)
    role, more = ("unsure", UNRELIABLE) if measured.disturbed else ("", "")
    time = Cell(duration_text(measured.milliseconds), role, bold=True, tooltip=more)
    half = tr("Half of {0} measurements are between these times").format(measured.repeats)
    alone = None if measured.torch_does_more else torch
    flops = None if work is None else work.flops
    moved = None if work is None or work.read is None else work.read + (work.written or 0)
    spread = durations_text(measured.low, measured.high)
    if measured.repeats == 1:
        spread = tr("measured once")
    share = NONE if measured.share is None else share_text(measured.share)
    roof = tr("Of what this machine allows for so many operations and bytes")
    yield Row("time", (Cell(tr("time"), "quiet"), time, of_torch))
    yield _row("spread", tr("spread"), spread, tooltip=half)
    yield _row("gflops", "GFLOP/s", figure_text(measured.gflops), _rate(flops, alone))
    yield _row("gbytes", "GB/s", figure_text(measured.gbytes_per_second), _rate(moved, alone))
    yield _row("share", tr("of the roofline"), share, tooltip=roof)
    yield _row("build", tr("compiling"), duration_text(measured.build_ms))


def _row(key: str, name: str, here: str, torch: str = "", tooltip: str = "") -> Row:
    return Row(key, (Cell(name, "quiet", tooltip=tooltip), Cell(here, tooltip=tooltip), torch))


def _rate(amount: float | None, milliseconds: float | None) -> str:
    return figure_text(amount / milliseconds / 1e6) if amount and milliseconds else ""
