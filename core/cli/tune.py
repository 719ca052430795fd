"""The command ``lowerscope tune``: searches for schedules, and stores them in a database."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lowerscope.core.cli.recipe_options import SOURCE_HELP, OneLineParser, add_recipe_options
from lowerscope.core.files import console
from lowerscope.core.files.console import say
from lowerscope.core.model.encoding import to_json
from lowerscope.core.model.formatting import UNRELIABLE, seconds_text
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Silent
from lowerscope.core.model.queries import TuneQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _, _n, capitalized
from lowerscope.core.model.tuning_records import Tuned, TunedFunction, TuneOptions, TuneState

if TYPE_CHECKING:
    from lowerscope.core.run.tuning.tuning import Tuning
    from lowerscope.core.stages import Pipeline

PATIENCE = 1.0
"""Time that an interrupted process has to stop by itself, in seconds."""


@contextlib.contextmanager
def ended_soon(text: str, code: int) -> Iterator[None]:
    """End this process if an interrupt in the body is not handled in time.

    Python handles an interrupt between two calls, and a call of TVM may take many seconds. Child
    processes end with it; leftover files are removed at the next start.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    over = threading.Event()

    def watch() -> None:
        # One byte for each signal; none if the other end is closed.
        received = os.read(source, 1)
        while received and received[0] != signal.SIGINT:
            received = os.read(source, 1)
        if received and not over.wait(PATIENCE):
            console.say(text)
            os._exit(code)

    before = signal.set_wakeup_fd(sink)
    watching = threading.Thread(target=watch, name="interrupts", daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(sink)
        watching.join()
        os.close(source)


_KEPT = _("stopped; the results are kept")

MOST_TRIALS = 1_000_000
"""Most trials accepted: more than the distinct candidates of a function."""

_HEADINGS = (
    *(_("function"), _("calls"), _("unscheduled"), _("rules"), _("tuned")),
    *("torch", _("trials"), ""),
)


def add_tune_options(parser: OneLineParser) -> None:
    """Add the options of ``lowerscope tune``."""
    parser.add_argument("source", help=SOURCE_HELP)
    trials = TuneOptions().trials
    parser.number(
        "--trials",
        _(
            "number of candidates to measure for all functions together, including earlier ones "
            "(default {trials}); 0 prints the results in the database",
            trials=trials,
        ),
        trials,
        "N",
    )
    parser.many(
        "--function",
        "NAME",
        _("TensorIR function to tune (default: all, by their share of the time); repeatable"),
        dest="functions",
    )
    parser.number("--slowest", _("tune only the N slowest functions"), metavar="N")
    parser.flag("--fresh", _("measure the candidates in the database again"))
    parser.flag("--json", _("print the record as JSON"))
    add_recipe_options(parser)


def tune(pipeline: Pipeline, recipe: Recipe, options: argparse.Namespace) -> tuple[int, str]:
    """Run ``lowerscope tune``; an interrupt ends it with the results so far.

    Raises a `LowerscopeError` if there is no such function, or none that can be tuned.
    """
    for name, number in (("--trials", options.trials), ("--slowest", options.slowest)):
        if not 0 <= number <= MOST_TRIALS:
            raise LowerscopeError(
                _("{number} is not a valid count", number=number),
                where=name,
                todo=_("Give a number from 0 to {most_trials}", most_trials=MOST_TRIALS),
            )
    wanted = TuneOptions(
        functions=tuple(options.functions),
        slowest=options.slowest,
        trials=options.trials,
        seed=recipe.seed,
        fresh=options.fresh,
    )
    from lowerscope.core.run.tuning.tuning import Tuning

    tuning = pipeline.part(Tuning)
    code, progress = console.MATCH, _Told(tuning)
    try:
        with ended_soon(_KEPT, console.ERROR):
            tuned = pipeline.answer(TuneQuery(recipe, wanted), progress)
    except KeyboardInterrupt:
        if not tuning.state.functions:
            raise
        say(_KEPT)
        code, tuned = console.ERROR, Tuned(state=tuning.state)
    if options.json:
        return code, to_json(tuned)
    return code, "\n".join((*_table(tuned.state.functions), *_end(tuned)))


class _Told(Silent):
    """Progress that writes a line to stderr for each improvement."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._told: dict[str, float | None] = {}
        self._doing = ""

    def report(self, text: str, fraction: float | None = None) -> None:
        state = self._tuning.state
        for each in state.functions:
            if each.points and self._told.get(each.name) != each.best:
                self._told[each.name] = each.best
                say(_found(each, state))
        if text != self._doing and not state.functions:
            say(text)
        self._doing = text


def _found(each: TunedFunction, state: TuneState) -> str:
    parts = [_("{function}: {time}", function=each.name, time=seconds_text(each.best))]
    if each.by_rules is not None:
        parts.append(_("rules {time}", time=seconds_text(each.by_rules)))
    if each.torch is not None:
        parts.append(_("torch {time}", time=seconds_text(each.torch)))
    if state.trials_total:
        done, total = state.trials_done, state.trials_total
        parts.append(_n("{done} of {count} trial", "{done} of {count} trials", total, done=done))
    if state.seconds_left is not None:
        parts.append(_("{time} left", time=seconds_text(round(state.seconds_left))))
    return _(", ").join(parts)


def _table(functions: Sequence[TunedFunction]) -> list[str]:
    return console.table_lines([_HEADINGS, *map(_row, functions)], range(1, len(_HEADINGS) - 1))


def _row(each: TunedFunction) -> tuple[str, ...]:
    words = [_("from the database")] if each.from_database else []
    words += [_STATES[each.state]] if each.state in _STATES else []
    words += [_("{count} failed", count=each.failed)] if each.failed else []
    words += [each.note] if each.note else []
    words += [_("unreliable times")] if each.disturbed else []
    return (
        each.name,
        str(each.calls),
        seconds_text(each.unscheduled),
        seconds_text(each.by_rules),
        seconds_text(each.best),
        seconds_text(each.torch),
        str(each.trials),
        _("; ").join(words),
    )


_STATES = {"stopped": _("stopped"), "failed": _("failed")}


def _end(tuned: Tuned) -> Iterator[str]:
    yield ""
    measured = [each for each in tuned.state.functions if each.best is not None]
    if measured:
        yield _("All calls of one run: {sums}", sums=_(", ").join(_sums(measured)))
    if any(each.disturbed for each in measured):
        yield capitalized(UNRELIABLE)
        yield _("Measure again with --fresh")
    if not measured:
        yield _("No function of this model has been tuned")
        return
    if tuned.database:
        yield _("Results are stored in {database}", database=tuned.database)
    yield _("To use them: lowerscope run SOURCE --schedule tuned")


def _sums(functions: Sequence[TunedFunction]) -> Iterator[str]:
    for name, field in (
        (_("unscheduled"), "unscheduled"),
        (_("rules"), "by_rules"),
        (_("tuned"), "best"),
        ("torch", "torch"),
    ):
        known = [getattr(each, field) for each in functions]
        if None not in known:
            total = sum(each.calls * time for each, time in zip(functions, known, strict=True))
            yield f"{name} {seconds_text(total)}"
