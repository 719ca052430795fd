"""The scheduling walk of the help: each row of its table is done, and shows what it says."""

from __future__ import annotations

import re

from PySide6.QtTest import QTest

from lowerscope.app import help_pages
from lowerscope.core.recipe import Recipe, Source
from tests import schedule_walk
from tests.end_to_end.scheduling import LEFT, Bench

RECIPE = Recipe(source=Source(spec="sample:matmul"))

ROW = re.compile(r"^\| (`.+?`) \| (\w+)(?:, (\d+))? \| .+ \| `(.+)` \|$", re.MULTILINE)


def test_the_walk_goes_as_the_page_says(bench: Bench) -> None:
    window = bench.window
    # What each step takes is measured by `tests.schedule_walk`.
    window.workspace.measurements.set_automatic(False)
    window.commands.action("te").trigger()
    window.commands.action("target-native").trigger()
    recipe = schedule_walk.recipe_of("native")
    bench.wait(lambda: window.workspace.recipe == recipe and not window.workspace.activity.text)
    window.workspace.select(("fx:matmul",))
    window.commands.action("workbench").trigger()
    bench.wait(lambda: bench.scheduling.function == "te_matmul" and bench.scheduling.record)
    bench.settle()
    text = help_pages.text_of("scheduling-walk")
    rows = ROW.findall(text)
    assert len(rows) == 8
    for place, (clicked, move, number, script) in enumerate(rows):
        bench.select(*re.findall(r"`(\w+)`", clicked))
        if number:
            bench.choose(move)
            bench.type_factors(None, int(number))
            bench.press_apply()
            bench.steps(place + 1)
        else:
            bench.apply(move)
        assert script in bench.script, f"after {clicked} {move}:\n{bench.script}"
        # The table of times has the same steps.
        assert f"| {clicked} → {move}{number and f', {number}'} |" in text
    assert {each.status for each in bench.record.steps} == {"done"}
    QTest.mouseClick(bench.view.in_model, LEFT)
    window.commands.action("run").trigger()
    bench.wait(lambda: window.workspace.run_record is not None)
    assert window.workspace.run_record is not None
    assert window.workspace.run_record.verdict == "match"
