"""Report on runs: one HTML file, which opens without a network.

This module imports neither torch nor TVM, so that the window can write reports.
"""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lowerscope.core.files.atomic_write import atomic_write, destination
from lowerscope.core.files.paths import user_path
from lowerscope.core.files.sources import source_label
from lowerscope.core.model.comparison_records import (
    ErrorBudget,
    Variant,
    beside_reference,
    fastest,
    other_sides,
    our_times,
    ratio_of,
)
from lowerscope.core.model.dimensions import sizes_text
from lowerscope.core.model.formatting import (
    NONE,
    claims_text,
    duration_text,
    durations_text,
    error_text,
    not_finite_text,
    shape_text,
    share_text,
    status_words,
    tolerance_text,
    unreliable_text,
    verdict_words,
)
from lowerscope.core.model.graph import STRATEGY_NAMES
from lowerscope.core.model.machines import processor_name
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.processors import MACHINE
from lowerscope.core.model.recipe import Recipe, to_json
from lowerscope.core.model.run_records import (
    COMPARED,
    NodeRun,
    NodeStatus,
    OutputRecord,
    RunRecord,
    SideTimes,
    SizeRecord,
)
from lowerscope.core.model.texts import _, capitalized, english
from lowerscope.resources import REPORT


def report_html(variants: Sequence[Variant], made: datetime) -> str:
    """Return a report on one run, or on several variants side by side."""
    when = made.strftime("%Y-%m-%d %H:%M %Z").strip()
    return template(REPORT / "report.html").render(
        title=source_name(variants[0].recipe),
        subtitle=f"{len(variants)} variants · {when}" if len(variants) > 1 else when,
        **report_values(variants),
    )


def template(path: Path) -> Template:
    """Return a template of `resources`; values are escaped in those of HTML only."""
    # Imported here since few commands write a report.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(path.parent),
        autoescape=path.suffix == ".html",
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: english(value) if isinstance(value, str) else value,
    )
    return environment.get_template(path.name)


def write_report(file: str, variants: Sequence[Variant]) -> Path:
    """Write a report atomically, replacing an existing file; return its path.

    Raises a `LowerscopeError` if the file cannot be written.
    """
    path = user_path(file).absolute()
    page = report_html(variants, datetime.now().astimezone())
    try:
        atomic_write(path, page)
    except OSError as error:
        raise _cannot_write(path, error.strerror or str(error)) from None
    return path


def check_report(file: str) -> None:
    """Reject a file that a report cannot be written to, before anything is run.

    Raises a `LowerscopeError` if its folder does not exist, or it is a folder itself.
    """
    path = user_path(file).absolute()
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _cannot_write(path, error.strerror or str(error)) from None
    if path.is_dir():
        raise _cannot_write(path, _("it is a folder"))
    if not path.parent.is_dir():
        raise _cannot_write(path, _("there is no such folder"))
    if not os.access(destination(path).parent, os.W_OK):
        raise _cannot_write(path, "Permission denied")


def _cannot_write(path: Path, why: str) -> LowerscopeError:
    return LowerscopeError(
        _("the report cannot be written ({why})", why=why),
        where=str(path),
        todo=_("Choose a file in a writable folder"),
    )


def source_name(recipe: Recipe) -> str:
    """Return the name of a recipe's source, without its folder."""
    spec, entry = recipe.source.spec, recipe.source.entry
    name = source_label(spec)
    return f"{name}:{entry}" if entry else name


if TYPE_CHECKING:
    from jinja2 import Template

_PACKAGES = {
    "Lowerscope": "lowerscope",
    "torch": "torch",
    "TVM": "apache-tvm",
    "TVM FFI": "apache-tvm-ffi",
    "NumPy": "numpy",
}

_FAILED = ("✕ failed", "wrong")


class Cell(msgspec.Struct, frozen=True):
    """A cell: its text, the figure for sorting, and its CSS classes.

    The figure of a ``bar`` is its share of the longest one.
    """

    text: str
    value: float | None = None
    kind: str = ""

    @property
    def data(self) -> str:
        """The figure as a JavaScript number; empty for none."""
        if self.value is None or math.isnan(self.value):
            return ""
        return "Infinity" if math.isinf(self.value) else repr(self.value)


