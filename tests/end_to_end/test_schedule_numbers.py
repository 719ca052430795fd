"""The numbers of a function that is scheduled: right, fast, and how fast it could be."""

from __future__ import annotations

import os
import re
import signal

import pytest
from PySide6.QtTest import QTest

from lowerscope.app.panes.schedule.measurements import Measurements
from lowerscope.app.panes.schedule.numbers_page import NumbersPage
from lowerscope.core.model.recipe import Recipe, Source
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


def test_a_function_and_each_step_of_it_have_their_numbers(bench: Bench) -> None:
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

    # Each step is checked and measured by itself.
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
    assert set(rows) >= {"unscheduled", "variant:"}
    assert rows["variant:"][3] == "✓ same"
    assert re.match("● (★ )?first", rows["variant:"][0])
    assert [bar.name for bar in page.bars.bars()] == ["unscheduled", "first", "torch"]
    # All variants are measured on demand, and the history has what was checked on the way.
    bench.window.commands.action("duplicate-variant").trigger()
    bench.settle()
    bench.view.set_current("loops")
    bench.select("k")
    bench.apply("unroll")
    bench.window.commands.action("numbers").trigger()
    QTest.mouseClick(page.all, LEFT)
    names = {"unscheduled", "variant:", "variant:copy of first"}
    bench.wait(lambda: set(variants(page)) >= names)
    bench.wait(lambda: all(row[1] for row in variants(page).values()))
    measured(bench)
    assert variants(page)["variant:copy of first"][3] == "✓ same"
    bench.view.set_current("loops")
    bench.wait(lambda: [row.time for row in bench.view.history.list.rows()] == ["", "✓", "✓"])


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
