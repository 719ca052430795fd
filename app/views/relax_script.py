"""The Relax script with two switches: the types of variables, and the metadata of constants."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from lowerscope.app.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.stepping import Stepping
from lowerscope.app.views.fetched_page import FetchedPage
from lowerscope.app.views.script_page import ScriptPage
from lowerscope.app.views.step_words import moment_text
from lowerscope.app.widgets.code.view import CodeView
from lowerscope.app.widgets.plain_text import Label
from lowerscope.core.records.snapshot import TextRecord

_ANNOTATION = re.compile(r"^ *\w+(: .+?) = ", re.MULTILINE)


def annotations_of(script: str) -> dict[int, tuple[int, int]]:
    """Return the positions of the leading types of bindings in a Relax script, by line from 0."""
    found: dict[int, tuple[int, int]] = {}
    line = begin = 0
    for match in _ANNOTATION.finditer(script):
        line += script.count("\n", begin, match.start())
        begin = match.start()
        found[line] = (match.start(1) - begin, match.end(1) - begin)
    return found


class RelaxScript(QWidget):
    """The page with the script of the Relax functions.

    In a narrow pane, the types of bindings leave no space for their values; they are hidden at
    first.

    Metadata can be megabytes: it is fetched while the switch is on, and dropped when that is
    switched off.
    """

    def __init__(
        self,
        document: Document,
        queries: Queries,
        stepping: Stepping,
        colouring: Colouring,
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.plain = ScriptPage(document, colouring, self.tr("Relax script"))
        self.whole = FetchedPage(
            document,
            queries,
            colouring,
            "metadata",
            self.tr("Relax script with metadata"),
            set_busy,
        )
        self.stepped = FetchedPage(
            document,
            queries,
            colouring,
            "script",
            self.tr("Relax script at the step"),
            set_busy,
        )
        self._stepping = stepping
        self.show_meta = QCheckBox(self.tr("show_meta"))
        self.show_meta.setToolTip(
            self.tr("The module as text that can be read back, with the values of its constants.")
        )
        self.show_meta.toggled.connect(self._switch)
        self.types = QCheckBox(self.tr("Types"))
        self.types.setToolTip(
            self.tr(
                "The types of variables, before their values.\n"
                "Hidden, they are in the lines' tool tips, and in what is copied."
            )
        )
        self.types.toggled.connect(self._show_types)
        self.remark = Label(self.tr("what is too long is cut; export has it whole"))
        self.remark.setProperty("role", "quiet")
        self.remark.hide()
        # The header of a narrow pane has no space for it beside the tabs.
        self.moment = Label()
        self.moment.setProperty("role", "quiet")
        self.pages = QStackedWidget()
        self.pages.addWidget(self.plain)
        self.pages.addWidget(self.whole)
        self.pages.addWidget(self.stepped)
        strip = QHBoxLayout()
        strip.setContentsMargins(10, 4, 10, 4)
        strip.setSpacing(12)
        strip.addWidget(self.types)
        strip.addWidget(self.show_meta)
        strip.addWidget(self.remark)
        strip.addStretch(1)
        strip.addWidget(self.moment)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(strip)
        column.addWidget(self.pages, 1)
        self._show_types(False)

    @property
    def code(self) -> CodeView:
        """The code view of the script without metadata."""
        return self._script.code

    @property
    def _script(self) -> ScriptPage:
        return self.plain if self._stepping.moment is None else self.stepped.script

    def show_text(self, record: TextRecord | None) -> None:
        """Show a script, with its metadata if that is switched on; nothing for ``None``."""
        self.plain.show_text(record)
        self.whole.show_nothing()
        if record is not None:
            self.show_moment()

    def show_moment(self) -> None:
        """Show the script at the current step, or as it was lowered."""
        moment = self._stepping.moment
        self.moment.setText(moment_text(self._stepping))
        self.whole.show_text_of("", moment)
        if moment is not None:
            if not self.stepped.script.code.text():
                self.stepped.script.show_text(self.plain.record)
                self.stepped.script.code.set_place(self.plain.code.place())
            self.stepped.show_text_of("", moment)
        self._show_page()

    def show_selection(self) -> None:
        """Mark the lines of the selection."""
        for page in (self.plain, self.whole.script, self.stepped.script):
            page.show_selection()

    def _show_types(self, on: bool) -> None:
        for page in (self.plain, self.stepped.script):
            page.set_hiding(None if on else annotations_of)

    def _show_page(self) -> None:
        if self.show_meta.isChecked():
            self.pages.setCurrentWidget(self.whole)
        else:
            stepped = self._stepping.moment is not None
            self.pages.setCurrentWidget(self.stepped if stepped else self.plain)

    def _switch(self, on: bool) -> None:
        # Text with metadata is parsable, and shown unchanged.
        self.types.setEnabled(not on)
        self._show_page()
        self.remark.setVisible(on)
        self.show_selection()
