"""Remedies of problems in the words of the window: places in it, not options of the command line.

`core` serves both, and its messages name options.
"""

from __future__ import annotations

import re

import msgspec

from lowerscope.core.model.problems import Problem
from lowerscope.core.model.snapshot import Note
from lowerscope.core.model.texts import _

REMEDIES = (
    (r"--input [!-~]+(?: --input [!-~]+)*(?<!;)", _("Edit → Inputs…")),
    (r"--dim [!-~]+(?<!;)", _("Edit → Inputs…")),
    (r"--params-as-inputs", _("Edit → Parameters → Parameters as inputs")),
    (r"--params [!-~]+", _("Edit → Parameters → Load parameters from a file…")),
    (r"--args '(.*)'", r"\1"),
    (r"--tracer export", _("Explore → Trace with → Trace with torch.export")),
    (r"--tracer fx", _("Explore → Trace with → Trace with torch.fx")),
    (r"(?<!\S)--tracer auto", _("Explore → Trace with → Trace automatically")),
    (r"--importer tvm-fx", _("Explore → Translate with → Translate with TVM's importer from_fx")),
    (
        r"--importer tvm-export",
        _("Explore → Translate with → Translate with TVM's importer from_exported_program"),
    ),
    (r"--importer lowerscope", _("Explore → Translate with → Translate with Lowerscope's rules")),
    (r"--library FILE", _("Explore → Load a library file…")),
    (r"--passes FILE", _("Step → Pipeline → Load passes of your own…")),
    (r"lowerscope passes --catalogue", _("Step → Pipeline → Add a pass…")),
    (r"--schedule FILE", _("Schedule → History → Load JSON…")),
    (r"lowerscope tune SOURCE --function \S+", _("Schedule → Tune…")),
    (r"--(?:tracker \S+ --key \S+|remote-timeout \S+)(?<!;)", _("Run → Target → Remote machine…")),
    (r"--memory-limit GB", _("Tools → Memory limit of the worker…")),
    (r"lowerscope cache --clear", _("Tools → Clear caches…")),
    # The window asks first.
    (r": --(?:force|trust)", ""),
)
"""Patterns of options in remedies, with the commands of the window that do the same."""

_PLACES = (
    (r"^--input (\w+)", _(r"the input \1")),
    (r"--(?:dim|sizes) (\w+)\S*", _(r"the dimension \1")),
    (r"--(?:dim|sizes)", _("the dimensions")),
    (r"--importer \S+", _("Explore → Translate with")),
    (r"--lowering \S+", _("the lowering")),
    (r"--override (\S+)", _(r"the lowering of \1")),
    (r"(?<!\S)--(\w[\w-]*)", r"\1"),
)
"""Patterns of options where something is wrong."""


def in_window(problem: Problem) -> Problem:
    """Return a problem whose place and remedy name no option of the command line."""
    if "--" not in problem.where and "--" not in problem.todo:
        return problem
    todo = _replaced(problem.todo, REMEDIES)
    where = _replaced(problem.where, _PLACES)
    return msgspec.structs.replace(problem, where=where, todo=f"{todo[:1].upper()}{todo[1:]}")


def line_in_window(text: str) -> str:
    """Return a text whose remedy names no option of the command line."""
    return _replaced(text, REMEDIES)


def note_in_window(note: Note) -> Note:
    """Return a note whose place and remedy name no option of the command line."""
    where = _replaced(note.where, _PLACES)
    return msgspec.structs.replace(note, where=where, todo=line_in_window(note.todo))


def _replaced(text: str, patterns: tuple[tuple[str, str], ...]) -> str:
    for pattern, words in patterns:
        text = re.sub(pattern, words, text)
    return text
