"""The form for the inputs: what is filled in, and what was said before, is what comes out."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QDialogButtonBox
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.inputs.inputs_dialog import InputsDialog
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import SEEDS, InputSpec
from lowerscope.core.model.snapshot import InputRecord


def _known(*names: str) -> list[InputRecord]:
    return [InputRecord(name=each, shape=(1, 4), dtype="float32", origin="") for each in names]


def _accept(dialog: InputsDialog) -> tuple[InputSpec, ...]:
    dialog.buttons.button(QDialogButtonBox.StandardButton.Ok).click()
    assert dialog.error.isHidden(), dialog.error.text()
    return dialog.specs()


@pytest.mark.parametrize("seed", [0, 2**31, SEEDS - 1])
def test_every_seed_of_the_command_line_can_be_kept(qtbot: QtBot, seed: int) -> None:
    dialog = InputsDialog(["x"], _known("x"), (), seed)
    qtbot.addWidget(dialog)
    assert dialog.chosen_seed() == seed


def test_an_input_without_a_name_is_the_next_that_nothing_names(qtbot: QtBot) -> None:
    said = (InputSpec(name="b", shape=(2, 4)), InputSpec(shape=(3, 4)))
    dialog = InputsDialog(["a", "b"], _known("a", "b"), said, 0)
    qtbot.addWidget(dialog)
    assert dialog.row("a").shape.text() == "3×4"
    assert set(_accept(dialog)) == set(said)


def test_the_shape_beside_a_picture_is_kept(qtbot: QtBot) -> None:
    for written in ("1, 784", "1x784", "1×784", "(1, 784)", "1 784"):
        dialog = InputsDialog(["x"], (), (), 0)
        qtbot.addWidget(dialog)
        dialog.row("x").shape.setText(written)
        dialog.row("x").file.setText("shoe.png")
        assert _accept(dialog) == (InputSpec(name="x", shape=(1, 784), file="shoe.png"),)


def test_an_array_brings_its_own_shape_unless_one_is_written(qtbot: QtBot) -> None:
    for written, shape in (("1,4", None), ("2,4", (2, 4))):
        dialog = InputsDialog(["x"], _known("x"), (), 0)
        qtbot.addWidget(dialog)
        dialog.row("x").shape.setText(written)
        dialog.row("x").file.setText("x.npy")
        assert _accept(dialog) == (InputSpec(name="x", shape=shape, file="x.npy"),)


def test_the_form_does_not_lead_to_itself(qtbot: QtBot) -> None:
    dialog = InputsDialog(["x"], _known("x"), (), 0)
    qtbot.addWidget(dialog)
    dialog.show_problem(Problem(what="it fails", todo="check the shapes: --input x=1:float32"))
    assert dialog.row("x").wrong.text() == "it fails."


def test_what_is_left_alone_is_not_said(qtbot: QtBot) -> None:
    dialog = InputsDialog(["a", "b"], _known("a", "b"), (), 0)
    qtbot.addWidget(dialog)
    assert _accept(dialog) == ()
