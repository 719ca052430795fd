"""Texts go through `lowerscope.core.model.texts`, and their translations are complete."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Message

from lowerscope.app.kit.glossary import PAGE, UNLIKE, file_of, terms
from lowerscope.core.model.texts import LANGUAGES
from tests.catalogue import catalogues, read, texts
from tests.test_architecture import files_of

Field = tuple[str, str, str]


def forms(message: Message, *, translated: bool) -> tuple[str, ...]:
    """Return the singular and the plurals of a text, or of its translation."""
    value = message.string if translated else message.id
    return (value,) if isinstance(value, str) else tuple(value)


def fields(text: str) -> Counter[Field] | None:
    """Return the fields of a text; ``None`` if it has other braces, which nothing fills in."""
    try:
        return Counter(
            (name, spec or "", conversion or "")
            for _literal, name, spec, conversion in Formatter().parse(text)
            if name is not None
        )
    except ValueError:
        return None


def mistakes(message: Message) -> list[str]:
    """Return what is wrong with a translation that is there."""
    found = []
    source = [fields(each) for each in forms(message, translated=False)]
    for text in filter(None, forms(message, translated=True)):
        given = fields(text)
        # A plural form may leave the number out, and repeat no field.
        if not any(given == each for each in source):
            found.append(f"fields of {text!r} are not those of {message.id!r}")
        if text != text.strip() and message.id == str(message.id).strip():
            found.append(f"{text!r} begins or ends with a blank")
        if ("&" in text.replace("&&", "")) != ("&" in str(message.id).replace("&&", "")):
            found.append(f"{text!r} and {message.id!r} differ in their access keys")
    if message.fuzzy:
        found.append(f"{message.id!r} is fuzzy")
    return found


@pytest.fixture(scope="module", name="template")
def _template() -> dict[object, Message]:
    return {each.id: each for each in texts() if each.id}


def test_every_language_has_a_catalogue() -> None:
    assert {path.parent.parent.name for path in catalogues()} | {"en"} == set(LANGUAGES)


@pytest.mark.parametrize("path", catalogues(), ids=lambda path: path.parent.parent.name)
def test_translations_fit_their_texts(path: Path, template: dict[object, Message]) -> None:
    translation = {each.id: each for each in read(path) if each.id}
    assert [found for each in translation.values() for found in mistakes(each)] == []
    missing = [
        key
        for key in template
        if key not in translation or not all(forms(translation[key], translated=True))
    ]
    assert missing == []
    # After ``python -m tests.catalogue``, there are none.
    assert sorted(map(str, translation.keys() - template.keys())) == []


OTHERWISE = {"difference", "library", "source", "step", "trials"}
"""Labels with a meaning that is not the glossary's: of values, functions, code, the mode."""


@pytest.mark.parametrize("path", catalogues(), ids=lambda path: path.parent.parent.name)
def test_labels_are_the_terms_of_the_glossary(path: Path) -> None:
    """A label that is a term in English is the same term in a translation, so that both link."""
    english, other = terms("en"), terms(path.parent.parent.name)
    assert [each.anchor for each in english] == [each.anchor for each in other]
    spelled = {each.anchor: set(each.spellings()) for each in other}
    anchors = {spelling: each.anchor for each in english for spelling in each.spellings()}
    seen, wrong = 0, []
    for message in read(path):
        label = str(message.id).replace("&", "")
        anchor = "" if label in UNLIKE else anchors.get(label.casefold(), "")
        if anchor and label.casefold() not in OTHERWISE:
            seen += 1
            text = re.sub(r"\(&.\)|&", "", str(message.string)).casefold()
            if text not in spelled[anchor]:
                wrong.append(f"{label}: {text}")
    assert wrong == []
    assert seen > 40


@pytest.mark.parametrize("path", catalogues(), ids=lambda path: path.parent.parent.name)
def test_the_glossary_lists_labels_as_the_window_has_them(path: Path) -> None:
    labels = {
        bare(message.id): bare(message.string)
        for message in read(path)
        if isinstance(message.id, str) and isinstance(message.string, str)
    }
    for code in ("en", path.parent.parent.name):
        listed = list(listed_labels(file_of(PAGE, code).read_text("utf-8")))
        assert len(listed) > 20
        assert [(each, labels.get(each)) for each, _translated in listed] == listed


