"""Texts of files and of children are shown as they are: they format nothing and open nothing."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt, QUrl
from PySide6.QtGui import QAction, QImage, QTextDocument
from PySide6.QtWidgets import QAbstractItemView, QApplication, QLabel, QListView, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.markdown_view import MarkdownView
from lowerscope.app.kit.plain_text import Label, MarkupLabel, literal
from lowerscope.app.shell.palette import Palette
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.sessions import save_session
from lowerscope.core.model.machines import Remote
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import Recipe, Source, WindowLayout
from lowerscope.core.model.schedule import At, Primitive, Schedule
from lowerscope.resources import HELP
from tests.app.test_dialogs_by_keys import DIALOGS
from tests.end_to_end.driving import OpenWindow, wait_until
from tests.test_architecture import files_of

IMAGE = QTextDocument.ResourceType.ImageResource.value

pytestmark = pytest.mark.qt_log_ignore(
    "This plugin does not support", "QFile::at: Cannot set file position", extend=True
)


class Trap:
    """A file of which is known whether it was opened: a FIFO with a process at its other end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mark = path.with_name(f"{path.name}-opened")
        subprocess.run(["mkfifo", str(path)], check=True)
        write = 'while :; do exec 3>"$0"; echo >"$1"; exec 3>&-; done'
        self._writer = subprocess.Popen(["sh", "-c", write, str(path), str(self._mark)])

    @property
    def opened(self) -> bool:
        """Return whether anybody has read from it, once the writer has had time for the mark."""
        return self._mark.exists()

    def close(self) -> None:
        self._writer.kill()
        self._writer.wait()


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Trap]:
    trap = Trap(tmp_path / "trap")
    yield trap
    trap.close()


def evil(trap: Trap) -> str:
    """Return a text that opens the trap where it is taken for HTML."""
    return f"<img src='{trap.path}'>&amp;<b>x</b>"


def drawn(widget: QWidget) -> QWidget:
    """Draw a widget, as on its first paint, and return it."""
    widget.show()
    widget.grab()
    return widget


def tip_label() -> QLabel:
    """Return the label of the tool tip that is shown."""
    labels = [each for each in QApplication.topLevelWidgets() if isinstance(each, QLabel)]
    return next(each for each in labels if each.objectName() == "qtooltip_label")


# The source: there is no other way to make what shows a text.

RICH = {
    *("QLabel", "QMessageBox", "QErrorMessage", "QProgressDialog", "QInputDialog", "QWizard"),
    *("QTextEdit", "QTextBrowser", "QPlainTextEdit", "QTextDocument", "QTextDocumentFragment"),
    *("QStaticText", "QGraphicsTextItem", "QSplashScreen", "QWhatsThis", "QWebEngineView"),
}
"""Classes that take a text for HTML, or have a document that opens files."""

FACTORIES = {
    "plain_text.py": {"QLabel", "QPlainTextEdit"},
    "markdown_view.py": {"QTextBrowser", "QTextDocument", "QTextEdit"},
}
"""Files that make them, or derive from them."""

NAMED = {
    "details_view.py": {"QLabel"},
    "focus_ring.py": {"QLabel"},
    "code_lines.py": {"QTextDocument"},
    "highlighter.py": {"QTextDocument"},
}
"""Files that name them as a type, and neither call them nor derive from them."""

CALLS = {
    *("setHtml", "appendHtml", "insertHtml", "fromHtml", "setTextFormat", "setWhatsThis"),
    *("setMarkdown", "insertMarkdown", "fromMarkdown", "addResource", "setDefaultStyleSheet"),
}
"""Methods that format a text, or change whether one is formatted."""

ALLOWED_CALLS = {("plain_text.py", "setTextFormat"), ("markdown_view.py", "setMarkdown")}


