"""Colours of words."""

from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QPlainTextDocumentLayout
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.code.highlighter import Highlighter, OpenQuotes
from lowerscope.app.kit.theme import LIGHT, Theme


def coloured(text: str, language: str, theme: Theme = LIGHT) -> list[list[tuple[str, str]]]:
    """Each line's coloured words, with their colours."""
    document = QTextDocument()
    document.setDocumentLayout(QPlainTextDocumentLayout(document))
    document.setPlainText(text)
    highlighter = Highlighter(document)
    highlighter.set_theme(theme)
    highlighter.set_text(text, language)
    blocks = [(row, document.findBlockByNumber(row)) for row in range(document.blockCount())]
    while not highlighter.colour(blocks):
        pass  # its time for a turn of the event loop ran out
    result = []
    block = document.firstBlock()
    while block.isValid():
        units = block.text().encode("utf-16-le")
        words = []
        for part in block.layout().formats():
            cut = units[2 * part.start : 2 * (part.start + part.length)].decode("utf-16-le")
            words.append((cut, part.format.foreground().color().name()))
        result.append(words)
        block = block.next()
    return result


def test_script_words_have_their_colours(qtbot: QtBot) -> None:
    lines = coloured('@T.prim_func\ndef f(x="a", n=12):  # why\n    return None', "tvmscript")
    assert ("@T", LIGHT.decorator) in lines[0]
    assert ("def", LIGHT.keyword) in lines[1]
    assert ("f", LIGHT.function) in lines[1]
    assert ("12", LIGHT.number) in lines[1]
    assert ("# why", LIGHT.comment) in lines[1]
    assert "".join(word for word, colour in lines[1] if colour == LIGHT.string) == '"a"'
    assert ("None", LIGHT.keyword) in lines[2]


def test_python_is_coloured_in_its_context(qtbot: QtBot) -> None:
    text = "class len: x.sum = sum(f'a{len(b)!r:>4}c', rb'\\'') if not 0x1f else match"
    words = coloured(f"{text}\nmatch x:\n    def for_(self): super().__init__(1e-3)", "python")
    string, keyword, builtin = LIGHT.string, LIGHT.keyword, LIGHT.builtin
    assert words[0] == [
        ("class", keyword),
        ("sum", builtin),
        ("f'a{", string),
        ("len", builtin),
        ("!r:>4}c'", string),
        ("rb'\\''", string),
        ("if", keyword),
        ("not", keyword),
        ("0x1f", LIGHT.number),
        ("else", keyword),
    ]
    assert words[1] == [("match", keyword)]
    assert words[2] == [
        ("def", keyword),
        ("for_", LIGHT.function),
        ("super", builtin),
        ("__init__", LIGHT.function),
        ("1e-3", LIGHT.number),
    ]


def test_strings_of_several_lines_are_strings(qtbot: QtBot) -> None:
    lines = coloured('def f():\n    """Say\n    for x\n    """ + 1\n    x = 2', "python")
    assert lines[2] == [("    for x", LIGHT.string)]
    assert lines[3][0] == ('    """', LIGHT.string)
    assert ("1", LIGHT.number) in lines[3]
    assert lines[4] == [("2", LIGHT.number)]


def test_quotes_in_comments_and_strings_open_nothing() -> None:
    def open_quotes(text: str) -> dict[int, str]:
        quotes = OpenQuotes(text)
        return {n: found for n in range(text.count("\n") + 1) if (found := quotes.at(n))}

    assert open_quotes('# """\nx = 1\ny = \'"""\'\nz = 2') == {}
    assert open_quotes("a = '''\nb\n'''\nc\n\"\"\"d\n\"\"\"") == {1: "'''", 2: "'''", 5: '"""'}
    assert open_quotes('"""\nnever closed') == {1: '"""'}
    lines = 5_000
    long = "x = 'some text that is no string of several lines'\n" * lines
    assert open_quotes(f'{long}"""\nb"""\n# \'\'\'\n{long}') == {lines + 1: '"""'}
