"""A matmul is scheduled by mouse in the real window: ``python -m tests.schedule_walk``.

Prints the table of the help page: what each step makes of the time, on this machine, as the
history has it. Run it while nothing else runs. `tests.screenshots` takes its pictures on the way.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator

from PySide6.QtCore import QSettings
from PySide6.QtTest import QTest

from lowerscope.app.shell.start import make_window
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.schedule_records import Measured
from tests.end_to_end.scheduling import Bench

TARGETS = {"llvm": "`llvm`", "native": "this machine"}
"""Those that are measured, and what they are called in the table."""

Look = Callable[[str], None]
"""Is told what there is to be seen now, by the name of a picture."""


def recipe_of(target: str) -> Recipe:
    """Return the sample, lowered by TE for a target."""
    return Recipe(source=Source(spec="sample:matmul"), lowering="te", target=target)


def begin(window: MainWindow, target: str) -> Bench:
    """Open the sample, and the workbench on its function."""
    bench = Bench(window)
    recipe = recipe_of(target)
    window.document.open(recipe)
    window.show_panes()
    bench.wait(lambda: window.document.recipe == recipe and not window.document.job.text)
    bench.begin(recipe)
    bench.open("te_matmul")
    return bench


def walk(bench: Bench, look: Look) -> Iterator[str]:
    """Go through the walk by mouse; yield what was clicked, after each step."""
    bench.select("i")
    look("moves")
    yield "unscheduled"
    for loop, factor in (("i", 32), ("j", 32), ("k", 4)):
        bench.select(loop)
        bench.choose("split")
        inner = bench.view.form.editors["factors"].factors.fields[1]  # type: ignore[attr-defined]
        inner.selectAll()
        QTest.keyClicks(inner, str(factor))
        if loop == "i":
            look("split")
        bench.press_apply()
        bench.wait(lambda loop=loop: f"{loop}_0" in [each.name for each in bench.record.tree])
        bench.settle()
        yield f"`{loop}` → split, {factor}"
    order = ("i_0", "j_0", "k_0", "i_1", "k_1", "j_1")
    bench.select(*order)
    bench.choose("reorder")
    look("reorder")
    bench.press_apply()
    bench.steps(4)
    yield ", ".join(f"`{each}`" for each in order) + " → reorder"
    for chosen, move in (
        (("matmul",), "cache_write"),
        (("j_1",), "vectorize"),
        (("i_0",), "parallel"),
        (("matmul", "k_0"), "decompose_reduction"),
    ):
        bench.select(*chosen)
        bench.apply(move)
        yield ", ".join(f"`{each}`" for each in chosen) + f" → {move}"
    look("done")


def measured(bench: Bench) -> Measured:
    """Wait until what is shown is measured, and checked as the same."""
    numbers = bench.window.features.measurements

    def is_there() -> bool:
        here = numbers.here
        return (
            here is not None
            and numbers.measured(here) is not None
            and numbers.checked(here) is not None
            and numbers.doing is None
        )

    bench.wait(is_there)
    here = numbers.here
    assert here is not None
    found, checked = numbers.measured(here), numbers.checked(here)
    assert found is not None
    assert checked is not None
    assert checked.verdict == "same", checked
    return found


def main() -> None:
    """Print the table."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    times: dict[str, dict[str, Measured]] = {}
    with tempfile.TemporaryDirectory() as settings:
        QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, settings)
        _, window = make_window()
        window.resize(1440, 900)
        window.show()
        window.begin(None)
        for target in TARGETS:
            bench = begin(window, target)
            for clicked in walk(bench, lambda _: None):
                times.setdefault(clicked, {})[target] = measured(bench)
        window.close()
    print("| | " + " | ".join(f"{words}, ms | GFLOP/s" for words in TARGETS.values()) + " |")
    print("|---|" + "---:|---:|" * len(TARGETS))
    for clicked, found in times.items():
        cells = (f"{each.milliseconds:.3g} | {each.gflops:.3g}" for each in found.values())
        print(f"| {clicked} | " + " | ".join(cells) + " |")
    print("| torch | " + " | ".join(torch_cells(each) for each in found.values()) + " |")


def torch_cells(measured: Measured) -> str:
    """Return what torch takes for the same, and how fast that is."""
    assert measured.torch_ms is not None
    assert measured.gflops is not None
    rate = measured.gflops * measured.milliseconds / measured.torch_ms
    return f"{measured.torch_ms:.3g} | {rate:.3g}"


if __name__ == "__main__":
    main()
