"""The tour in the window: each bubble waits for what it says, and points at it."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import QRect
from PySide6.QtWidgets import QApplication

from lowerscope.app.shell.guided_tour import SAMPLE, GuidedTour
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.module_steps import Moment, PassRecord
from lowerscope.core.model.recipe import Recipe, Source
from tests.app.plain_values import RECORD, snapshot
from tests.app.shell.conftest import sent

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)

RECIPE = Recipe(source=Source(spec=SAMPLE))
RECORDS = msgspec.structs.replace(
    snapshot("linear0", "relu"), passes=(PassRecord(number=1, name="LegalizeOps"),)
)


@pytest.fixture
def window(shared: MainWindow) -> MainWindow:
    shared.resize(1366, 768)
    shared.document.open(RECIPE)
    sent(shared).answer(RECORDS)
    shared.document.select(())
    shared.set_mode("explore")
    shared.show_panes()
    QApplication.processEvents()
    return shared


def pointed(window: MainWindow) -> QRect:
    """Return where the bubble is, which has to be inside of the window."""
    tour = window.tour
    assert tour is not None
    assert tour.bubble is not None
    assert tour.bubble.isVisible()
    place = tour.bubble.geometry()
    assert window.rect().contains(place)
    return place


def test_each_stop_waits_for_what_it_says(window: MainWindow) -> None:
    window.take_tour()
    tour, document = window.tour, window.document
    assert isinstance(tour, GuidedTour)
    assert (tour.place, len(tour.stops)) == (0, 6)
    # The text is about the graph: the bubble is beside it.
    canvas = window.panes.fx.graph.canvas
    QApplication.processEvents()
    assert pointed(window).left() > canvas.mapTo(window, canvas.rect().topRight()).x()
    document.select(("fx:relu",))
    assert tour.place == 0
    document.select(("fx:linear0",))
    assert tour.place == 1
    # The text is about lines below: it is beside what it points at.
    QApplication.processEvents()
    assert pointed(window).top() < window.tool_bar.height()
    document.change_fields(lowering="te")
    assert tour.place == 1
    sent(window).answer(RECORDS)
    assert tour.place == 2
    document.set(run=RECORD)
    assert tour.place == 3
    window.commands.action("mode-step").trigger()
    assert tour.place == 4
    window.features.stepping.go(Moment(section="passes", index=1))
    assert tour.place == 5
    # What the step did is visible: the bubble is below the beginning of the difference.
    QApplication.processEvents()
    assert pointed(window).top() > window.height() / 2
    window.features.stepping.leave()
    assert tour.bubble is None


def test_its_buttons_go_on_back_and_end(window: MainWindow) -> None:
    window.take_tour()
    tour = window.tour
    assert tour is not None
    assert tour.bubble is not None
    assert not tour.bubble.back.isEnabled()
    for place in range(1, 6):
        tour.bubble.next.click()
        assert tour.place == place
        QApplication.processEvents()
        pointed(window)
    assert window.mode == "step"
    tour.bubble.back.click()
    tour.bubble.back.click()
    assert (tour.place, window.mode) == (3, "explore")
    window.take_tour()
    assert tour.place == 0
    assert tour.bubble is not None
    tour.bubble.closed.emit()
    assert tour.bubble is None
