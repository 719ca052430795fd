"""Text of the stages for the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, cast

from lowerscope.core.files.console import table_lines
from lowerscope.core.ir.relax import relax_functions
from lowerscope.core.ir.script import function_text, module_text
from lowerscope.core.ir.tensorir import prim_funcs_of
from lowerscope.core.model.dimensions import sizes_text
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.formatting import (
    bytes_text,
    claims_text,
    duration_text,
    error_text,
    shape_text,
    share_text,
    times_text,
    tolerance_text,
    verdict_words,
)
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import SnapshotQuery, TextQuery, TranslationQuery, ValuesQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.run_records import NOT_THERE, Prediction, RunRecord, SizeRecord, best_of
from lowerscope.core.model.snapshot import View
from lowerscope.core.model.texts import _, _n, capitalized
from lowerscope.core.schedule.whole_model import SCHEDULE_NOTE
from lowerscope.core.stages import Pipeline
from lowerscope.core.views.snapshot_records import fx_nodes_of, notes_of
from lowerscope.core.views.tables import (
    print_library,
    print_node_map,
    print_parameters,
    print_table,
    print_translation,
    print_values,
)


def note_lines(pipeline: Pipeline, recipe: Recipe) -> tuple[str, ...]:
    """Return the notes on a recipe's model, a line each."""
    return tuple(note.line() for note in notes_of(pipeline.stages(recipe)))


def leaves_out(pipeline: Pipeline, recipe: Recipe) -> bool:
    """Return whether a part of the schedules was not applied to the model; notes name it."""
    return any(note.code == SCHEDULE_NOTE for note in notes_of(pipeline.stages(recipe)))


def show_stage(
    pipeline: Pipeline,
    recipe: Recipe,
    stage: str,
    function: str = "",
    *,
    node: str = "",
    show_meta: bool = False,
    as_json: bool = False,
) -> str:
    """Return a stage as text, or as records; one of `show.STAGES`.

    Args:
        function: The one to show; empty for all of them, and for the bytecode of ``main``.
    """
    stages = pipeline.stages(recipe)
    if stage in ("relax", "tensorir"):
        module = stages.module if stage == "relax" else stages.completed
        script = (
            function_text(module, function)
            if function
            else module_text(module, show_meta=show_meta)
        )
        return to_json(script) if as_json else script.text.rstrip("\n")
    if stage in ("code", "builder"):
        text = pipeline.answer(TextQuery(recipe, "", cast(View, stage)))
        return to_json(text) if as_json else text.text.rstrip("\n")
    if stage in ("numpy", "te"):
        return _loops(pipeline, recipe, cast(View, stage), function, as_json=as_json)
    if stage in ("bytecode", "llvm", "asm"):
        names: Sequence[str] = (function,)
        if stage != "bytecode" and not function:
            # Without a function, the empty text has the reason.
            names = tuple(stages.recorded.tensorir) or names
        found = [pipeline.answer(TextQuery(recipe, name, cast(View, stage))) for name in names]
        return to_json(found) if as_json else "\n\n".join(each.text for each in found)
    if stage == "fx":
        nodes = fx_nodes_of(pipeline, recipe)
        return to_json(nodes) if as_json else print_table(nodes)
    if stage == "translation" and node:
        translation = pipeline.answer(TranslationQuery(recipe, node))
        return to_json(translation) if as_json else print_translation(translation)
    if stage == "translation":
        nodes = fx_nodes_of(pipeline, recipe)
        records = pipeline.answer(SnapshotQuery(recipe, DEFAULT)).translation
        return to_json(records) if as_json else print_node_map(records, nodes)
    snapshot = pipeline.answer(SnapshotQuery(recipe, DEFAULT))
    if stage == "library":
        return to_json(snapshot.library) if as_json else print_library(snapshot.library)
    parameters = (*snapshot.model.parameters, *snapshot.constants)
    return to_json(parameters) if as_json else print_parameters(parameters)


def show_values(pipeline: Pipeline, recipe: Recipe, name: str, *, as_json: bool) -> str:
    """Return a summary of the values of a parameter, a constant or an input, or its record."""
    record = pipeline.answer(ValuesQuery(recipe, name))
    return to_json(record) if as_json else print_values(record)


def _loops(pipeline: Pipeline, recipe: Recipe, view: View, function: str, *, as_json: bool) -> str:
    """Return functions after the passes as NumPy, or those of TensorIR as tensor expressions.

    If all functions are shown, those without such a form have a line with the reason.
    """
    module = pipeline.stages(recipe).completed
    shown = [function] if function else list(prim_funcs_of(module))
    if function or as_json:
        records = [pipeline.answer(TextQuery(recipe, name, view)) for name in shown]
        return to_json(records) if as_json else records[0].text.rstrip("\n")
    if view == "numpy" and shown:
        shown += [name for name, _other in relax_functions(module)]
    texts = []
    for name in shown:
        try:
            texts.append(pipeline.answer(TextQuery(recipe, name, view)).text.rstrip("\n"))
        except LowerscopeError as error:
            texts.append(f"# {name}: {error.problem.what}")
    if not texts:
        raise LowerscopeError(
            _("the module has no TensorIR function"),
            where=view,
            todo=_("Its operators are not legalised, or all of them run in a library"),
        )
    return "\n\n\n".join(texts)


