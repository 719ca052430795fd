"""Conversion of command-line options to a recipe."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from lowerscope.core.command_line.console import say
from lowerscope.core.command_line.recipe_options import (
    RULES,
    TUNED,
    OneLineParser,
    add_recipe_options,
)
from lowerscope.core.comparing.tolerances import parse_tolerances
from lowerscope.core.dimensions import dimensions_of, parse_dimension, parse_sizes, with_sizes
from lowerscope.core.documents import with_trust
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.measuring import Measuring, check_measuring
from lowerscope.core.passes.presets import find_pipeline, parse_step
from lowerscope.core.recipe import (
    SEEDS,
    STRATEGIES,
    Override,
    Recipe,
    Source,
    applied_to_model,
    applies_schedules,
    ruled_in_model,
    with_bound_params,
    with_params_as_inputs,
    with_tuned,
)
from lowerscope.core.records.remote import remote_of
from lowerscope.core.schedule_files import load_schedules
from lowerscope.core.schedules import named_apart
from lowerscope.core.session_archives import is_archive, open_archive
from lowerscope.core.session_files import SUFFIX, Hashes, load_session
from lowerscope.core.sources.input_option import parse_input
from lowerscope.core.sources.spec import parse_spec
from lowerscope.core.user_paths import user_path

MOST_THREADS = 1024
"""Most threads accepted: more than machines have, as torch and TVM start as many as requested."""


def recipe_from(options: argparse.Namespace) -> Recipe:
    """Return the recipe of the options of `add_recipe_options` and ``options.source``.

    Raises
    ------
    LowerscopeError
        If an option cannot be read.
    """
    if options.source.endswith(SUFFIX):
        return _of_session(options, user_path(options.source).absolute())
    if is_archive(options.source):
        return _of_session(options, _unpacked(user_path(options.source).absolute()))
    spec, entry = parse_spec(options.source)
    check_threads(options.threads)
    if not 0 <= options.seed < SEEDS:
        raise LowerscopeError(
            f"{options.seed} is not a seed",
            where="--seed",
            todo=f"Write a number from 0 to {SEEDS - 1}",
        )
    dimensions = with_sizes(map(parse_dimension, options.dim), map(parse_sizes, options.sizes))
    declared = frozenset(each.name for each in dimensions)
    recipe = Recipe(
        source=Source(
            spec=spec,
            entry=entry,
            args=options.args,
            params=options.params,
            trust=options.trust,
        ),
        seed=options.seed,
        inputs=tuple(parse_input(text, declared) for text in options.input),
        dimensions=dimensions,
        tracer=options.tracer,
        translator=options.translator,
        lowering=options.lowering,
        overrides=tuple(parse_override(text) for text in options.override),
        extensions=options.extensions,
        steps=(*find_pipeline(options.pipeline).steps, *map(parse_step, options.steps)),
        tolerances=parse_tolerances(options.tolerances),
        target=options.target,
        threads=options.threads,
        remote=remote_of(options.tracker, options.key, options.remote_timeout),
        measuring=check_measuring(
            Measuring(
                warm_up=options.warm_up,
                repeats=options.repeats,
                torch_compile=options.torch_compile,
            )
        ),
    )
    dimensions_of(recipe)
    files = [each for each in options.schedules if each not in (RULES, TUNED)]
    loaded = [each for file in files for each in load_schedules(file)]
    if loaded:
        recipe = msgspec.structs.replace(recipe, schedules=named_apart(loaded))
        if not applies_schedules(recipe):
            recipe = applied_to_model(recipe, True)
    if RULES in options.schedules:
        recipe = ruled_in_model(recipe, True)
    if TUNED in options.schedules:
        recipe = with_tuned(recipe)
    if options.params_as_inputs or options.bind_params:
        recipe = with_params_as_inputs(recipe, True)
    return with_bound_params(recipe, True) if options.bind_params else recipe


def _unpacked(path: Path) -> Path:
    """Return the session file of an archive, unpacked to a folder of the user's data."""
    session, new = open_archive(path)
    if new:
        say(f"note: unpacked to {session.parent}")
    return session


def _of_session(options: argparse.Namespace, path: Path) -> Recipe:
    """Return the recipe of a session file, which contains all choices.

    Trust in a file that may run code is never taken from a file.
    """
    parser = OneLineParser(add_help=False)
    add_recipe_options(parser)
    unchanged = vars(parser.parse_args([])) | {"trust": options.trust}
    given = [name for name, value in unchanged.items() if getattr(options, name) != value]
    if given:
        raise LowerscopeError(
            "a session has its own choices, and takes no options that make others",
            where=f"{options.source}: --{given[0].replace('_', '-')}",
            todo="Leave the options out, or change the session in the window",
        )
    return with_trust(load_session(path, Hashes()).recipe, trust=options.trust)


def check_threads(count: int) -> None:
    """Raise if the number of threads is out of range.

    Raises
    ------
    LowerscopeError
        With the accepted range.
    """
    if not 0 <= count <= MOST_THREADS:
        raise LowerscopeError(
            f"{count} is not a number of threads",
            where="--threads",
            todo=f"Write 0 for all that the machine has, or a number from 1 to {MOST_THREADS}",
        )


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
