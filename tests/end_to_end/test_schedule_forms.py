"""The forms of primitives by mouse and keyboard: wrong, unsafe, kept as drafts, and right."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLineEdit

from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.schedule import Argument
from tests.end_to_end.scheduling import LEFT, Bench

RECIPE = Recipe(source=Source(spec="sample:matmul_relu"), lowering="te")
ALT = Qt.KeyboardModifier.AltModifier


@pytest.fixture(autouse=True)
def _begin(bench: Bench) -> None:
    bench.begin(RECIPE)
    bench.open("te_matmul")


def state(bench: Bench) -> str:
    return bench.view.form.state.text()


def line_of(bench: Bench, field: str) -> QLineEdit:
    """Return the line that a field is typed into."""
    line = bench.view.form.editors[field].findChild(QLineEdit)
    assert isinstance(line, QLineEdit)
    return line


def type_in(bench: Bench, field: str, text: str) -> None:
    """Type something else into a field."""
    line = line_of(bench, field)
    line.selectAll()
    QTest.keyClicks(line, text)


def pick(bench: Bench, field: str, text: str) -> None:
    """Choose one of the words of a field with the keyboard."""
    box = bench.view.form.editors[field].findChild(QComboBox)
    assert isinstance(box, QComboBox)
    bench.key(box, Qt.Key.Key_Home)
    for _ in range(box.count()):
        if box.currentText() == text:
            break
        bench.key(box, Qt.Key.Key_Down)
    assert box.currentText() == text


def wait_for(bench: Bench, mark: str) -> None:
    """Wait until the form says what comes of it."""
    bench.wait(lambda: state(bench).startswith(mark))


def arguments(bench: Bench) -> dict[str, Argument]:
    return bench.scheduling.primitives[-1].arguments


def test_factors_are_added_left_open_and_checked(bench: Bench) -> None:
    bench.select("j")
    bench.choose("split")
    factors = bench.view.form.editors["factors"].factors  # type: ignore[attr-defined]
    QTest.mouseClick(factors.more, LEFT)
    bench.type_factors(None, None, 8)
    assert state(bench) == "✕ only one factor can be left open"
    assert not bench.view.form.apply.isEnabled()
    bench.type_factors(3, None, 8)
    assert "3 × 6 × 8 = 144 covers 128, with a guard" in bench.form_texts()
    bench.type_factors(4, None, 8)
    assert "✓ 4 × 4 × 8 = 128" in bench.form_texts()
    bench.key(factors.fields[0], Qt.Key.Key_Return)
    bench.steps(1)
    assert arguments(bench)["factors"] == (4, None, 8)
    assert [each.extent for each in bench.record.tree[1:4]] == ["4", "4", "8"]


@pytest.mark.x
def test_loops_and_axes_are_put_in_order(bench: Bench) -> None:
    bench.select("i", "j", "k")
    bench.choose("reorder")
    names = bench.view.form.editors["loops"].names  # type: ignore[attr-defined]
    before = [names.item(row).text().split()[-1] for row in range(3)]
    places = [names.visualItemRect(names.item(row)).center() for row in range(3)]
    QTest.mousePress(names.viewport(), LEFT, pos=places[0])
    for place in places[1:]:
        QTest.mouseMove(names.viewport(), place)
    QTest.mouseRelease(names.viewport(), LEFT, pos=places[2])
    wanted = [*before[1:], before[0]]
    assert [names.item(row).text().split()[-1] for row in range(3)] == wanted
    bench.press_apply()
    bench.steps(1)
    assert [each.name for each in bench.record.tree[:3]] == wanted

    bench.select("matmul")
    bench.choose("reorder_block_iter_var")
    names = bench.view.form.editors["new_order"].names  # type: ignore[attr-defined]
    names.setCurrentRow(2)
    bench.key(names, Qt.Key.Key_Up, ALT)
    bench.key(names, Qt.Key.Key_Up, ALT)
    bench.press_apply()
    bench.steps(2)
    assert [each[0] for each in bench.record.tree[-1].axes] == ["v_j", "v_i", "v_k"]


def test_words_are_chosen_and_buffers_by_name(bench: Bench) -> None:
    bench.select("matmul")
    bench.choose("cache_read")
    pick(bench, "read_buffer_index", "B")
    pick(bench, "storage_scope", "local")
    bench.press_apply()
    bench.steps(1)
    assert arguments(bench)["read_buffer_index"] == 1
    assert [(each.name, each.scope) for each in bench.record.buffers][-1] == ("B_local", "local")


def test_an_index_map_is_arithmetic_and_loses_nothing(bench: Bench) -> None:
    bench.select("matmul")
    bench.choose("transform_block_layout")
    for text, said in (
        ("v_i, v_j, v_k -> open('x')", "arithmetic"),
        ("v_i, v_j -> v_j, v_i", "3"),
        ("v_i, v_j, v_k -> v_i, v_j // 2, v_k", "biject"),
    ):
        type_in(bench, "index_map", text)
        bench.wait(lambda said=said: said in state(bench))
        assert state(bench)[0] in "✕⚠"
        assert not bench.view.form.apply.isEnabled()
    type_in(bench, "index_map", "v_i, v_j, v_k -> v_j, v_i, v_k")
    wait_for(bench, "✓")
    bench.press_apply()
    bench.steps(1)
    assert [each.extent for each in bench.record.tree[:3]] == ["128", "1", "128"]


def test_a_refused_step_is_kept_as_a_draft_and_mended(bench: Bench) -> None:
    bench.select("k")
    bench.choose("vectorize")
    wait_for(bench, "✕")
    form, shown = bench.view.form, bench.window.panes.scheduled
    assert not form.apply.isEnabled()
    # TVM's own text stands in the place of the script, with the lines that it is about.
    assert shown.pages.currentWidget() is shown.failed
    error = bench.scheduling.trying.preview.error  # type: ignore[union-attr]
    assert error is not None
    assert error.lines
    marked = [line for line in error.lines if shown.failed.editor.marks.is_changed(line - 1)]
    assert marked == list(error.lines)
    assert 'T.sblock("matmul")' in bench.script.split("\n")[marked[0] - 1]
    QTest.mouseClick(form.keep, LEFT)
    bench.steps(1)
    assert bench.statuses() == ["✕ failed"]
    assert shown.line.whole().startswith("✕ vectorize k: ")
    assert bench.view.history.why.text().startswith("✕ ")

    QTest.mouseClick(bench.view.history.edit, LEFT)
    bench.wait(lambda: bench.scheduling.trying.draft is not None)
    assert form.apply.text() == "Change"
    assert form.editors["loop"].name.text() == "k"  # type: ignore[attr-defined]
    bench.select("j")
    take = form.editors["loop"].take  # type: ignore[attr-defined]
    QTest.mouseClick(take, LEFT)
    wait_for(bench, "✓")
    bench.press_apply()
    bench.wait(lambda: bench.statuses() == ["✓ done"])
    bench.settle()
    assert bench.record.steps[0].title == "vectorize j"
    assert "T.vectorized(" in bench.script


def test_an_edited_step_has_the_names_of_before_it_and_the_rest_is_replayed(bench: Bench) -> None:
    bench.select("j")
    bench.choose("split")
    bench.type_factors(None, 16)
    bench.press_apply()
    bench.steps(1)
    bench.select("j_1")
    bench.apply("vectorize")
    bench.select("j_0")
    bench.choose("split")
    bench.type_factors(2, 4)
    bench.press_apply()
    bench.steps(3)
    bench.click_step(1)
    bench.key(bench.view.history.list, Qt.Key.Key_Return)
    bench.wait(lambda: bench.scheduling.trying.draft is not None)
    # It is gone from the tree by then: it was split.
    assert bench.view.form.editors["loop"].name.text() == "j"  # type: ignore[attr-defined]
    bench.type_factors(4, 32)
    bench.press_apply()
    bench.wait(lambda: "32" in bench.record.steps[0].title)
    bench.settle()
    assert bench.statuses() == ["✓ done"] * 3
    bench.window.commands.action("leave-steps").trigger()
    bench.settle()
    extents = {each.name: each.extent for each in bench.record.tree}
    assert (extents["j_1"], extents["j_0_0"], extents["j_0_1"]) == ("32", "2", "4")


def test_a_failed_step_is_applied_anyway_and_checked_at_once(bench: Bench) -> None:
    bench.select("k")
    form = bench.view.form
    bench.choose("loop_partition")
    wait_for(bench, "⚠")
    assert form.force.isVisible()
    QTest.mouseClick(form.force, LEFT)
    bench.steps(1)
    assert bench.scheduling.primitives[0].forced
    steps = bench.view.history.list
    bench.wait(lambda: steps.rows()[1].time == "✕")
    assert "it computes something else" in steps.rows()[1].said
    assert bench.view.verdict.text().startswith("✕ differs")


DOTS = """
import numpy as np
from tvm.script import ir as I, relax as R, tirx as T