def describe_run(record: RunRecord) -> str:
    """Return a summary of a run in a few lines."""
    lines = [_verdict_line(record)]
    if record.max_abs_error is not None:
        lines.append(
            _(
                "  largest error: {absolute} absolute, {relative} relative; tolerance: {tolerance}",
                absolute=error_text(record.max_abs_error),
                relative=error_text(record.max_rel_error),
                tolerance=tolerance_text(record.atol, record.rtol, record.reference),
            )
        )
    if record.ran_on:
        lines.append(
            _(
                "TVM ran on {machine}, torch on this machine. {not_there}",
                machine=record.ran_on,
                not_there=NOT_THERE,
            )
        )
    several = len(record.outputs) > 1
    for output in record.outputs:
        columns = [f"  {output.name}: {shape_text(output.shape)} {output.dtype}"]
        if several and output.verdict:
            columns += [verdict_words(output.verdict)[0], output.not_finite]
        lines.append("  ".join(filter(None, columns)))
    if record.sizes:
        heading = (_("sizes"), _("verdict"), _("error"), "TVM", record.reference, "")
        rows = [heading, *(_size_row(each) for each in record.sizes)]
        lines += [f"  {line}" for line in table_lines(rows, range(2, 5))]
    if record.times is not None:
        lines += [times_text(record.times), capitalized(claims_text(record.times))]
    lines.append(
        _n(
            "Built in {time}, with {count} TensorIR function",
            "Built in {time}, with {count} TensorIR functions",
            record.functions,
            time=duration_text(record.build_ms),
        )
    )
    memory = record.memory
    if memory.storages:
        lines.append(
            _n(
                "Memory: {peak} at most, in {count} storage ({tensors} without sharing); "
                "constants: {constants}",
                "Memory: {peak} at most, in {count} storages ({tensors} without sharing); "
                "constants: {constants}",
                len(memory.storages),
                peak=bytes_text(memory.peak),
                tensors=bytes_text(memory.tensors),
                constants=bytes_text(memory.constants),
            )
        )
    if record.prediction is not None:
        lines += _prediction_lines(record.prediction, record.reference)
    return "\n".join(lines)


def _prediction_lines(prediction: Prediction, reference: str) -> Iterator[str]:
    names = [f"TVM {prediction.tvm}"]
    if prediction.torch:
        names.append(f"{reference} {prediction.torch}")
    if prediction.scores == "softmax" and prediction.top:
        yield _("Prediction, by softmax: {names}", names=_(", ").join(names))
    else:
        yield _("Prediction: {names}", names=_(", ").join(names))
    between = _(", ")
    sides: tuple[tuple[Literal["tvm", "torch"], str], ...] = (("tvm", "TVM"), ("torch", reference))
    for side, title in sides:
        best = [
            f"{each.name} {share_text(getattr(each, side))}" for each in best_of(prediction, side)
        ]
        if best:
            yield f"  {title:<5}  {between.join(best)}"


def _size_row(record: SizeRecord) -> tuple[str, ...]:
    return (
        sizes_text(record.sizes),
        verdict_words(record.verdict)[0],
        error_text(record.max_abs_error),
        duration_text(record.tvm_ms),
        duration_text(record.torch_ms),
        "" if record.verdict == "no-reference" else record.reason,
    )


def _verdict_line(record: RunRecord) -> str:
    side, reason = record.reference, record.reason
    others_match = record.max_abs_error is not None
    if record.verdict == "no-reference":
        return _("Ran, without a reference to compare with: {reason}", reason=reason)
    if record.verdict == "not-comparable":
        if others_match:
            return _(
                "Not comparable: {reason}; the other outputs match {side}", reason=reason, side=side
            )
        return _("Not comparable: {reason}", reason=reason)
    if record.verdict == "inconclusive":
        if others_match:
            return _(
                "Inconclusive: {reason}; the other outputs match {side}", reason=reason, side=side
            )
        return _("Inconclusive: {reason}", reason=reason)
    if record.verdict == "rounding":
        return _("Differs from {side} by rounding: {reason}", reason=reason, side=side)
    if record.verdict == "differ":
        return _("Differs from {side}: {reason}", reason=reason, side=side)
    if len(record.sizes) > 1:
        count = len(record.sizes)
        return _n(
            "Matches {side} at {count} size", "Matches {side} at {count} sizes", count, side=side
        )
    if reason:
        return _("Matches {side}: {reason}", reason=reason, side=side)
    return _("Matches {side}", side=side)
