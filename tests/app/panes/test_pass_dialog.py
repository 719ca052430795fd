"""The dialog that adds a pass."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from lowerscope.app.panes.steps.pass_dialog import PassDialog
from lowerscope.core.model.snapshot import PassType


def test_only_passes_that_would_change_something_are_listed_once_they_are_known(
    qtbot: QtBot,
) -> None:
    dialog = PassDialog(None)
    qtbot.addWidget(dialog)
    names = ["FoldConstant", "FuseOps", "LegalizeOps"]
    dialog.show_catalogue([PassType(name=name, dialect="relax") for name in names])
    with qtbot.waitSignal(dialog.changing_wanted):
        dialog.only_changing.click()
    assert dialog.shown() == names
    dialog.show_changing(["FuseOps", "LegalizeOps"])
    assert dialog.shown() == names[1:]
    dialog.line.setText("leg")
    assert dialog.shown() == ["LegalizeOps"]
    dialog.line.clear()
    with qtbot.assertNotEmitted(dialog.changing_wanted):
        dialog.only_changing.click()
        assert dialog.shown() == names
        dialog.only_changing.click()
    assert dialog.shown() == names[1:]
