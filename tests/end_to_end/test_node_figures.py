"""Times and errors of nodes in the real window: colours, legend, cards, and Details."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.formatting import duration_text, error_text
from tests.end_to_end.driving import OpenWindow, run_and_wait, wait_for_records
from tests.end_to_end.test_graphs import choose

WRONG = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.nn.ReLU)
def shifted(builder, node, x):
    return relax.op.add(relax.op.nn.relu(x), relax.const(1.0, "float32"))
"""


def shades(canvas: GraphCanvas) -> dict[str, str]:
    """The figures that are written in the boxes."""
    colours = canvas._colours()
    shown = {node.id: colours.shade(node.id) for node in canvas.graph().boxes}
    return {name: shade.text for name, shade in shown.items() if shade is not None}


def trigger(window: MainWindow, key: str) -> None:
    action = window.commands.action(key)
    assert action.isEnabled()
    action.trigger()


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_nodes_have_colours_by_time_and_by_error_once_there_is_a_run(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    for key in ("colours-time", "colours-error"):
        action = window.commands.action(key)
        assert not action.isEnabled()
        assert action.toolTip().startswith("Run first (F5)")
    run_and_wait(qtbot, window)
    record = window.document.run_record
    assert record is not None
    page = window.panes.fx.graph
    canvas = page.canvas
    canvas.setFocus()
    trigger(window, "colours-time")
    assert canvas.colouring() == "time"
    times = {each.id: each.milliseconds for each in record.nodes if each.milliseconds is not None}
    most = max(value for name, value in times.items() if name.startswith("fx:"))
    assert canvas.legend.words() == [f"0 … {duration_text(most)}"]
    assert set(shades(canvas)) == {"fx:linear0", "fx:relu", "fx:linear1"}
    assert shades(canvas)["fx:relu"] == duration_text(times["fx:relu"])

    choose(page, "", "Colours", "By error")
    assert canvas.colouring() == "error"
    (legend,) = canvas.legend.words()
    errors = [each.max_abs_error for each in record.nodes if each.max_abs_error is not None]
    assert legend.endswith(error_text(max(errors)))
    assert set(shades(canvas)) == {"fx:linear0", "fx:relu", "fx:linear1"}

    window.document.select(("fx:relu",))
    facts = window.panes.details.facts()
    assert facts["TVM"].startswith(duration_text(times["fx:relu"]))
    assert facts["TVM"].endswith("%")
    assert facts["error"].endswith("relative")
    canvas.show_card()
    rows = dict(canvas.card.text().rows)
    assert rows["time"].replace(" · ", " ") == facts["TVM"]
    assert rows["error"].endswith("relative")

    # What has not been run has no figures; the choice stays.
    window.commands.action("high-level").trigger()
    wait_for_records(qtbot, window)
    assert canvas.colouring() == "error"
    assert canvas.legend.words() == ["nothing measured yet"]
    assert shades(canvas) == {}
    assert not window.commands.action("colours-error").isEnabled()
