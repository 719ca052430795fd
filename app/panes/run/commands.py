"""Commands on the tolerances of a run, and on how it is timed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, get_args

import msgspec
from PySide6.QtWidgets import QFileDialog

from lowerscope.app.kit.commands import Command, Host
from lowerscope.app.panes.run.outcomes import differing, runs_alone, select_next, starting
from lowerscope.app.panes.run.run_dialogs import edit_measuring, edit_tolerances
from lowerscope.core.model.comparison_records import ReferenceDtype
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from lowerscope.app.document.document import Document
    from lowerscope.app.document.stepping import Stepping
    from lowerscope.app.document.timelines import RunSteps
    from lowerscope.app.panes.run.bisecting import Bisecting
    from lowerscope.app.panes.run.run_variants import RunVariants
    from lowerscope.app.panes.run.runs import Faults, Generations, Runs


def timing_commands(document: Document, runs: Runs, parent: QWidget) -> tuple[Command, ...]:
    """Return the commands."""

    def idle() -> bool:
        return document.wanted is not None and not document.running

    def times_compile() -> bool:
        recipe = document.wanted
        return recipe is not None and recipe.measuring.torch_compile

    return (
        Command(
            "measure-again",
            _("Measure again"),
            runs.measure_again,
            "Ctrl+M",
            enabled=lambda: document.run_record is not None and not document.running,
        ),
        Command(
            "measuring",
            _("&Threads and repeats…"),
            partial(edit_measuring, document, runs, parent),
            enabled=idle,
        ),
        Command(
            "torch-compile",
            _("Time torch.compile as &well"),
            runs.toggle_torch_compile,
            enabled=idle,
            checked=times_compile,
        ),
        Command(
            "tolerances",
            _("T&olerances…"),
            partial(edit_tolerances, document, parent),
            enabled=lambda: document.wanted is not None,
        ),
    )


# --- Commands of the timeline Run: its steps, and the breakpoints ---


def run_step_commands(
    document: Document, stepping: Stepping, steps: RunSteps
) -> tuple[Command, ...]:
    """Return the commands."""

    def has_breaks() -> bool:
        return bool(steps.calls or steps.breaks or stepping.breaks)

    def clear() -> None:
        steps.clear()
        stepping.clear_breaks()

    return (
        Command(
            "toggle-break",
            _("Toggle breakpoint at the selection"),
            steps.toggle_selected,
            "Ctrl+B",
            enabled=lambda: bool(document.selection.chosen),
            key_there="B",
        ),
        Command(
            "next-break",
            _("Continue to the next breakpoint"),
            partial(stepping.to_break, 1),
            "Ctrl+F8",
            enabled=has_breaks,
        ),
        Command(
            "previous-break",
            _("Back to the previous breakpoint"),
            partial(stepping.to_break, -1),
            "Ctrl+Shift+F8",
            enabled=has_breaks,
        ),
        Command(
            "clear-breaks",
            _("Remove all brea&kpoints"),
            clear,
            enabled=lambda: bool(steps.breaks or stepping.breaks),
        ),
    )


# --- Commands for failed runs ---


def fault_commands(faults: Faults) -> tuple[Command, ...]:
    """Return the commands."""
    return (
        Command(
            "go-back",
            _("&Back to the last correct state"),
            faults.go_back,
            enabled=lambda: faults.can_go_back,
        ),
    )


# --- Commands on variants ---


def running_variants(host: Host, document: Document, runs: Runs) -> tuple[Command, ...]:
    """Return the commands."""
    return (
        Command(
            "run-variants",
            _("Run var&iants"),
            runs.variants.run_all,
            "Ctrl+F5",
            enabled=lambda: document.recipe is not None and not document.running,
        ),
        Command(
            "variants",
            _("Variant&s side by side"),
            partial(host.show_page, "variants"),
            "Ctrl+Shift+V",
            enabled=document.is_open,
        ),
    )


# --- The command that generates tokens ---


def generating(host: Host, generations: Generations) -> Command:
    """Return the command."""

    def generate() -> None:
        host.show_page("tokens")
        generations.run()

    return Command(
        "generate-tokens",
        _("Generate to&kens"),
        generate,
        enabled=lambda: generations.is_there and not generations.running,
    )


# --- Commands that go to the nodes whose values differ from torch's ---


def finding_differences(
    host: Host,
    document: Document,
    show_tensor: Callable[[], None],
    show_alone: Callable[[], None],
) -> tuple[Command, ...]:
    """Return the commands."""

    def select() -> None:
        record = document.run_record
        if record is not None and record.first_difference:
            document.select((record.first_difference,))

    def differs() -> bool:
        return bool(differing(document))

    def starts() -> bool:
        return bool(starting(document))

    def refers_to(name: str) -> bool:
        return document.state.reference == name

    def differs_first() -> bool:
        record = document.run_record
        return record is not None and bool(record.first_difference)

    return (
        Command(
            "compare-nodes",
            _("Compare no&de by node"),
            partial(host.show_page, "compare"),
            "Ctrl+N",
            enabled=document.is_open,
        ),
        Command(
            "compare-values",
            _("Show the values o&f the node"),
            show_tensor,
            "Ctrl+Shift+E",
            enabled=document.is_open,
        ),
        Command(
            "run-alone",
            _("Run the node a&lone"),
            show_alone,
            enabled=lambda: runs_alone(document),
            key_there="A",
        ),
        *(
            Command(
                f"reference-{name}",
                name,
                partial(document.set, reference=name),
                enabled=document.is_open,
                checked=partial(refers_to, name),
            )
            for name in get_args(ReferenceDtype)
        ),
        Command(
            "first-difference",
            _("Go to the &first difference"),
            select,
            "F4",
            enabled=differs_first,
        ),
        Command(
            "next-difference",
            _("Ne&xt node that differs"),
            partial(select_next, document, differing, 1),
            "Alt+PgDown",
            enabled=differs,
        ),
        Command(
            "previous-difference",
            _("Previous node that differs"),
            partial(select_next, document, differing, -1),
            "Alt+PgUp",
            enabled=differs,
        ),
        Command(
            "next-start",
            _("Next &start of a difference"),
            partial(select_next, document, starting, 1),
            enabled=starts,
            key_there="N",
        ),
        Command(
            "previous-start",
            _("Previous start of a difference"),
            partial(select_next, document, starting, -1),
            enabled=starts,
            key_there="Shift+N",
        ),
    )


# --- The command that exports a report on the variants ---


def reporting(host: Host, document: Document, runs: RunVariants, bisecting: Bisecting) -> Command:
    """Return the command."""
    return Command(
        "export-report",
        _("&Export report…"),
        partial(export_report, host, document, runs, bisecting),
        enabled=lambda: bool(runs.kept),
    )


def export_report(host: Host, document: Document, runs: RunVariants, bisecting: Bisecting) -> None:
    """Select a file in a dialog, and write a report on the selected variants, or on all."""
    # Imported here to keep the window's start fast.
    from lowerscope.app.panes.run.variants_page import VariantsPage
    from lowerscope.core.files.report import source_name, write_report

    chosen = host.view(VariantsPage).selected()
    variants = [
        msgspec.structs.replace(variant, wrong_step=bisecting.record_of(variant.recipe))
        for kept, variant in zip(runs.kept, runs.all, strict=True)
        if not chosen or kept.id in chosen
    ]
    if not variants:
        return
    name = PurePath(source_name(variants[0].recipe).replace(":", "-")).stem
    path, _filter = QFileDialog.getSaveFileName(
        host.widget, _("Export a report"), f"{name}.html", _("Reports (*.html)")
    )
    if not path:
        return
    path = path if path.endswith((".html", ".htm")) else f"{path}.html"
    try:
        written = write_report(path, variants)
    except LowerscopeError as error:
        document.report(error.problem)
    else:
        document.notify(_("Report written: {written}", written=written), "info")
