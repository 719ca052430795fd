"""The four modes: their panes, menus and buttons; closing, maximising, windows, the drawer."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.pane import Pane
from lowerscope.app.shell.menus import BUTTONS, MENUS, RECENT, SAMPLES, paths
from lowerscope.app.shell.modes import FOLDED, LEAST, LEAST_WIDTH, MODES
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.module_steps import Moment, PassRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import Recipe, Source, WindowLayout
from tests.app.plain_values import snapshot
from tests.app.shell.conftest import OpenPlainWindow, sent

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")
RECORDS = msgspec.structs.replace(
    snapshot("dense", "relu"), passes=(PassRecord(number=1, name="LegalizeOps"),)
)


@pytest.fixture
def window(shared: MainWindow) -> MainWindow:
    """Return the window of all these tests, in its first mode and with its first layout."""
    shared.resize(1440, 900)
    shared.show_panes()
    shared.set_mode("explore")
    shared.features.stepping.leave()
    shared.commands.action("reset-layout").trigger()
    QApplication.processEvents()
    return shared


def seen(window: MainWindow) -> list[str]:
    return [name for name, pane in window.panes.by_name.items() if pane.isVisible()]


def widths(window: MainWindow) -> dict[str, int]:
    return {name: window.panes.by_name[name].width() for name in seen(window)}


def test_the_fx_graph_has_no_place_where_the_source_builds_a_module(window: MainWindow) -> None:
    document = window.document
    module = msgspec.structs.replace(RECORDS, fx=())
    document.set(snapshot=module)
    assert seen(window) == ["model", "relax", "tensorir"]
    # The keys of the mode begin in one of the others.
    for mode in ("run", "explore"):
        window.commands.action(f"mode-{mode}").trigger()
    focus = window.focusWidget()
    assert any(window.panes.by_name[each].isAncestorOf(focus) for each in seen(window))
    room = window.panes.relax.width()
    # Where FX has to share a place, Relax keeps it.
    window.resize(900, 700)
    QApplication.processEvents()
    window.panes.bring("fx")
    assert "relax" in seen(window)
    assert "fx" not in seen(window)
    window.resize(1440, 900)
    document.set(snapshot=RECORDS)
    QApplication.processEvents()
    assert seen(window) == ["model", "fx", "relax", "tensorir"]
    assert window.panes.relax.width() < room


def test_each_mode_has_its_panes_its_menu_and_its_buttons(window: MainWindow) -> None:
    for mode in MODES:
        window.commands.action(f"mode-{mode.key}").trigger()
        QApplication.processEvents()
        assert window.tool_bar.modes.current() == window.panes.mode == mode.key
        # With nothing selected, the inspector has no place.
        assert set(seen(window)) == set(dict(mode.panes)) - {"details"}
        bar = [each for each in window.menuBar().actions() if each.isVisible()]
        titles = [each.text().replace("&", "") for each in bar]
        assert titles == ["File", "Edit", "View", mode.title, "Tools", "Help"]
        for each in bar:
            menu = each.menu()
            assert isinstance(menu, QMenu)
            assert len([entry for entry in menu.actions() if not entry.isSeparator()]) <= 15
        bar_of_mode = window.mode_bar.currentWidget()
        assert window.mode_bar.width() == bar_of_mode.sizeHint().width()
        buttons = bar_of_mode.actions()
        ids = [each.objectName() for each in buttons if not each.isSeparator()]
        assert ids == [each.command for each in BUTTONS[mode.key] if each]
        # No menu is behind the button that Qt shows where they have no room.
        places = [window.menuBar().actionGeometry(each) for each in bar]
        assert all(place.right() < window.menu_corner.x() for place in places)
        assert all(place.width() > 20 for place in places)
        assert (window.features.stepping.section == "schedule") == (mode.key == "schedule")


def test_a_mode_says_that_its_only_pane_is_in_a_window_of_its_own(window: MainWindow) -> None:
    panes = window.panes
    window.set_mode("run")
    for put_back in (panes.outcome.window, lambda: None):
        panes.switch_window("outcome")
        assert panes.away.isVisible()
        assert not panes.area.isVisible()
        window.set_mode("explore")
        assert panes.area.isVisible()
        window.set_mode("run")
        if (own := put_back()) is not None:
            # By its frame.
            own.close()
        else:
            QTest.mouseClick(panes.away.findChildren(QPushButton)[0], Qt.MouseButton.LeftButton)
        assert seen(window) == ["outcome"]
        assert not panes.away.isVisible()


def test_every_command_is_in_one_menu(window: MainWindow) -> None:
    listed = [
        name
        for entries in MENUS.values()
        for entry in entries
        for name in (entry[1] if isinstance(entry, tuple) else (entry,))
        if name and name not in (SAMPLES, RECENT)
    ]
    assert sorted(listed) == sorted(command.id for command, _ in window.commands)
    assert paths()["te"] == ("Explore", "Lower all nodes as")


def test_a_mode_keeps_the_widths_that_its_panes_were_given(window: MainWindow) -> None:
    area = window.panes.area
    # Its strip has a place in this mode only.
    area.set_closed("model", True)
    line = area.handle(area.indexOf(window.panes.relax))
    for _press in range(4):
        QTest.keyClick(line, Qt.Key.Key_Right)
    QApplication.processEvents()
    given = widths(window)
    for key in ("run", "step", "explore") * 3:
        window.set_mode(key)
        QApplication.processEvents()
    assert widths(window) == given
    window.commands.action("reset-layout").trigger()
    assert abs(widths(window)["fx"] - given["fx"]) > 60


def test_a_change_of_mode_lays_the_panes_out_once(window: MainWindow) -> None:
    window.commands.action("pane-model").trigger()
    QApplication.processEvents()
    panes = window.panes
    assert panes.strip.isVisible()
    for key in ("step", "explore"):
        window.set_mode(key)
        # The strip of the outline has its place, or none, before anything is painted.
        strip = panes.strip.width() * panes.strip.isVisible()
        assert panes.area.width() == sum(panes.area.sizes()) + len(seen(window)) - 1
        assert panes.area.width() == panes.width() - strip


def test_the_keys_of_the_mode_schedule_begin_in_the_list_of_functions_or_the_tree(
    window: MainWindow,
) -> None:
    window.commands.action("mode-schedule").trigger()
    view = window.panes.schedule
    assert window.focusWidget() in (view.tree, view.chooser.table)
    # With neither, in what there is.
    window.commands.action("mode-explore").trigger()
    view.tree.hide()
    view.chooser.table.hide()
    window.commands.action("mode-schedule").trigger()
    found = window.focusWidget()
    assert found is not None
    assert found.isVisible()
    assert view.isAncestorOf(found)


def test_keys_of_a_mode_hold_in_it_and_not_in_a_text_field(
    open_plain_window: OpenPlainWindow,
) -> None:
    nodes = [msgspec.structs.replace(each, strategy="te") for each in RECORDS.fx]
    window = open_plain_window(RECIPE, msgspec.structs.replace(RECORDS, fx=tuple(nodes)))
    window.show_panes()
    window.activateWindow()
    QApplication.processEvents()
    document, panes, canvas = window.document, window.panes, window.panes.fx.graph.canvas
    document.select(("fx:dense",))
    canvas.setFocus()
    QTest.keyClick(canvas, Qt.Key.Key_3)
    assert document.wanted is not None
    assert [(each.pattern, each.strategy) for each in document.wanted.overrides] == [
        ("fx:dense", "library")
    ]
    panes.fx.graph.canvas.search.open()
    field = canvas.search.bar.field
    field.setFocus()
    QTest.keyClicks(field, "1io")
    assert field.text() == "1io"
    assert document.wanted.overrides[0].strategy == "library"
    for key, name in ((Qt.Key.Key_O, "model"), (Qt.Key.Key_I, "details")):
        for shown in (False, True):
            QTest.keyClick(canvas, key)
            assert panes.area.shows(name) == shown
    window.set_mode("run")
    QTest.keyClick(panes.outcome, Qt.Key.Key_1)
    assert document.wanted.overrides[0].strategy == "library"


def test_panes_that_have_no_room_lie_over_the_others_or_share_a_place(window: MainWindow) -> None:
    panes, area = window.panes, window.panes.area
    window.setMinimumSize(600, 400)
    pins = window.commands.action("pane-details")
    pins.trigger()
    assert "details" in seen(window)
    assert not panes.details.has_content
    for width, places in (
        (1440, ["model", "fx", "relax", "tensorir", "details"]),
        (1200, ["fx", "relax", "tensorir", "details"]),
        (1000, ["fx", "relax", "tensorir"]),
        (800, ["relax", "tensorir"]),
    ):
        window.resize(width, 700)
        QApplication.processEvents()
        assert seen(window) == places
        assert all(widths(window)[name] >= LEAST[name] for name in places)
    before = widths(window)
    for name in ("details", "model"):
        window.commands.action(f"pane-{name}").trigger()
        assert area.shows_over() == name
        assert {**widths(window), name: 0} == {**before, name: 0}
        QTest.keyClick(panes.by_name[name].findChild(QWidget), Qt.Key.Key_Escape)
        assert area.shows_over() == ""
    panes.relax.header.beside.tab("fx").click()
    assert seen(window) == ["fx", "tensorir"]
    window.show_page("translation")
    assert seen(window) == ["relax", "tensorir"]
    window.resize(1440, 900)
    QApplication.processEvents()
    assert set(seen(window)) == {"model", "fx", "relax", "tensorir", "details"}


def test_a_selection_takes_the_room_of_the_inspector_from_tensorir(window: MainWindow) -> None:
    before = widths(window)
    window.document.select(("fx:dense",))
    QApplication.processEvents()
    after = widths(window)
    assert {name for name in before if before[name] != after[name]} == {"tensorir"}
    window.document.select(())
    QApplication.processEvents()
    assert widths(window) == before


def test_what_is_shown_changes_no_width(window: MainWindow) -> None:
    before = widths(window)
    for pane in window.panes.by_name.values():
        pane.set_context("a very long text " * 30)
        pane.header.title.setText("Another title that is rather long")
    QApplication.processEvents()
    assert widths(window) == before


def test_a_pane_is_closed_maximised_and_in_a_window(qtbot: QtBot, window: MainWindow) -> None:
    outline = window.commands.action("pane-model")
    outline.trigger()
    assert "model" not in seen(window)
    assert not window.commands.action("pane-model").isChecked()
    outline.trigger()
    assert "model" in seen(window)
    # The strip in its place is gone, and the panes have its room.
    qtbot.waitUntil(lambda: sum(widths(window).values()) > window.width() - 8)
    before = widths(window)
    window.panes.fx.header.maximise_wanted.emit()
    assert seen(window) == ["fx"]
    # What is asked for comes into view, whatever is maximised.
    window.show_page("translation")
    assert "relax" in seen(window)
    assert window.panes.relax.current() == "translation"
    window.panes.fx.header.window_wanted.emit()
    pane = window.panes.fx
    qtbot.waitUntil(lambda: pane.window() is not window and pane.isVisible())
    window.set_mode("run")
    assert pane.isVisible()
    pane.window().close()
    assert pane.window() is window
    window.set_mode("explore")
    QApplication.processEvents()
    assert all(abs(width - before[name]) <= 4 for name, width in widths(window).items())


def test_the_drawer_opens_for_a_problem_and_closes_with_it(window: MainWindow) -> None:
    drawer = window.panes.drawer
    assert not drawer.isVisible()
    sizes = {name: window.panes.by_name[name].size() for name in seen(window)}
    window.document.report(Problem(what="no such thing"))
    window.document.notify("saved", "info")
    QApplication.processEvents()
    assert drawer.isVisible()
    assert window.banner.isVisible()
    assert window.status.problems.text() == "Problems 1"
    # They lie over the panes.
    assert {name: window.panes.by_name[name].size() for name in seen(window)} == sizes
    assert drawer.current() == "problems"
    window.document.change_fields(lowering="library")
    sent(window).answer(RECORDS)
    assert not drawer.isVisible()
    # One that the user has opened stays.
    window.commands.action("drawer").trigger()
    window.document.change_fields(lowering="te")
    sent(window).answer(RECORDS)
    assert drawer.isVisible()
    window.commands.action("drawer").trigger()
    assert not drawer.isVisible()


def test_the_step_outlives_a_change_of_mode_and_is_left_by_its_chip(window: MainWindow) -> None:
    window.set_mode("step")
    stepping = window.features.stepping
    stepping.go(Moment(section="passes", index=1))
    for key in ("explore", "run", "schedule", "step"):
        window.set_mode(key)
        if key == "schedule":
            # It shows the steps of a schedule instead.
            continue
        assert stepping.moment == Moment(section="passes", index=1)
        assert window.tool_bar.step.text().startswith("at step 1 · LegalizeOps")
        assert window.tool_bar.step.isVisible()
    # Another pipeline has another pass at that place.
    window.document.change_fields(lowering="library")
    others = (PassRecord(number=1, name="FoldConstant"),)
    sent(window).answer(msgspec.structs.replace(RECORDS, passes=others))
    assert window.tool_bar.step.text().startswith("at step 1 · FoldConstant")
    window.tool_bar.step.click()
    assert stepping.moment is None
    assert not window.tool_bar.step.isVisible()


def test_a_narrow_window_has_no_outline_and_nothing_below_its_minimum(window: MainWindow) -> None:
    window.resize(1000, 600)
    window.commands.action("reset-layout").trigger()
    for mode in MODES:
        window.set_mode(mode.key)
        QApplication.processEvents()
        assert "model" not in seen(window)
        for name, width in widths(window).items():
            assert width >= (LEAST | FOLDED).get(name, LEAST_WIDTH)
        assert sum(widths(window).values()) <= window.width()


def test_the_layout_is_kept(open_plain_window: OpenPlainWindow) -> None:
    window = open_plain_window(RECIPE)
    window.set_mode("step")
    window.commands.action("pane-pipeline").trigger()
    layout = window.session_layout()
    assert (layout.mode, layout.closed[-1]) == ("step", "pipeline")
    window.close()
    again = open_plain_window(RECIPE)
    again.show_panes()
    # A model that is opened next has not been run: the window begins in the first mode.
    assert again.mode == "explore"
    again.set_mode("step")
    assert seen(again) == ["changes"]
    again.commands.action("reset-layout").trigger()
    again.lay_out(msgspec.json.decode(msgspec.json.encode(layout), type=WindowLayout))
    assert seen(again) == ["changes"]


ABSURD = (
    WindowLayout(mode="nowhere", closed=("fx",)),
    WindowLayout(mode="explore", closed=("fx", "relax", "pipes")),
    WindowLayout(mode="explore", widths={"explore": {"fx": 1 << 60, "relax": -5, "x": 3}}),
    WindowLayout(mode="explore", widths={"x": {"fx": 7}}, drawer=1 << 40),
    WindowLayout(size=(1 << 40, 2), mode="explore"),
    WindowLayout(size=(-1, -1), drawer=-3, mode="explore"),
)


@pytest.mark.parametrize("layout", ABSURD)
def test_an_absurd_layout_of_a_session_is_left_out(
    window: MainWindow, layout: WindowLayout
) -> None:
    before, size = widths(window), window.size()
    window.lay_out(layout)
    QApplication.processEvents()
    assert window.size() == size
    assert widths(window).keys() == before.keys()
    assert all(abs(width - before[name]) <= 4 for name, width in widths(window).items())


def test_the_layout_of_an_earlier_session_is_read_over() -> None:
    old = b'{"geometry": "AAAA", "panes": "AAAA", "panes_version": 2, "timeline": false}'
    assert msgspec.json.decode(old, type=WindowLayout) == WindowLayout()


def test_the_focus_goes_to_the_tab_of_a_page_without_content(
    qtbot: QtBot, window: MainWindow
) -> None:
    pane = Pane("Relax")
    qtbot.addWidget(pane)
    for word in ("Script", "NumPy", "Bytecode"):
        pane.add_page(word.lower(), word, QLabel("Loading…"))
    pane.resize(150, 200)
    pane.set_current("numpy")
    pane.show()
    assert pane.header.tabs.hidden_tabs()
    assert window.pane_commands.enter(pane)
    assert pane.focusWidget() is pane.header.tabs.tab("numpy")
