"""Options of a recipe on the command line, the window's too, and the recipe that they make."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

import msgspec

from lowerscope.core.files.console import columns
from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.paths import user_path
from lowerscope.core.files.pipelines_and_schedules import (
    PRESETS,
    find_pipeline,
    load_schedules,
    parse_step,
)
from lowerscope.core.files.sessions import SUFFIX, files_of, load_session
from lowerscope.core.files.sources import database_files, parse_input, parse_spec, source_files
from lowerscope.core.model.dimensions import dimensions_of, parse_dimension, parse_sizes, with_sizes
from lowerscope.core.model.machines import TIMEOUT, remote_of
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import (
    SEEDS,
    STRATEGIES,
    TRACERS,
    TRANSLATORS,
    Extension,
    ExtensionKind,
    Override,
    Recipe,
    Source,
    applied_to_model,
    applies_schedules,
    ruled_in_model,
    with_bound_params,
    with_params_as_inputs,
    with_trust,
    with_tuned,
)
from lowerscope.core.model.run_records import LEAST, REPEATS, Measuring, check_measuring
from lowerscope.core.model.schedule import with_unique_names
from lowerscope.core.model.texts import _
from lowerscope.core.model.tolerances import Tolerances, parse_tolerances, tolerance_texts

# --- Help on the command line, in the language of the process ---


class HelpFormatter(argparse.HelpFormatter):
    """The standard formatter, which measures in columns: a Chinese character has two."""

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None = None,
    ) -> None:
        super().add_usage(usage, actions, groups, _("usage: ") if prefix is None else prefix)

    def start_section(self, heading: str | None) -> None:
        own = {"positional arguments": _("positional arguments"), "options": _("options")}
        super().start_section(own.get(heading or "", heading))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrapped(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(indent + line for line in wrapped(text, width - len(indent)))


class RawHelpFormatter(HelpFormatter, argparse.RawDescriptionHelpFormatter):
    """The same, with the lines of the description as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return argparse.RawDescriptionHelpFormatter._fill_text(self, text, width, indent)


_PIECE = re.compile(r"[⺀-\uffef][，。；：、）]*|[^\s⺀-\uffef]+[，。；：、）]*|\s+")
"""Part of a line that is not divided: a word, or a Chinese character, with its punctuation."""


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text."""
    lines = [""]
    for piece in _PIECE.findall(" ".join(text.split())):
        if lines[-1] and columns(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return [line.rstrip() for line in lines]


SOURCE_HELP = _("sample:NAME, FILE.py[:ENTRY], FILE.pt2, FILE.onnx, FILE.pt or SESSION.lowerscope")

SEVERAL = {
    "lowering": "high-level",
    "translator": "lowerscope",
    "pipeline": "legalise",
    "schedules": "",
    "target": "llvm",
}
"""Options that may be repeated where variants are compared, with their defaults."""

RULES, TUNED = "rules", "tuned"
"""Values of ``--schedule`` for schedules written by rules, or found by tuning."""


class _AddExtension(argparse.Action):
    """Action that adds an extension file: all kinds are one list, in the order of the options."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        if values is None:
            # `--rules` alone, where that is allowed.
            namespace.by_rule = True
            return
        kinds: tuple[ExtensionKind, ...] = get_args(ExtensionKind)
        kind = next(each for each in kinds if f"--{each}" == option_string)
        added = Extension(path=str(user_path(str(values)).absolute()), kind=kind)
        namespace.extensions = (*namespace.extensions, added)


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def __init__(self, *, add_help: bool = True, **more: Any) -> None:
        super().__init__(add_help=False, **{"formatter_class": HelpFormatter} | more)
        if add_help:
            own = _("show this help and exit")
            self.add_argument("-h", "--help", action="help", default=argparse.SUPPRESS, help=own)

    def error(self, message: str) -> NoReturn:
        raise LowerscopeError(message, todo=_("See {prog} --help", prog=self.prog))

    def flag(self, name: str, text: str) -> None:
        """Add an option without a value."""
        self.add_argument(name, action="store_true", help=text)

    def text(self, name: str, metavar: str, text: str, **more: Any) -> None:
        """Add an option with a text, which is empty by default."""
        self.add_argument(name, **{"default": "", "metavar": metavar, "help": text} | more)

    def number(self, name: str, text: str, default: int = 0, metavar: str | None = None) -> None:
        """Add an option with an integer."""
        self.add_argument(name, type=int, default=default, metavar=metavar, help=text)

    def many(self, name: str, metavar: str, text: str, dest: str | None = None) -> None:
        """Add an option that is a list, and may be repeated."""
        self.add_argument(name, dest=dest, action="append", default=[], metavar=metavar, help=text)


