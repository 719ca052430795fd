"""Texts in the language of the process, which is fixed when it starts."""

from __future__ import annotations

import os
from gettext import NullTranslations, translation
from pathlib import Path

VARIABLE = "LOWERSCOPE_LANGUAGE"
"""Name of the environment variable with the language, such as ``en``; by default the locale's."""

CATALOGUES = Path(__file__).parents[2] / "resources" / "locale"

LANGUAGES = {"en": "English", "zh_CN": "中文"}
"""Name of each language in itself, by its code."""


def _catalogue() -> NullTranslations:
    """Return the catalogue of the language; without one, texts stay in English."""
    names = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
    wanted = os.environ.get(VARIABLE) or next(filter(None, map(os.environ.get, names)), "en")
    # The first of several: that of the second is not preferred to English.
    first = wanted.partition(":")[0]
    return translation("lowerscope", CATALOGUES, languages=[first], fallback=True)


_texts = _catalogue()


def set_language(code: str) -> None:
    """Set the language of this process, before it imports what has texts, and of its children."""
    global _texts
    os.environ[VARIABLE] = code
    _texts = _catalogue()


def language() -> str:
    """Return the code of the language that texts are in."""
    return _texts.info().get("language", "en")


def _(text: str, /, **values: object) -> str:
    """Return a text in the language of the process, its fields ``{name}`` filled in."""
    text = _texts.gettext(text)
    return text.format(**values) if values else text


def _n(singular: str, plural: str, count: int, /, **values: object) -> str:
    """Return the form of a text for a number, which is its field ``{count}``."""
    return _texts.ngettext(singular, plural, count).format(count=count, **values)
