"""The list of steps and its commands, with records of passes as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.document.settings import Settings
from lowerscope.app.document.stepping import StepFilter
from lowerscope.app.kit.commands import Commands
from lowerscope.app.kit.tables.step_list import StepRow
from lowerscope.app.panes.common.descriptions import fate_text
from lowerscope.app.panes.sessions.trust import Trusting
from lowerscope.app.panes.steps.commands import PipelineEditing
from lowerscope.app.panes.steps.pipeline_view import PipelineView
from lowerscope.core.model.module_steps import BindingEffect, Moment, PassRecord
from lowerscope.core.model.queries import SnapshotQuery
from lowerscope.core.model.recipe import Recipe, Source, Step
from lowerscope.core.model.snapshot import Span, TextRecord
from tests.app.conftest import bench
from tests.app.plain_values import Bench, snapshot

__all__ = ["bench"]

NAMES = ("LegalizeOps", "FoldConstant", "FuseOps", "FuseTIR")
STEPS = tuple(Step(name=each) for each in NAMES)
RECIPE = Recipe(source=Source(spec="sample:fashion_mlp"), steps=STEPS)
CHANGED = (("dense", "relu"), (), ("fused_dense_relu",), ("fused_dense_relu",))
PASSES = (
    *(
        PassRecord(
            number=number,
            label=str(number),
            name=name,
            step=number,
            changed=changed,
            added=int(number == 1),
        )
        for number, (name, changed) in enumerate(zip(NAMES, CHANGED, strict=True), 1)
    ),
    PassRecord(
        number=5,
        label="4.1",
        name="Inner",
        depth=1,
        parent=4,
        step=4,
        changed=("fused_dense_relu",),
    ),
)


class Pane:
    """The pane, on a recipe whose passes are known."""

    def __init__(self, bench: Bench, recipe: Recipe = RECIPE, *passes: PassRecord) -> None:
        features = bench.features
        self.bench, self.document, self.stepping = bench, bench.document, features.stepping
        self.view = PipelineView(features.shared)
        self.open(recipe, *(passes or PASSES))

    def open(self, recipe: Recipe, *passes: PassRecord) -> None:
        self.document.open(recipe)
        self.derive(*passes)

    def derive(self, *passes: PassRecord, **fields: Any) -> None:
        records = msgspec.structs.replace(
            snapshot("dense", "relu"), passes=passes, key="1", **fields
        )
        self.bench.sent(SnapshotQuery).answer(records)

    def steps(self) -> tuple[Step, ...]:
        assert self.document.wanted is not None
        return self.document.wanted.steps

    def titles(self) -> list[str]:
        return [row.title for row in self.view.list.rows() if row.place >= 0]

    def texts(self) -> dict[str, str]:
        """Return what the rows of the recipe's steps say of their outcome."""
        return {row.title: row.words for row in self.view.list.rows() if row.place >= 0}


@pytest.fixture
def pane(qtbot: QtBot, bench: Bench) -> Iterator[Pane]:
    pane = Pane(bench)
    yield pane
    pane.view.deleteLater()


# Rows


def test_rows_say_what_each_step_did(pane: Pane) -> None:
    said = ("2 functions +1 ~1", "nothing changed", "fused_dense_relu", "fused_dense_relu")
    assert pane.texts() == dict(zip(NAMES, said, strict=True))
    failed = (
        PASSES[0],
        msgspec.structs.replace(PASSES[1], status="failed", error="no such option"),
        msgspec.structs.replace(PASSES[2], status="skipped"),
    )
    off = Step(name="FuseTIR", on=False)
    pane.open(
        msgspec.structs.replace(RECIPE, steps=(*STEPS[:3], off)),
        *failed,
        msgspec.structs.replace(PASSES[3], status="off"),
    )
    assert pane.texts() == dict(
        zip(
            NAMES,
            ("2 functions +1 ~1", "✕ failed no such option", "not reached", "switched off"),
            strict=True,
        )
    )
    row = pane.view.list.row("step:1")
    assert row is not None
    assert row.state == "wrong"


