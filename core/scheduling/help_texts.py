"""Help on each primitive, with an example, from ``resources/help/primitives.md``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

PAGE = "primitives.md"

_SECTION = re.compile(
    r"^### (?P<name>\w+)\n\n(?P<help>.*?)\n\n"
    r"(?:Before:\n\n```tvmscript\n(?P<before>.*?)\n```\n\n"
    r"After `(?P<call>[^\n]*)`:\n\n```tvmscript\n(?P<after>.*?)\n```\n)?",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class HelpText:
    """Help on a primitive.

    Attributes
    ----------
    help
        A sentence or two.
    before, after
        The loops of an example, in TVMScript; empty without one.
    call
        The call that was applied to it.
    """

    help: str
    before: str = ""
    after: str = ""
    call: str = ""


def page() -> str:
    """Return the page of all primitives."""
    folder = resources.files("lowerscope.resources") / "help"
    return (folder / PAGE).read_text(encoding="utf-8")


@cache
def help_texts() -> dict[str, HelpText]:
    """Return the help texts of the page, by names of primitives."""
    return {
        found["name"]: HelpText(
            help=" ".join(found["help"].split()),
            before=found["before"] or "",
            after=found["after"] or "",
            call=found["call"] or "",
        )
        for found in _SECTION.finditer(page() + "\n")
    }
