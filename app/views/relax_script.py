"""The Relax script with a switch: without the metadata of its constants, or with it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget

from lowerscope.app.views.fetched_page import FetchedPage
from lowerscope.app.views.script_page import ScriptPage
from lowerscope.app.widgets.code_view import CodeView
from lowerscope.app.workspace import Workspace
from lowerscope.core.records import TextRecord


class RelaxScript(QWidget):
    """The page with the script of the Relax functions.

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
        self.remark = QLabel(self.tr("what is too long is cut; export has it whole"))
        self.remark.setProperty("role", "quiet")
        self.remark.hide()
        self.pages = QStackedWidget()
        self.pages.addWidget(self.plain)
        self.pages.addWidget(self.whole)
        strip = QHBoxLayout()
        strip.setContentsMargins(10, 4, 10, 4)
        strip.setSpacing(12)
        strip.addWidget(self.show_meta)
        strip.addWidget(self.remark)
        strip.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(strip)
        column.addWidget(self.pages, 1)

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

    def _switch(self, on: bool) -> None:
        self.pages.setCurrentWidget(self.whole if on else self.plain)
        self.remark.setVisible(on)
        self.show_selection()