def add_recipe_options(
    parser: OneLineParser, *, several: bool = False, scheduling: bool = False, pass_help: str = ""
) -> None:
    """Add the options of a recipe, which are shared by the window's command.

    Args:
        several: Let those of `SEVERAL` be repeated: each is then a list, or ``None`` if it is not
            given.
        scheduling: Let ``--rules`` without a file select the rules that write schedules:
            ``by_rule`` is then true.
        pass_help: Help of ``--pass``, where it does not add a pass.
    """
    parser.set_defaults(by_rule=False)
    again = _("; repeatable: each is a variant") if several else ""

    def one(name: str, text: str, dest: str, **more: Any) -> None:
        kept: dict[str, Any] = {"action": "append"} if several else {"default": SEVERAL[dest]}
        parser.add_argument(name, dest=dest, help=f"{text}{again}", **kept, **more)

    parser.text("--args", "JSON", _("the entry's keyword arguments"), default="{}")
    parser.flag("--decode", _("the decode step of a language model: next_inputs of the file"))
    parser.many(
        "--input",
        "NAME=1,784:float32",
        _("an input's shape and dtype, or NAME=FILE.npy (.npz, .pt, an image); repeatable"),
    )
    parser.many(
        "--dim",
        "NAME=1..64",
        _(
            "the range of sizes of a name in an input's shape, as in --input x=batch,784 "
            "(default 1..1024); repeatable"
        ),
    )
    parser.many(
        "--sizes",
        "NAME=1,7,64",
        _(
            "the sizes of that dimension to run at, run by run (default: the traced one, and "
            "the ends of the range); repeatable"
        ),
    )
    parser.number("--seed", _("of weights and inputs (default 0)"))
    parser.text("--params", "FILE", _("parameters: .npz, .pkl, .pt or .pth"))
    parser.flag("--trust", _("open a .pt2 that can run code"))
    parser.add_argument(
        "--tracer",
        choices=TRACERS,
        default="auto",
        help=_(
            "torch.fx, torch.export, or auto: fx, and export for models that fx cannot trace "
            "(default)"
        ),
    )
    one(
        "--importer",
        _(
            "the importer of the graph: lowerscope (default), or TVM's own from_fx or "
            "from_exported_program"
        ),
        "translator",
        choices=TRANSLATORS,
    )
    one("--lowering", _("default: high-level"), "lowering", choices=STRATEGIES)
    parser.many(
        "--override",
        "PATTERN=STRATEGY",
        _("another lowering for a node, a module (layer1.*) or an operator (conv2d); repeatable"),
    )
    for kind, what in (
        ("rules", _("your own lowering rules: @rule of lowerscope.core.rules")),
        ("library", _("functions registered by tvm.register_global_func")),
        ("passes", _("your own passes: @tvm.transform.module_pass")),
    ):
        alone = _("without a file: schedule by rules. ") if scheduling and kind == "rules" else ""
        parser.add_argument(
            f"--{kind}",
            action=_AddExtension,
            dest="extensions",
            default=(),
            metavar="FILE.py",
            nargs="?" if alone else None,
            help=_(
                "{alone}a file with {what}; repeatable, a later one takes precedence",
                alone=alone,
                what=what,
            ),
        )
    parser.flag(
        "--params-as-inputs", _("keep parameters as arguments of main, not as constants in it")
    )
    parser.flag(
        "--bind-params",
        _("the same, and bind them by relax.transform.BindParams as the first step"),
    )
    one(
        "--pipeline",
        _(
            "the passes: {value}, or a saved .json file (default legalise)",
            value=", ".join(each.name for each in PRESETS),
        ),
        "pipeline",
        metavar="NAME",
    )
    parser.many(
        "--pass",
        "NAME[:OPTION=VALUE,…]",
        pass_help
        or _(
            "a pass after those of the pipeline, as `lowerscope passes --catalogue` names it; "
            "repeatable"
        ),
        dest="steps",
    )
    parser.many(
        "--schedule",
        f"FILE.json|{RULES}|{TUNED}",
        _(
            "saved schedules, applied to the model after its passes, or at the step "
            "ApplySchedules; or {rules}, for those written by rules; or {tuned}, for those "
            "found by lowerscope tune; repeatable{more}",
            rules=RULES,
            tuned=TUNED,
            more=_(": each is a variant, and none is one without schedules") if several else "",
        ),
        dest="schedules",
    )
    one("--target", _("llvm, native (this processor), or a TVM target as JSON"), "target")
    parser.many(
        "--tolerance",
        "DTYPE=RTOL,ATOL",
        _(
            "outputs match if |tvm - torch| <= ATOL + RTOL * |torch|, each dtype separately "
            "(default {values}); repeatable",
            values="; ".join(tolerance_texts(Tolerances()).values()),
        ),
        dest="tolerances",
    )
    parser.number("--threads", _("of TVM and of torch (default: all)"))
    add_remote_options(parser)
    parser.number(
        "--repeats",
        _(
            "timed calls of each side, in turn (default: as many as fit a second, from {least} "
            "to {repeats})",
            least=LEAST,
            repeats=REPEATS,
        ),
        metavar="N",
    )
    warm_up = Measuring().warm_up
    parser.number(
        "--warm-up",
        _("calls of each side before the timed ones (default {warm_up})", warm_up=warm_up),
        warm_up,
        "N",
    )
    parser.flag(
        "--torch-compile",
        _(
            "time torch.compile of the model as well: it takes seconds to minutes to compile, "
            "and a "
            "C++ compiler"
        ),
    )