def test_steps_from_the_first_difference_wait_for_their_records(pane: Pane) -> None:
    options: Any = {"fuse_opt_level": 1}
    added = Step(name="FuseOps", options=options)
    pane.view.change_steps((STEPS[0], added, *STEPS[1:]))
    assert pane.document.is_changing
    rows = [row for row in pane.view.list.rows() if row.place >= 0]
    assert [row.words for row in rows] == ["2 functions +1 ~1", "…", "…", "…", "…"]
    assert rows[1].note == "fuse_opt_level=1"


def test_filters_choose_the_rows_and_the_steps_that_are_gone_through(
    qtbot: QtBot, pane: Pane
) -> None:
    view, stepping = pane.view, pane.stepping
    qtbot.keyClicks(view.filter, "fuset")
    assert pane.titles() == ["FuseTIR"]
    stepping.first()
    stepping.step(1)
    assert stepping.line is not None
    assert stepping.line.title == "FuseTIR"
    view.filter.clear()
    qtbot.keyClicks(view.filter, "fused_")
    assert pane.titles() == ["FuseOps", "FuseTIR"]
    view.filter.clear()
    assert pane.titles() == list(NAMES)


def folds(pane: Pane) -> dict[str, bool]:
    """Return the rows of unchanged steps, and whether each is unfolded."""
    rows = pane.view.list.rows()
    return {row.title: row.unfolded for row in rows if row.key.startswith("fold:")}


def test_unchanged_steps_are_folded_to_a_row(qtbot: QtBot, pane: Pane) -> None:
    view, stepping = pane.view, pane.stepping
    assert folds(pane) == {"1 unchanged": False}
    same = view.list.row("step:1")
    assert same is not None
    fold = view.list.row(same.parent)
    assert fold is not None
    assert fold.number == "2"
    # It is in view while it is the current step.
    stepping.go(Moment(section="passes", index=2))
    assert folds(pane) == {"1 unchanged": True}
    stepping.go(Moment(section="passes", index=3))
    view.list.folded.emit(fold.key, True)
    qtbot.waitUntil(lambda: folds(pane) == {"1 unchanged": True})
    stepping.set_filter(StepFilter(hide_unchanged=False))
    assert folds(pane) == {}
    assert pane.titles() == list(NAMES)


def test_sections_have_one_count_each(qtbot: QtBot, pane: Pane) -> None:
    def said() -> dict[str, str]:
        return {row.title: row.words for row in pane.view.list.rows() if row.kind == "section"}

    assert said()["Passes"] == "3 of 4 changed"
    assert said()["Build"] == "not built"
    inner = [
        msgspec.structs.replace(PASSES[1], number=2, label="1.1", depth=1, parent=1),
        msgspec.structs.replace(PASSES[0], number=3, label="1.2", depth=1, parent=1),
    ]
    pane.stepping.take_build((PASSES[0], *inner))
    # What a section counts is what the slider has a dot for.
    assert said()["Build"] == "1 of 2 changed"
    assert len(pane.stepping.dots("build")) == 2
    pane.stepping.go(Moment(section="build", index=3))
    assert pane.view.list.marked() == "build:3"


def test_a_fold_inside_of_a_step_counts_the_passes_that_it_has_the_numbers_of(
    qtbot: QtBot, pane: Pane
) -> None:
    outer = msgspec.structs.replace(PASSES[0], name="sequential")
    same = [
        msgspec.structs.replace(
            PASSES[1], number=place + 1, label=f"1.{place}", depth=depth, parent=parent
        )
        for place, depth, parent in ((1, 1, 1), (2, 2, 2), (3, 1, 1))
    ]
    pane.view.list.folded.emit("section:build", True)
    pane.stepping.take_build((outer, *same))

    def shown() -> list[StepRow]:
        return [row for row in pane.view.list.rows() if row.key.startswith("fold:build")]

    qtbot.waitUntil(lambda: len(shown()) == 1)
    (fold,) = shown()
    assert (fold.number, fold.title) == ("1–3", "3 unchanged")
    # The filter leaves no row of it, and none that is empty.
    pane.stepping.set_filter(StepFilter(text="FuseOps"))
    assert all(row.title for row in pane.view.list.rows())


