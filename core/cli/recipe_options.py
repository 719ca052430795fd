"""Options of a recipe on the command line, the window's too, and the recipe that they make."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
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
    ANY_PROCESSOR,
    NATIVE,
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
from lowerscope.core.model.texts import _, _n
from lowerscope.core.model.tolerances import Tolerances, parse_tolerances, tolerance_texts

# --- Help on the command line, in the language of the process ---


_TEXTS = {
    "usage: ": _("usage: "),
    "positional arguments": _("positional arguments"),
    "options": _("options"),
    "show this help message and exit": _("show this help and exit"),
    "argument %(argument_name)s: %(message)s": _("argument %(argument_name)s: %(message)s"),
    "unrecognized arguments: %s": _("unknown arguments: %s"),
    "the following arguments are required: %s": _("missing arguments: %s"),
    "expected one argument": _("expected one argument"),
    "expected at least one argument": _("expected at least one argument"),
    "invalid %(type)s value: %(value)r": _("invalid %(type)s value: %(value)r"),
    "invalid choice: %(value)r (choose from %(choices)s)": _(
        "invalid choice: %(value)r (choose from %(choices)s)"
    ),
    "ambiguous option: %(option)s could match %(matches)s": _(
        "ambiguous option: %(option)s could match %(matches)s"
    ),
    "ignored explicit argument %r": _("the option takes no value: %r"),
}
"""Texts of argparse."""


def _counted(singular: str, plural: str, count: int) -> str:
    if singular == "expected %s argument":
        return _n("expected %s argument", "expected %s arguments", count)
    return singular if count == 1 else plural


# As `gettext` would, if argparse's texts had a catalogue of their own.
vars(argparse).update(_=lambda text: _TEXTS.get(text, text), ngettext=_counted)


class HelpFormatter(argparse.HelpFormatter):
    """The standard formatter, which measures in columns: a Chinese character has two."""

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
    "target": "",
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

    def __init__(self, **more: Any) -> None:
        super().__init__(**{"formatter_class": HelpFormatter} | more)

    def error(self, message: str) -> NoReturn:
        raise LowerscopeError(message, todo=_("See {prog} --help", prog=self.prog))

    def flag(self, name: str, text: str) -> None:
        """Add an option without a value."""
        self.add_argument(name, action="store_true", help=text)

    def text(self, name: str, metavar: str, text: str, **more: Any) -> None:
        """Add an option with a text, which is empty by default."""
        self.add_argument(name, **{"default": "", "metavar": metavar, "help": text} | more)

    def number(
        self, name: str, text: str, default: int | None = 0, metavar: str | None = None
    ) -> None:
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

    def one(name: str, text: str, dest: str, **more: Any) -> None:
        kept: dict[str, Any] = {"action": "append"} if several else {"default": SEVERAL[dest]}
        if several:
            text = _("{option}; repeatable: each is a variant", option=text)
        parser.add_argument(name, dest=dest, help=text, **kept, **more)

    parser.text("--args", "JSON", _("keyword arguments of the entry"), default="{}")
    parser.flag(
        "--decode",
        _("open the decode step of a language model, with the inputs of next_inputs in the file"),
    )
    parser.many(
        "--input",
        "NAME=1,784:float32",
        _("shape and dtype of an input, or NAME=FILE.npy (.npz, .pt, an image); repeatable"),
    )
    parser.many(
        "--dim",
        "NAME=1..64",
        _(
            "range of a dimension that the shape of an input names, as in --input x=batch,784 "
            "(default 1..1024); repeatable"
        ),
    )
    parser.many(
        "--sizes",
        "NAME=1,7,64",
        _(
            "sizes of a dimension to run at, one after the other (default: the traced size and "
            "the ends of the range); repeatable"
        ),
    )
    parser.number("--seed", _("seed of the weights and inputs (default 0)"))
    parser.text("--params", "FILE", _("file of parameters: .npz, .pkl, .pt, .pth or .safetensors"))
    parser.flag("--trust", _("open a .pt2 file although it can run code"))
    parser.add_argument(
        "--tracer",
        choices=TRACERS,
        default="auto",
        help=_("torch.fx, torch.export, or auto (default): export for models that fx cannot trace"),
    )
    one(
        "--importer",
        _(
            "importer of the graph: lowerscope (default), or TVM's from_fx (tvm-fx) or "
            "from_exported_program (tvm-export)"
        ),
        "translator",
        choices=TRANSLATORS,
    )
    one(
        "--lowering",
        _("strategy of all nodes (default: high-level)"),
        "lowering",
        choices=STRATEGIES,
    )
    parser.many(
        "--override",
        "PATTERN=STRATEGY",
        _("strategy of a node, a module (layer1.*) or an operator (conv2d); repeatable"),
    )
    for kind, what in (
        (
            "rules",
            _(
                "a file with your own lowering rules (@rule of lowerscope.core.rules); repeatable, "
                "the last file takes precedence"
            ),
        ),
        (
            "library",
            _(
                "a file with functions registered by tvm.register_global_func; "
                "repeatable, the last file takes precedence"
            ),
        ),
        (
            "passes",
            _(
                "a file with your own passes (@tvm.transform.module_pass); repeatable, the "
                "last file takes precedence"
            ),
        ),
    ):
        alone = scheduling and kind == "rules"
        parser.add_argument(
            f"--{kind}",
            action=_AddExtension,
            dest="extensions",
            default=(),
            metavar="FILE.py",
            nargs="?" if alone else None,
            help=_("{option}; without a file: schedule by rules", option=what) if alone else what,
        )
    parser.flag(
        "--params-as-inputs", _("make the parameters arguments of main instead of constants")
    )
    parser.flag("--bind-params", _("the same, with relax.transform.BindParams as the first step"))
    one(
        "--pipeline",
        _(
            "passes to apply: {names}, or a saved .json file (default legalise)",
            names=_(", ").join(each.name for each in PRESETS),
        ),
        "pipeline",
        metavar="NAME",
    )
    parser.many(
        "--pass",
        "NAME[:OPTION=VALUE,…]",
        pass_help
        or _(
            "pass to apply after those of the pipeline; `lowerscope passes --catalogue` lists "
            "them; repeatable"
        ),
        dest="steps",
    )
    parser.many(
        "--schedule",
        f"FILE.json|{RULES}|{TUNED}",
        _(
            "schedules to apply after the passes, or at the step ApplySchedules: a saved file, "
            "{rules} (written by rules) or {tuned} (found by lowerscope tune); repeatable: each is "
            "a variant, and none is one without schedules",
            rules=RULES,
            tuned=TUNED,
        )
        if several
        else _(
            "schedules to apply after the passes, or at the step ApplySchedules: a saved file, "
            "{rules} (written by rules) or {tuned} (found by lowerscope tune); repeatable",
            rules=RULES,
            tuned=TUNED,
        ),
        dest="schedules",
    )
    one(
        "--target",
        _(
            "native (this processor; the default), llvm (any processor of this kind, and the "
            "default for a remote machine), or a TVM target as JSON"
        ),
        "target",
    )
    parser.many(
        "--tolerance",
        "DTYPE=RTOL,ATOL",
        _(
            "tolerance of a dtype: outputs match if |tvm - torch| <= ATOL + RTOL * |torch| "
            "(default {values}); repeatable",
            values=_("; ").join(tolerance_texts(Tolerances()).values()),
        ),
        dest="tolerances",
    )
    parser.number("--threads", _("number of threads of TVM and of torch (default: all)"))
    add_remote_options(parser)
    parser.number(
        "--repeats",
        _(
            "timed calls of each side (default: as many as fit a second, from {least} to "
            "{repeats})",
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
            "time torch.compile of the model as well; it compiles for seconds to minutes, and "
            "needs a C++ compiler"
        ),
    )


def add_remote_options(parser: OneLineParser) -> None:
    """Add the options for another machine."""
    parser.text(
        "--tracker",
        "HOST:PORT",
        _("run on another machine: address of its TVM RPC tracker; give its --target as well"),
    )
    parser.text("--key", "KEY", _("with --tracker: key of the servers"))
    parser.text(
        "--remote-timeout",
        "SECONDS",
        _("time limit of one answer of the other machine (default {limit:g})", limit=TIMEOUT),
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
    remote = remote_of(options.tracker, options.key, options.remote_timeout)
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
        target=options.target or (NATIVE if remote is None else ANY_PROCESSOR),
        threads=options.threads,
        remote=remote,
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
            _("a session has its own choices, and no option can change them"),
            where=f"{options.source}: --{given[0].replace('_', '-')}",
            todo=_("Leave the option out, or change the session in the window"),
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
                "Give a number from 1 to {most}, or 0 for all threads of the machine",
                most=MOST_THREADS,
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
                "this is not PATTERN=STRATEGY; the strategies are {strategies}",
                strategies=_(", ").join(STRATEGIES),
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
