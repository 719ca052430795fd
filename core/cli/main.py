"""The command line: it writes a recipe and prints what the window shows.

Exit codes: 0 when all is well, 1 when a run, or one of several variants, differs from torch or is
inconclusive, or a scheduled function differs from the unscheduled one, 2 on an error, and where a
step of a schedule was left out.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from lowerscope.core.cli.enclosed import WITHOUT, add_sandbox_option
from lowerscope.core.cli.recipe_options import (
    SOURCE_HELP,
    OneLineParser,
    RawHelpFormatter,
    add_recipe_options,
    add_remote_options,
    check_threads,
    files_read,
    recipe_from,
)
from lowerscope.core.cli.run import (
    add_bisect_options,
    add_compare_options,
    add_referee_options,
    add_run_options,
    bisect,
    compare,
    recipes_of,
    referee,
    run,
)
from lowerscope.core.cli.schedule import add_schedule_options, schedule
from lowerscope.core.cli.show import (
    add_passes_options,
    add_show_options,
    add_why_options,
    check_passes,
    passes,
    recipe_of_catalogue,
    show,
    why,
)
from lowerscope.core.cli.tune import add_tune_options, tune
from lowerscope.core.files import console
from lowerscope.core.files.cache import LIMIT, cache_size, clear_cache
from lowerscope.core.files.console import ERROR, MATCH, say
from lowerscope.core.files.paths import cache_folder, cannot_write, check_not_read, user_path
from lowerscope.core.files.samples import samples
from lowerscope.core.files.sources import source_kind, source_path
from lowerscope.core.ir.libraries import import_libraries
from lowerscope.core.model.artifacts import ALL, DEFAULT, EXPORTS, PAINTED, PICTURES, parse_wanted
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.machines import TargetRecord, key_text, machine_text, remote_of
from lowerscope.core.model.problems import LowerscopeError, Problem, last_line, problem_of_system
from lowerscope.core.model.progress import Silent
from lowerscope.core.model.queries import WriteRuleQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.schedule_records import CHECK_THREAD
from lowerscope.core.model.texts import _, capitalized, language
from lowerscope.core.sandbox import bubblewrap
from lowerscope.resources import HELP, SAMPLES

if TYPE_CHECKING:
    from lowerscope.core.export.folder import Painter
    from lowerscope.core.stages import Pipeline


def add_export_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope export``."""
    parser.formatter_class = RawHelpFormatter
    width = max(len(each.name) for each in EXPORTS)
    parser.epilog = "\n".join(
        (
            _("artifacts:"),
            *(
                f"  {each.name:<{width}}  "
                + _("{title}: {files}", title=each.title, files=each.files)
                for each in EXPORTS
            ),
        )
    )
    parser.add_argument("source", help=SOURCE_HELP)
    parser.add_argument("--output", required=True, metavar="DIR", help=_("folder to write to"))
    parser.many(
        "--what",
        "LIST",
        _(
            "artifacts to write, as listed below, or {all}; step:2, patch:2, function:NAME and "
            "schedule:NAME select a single one (default {default}); repeatable",
            all=ALL,
            default=",".join(DEFAULT),
        ),
    )
    parser.text(
        "--picture",
        "LIST",
        _("formats of graphs: {pictures} (default svg)", pictures=_(", ").join(PICTURES)),
        default="svg",
    )
    parser.add_argument(
        "--level",
        choices=("fit", "all", "none"),
        default="fit",
        help=_("modules to expand in graphs: those that fit a pane (default), all or none"),
    )
    parser.text(
        "--part",
        "NAME",
        _("a part of the graphs: the inside of a module, or a node with its neighbours"),
    )
    parser.flag("--force", _("overwrite existing files"))
    add_recipe_options(parser)


