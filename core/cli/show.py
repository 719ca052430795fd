"""The commands ``show`` (a stage), ``passes`` (the steps) and ``why`` (explanations)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lowerscope.core.cli.recipe_options import SOURCE_HELP, OneLineParser, add_recipe_options
from lowerscope.core.files.console import ERROR, MATCH
from lowerscope.core.files.pipelines_and_schedules import parse_step
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.explanation_records import Explanation
from lowerscope.core.model.formatting import duration_text
from lowerscope.core.model.module_steps import ComparedModule, Moment, PassRecord
from lowerscope.core.model.problems import LowerscopeError, listed
from lowerscope.core.model.queries import (
    BuildStepsQuery,
    CatalogueQuery,
    ChangingPassesQuery,
    DifferenceQuery,
    Query,
    SaveValuesQuery,
    WhyFunctionQuery,
    WhyFusedQuery,
    WhyPassQuery,
)
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.snapshot import PassType
from lowerscope.core.model.texts import _, _n

if TYPE_CHECKING:
    from lowerscope.core.stages import Pipeline


WHOLE = ("fx", "translation", "code", "library", "parameters", "builder")
"""Stages that are shown as a whole."""

STAGES = (
    *("fx", "translation", "code", "relax", "builder", "tensorir", "numpy", "te", "bytecode"),
    *("llvm", "asm", "library", "parameters"),
)


def add_show_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope show``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.add_argument("--stage", choices=STAGES, help=_("stage to print"))
    parser.text("--function", "NAME", _("function to print (default: all)"))
    parser.text(
        "--node",
        "NAME",
        _("with --stage translation: the translation of a node, with the source of its rules"),
    )
    parser.flag(
        "--show-meta", _("with --stage relax or tensorir: print the values of constants as well")
    )
    parser.text(
        "--constant",
        "NAME",
        _("print range, histogram and first values of a parameter, a constant or an input"),
    )
    parser.text("--save", "FILE.npy", _("with --constant: save the values as well"))
    parser.flag("--json", _("print records as JSON"))
    add_recipe_options(parser)


def show(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return 0, and a stage, or the values of a tensor, as text or as JSON.

    Raises a `LowerscopeError` if the options conflict, or there is no such function, node or
    tensor.
    """
    from lowerscope.core.cli.showing import show_stage, show_values

    _check_shown(options)
    if options.constant:
        text = show_values(pipeline, recipe, options.constant, as_json=options.json)
        if options.save:
            pipeline.answer(SaveValuesQuery(recipe, options.constant, options.save))
        return MATCH, text
    if options.stage in WHOLE and options.function:
        raise LowerscopeError(
            _("the stage {stage} is shown as a whole", stage=options.stage),
            where="--function",
            todo=_(
                "Leave the option out, or show the stage relax, tensorir, numpy, te, "
                "bytecode, llvm or asm"
            ),
        )
    return MATCH, show_stage(
        pipeline,
        recipe,
        options.stage,
        options.function,
        node=options.node,
        show_meta=options.show_meta,
        as_json=options.json,
    )


def _check_shown(options: argparse.Namespace) -> None:
    """Reject conflicting options of ``show``."""
    if bool(options.constant) == bool(options.stage):
        raise LowerscopeError(
            _("a stage and a tensor cannot be shown together")
            if options.stage
            else _("the stage is missing"),
            where="show",
            todo=_(
                "Give --stage with one of {stages}, or --constant NAME", stages=_(", ").join(STAGES)
            ),
        )
    scripts = options.stage in ("relax", "tensorir")
    for option, given, fits, need in (
        (
            "--show-meta",
            options.show_meta,
            scripts and not options.function,
            _("It needs --stage relax or --stage tensorir, without --function"),
        ),
        ("--save", options.save, bool(options.constant), _("It needs --constant NAME")),
        (
            "--node",
            options.node,
            options.stage == "translation",
            _("It needs --stage translation"),
        ),
    ):
        if given and not fits:
            raise LowerscopeError(_("the option has no effect here"), where=option, todo=need)
    if options.save and Path(options.save).suffix != ".npy":
        raise LowerscopeError(
            _("values are saved in NumPy's format"),
            where=f"--save {options.save}",
            todo=_("Give a file that ends in .npy"),
        )


_NAMES = 4
"""Most changed functions that are named in a row of the table."""


