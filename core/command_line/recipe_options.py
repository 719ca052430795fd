"""Command-line options of a recipe, shared by the window's command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn, get_args

from lowerscope.core.comparing.tolerances import Tolerances, tolerance_texts
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.measuring import LEAST, REPEATS, Measuring
from lowerscope.core.passes.presets import PRESETS
from lowerscope.core.recipe import (
    STRATEGIES,
    TRACERS,
    TRANSLATORS,
    Extension,
    ExtensionKind,
)
from lowerscope.core.records.remote import TIMEOUT
from lowerscope.core.user_paths import user_path

SOURCE_HELP = "sample:NAME, FILE.py[:ENTRY], FILE.pt2, SESSION.lowerscope or SESSION.zip"

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

    def error(self, message: str) -> NoReturn:
        raise LowerscopeError(message, todo=f"See {self.prog} --help")


def add_recipe_options(
    parser: argparse.ArgumentParser, *, several: bool = False, scheduling: bool = False
) -> None:
    """Add the options of a recipe, which are shared by the window's command.

    Parameters
    ----------
    several
        Let those of `SEVERAL` be repeated: each is then a list, or ``None`` if it is not given.
    scheduling
        Let ``--rules`` without a file select the rules that write schedules: ``by_rule`` is then
        true.
    """
    parser.set_defaults(by_rule=False)
    kept: dict[str, Any] = {"action": "append"} if several else {}

    def default(name: str) -> str | None:
        return None if several else SEVERAL[name]

    again = "; repeatable: each is a variant" if several else ""
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
    parser.add_argument(
        "--params", default="", metavar="FILE", help="parameters: .npz, .pkl, .pt or .pth"
    )
    parser.add_argument("--trust", action="store_true", help="open a .pt2 that can run code")
    parser.add_argument(
        "--tracer",
        choices=TRACERS,
        default="auto",
        help="torch.fx, torch.export, or auto: fx, and export for what fx cannot trace (default)",
    )
    parser.add_argument(
        "--importer",
        dest="translator",
        choices=TRANSLATORS,
        default=default("translator"),
        help="what translates the graph: lowerscope (default), or TVM's own from_fx or "
        f"from_exported_program, as they are{again}",
        **kept,
    )
    parser.add_argument(
        "--lowering",
        choices=STRATEGIES,
        default=default("lowering"),
        help=f"default: high-level{again}",
        **kept,
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
        ("passes", "FILE.py", "passes of your own: @tvm.transform.module_pass"),
    ):
        alone = "without a file: schedule by rule. " if scheduling and kind == "rules" else ""
        parser.add_argument(
            f"--{kind}",
            action=_AddExtension,
            dest="extensions",
            default=(),
            metavar=metavar,
            nargs="?" if alone else None,
            help=f"{alone}a file with {what}; repeatable, a later one wins",
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
        "--pipeline",
        default=default("pipeline"),
        metavar="NAME",
        help=f"the passes: {', '.join(each.name for each in PRESETS)}, or a .json file that was "
        f"saved (default legalise){again}",
        **kept,
    )
    parser.add_argument(
        "--pass",
        dest="steps",
        action="append",
        default=[],
        metavar="NAME[:OPTION=VALUE,…]",
        help="a pass after those of the pipeline, as `lowerscope passes --catalogue` names it; "
        "repeatable",
    )
    parser.add_argument(
        "--schedule",
        dest="schedules",
        action="append",
        default=[],
        metavar=f"FILE.json|{RULES}|{TUNED}",
        help="schedules that were saved, applied to the model after its passes, or where they have "
        f"the step ApplySchedules; or {RULES}, for those that rules write; or {TUNED}, for what "
        "lowerscope tune has found; repeatable"
        + (": each is a variant, and none is one without schedules" if several else ""),
    )
    parser.add_argument(
        "--target",
        default=default("target"),
        help=f"llvm, native (this processor), or a TVM target as JSON{again}",
        **kept,
    )
    parser.add_argument(
        "--tolerance",
        dest="tolerances",
        action="append",
        default=[],
        metavar="DTYPE=RTOL,ATOL",
        help="outputs match where |tvm - torch| <= ATOL + RTOL * |torch|, each of "
        f"them by itself (default {'; '.join(tolerance_texts(Tolerances()).values())}); repeatable",
    )
    parser.add_argument(
        "--threads", type=int, default=0, help="of TVM and of torch (default: all that there are)"
    )
    add_remote_options(parser)
    parser.add_argument(
        "--repeats",
        type=int,
        default=0,
        metavar="N",
        help="calls of each side that are timed, by turns (default: as many as a second allows, "
        f"from {LEAST} to {REPEATS})",
    )
    parser.add_argument(
        "--warm-up",
        type=int,
        default=Measuring().warm_up,
        metavar="N",
        help=f"calls of each side before, which do not count (default {Measuring().warm_up})",
    )
    parser.add_argument(
        "--torch-compile",
        action="store_true",
        help="time torch.compile of the model as well: it takes seconds to minutes to compile, and "
        "a C++ compiler",
    )


def add_remote_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for another machine."""
    parser.add_argument(
        "--tracker",
        default="",
        metavar="HOST:PORT",
        help="run on another machine: the address of TVM's RPC tracker; choose its --target",
    )
    parser.add_argument(
        "--key", default="", metavar="KEY", help="with --tracker: the key of its servers"
    )
    parser.add_argument(
        "--remote-timeout",
        type=float,
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"that one answer of the other machine may take (default {TIMEOUT:g})",
    )