def name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def offences(file: str, source: str) -> list[str]:
    """Return what a file does past the factories."""
    tree, found = ast.parse(source), []
    factory = FACTORIES.get(file, set())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            allowed = factory | NAMED.get(file, set())
            found += [each.name for each in node.names if each.name in RICH - allowed]
        elif isinstance(node, ast.Attribute) and node.attr in RICH:
            found.append(node.attr)
        elif isinstance(node, ast.ClassDef):
            found += [name_of(each) for each in node.bases if name_of(each) in RICH - factory]
        elif isinstance(node, ast.Call):
            name = name_of(node.func)
            if name in RICH - factory or (name in CALLS and (file, name) not in ALLOWED_CALLS):
                found.append(name)
            if name == "Markup" and file != "plain_text.py":
                found.append(name)
            if name in ("markup", "join_markup") and not is_own_markup(tree, node.args[0], file):
                found.append(f"{name} of a text that is not our own")
            if name == "addRow" and not isinstance(node.args[0], (ast.Name, ast.Call)):
                # A form would make a label of its own of a text.
                found.append(name)
            if name == "addRow" and name_of(getattr(node.args[0], "func", node.args[0])) == "_":
                found.append(name)
    return found


def is_own_markup(tree: ast.Module, pattern: ast.expr, file: str) -> bool:
    """Return whether HTML is written out in the file, and names no file."""
    if file == "plain_text.py":
        return True
    if isinstance(pattern, ast.Call) and name_of(pattern.func) == "_" and not pattern.keywords:
        pattern = pattern.args[0]
    if isinstance(pattern, ast.Name):
        name = pattern.id
        values = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and name in map(name_of, node.targets)
        ]
        return bool(values) and all(is_own_markup(tree, each, file) for each in values)
    return (
        isinstance(pattern, ast.Constant)
        and isinstance(pattern.value, str)
        and not any(word in pattern.value for word in ("img", "src", "url", "background"))
    )


