"""The numbers of a function that is scheduled: right, fast, and how fast it could be."""

from __future__ import annotations

import re

import pytest
from PySide6.QtTest import QTest

from lowerscope.app.panes.schedule.measurements import Measurements
from lowerscope.app.panes.schedule.schedule_view import ScheduleView
from lowerscope.core.model.recipe import Recipe, Source
from tests.end_to_end.scheduling import LEFT, Bench

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")


@pytest.fixture(autouse=True)
def _begin(bench: Bench) -> None:
    bench.window.features.measurements.set_automatic(True)
    bench.begin(RECIPE)
    bench.open("te_matmul")


def numbers(bench: Bench) -> ScheduleView:
    """Go to the figures."""
    bench.window.commands.action("numbers").trigger()
    assert bench.window.focusWidget() is bench.view.figures.table
    return bench.view


def measurements(bench: Bench) -> Measurements:
    return bench.window.features.measurements


def measured(bench: Bench) -> None:
    """Wait until what is shown is measured, and nothing is under way."""
    found = measurements(bench)

    def is_measured() -> bool:
        here = found.here
        known = here is not None and found.measured(here) is not None
        coming = known and found.is_coming(here.measure)
        return known and not coming and found.doing is None and found.peaks is not None

    bench.settle()
    bench.wait(is_measured)


def cells(view: ScheduleView) -> dict[str, tuple[str, ...]]:
    rows = view.figures.table.rows()
    return {row.key: tuple(row.cell(place).text for place in range(3)) for row in rows}


def variants(view: ScheduleView) -> dict[str, tuple[str, ...]]:
    rows = view.variants.table.rows()
    return {row.key: tuple(row.cell(place).text for place in (0, 2, 3, 4)) for row in rows}


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
    assert [mark.name for mark in page.roofline.plot.marks()] == ["current", "torch"]
    assert "current: " in page.roofline.plot.accessibleDescription()
    assert bench.view.standing.verdict.text() == "unscheduled"

    # Each step is checked and measured by itself.
    bench.select("j")
    bench.apply("parallel")
    measured(bench)
    verdict = bench.view.standing.verdict
    assert verdict.isVisible()
    assert verdict.text().startswith("✓ same")
    assert {mark.name for mark in page.roofline.plot.marks()} >= {"unscheduled", "current", "torch"}
    rows = variants(page)
    assert set(rows) >= {"unscheduled", "variant:"}
    assert rows["variant:"][3] == "✓ same"
    assert re.match("● (★ )?first", rows["variant:"][0])
    assert list(rows)[-1] == "torch"
    assert "slower than torch" in bench.view.standing.times.whole()
    # All variants are measured on demand, and the history has what was checked on the way.
    bench.window.commands.action("duplicate-variant").trigger()
    bench.settle()
    bench.select("k")
    bench.apply("unroll")
    QTest.mouseClick(page.variants.all, LEFT)
    names = {"unscheduled", "variant:", "variant:copy of first"}
    bench.wait(lambda: set(variants(page)) >= names)
    bench.wait(lambda: all(row[1] for row in variants(page).values()))
    measured(bench)
    assert variants(page)["variant:copy of first"][3] == "✓ same"
    strip = bench.view.history.strip
    bench.wait(lambda: [cell.mark for cell in strip.cells()[1:]] == ["✓ same"] * 2)
    assert all(cell.value for cell in strip.cells())
    assert strip.level is not None
