"""Texts in the language of the process, which is fixed when it starts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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


class Text(str):
    """A text that is not in English, with its English.

    Files for other programs and other people are in English, whatever the language of the window.
    """

    __slots__ = ("english",)

    english: str

    def format(self, *args: object, **values: object) -> str:
        """Return the text with its fields filled in, which keeps its English."""
        return _text(self, self.english, values)

    def join(self, parts: Iterable[str], /) -> str:
        """Return texts with this one between them, which keep their English."""
        return joined(self, parts)


_received: dict[str, str] = {}
MOST_RECEIVED = 10_000
"""Texts of other processes that are kept with their English; of more, the first are forgotten."""

LONGEST_RECEIVED = 2_000
"""Characters of such a text; what runs a model's code may send any."""


def keep_english(texts: Mapping[str, str]) -> None:
    """Keep the English of texts that another process made, for `english`."""
    for text, source in texts.items():
        if len(text) <= LONGEST_RECEIVED and len(source) <= LONGEST_RECEIVED:
            _received[text] = source
    while len(_received) > MOST_RECEIVED:
        del _received[next(iter(_received))]


def english(text: str) -> str:
    """Return a text that Lowerscope made in English; any other is returned as it is."""
    return text.english if isinstance(text, Text) else _received.get(text, text)


def _text(shown: str, source: str, values: Mapping[str, object]) -> str:
    """Return a text in the language of the process, with the English one if that is another."""
    if shown is source:
        return shown.format(**values) if values else shown
    made = Text(str.format(shown, **values) if values else shown)
    given = {
        name: english(each) if isinstance(each, str) else each for name, each in values.items()
    }
    made.english = source.format(**given) if values else source
    return made


def _(text: str, /, **values: object) -> str:
    """Return a text in the language of the process, its fields ``{name}`` filled in."""
    return _text(_texts.gettext(text), text, values)


def _n(singular: str, plural: str, count: int, /, **values: object) -> str:
    """Return the form of a text for a number, which is its field ``{count}``."""
    source = singular if count == 1 else plural
    return _text(_texts.ngettext(singular, plural, count), source, {"count": count, **values})


def sentences(*texts: str) -> str:
    """Return sentences as one text; Chinese has no blanks between them."""
    whole = ""
    for each in filter(None, texts):
        whole = _("{first} {second}", first=whole, second=each) if whole else each
    return whole


def labelled(label: str, text: str) -> str:
    """Return a text behind its label: ``label: text``."""
    return _("{name}: {said}", name=label, said=text)


def joined(separator: str, parts: Iterable[str]) -> str:
    """Return texts as one, which keeps their English."""
    parts = tuple(parts)
    made = Text(str.join(separator, parts))
    made.english = english(separator).join(map(english, parts))
    return made if made.english != made else str(made)


def enumeration(parts: Sequence[str]) -> str:
    """Return parts with a conjunction before the last: ``a, b and c``."""
    if len(parts) < 2:
        return parts[0] if parts else ""
    return _("{others} and {last}", others=joined(_(", "), parts[:-1]), last=parts[-1])


def alternatives(parts: Sequence[str]) -> str:
    """Return parts of which one is to be chosen: ``a, b or c``."""
    if len(parts) < 2:
        return parts[0] if parts else ""
    return _("{others} or {last}", others=joined(_(", "), parts[:-1]), last=parts[-1])


_NAME = re.compile(r"\w*(?:[_\d(]|\.\w)")


def capitalized(text: str) -> str:
    """Return a text with a capital letter at its beginning; ``torch.fx`` and ``lv1`` stay."""
    return _in_both(text, _capitalized)


def without_stop(text: str) -> str:
    """Return a sentence without its full stop, to go on with it."""
    return _in_both(text, lambda each: each.rstrip(".。"))


def _in_both(text: str, change: Callable[[str], str]) -> str:
    """Return a text that is changed in the language of the process and in English."""
    made = Text(change(str(text)))
    made.english = change(english(text))
    return made if made.english != made else str(made)


def _capitalized(text: str) -> str:
    return text if _NAME.match(text) else text[:1].upper() + text[1:]
