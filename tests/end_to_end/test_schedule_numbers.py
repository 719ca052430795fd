"""The numbers of a function that is scheduled: right, fast, and how fast it could be."""

from __future__ import annotations

import os
import re
import signal

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from lowerscope.app.panes.schedule.measurements import Measurements
from lowerscope.app.panes.schedule.numbers_page import NumbersPage
from lowerscope.core.model.recipe import Dimension, InputSpec, Recipe, Source
from lowerscope.core.model.schedule import At, Primitive
from tests.end_to_end.scheduling import LEFT, Bench

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")


@pytest.fixture(autouse=True)
def _begin(bench: Bench) -> None:
    bench.window.features.measurements.set_automatic(True)
    bench.begin(RECIPE)
    bench.open("te_matmul")


def numbers(bench: Bench) -> NumbersPage:
    """Show the page."""
    bench.window.commands.action("numbers").trigger()
    return bench.view.numbers


def measurements(bench: Bench) -> Measurements:
    return bench.window.features.measurements


def measured(bench: Bench) -> None:
    """Wait until what is shown is measured, and nothing is under way."""
    found = measurements(bench)

    def is_measured() -> bool:
        here = found.here
        known = here is not None and found.measured(here) is not None
        coming = known and found.is_coming("measure", here)
        return known and not coming and found.doing is None and found.peaks is not None

    bench.settle()
    bench.wait(is_measured)


def cells(page: NumbersPage) -> dict[str, tuple[str, ...]]:
    rows = page.figures.rows()
    return {row.key: tuple(row.cell(place).text for place in range(3)) for row in rows}


def variants(page: NumbersPage) -> dict[str, tuple[str, ...]]:
    rows = page.variants.rows()
    return {row.key: tuple(row.cell(place).text for place in range(4)) for row in rows}


def test_a_function_has_its_work_its_time_and_its_place_below_the_roof(bench: Bench) -> None:
    page = numbers(bench)
    measured(bench)
    found = cells(page)
    assert found["calls"][1] == "1"
    assert found["flops"][1] == "32.8 kFLOP"
    assert found["read"][1] == f"{4 * (128 + 128 * 128) / 1000:.3g} kB"
    assert found["written"][1] == "512 B"
    here = measurements(bench).measured(measurements(bench).here)
    assert here is not None
    assert float(found["gflops"][1]) == pytest.approx(
        2 * 128 * 128 / here.milliseconds / 1e6, rel=0.01
    )
    assert found["time"][2].endswith((" µs", " ms"))  # torch's, for matmul alone
    assert [mark.name for mark in page.roofline.marks()] == ["here", "torch"]
    assert "here: " in page.roofline.accessibleDescription()
    assert bench.view.verdict.text() == "unscheduled"


def test_a_step_is_checked_and_measured_by_itself(bench: Bench) -> None:
    page = numbers(bench)
    bench.view.set_current("loops")
    bench.select("j")
    bench.apply("parallel")
    measured(bench)
    verdict = bench.view.verdict
    assert verdict.isVisible()
    assert verdict.text().startswith("✓ same")
    QTest.mouseClick(verdict, LEFT)
    assert page.isVisible()
    assert {mark.name for mark in page.roofline.marks()} >= {"unscheduled", "here", "torch"}
    rows = variants(page)
    assert set(rows) == {"unscheduled", "variant:"}
    assert rows["variant:"][3] == "✓ same"
    assert re.match("● (★ )?first", rows["variant:"][0])
    assert [bar.name for bar in page.bars.bars()] == ["unscheduled", "first", "torch"]


def test_the_fastest_is_had_back_as_a_variant(bench: Bench) -> None:
    page = numbers(bench)
    measured(bench)
    found = measurements(bench)
    # Rows of 128 numbers in the order of memory: some five times as fast on any machine.
    order = (At(block="matmul", loop=2), At(block="matmul", loop=1))
    for name, arguments in (
        ("reorder", {"loops": order}),
        ("vectorize", {"loop": At(block="matmul", loop=2)}),
    ):
        bench.scheduling.editing.apply(Primitive(id="", name=name, arguments=arguments))
        bench.settle()
    measured(bench)
    for count in (1, 0):
        bench.window.commands.action("undo").trigger()
        bench.steps(count)
        measured(bench)
    # Whether with the second step or without: what the compiler makes of it is the same.
    assert found.best is not None
    fastest = found.best[0].primitives
    assert fastest
    assert fastest[0].name == "reorder"
    page.variants.set_selection(["best"])
    bench.key(page.variants, Qt.Key.Key_Return)
    bench.wait(lambda: bench.scheduling.primitives == fastest)
    bench.settle()
    assert variants(page)["variant:best"][0] == "● ★ best"