def test_texts_are_shown_by_the_factories_alone() -> None:
    found = {
        str(path): wrong
        for path in files_of("lowerscope.app")
        if (wrong := offences(path.name, path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "from PySide6.QtWidgets import QLabel",
        "from PySide6.QtWidgets import QMessageBox as Box",
        "from PySide6 import QtWidgets\nQtWidgets.QLabel('x')",
        "document.setHtml(text)",
        "label.setTextFormat(Qt.TextFormat.AutoText)",
        "form.addRow('title', field)",
        "form.addRow(_('title'), field)",
        "label.setText(Markup(text))",
        "label.setText(markup(text))",
        "label.setText(markup(f'<b>{text}</b>'))",
        "label.setText(markup(_('<b>{text}</b>', text=text)))",
        "pattern = '<b>' + text\nlabel.setText(markup(pattern))",
        "label.setText(markup(\"<img src='{0}'>\", text))",
    ],
)
def test_a_way_past_the_factories_is_found(source: str) -> None:
    assert offences("view.py", source)


# The factories.


def test_a_label_opens_nothing(qtbot: QtBot, trap: Trap) -> None:
    label = Label(evil(trap))
    qtbot.addWidget(label)
    drawn(label)
    assert label.sizeHint().width() > label.fontMetrics().horizontalAdvance(evil(trap)[:40])
    assert not trap.opened


def test_a_page_shows_pictures_of_ours_alone(qtbot: QtBot, trap: Trap) -> None:
    page = MarkdownView("Page", lambda _: "")
    qtbot.addWidget(page)
    page.resize(600, 400)
    for place in (trap.path, trap.path.as_uri(), f"../../../../../../../..{trap.path}"):
        page.show_text(f"A picture: ![trap]({place})\n\n{evil(trap)}\n", HELP)
        drawn(page)
        page.document().resource(IMAGE, QUrl(str(place)))
    assert "<img src=" in page.document().toPlainText()
    assert not trap.opened
    picture = page.loadResource(IMAGE, QUrl("../screenshots/variants.png"))
    assert isinstance(picture, QImage)
    assert picture.width() > 100
    missing = page.loadResource(IMAGE, QUrl("../screenshots/none.png"))
    assert isinstance(missing, QImage)
    assert missing.width() == 1


# The window.


def automatic(widget: QWidget) -> list[str]:
    """Return the labels in a widget that decide by themselves whether a text is HTML."""
    labels = [each for each in (widget, *widget.findChildren(QLabel)) if isinstance(each, QLabel)]
    return [
        f"{type(each).__name__} {each.text()!r} of {type(each.parent()).__name__}"
        for each in labels
        if each.textFormat() != Qt.TextFormat.PlainText and not isinstance(each, MarkupLabel)
    ]


def open_all_pages(window: MainWindow) -> None:
    """Show every page of every pane, so that each is there."""
    for name, pane in window.panes.by_name.items():
        window.panes.bring(name)
        for key in pane.pages():
            pane.set_current(key)
            drawn(pane.page(key))
    for key in window.panes.drawer.pages():
        window.show_page(key)
        drawn(window.panes.drawer.page(key))


def check_documents(widget: QWidget, trap: Trap) -> int:
    """Let each document in a widget resolve the trap; return how many there are."""
    found = 0
    for document in widget.findChildren(QTextDocument):
        parent = document.parent()
        while parent is not None and not isinstance(parent, MarkupLabel):
            parent = parent.parent()
        if parent is None:
            found += 1
            document.resource(IMAGE, QUrl.fromLocalFile(str(trap.path)))
    return found


def test_no_widget_of_the_window_formats_by_itself(
    qtbot: QtBot, open_window: OpenWindow, trap: Trap
) -> None:
    window = open_window("sample:matmul_relu")
    open_all_pages(window)
    assert len(window.findChildren(QLabel)) > 50
    assert automatic(window) == []
    assert check_documents(window, trap) > 5
    for name, make in DIALOGS.items():
        dialog = make(window)
        drawn(dialog)
        assert automatic(dialog) == [], name
        check_documents(dialog, trap)
        dialog.close()
        dialog.deleteLater()
    window.commands.action("help-contents").trigger()
    page = window.help.shown
    assert page is not None
    drawn(page)
    assert automatic(page) == []
    assert check_documents(page, trap) >= 1
    assert not trap.opened
    page.hide()
    check_what_a_child_says(window, trap)


def check_what_a_child_says(window: MainWindow, trap: Trap) -> None:
    """Let a child print, report and fail with a text that opens the trap."""
    document, text = window.document, evil(trap)
    window.features.processes.logged.emit(text)
    document.say(text, 0.5)
    document.report(Problem(what=text, where=text, todo=text, details=text))
    window.banner.show_message(text, "info")
    assert wait_until(window.status.job.isVisible)
    check_shown(window, trap)
    assert window.status.job.whole() == f"{text}… 50 %"
    assert text in window.panes.log.toPlainText()
    assert shows(window.panes.problems, text)
    document.say("")


NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module({evil!r}, torch.nn.Linear(3, 2))

    def forward(self, x):
        return next(self.children())(x)

Net.__name__ = Net.__qualname__ = {evil!r}
classes = ({evil!r}, {evil!r} + "2")
example_inputs = (torch.ones(1, 3),)
print({evil!r})
"""
"""A model whose modules, class, classes and output are named as HTML."""

RELU = "te_relu"


def tips_of(widget: QWidget) -> set[str]:
    """Return the tool tips in a widget, of its parts and of their items."""
    views = [each for each in widget.findChildren(QAbstractItemView) if each.model() is not None]
    found = {each.toolTip() for each in (widget, *widget.findChildren(QWidget))}
    found |= {action.toolTip() for action in widget.findChildren(QAction)}
    return found.union(*(tips_of_items(view, QModelIndex()) for view in views))


def tips_of_items(view: QAbstractItemView, parent: QModelIndex) -> set[str]:
    model, found = view.model(), set()
    for row in range(model.rowCount(parent)):
        for column in range(1 if isinstance(view, QListView) else model.columnCount(parent)):
            tip = model.index(row, column, parent).data(Qt.ItemDataRole.ToolTipRole)
            found |= {str(tip)} if tip else set()
        found |= tips_of_items(view, model.index(row, 0, parent))
    return found


def check_shown(window: MainWindow, trap: Trap) -> set[str]:
    """Draw all of a window and its tool tips; return those that show the text."""
    open_all_pages(window)
    drawn(window)
    tips = {tip for tip in tips_of(window) if "<img" in tip}
    for tip in tips:
        QToolTip.showText(QPoint(5, 5), tip, window)
        assert tip_label().text() == tip
        drawn(tip_label())
    QToolTip.hideText()
    assert automatic(window) == []
    assert not trap.opened
    return tips


def shows(widget: QWidget, text: str) -> bool:
    """Return whether a label in a widget shows a text as it is."""
    labels = [each for each in widget.findChildren(QLabel) if not isinstance(each, MarkupLabel)]
    return any(text in each.text() for each in labels)


def test_the_names_of_a_model_are_shown_as_they_are(
    qtbot: QtBot, open_window: OpenWindow, trap: Trap
) -> None:
    text = evil(trap)
    file = trap.path.with_name("net.py")
    file.write_text(NET.format(evil=text))
    window = open_window(str(file))
    document = window.document
    assert document.snapshot is not None
    document.select((next(iter(document.snapshot.nodes)),))
    window.features.runs.run()
    assert wait_until(lambda: document.run_record is not None)
    record = document.run_record
    assert record is not None
    assert record.prediction is not None
    assert text in record.prediction.tvm
    assert "&lt;img" in window.panes.summary.prediction.text()
    assert any(text in tip for tip in check_shown(window, trap))
    assert text in window.panes.log.toPlainText()
    palette = Palette(window.palette_entries(), window.features.queries, window)
    drawn(palette)
    palette.close()
    palette.deleteLater()
    missing = f"{text.replace('/', '-')}.py"
    window.open_source(str(file.with_name(missing)))
    assert wait_until(lambda: bool(document.problems))
    check_shown(window, trap)
    assert shows(window.panes.problems, missing)


def test_a_session_is_shown_as_it_is(qtbot: QtBot, open_window: OpenWindow, trap: Trap) -> None:
    """The file that a remote was named after was read until memory ran out, on opening."""
    text = evil(trap)
    step = Primitive(
        id="s1", name="split", arguments={"loop": At(block=text, loop=0)}, comment=text
    )
    recipe = Recipe(
        source=Source(spec="sample:matmul_relu"),
        lowering="te",
        remote=Remote(tracker=f"{text}:9190", key=text),
        schedules=(
            Schedule(function=RELU, variant=text, primitives=(step,)),
            Schedule(function=text, variant=text, primitives=(step,)),
        ),
    )
    path = trap.path.with_name("evil [*].lowerscope")
    save_session(path, recipe, WindowLayout(), Hashes())
    window = open_window()
    window.open_session(str(path))
    assert wait_until(lambda: window.document.snapshot is not None)
    window.document.select((f"tir:{RELU}",))
    window.commands.action("workbench").trigger()
    schedule = window.panes.schedule
    assert wait_until(lambda: len(schedule.history.strip.cells()) == 2)
    assert text in schedule.history.strip.cells()[1].tooltip
    window.features.stepping.go(Moment(section="schedule", index=1))
    assert wait_until(lambda: text in schedule.code.line.whole())
    check_shown(window, trap)
    assert "[*][*]" in window.windowTitle()
    assert window.status.remote.text() == f"→ remote: {text}"
    menu = schedule.left_over.menu()
    menu.aboutToShow.emit()
    assert literal(text) in menu.actions()[0].text()
    drawn(menu)
    menu.close()
    assert not trap.opened
