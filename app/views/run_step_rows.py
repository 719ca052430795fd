"""The rows of the page Call: statistics of the tensors that a call has read and written."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication

from lowerscope.app.widgets.table import Cell, Row
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.records.comparison import TensorStatistics
from lowerscope.core.records.run_step import RunStep, StepTensor


def instruction_rows(step: RunStep, unfolded: bool) -> Iterator[Row]:
    """Yield the bytecode line of the call; if unfolded, also the VM's own lines before it."""
    if not step.first_line:
        return
    *before, last = step.instructions
    for number, text in enumerate(before if unfolded else (), start=step.first_line):
        words = " ".join(text.split())
        # The virtual machine's full name is in the tool tip.
        short = words.removeprefix("call ").removeprefix("vm.builtin.")
        line = Cell(str(number), role="quiet")
        yield Row(f"own:{number}", (line, Cell(short, role="quiet", code=True, tooltip=words)))
    number = step.first_line + len(before)
    words = " ".join(last.split())
    line = Cell(_tr("line {0}").format(number), role="quiet")
    yield Row("instruction", (line, Cell(words, code=True, tooltip=words)))


def tensor_rows(step: RunStep) -> Iterator[Row]:
    """Yield the facts about each tensor; the keys begin with its index."""
    for number, tensor in enumerate(step.tensors):
        for part, cells in enumerate(_about(tensor)):
            yield Row(f"{number}:{part}", cells)


def tensor_of_row(key: str) -> int | None:
    """Return the index of a row's tensor; ``None`` for another row."""
    number = key.partition(":")[0]
    return int(number) if number.isdigit() else None


def tensor_name(tensor: StepTensor) -> str:
    """Return the name of a tensor, or its number among those of its side."""
    return tensor.name or _tr("tensor {0}").format(tensor.place.item)


def _about(tensor: StepTensor) -> Iterator[tuple[Cell, Cell]]:
    side = _tr("reads") if tensor.place.side == "read" else _tr("writes")
    title = f"{tensor_name(tensor)} · {shape_text(tensor.shape)} {tensor.dtype}"
    more = _tr("{0}. Click to look at its values.").format(title)
    yield Cell(side, role="quiet"), Cell(title, bold=True, tooltip=more)
    nothing = Cell("")
    statistics = tensor.statistics
    if statistics is None:
        return
    strange = not_finite_text(statistics)
    if strange:
        yield nothing, Cell(f"✕ {strange}", role="wrong", spoken=strange)
    text = range_text(statistics)
    if text:
        yield nothing, Cell(text, role="quiet", tooltip=text)
    if tensor.first:
        first = ", ".join(tensor.first) + (", …" if len(tensor.first) < statistics.count else "")
        yield nothing, Cell(first, code=True, tooltip=first)
    else:
        over = _tr("its values are not kept: over the budget")
        yield nothing, Cell(over, role="quiet", tooltip=over)


def range_text(statistics: TensorStatistics) -> str:
    """Return ``−1.2 … 3.4 · mean 0.5``; empty if no value is finite."""
    if statistics.low is None or statistics.mean is None:
        return ""
    mean = _tr("mean {0}").format(f"{statistics.mean:.4g}")
    return f"{statistics.low:.4g} … {statistics.high:.4g} · {mean}"


def not_finite_text(statistics: TensorStatistics) -> str:
    """Return ``3 NaN, 1 infinite``; empty if all values are finite."""
    found = []
    if statistics.nans:
        found.append(_tr("{0} NaN").format(f"{statistics.nans:,}"))
    if statistics.infinities:
        found.append(_tr("{0} infinite").format(f"{statistics.infinities:,}"))
    return ", ".join(found)


def _tr(text: str) -> str:
    return QCoreApplication.translate("RunStepRows", text)
