"""The inputs of the open model: drawn, random, from files, and sets of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDialogButtonBox, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.inputs.commands import InputsForm
from lowerscope.app.panes.inputs.inputs_dialog import InputsDialog
from lowerscope.app.panes.inputs.model import SETTLE_MS, Inputs, with_inputs
from lowerscope.core.files.sources import MANY_SAMPLES
from lowerscope.core.model.comparison_records import AgreementRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import AgreementQuery, RunQuery, SnapshotQuery
from lowerscope.core.model.recipe import SEEDS, Dimension, InputSpec
from lowerscope.core.model.snapshot import InputRecord, Picture
from tests.app.plain_values import CANCELLED, RECIPE, WRONG, Bench, snapshot

SHAPE = (1, 2)


def record(
    name: str = "x", *, shape: tuple[int | str, ...] = SHAPE, channels: int = 1, width: int = 1
) -> InputRecord:
    """Return an input that is a picture."""
    pixels = bytes(2 * width * channels)
    picture = Picture(width=width, height=2, channels=channels, pixels=pixels)
    return InputRecord(name=name, shape=shape, dtype="float32", origin="", picture=picture)


def derive(bench: Bench, *records: InputRecord) -> None:
    """Answer the engine's query for records of a model with these inputs."""
    found = snapshot("dense", "relu")
    model = msgspec.structs.replace(found.model, inputs=records or (record(),))
    bench.sent(SnapshotQuery).answer(msgspec.structs.replace(found, model=model, key="1"))


def open_with(bench: Bench, *records: InputRecord) -> Inputs:
    bench.document.open(RECIPE)
    derive(bench, *records)
    return bench.features.inputs


def wanted(bench: Bench) -> tuple[InputSpec, ...]:
    assert bench.document.wanted is not None
    return bench.document.wanted.inputs


def test_an_input_is_not_run_unless_that_is_wanted(bench: Bench, qtbot: QtBot) -> None:
    inputs = open_with(bench)
    inputs.set_live(False)
    inputs.randomise("x", 1)
    derive(bench)
    settled = QTimer(singleShot=True, interval=2 * SETTLE_MS)
    with qtbot.waitSignal(settled.timeout):
        settled.start()
    assert bench.count(RunQuery) == 0
    inputs.set_live(True)
    inputs.randomise("x", 2)
    derive(bench)
    qtbot.waitUntil(lambda: bench.count(RunQuery) == 1)


def test_a_quick_run_is_no_variant_of_the_model(bench: Bench, qtbot: QtBot) -> None:
    open_with(bench).randomise("x", 1)
    derive(bench)
    qtbot.waitUntil(lambda: bench.count(RunQuery) == 1)
    query = bench.sent(RunQuery).query
    assert isinstance(query, RunQuery)
    assert query.quick


def test_random_values_have_a_seed_of_their_own(bench: Bench) -> None:
    inputs = open_with(bench)
    inputs.randomise("x", 7)
    # With the form that it has, so that nothing is built anew; the weights stay.
    assert wanted(bench) == (InputSpec(name="x", shape=SHAPE, dtype="float32", seed=7),)
    assert bench.document.wanted is not None
    assert bench.document.wanted.seed == RECIPE.seed
    derive(bench)
    inputs.reset("x")
    assert wanted(bench) == ()


def test_a_file_is_brought_to_fit_and_one_that_cannot_be_leaves_what_was_there(
    bench: Bench, tmp_path: Path
) -> None:
    inputs = open_with(bench)
    inputs.drop(str(tmp_path / "bag.npy"), "x")
    (spec,) = wanted(bench)
    assert (spec.file, spec.fit, spec.shape) == (str(tmp_path / "bag.npy"), True, SHAPE)
    derive(bench)
    before = bench.document.recipe
    inputs.drop(str(tmp_path / "broken.png"), "x")
    bench.sent(SnapshotQuery).refuse(WRONG)
    assert inputs.problem == WRONG
    assert bench.document.recipe == before
    inputs.reset("x")
    derive(bench)
    assert inputs.problem is None
    assert wanted(bench) == ()


def test_a_file_of_any_size_says_its_own(bench: Bench) -> None:
    inputs = open_with(bench, record(shape=("n", 2)))
    inputs.take_file("x", "many.npy")
    assert wanted(bench) == (InputSpec(name="x", file="many.npy", fit=True),)


def test_an_input_that_is_gone_changes_nothing(bench: Bench) -> None:
    inputs = open_with(bench)
    inputs.randomise("gone", 1)
    inputs.take_file("gone", "bag.npy")
    assert wanted(bench) == ()


