"""LLVM IR, assembly and bytecode in the window, compiled when they are looked at."""

from __future__ import annotations

import re

from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.pane import Pane
from lowerscope.app.panes.common.script_page import CompiledPage
from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import PATIENCE, OpenWindow, run_and_wait


def click_tab(qtbot: QtBot, pane: Pane, key: str) -> None:
    tabs = pane.header.tabs
    if key in tabs.hidden_tabs():
        pane.set_current(key)
    else:
        qtbot.mouseClick(tabs.tab(key), Qt.MouseButton.LeftButton)


def click_line(qtbot: QtBot, code: CodeView, line: int) -> None:
    """Click a line, counted from 1, with the mouse."""
    code.go_to_line(line)
    port = code.editor.viewport()
    heights = (y for y in range(port.height()) if code.editor.line_at(y) == line - 1)
    qtbot.mouseClick(port, Qt.MouseButton.LeftButton, pos=QPoint(60, next(heights) + 4))


def compiled(qtbot: QtBot, page: CompiledPage, there: str) -> list[str]:
    code = page.script.code
    qtbot.waitUntil(lambda: there in code.text(), timeout=PATIENCE)
    return code.text().splitlines()


def marked_in(code: CodeView) -> list[str]:
    lines = code.editor.lines()
    return [text for number, text in enumerate(lines) if code.editor.is_selected(number)]


def page_of(window: MainWindow, key: str) -> CompiledPage:
    return window.panes.tensorir.compiled[key]


def test_lines_of_assembly_and_bytecode_lead_to_loops_and_nodes_and_back(
    qtbot: QtBot, open_window: OpenWindow
) -> None:
    window = open_window("sample:fashion_mlp", lowering="te")
    pane, document = window.panes.tensorir, window.document
    document.select(("fx:linear0",))
    click_tab(qtbot, pane, "asm")
    asm = page_of(window, "asm")
    lines = compiled(qtbot, asm, "__tvm_ffi_dense:")
    assert "__tvm_ffi_add" not in asm.script.code.text()

    # From a line of assembly to the loop, and to its line of the script.
    body = next(number for number, line in enumerate(lines, 1) if line.endswith("%for_body_k"))
    multiply = next(n for n in range(body, len(lines)) if "mulss" in lines[n - 1])
    click_line(qtbot, asm.script.code, multiply)
    assert document.selection.chosen == ("tir:dense/T_matmul_NT/k",)
    assert lines[multiply - 1] in marked_in(asm.script.code)
    click_tab(qtbot, pane, "script")
    script = pane.texts["script"].script.code
    qtbot.waitUntil(lambda: any("T.grid" in line for line in marked_in(script)), timeout=PATIENCE)

    # And in LLVM IR, whose block carries the loop's name.
    click_tab(qtbot, pane, "llvm")
    llvm = page_of(window, "llvm")
    compiled(qtbot, llvm, "@__tvm_ffi_dense(")
    marked = marked_in(llvm.script.code)
    assert any(line.startswith("for_body_k:") for line in marked)
    assert not any("__tvm_ffi_dense" in line for line in marked)

    # From the script to the code: the block that is computed in that loop.
    click_tab(qtbot, pane, "script")
    block = next(
        number
        for number, line in enumerate(script.editor.lines(), 1)
        if 'T.sblock("T_matmul_NT")' in line
    )
    click_line(qtbot, script, block)
    assert document.selection.chosen == ("tir:dense/T_matmul_NT",)
    click_tab(qtbot, pane, "asm")
    assert any("mulss" in line for line in marked_in(asm.script.code))

    # The next function has its own, from the same build.
    document.select(("tir:te_relu",))
    lines = compiled(qtbot, asm, "__tvm_ffi_te_relu:")
    assert not any("dense" in line for line in lines)
    # A call of the bytecode is its binding, its node and its function.
    relax = window.panes.relax
    click_tab(qtbot, relax, "bytecode")
    lines = compiled(qtbot, relax.bytecode, "@main:")
    code = relax.bytecode.script.code
    call = next(n for n, line in enumerate(lines, 1) if re.match(r" +call +te_relu ", line))
    click_line(qtbot, code, call)
    assert document.selection.chosen == ("relax:main/lv2",)
    assert {"fx:relu", "tir:te_relu"} <= document.selection.linked
    assert window.panes.fx.graph.canvas.selection() == {"fx:relu"}
    # And back: a node marks the calls that it makes.
    document.select(("fx:linear0",))
    called = [line.split()[1] for line in marked_in(code)]
    assert called == ["dense", "add"]
    run_and_wait(qtbot, window)
    assert window.tool_bar.verdict.role() == "right"