def add_remote_options(parser: OneLineParser) -> None:
    """Add the options for another machine."""
    parser.text(
        "--tracker",
        "HOST:PORT",
        _("run on another machine: the address of TVM's RPC tracker; choose its --target"),
    )
    parser.text("--key", "KEY", _("with --tracker: the key of its servers"))
    parser.text(
        "--remote-timeout",
        "SECONDS",
        _("time limit of one answer of the other machine (default {timeout:g})", timeout=TIMEOUT),
        type=float,
        default=TIMEOUT,
    )


MOST_THREADS = 1024
"""Most threads accepted: more than machines have, as torch and TVM start as many as requested."""


def recipe_from(options: argparse.Namespace) -> Recipe:
    """Return the recipe of the options of `add_recipe_options` and ``options.source``.

    Raises a `LowerscopeError` if an option cannot be read.
    """
    if options.source.endswith(SUFFIX):
        return _of_session(options, user_path(options.source).absolute())
    spec, entry = parse_spec(options.source)
    check_threads(options.threads)
    if not 0 <= options.seed < SEEDS:
        raise LowerscopeError(
            _("{seed} is not a valid seed", seed=options.seed),
            where="--seed",
            todo=_("Give a number from 0 to {seeds}", seeds=SEEDS - 1),
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
            decode=options.decode,
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
    if not getattr(options, "tokens", 0):  # the steps of a generation name dimensions as well
        dimensions_of(recipe)
    files = [each for each in options.schedules if each not in (RULES, TUNED)]
    loaded = [each for file in files for each in load_schedules(file)]
    if loaded:
        recipe = msgspec.structs.replace(recipe, schedules=with_unique_names(loaded))
        if not applies_schedules(recipe):
            recipe = applied_to_model(recipe, True)
    if RULES in options.schedules:
        recipe = ruled_in_model(recipe, True)
    if TUNED in options.schedules:
        recipe = with_tuned(recipe)
    if options.params_as_inputs or options.bind_params:
        recipe = with_params_as_inputs(recipe, True)
    return with_bound_params(recipe, True) if options.bind_params else recipe


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
            _("a session has its own choices, and takes no options that change them"),
            where=f"{options.source}: --{given[0].replace('_', '-')}",
            todo=_("Leave the options out, or change the session in the window"),
        )
    return with_trust(load_session(path, Hashes()).recipe, trust=options.trust)


def check_threads(count: int) -> None:
    """Raise if the number of threads is out of range.

    Raises a `LowerscopeError` with the accepted range.
    """
    if not 0 <= count <= MOST_THREADS:
        raise LowerscopeError(
            _("{count} is not a valid number of threads", count=count),
            where="--threads",
            todo=_(
                "Give 0 for all of the machine's, or a number from 1 to {most_threads}",
                most_threads=MOST_THREADS,
            ),
        )


def parse_override(text: str) -> Override:
    """Read ``PATTERN=STRATEGY``.

    Raises a `LowerscopeError` if there is no pattern, or no such strategy.
    """
    pattern, _sep, name = text.rpartition("=")
    strategy = next((each for each in STRATEGIES if each == name.strip()), None)
    if not pattern.strip() or strategy is None:
        raise LowerscopeError(
            _(
                "it is not PATTERN=STRATEGY with one of the strategies {strategies}",
                strategies=", ".join(STRATEGIES),
            ),
            where=f"--override {text}",
            todo=_("Give for example --override conv1=library or --override 'layer1.*=te'"),
        )
    return Override(pattern=pattern.strip(), strategy=strategy)


def files_read(options: argparse.Namespace, recipe: Recipe) -> tuple[Path, ...]:
    """Return the files that a command on a recipe reads, as far as they are known before it runs.

    They include those named by options only: a session, a pipeline and files of schedules.
    """
    pipelines = options.pipeline or ()
    named = (
        options.source,
        *files_of(recipe).values(),
        *database_files(recipe),
        *((pipelines,) if isinstance(pipelines, str) else pipelines),
        *options.schedules,
    )
    return (*map(user_path, named), *source_files(recipe.source, recipe.inputs))