def add_passes_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope passes``."""
    parser.add_argument("source", nargs="?", help=SOURCE_HELP)
    parser.flag("--catalogue", _("list the available passes; needs no source"))
    parser.flag(
        "--would-change",
        _("list the available passes that would change the module after the pipeline"),
    )
    parser.text(
        "--step",
        "N",
        _("print the module after step N, or after the nested pass N.M; 0: before the first step"),
        default=None,
    )
    parser.text("--function", "NAME", _("with --step: print only this function"))
    parser.flag("--diff", _("with --step: print the changes of the step, as diff -u does"))
    parser.flag("--build", _("list the passes of TVM's own build instead; it compiles the model"))
    parser.flag("--nested", _("list nested passes as well"))
    parser.flag("--json", _("print records as JSON"))
    add_recipe_options(parser)


def recipe_of_catalogue(options: argparse.Namespace) -> Recipe:
    """Return a recipe of the files of passes only, which needs no source."""
    return Recipe(source=Source(spec=options.source or ""), extensions=options.extensions)


def passes(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return the exit code, 2 if a step could not be applied, and the text to print.

    Raises a `LowerscopeError` if options conflict, or there is no such step or function.
    """
    if options.function and options.step is None:
        raise LowerscopeError(
            _("the option has no effect here"), where="--function", todo=_("It needs --step N")
        )
    if options.diff and options.step in (None, "0"):
        raise LowerscopeError(
            _("the option has no effect here"), where="--diff", todo=_("It needs --step N, from 1")
        )
    if options.catalogue:
        types = pipeline.answer(CatalogueQuery(recipe))
        return MATCH, to_json(types) if options.json else "\n".join(
            line for each in types for line in _catalogued(each)
        )
    if options.would_change:
        names = pipeline.answer(ChangingPassesQuery(recipe, len(recipe.steps)))
        return MATCH, to_json(names) if options.json else "\n".join(names)
    if options.diff:
        return MATCH, _difference(pipeline, recipe, options)
    if options.step is not None:
        return MATCH, _module_at(pipeline, recipe, options)
    records = _records(pipeline, recipe, options)
    listed = (
        records if options.nested or options.json else [each for each in records if not each.depth]
    )
    problem = pipeline.stages(recipe).transformed.problem
    if options.json:
        return MATCH if problem is None else ERROR, to_json(listed)
    table = _table(listed, records)
    if problem is None:
        return MATCH, table
    # The row has no room for the remedy.
    return ERROR, f"{table}\n\n{problem.line()}"


