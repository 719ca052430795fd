"""The help in the window: its list, search and history, and commands that open what they show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QTreeWidgetItem
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import help_key
from lowerscope.app.kit.glossary import anchor_of, link
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.shell import help_pages
from lowerscope.app.shell.help_window import CommandView, HelpWindow
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import Extension, Override, Recipe
from lowerscope.resources import HELP


class Opened:
    """A help window, and what its pages asked for."""

    def __init__(self, qtbot: QtBot, page: str = "tour") -> None:
        self.recipes: list[Recipe] = []
        self.views: list[CommandView] = []
        self.problems: list[Problem] = []
        self.window = HelpWindow(self._open, self.problems.append)
        qtbot.addWidget(self.window)
        self.window.show_page(page)
        self.window.show()
        with qtbot.waitActive(self.window):
            self.window.activateWindow()

    def _open(self, recipe: Recipe, view: CommandView) -> None:
        self.recipes.append(recipe)
        self.views.append(view)

    def link_of(self, text: str) -> QUrl:
        """Return the link on a piece of the page."""
        block = self.window.page.document().begin()
        while block.isValid():
            pieces = block.begin()
            while not pieces.atEnd():
                fragment = pieces.fragment()
                if fragment.text() == text and fragment.charFormat().isAnchor():
                    return QUrl(fragment.charFormat().anchorHref())
                pieces += 1
            block = block.next()
        raise AssertionError(f"the page has no link on {text}")

    def click(self, text: str) -> None:
        self.window.page.anchorClicked.emit(self.link_of(text))

    def rows(self) -> list[QTreeWidgetItem]:
        tree = self.window.list
        items = [tree.topLevelItem(index) for index in range(tree.topLevelItemCount())]
        return [item for item in items if item is not None]

    def heading(self) -> str:
        return self.window.page.document().begin().text()


@pytest.fixture
def opened(qtbot: QtBot) -> Opened:
    return Opened(qtbot)


def test_every_page_is_listed_and_shown(opened: Opened) -> None:
    names = [entry.name for entry in help_pages.entries()]
    assert sorted([*names, help_pages.CONTENTS]) == sorted(each.stem for each in HELP.glob("*.md"))
    listed = [item.text(0) for item in opened.rows()]
    for entry in help_pages.entries():
        assert entry.title in listed
        text = help_pages.text_of(entry.name)
        opened.window.show_page(entry.name)
        assert opened.heading() == text.partition("\n")[0].removeprefix("# ")
        assert opened.window.list.currentItem().text(0) == entry.title


@pytest.mark.x
def test_the_search_finds_sections_and_marks_the_words(opened: Opened) -> None:
    window = opened.window
    QTest.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert window.search.hasFocus()
    QTest.keyClicks(window.search, "limit memory")
    head, *hits = [item.text(0) for item in opened.rows()]
    assert re.fullmatch(rf"{len(hits)} sections(, \d+ with all words)?", head)
    assert "Crashes, hangs and memory limits" in hits
    for _ in range(hits.index("Crashes, hangs and memory limits")):
        QTest.keyClick(window.search, Qt.Key.Key_Down)
    QTest.keyClick(window.search, Qt.Key.Key_Return)
    assert opened.heading() == "Crashes, hangs and memory limits"
    marked = {each.cursor.selectedText().lower() for each in window.page.extraSelections()}
    assert marked == {"limit", "memory"}
    window.search.setText("optimise for cpu FoldBatchNorm")
    QTest.keyClick(window.search, Qt.Key.Key_Return)
    assert window.place().anchor == "optimise-for-cpu"
    # It is scrolled to the section.
    assert window.page.textCursor().block().text() == "Optimise for CPU"
    assert window.page.verticalScrollBar().value() > 100
    window.search.setText("xylophone quokkas")
    assert [item.text(0) for item in opened.rows()] == ["No results: try other words"]
    QTest.keyClick(window.search, Qt.Key.Key_Escape)
    assert window.search.text() == ""
    assert len(opened.rows()) > len(help_pages.entries())
    QTest.keyClick(window, Qt.Key.Key_Escape)
    assert not window.isVisible()


@pytest.mark.x
def test_keys_move_between_the_parts_of_the_window(opened: Opened) -> None:
    window = opened.window
    window.page.setFocus()
    window.show_page("course")
    parts = (window.course.write, window.search, window.list, window.page)
    for key, modifier in (
        (Qt.Key.Key_F6, Qt.KeyboardModifier.NoModifier),
        (Qt.Key.Key_Tab, Qt.KeyboardModifier.ControlModifier),
    ):
        for part in parts:
            QTest.keyClick(window.focusWidget(), key, modifier)
            assert part.hasFocus()
        for part in (*reversed(parts[:-1]), parts[-1]):
            QTest.keyClick(window.focusWidget(), key, modifier | Qt.KeyboardModifier.ShiftModifier)
            assert part.hasFocus()
    # Without its row, the course has no part below the page.
    window.show_page("tour")
    QTest.keyClick(window.focusWidget(), Qt.Key.Key_F6)
    assert window.search.hasFocus()


def test_a_page_that_is_opened_again_is_where_its_reader_left_it(opened: Opened) -> None:
    window, bar = opened.window, opened.window.page.verticalScrollBar()
    window.show_page("course", "the-perceptron")
    place = bar.value()
    assert place > 0
    bar.setValue(place - 100)
    window.show_page("course")
    assert bar.value() == place - 100
    window.show_page("course", "the-perceptron")
    assert bar.value() == place
    window.go_back()
    assert opened.heading() == "A five-minute tour"


@pytest.mark.x
def test_tab_goes_to_the_links_that_are_visible(opened: Opened) -> None:
    window, page = opened.window, opened.window.page
    window.show_page("course")
    page.setFocus()
    QTest.keyClick(page, Qt.Key.Key_Tab)
    first = page.textCursor().selectedText()
    window.show_page("course", "the-perceptron")
    QTest.keyClick(page, Qt.Key.Key_Tab)
    assert page.textCursor().selectedText().startswith("lowerscope run sample:fashion_mlp --params")
    QTest.keyClick(page, Qt.Key.Key_Tab)
    assert page.textCursor().selectedText().startswith("lowerscope show sample:fashion_mlp")
    QTest.keyClick(page, Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier)
    assert page.textCursor().selectedText().startswith("lowerscope run sample:fashion_mlp --params")
    page.verticalScrollBar().setValue(0)
    QTest.keyClick(page, Qt.Key.Key_Tab)
    assert page.textCursor().selectedText() == first


@pytest.mark.x
def test_back_and_forward_come_to_the_place_that_was_left(opened: Opened) -> None:
    window = opened.window
    alt = Qt.KeyboardModifier.AltModifier
    assert not window.back.isEnabled()
    opened.click("steps")
    assert opened.heading() == "Steps and pipeline"
    window.page.verticalScrollBar().setValue(60)
    window.show_page("relax")
    opened.click("Graphs")
    assert opened.heading() == "Graphs"
    for before in ("Relax", "Steps and pipeline", "A five-minute tour"):
        QTest.keyClick(window, Qt.Key.Key_Left, alt)
        assert opened.heading() == before
    assert not window.back.isEnabled()
    QTest.keyClick(window, Qt.Key.Key_Right, alt)
    assert opened.heading() == "Steps and pipeline"
    assert window.page.verticalScrollBar().value() == 60
    window.show_page("details")
    assert not window.forward.isEnabled()
    # Links are reached by keyboard, and followed.
    window.page.setFocus()
    QTest.keyClick(window.page, Qt.Key.Key_Tab)
    QTest.keyClick(window.page, Qt.Key.Key_Return)
    assert opened.heading() == "Compare"


def test_pages_are_in_the_language_of_the_window(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (help_pages.text_of, help_pages.entries):
        monkeypatch.setattr(help_pages, each.__name__, each.__wrapped__)
    monkeypatch.setattr(help_pages, "language", lambda: "zh_CN")
    opened = Opened(qtbot, "glossary")
    assert opened.heading() == "术语表"
    # Sections have the anchors of the English page.
    opened.window.show_page("glossary", "dataflow-block")
    assert opened.window.page.textCursor().block().text() == "数据流块"
    # What is not translated is in English, and comments are never shown.
    opened.window.show_page("add-sample")
    assert opened.heading() == "Add a sample"
    names = [entry.name for entry in help_pages.entries()]
    assert sorted([*names, help_pages.CONTENTS]) == sorted(each.stem for each in HELP.glob("*.md"))
    opened.window.show_page(help_pages.CONTENTS)
    assert "<!--" not in opened.window.page.toPlainText()


def test_a_command_opens_with_its_options(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Opened(qtbot, "course")
    asked = staticmethod(lambda *_: str(tmp_path))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", asked)
    opened.click(
        "lowerscope run sample:fashion_mlp --params course/mlp_params.pkl --lowering te "
        "--rules course/topi_rules.py"
    )
    (recipe,) = opened.recipes
    assert recipe.lowering == "te"
    assert recipe.source.params == str(tmp_path / "course" / "mlp_params.pkl")
    rules = str(tmp_path / "course" / "topi_rules.py")
    assert recipe.extensions == (Extension(path=rules, kind="rules"),)
    assert Path(rules).exists()
    assert opened.window.course.where.text() == str(tmp_path / "course")


def test_a_sample_opens_without_files(qtbot: QtBot) -> None:
    opened = Opened(qtbot, "course")
    assert opened.window.course.isVisible()
    opened.click("lowerscope run sample:fashion_mlp --override linear1=te --override relu=library")
    (recipe,) = opened.recipes
    assert recipe.overrides == (
        Override(pattern="linear1", strategy="te"),
        Override(pattern="relu", strategy="library"),
    )
    assert not opened.problems
    # A page that needs none of the files does not ask for them.
    opened.window.show_page("command-line")
    assert not opened.window.course.isVisible()
    opened.click("lowerscope show sample:fashion_mlp --stage relax --lowering te")
    assert opened.recipes[1].lowering == "te"
    assert opened.views == [CommandView("outcome"), CommandView("relax", "script")]


def test_a_folder_that_cannot_be_written_is_told(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    opened = Opened(qtbot)
    opened.window.course.write_files(tmp_path / "file" / "course")
    assert [problem.what.startswith("it cannot be written") for problem in opened.problems] == [
        True
    ]


def test_each_dialog_offers_a_page_that_there_is() -> None:
    offered = []
    for folder in ("panes", "shell"):
        for file in (Path(help_key.__file__).parents[1] / folder).glob("**/*.py"):
            text = file.read_text("utf-8")
            for each in re.split(r"^(?=class )", text, flags=re.MULTILINE):
                if re.match(r"class \w+\((Dialog|Finder)\):$", each, re.MULTILINE):
                    pages = re.findall(r'offer_help\(self, "([^"]+)"\)', each)
                    assert len(pages) == 1, file.name
                    offered += pages
    assert len(offered) > 15
    for page in offered:
        name, _, anchor = page.partition("#")
        assert help_pages.is_page(name), page
        headings = re.findall(r"^#+ (.+)$", help_pages.text_of(name), re.MULTILINE)
        assert not anchor or anchor in map(anchor_of, headings), page


def test_a_label_that_is_a_term_opens_the_glossary(qtbot: QtBot) -> None:
    for text, page in (("bindings", "glossary#binding"), ("TE", "glossary#te"), ("source", "")):
        label = Label(text)
        qtbot.addWidget(label)
        link(label, text)
        opened: list[str] = []
        slot = help_key.notifier().wanted.connect(lambda _, page, seen=opened: seen.append(page))
        QTest.mouseClick(label, Qt.MouseButton.LeftButton)
        help_key.notifier().wanted.disconnect(slot)
        assert opened == [page] * bool(page)