def listed_labels(page: str) -> Iterator[tuple[str, str]]:
    """Yield the labels of the glossary's table with their translations."""
    table = re.split("^## ", page, flags=re.MULTILINE)[-1]
    for row in re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE)[1:]:
        cells = [re.split(", | / |，", re.sub(r" \(.+?\)|（.+?）", "", each)) for each in row]
        yield from zip(*(map(bare, each) for each in cells), strict=True)


def bare(label: str) -> str:
    """Return a label without its access key and the dots of a dialog."""
    return re.sub(r"\(&.\)|&", "", label).removesuffix("…")


def test_texts_name_their_fields(template: dict[object, Message]) -> None:
    wrong = [
        text
        for message in template.values()
        for text in forms(message, translated=False)
        for name, *_rest in fields(text) or ()
        if not name or name.isdigit()
    ]
    assert wrong == []


# The source: a text that goes past the mechanism is in English everywhere.

SHOWN = {
    *("setText", "setToolTip", "setWindowTitle", "setPlaceholderText", "setAccessibleName"),
    *("setAccessibleDescription", "setTitle", "set_text", "set_empty", "notify", "say"),
    *("addAction", "addMenu", "addTab", "addButton", "add_button", "set_context", "set_whole"),
    *("Label", "QAction", "QPushButton", "push_button", "IconButton", "Column", "Segment"),
    *("Fact", "Section", "Cell", "Question", "Pill", "Button", "Problem", "LowerscopeError"),
}
"""Functions and classes that show the texts that they are given."""

CODES = {
    *("role", "code", "where", "object_name", "key", "icon", "of", "name", "kind", "colour"),
    *("key_there", "choices", "text_role", "look", "action"),
}
"""Their arguments that are no texts."""

PLACES = {
    **dict.fromkeys(("Column", "Label", "Cell", "Pill", "Problem"), (0,)),
    "IconButton": (1, 2),
    "Segment": (1, 2),
    "Button": (2,),
    "notify": (0,),
    "say": (0,),
    "add_button": (1, 2),
    "Fact": (0, 1),
    "addTab": (1, 2),
    "set_text": (0,),
    "set_empty": (1,),
}
"""Of some of them, the positions that are texts; of the others, all."""

SAME = {
    *("TensorIR", "TVM", "torch", "Lowerscope", "Relax", "FX", "Python", "NaN", "Aa", "min", "max"),
    *("px", "llvm", "mcpu", "skylake", "kind"),
}
"""Words that are the same in all languages."""

WORD = re.compile(r"[A-Za-z]{2,}")


def untranslated(source: str) -> list[str]:
    """Return the literals of a file that are shown as they are."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name not in SHOWN:
            continue
        places = PLACES.get(name, range(len(node.args)))
        arguments = [each for place, each in enumerate(node.args) if place in places]
        arguments += [each.value for each in node.keywords if each.arg not in CODES]
        found += [text for each in arguments for text in literals(each) if words_of(text)]
    return found


def literals(node: ast.expr) -> list[str]:
    """Return the texts that an expression consists of, outside of calls."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return [text for each in node.values for text in literals(each)]
    if isinstance(node, ast.IfExp):
        return literals(node.body) + literals(node.orelse)
    if isinstance(node, ast.BinOp):
        return literals(node.left) + literals(node.right)
    return []


def words_of(text: str) -> list[str]:
    """Return the words of a text that would have to be translated."""
    if re.search(r"Ctrl|Shift|Alt\+|^[.*]|^-", text):
        return []
    return [each for each in WORD.findall(text) if each not in SAME]


IN_BRACES = re.compile(r"\{.*\b_n?\(")


def test_no_text_is_inside_an_f_string() -> None:
    """The extraction does not look there."""
    found = [
        f"{path.name}:{call.lineno}"
        for part in ("lowerscope.app", "lowerscope.core")
        for path in files_of(part)
        # Few files have a text behind a brace, and most of those a dictionary of texts.
        if IN_BRACES.search(source := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.JoinedStr)
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("_", "_n")
    ]
    assert found == []


def test_the_window_shows_no_text_as_it_is_written() -> None:
    found = {
        str(path): wrong
        for path in files_of("lowerscope.app")
        if (wrong := untranslated(path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "label.setText('Nothing')",
        "Label(f'{count} steps', role='quiet')",
        "box.setToolTip(_('A') if on else 'Off')",
        "document.notify('It is gone', 'wrong')",
    ],
)
def test_a_text_past_the_mechanism_is_found(source: str) -> None:
    assert untranslated(source)
