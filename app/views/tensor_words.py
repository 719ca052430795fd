"""Texts of the comparison of a tensor with torch's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QCoreApplication

from lowerscope.app.widgets.table import Cell, Row
from lowerscope.core.model.formatting import error_text, shape_text, share_text, tolerance_text
from lowerscope.core.records.comparison import Comparison, TensorStatistics
from lowerscope.core.rendering.verdict_text import verdict_words

LARGEST_ABSOLUTE, LARGEST_RELATIVE, NOT_FINITE = "max-abs", "max-rel", "not-finite"
"""Keys of the rows that are about one element."""


def fact_rows(record: Comparison) -> tuple[Row, ...]:
    """Return rows of a label and a text: first what is not finite, then what differs."""
    return tuple(Row(key, (Cell(label, role="quiet"), cell)) for key, label, cell in _facts(record))


def places_of(record: Comparison) -> dict[str, tuple[int, ...]]:
    """Return the index of the element that a row is about, by row key."""
    found = {}
    if record.not_finite_at:
        found[NOT_FINITE] = record.not_finite_at
    if record.max_abs_error is not None:
        found[LARGEST_ABSOLUTE] = record.max_abs_at
        found[LARGEST_RELATIVE] = record.max_rel_at
    return found


def index_text(index: Sequence[int]) -> str:
    """Return ``[0, 12, 3]``."""
    return f"[{', '.join(map(str, index))}]"


def about_text(record: Comparison) -> str:
    """Return shape and dtype of a tensor, for both sides if they differ."""
    ours = f"{shape_text(record.shape)} {record.dtype}".strip()
    torch = f"{shape_text(record.torch_shape)} {record.torch_dtype}".strip()
    if record.torch_dtype and not record.dtype:
        return torch
    if not record.torch_dtype or torch == ours:
        return ours
    return _tr("TVM {0}, torch {1}").format(ours, torch)


def _facts(record: Comparison) -> Iterator[tuple[str, str, Cell]]:
    if record.not_finite:
        at = index_text(record.not_finite_at)
        if record.not_finite_at or (record.matches is False and not record.shape):
            text = _tr("{0}, first difference at {1}").format(record.not_finite, at)
            cell = _to_go(f"✕ {text}", "wrong")
        else:
            cell = Cell(record.not_finite, role="unsure")
        yield NOT_FINITE, _tr("not finite"), cell
    word, role = (_tr("– not compared"), "quiet")
    if record.verdict is not None:
        word, role = verdict_words(record.verdict)
    yield "verdict", _tr("verdict"), Cell(word, role=role, bold=True)
    if record.reason and not record.outside:
        yield "reason", _tr("reason"), Cell(record.reason, tooltip=record.reason)
    if record.max_abs_error is not None:
        yield from _errors(record)
    for key, side, values in (("ours", "TVM", record.ours), ("torch", "torch", record.torch)):
        if values is not None:
            text = _statistics_text(values)
            yield key, side, Cell(text, tooltip=text)


def _errors(record: Comparison) -> Iterator[tuple[str, str, Cell]]:
    for key, label, error, at in (
        (LARGEST_ABSOLUTE, _tr("absolute"), record.max_abs_error, record.max_abs_at),
        (LARGEST_RELATIVE, _tr("relative"), record.max_rel_error, record.max_rel_at),
    ):
        text = _tr("{0} at most").format(error_text(error))
        yield key, label, _to_go(f"{text}, {index_text(at)}") if error else Cell(text)
    count = record.torch.count if record.torch is not None else 0
    text = f"{record.outside:,} of {count:,} elements · {share_text(record.outside_share)}"
    tolerance = tolerance_text(record.atol, record.rtol, "torch")
    if record.atol == record.rtol == 0:
        tolerance = _tr("none: has to be equal")
    yield (
        "outside",
        _tr("outside"),
        Cell(text, tooltip=_tr("Out of the tolerance, {0}").format(tolerance)),
    )
    if record.cosine is not None:
        yield "cosine", _tr("cosine"), Cell(f"{record.cosine:.9g}")
    yield "tolerance", _tr("tolerance"), Cell(tolerance)


def _to_go(text: str, role: str = "accent") -> Cell:
    return Cell(text, role=role, tooltip=_tr("A click goes to this element"))


def _statistics_text(values: TensorStatistics) -> str:
    parts = []
    if values.low is not None and values.high is not None:
        parts.append(f"{values.low:.4g} … {values.high:.4g}")
    if values.mean is not None:
        parts.append(
            _tr("mean {0}, std {1}").format(f"{values.mean:.4g}", f"{values.deviation:.4g}")
        )
    for count, word in (
        (values.nans, _tr("NaN")),
        (values.infinities, _tr("infinite")),
        (values.zeros, _tr("zero")),
    ):
        if count:
            parts.append(f"{count:,} {word}")
    return " · ".join(parts)


def _tr(text: str) -> str:
    return QCoreApplication.translate("TensorWords", text)
