"""The command that exports a report on the variants."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog

from lowerscope.app.actions import Command
from lowerscope.core.errors import LowerscopeError

if TYPE_CHECKING:
    from lowerscope.app.window import MainWindow


def reporting(window: MainWindow) -> tuple[Command, ...]:
    """Return the command, for the menu File."""
    runs = window.features.runs.variants
    return (
        Command(
            "export-report",
            window.tr("&File"),
            window.tr("&Export report…"),
            partial(export_report, window),
            enabled=lambda: bool(runs.kept),
        ),
    )


def export_report(window: MainWindow) -> None:
    """Select a file in a dialog, and write a report on the selected variants, or on all."""
    # Imported here to keep the window's start fast.
    from lowerscope.core.export.report import source_name, write_report

    document, tr = window.document, window.tr
    runs = window.features.runs.variants
    chosen = window.panes.variants.selected()
    variants = [
        variant
        for kept, variant in zip(runs.kept, runs.all, strict=True)
        if not chosen or kept.id in chosen
    ]
    if not variants:
        return
    name = PurePath(source_name(variants[0].recipe).replace(":", "-")).stem
    path, _ = QFileDialog.getSaveFileName(
        window, tr("Export a report"), f"{name}.html", tr("Reports (*.html)")
    )
    if not path:
        return
    path = path if path.endswith((".html", ".htm")) else f"{path}.html"
    try:
        written = write_report(path, variants)
    except LowerscopeError as error:
        document.report(error.problem)
    else:
        document.notify(tr("The report is written: {0}").format(written), "info")