def test_the_selection_follows_the_step_into_another_section(pane: Pane) -> None:
    pane.stepping.take_build(PASSES[:1])
    pane.stepping.last()
    pane.stepping.leave()
    pane.stepping.go(Moment(section="build", index=1))
    assert pane.view.list.current_key() == pane.view.list.marked() == "build:1"


def test_passes_that_are_being_applied_are_not_counted_and_nor_is_what_follows(pane: Pane) -> None:
    pane.stepping.take_build(PASSES[:1])
    pane.view.change_steps(STEPS[:2])
    words = {row.title: row.words for row in pane.view.list.rows() if row.kind == "section"}
    assert words["Passes"] == "in progress…"
    assert words["Build"] == "outdated"


def test_no_step_follows_the_last_one(pane: Pane) -> None:
    stepping = pane.stepping
    assert stepping.can_step(1)
    stepping.last()
    assert not stepping.can_step(1)
    stepping.take_build(PASSES[:1])
    assert stepping.can_step(1)


def test_playing_stops_where_a_pass_has_a_breakpoint(
    qtbot: QtBot, pane: Pane, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepping = pane.stepping
    pane.view.select_place(2)
    pane.view.toggle_break()
    row = pane.view.list.row("step:2")
    assert row is not None
    assert row.is_break
    stepping.play()
    qtbot.waitUntil(lambda: not stepping.playing)
    assert stepping.moment == Moment(section="passes", index=3)
    # From there on, it goes to the end.
    stepping.play()
    assert stepping.playing
    qtbot.waitUntil(lambda: not stepping.playing)
    assert stepping.moment == Moment(section="passes", index=4)
    # An unchanged step counts where playing goes on until it.
    stepping.first()
    stepping.play(until={2})
    qtbot.waitUntil(lambda: not stepping.playing)
    assert stepping.moment == Moment(section="passes", index=2)


def test_passes_inside_of_a_step_unfold(qtbot: QtBot, pane: Pane) -> None:
    def labels() -> list[str]:
        return [each.label for each in pane.stepping.dots("passes")]

    assert [row.number for row in pane.view.list.rows() if row.parent == "step:3"] == ["1"]
    for unfolded, last in ((True, "4.1"), (False, "4")):
        pane.view.list.folded.emit("step:3", unfolded)
        qtbot.waitUntil(lambda last=last: labels() == ["1", "2", "3", last])  # type: ignore[misc]


# Edits


def test_each_edit_is_one_step_of_undo(pane: Pane) -> None:
    view, document = pane.view, pane.document
    a, b, c, d = STEPS
    view.select_place(2)
    for act, steps in (
        (view.switch, (a, b, msgspec.structs.replace(c, on=False), d)),
        (view.switch, STEPS),
        (lambda: view.move_step(-1), (a, c, b, d)),
        (lambda: view.move_step(-1), (c, a, b, d)),
        (lambda: view.move_step(-1), (c, a, b, d)),
        (view.duplicate, (c, c, a, b, d)),
        (view.remove, (c, a, b, d)),
    ):
        act()
        if pane.document.is_changing:
            pane.derive(*PASSES)
        assert pane.steps() == steps
    for _ in range(6):
        document.undo()
        pane.derive(*PASSES)
    assert pane.steps() == STEPS
    assert not document.can_undo


def test_steps_are_gone_to_and_edited_by_mouse_and_keys(qtbot: QtBot, pane: Pane) -> None:
    steps, viewport = pane.view.list, pane.view.list.viewport()
    a, b, c, d = STEPS
    pane.view.resize(420, 500)
    pane.view.show()
    place = QPoint(160, round(steps.row_rect("step:2").center().y()))
    QTest.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=place)
    qtbot.waitUntil(lambda: pane.stepping.moment == Moment(section="passes", index=3))
    box, shift = steps.box_rect("step:2").center().toPoint(), Qt.KeyboardModifier.ShiftModifier
    for act, wanted in (
        (
            lambda: QTest.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=box),
            (a, b, msgspec.structs.replace(c, on=False), d),
        ),
        (lambda: QTest.keyClick(steps, Qt.Key.Key_Space, shift), STEPS),
        (lambda: steps.moved.emit(2, 0), (c, a, b, d)),
        (lambda: QTest.keyClick(steps, Qt.Key.Key_Delete), (a, b, d)),
    ):
        act()
        assert pane.steps() == wanted
        pane.derive(*PASSES[: len(wanted)])
    assert pane.view.selected_place() == 0


