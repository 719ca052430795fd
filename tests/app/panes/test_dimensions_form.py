"""Names in the shapes of the inputs' form, their ranges, and the sizes to run at."""

from __future__ import annotations

from PySide6.QtWidgets import QDialogButtonBox
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.inputs.inputs_dialog import InputsDialog
from lowerscope.core.model.recipe import Dimension, InputSpec
from lowerscope.core.model.snapshot import InputRecord

KNOWN = [InputRecord(name="x", shape=(1, 4), dtype="float32", origin="")]


def _open(
    qtbot: QtBot, specs: tuple[InputSpec, ...] = (), dimensions: tuple[Dimension, ...] = ()
) -> InputsDialog:
    dialog = InputsDialog(["x"], KNOWN, specs, 0, dimensions=dimensions)
    qtbot.addWidget(dialog)
    return dialog


def _press_ok(dialog: InputsDialog) -> None:
    dialog.buttons.button(QDialogButtonBox.StandardButton.Ok).click()


def test_a_name_in_a_shape_asks_for_its_range(qtbot: QtBot) -> None:
    dialog = _open(qtbot)
    assert dialog.ranges.isHidden()
    dialog.row("x").shape.setText("batch,4")
    assert not dialog.ranges.isHidden()
    dialog.ranges.row("batch").span.setText("1..64")
    dialog.ranges.row("batch").sizes.setText("1, 7")
    _press_ok(dialog)
    assert dialog.specs() == (InputSpec(name="x", shape=("batch", 4), dtype="float32"),)
    assert dialog.dimensions() == (Dimension(name="batch", low=1, high=64, sizes=(1, 7)),)


def test_what_is_wrong_is_said_beside_the_field(qtbot: QtBot) -> None:
    for span, sizes, message in (
        ("", "", "batch is not a number"),
        ("64..1", "", "64 is more than 1"),
        ("1-64", "", "this is not a name with a range"),
        ("1..64", "65", "batch = 65 is outside 1..64"),
        ("1..64", "x", "'x' is not a number"),
    ):
        dialog = _open(qtbot)
        dialog.row("x").shape.setText("batch,4")
        dialog.ranges.row("batch").span.setText(span)
        dialog.ranges.row("batch").sizes.setText(sizes)
        _press_ok(dialog)
        assert message in dialog.error.text()
        assert dialog.result() == 0


def test_what_was_said_before_is_there_and_comes_out(qtbot: QtBot) -> None:
    specs = (InputSpec(name="x", shape=("n", 4), dtype="float32"),)
    said = (Dimension(name="n", low=2, high=9, sizes=(3,)),)
    dialog = _open(qtbot, specs, said)
    assert dialog.ranges.row("n").span.text() == "2..9"
    _press_ok(dialog)
    assert (dialog.specs(), dialog.dimensions()) == (specs, said)


def test_a_name_that_goes_takes_its_range_along(qtbot: QtBot) -> None:
    specs = (InputSpec(name="x", shape=("n", 4), dtype="float32"),)
    dialog = _open(qtbot, specs, (Dimension(name="n", low=2, high=9),))
    dialog.row("x").shape.setText("5,4")
    assert dialog.ranges.isHidden()
    _press_ok(dialog)
    assert dialog.dimensions() == ()