class Table(msgspec.Struct, frozen=True):
    """A table sortable by column; `kinds` are the CSS classes of its rows, if any."""

    name: str
    titles: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    kinds: Sequence[str] = ()

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The titles, each with the CSS class of its column."""
        figures = zip(*(["figure" in cell.kind for cell in row] for row in self.rows), strict=True)
        return [
            (title, "figure" if any(column) else "")
            for title, column in zip(self.titles, figures, strict=True)
        ]

    @property
    def lines(self) -> list[tuple[Sequence[Cell], str]]:
        """The rows, each with its CSS class."""
        return list(zip(self.rows, self.kinds or [""] * len(self.rows), strict=True))


def report_values(variants: Sequence[Variant]) -> dict[str, Any]:
    """Return the variables of the template, except title and subtitle."""
    best = fastest(variants)
    notes = [
        (each.name, unreliable_text(each.record.times))
        for each in variants
        if each.record is not None
    ]
    return {
        "variants": _variants(variants, best) if len(variants) > 1 else None,
        "fastest": [each.name for each in best],
        "notes": [(name, text) for name, text in notes if text],
        "runs": [_run(each) for each in variants],
        "facts": list(_facts(variants)),
    }


def _run(variant: Variant) -> dict[str, Any]:
    record, problem = variant.record, variant.problem
    values: dict[str, Any] = {
        "name": variant.name,
        "pill": _FAILED if record is None or problem is not None else _verdict(record),
        "problem": "" if problem is None else problem.line(),
        "recipe": to_json(variant.recipe),
        "record": record,
        "wrong_step": variant.wrong_step,
        "budget": "",
    }
    if record is not None:
        claims = "" if record.times is None else claims_text(record.times)
        values["figures"] = list(_figures(record))
        values["claims"] = capitalized(claims)
        values["first"] = record.first_difference.removeprefix("fx:")
        tables = [each for each in _tables(record) if each.rows]
        rounding = variant.rounding
        if variant.reasons:
            rows = [(Cell(about), Cell(text)) for about, text in variant.reasons]
            tables.append(Table("Why", ("step or function", "explanation"), rows))
        values["tables"] = tables if rounding is None else [*tables, _rounding(rounding)]
        values["budget"] = "" if rounding is None else rounding.text
    return values


def _facts(variants: Sequence[Variant]) -> Iterator[tuple[str, str]]:
    threads = sorted({each.recipe.threads or MACHINE for each in variants})
    yield from ((name, version(package)) for name, package in _PACKAGES.items())
    yield "Python", sys.version.split()[0]
    yield "system", platform.platform()
    yield "processor", f"{processor_name()}, {MACHINE} in use"
    yield "threads", ", ".join(map(str, threads))


def _variants(variants: Sequence[Variant], best: Sequence[Variant]) -> Table:
    """Return the table of variants with their times as bars, and torch's below them."""
    others = other_sides(variants)
    records = [each.record for each in variants if each.record is not None]
    times = [each.tvm_ms for each in records] + [each.milliseconds for each in others]
    longest = max(times, default=0.0)
    side = records[0].reference if records else "torch"
    rows = [_variant(each, longest) for each in variants]
    for each in others:
        time = _time(each.milliseconds, each, longest)
        rows.append([Cell(each.side, kind="quiet"), *time, Cell(""), *_empty(5)])
    kinds = ["best" if each in best else "" for each in variants] + ["reference"] * len(others)
    titles = ("variant", "median", "spread", "time", "verdict", side, f"vs. {side}")
    return Table("Variants", (*titles, "abs error", "functions", "build"), rows, kinds)


def _variant(variant: Variant, longest: float) -> list[Cell]:
    record, problem = variant.record, variant.problem
    text, role = _FAILED if record is None else _verdict(record)
    if problem is not None:
        text, role = f"{_FAILED[0]}: {english(problem.what)}", _FAILED[1]
    status = Cell(text, kind=role)
    if record is None:
        return [Cell(variant.name), *_empty(2), Cell(""), status, *_empty(5)]
    return [
        Cell(variant.name),
        *_time(record.tvm_ms, our_times(record), longest),
        status,
        _duration(record.torch_ms),
        _ratio(record),
        _error(record.max_abs_error),
        Cell(f"{record.functions:,}", float(record.functions), "figure"),
        _duration(record.build_ms),
    ]


def _figures(record: RunRecord) -> Iterator[tuple[str, str]]:
    yield "TVM", duration_text(record.tvm_ms)
    if record.torch_ms is not None:
        yield record.reference, duration_text(record.torch_ms)
        yield f"vs. {record.reference}", _ratio(record).text
    if record.max_abs_error is not None:
        yield "largest absolute error", error_text(record.max_abs_error)
        yield "largest relative error", error_text(record.max_rel_error)
        yield "tolerance", tolerance_text(record.atol, record.rtol, record.reference)
    yield "TensorIR functions", f"{record.functions:,}"
    yield "built in", duration_text(record.build_ms)
    if record.prediction is not None:
        yield "predicted by TVM", record.prediction.tvm
        if record.prediction.torch:
            yield "predicted by torch", record.prediction.torch


