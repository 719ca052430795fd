"""The command line: it writes a recipe and prints what the window shows.

Exit codes: 0 when all is well, 1 when a run differs from torch, 2 on an error.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from lowerscope.core.dimensions import dimensions_of, parse_dimension, parse_sizes, with_sizes
from lowerscope.core.errors import LowerscopeError, last_line
from lowerscope.core.progress import Silent
from lowerscope.core.recipe import (
    SEEDS,
    STRATEGIES,
    TRACERS,
    Extension,
    ExtensionKind,
    Override,
    Recipe,
    Source,
    with_bound_params,
    with_params_as_inputs,
)
from lowerscope.core.sources.input_option import parse_input
from lowerscope.core.sources.samples import samples
from lowerscope.core.sources.spec import check_readable, parse_spec, source_path, user_path

if TYPE_CHECKING:
    from lowerscope.core.pipeline import Pipeline

COMMANDS = ("samples", "show", "run", "export", "rule", "course")

WHOLE = {
    "fx": "FX graph",
    "code": "code of the FX graph",
    "library": "list of library functions",
    "parameters": "list of parameters",
    "builder": "builder program",
}
"""Stages that are shown whole, with what they are in words."""

STAGES = ("fx", "code", "relax", "builder", "tensorir", "numpy", "te", "library", "parameters")

MATCH, DIFFER, ERROR = 0, 1, 2

SOURCE_HELP = "sample:NAME, FILE.py[:ENTRY] or FILE.pt2"


class _AddExtension(argparse.Action):
    """Adds a rule or library file: both lists are one, in the order of the options."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        kind: ExtensionKind = "rules" if option_string == "--rules" else "library"
        added = Extension(path=str(user_path(str(values)).absolute()), kind=kind)
        namespace.extensions = (*namespace.extensions, added)


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise LowerscopeError(message, todo=f"See {self.prog} --help")


def add_recipe_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that a recipe is made of; the window's command has them as well."""
    parser.add_argument(
        "--args", default="{}", metavar="JSON", help="the entry's keyword arguments"
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=1,784:float32",
        help="an input's shape and dtype, or NAME=FILE.npy (.npz, .pt, an image); repeatable",
    )
    parser.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=1..64",
        help="the sizes that a name in the shape of an input may stand for, as in --input "
        "x=batch,784 (default 1..1024); repeatable",
    )
    parser.add_argument(
        "--sizes",
        action="append",
        default=[],
        metavar="NAME=1,7,64",
        help="the sizes of that dimension to run at, run by run (default: the one that it is "
        "traced at, and the ends of the range); repeatable",
    )
    parser.add_argument("--seed", type=int, default=0, help="of weights and inputs (default 0)")
    parser.add_argument("--params", default="", metavar="FILE", help="parameters: .pkl or .npz")
    parser.add_argument("--trust", action="store_true", help="open a .pt2 that can run code")
    parser.add_argument(
        "--tracer",
        choices=TRACERS,
        default="auto",
        help="torch.fx, torch.export, or auto: fx, and export for what fx cannot trace (default)",
    )
    parser.add_argument(
        "--lowering", choices=STRATEGIES, default="high-level", help="default: high-level"
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="PATTERN=STRATEGY",
        help="another lowering for a node, a module (layer1.*) or an operator (conv2d); repeatable",
    )
    for kind, metavar, what in (
        ("rules", "FILE.py", "lowering rules of your own: @rule of lowerscope.core.rules"),
        ("library", "FILE.py", "functions that it registers by tvm.register_global_func"),
    ):
        parser.add_argument(
            f"--{kind}",
            action=_AddExtension,
            dest="extensions",
            default=(),
            metavar=metavar,
            help=f"a file with {what}; repeatable, a later one wins",
        )
    parser.add_argument(
        "--params-as-inputs",
        action="store_true",
        help="keep parameters as arguments of main, not as constants in it",
    )
    parser.add_argument(
        "--bind-params",
        action="store_true",
        help="the same, and bind them by relax.transform.BindParams as the first step",
    )
    parser.add_argument(
        "--target", default="llvm", help="llvm, native (this processor), or a TVM target as JSON"
    )
    parser.add_argument("--threads", type=int, default=0, help="default: all that there are")


