"""The commands ``run``, ``compare``, ``bisect`` and ``referee``, which run a model."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from lowerscope.core.cli.recipe_options import (
    RULES,
    SEVERAL,
    SOURCE_HELP,
    TUNED,
    OneLineParser,
    add_recipe_options,
    files_read,
    recipe_from,
)
from lowerscope.core.files.atomic_write import write_reproduction
from lowerscope.core.files.console import DIFFER, ERROR, MATCH, on_terminal_line, say, table_lines
from lowerscope.core.files.paths import check_not_read, user_path
from lowerscope.core.files.pipelines_and_schedules import variant_names
from lowerscope.core.files.report import check_report, write_report
from lowerscope.core.model.comparison_records import (
    AgreementRecord,
    ErrorBudget,
    SampleRun,
    Variant,
    WeightDtype,
    agreement_lines,
    beside_reference,
    fastest,
    our_times,
)
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.explanation_records import PROGRAM, REPORT
from lowerscope.core.model.formatting import (
    NONE,
    bytes_text,
    compiled_text,
    duration_text,
    durations_text,
    error_text,
    estimate_text,
    method_text,
    not_finite_text,
    shape_text,
    status_words,
    unreliable_text,
    verdict_words,
)
from lowerscope.core.model.generation_records import GenerationRecord, fault_text, generation_text
from lowerscope.core.model.graph import STRATEGY_NAMES
from lowerscope.core.model.machines import parse_limit
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.progress import Progress, Silent
from lowerscope.core.model.queries import (
    AgreementQuery,
    BisectQuery,
    GenerationQuery,
    NodeErrorsQuery,
    ReasonsQuery,
    RunEstimateQuery,
    RunQuery,
)
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import FAILING, NodeRun, NodeStatus, RunRecord
from lowerscope.core.model.texts import _, capitalized
from lowerscope.core.sandbox.memory_limit import limit_memory
from lowerscope.core.sandbox.running_call import CallWriter

if TYPE_CHECKING:
    from lowerscope.core.stages import Pipeline, Stages


def add_run_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope run``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.flag("--json", _("print the record as JSON"))
    parser.flag(
        "--per-node",
        _(
            "add a table of the FX nodes: error in the run, error alone on torch's inputs, and "
            "times of both sides; with --json, the field nodes"
        ),
    )
    parser.text(
        "--inputs-set",
        "PATH",
        _(
            "run a set of inputs and print how many agree: a folder of pictures or .npy files, "
            "or an .npz with samples in the first dimension (and labels y, for the accuracy)"
        ),
    )
    parser.number(
        "--tokens",
        _(
            "generate N tokens by prefill and decode steps and compare each with torch's; the "
            "file has to define next_inputs"
        ),
        default=None,
        metavar="N",
    )
    add_nonfinite_option(parser)
    parser.add_argument(
        "--memory-limit", type=_limit, metavar="3GB", help=_("memory limit of the run")
    )
    # Descriptor from which `supervised` reads the current call.
    parser.add_argument("--calls", type=int, default=None, help=argparse.SUPPRESS)
    add_report_option(parser)
    add_recipe_options(parser)


def add_nonfinite_option(parser: OneLineParser) -> None:
    """Add ``--allow-nonfinite``."""
    parser.flag(
        "--allow-nonfinite",
        _("exit with 0 if the verdict is inconclusive, since no value is finite on both sides"),
    )


def add_report_option(parser: OneLineParser) -> None:
    """Add ``--html``."""
    parser.text("--html", "FILE", _("write a report as well: one HTML file that needs no network"))


def _limit(text: str) -> int:
    try:
        return parse_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return the exit code and the text to print."""
    from lowerscope.core.cli.showing import describe_run

    check_report_option(options)
    if options.memory_limit is not None:
        limit_memory(options.memory_limit)
    progress = Silent() if options.calls is None else _Told(options.calls)
    if options.inputs_set:
        return _run_set(pipeline, recipe, options)
    if options.tokens is not None:
        return _generate(pipeline, recipe, options)
    if recipe.remote is None:
        slow = estimate_text(pipeline.answer(RunEstimateQuery(recipe), progress), recipe.measuring)
        if slow:
            say(slow)
            say(_("Faster: --pipeline optimise-cpu"))
    record = pipeline.answer(RunQuery(recipe), progress)
    code = DIFFER if record.verdict in failing_verdicts(options) else MATCH
    (name,) = variant_names((recipe,))
    variant = Variant(name=name, recipe=recipe, record=record)
    written = write_wanted_report(options, pipeline, (variant,))
    lowered = pipeline.stages(recipe).lowered if options.per_node else None
    runs = {each.id: each for each in record.nodes}
    nodes = [
        msgspec.structs.replace(
            runs.get(f"fx:{name}", NodeRun(id=f"fx:{name}")), strategy=node.strategy
        )
        for name, node in ({} if lowered is None else lowered.nodes).items()
    ]
    if options.json:
        fields = msgspec.structs.asdict(record)
        if lowered is not None:
            fields["nodes"] = [
                _node_report(run, record, node.bindings)
                for run, node in zip(nodes, lowered.nodes.values(), strict=True)
            ]
        elif options.per_node:
            fields["nodes"] = []
        return code, to_json(fields)
    lines = [describe_run(record)]
    if nodes:
        shown = (each for each in nodes if each.strategy or each.torch_ms is not None)
        lines += table_lines([_NODE_HEADINGS, *map(_node_row, shown)], range(2, 6))
    if options.per_node and not nodes:
        lines.append(_("There are no FX nodes: the source is not a torch model"))
    if record.first_difference:
        lines.append(_first_difference(record, pipeline.stages(recipe)))
    return code, "\n".join([*lines, *written])