def test_a_step_that_changes_the_values_is_marked_and_is_never_the_best(bench: Bench) -> None:
    page = numbers(bench)
    reduction = bench.record.tree[-1].axes
    assert reduction[-1][1] == "R"
    loops = [each for each in bench.record.tree if each.kind == "loop"]
    place = At(block=bench.record.tree[-1].name, loop=len(loops) - 1)
    bench.scheduling.editing.apply(
        Primitive(id="", name="loop_partition", arguments={"loop": place, "factors": (8, None)})
    )
    bench.steps(1)
    assert bench.record.steps[0].status == "failed"
    bench.scheduling.editing.force(bench.record.steps[0].id)
    bench.wait(lambda: bench.record.steps[0].status == "done")
    measured(bench)
    assert bench.view.verdict.text().startswith("✕ differs · by ")
    best = measurements(bench).best
    assert best is not None
    assert "loop_partition" not in [each.name for each in best[0].primitives]
    assert variants(page)["variant:"][3] == "✕ differs"


def test_a_measurement_is_stopped_and_begun_again(bench: Bench) -> None:
    page = numbers(bench)
    measured(bench)
    engine = bench.window.features.processes.engine.pid
    found = measurements(bench)
    QTest.mouseClick(page.measure, LEFT)
    bench.wait(lambda: found.doing == "measure")
    assert page.stop.isVisible()
    QTest.mouseClick(page.stop, LEFT)
    bench.wait(lambda: found.doing is None)
    assert bench.window.features.processes.engine.pid == engine
    assert not page.automatic.isChecked()
    assert found.here is not None
    assert found.measured(found.here) is None
    QTest.mouseClick(page.measure, LEFT)
    measured(bench)
    assert "time" in cells(page)


def test_a_function_that_crashes_costs_the_worker_alone(bench: Bench) -> None:
    numbers(bench)
    measured(bench)
    _document, found = bench.window.document, measurements(bench)
    engine = bench.window.features.processes.engine.pid

    def die() -> None:
        if found.doing == "check" and bench.window.features.processes.worker.pid is not None:
            found.changed.disconnect(die)
            os.kill(bench.window.features.processes.worker.pid, signal.SIGSEGV)

    found.changed.connect(die)
    bench.scheduling.editing.apply(
        Primitive(id="", name="vectorize", arguments={"loop": At(block="matmul", loop=1)})
    )
    bench.wait(lambda: bench.view.verdict.text().startswith("not known"))
    assert "SIGSEGV" in bench.view.verdict.toolTip()
    assert bench.window.features.processes.engine.pid == engine
    # It is not tried again by itself, as it may be the function's doing; on demand it is.
    bench.wait(lambda: found.doing is None)
    assert found.here is not None
    assert found.measured(found.here) is None
    bench.window.commands.action("measure-function").trigger()
    measured(bench)
    assert bench.view.verdict.text().startswith("✓ same")


def test_what_is_unsafe_is_checked_at_once_even_where_nothing_is_measured(bench: Bench) -> None:
    numbers(bench)
    measured(bench)
    found = measurements(bench)
    found.set_automatic(False)
    bench.scheduling.editing.apply(
        Primitive(
            id="",
            name="loop_partition",
            arguments={"loop": At(block="matmul", loop=2), "factors": (100, None)},
            forced=True,
        )
    )
    bench.wait(lambda: bench.view.verdict.text().startswith("✕ differs"))
    assert found.here is not None
    assert found.measured(found.here) is None


def test_a_function_of_any_size_has_numbers_at_the_traced_one(bench: Bench) -> None:
    inputs = (InputSpec(shape=("n", 784)),)
    dimensions = (Dimension(name="n", low=1, high=64),)
    source = Source(spec="sample:fashion_mlp")
    bench.begin(Recipe(source=source, inputs=inputs, dimensions=dimensions, lowering="te"))
    bench.open("te_relu")
    bench.select("i1")
    bench.apply("vectorize")
    page = numbers(bench)
    measured(bench)
    assert cells(page)["at"][:2] == ("at the size", "n = 5")
    assert cells(page)["flops"][1] == "640 FLOP"
    assert variants(page)["variant:"][3] == "✓ same"
    assert "with n = 5, the size that the model is traced at" in bench.view.verdict.toolTip()
