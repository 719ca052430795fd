"""Help and errors of the command line, in the language of the process."""

from __future__ import annotations

import argparse
import re

from lowerscope.core.files.console import columns
from lowerscope.core.model.texts import _, _n

_TEXTS = {
    "usage: ": _("usage: "),
    "positional arguments": _("positional arguments"),
    "options": _("options"),
    "show this help message and exit": _("show this help and exit"),
    "argument %(argument_name)s: %(message)s": _("argument %(argument_name)s: %(message)s"),
    "unrecognized arguments: %s": _("unrecognized arguments: %s"),
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