def _first_difference(record: RunRecord, stages: Stages) -> str:
    """Return the first differing node, its provenance, its source line, and its error."""
    assert stages.lowered is not None
    assert stages.traced is not None
    found = next(each for each in record.nodes if each.id == record.first_difference)
    name = record.first_difference.removeprefix("fx:")
    node, line = stages.lowered.nodes[name], stages.traced.lines.get(name)
    place = "" if line is None else f"{PurePath(line.file).name}:{line.line}"
    made = record.first_made
    lines = [
        _(
            "First difference: {name} ({about}): {reason}",
            name=name,
            about=_("; ").join(filter(None, (node.rule, place))),
            reason=found.reason,
        ),
        _("  largest error: {error} absolute", error=error_text(found.max_abs_error)),
    ]
    if found.own_matches:
        lines.append(
            _(
                "  on torch's inputs, the node matches: the error is inherited from a node that "
                "could not be compared"
            )
        )
    lines.append(_("  passes on it: {passes}", passes=_(", ").join(made.passes) or _("none")))
    lines += (_("  schedule of {function}", function=each) for each in made.schedules)
    return "\n".join(lines)


_NODE_HEADINGS = (
    *(_("node"), _("strategy"), _("abs error"), _("alone")),
    *("TVM", "torch", _("status")),
)


def _node_row(node: NodeRun) -> tuple[str, ...]:
    remarks = [_status(node.status, node.reason)]
    if node.own_status != node.status:
        remarks.append(_("alone: {status}", status=_status(node.own_status, node.own_reason)))
    if node.own_with:
        remarks.append(
            _(
                "run together with {nodes}",
                nodes=listed([each.removeprefix("fx:") for each in node.own_with]),
            )
        )
    return (
        node.id.removeprefix("fx:"),
        STRATEGY_NAMES.get(node.strategy, node.strategy),
        error_text(node.max_abs_error),
        error_text(node.own_abs_error),
        duration_text(node.milliseconds),
        duration_text(node.torch_ms),
        _("; ").join(remarks),
    )


def _status(status: NodeStatus, reason: str) -> str:
    words = status_words(status)[0]
    return _("{status}: {reason}", status=words, reason=reason) if reason else words


_WORST = 5
"""Most samples that are printed."""