def recipe_from(options: argparse.Namespace) -> Recipe:
    """Make a recipe of the options of `add_recipe_options` and ``options.source``.

    Raises
    ------
    LowerscopeError
        If an option cannot be read.
    """
    spec, entry = parse_spec(options.source)
    if options.threads < 0:
        raise LowerscopeError(
            f"{options.threads} is not a number of threads",
            where="--threads",
            todo="Write 0 for all of them, or a number from 1",
        )
    if not 0 <= options.seed < SEEDS:
        raise LowerscopeError(
            f"{options.seed} is not a seed",
            where="--seed",
            todo=f"Write a number from 0 to {SEEDS - 1}",
        )
    recipe = Recipe(
        source=Source(
            spec=spec,
            entry=entry,
            args=options.args,
            params=options.params,
            trust=options.trust,
        ),
        seed=options.seed,
        inputs=tuple(parse_input(text) for text in options.input),
        dimensions=with_sizes(map(parse_dimension, options.dim), map(parse_sizes, options.sizes)),
        tracer=options.tracer,
        lowering=options.lowering,
        overrides=tuple(parse_override(text) for text in options.override),
        extensions=options.extensions,
        target=options.target,
        threads=options.threads,
    )
    dimensions_of(recipe)
    if options.params_as_inputs or options.bind_params:
        recipe = with_params_as_inputs(recipe, True)
    return with_bound_params(recipe, True) if options.bind_params else recipe


def recipe_of_command(arguments: Sequence[str]) -> Recipe:
    """Return the recipe that a command of `COMMANDS`, such as ``run FILE …``, is about.

    Raises
    ------
    LowerscopeError
        If it cannot be read, or is about no source.
    """
    options = _parser().parse_args(arguments)
    if "source" not in options:
        raise LowerscopeError(
            f"{options.command} is about no source", where=" ".join(arguments), todo="Try another"
        )
    return recipe_from(options)


def parse_override(text: str) -> Override:
    """Read ``PATTERN=STRATEGY``.

    Raises
    ------
    LowerscopeError
        If there is no pattern, or no such strategy.
    """
    pattern, _, name = text.rpartition("=")
    strategy = next((each for each in STRATEGIES if each == name.strip()), None)
    if not pattern.strip() or strategy is None:
        raise LowerscopeError(
            f"it is not PATTERN=STRATEGY with a strategy of {', '.join(STRATEGIES)}",
            where=f"--override {text}",
            todo="Write for example --override conv1=library or --override 'layer1.*=te'",
        )
    return Override(pattern=pattern.strip(), strategy=strategy)