def test_two_steps_are_pinned_and_compared(pane: Pane) -> None:
    view, pins = pane.view, pane.bench.features.pins
    view.select_place(0)
    view.pin()
    row = view.list.row("step:0")
    assert row is not None
    assert row.pinned
    view.select_place(2)
    view.compare()
    assert pins.sides is not None
    assert [each.moment for each in pins.sides] == [
        Moment(section="passes", index=1),
        Moment(section="passes", index=3),
    ]


# Pipelines as files, and the step that failed


class Shell(QWidget):
    """The part of the window that commands of the pipeline need."""

    def __init__(self, pane: Pane) -> None:
        super().__init__()
        self.brought: list[str] = []
        self.bring = self.brought.append
        self._view = pane.view

    @property
    def widget(self) -> QWidget:
        return self

    def view(self, _kind: type[QWidget]) -> PipelineView:
        return self._view


@pytest.fixture
def shell(pane: Pane) -> Iterator[Shell]:
    shell = Shell(pane)
    yield shell
    shell.deleteLater()


@pytest.fixture
def editing(pane: Pane, shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the commands; the user answers with ``mine.json`` to the system's dialogs."""
    for name in ("getSaveFileName", "getOpenFileName"):
        monkeypatch.setattr(QFileDialog, name, lambda *_: (str(tmp_path / "mine.json"), ""))
    features, settings = pane.bench.features, Settings()
    settings.asks_first = False
    trusting = Trusting(pane.document, features.processes, features.runs.run, settings, str, shell)
    return PipelineEditing(shell, pane.document, pane.stepping, trusting.ask, Commands(shell))


def test_a_pipeline_is_saved_and_loaded(pane: Pane, editing: Any, tmp_path: Path) -> None:
    editing.save()
    editing.choose(())
    pane.derive()
    assert pane.steps() == ()
    editing.load()
    pane.derive(*PASSES)
    assert pane.steps() == STEPS
    (tmp_path / "mine.json").write_text("{}")
    editing.load()
    assert "saved pipeline" in pane.document.problems[0].what
    assert pane.steps() == STEPS


def test_the_step_that_failed_is_shown(pane: Pane, editing: Any, shell: Shell) -> None:
    pane.open(RECIPE, PASSES[0], msgspec.structs.replace(PASSES[1], status="failed", error="no"))
    editing.show_failed()
    assert shell.brought == ["pipeline"]
    assert pane.view.list.current_key() == pane.view.list.marked() == "step:1"
    # What went into it is the module that is shown.
    assert pane.stepping.moment == Moment(section="passes", index=1)


# What became of the selection, and playing


def test_a_pass_that_removed_the_selection_is_named_from_its_step_on(pane: Pane) -> None:
    gone = BindingEffect(text="folded by FoldConstant", step=2, gone=True)
    records = {"relax:main/lv": gone}
    pane.document.reload()
    span = Span(entity="relax:main/lv", first=1, last=1)
    relax = TextRecord(text="lv = R.add(x, x)", language="python", spans=(span,))
    pane.derive(*PASSES, fates=records, relax=relax)
    document, stepping = pane.document, pane.stepping
    document.select(("relax:main/lv",))
    assert fate_text(document, stepping) == "folded by FoldConstant"
    stepping.go(Moment(section="passes", index=1))
    assert fate_text(document, stepping) == ""
    stepping.go(Moment(section="passes", index=2))
    assert fate_text(document, stepping) == "folded by FoldConstant"
    document.select(("fx:dense",))
    assert fate_text(document, stepping) == ""
