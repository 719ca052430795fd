"""Help on the command line, in the language of the process."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable

from lowerscope.core.files.console import columns
from lowerscope.core.model.texts import _


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
