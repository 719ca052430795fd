"""A report on runs: one HTML file, which opens without a network.

This module imports neither torch nor TVM, so that the window can write reports.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Sequence
from datetime import datetime
from html import escape
from importlib.metadata import version
from pathlib import Path

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.environment import MACHINE
from lowerscope.core.export.report_parts import (
    figures,
    functions_table,
    nodes_table,
    outputs_table,
    recipe_text,
    variants_table,
    verdict_pill,
)
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.variant import Variant, fastest
from lowerscope.core.rendering.time_text import unreliable_text
from lowerscope.core.sources.spec import source_label
from lowerscope.core.unfinished import destination, write_text
from lowerscope.core.user_cache import processor_name
from lowerscope.core.user_paths import user_path
from lowerscope.resources import REPORT

_PLACE = re.compile(r"\{\{(\w+)\}\}")
"""Where something is put into the page."""

_PACKAGES = {
    "Lowerscope": "lowerscope",
    "torch": "torch",
    "TVM": "apache-tvm",
    "TVM FFI": "apache-tvm-ffi",
    "NumPy": "numpy",
}


def report_html(variants: Sequence[Variant], made: datetime) -> str:
    """Return a report on one run, or on several variants side by side.

    Parameters
    ----------
    made
        When, in the time of the place.
    """
    title = source_name(variants[0].recipe)
    count = len(variants)
    when = made.strftime("%Y-%m-%d %H:%M %Z").strip()
    parts = []
    if count > 1:
        named = ", ".join(each.name for each in fastest(variants))
        more = " (which of them cannot be told)" if len(fastest(variants)) > 1 else ""
        named = f"<p>Fastest: <b>{escape(named)}</b>{more}</p>" if named else ""
        for each in variants:
            said = "" if each.record is None else unreliable_text(each.record.times)
            named += f"<p>{escape(each.name)}: {escape(said)}</p>" if said else ""
        parts.append(f"<section><h2>Variants</h2>\n{variants_table(variants)}\n{named}</section>")
    for place, variant in enumerate(variants):
        inside = _variant(variant, f"recipe{place}")
        if count == 1:
            parts.append(f"<section><h2>Run: {escape(variant.name)}</h2>\n{inside}</section>")
        else:
            head = f"<summary>{escape(variant.name)} {verdict_pill(variant)}</summary>"
            parts.append(f"<details>{head}\n{inside}</details>")
    parts.append(f"<section><h2>Where it was run</h2>\n{_environment(variants)}</section>")
    fields = {
        "title": escape(title),
        "verdict": verdict_pill(variants[0]) if count == 1 else "",
        "subtitle": escape(f"{count} variants · {when}" if count > 1 else when),
        "body": "\n".join(parts),
    }
    page = (REPORT / "report.html").read_text(encoding="utf-8")
    return _PLACE.sub(lambda found: fields[found[1]], page)


def write_report(file: str, variants: Sequence[Variant]) -> Path:
    """Write a report, in place of what is there, all of it or nothing; return the file's path.

    Raises
    ------
    LowerscopeError
        If the file cannot be written.
    """
    path = user_path(file).absolute()
    page = report_html(variants, datetime.now().astimezone())
    try:
        write_text(path, page)
    except OSError as error:
        raise _cannot_write(path, error.strerror or str(error)) from None
    return path


def check_report(file: str) -> None:
    """Refuse a file that a report cannot be written to, before anything is run for it.

    Raises
    ------
    LowerscopeError
        If there is no such folder, or it is one itself.
    """
    path = user_path(file).absolute()
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _cannot_write(path, error.strerror or str(error)) from None
    if path.is_dir():
        raise _cannot_write(path, "it is a folder")
    if not path.parent.is_dir():
        raise _cannot_write(path, "there is no such folder")
    if not os.access(destination(path).parent, os.W_OK):
        raise _cannot_write(path, "Permission denied")


def _cannot_write(path: Path, why: str) -> LowerscopeError:
    return LowerscopeError(
        f"the report cannot be written ({why})",
        where=str(path),
        todo="Choose a file in a folder that you may write to",
    )


def source_name(recipe: Recipe) -> str:
    """Return the name of a recipe's source, without its folder."""
    spec, entry = recipe.source.spec, recipe.source.entry
    name = source_label(spec)
    return f"{name}:{entry}" if entry else name


def _variant(variant: Variant, place: str) -> str:
    record, problem = variant.record, variant.problem
    parts = [] if problem is None else [f'<p class="wrong">{escape(problem.line())}</p>']
    if record is not None:
        if problem is not None:
            parts.append("<p>The figures are of the run before.</p>")
        parts.append(figures(record))
        if record.reason:
            parts.append(f"<p>{escape(record.reason)}</p>")
        if record.first_difference:
            name = record.first_difference.removeprefix("fx:")
            parts.append(f"<p>The first node that differs is <b>{escape(name)}</b>.</p>")
        parts += [outputs_table(record), nodes_table(record), functions_table(record)]
    return "\n".join([*parts, recipe_text(variant, place)])


def _environment(variants: Sequence[Variant]) -> str:
    threads = sorted({each.recipe.threads or MACHINE for each in variants})
    facts = [(name, version(package)) for name, package in _PACKAGES.items()]
    facts += [
        ("Python", sys.version.split()[0]),
        ("system", platform.platform()),
        ("processor", f"{processor_name()}, {MACHINE} in use"),
        ("threads", ", ".join(map(str, threads))),
    ]
    rows = (f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in facts)
    return f'<table aria-label="Versions and machine"><tbody>{"".join(rows)}</tbody></table>'