def _tables(record: RunRecord) -> Iterator[Table]:
    yield Table(
        "Outputs",
        ("output", "shape", "dtype", "abs error", "rel error", "status"),
        [_output(each, record.reference) for each in record.outputs],
    )
    yield Table(
        "Sizes",
        ("size", "abs error", "TVM", record.reference, "status"),
        [_size(each) for each in record.sizes],
    )
    titles = ("node", "how", "functions", "abs error", "rel error", "alone", "TVM", "torch")
    nodes = [_node(each, record) for each in record.nodes if each.id.startswith("fx:")]
    yield Table("Nodes", (*titles, "status"), nodes)
    yield Table("Calls", ("function", "calls", "time", "share"), list(_functions(record)))


def _output(output: OutputRecord, reference: str) -> list[Cell]:
    words, role = verdict_words(output.verdict, reference)
    said = map(english, filter(None, (words, output.reason)))
    return [
        Cell(output.name),
        Cell(shape_text(output.shape)),
        Cell(output.dtype),
        _error(output.max_abs_error),
        _error(output.max_rel_error),
        Cell(": ".join(said), kind=role),
    ]


def _size(size: SizeRecord) -> list[Cell]:
    status = f"{size.verdict}: {english(size.reason)}" if size.reason else size.verdict
    return [
        Cell(sizes_text(size.sizes)),
        _error(size.max_abs_error),
        _duration(size.tvm_ms),
        _duration(size.torch_ms),
        Cell(status, kind=verdict_words(size.verdict)[1]),
    ]


def _node(node: NodeRun, record: RunRecord) -> list[Cell]:
    called = dict.fromkeys(record.calls[index].function for index in node.calls)
    status, role = _status(node.status)
    first = "first difference" if node.id == record.first_difference else ""
    alone = ""
    if node.own_matches is not None and node.own_matches != node.matches:
        alone = f"alone it {english(_status(node.own_status)[0]).partition(' ')[2]}"
    said = ": ".join(map(english, filter(None, (status, node.not_finite or node.reason))))
    return [
        Cell(node.id.removeprefix("fx:")),
        Cell(STRATEGY_NAMES.get(node.strategy, ""), kind=node.strategy),
        Cell(", ".join(called)),
        _error(node.max_abs_error),
        _error(node.max_rel_error),
        _error(node.own_abs_error),
        _duration(node.milliseconds),
        _duration(node.torch_ms),
        Cell("; ".join(filter(None, (said, alone, first))), kind=role),
    ]


def _rounding(budget: ErrorBudget) -> Table:
    """Return the table of the errors of both sides against float64."""
    titles = ("node", "operator", "TVM", "torch", "nearer", "relative", "made here")
    narrow = (f"{budget.dtype} weights", "in the run") if budget.dtype else ()
    rows = []
    for each in budget.nodes:
        more = (each.narrow_made, each.narrow)[: len(narrow)]
        rows.append(
            [
                Cell(each.id.removeprefix("fx:")),
                Cell(each.operator),
                _error(each.tvm),
                _error(each.torch),
                Cell(each.nearer),
                *map(_error, (each.relative, each.made, *more)),
            ]
        )
    return Table("Errors against float64", (*titles, *narrow), rows)


def _functions(record: RunRecord) -> Iterator[list[Cell]]:
    """Yield the functions called by the run, with the total time of each, the longest first."""
    spent: dict[str, list[float]] = {}
    for call in record.calls:
        spent.setdefault(call.function, []).append(call.milliseconds)
    total = sum(map(sum, spent.values()))
    for name, times in sorted(spent.items(), key=lambda item: -sum(item[1])):
        share = share_text(sum(times) / total) if total else NONE
        yield [
            Cell(name),
            Cell(str(len(times)), float(len(times)), "figure"),
            _duration(sum(times)),
            Cell(share, sum(times), "figure"),
        ]


def _verdict(record: RunRecord) -> tuple[str, str]:
    words, role = verdict_words(record.verdict, record.reference)
    said = filter(None, (words, not_finite_text(record.not_finite_count)))
    return " · ".join(map(english, said)), role


def _status(status: NodeStatus) -> tuple[str, str]:
    return status_words(status) if status in COMPARED else ("– not compared", "quiet")


def _time(milliseconds: float, times: SideTimes | None, longest: float) -> tuple[Cell, Cell, Cell]:
    """Return the cells of a time, of its spread, and of its bar."""
    spread = Cell(NONE, kind="quiet figure")
    if times is not None:
        width = times.high - times.low
        spread = Cell(durations_text(times.low, times.high), width, "quiet figure")
    bar = Cell("", milliseconds / longest if longest else 0.0, "bar")
    return Cell(duration_text(milliseconds), milliseconds, "figure time"), spread, bar


def _ratio(record: RunRecord) -> Cell:
    return Cell(english(beside_reference(record)), ratio_of(record)[0], "figure")


def _empty(count: int) -> list[Cell]:
    return [Cell(NONE, kind="quiet figure")] * count


def _duration(milliseconds: float | None) -> Cell:
    return Cell(duration_text(milliseconds), milliseconds, "figure")


def _error(error: float | None) -> Cell:
    return Cell(error_text(error), error, "figure")