def export(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Write the files; return the exit code, 2 if a requested one is missing, and their paths."""
    from lowerscope.core.export import folder

    wanted = parse_wanted(options.what)
    kinds = tuple(each.strip() for each in options.picture.split(","))
    folder.check_kinds(kinds)
    painted = options.painter and not set(kinds).isdisjoint(PAINTED)
    written = folder.export(
        pipeline,
        recipe,
        user_path(options.output),
        force=options.force,
        read=files_read(options, recipe),
        wanted=wanted,
        pictures=folder.Pictures(
            kinds=kinds,
            level=options.level,
            part=options.part,
            painter=options.painter() if painted else None,
        ),
    )
    for reason in written.left_out:
        say(_("note: not written: {reason}", reason=reason))
    for note in written.notes:
        say(_("note: {note}", note=note))
    return MATCH if written.complete else ERROR, "\n".join(written.paths)


COMMANDS = (
    *("samples", "targets", "show", "run", "compare", "export", "rule", "passes", "schedule"),
    *("tune", "why", "bisect", "referee", "course", "cache"),
)

PATIENCE = 2.0
"""Seconds that threads and ``atexit`` functions of a user's code may take after the answer."""

_OPENING = (
    *("run", "rule", "show", "compare", "export", "passes", "schedule", "tune", "why", "bisect"),
    "referee",
)
"""Commands that open a source."""


def recipe_of_command(arguments: Sequence[str]) -> Recipe:
    """Return the recipe of a command of `COMMANDS`, such as ``run FILE …``.

    Raises a `LowerscopeError` if it cannot be read, or opens no source.
    """
    options = parse(arguments)
    if getattr(options, "source", None) is None:
        raise LowerscopeError(
            _("the command {command} opens no source", command=options.command),
            where=" ".join(arguments),
            todo=_("Choose one of {listed}", listed=_(", ").join(_OPENING)),
        )
    return _recipe_from(options)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of one of `COMMANDS`.

    Raises a `LowerscopeError` if they cannot be read.
    """
    return _parser().parse_args(arguments)


def main(arguments: Sequence[str], painter: Callable[[], Painter] | None = None) -> int:
    """Run one of `COMMANDS` and return the exit code."""
    options = argparse.Namespace(source="")
    console.take_any_text()
    try:
        options = parse(arguments)
        with console.own_streams():
            options.painter = painter
            if options.command in WITHOUT_CODE:
                code, text = WITHOUT_CODE[options.command](options)
                notes: tuple[str, ...] = ()
            else:
                code, text, notes = _answer(options)
    except LowerscopeError as error:
        console.say(bubblewrap.explained(error.problem, error, WITHOUT).line())
        return ERROR
    except KeyboardInterrupt:
        console.say(_("stopped"))
        return ERROR
    except console.Lost:
        raise
    except BaseException as error:
        # Whatever a model or a compiler raises, the exit code must not mean "match".
        is_help = "-h" in arguments or "--help" in arguments
        if isinstance(error, SystemExit) and error.code == 0 and is_help:
            raise
        console.say(_problem(error, options.source).line())
        return ERROR
    for note in notes:
        console.say(_("note: {note}", note=note))
    # An export that wrote nothing prints no empty line.
    if text:
        console.put_out(text)
    return code


def _problem(error: BaseException, source: str) -> Problem:
    """Return the problem of an error that nothing else has explained."""
    problem = problem_of_system(error)
    if problem is not None:
        return problem if problem.where else msgspec.structs.replace(problem, where=source)
    return Problem(what=f"{type(error).__name__}: {last_line(error)}", where=source)


def _answer(options: argparse.Namespace) -> tuple[int, str, tuple[str, ...]]:
    """Return the exit code of a command on a recipe, its output, and notes on the model."""
    listing = options.command == "passes" and options.catalogue
    recipe = recipe_of_catalogue(options) if listing else _recipe(options)
    # Output of the user's file must not be mixed with the records.
    with contextlib.redirect_stdout(sys.stderr):
        import_libraries("lowerscope.core.stages")
        from lowerscope.core.cli.showing import leaves_out, note_lines
        from lowerscope.core.stages import Pipeline

        pipeline, answer = Pipeline(), _ANSWERS[options.command]
        if listing:
            return *answer(pipeline, recipe, options), ()
        check_passes(pipeline, recipe, options)
        if options.command == "compare" or getattr(options, "tokens", 0):
            # An error in one of several variants does not keep the others from running; and a
            # generation has recipes of its own.
            return *answer(pipeline, recipe, options), ()
        pipeline.stages(recipe).check_schedules()
        code, text = answer(pipeline, recipe, options)
        notes = note_lines(pipeline, recipe)
        return ERROR if leaves_out(pipeline, recipe) else code, text, notes


def leave(code: int) -> NoReturn:
    """Exit this process, whose command is done, with a code.

    Threads and ``atexit`` functions of a user's code may take `PATIENCE` seconds to end. What a
    check has left running would abort the process.
    """
    if not any(each.name == CHECK_THREAD for each in threading.enumerate()):
        # In this thread: Qt, for one, has to end in the thread that it began in.
        over = threading.Timer(PATIENCE, os._exit, (code,))
        over.daemon = True
        over.start()
        _finish_user_code(over)
    os._exit(code)


def _finish_user_code(over: threading.Timer) -> None:
    # Their output is not part of the command's answer.
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    for each in threading.enumerate():
        if not each.daemon and each not in (over, threading.main_thread()):
            each.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _recipe(options: argparse.Namespace) -> Recipe:
    if options.source is None:
        raise LowerscopeError(
            _("the source is missing"),
            where=options.command,
            todo=_("Give {source_help}", source_help=SOURCE_HELP),
        )
    recipe = _recipe_from(options)
    # Before torch and TVM are imported, which takes seconds.
    source_kind(source_path(recipe.source.spec))
    _check_written(options, recipe)
    return recipe


def _check_written(options: argparse.Namespace, recipe: Recipe) -> None:
    """Reject output to a file that is also read."""
    for option in ("html", "save"):
        if given := getattr(options, option, ""):
            check_not_read(user_path(given), f"--{option} {given}", files_read(options, recipe))


def _recipe_from(options: argparse.Namespace) -> Recipe:
    """Return the recipe of a command; of several variants, the first."""
    return recipes_of(options)[0] if options.command == "compare" else recipe_from(options)


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="lowerscope", description=_("See and steer how a PyTorch model becomes machine code.")
    )
    commands = parser.add_subparsers(
        dest="command",
        required=True,
        parser_class=OneLineParser,
        title=_("commands"),
        metavar=_("COMMAND"),
    )
    for name, text, add_options in (
        ("samples", _("list the bundled samples"), lambda _parser: None),
        (
            "targets",
            _("list the targets, with the vectors and registers of each"),
            _add_targets_options,
        ),
        ("show", _("print a stage of the lowering, or a tensor"), add_show_options),
        ("run", _("compile, run, and compare with torch"), add_run_options),
        ("compare", _("run variants of a source and compare them"), add_compare_options),
        ("export", _("export the artifacts of a source as files"), add_export_options),
        ("rule", _("write a lowering rule for a node, as a starting point"), _add_rule_options),
        ("passes", _("list the passes, or print the module after one"), add_passes_options),
        (
            "schedule",
            _("apply a schedule to a function and print the result"),
            add_schedule_options,
        ),
        ("tune", _("search for fast schedules by measuring candidates"), add_tune_options),
        ("why", _("explain a fusion, a pass or a schedule"), add_why_options),
        ("bisect", _("find the step that makes a model differ from torch"), add_bisect_options),
        ("referee", _("show where rounding grows, against float64"), add_referee_options),
        (
            "cache",
            _("print the size of the caches of tuning and measuring, or clear them"),
            lambda parser: parser.flag("--clear", _("clear the caches")),
        ),
        ("course", _("write the example files of the course page"), _add_course_options),
    ):
        add_options(commands.add_parser(name, help=text, description=capitalized(text)))
    for name in _OPENING:
        add_sandbox_option(commands.choices[name])
    return parser


def _add_rule_options(parser: OneLineParser) -> None:
    parser.add_argument("source", help=SOURCE_HELP)
    parser.text("--node", "NAME", _("name of the node, as in show --stage fx"), required=True)
    parser.text(
        "--output",
        "FILE.py",
        _("a new file, or an existing one that the rule is added to"),
        required=True,
    )
    add_recipe_options(parser)


def _add_course_options(parser: OneLineParser) -> None:
    parser.text("--output", "DIR", _("folder to write to"), required=True)
    parser.flag("--force", _("overwrite existing files"))


def _samples(options: argparse.Namespace) -> tuple[int, str]:
    listed = samples()
    return MATCH, "\n".join(
        console.table_lines([(each.name, each.description) for each in listed], range(0))
    )


PARAMETERS = "mlp_params.pkl"
"""The trained perceptron in the course's own format: a pickle of ``w0``, ``b0``, ``w1``, ``b1``."""

PICTURE = "boot.png"
"""A picture of the last class, not in the training data."""

_NAMES = {
    "w0": "linear0.weight",
    "b0": "linear0.bias",
    "w1": "linear1.weight",
    "b1": "linear1.bias",
}


def write_course(folder: Path, *, force: bool) -> tuple[Path, ...]:
    """Write the files of `resources/help/course` to a folder, with parameters and a picture.

    Raises a `LowerscopeError` if a file exists and `force` is not given, or the folder cannot be
    written.
    """
    import numpy as np
    from PIL import Image

    sources = sorted((HELP / "course").glob("*.py"))
    names = (*(source.name for source in sources), PARAMETERS, PICTURE)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            if not force and (folder / name).exists():
                raise LowerscopeError(
                    _("the file already exists"),
                    where=str(folder / name),
                    todo=_("Choose another folder, or add --force to overwrite it"),
                )
        for source in sources:
            (folder / source.name).write_bytes(source.read_bytes())
        with np.load(SAMPLES / "fashion_mlp.npz") as trained:
            arrays = {name: trained[title] for name, title in _NAMES.items()}
            (folder / PARAMETERS).write_bytes(pickle.dumps(arrays))
            Image.fromarray(trained["pictures"][-1]).save(folder / PICTURE)
    except OSError as error:
        raise cannot_write(error, error.filename or folder) from error
    return tuple(folder / name for name in names)


def _course(options: argparse.Namespace) -> tuple[int, str]:
    paths = write_course(Path(options.output), force=options.force)
    own = HELP / language() / "course.md"
    page = _("The course page: {path}", path=own if own.is_file() else HELP / "course.md")
    return MATCH, "\n".join((*map(str, paths), page))


def _rule(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    line = pipeline.answer(WriteRuleQuery(recipe, options.node, options.output))
    return MATCH, f"{line.file}:{line.line}"


_TARGET_HEADINGS = (
    *(_("target"), _("processor"), _("vectors"), "float32"),
    *(_("registers"), _("threads"), _("features")),
)


def _add_targets_options(parser: OneLineParser) -> None:
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help=_("a target as for --target (default: those that the window offers)"),
    )
    parser.number("--threads", _("number of threads of TVM (default: all)"))
    add_remote_options(parser)
    parser.flag("--json", _("print records as JSON"))


def _targets(options: argparse.Namespace) -> tuple[int, str]:
    """Return the table of the targets, or their records as JSON; for a remote, its state."""
    check_threads(options.threads)
    remote = remote_of(options.tracker, options.key, options.remote_timeout)
    from lowerscope.core.build.targets import target_records

    if remote is not None:
        from lowerscope.core.remote.running import remote_state

        state = remote_state(remote, Silent())
        own = _("{key}: {machine}", key=remote.key, machine=machine_text(state))
        lines = [*map(key_text, state.keys), own]
        return MATCH, to_json(state) if options.json else "\n".join(lines)
    records = target_records(options.targets, options.threads)
    return MATCH, to_json(records) if options.json else _targets_table(records)


def _targets_table(records: Sequence[TargetRecord]) -> str:
    """Return a line for each target, and one with its purpose and whether it runs here."""
    lines = console.table_lines([_TARGET_HEADINGS, *map(_target_row, records)], range(2, 6))
    told = [lines[0]]
    for record, line in zip(records, lines[1:], strict=True):
        about = (
            _("does not run on this machine: {hindrance}", hindrance=record.hindrance)
            if record.hindrance
            else _("runs on this machine")
        )
        told += [line, "    " + _("; ").join(filter(None, (record.title, about)))]
    return "\n".join(told)


def _target_row(record: TargetRecord) -> tuple[str, ...]:
    return (
        record.text,
        f"{record.architecture} {record.cpu}",
        _("{count} bits", count=record.vector_bits),
        str(record.lanes),
        str(record.registers),
        str(record.threads),
        ", ".join(record.features) or "-",
    )


def _cache(options: argparse.Namespace) -> tuple[int, str]:
    """Clear the cache, if that is requested; return its folder, size and limit."""
    lines = [str(cache_folder())]
    if options.clear:
        try:
            cleared = clear_cache()
        except OSError as error:
            raise LowerscopeError(
                _("the cache cannot be cleared: {strerror}", strerror=error.strerror or error),
                where=str(cache_folder()),
                todo=_("Check the permissions of the folder"),
            ) from error
        if cleared.freed:
            lines.append(_("removed {size}", size=bytes_text(cleared.freed)))
        if cleared.in_use:
            lines.append(
                _("kept {size} that a running tuning adds to", size=bytes_text(cleared.in_use))
            )
    lines.append(
        _("{size} of at most {limit}", size=bytes_text(cache_size()), limit=bytes_text(LIMIT))
    )
    return MATCH, "\n".join(lines)


WITHOUT_CODE = {"samples": _samples, "targets": _targets, "cache": _cache, "course": _course}
"""Commands that open no source and run no user code."""

_ANSWERS = {
    "show": show,
    "run": run,
    "compare": compare,
    "export": export,
    "rule": _rule,
    "passes": passes,
    "schedule": schedule,
    "tune": tune,
    "why": why,
    "bisect": bisect,
    "referee": referee,
}
