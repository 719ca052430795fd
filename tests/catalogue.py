"""Texts of the code and their catalogues, which ``python -m tests.catalogue`` updates.

It adds new texts, removes those that are gone, and compiles, so that the window shows them.
"""

from __future__ import annotations

from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from lowerscope.core.files.samples import SAMPLES, title_of

PROJECT = Path(__file__).parent.parent

KEYWORDS = {"_": None, "_n": (1, 2), "reason": None, "reason_n": (1, 2), "effect_n": (2, 3)}


def texts() -> Catalog:
    """Return the texts of the code, without translations."""
    found = Catalog(project="lowerscope", version="", charset="utf-8")
    forms: dict[str, bool] = {}
    for folder in ("app", "core"):
        for name, line, text, comments, _context in extract_from_dir(
            PROJECT / folder, keywords=KEYWORDS, comment_tags=("Translators:",)
        ):
            found.add(text, None, [(f"{folder}/{name}", line)], auto_comments=comments)
            # One entry has no room for both a text and the forms of a text.
            single = text if isinstance(text, str) else text[0]
            assert forms.setdefault(single, text is single) == (text is single), single
    for sample in SAMPLES:
        found.add(title_of(sample), None, [(f"resources/samples/{sample}.py", 1)])
    return found


def catalogues() -> list[Path]:
    """Return the files of all translations."""
    return sorted(PROJECT.glob("resources/locale/*/LC_MESSAGES/lowerscope.po"))


def read(path: Path) -> Catalog:
    """Return a translation."""
    with path.open("rb") as file:
        return read_po(file)


def write(path: Path, translation: Catalog) -> None:
    """Write a translation to its file, and compiled beside it."""
    with path.open("wb") as file:
        # Without line numbers and dates, which would change with every change of the code.
        write_po(file, translation, width=100, sort_by_file=True, include_lineno=False)
    with path.with_suffix(".mo").open("wb") as file:
        write_mo(file, translation)


def update() -> None:
    """Bring all translations up to date with the texts of the code."""
    template = texts()
    for path in catalogues():
        translation = read(path)
        translation.update(template, no_fuzzy_matching=True, update_creation_date=False)
        translation.obsolete.clear()
        for message in translation:
            if message.id and message.fuzzy:
                # It has become a plural, or ceased to be one.
                message.flags.discard("fuzzy")
                message.string = ("",) if message.pluralizable else ""
        write(path, translation)


if __name__ == "__main__":
    update()
