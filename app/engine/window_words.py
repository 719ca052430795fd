"""Remedies of problems in the words of the window: places in it, not options of the command line.

`core` serves both, and its messages name options.
"""

from __future__ import annotations

import re

import msgspec

from lowerscope.core.model.problems import Problem
from lowerscope.core.model.texts import _, language

_REMEDIES = (
    (r"Give (?:--input \S+ ?)+with your own shapes", "Give shapes in Edit → Inputs"),
    (r"(?:give|try) (?:--input \S+ ?)+", "give it in Edit → Inputs "),
    (r"[Gg]ive these, for example --input \S+", "Give these in Edit → Inputs"),
    (r"narrow --dim (\w+)", r"narrow the range of \1 in Edit → Inputs"),
    (r"[Dd]eclare it with --dim (\w+)=[^\s,]+", r"Give the range of \1 in Edit → Inputs"),
    (r"widen it with --dim", "widen the range"),
    (r"[Gg]ive the parameters with --params \S+", "Choose Edit → Parameters → Load parameters"),
    (r" with --params [^\s,]+, or in .*", " and choose Edit → Parameters → Load parameters"),
    (r" by --params, or by .*", " by Edit → Parameters → Load parameters"),
    (r"try --tracer export", "choose Explore → Trace with → Trace with torch.export"),
    (r"try --tracer fx", "choose Explore → Trace with → Trace with torch.fx"),
    (r"leave out --tracer(?: \w+)?", "choose Explore → Trace with → Trace automatically"),
    (
        r"choose --importer tvm-fx",
        "choose Explore → Translate with → Translate with TVM's importer from_fx",
    ),
    (
        r"choose --importer tvm-export",
        "choose Explore → Translate with → Translate with TVM's importer from_exported_program",
    ),
    (r"choose --importer [^\s,]+", "choose Explore → Translate with"),
    (r" \(--importer lowerscope\)", " (Explore → Translate with)"),
    (r"give that with --library", "load it: Explore → Load a library file"),
    (r" with --library", ": Explore → Load a library file"),
    (r"give that with --passes", "load it: Step → Pipeline → Load passes of your own"),
    (r"only with --rules", "only when it is loaded: Explore → Rules and library files"),
    (r"`lowerscope passes --catalogue`", "Step → Pipeline → Add a pass"),
    (
        r"[Ll]ower the model with --params-as-inputs",
        "Choose Edit → Parameters → Parameters as inputs",
    ),
    (r", or give --schedule", ""),
    (r"Leave --tracker and --key out, or c", "C"),
    (r", with --tracker \S+ --key \S+ or (Target, Remote machine…)", r": \1"),
    (r"give another --tracker", "give another address"),
    (r"Give both: --tracker \S+ --key \S+", "Give both: the tracker and the key"),
    (r": --tracker HOST:PORT", ": HOST:PORT"),
    (r" with --remote-timeout SECONDS", ": Run → Target → Remote machine…"),
    (r", --target '(.*)'", r": \1"),
    (r"; or --memory-limit\)", ")"),
    (r"lowerscope cache --clear", "Tools → Clear caches"),
    (r"lowerscope tune SOURCE --function \S+", "Schedule → Tune…"),
    (r"[Oo]pen it with --trust only", "Open it anyway only"),
    (r"([Ll])eave --args out", r"\1eave the arguments empty"),
    (r"--args '(.*)'", r"\1"),
    (r"or add --force to overwrite it", "or overwrite it"),
    (r"the command lowerscope, or --picture dot", "the format dot"),
    (r"Give for example --tolerance \S+; i", "I"),
    (r"Give for example --pass .*", "Give the name of a pass"),
    (r"`lowerscope run` and --what report compare", "Run (F5) compares"),
    (r",? (?:for example|such as) --[\w-]+ \S+", ""),
)
"""Patterns of options in English remedies, with what to do in the window; the last one removes
examples."""

_MENUS = (
    (r"，例如 ?(?=--input)", "："),
    (r"--input [!-~]+(?: --input [!-~]+)*", _("Edit → Inputs…")),
    (r"--(?:dim|sizes) [!-~]+", _("Edit → Inputs…")),
    (r"--params-as-inputs", _("Edit → Parameters → Parameters as inputs")),
    (r"--params [!-~]+", _("Edit → Parameters → Load parameters from a file…")),
    (r"--tracer export", _("Explore → Trace with → Trace with torch.export")),
    (r"--tracer fx", _("Explore → Trace with → Trace with torch.fx")),
    (r"--tracer [\w-]+", _("Explore → Trace with → Trace automatically")),
    (r"--importer tvm-fx", _("Explore → Translate with → Translate with TVM's importer from_fx")),
    (
        r"--importer tvm-export",
        _("Explore → Translate with → Translate with TVM's importer from_exported_program"),
    ),
    (r"--importer [\w-]+", _("Explore → Translate with")),
    (r"--library(?: [!-~]+)?", _("Explore → Load a library file…")),
)
"""Patterns of options with the menus that do the same: for remedies in other languages."""

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
    todo = _replaced(problem.todo, _REMEDIES if language() == "en" else _MENUS).strip(" ,;")
    where = _replaced(problem.where, _PLACES)
    return msgspec.structs.replace(problem, where=where, todo=f"{todo[:1].upper()}{todo[1:]}")


def _replaced(text: str, patterns: tuple[tuple[str, str], ...]) -> str:
    for pattern, words in patterns:
        text = re.sub(pattern, words, text)
    return text
