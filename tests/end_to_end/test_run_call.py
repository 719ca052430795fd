"""Values that a call of a run has read and written, in the window and against torch."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.run.run_step_page import RunStepPage
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.comparison_records import RunStep
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait

LEFT = Qt.MouseButton.LeftButton
SPEC = "sample:fashion_mlp"


def step_to(qtbot: QtBot, window: MainWindow, number: int) -> RunStep:
    """Click the dot of a call, and wait for its values."""
    window.set_mode("step")
    slider, page = window.panes.pipeline.slider, window.panes.call
    qtbot.mouseClick(slider, LEFT, pos=slider.dot_centre(number).toPoint())

    def there() -> None:
        assert page.step is not None
        assert page.step.call == number - 1

    qtbot.waitUntil(there, timeout=PATIENCE)
    assert page.step is not None
    return page.step


def words(page: RunStepPage) -> list[tuple[str, str]]:
    """Return what the page says, row by row."""
    return [(row.cell(0).text, row.cell(1).text) for row in page.table.rows()]


def opened(qtbot: QtBot, open_window: OpenWindow, spec: str) -> MainWindow:
    """Open a source, run it, and go over to its calls."""
    window = open_window(spec, lowering="te")
    run_and_wait(qtbot, window)
    window.features.stepping.set_section("run")
    window.set_mode("step")
    assert window.panes.changes.current() == "call"
    assert not window.panes.call.table.rows()
    return window


def test_a_call_says_what_it_read_and_wrote_beside_torch(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = opened(qtbot, open_window, SPEC)
    page = window.panes.call
    stages = Pipeline().stages(Recipe(source=Source(spec=SPEC)))
    model, (x,) = stages.loaded.model, (each.value for each in stages.loaded.inputs)
    assert model is not None
    layers = dict(model.named_children())
    with torch.no_grad():
        hidden = layers["linear0"](x)
        active = torch.relu(hidden)

    step = step_to(qtbot, window, 3)
    assert [(each.name, each.place.side) for each in step.tensors] == [
        ("lv1", "read"),
        ("lv2", "written"),
    ]
    for seen, value in zip(step.tensors, (hidden, active), strict=True):
        figures = seen.statistics
        assert figures is not None
        assert (seen.shape, seen.dtype) == (tuple(value.shape), "float32")
        assert figures.low == pytest.approx(float(value.min()), abs=1e-4)
        assert figures.high == pytest.approx(float(value.max()), abs=1e-4)
        assert figures.mean == pytest.approx(float(value.mean()), abs=1e-4)
        assert [float(each) for each in seen.first] == pytest.approx(
            value.flatten()[: len(seen.first)].tolist(), rel=1e-3, abs=1e-4
        )
    said = words(page)
    assert ("reads", "lv1 · 1×128 float32") in said
    assert ("writes", "lv2 · 1×128 float32") in said
    assert any(text.startswith("0 … ") and "mean" in text for _, text in said)
    assert said[0][1].startswith("call te_relu in: ")

    # The memory that was asked for before it is folded, and there on demand.
    folded = len(said)
    call = window.features.run_steps.call
    assert call is not None
    assert page.unfold.text() == f"▸ {call.own} before it"
    qtbot.mouseClick(page.unfold, LEFT)
    assert len(page.table.rows()) == folded + call.own
    assert any(text.startswith("alloc_tensor in: ") for _, text in words(page))
    assert words(page)[call.own][0] == f"line {call.line}"

    weights = step_to(qtbot, window, 4).tensors
    assert [each.name for each in weights] == ["lv2", "linear1.weight", "lv3"]
    weight = layers["linear1"].weight.detach()
    assert weights[1].statistics is not None
    assert weights[1].statistics.mean == pytest.approx(float(weight.mean()), abs=1e-6)
    assert weights[1].entity == "param:linear1.weight"

    # A tensor is shown beside torch's.
    panes = window.panes
    looked_at = panes.compare.tensor

    def click(name: str) -> None:
        table = page.table
        row = next(i for i, row in enumerate(table.rows()) if row.cell(1).text.startswith(name))
        index = table.model().index(row, 1)
        table.scrollTo(index)
        qtbot.mouseClick(table.viewport(), LEFT, pos=table.visualRect(index).center())

    step_to(qtbot, window, 3)
    click("lv1")
    assert panes.outcome.current() == "compare"
    assert looked_at.isVisible()
    matches = lambda: looked_at.verdict.text().startswith("✓ matches")  # noqa: E731
    qtbot.waitUntil(matches, timeout=PATIENCE)
    assert looked_at.title.whole() == "lv1, read by 3 te_relu"
    # What is selected is the call still: torch's value is that of the node above.
    assert window.document.selection.of_kind("fx") == ("fx:relu",)

    step_to(qtbot, window, 4)
    click("linear1.weight")
    title = "linear1.weight, read by 4 dense1"
    qtbot.waitUntil(lambda: looked_at.title.whole() == title, timeout=PATIENCE)
    window.document.select(("fx:relu",))
    qtbot.waitUntil(lambda: looked_at.title.whole() == "relu", timeout=PATIENCE)
    window.features.stepping.set_section("passes")
    assert window.panes.changes.current() == "difference"
