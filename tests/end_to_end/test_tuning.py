"""Tuning through the window: the curve, pause, stop, a process that dies, and what is kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtTest import QTest

from lowerscope.app.panes.tuning.commands import TuneDialog
from lowerscope.app.panes.tuning.model import Tuning
from lowerscope.app.panes.tuning.tune_page import TunePage
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.tuning_records import TunedFunction
from tests.end_to_end.driving import PATIENCE, wait_until
from tests.end_to_end.scheduling import LEFT, Bench

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")
FUNCTION = "te_matmul"


@pytest.fixture(autouse=True)
def _begin(bench: Bench) -> Iterator[None]:
    bench.begin(RECIPE)
    bench.open(FUNCTION)
    yield
    tuning_of(bench).stop()
    bench.wait(lambda: not tuning_of(bench).under_way)


def tuning_of(bench: Bench) -> Tuning:
    return bench.window.features.tuning


def page_of(bench: Bench) -> TunePage:
    return bench.window.panes.tune


def asked(bench: Bench) -> TuneDialog:
    """Open the form, by mouse."""
    QTest.mouseClick(bench.view.tune, LEFT)
    dialog = next(each for each in bench.window.findChildren(TuneDialog) if each.isVisible())
    assert dialog.one.isChecked()
    return dialog


TRIALS = 40


def start(bench: Bench, trials: int) -> None:
    """Tune the function at the workbench, by mouse."""
    dialog = asked(bench)
    assert FUNCTION in dialog.one.text()
    dialog.trials.setValue(trials)
    assert dialog.estimate.text().startswith("About ")
    QTest.mouseClick(dialog.begin, LEFT)
    bench.wait(page_of(bench).isVisible)


def found(bench: Bench) -> TunedFunction:
    """Return what is known of the function."""
    state = tuning_of(bench).state
    assert state is not None
    return state.functions[0]


def trials_of(bench: Bench) -> int:
    state = tuning_of(bench).state
    return 0 if state is None or not state.functions else found(bench).trials


def wait_for_trials(bench: Bench, count: int) -> None:
    """Wait for the first candidates: two processes import torch and TVM before."""
    assert wait_until(lambda: trials_of(bench) >= count, 3 * PATIENCE), tuning_of(bench).said


def variants(bench: Bench) -> list[str]:
    return [each.variant for each in bench.window.features.variants.all]


def test_a_function_is_tuned_and_its_best_is_in_the_history(bench: Bench) -> None:
    tuning, page, document = tuning_of(bench), page_of(bench), bench.window.document
    # A busy window hears of trials late: many are left when it pauses.
    start(bench, TRIALS)
    wait_for_trials(bench, 2)
    QTest.mouseClick(page.pause, LEFT)
    bench.wait(lambda: tuning.phase == "paused")
    before = len(page.curve.points())
    assert before >= 1
    assert {each.label for each in page.curve.levels()} >= {"unscheduled"}
    assert f"of {TRIALS} trials" in page.curve.accessibleDescription()
    bench.wait(lambda: " left · " in page.summary.whole())
    assert page.summary.whole().startswith(f"{trials_of(bench)} of {TRIALS} trials · about ")
    # Paused, it measures nothing, while the model is run.
    done = trials_of(bench)
    assert done < TRIALS
    assert page.pause.text() == "Resume"
    bench.window.commands.action("run").trigger()
    bench.wait(lambda: document.run_record is not None and not document.running)
    assert tuning.phase == "paused"
    assert trials_of(bench) == done
    bench.window.show_page("tune")
    QTest.mouseClick(page.pause, LEFT)
    bench.wait(lambda: trials_of(bench) > done or not tuning.under_way)
    bench.wait(lambda: not tuning.under_way and bench.window.features.scheduling.schedule)
    assert found(bench).state == "done"
    assert len(page.curve.points()) >= before
    best, unscheduled = found(bench).best, found(bench).unscheduled
    assert best is not None
    assert unscheduled is not None
    assert best < unscheduled
    # The best is an ordinary history, which computes the same.
    bench.window.set_mode("schedule")
    bench.settle()
    assert variants(bench) == ["tuned"]
    assert {each.status for each in bench.record.steps} == {"done"}
    bench.wait(lambda: bench.view.standing.verdict.text().startswith("✓"))
    bench.window.commands.action("undo").trigger()
    bench.wait(lambda: not document.recipe.schedules)  # type: ignore[union-attr]