def check_passes(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> None:
    """Check that the passes named by ``--pass`` exist, before anything is opened.

    Raises a `LowerscopeError` if one does not.
    """
    given = getattr(options, "steps", ())
    if not given:
        return
    from lowerscope.core.passes.catalogue import find

    passes = pipeline.stages(recipe).passes
    for text in given:
        find(parse_step(text).name, passes, f"--pass {text}")


def _records(
    pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace
) -> tuple[PassRecord, ...]:
    if options.build:
        return pipeline.answer(BuildStepsQuery(recipe))
    from lowerscope.core.passes.recording import pass_records

    return pass_records(pipeline.stages(recipe).transformed.runs)


def _moment(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> Moment:
    moment = moment_of(options.step, _records(pipeline, recipe, options))
    return msgspec.structs.replace(moment, section="build") if options.build else moment


def _module_at(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> str:
    from lowerscope.core.ir.script import function_text, module_text

    module = pipeline.stages(recipe).module_at(_moment(pipeline, recipe, options))
    record = function_text(module, options.function) if options.function else module_text(module)
    return to_json(record) if options.json else record.text.rstrip("\n")


def _difference(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> str:
    from lowerscope.core.model.line_difference import unified_text

    moment = _moment(pipeline, recipe, options)
    old, new = (
        ComparedModule(recipe=recipe, moment=moment, before=before) for before in (True, False)
    )
    record = pipeline.answer(DifferenceQuery(old, new))
    if options.function:
        chosen = tuple(each for each in record.functions if each.name == options.function)
        if not chosen:
            names = tuple(each.name for each in record.functions)
            raise LowerscopeError(
                _("neither side has a function {function!r}", function=options.function),
                where="--function",
                todo=_("Choose one of {listed}", listed=listed(names)),
                choices=names,
            )
        record = msgspec.structs.replace(record, functions=chosen)
    return to_json(record) if options.json else unified_text(record)


def moment_of(label: str, records: Sequence[PassRecord]) -> Moment:
    """Return the moment after the pass with a number in the list, such as ``4`` or ``3.17``.

    Raises a `LowerscopeError` if there is none.
    """
    if label == "0":
        return Moment(section="passes", index=0)
    number = next((each.number for each in records if each.label == label), None)
    if number is None:
        last = sum(not each.depth for each in records)
        raise LowerscopeError(
            _("there is no step {label}", label=label),
            where="--step",
            todo=_("Choose a step from 0 to {last}", last=last),
        )
    return Moment(section="passes", index=number)


def _table(listed: Sequence[PassRecord], records: Sequence[PassRecord]) -> str:
    """Return a line for each pass: number, name, time, and changes."""
    if not listed:
        return _("There are no passes.")
    names = [f"{'  ' * each.depth}{each.name}" for each in listed]
    width = max(map(len, names))
    digits = max(len(each.label) for each in listed)
    inside = len(records) - len(listed)
    lines = [
        f"{each.label:>{digits}}  {name:<{width}}  {_outcome(each)}".rstrip()
        for each, name in zip(listed, names, strict=True)
    ]
    lines += (
        _(
            "step {label} ({name}) skips {function}",
            label=each.label,
            name=each.name,
            function=function,
        )
        for each in listed
        for function in each.left_out
    )
    if inside:
        lines.append(
            _n(
                "{count} nested pass is not listed; --nested lists it",
                "{count} nested passes are not listed; --nested lists them",
                inside,
            )
        )
    return "\n".join(lines)


def _outcome(record: PassRecord) -> str:
    if record.status == "failed":
        return _("failed: {error}", error=record.error)
    if record.status != "done":
        return _("off") if record.status == "off" else _("skipped")
    time = f"{duration_text(record.milliseconds):>9}  "
    count = len(record.changed)
    if not count:
        return time + _("no change")
    return time + _n(
        "{count} function changed: {names}",
        "{count} functions changed: {names}",
        count,
        names=_(", ").join((*record.changed[:_NAMES], "…")[: count + (count > _NAMES)]),
    )


def _catalogued(record: PassType) -> Iterator[str]:
    yield f"{record.name}  {record.summary}".rstrip()
    if record.hindrance:
        yield _("    cannot be a step: {hindrance}", hindrance=record.hindrance)
    for option in record.options:
        facts: list[str] = [option.kind]
        if option.choices:
            facts.append(_("one of {choices}", choices=_(", ").join(option.choices)))
        if option.required:
            facts.append(_("required"))
        else:
            default = msgspec.json.encode(option.default).decode()
            facts.append(_("default {value}", value=default))
        yield f"    {option.name}: {', '.join(facts)}"


# --- The command ``lowerscope why``: explanations of fusion, of a pass, and of a schedule ---


def add_why_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope why``."""
    parser.add_argument("source", help=SOURCE_HELP)
    parser.add_argument(
        "--nodes",
        nargs=2,
        metavar=("A", "B"),
        help=_("explain why two FX nodes, Relax bindings or functions are fused, or why not"),
    )
    parser.text(
        "--function", "NAME", _("explain which rule scheduled a TensorIR function, or why none did")
    )
    parser.flag("--json", _("print the answer as JSON"))
    add_recipe_options(
        parser,
        pass_help=_(
            "explain what a pass changed, or why it changed nothing; a pass that is not in the "
            "pipeline is tried at its end"
        ),
    )


def why(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Return 0, and the explanation.

    Raises a `LowerscopeError` if there is no such node, pass or function.
    """
    if options.function and options.nodes:
        raise _not_one(_("two questions are given"))
    query: Query[Explanation]
    if options.function:
        query = WhyFunctionQuery(recipe, options.function)
    elif options.nodes:
        query = WhyFusedQuery(recipe, *options.nodes)
    elif options.steps:
        # Other commands add the pass to the pipeline; here it is the question.
        *steps, asked = recipe.steps
        recipe = msgspec.structs.replace(recipe, steps=tuple(steps))
        query = WhyPassQuery(recipe, asked)
    else:
        raise _not_one(_("the question is missing"))
    answer = pipeline.answer(query)
    if options.json:
        return MATCH, to_json(answer)
    if answer.fused is False:
        return MATCH, _("Not fused: {reason}.", reason=answer.text)
    lines = [_("{sentence}.", sentence=answer.text)]
    if answer.fused is None and answer.change is not None:
        lines.append(_("To change that: {change}.", change=answer.change.text))
    return MATCH, "\n".join(lines)


def _not_one(what: str) -> LowerscopeError:
    todo = _("Give --nodes A B, --pass NAME or --function NAME")
    return LowerscopeError(what, where="why", todo=todo)
