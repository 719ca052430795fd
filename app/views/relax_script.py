"""The Relax script with two switches: the types of variables, and the metadata of constants."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget

from lowerscope.app.views.fetched_page import FetchedPage
from lowerscope.app.views.script_page import ScriptPage
from lowerscope.app.widgets.code_view import CodeView
from lowerscope.app.workspace import Workspace
from lowerscope.core.records import TextRecord

_ANNOTATION = re.compile(r"^ *\w+(: .+?) = ", re.MULTILINE)


def annotations_of(script: str) -> dict[int, tuple[int, int]]:
    """Return where the types stand that bindings of a Relax script begin with, by line from 0."""
    found: dict[int, tuple[int, int]] = {}
    line = begin = 0
    for match in _ANNOTATION.finditer(script):
        line += script.count("\n", begin, match.start())
        begin = match.start()
        found[line] = (match.start(1) - begin, match.end(1) - begin)
    return found


class RelaxScript(QWidget):
    """The page with the script of the Relax functions.

    In a narrow pane, the types that bindings begin with leave no room for what these do; they are
    out of view at first.

    Metadata can be megabytes: it is fetched while the switch is on, and switching it off again
    gives it up.
    """

    def __init__(
        self,
        workspace: Workspace,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.plain = ScriptPage(workspace, self.tr("Relax script"))
        self.whole = FetchedPage(
            workspace, "metadata", self.tr("Relax script with metadata"), set_busy
        )
        self.show_meta = QCheckBox(self.tr("show_meta"))
        self.show_meta.setToolTip(
            self.tr("The module as text that can be read back, with the values of its constants.")
        )
        self.show_meta.toggled.connect(self._switch)
        self.types = QCheckBox(self.tr("types"))
        self.types.setToolTip(
            self.tr(
                "The types of variables, before their values. Out of view, they stand in the lines'"
                " tool tips, and in what is copied."
            )
        )
        self.types.toggled.connect(self._show_types)
        self.remark = QLabel(self.tr("what is too long is cut; export has it whole"))
        self.remark.setProperty("role", "quiet")
        self.remark.hide()
        self.pages = QStackedWidget()
        self.pages.addWidget(self.plain)
        self.pages.addWidget(self.whole)
        strip = QHBoxLayout()
        strip.setContentsMargins(10, 4, 10, 4)
        strip.setSpacing(12)
        strip.addWidget(self.types)
        strip.addWidget(self.show_meta)
        strip.addWidget(self.remark)
        strip.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(strip)
        column.addWidget(self.pages, 1)
        self._show_types(False)

    @property
    def code(self) -> CodeView:
        """The code view of the script without metadata."""
        return self.plain.code

    def show_text(self, record: TextRecord | None) -> None:
        """Show a script, and its metadata where that is switched on; nothing for ``None``."""
        self.plain.show_text(record)
        self.whole.show_nothing()
        if record is not None:
            self.whole.show_text_of("")

    def show_selection(self) -> None:
        """Mark the lines of what is selected."""
        self.plain.show_selection()
        self.whole.script.show_selection()

    def _show_types(self, on: bool) -> None:
        self.plain.set_hiding(None if on else annotations_of)

    def _switch(self, on: bool) -> None:
        # What can be read back is shown as it is.
        self.types.setEnabled(not on)
        self.pages.setCurrentWidget(self.whole if on else self.plain)
        self.remark.setVisible(on)
        self.show_selection()