@I.ir_module(s_tir=True)
class Module:
    @T.prim_func(s_tir=True)
    def dots(A: T.Buffer((4,), "uint8"), B: T.Buffer((16, 4), "int8"), C: T.Buffer((16,), "int32")):
        for i, k in T.grid(16, 4):
            with T.sblock("dot"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + T.Cast("int32", A[vk]) * T.Cast("int32", B[vi, vk])

    @R.function
    def main(
        a: R.Tensor((4,), "uint8"), b: R.Tensor((16, 4), "int8")
    ) -> R.Tensor((16,), "int32"):
        cls = Module
        with R.dataflow():
            c = R.call_tir(cls.dots, (a, b), out_ty=R.Tensor((16,), "int32"))
            R.output(c)
        return c

def example_inputs():
    return np.ones(4, "uint8"), np.ones((16, 4), "int8")
"""


def test_an_instruction_of_the_target_is_chosen(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "dots.py"
    file.write_text(DOTS)
    # This machine may not have it: it is only looked at.
    bench.window.features.measurements.set_automatic(False)
    target = '{"kind": "llvm", "mcpu": "cascadelake"}'
    bench.begin(Recipe(source=Source(spec=str(file)), steps=(), target=target))
    bench.open("dots")
    bench.select("dot", "i")
    bench.apply("decompose_reduction")
    bench.select([each.name for each in bench.record.tree if each.kind == "loop"][1])
    bench.choose("tensorize")
    pick(bench, "tensor_intrin", "dot_16x4_avx512")
    pick(bench, "tensor_intrin", "dot_16x4_vnni")
    wait_for(bench, "✓")
    bench.press_apply()
    bench.steps(2)
    assert "vpdpbusd" in bench.script
    # TVM could copy it no more; it is gone on from all the same, behind that step and before it.
    bench.select("i_init")
    bench.apply("unroll")
    bench.window.commands.action("undo").trigger()
    bench.steps(2)
    bench.click_step(1)
    bench.select("i_init")
    bench.choose("unroll")
    bench.steps(3)
    assert [each.id for each in bench.record.steps] == ["s1", "s3", "s2"]
    assert bench.statuses() == ["✓ done"] * 3
    bench.window.features.measurements.set_automatic(True)