def _run_set(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Run a set of inputs: agreement with the reference over all samples."""
    if options.per_node:
        raise LowerscopeError(
            _("nodes are compared on a single input"),
            where="--per-node",
            todo=_("Leave --inputs-set out, or give one of its samples with --input"),
        )
    with on_terminal_line() as progress:
        record = pipeline.answer(AgreementQuery(recipe, options.inputs_set), progress)
    for reason in record.unread:
        say(_("note: left out: {reason}", reason=reason))
    counts = {"differ": record.differing, "inconclusive": record.inconclusive}
    code = DIFFER if any(counts[each] for each in failing_verdicts(options)) else MATCH
    return code, to_json(record) if options.json else "\n".join(_set_lines(record))


def _set_lines(record: AgreementRecord) -> Iterator[str]:
    yield from agreement_lines(record, record.path)
    worst = [
        each
        for each in record.worst
        if each.max_abs_error is not None or each.verdict == "inconclusive"
    ][:_WORST]
    if worst:
        yield _("Samples with the largest errors:")
        yield from (
            f"  {line}"
            for line in table_lines(
                [_sample(each, record.reference) for each in worst], range(1, 2)
            )
        )


def _sample(sample: SampleRun, reference: str) -> tuple[str, ...]:
    same = sample.tvm == sample.torch
    return (
        sample.title,
        error_text(sample.max_abs_error),
        verdict_words(sample.verdict)[0],
        sample.tvm if same else f"TVM {sample.tvm}, {reference} {sample.torch}",
        _("labelled {label}", label=sample.label) if sample.label else "",
    )


def _generate(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Generate tokens: each call beside torch's."""
    from lowerscope.core.cli.showing import note_lines

    if options.tokens < 1:
        raise LowerscopeError(
            _("{count} is not a valid number of tokens", count=options.tokens),
            where="--tokens",
            todo=_("Give a number from 1"),
        )
    with on_terminal_line() as progress:
        record = pipeline.answer(GenerationQuery(recipe, options.tokens), progress)
    code = DIFFER if record.verdict in failing_verdicts(options) else MATCH
    recipes = (record.prefill, *record.steps)
    for note in dict.fromkeys(each for one in recipes for each in note_lines(pipeline, one)):
        say(_("note: {note}", note=note))
    return code, to_json(record) if options.json else "\n".join(_generation_lines(record))


def _generation_lines(record: GenerationRecord) -> Iterator[str]:
    yield generation_text(record)
    if record.fault is not None:
        yield fault_text(record.fault)
    yield _("  tokens: {tokens}", tokens=" ".join(each.text for each in record.tokens))
    for side in ("TVM", "torch"):
        yield _(
            "  {side}: prefill {prefill}, decode {decode} per token",
            side=side,
            prefill=duration_text(record.prefill_ms(side)),
            decode=duration_text(record.decode_ms(side)),
        )
    total = sum(each.bytes for each in record.cache)
    yield _("  cache after the last token: {size}", size=bytes_text(total))
    rows = [
        (each.name, f"{shape_text(each.shape)} {each.dtype}", bytes_text(each.bytes))
        for each in record.cache
    ]
    yield from (f"    {line}" for line in table_lines(rows, range(2, 3)))
    yield _(
        "Built in {time}: one executable for prefill and decode",
        time=duration_text(record.build_ms),
    )
    for step in record.steps:
        yield from (f"  {each.name} = {each.low}..{each.high}" for each in step.dimensions)


class _Told(Silent):
    """Progress that writes the current call to a file."""

    def __init__(self, file: int) -> None:
        self._calls = CallWriter(file)

    def begin_calls(self, names: Sequence[str]) -> None:
        self._calls.begin(names)

    def at_call(self, index: int, inside: bool) -> None:
        self._calls.at(index, inside)


_OF_RUN = (
    *("strategy", "max_abs_error", "max_rel_error", "own_abs_error", "status", "own_status"),
    *("reason", "own_reason", "own_with", "torch_ms", "exact", "own_exact"),
)
"""Fields of a `NodeRun` that the report of a node has under the same names."""


def _node_report(run: NodeRun, record: RunRecord, bindings: Sequence[str]) -> dict[str, Any]:
    """Return the results of an FX node as they are printed as JSON.

    `bindings`: names of its bindings before the passes.
    """
    calls = [record.calls[index] for index in run.calls]
    return {
        "fx": run.id,
        "bindings": [f"relax:main/{each}" for each in bindings],
        "functions": list(dict.fromkeys(each.function for each in calls)),
        **{name: getattr(run, name) for name in _OF_RUN},
        "tvm_ms": run.milliseconds,
        "hand_overs": [each.hand_over for each in calls if each.hand_over is not None],
    }


def check_report_option(options: argparse.Namespace) -> None:
    """Check that the report can be written, before anything is run.

    Raises a `LowerscopeError` if it cannot, or this kind of run has no report.
    """
    if options.html and getattr(options, "inputs_set", ""):
        raise LowerscopeError(
            _("no report can be written for a set of inputs"),
            where=f"--html {options.html}",
            todo=_("Run one input of it, or leave the option out"),
        )
    if options.html:
        check_report(options.html)


def write_wanted_report(
    options: argparse.Namespace, pipeline: Pipeline, variants: Sequence[Variant]
) -> list[str]:
    """Write the report if one is requested; return a line on it.

    Raises a `LowerscopeError` if it cannot be written.
    """
    if not options.html:
        return []
    with on_terminal_line() as progress:
        told = [
            msgspec.structs.replace(
                each, reasons=pipeline.answer(ReasonsQuery(each.recipe), progress)
            )
            if each.record is not None
            else each
            for each in variants
        ]
        progress.report(_("Writing the report"))
        written = write_report(options.html, told)
    return [_("Report: {file}", file=written)]


def failing_verdicts(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the verdicts for which a command exits with 1."""
    return FAILING[:1] if options.allow_nonfinite else FAILING


# --- The command ``compare`` ---

UNSCHEDULED = "none"
"""Value of ``--schedule`` for a variant without schedules."""


def add_compare_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope compare``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.flag("--json", _("print the variants as JSON"))
    add_nonfinite_option(parser)
    add_report_option(parser)
    add_recipe_options(parser, several=True)


def recipes_of(options: argparse.Namespace) -> tuple[Recipe, ...]:
    """Return a recipe for each combination of the values of `SEVERAL` options.

    Raises a `LowerscopeError` if an option cannot be read, or ``--schedule`` names no file.
    """
    for name in options.schedules or ():
        if name in (UNSCHEDULED, RULES, TUNED) or name.endswith(".json"):
            continue
        if not os.path.isfile(user_path(name)):
            raise LowerscopeError(
                _("there are no schedules called {name}", name=name),
                where=f"--schedule {name}",
                todo=_(
                    "Give a saved FILE.json, {rules}, {tuned} or {unscheduled}",
                    rules=RULES,
                    tuned=TUNED,
                    unscheduled=UNSCHEDULED,
                ),
            )
    axes = [
        [(name, value) for value in dict.fromkeys(getattr(options, name) or [default])]
        for name, default in SEVERAL.items()
    ]
    recipes = []
    for chosen in product(*axes):
        one = argparse.Namespace(**(vars(options) | dict(chosen)))
        one.schedules = [] if one.schedules in ("", UNSCHEDULED) else [one.schedules]
        recipes.append(recipe_from(one))
    return tuple(dict.fromkeys(recipes))


def compare(pipeline: Pipeline, _recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return the exit code, and the table of the variants or their records as JSON."""
    from lowerscope.core.cli.showing import leaves_out, note_lines
    from lowerscope.core.run.compare.variants import run_variants

    check_report_option(options)
    with on_terminal_line() as progress:
        variants = run_variants(pipeline, recipes_of(options), progress)
    written = write_wanted_report(options, pipeline, variants)
    ran = [each for each in variants if each.record is not None]
    notes = {line: None for each in ran for line in note_lines(pipeline, each.recipe)}
    for note in notes:
        say(_("note: {note}", note=note))
    best = fastest(variants)
    if options.json:
        text = to_json({"variants": variants, "fastest": [each.name for each in best]})
    else:
        text = "\n".join([*_lines(variants, best), *written])
    left_out = any(leaves_out(pipeline, each.recipe) for each in ran)
    if left_out or any(each.record is None for each in variants):
        return ERROR, text
    failing = failing_verdicts(options)
    failed = any(each.record is not None and each.record.verdict in failing for each in variants)
    return DIFFER if failed else MATCH, text


_HEADINGS = (
    *(_("variant"), _("verdict"), _("error"), "TVM", _("spread")),
    *("{side}", _("vs. {side}"), _("functions"), _("build")),
)


_FAILED = _("✕ failed")


def _lines(variants: Sequence[Variant], best: Sequence[Variant]) -> list[str]:
    """Return a line for each variant, figures right-aligned, and notes on them."""
    records = [each.record for each in variants if each.record is not None]
    side = records[0].reference if records else "torch"
    headings = tuple(each.format(side=side) for each in _HEADINGS)
    lines = table_lines([headings, *map(_row, variants)], range(2, len(_HEADINGS)))
    if best:
        names = listed([each.name for each in best])
        if len(best) == 1:
            lines.append(_("Fastest: {names}", names=names))
        else:
            lines.append(_("Fastest: {names} (within measurement noise)", names=names))
    if records and records[0].times is not None:
        method, compiled = method_text(records[0].times), compiled_text(records[0].times)
        lines.append(capitalized(method))
        lines += [compiled] if compiled else []
    for each in variants:
        said = "" if each.record is None else unreliable_text(each.record.times)
        lines += [_("{name}: {reason}", name=each.name, reason=said)] if said else []
    for each in variants:
        if each.problem is not None:
            lines.append(_("{name}: {reason}", name=each.name, reason=each.problem.line()))
        elif each.record is not None and each.record.reason:
            lines.append(_("{name}: {reason}", name=each.name, reason=each.record.reason))
            if first := each.record.first_difference.removeprefix("fx:"):
                lines.append(_("  first difference: {node}", node=first))
    return lines


def _row(variant: Variant) -> tuple[str, ...]:
    record = variant.record
    if record is None:
        return (variant.name, _FAILED, *(NONE for _other in _HEADINGS[2:]))
    times = our_times(record)
    return (
        variant.name,
        _(", ").join(
            filter(
                None, (verdict_words(record.verdict)[0], not_finite_text(record.not_finite_count))
            )
        ),
        error_text(record.max_abs_error),
        duration_text(record.tvm_ms),
        NONE if times is None else durations_text(times.low, times.high),
        duration_text(record.torch_ms),
        beside_reference(record),
        str(record.functions),
        duration_text(record.build_ms),
    )


# --- The command ``lowerscope bisect``: the step that makes a model differ from torch ---

_RIGHT = ("match", "rounding", "not-comparable", "no-reference")
"""Outcomes for which the exit code is 0."""


def add_bisect_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope bisect``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.flag("--json", _("print the answer as JSON"))
    parser.text(
        "--output",
        "DIR",
        _(
            "folder for the reproduction: {program}, {report} and the files that they need "
            "(default: the current folder)",
            program=PROGRAM,
            report=REPORT,
        ),
        default=".",
    )
    parser.flag("--force", _("overwrite existing files"))
    add_recipe_options(parser)


def bisect(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return the exit code and the answer; write the reproduction.

    Raises a `LowerscopeError` if the model does not run, or a file exists, or cannot be written.
    """
    from lowerscope.core.export.files import check_absent

    folder = user_path(options.output)
    if not options.force:
        check_absent(folder, [PROGRAM, REPORT])
    for name in (PROGRAM, REPORT):
        check_not_read(folder / name, str(folder / name), files_read(options, recipe))
    with on_terminal_line() as progress:
        record = pipeline.answer(BisectQuery(recipe), progress)
    write_reproduction(folder, record.files, force=options.force)
    code = MATCH if record.outcome in _RIGHT else DIFFER
    program = str(folder / PROGRAM) if record.files else None
    if options.json:
        fields = msgspec.structs.asdict(record) | {
            "stage": record.stage or None,
            "reproduce": program,
            "files": [str(folder / each.name) for each in record.files],
        }
        return code, to_json(fields)
    lines = [record.text]
    probed = [
        (f"  {each.after}", _FAILED if each.verdict == "failed" else verdict_words(each.verdict)[0])
        for each in record.probed
    ]
    lines += table_lines(probed, range(0))
    lines += [str(folder / each.name) for each in record.files]
    return code, "\n".join(lines)


# --- The command ``referee``: where rounding grows, and the cost of narrower weights ---


def add_referee_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope referee``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.add_argument(
        "--dtype",
        choices=[each for each in get_args(WeightDtype) if each],
        default="",
        help=_("also the errors that weights of this dtype would make"),
    )
    parser.flag("--json", _("print the answer as JSON"))
    add_recipe_options(parser)


def referee(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return the exit code and the errors of the nodes.

    Raises a `LowerscopeError` if the model does not run, or has no node that is compared.
    """
    with on_terminal_line() as progress:
        found = judged(pipeline, recipe, options.dtype, progress)
    if options.json:
        return MATCH, to_json({"dtype": options.dtype or None, "nodes": found.nodes})
    return MATCH, "\n".join(_error_lines(found))


def judged(
    pipeline: Pipeline, recipe: Recipe, dtype: WeightDtype, progress: Progress
) -> ErrorBudget:
    """Return the errors of the nodes in the last run; if that was of another model, run it."""
    query = NodeErrorsQuery(recipe, dtype)
    try:
        return pipeline.answer(query, progress)
    except LowerscopeError as error:
        if error.problem.code != "not-kept":
            raise
    # A quick run of a slow model has no nodes.
    pipeline.answer(RunQuery(recipe), progress)
    return pipeline.answer(query, progress)


def _error_lines(budget: ErrorBudget) -> Iterator[str]:
    dtype = budget.dtype
    rows: list[tuple[str, ...]] = [
        (_("node"), _("operator"), _("nearer"), "TVM", "torch", _("relative"), _("own error"))
    ]
    narrow: list[tuple[str, ...]] = [(_("with {dtype} weights", dtype=dtype), _("in the run"))]
    for each in budget.nodes:
        errors = each.tvm, each.torch, each.relative, each.made
        name = each.id.removeprefix("fx:")
        rows.append((name, each.operator, each.nearer, *map(error_text, errors)))
        narrow.append((error_text(each.narrow_made), error_text(each.narrow)))
    if dtype:
        rows = [(*row, *more) for row, more in zip(rows, narrow, strict=True)]
    yield from table_lines(rows, range(3, 9))
    if budget.text:
        yield budget.text