def test_inputs_stay_in_the_order_of_the_model() -> None:
    named = InputSpec(name="b", seed=1)
    recipe = msgspec.structs.replace(RECIPE, inputs=(named, InputSpec(seed=2)))
    changed = with_inputs(recipe, ["a", "b", "c"], {"c": InputSpec(name="c", seed=3)})
    assert [(each.name, each.seed) for each in changed.inputs] == [("a", 2), ("b", 1), ("c", 3)]
    assert with_inputs(changed, ["a", "b", "c"], {"a": None, "c": None}).inputs == (named,)


# Sets


def outcome(count: int) -> AgreementRecord:
    counts = ("count", "ran", "matching", "compared", "same_class", "classed", "labelled")
    right = ("tvm_correct", "torch_correct")
    figures = dict.fromkeys((*counts, *right), count)
    return AgreementRecord(
        path="digits",
        max_abs_error=None,
        max_rel_error=None,
        worst=(),
        **figures,  # type: ignore[arg-type]
    )


def test_a_file_with_many_samples_is_run_as_a_set(bench: Bench) -> None:
    inputs = open_with(bench)
    inputs.drop("clothes.npz", "x")
    bench.sent(SnapshotQuery).refuse(Problem(what="It has 10 samples", code=MANY_SAMPLES))
    assert bench.document.problems == ()
    query = bench.sent(AgreementQuery).query
    assert isinstance(query, AgreementQuery)
    assert query.path == "clothes.npz"
    # It is the set of the model shown, with the inputs that it has.
    assert query.recipe == RECIPE


def test_a_folder_is_a_set(bench: Bench, tmp_path: Path) -> None:
    inputs = open_with(bench)
    assert inputs.is_set(str(tmp_path))
    inputs.drop(str(tmp_path), "x")
    assert bench.count(AgreementQuery) == 1
    assert wanted(bench) == ()


def test_a_set_that_is_stopped_leaves_the_outcome_of_before(bench: Bench) -> None:
    inputs = open_with(bench)
    sets = inputs.sets
    sets.run("digits")
    bench.sent(AgreementQuery).answer(outcome(10))
    sets.run("more")
    running = bench.sent(AgreementQuery)
    running.progress("3 of 200000", 0.1)
    assert sets.progress == ("3 of 200000", 0.1)
    bench.document.cancel_jobs()
    assert running.fate == "cancelled"
    running.refuse(CANCELLED)
    assert (sets.running, sets.problem) == (False, None)
    assert sets.record is not None
    assert sets.record.count == 10
    # The next one takes the place of one that is under way; one that is refused says why.
    sets.run("digits")
    first = bench.sent(AgreementQuery)
    sets.run()
    assert first.fate.startswith("killed")
    bench.sent(AgreementQuery).refuse(WRONG)
    assert sets.problem == WRONG


def test_the_outcome_of_a_set_holds_for_any_input_of_the_model(bench: Bench) -> None:
    inputs = open_with(bench)
    inputs.sets.run("digits")
    bench.sent(AgreementQuery).answer(outcome(10))
    sample = InputSpec(name="x", file="digits", item=3)
    inputs.take_sample((sample,))
    derive(bench)
    assert wanted(bench) == (sample,)
    assert inputs.sets.record is not None


# The form for the inputs: what is filled in, and what was said before, is what comes out


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
    own = Problem(what="it fails", todo="check the shapes: --input x=1:float32")
    # That of a child names the window's commands.
    child = Problem(what="it fails", todo="check the shapes: Edit → Inputs…", code="change-inputs")
    for problem in (own, child):
        dialog.show_problem(problem)
        assert dialog.row("x").wrong.text() == "it fails."


def test_inputs_that_fail_leave_no_problem_once_the_form_is_cancelled(
    bench: Bench, qtbot: QtBot
) -> None:
    open_with(bench)
    window = QWidget()
    qtbot.addWidget(window)
    form = InputsForm(bench.document, window)
    form.edit()
    (dialog,) = window.findChildren(InputsDialog)
    dialog.row("x").shape.setText("3")
    _press_ok(dialog)
    fails = Problem(what="it fails", code="change-inputs", choices=("x",))
    bench.sent(SnapshotQuery).refuse(fails)
    assert bench.document.problems == (fails,)
    dialog.reject()
    assert bench.document.problems == ()
    assert bench.document.recipe == RECIPE


def test_what_is_left_alone_is_not_said(qtbot: QtBot) -> None:
    dialog = InputsDialog(["a", "b"], _known("a", "b"), (), 0)
    qtbot.addWidget(dialog)
    assert _accept(dialog) == ()


# Names in the shapes of the inputs' form, their ranges, and the sizes to run at


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
