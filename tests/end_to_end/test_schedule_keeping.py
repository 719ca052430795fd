"""A schedule is kept: as Python, in files, for all functions alike, in variants, in the model."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from lowerscope.app.kit.bar_controls import Field
from lowerscope.core.model.recipe import Recipe, Source, applies_schedules
from tests.end_to_end.scheduling import LEFT, Bench

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")

TWINS = """
import numpy as np
from tvm.script import ir as I, relax as R, tirx as T

@I.ir_module(s_tir=True)
class Module:
    @T.prim_func(s_tir=True)
    def double(X: T.Buffer((8, 16), "float32"), Y: T.Buffer((8, 16), "float32")):
        for i, j in T.grid(8, 16):
            with T.sblock("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] * T.float32(2)

    @T.prim_func(s_tir=True)
    def twofold(X: T.Buffer((8, 16), "float32"), Y: T.Buffer((8, 16), "float32")):
        for i, j in T.grid(8, 16):
            with T.sblock("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((8, 16), "float32")) -> R.Tensor((8, 16), "float32"):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.double, (x,), out_ty=R.Tensor((8, 16), "float32"))
            b = R.call_tir(cls.twofold, (a,), out_ty=R.Tensor((8, 16), "float32"))
            R.output(b)
        return b

def example_inputs():
    return (np.random.rand(8, 16).astype("float32"),)

def reference(x):
    return x * 4
"""


def keep(bench: Bench, button: QPushButton | Field, text: str) -> None:
    """Open the menu of a button with the keyboard, and choose an entry."""
    menu = button.menu()
    assert menu is not None
    QTest.mouseClick(button, LEFT)
    bench.wait(menu.isVisible)
    action = next(each for each in menu.actions() if text in each.text().replace("&", ""))
    menu.setActiveAction(action)
    bench.key(menu, Qt.Key.Key_Return)


def test_functions_alike_share_it_and_the_model_runs_with_it(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "twins.py"
    file.write_text(TWINS)
    bench.begin(Recipe(source=Source(spec=str(file)), steps=()))
    document, everywhere = bench.window.document, bench.view.variants.everywhere
    bench.open("double")
    assert everywhere.text() == "all 2 alike"
    bench.select("j")
    bench.apply("vectorize")
    assert everywhere.isChecked()
    bench.open_other("twofold")
    assert "T.vectorized(" in bench.script

    # It goes its own way with what it had; the other one keeps that as well.
    QTest.mouseClick(everywhere, LEFT)
    bench.wait(lambda: bench.view.variant.text() == "Variant first alone")
    bench.settle()
    assert "T.vectorized(" in bench.script
    bench.select("i")
    bench.apply("parallel")
    bench.open_other("double")
    bench.steps(1)
    assert everywhere.isChecked()
    assert everywhere.text() == "1 of 2 alike"
    assert bench.view.variant.text() == "Variant first"
    bench.open_other("twofold")
    bench.steps(2)
    keep(bench, bench.view.variant, "Unscheduled")
    bench.steps(0)
    assert bench.view.variant.text() == "Variant alone"

    before = document.recipe
    bench.open_other("double")
    bench.window.commands.action("run").trigger()
    bench.wait(lambda: document.run_record is not None)
    bench.open_other("twofold")
    QTest.mouseClick(bench.view.in_model, LEFT)
    bench.wait(lambda: document.recipe is not None and applies_schedules(document.recipe))
    bench.settle()
    bench.wait(lambda: document.run_record is None)
    bench.window.commands.action("run").trigger()
    bench.wait(lambda: document.run_record is not None)
    assert document.run_record is not None
    assert document.run_record.verdict == "match"
    assert document.snapshot is not None
    assert document.snapshot.passes[-1].changed == ("double",)
    bench.window.commands.action("undo").trigger()
    bench.wait(lambda: document.recipe == before and not document.job.text)
    assert not bench.view.in_model.isChecked()
    assert bench.view.variant.text() == "Variant alone"
    bench.window.commands.action("undo").trigger()
    bench.steps(2)
    assert bench.view.variant.text() == "Variant first alone"
