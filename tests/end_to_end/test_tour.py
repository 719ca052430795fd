"""The tour of the help, step by step: each shows what the page says, by the keys that it names."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.shell import help_pages
from lowerscope.app.shell.palette import Palette
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.run_records import Measuring
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait, wait_for_records

LEFT = Qt.MouseButton.LeftButton
KEY = re.compile(r"\b((?:(?:Ctrl|Alt|Shift)\+)+\w+|F\d+)\b")
SECTIONS = ("Translate", "Passes", "Build", "Run")

NOT_PRESSED = {"Ctrl+O"}
"""It opens the system's dialog."""


class Tour:
    """A window, and the keys that were pressed in it."""

    def __init__(self, qtbot: QtBot, window: MainWindow) -> None:
        self.qtbot, self.window = qtbot, window
        self.pressed: set[str] = set()

    def press(self, key: str) -> None:
        """Do what a key does; a display without a window manager activates no window."""
        self.pressed.add(key)
        (action,) = (
            action for each, action in self.window.commands if key in each.keys.split("; ")
        )
        assert action.isEnabled(), key
        action.trigger()

    def wait(self, condition: Callable[[], object]) -> None:
        self.qtbot.waitUntil(lambda: bool(condition()), timeout=PATIENCE)

    def functions(self) -> set[str]:
        """Return the functions that are open in TensorIR."""
        return set(self.window.panes.tensorir.open_functions())

    def click_line(self, code: CodeView, part: str) -> None:
        """Click the first line that has a part."""
        number = next(n for n, text in enumerate(code.editor.lines()) if part in text)
        code.editor.go_to(number)
        port = code.editor.viewport()
        rect = next(rect for n, rect in code.editor.visible_lines(port.rect()) if n == number)
        self.qtbot.mouseClick(port, LEFT, pos=QPoint(20, round(rect.center().y())))


def marked(code: CodeView) -> list[str]:
    lines = enumerate(code.editor.lines())
    return [text.strip() for number, text in lines if code.editor.is_selected(number)]


def test_the_tour(qtbot: QtBot, open_window: OpenWindow) -> None:
    page = help_pages.text_of("tour")
    # Times of a few calls are enough to be shown.
    window = open_window("sample:fashion_mlp", measuring=Measuring(repeats=5))
    tour, panes, document = Tour(qtbot, window), window.panes, window.document

    # 1, 2: a node, and what it became.
    canvas = panes.fx.graph.canvas
    qtbot.mouseClick(canvas.viewport(), LEFT, pos=canvas.node_rect("fx:linear0").center().toPoint())
    assert document.selection.chosen == ("fx:linear0",)
    script = panes.relax.script.code
    calls = [text.partition(" = R.")[2] for text in marked(script) if " = R." in text]
    assert [call.partition("(")[0] for call in calls] == [
        "permute_dims",
        "matmul",
        "add",
    ]
    tour.wait(lambda: tour.functions() == {"transpose", "matmul", "add"})
    assert re.match(r"fashion_mlp\.py:\d+", panes.details.facts()["source"])
    tour.click_line(script, "R.nn.relu")
    assert document.selection.of_kind("fx") == ("fx:relu",)

    # 3: the same by tensor expressions, by torch, and one node alone.
    def lowered() -> set[str]:
        wait_for_records(qtbot, window)
        assert document.snapshot is not None
        return {each.name for each in document.snapshot.functions if each.kind == "tensorir"}

    tour.press("Alt+Shift+2")
    assert lowered() == {"dense", "add", "te_relu", "dense1", "add1"}
    tour.press("Alt+Shift+3")
    assert lowered() == set()
    assert "R.call_dps_packed(" in script.text()
    for _ in range(2):
        tour.press("Ctrl+Z")
        wait_for_records(qtbot, window)
    document.select(("fx:relu",))
    tour.press("Alt+3")
    wait_for_records(qtbot, window)
    assert window.tool_bar.overrides.text() == "1 override"
    tour.press("Alt+0")
    wait_for_records(qtbot, window)
    assert not window.tool_bar.overrides.isVisible()

    # 4: it is run, and compared.
    tour.press("F5")
    tour.wait(lambda: document.run_record is not None and not document.running)
    verdict = window.tool_bar.verdict
    assert "matches torch" in verdict.accessibleName()
    for part in ("largest absolute error", "largest relative error", "tolerance"):
        assert part in verdict.toolTip()
    assert panes.summary.prediction.text().count("Ankle boot") == 2

    tour.press("Ctrl+4")
    assert window.mode == "run"

    # 6: step by step.
    tour.press("Ctrl+2")
    rows = panes.pipeline.list.rows()
    assert [row.title for row in rows if row.kind == "section"] == list(SECTIONS)
    window.features.stepping.set_section("passes")
    tour.press("F10")
    assert window.features.stepping.moment == Moment(section="passes", index=1)
    assert panes.difference.title.whole().startswith("1 LegalizeOps")
    tour.press("F7")
    assert window.features.stepping.moment == Moment(section="passes", index=0)
    tour.press("Ctrl+Space")
    tour.wait(lambda: not window.features.stepping.playing)
    window.commands.action("leave-steps").trigger()

    # 5, 6: for this machine, and optimised, it computes the same.
    window.commands.action("target-native").trigger()
    window.commands.action("pipeline-optimise-cpu").trigger()
    wait_for_records(qtbot, window)
    run_and_wait(qtbot, window)
    assert "matches torch" in verdict.accessibleName()

    tour.press("F1")
    assert window.help.shown is not None
    tour.press("Ctrl+Shift+P")
    (palette,) = window.findChildren(Palette)
    palette.close()
    assert tour.pressed == set(KEY.findall(page)) - NOT_PRESSED
