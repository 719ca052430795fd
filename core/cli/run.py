"""The commands ``run`` (verdict, times, first node that differs), ``compare`` and ``bisect``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import PurePath
from typing import TYPE_CHECKING

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
from lowerscope.core.files.console import DIFFER, ERROR, MATCH, on_terminal_line, say, table_lines
from lowerscope.core.files.paths import check_not_read, user_path
from lowerscope.core.files.pipelines_and_schedules import variant_names
from lowerscope.core.files.report import check_report, write_report
from lowerscope.core.files.reproduction import write_reproduction
from lowerscope.core.model.comparison_records import (
    AgreementRecord,
    SampleRun,
    Variant,
    fastest,
    our_times,
    ratio_of,
)
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.explanation_records import PROGRAM, REPORT
from lowerscope.core.model.formatting import (
    NONE,
    compiled_text,
    duration_text,
    durations_text,
    error_text,
    estimate_text,
    method_text,
    not_finite_text,
    ratio_text,
    shape_text,
    share_of_text,
    unreliable_text,
)
from lowerscope.core.model.generation_records import GenerationRecord, fault_text, generation_text
from lowerscope.core.model.machines import parse_limit
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.progress import Silent
from lowerscope.core.model.queries import (
    AgreementQuery,
    BisectQuery,
    GenerationQuery,
    RunEstimateQuery,
    RunQuery,
)
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import FAILING, NodeReport, NodeRun, RunRecord
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
            "a table of the FX nodes: error in the run, error alone on torch's inputs, and "
            "times of both sides; with --json as nodes"
        ),
    )
    parser.text(
        "--inputs-set",
        "PATH",
        _(
            "run each sample of a folder of pictures or .npy files, or of an .npz with samples "
            "first (and labels as y, for the accuracy), and tell how well both sides agree"
        ),
    )
    parser.number(
        "--tokens",
        _(
            "generate that many tokens by prefill and decode steps, and compare each with torch's: "
            "for a file with next_inputs"
        ),
        metavar="N",
    )
    add_nonfinite_option(parser)
    parser.add_argument(
        "--memory-limit",
        type=_limit,
        metavar="3GB",
        help=_("memory limit of the run; a call that needs more fails"),
    )
    # Descriptor from which `supervised` reads the current call.
    parser.add_argument("--calls", type=int, default=None, help=argparse.SUPPRESS)
    add_report_option(parser)
    add_recipe_options(parser)


def add_nonfinite_option(parser: OneLineParser) -> None:
    """Add ``--allow-nonfinite``."""
    parser.flag(
        "--allow-nonfinite",
        _("exit with 0 if a verdict is inconclusive: no value is finite on both sides"),
    )


def add_report_option(parser: OneLineParser) -> None:
    """Add ``--html``."""
    parser.text(
        "--html", "FILE", _("write a report as well: one file that opens without a network")
    )


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
    if options.tokens:
        return _generate(pipeline, recipe, options)
    if recipe.remote is None:
        slow = estimate_text(pipeline.answer(RunEstimateQuery(recipe), progress), recipe.measuring)
        if slow:
            say(_("{slow} Faster: --pipeline optimise-cpu", slow=slow))
    record = pipeline.answer(RunQuery(recipe), progress)
    code = DIFFER if record.verdict in failing_verdicts(options) else MATCH
    (name,) = variant_names((recipe,))
    variant = Variant(name=name, recipe=recipe, record=record)
    written = write_wanted_report(options, (variant,))
    nodes = _per_node(pipeline.stages(recipe), record) if options.per_node else ()
    if options.json:
        fields = {"nodes": nodes} if options.per_node else {}
        return code, to_json(msgspec.structs.asdict(record) | fields)
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
    about = "; ".join(each for each in (node.rule, place) if each)
    far = _("largest error {max_abs_error} absolute", max_abs_error=error_text(found.max_abs_error))
    made = record.first_made
    from_above = _("  alone, on torch's inputs, it matches: the error is inherited")
    lines = [
        _(
            "First difference: {name} ({about}): {reason}, {far}",
            name=name,
            about=about,
            reason=found.reason,
            far=far,
        ),
        *(
            [_("{from_above} that could not be compared", from_above=from_above)]
            if found.own_matches
            else []
        ),
        _("  passes on it: {passes}", passes=", ".join(made.passes) or "none"),
        *(_("  schedule of {each}", each=each) for each in made.schedules),
    ]
    return "\n".join(lines)


_NODE_HEADINGS = (
    *(_("node"), _("how"), _("abs error"), _("alone")),
    *("TVM", "torch", _("status")),
)


def _node_row(node: NodeReport) -> tuple[str, ...]:
    status = f"{node.status}: {node.reason}" if node.reason else node.status
    if node.own_status != node.status:
        more = f": {node.own_reason}" if node.own_reason else ""
        status += f"; alone {node.own_status}{more}"
    if node.own_with:
        status += _(
            "; run with {value}",
            value=", ".join(each.removeprefix("fx:") for each in node.own_with),
        )
    return (
        node.fx.removeprefix("fx:"),
        node.strategy,
        error_text(node.max_abs_error),
        error_text(node.own_abs_error),
        duration_text(node.tvm_ms),
        duration_text(node.torch_ms),
        status,
    )


_WORST = 5
"""Most samples that are printed."""


def _run_set(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Run a set of inputs: agreement with the reference over all samples."""
    if options.per_node:
        raise LowerscopeError(
            _("the nodes are compared on one input"),
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
    yield (
        _(
            "{ran} of {count} samples of {path}",
            ran=record.ran,
            count=record.count,
            path=record.path,
        )
        if record.ran < record.count
        else _("{ran} samples of {path}", ran=record.ran, path=record.path)
    )
    side = record.reference
    if record.compared:
        yield (
            _(
                "  within the tolerance of {side}: {matching}; largest error {max_abs_error} "
                "absolute, {max_rel_error} relative",
                side=side,
                matching=share_of_text(record.matching, record.compared),
                max_abs_error=error_text(record.max_abs_error),
                max_rel_error=error_text(record.max_rel_error),
            )
        )
    if record.rounding:
        yield _(
            "  beyond it by rounding only: {share}",
            share=share_of_text(record.rounding, record.matching),
        )
    if record.not_finite:
        yield (
            _(
                "  within the tolerance, apart from values that are not finite: {not_finite}",
                not_finite=share_of_text(record.not_finite, record.matching),
            )
        )
    if record.inconclusive:
        yield (
            _(
                "  inconclusive, without a finite value on both sides: {inconclusive}",
                inconclusive=share_of_text(record.inconclusive, record.ran),
            )
        )
    if record.classed:
        yield _(
            "  the same class as {side}: {same_class}",
            side=side,
            same_class=share_of_text(record.same_class, record.classed),
        )
    if record.labelled:
        yield (
            _(
                "  as labelled: TVM {tvm_correct}, {side} {torch_correct}",
                tvm_correct=share_of_text(record.tvm_correct, record.labelled),
                side=side,
                torch_correct=share_of_text(record.torch_correct, record.labelled),
            )
        )
    worst = [
        each
        for each in record.worst
        if each.max_abs_error is not None or each.verdict == "inconclusive"
    ][:_WORST]
    if worst:
        width = max(len(each.title) for each in worst)
        yield _("Worst:")
        yield from (f"  {each.title:<{width}}  {_sample_text(each, side)}" for each in worst)


def _sample_text(sample: SampleRun, reference: str) -> str:
    parts = [error_text(sample.max_abs_error), sample.verdict]
    if sample.tvm:
        same = sample.tvm == sample.torch
        parts.append(sample.tvm if same else f"TVM {sample.tvm}, {reference} {sample.torch}")
    if sample.label:
        parts.append(_("labelled {label}", label=sample.label))
    return "  ".join(parts)


def _generate(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Generate tokens: each call beside torch's."""
    from lowerscope.core.cli.showing import note_lines

    with on_terminal_line() as progress:
        record = pipeline.answer(GenerationQuery(recipe, options.tokens), progress)
    code = DIFFER if record.verdict in failing_verdicts(options) else MATCH
    recipes = (record.prefill, record.decode)
    for note in dict.fromkeys(each for one in recipes for each in note_lines(pipeline, one)):
        say(_("note: {note}", note=note))
    return code, to_json(record) if options.json else "\n".join(_generation_lines(record))


def _generation_lines(record: GenerationRecord) -> Iterator[str]:
    yield generation_text(record)
    fault = record.fault
    if fault is not None:
        yield fault_text(fault)
    yield _("  tokens: {tokens}", tokens=" ".join(each.text for each in record.tokens))
    for side in ("TVM", "torch"):
        yield _(
            "  {side}: prefill {prefill}, decode {decode} a token",
            side=side,
            prefill=duration_text(record.prefill_ms(side)),
            decode=duration_text(record.decode_ms(side)),
        )
    total = sum(each.bytes for each in record.cache)
    yield _("  cache: {total:,} bytes after the last token", total=total)
    for each in record.cache:
        yield f"    {each.name}: {shape_text(each.shape)} {each.dtype}, {each.bytes:,} bytes"
    names = [f"{each.name} = {each.low}..{each.high}" for each in record.decode.dimensions]
    yield _(
        "Built in {build_ms}, one executable with prefill and decode{dimensions}",
        build_ms=duration_text(record.build_ms),
        dimensions=f", {', '.join(names)}" if names else "",
    )


class _Told(Silent):
    """Progress that writes the current call to a file."""

    def __init__(self, file: int) -> None:
        self._calls = CallWriter(file)

    def begin_calls(self, names: Sequence[str]) -> None:
        self._calls.begin(names)

    def at_call(self, index: int, inside: bool) -> None:
        self._calls.at(index, inside)


def _per_node(stages: Stages, record: RunRecord) -> tuple[NodeReport, ...]:
    """Return a report of each FX node, in graph order; none for a source without torch."""
    lowered = stages.lowered
    if lowered is None:
        return ()
    runs = {each.id: each for each in record.nodes}
    reports = []
    for name, node in lowered.nodes.items():
        run = runs.get(f"fx:{name}", NodeRun(id=f"fx:{name}"))
        called = dict.fromkeys(record.calls[index].function for index in run.calls)
        reports.append(
            NodeReport(
                fx=run.id,
                bindings=tuple(f"relax:main/{each}" for each in node.bindings),
                functions=tuple(called),
                strategy=node.strategy,
                max_abs_error=run.max_abs_error,
                max_rel_error=run.max_rel_error,
                own_abs_error=run.own_abs_error,
                status=run.status,
                own_status=run.own_status,
                reason=run.reason,
                own_reason=run.own_reason,
                own_with=run.own_with,
                exact=run.exact,
                own_exact=run.own_exact,
                tvm_ms=run.milliseconds,
                torch_ms=run.torch_ms,
                hand_overs=tuple(
                    found
                    for index in run.calls
                    if (found := record.calls[index].hand_over) is not None
                ),
            )
        )
    return tuple(reports)


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


def write_wanted_report(options: argparse.Namespace, variants: Sequence[Variant]) -> list[str]:
    """Write the report if one is requested; return a line on it.

    Raises a `LowerscopeError` if it cannot be written.
    """
    if not options.html:
        return []
    return [_("Report: {file}", file=write_report(options.html, variants))]


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
                    "Give a FILE.json saved in Schedule, {rules}, {tuned}, or {unscheduled}",
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
    written = write_wanted_report(options, variants)
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
    *("{0}", _("ratio"), _("functions"), _("build")),
)


def _lines(variants: Sequence[Variant], best: Sequence[Variant]) -> list[str]:
    """Return a line for each variant, figures right-aligned, and notes on them."""
    records = [each.record for each in variants if each.record is not None]
    side = records[0].reference if records else "torch"
    headings = tuple(each.format(side) for each in _HEADINGS)
    lines = table_lines([headings, *map(_row, variants)], range(2, len(_HEADINGS)))
    if best:
        names = listed([each.name for each in best])
        lines.append(
            _("Fastest: {names} (within measurement noise)", names=names)
            if len(best) > 1
            else _("Fastest: {names}", names=names)
        )
    if records and records[0].times is not None:
        method, compiled = method_text(records[0].times), compiled_text(records[0].times)
        lines.append(capitalized(method))
        lines += [compiled] if compiled else []
    for each in variants:
        said = "" if each.record is None else unreliable_text(each.record.times)
        lines += [f"{each.name}: {said}"] if said else []
    for each in variants:
        if each.problem is not None:
            lines.append(f"{each.name}: {each.problem.line()}")
        elif each.record is not None and each.record.reason:
            first = each.record.first_difference.removeprefix("fx:")
            where = _("; first difference: {node}", node=first) if first else ""
            lines.append(f"{each.name}: {each.record.reason}{where}")
    return lines


def _row(variant: Variant) -> tuple[str, ...]:
    record = variant.record
    if record is None:
        return (variant.name, "failed", *(NONE for _other in _HEADINGS[2:]))
    times = our_times(record)
    ratio, told = ratio_of(record)
    return (
        variant.name,
        ", ".join(filter(None, (record.verdict, not_finite_text(record.not_finite_count)))),
        error_text(record.max_abs_error),
        duration_text(record.tvm_ms),
        NONE if times is None else durations_text(times.low, times.high),
        duration_text(record.torch_ms),
        NONE if ratio is None else ratio_text(ratio, about=not told),
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
            "folder for the reproduction: {program}, {report}, and the files that they need "
            "(default: the current one)",
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
    lines += [f"  {each.after}: {each.verdict}" for each in record.probed]
    lines += [str(folder / each.name) for each in record.files]
    return code, "\n".join(lines)
