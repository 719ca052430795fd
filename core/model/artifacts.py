"""Catalogue of exports by name: for the command line, the dialog and the menus."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePath

import msgspec

from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.texts import _
from lowerscope.resources import SAMPLES


class ExportType(msgspec.Struct, frozen=True):
    """A kind of export."""

    name: str
    group: str
    title: str
    files: str
    # The kind of item that may follow a colon to select one of several, ``function:dense``; empty
    # for none.
    of: str = ""
    hint: str = ""


EXPORTS = (
    ExportType(
        "module",
        _("Module"),
        _("Module as script, with its constants"),
        "module.py",
        hint=_(
            "Read it back by tvm.script.from_source.\nConstants of more than 10 MB are in "
            "module.npz beside it; import it then."
        ),
    ),
    ExportType("script", _("Module"), _("Module as a readable script"), "script.py"),
    ExportType(
        "builder",
        _("Module"),
        _("Block builder program of the module"),
        "builder.py, constants.npz",
    ),
    ExportType("fx", _("Module"), _("Table of FX nodes"), "fx.txt"),
    ExportType(
        "parameters", _("Module"), _("Parameters that are arguments of main"), "parameters.npz"
    ),
    ExportType(
        "step",
        _("Steps"),
        _("Module after each step"),
        "steps/2-FuseOps.py",
        of=_("the number of a step; 0 is before the first"),
    ),
    ExportType(
        "patch",
        _("Steps"),
        _("Changes of each step, as a patch"),
        "patches/2-FuseOps.patch",
        of=_("the number of a step"),
    ),
    ExportType(
        "function",
        _("Steps"),
        _("Each function in a file"),
        "functions/dense.py",
        of=_("the name of a function"),
    ),
    ExportType(
        "schedule",
        _("Schedules"),
        _("Schedules as Python and as JSON"),
        "schedules.json, schedules/dense.py",
        of=_("the name of a function"),
        hint=_("The schedules applied to the model, and the others of the recipe."),
    ),
    ExportType(
        "reproduce",
        _("Programs"),
        _("Program that reproduces the recipe"),
        "reproduce.py",
        hint=_(
            "Needs only torch and TVM: loads the model from its source, lowers it, applies\n"
            "passes and schedules, builds, runs, and asserts that torch computes the same."
        ),
    ),
    ExportType(
        "library",
        _("Programs"),
        _("Compiled library, with a loader"),
        "library/model.so, library/load.py",
        hint=_("Needs a C compiler."),
    ),
    ExportType("fx-graph", _("Graphs"), _("FX graph as a picture"), "fx.svg"),
    ExportType("relax-graph", _("Graphs"), _("Relax graph as a picture"), "relax.svg"),
    ExportType(
        "report", _("Report"), _("Report on a run"), "report.html", hint=_("Runs the model.")
    ),
)
"""All exports, in the order of the dialog."""

DEFAULT = ("module", "builder", "fx", "parameters")
"""Exports written by default, without those that a source does not have."""

ALL = "all"
"""Name that selects all exports that the source has."""

PAINTED = ("svg", "pdf", "png")
"""The formats of graphs that need a painter."""

PICTURES = (*PAINTED, "dot", "graphml", "json")
"""The formats of graphs."""

GRAPHS = {"fx-graph": "fx", "relax-graph": "relax"}
"""Exports that are pictures, with their graphs."""

EXISTS = "export-exists"
"""Problem code of existing files; they are its choices."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A requested export."""

    name: str
    which: str = ""  # the one of several: see `ExportType.of`; empty for all
    asked: bool = True  # whether it was named, so that an error is reported if it is not available


_STEM = r"(?!\.|__|conftest\b|setup\b)[\w.-]{1,200}"
"""Pattern of file names without a meaning for programs that search a folder for files to run."""

_NAMES = {
    "module": r"module\.(py|npz)",
    "script": r"script\.py",
    "builder": r"builder\.py|constants\.npz",
    "fx": r"fx\.txt",
    "parameters": r"parameters\.npz",
    "step": rf"steps/{{which}}-{_STEM}\.(py|npz)",
    "patch": rf"patches/{{which}}-{_STEM}\.patch",
    "function": rf"functions/{_STEM}\.py",
    "schedule": rf"schedules\.json|schedules/{_STEM}\.py",
    "reproduce": r"reproduce\.(py|npz|json)",
    "library": r"library/(model\.so|load\.py|torch_functions\.py|arguments\.npz)",
    "fx-graph": r"fx\.({kinds})",
    "relax-graph": r"relax\.({kinds})",
    "report": r"report\.html",
}
"""Patterns of the file names of an export."""

_PART = re.compile(_STEM)


def announced(
    wanted: Sequence[Wanted], kinds: Sequence[str], registering: Sequence[Path] = ()
) -> Callable[[str], bool]:
    """Return a predicate of the file names that an export may write.

    Args:
        registering: The recipe's files that register functions: a library has copies of them, and
            of their imports from the same folder.
    """
    forms = [
        _NAMES[each.name]
        .replace("{which}", re.escape(each.which) if each.which else r"[\d.]{1,20}")
        .replace("{kinds}", "|".join(map(re.escape, kinds)))
        for each in wanted
    ]
    pattern = re.compile("|".join(forms))
    exports = {each.name for each in wanted}
    libraries = tuple(each.parent for each in registering) if "library" in exports else ()

    def takes(name: str) -> bool:
        path = PurePath(name).parts
        if pattern.fullmatch(name) is not None:
            return True
        if "reproduce" in exports and len(path) == 1:
            return SAMPLES.joinpath(name).is_file()  # the program of a sample needs its files
        return (
            path[0] == "library"
            and all(_PART.fullmatch(each) for each in path)
            and any(folder.joinpath(*path[1:]).is_file() for folder in libraries)
        )

    return takes


class ExportRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of an export: ``paths``, and the exports left out, with the reasons.

    ``notes`` are remarks on the files; it is ``complete`` if no export requested by name is left
    out.
    """

    paths: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    complete: bool = True


def parse_wanted(texts: Iterable[str]) -> tuple[Wanted, ...]:
    """Parse ``module,function:dense`` and the like; return the default for no texts.

    Raises a `LowerscopeError` if there is no export of a name.
    """
    names = [each.strip() for text in texts for each in text.split(",") if each.strip()]
    if not names:
        return tuple(Wanted(name=each, asked=False) for each in DEFAULT)
    known = {each.name: each for each in EXPORTS}
    found: dict[Wanted, None] = {}
    for text in names:
        name, colon, which = text.partition(":")
        if name == ALL and not colon:
            found |= dict.fromkeys(Wanted(name=each, asked=False) for each in known)
            continue
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise LowerscopeError(
                _("there is no {name} to export", name=name),
                where=f"--what {text}",
                todo=_("Did you mean {near}?", near=near[0])
                if near
                else _("Available: {known} and {all}", known=_(", ").join(known), all=ALL),
            )
        if colon and not (known[name].of and which):
            of = known[name].of
            raise LowerscopeError(
                _("{name} has no parts to select", name=name)
                if not of
                else _("nothing is selected after {name}:", name=name),
                where=f"--what {text}",
                todo=_("Write {name}, or {name}: followed by {of}", name=name, of=of)
                if of
                else _("Write {name}", name=name),
            )
        found[Wanted(name=name, which=which)] = None
    return tuple(found)