def main(arguments: Sequence[str]) -> int:
    """Run one of `COMMANDS` and return the exit code."""
    try:
        options = _parser().parse_args(arguments)
        if options.command == "samples":
            return _samples()
        if options.command == "course":
            return _course(options)
        recipe = recipe_from(options)
        # Before torch and TVM are imported, which takes seconds.
        check_readable(source_path(recipe.source.spec), "source")
        # What the user's file prints must not get among the records.
        with contextlib.redirect_stdout(sys.stderr):
            from lowerscope.core.pipeline import Pipeline
            from lowerscope.core.showing import note_lines

            pipeline = Pipeline()
            code, text = _ANSWERS[options.command](pipeline, recipe, options)
            notes = note_lines(pipeline, recipe)
    except LowerscopeError as error:
        print(f"lowerscope: {error.problem.line()}", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        print("lowerscope: stopped", file=sys.stderr)
        return ERROR
    except (Exception, SystemExit) as error:
        # Whatever a model or a compiler comes up with, the exit code must not say "match".
        if isinstance(error, SystemExit) and error.code == 0 and _asks_for_help(arguments):
            raise
        print(f"lowerscope: {type(error).__name__}: {last_line(error)}", file=sys.stderr)
        return ERROR
    for note in notes:
        print(f"lowerscope: note: {note}", file=sys.stderr)
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; Python would complain again at exit.
        sys.stdout = None
    return code


def _asks_for_help(arguments: Sequence[str]) -> bool:
    return "-h" in arguments or "--help" in arguments


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog="lowerscope", description="See and steer how a model becomes code.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    commands.add_parser("samples", help="list the bundled samples")

    show = commands.add_parser("show", help="print a stage")
    show.add_argument("source", help=SOURCE_HELP)
    show.add_argument("--stage", choices=STAGES, help="what to print")
    show.add_argument("--function", default="", metavar="NAME", help="only this function")
    show.add_argument(
        "--show-meta",
        action="store_true",
        help="with the values of constants; for the stages relax and tensorir",
    )
    show.add_argument(
        "--constant",
        default="",
        metavar="NAME",
        help="range, histogram and first values of a parameter, a constant or an input",
    )
    show.add_argument(
        "--save", default="", metavar="FILE.npy", help="with --constant: write its values as well"
    )
    show.add_argument("--json", action="store_true", help="print records as JSON")
    add_recipe_options(show)

    run = commands.add_parser("run", help="compile, run, and compare with torch")
    run.add_argument("source", help=SOURCE_HELP)
    run.add_argument("--json", action="store_true", help="print the record as JSON")
    add_recipe_options(run)

    export = commands.add_parser(
        "export", help="write the module as script and as program, and the FX graph"
    )
    export.add_argument("source", help=SOURCE_HELP)
    export.add_argument("--output", required=True, metavar="DIR", help="folder to write to")
    export.add_argument("--force", action="store_true", help="overwrite files that are there")
    add_recipe_options(export)

    rule = commands.add_parser("rule", help="write a lowering rule for a node, to start from")
    rule.add_argument("source", help=SOURCE_HELP)
    rule.add_argument("--node", required=True, metavar="NAME", help="as show --stage fx names it")
    rule.add_argument(
        "--output", required=True, metavar="FILE.py", help="a new file, or one to add the rule to"
    )
    add_recipe_options(rule)

    course = commands.add_parser("course", help="write the example files of the course's page")
    course.add_argument("--output", required=True, metavar="DIR", help="folder to write to")
    course.add_argument("--force", action="store_true", help="overwrite files that are there")
    return parser


def _samples() -> int:
    listed = samples()
    width = max(len(sample.name) for sample in listed)
    for sample in listed:
        print(f"{sample.name:<{width}}  {sample.description}")
    return MATCH


def _course(options: argparse.Namespace) -> int:
    from lowerscope.core.export.course import write_course
    from lowerscope.resources import HELP

    for path in write_course(Path(options.output), force=options.force):
        print(path)
    print(f"The page that goes with them: {HELP / 'course.md'}")
    return MATCH


def _show(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    from lowerscope.core.showing import (
        show_builder,
        show_code,
        show_fx,
        show_library,
        show_loops,
        show_parameters,
        show_relax,
        show_tensorir,
        show_values,
    )

    _check_shown(options)
    if options.constant:
        text = show_values(pipeline, recipe, options.constant, as_json=options.json)
        if options.save:
            pipeline.save_values(recipe, options.constant, options.save, Silent())
        return MATCH, text
    if options.stage in WHOLE:
        if options.function:
            what = WHOLE[options.stage]
            raise LowerscopeError(
                f"the {what} is shown whole",
                where="--function",
                todo="Leave the option out, or show the stage relax, tensorir, numpy or te",
            )
        whole = {
            "fx": show_fx,
            "code": show_code,
            "library": show_library,
            "parameters": show_parameters,
            "builder": show_builder,
        }
        return MATCH, whole[options.stage](pipeline, recipe, as_json=options.json)
    if options.stage in ("numpy", "te"):
        function = options.function
        return MATCH, show_loops(pipeline, recipe, options.stage, function, as_json=options.json)
    show = show_relax if options.stage == "relax" else show_tensorir
    text = show(
        pipeline, recipe, options.function, as_json=options.json, show_meta=options.show_meta
    )
    return MATCH, text


def _check_shown(options: argparse.Namespace) -> None:
    """Refuse options of ``show`` that say nothing together."""
    if bool(options.constant) == bool(options.stage):
        raise LowerscopeError(
            "it is not said what to show" if not options.stage else "two things are to be shown",
            where="show",
            todo=f"Give --stage with one of {', '.join(STAGES)}, or --constant NAME",
        )
    scripts = options.stage in ("relax", "tensorir")
    for option, given, fits in (
        ("--show-meta", options.show_meta, scripts and not options.function),
        ("--save", options.save, bool(options.constant)),
    ):
        if given and not fits:
            raise LowerscopeError(
                "it has no meaning here",
                where=option,
                todo="--show-meta goes with the whole of a stage relax or tensorir, --save with "
                "--constant NAME",
            )
    if options.save and Path(options.save).suffix != ".npy":
        raise LowerscopeError(
            "the values are written as a .npy file", where=f"--save {options.save}"
        )


def _run(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    from lowerscope.core.showing import describe_run

    record = pipeline.run(recipe, Silent())
    code = DIFFER if record.verdict == "differ" else MATCH
    if options.json:
        return code, msgspec.json.format(msgspec.json.encode(record), indent=2).decode()
    return code, describe_run(record)


def _export(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    from lowerscope.core.export.folder import export

    written = export(pipeline, recipe, user_path(options.output), force=options.force)
    for reason in written.left_out:
        print(f"lowerscope: note: not written: {reason}", file=sys.stderr)
    return MATCH, "\n".join(str(path) for path in written.paths)


def _rule(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    line = pipeline.write_rule(recipe, options.node, options.output, Silent())
    return MATCH, f"{line.file}:{line.line}"


_ANSWERS = {"show": _show, "run": _run, "export": _export, "rule": _rule}
