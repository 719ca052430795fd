"""The Relax pane: the lowered module, as script and as graph."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from lowerscope.app.document.build_steps import BuildSteps
from lowerscope.app.document.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.run_steps import RunSteps
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.panes.common.compiled_page import CompiledPage
from lowerscope.app.panes.common.descriptions import names_of, nothing_words
from lowerscope.app.panes.common.graph_page import GraphPage
from lowerscope.app.panes.common.script_page import FetchedPage, ScriptPage
from lowerscope.app.panes.common.step_texts import fate_text, moment_text
from lowerscope.core.model.graph import name_of
from lowerscope.core.model.snapshot import TextRecord

# The Relax script with two switches: the types of variables, and the metadata of constants.

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


MAIN = "relax:main"


class RelaxView(Pane):
    """The pane with the Relax functions."""

    def __init__(
        self,
        document: Document,
        queries: Queries,
        stepping: Stepping,
        run_steps: RunSteps,
        colouring: Colouring,
        build: BuildSteps,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(self.tr("Relax"), parent)
        self._document = document
        self._stepping = stepping
        self._run_steps = run_steps
        self.graph = GraphPage(
            document, queries, run_steps, "relax", self.tr("Relax graph"), self.set_busy
        )
        self.script = RelaxScript(document, queries, stepping, colouring, self.set_busy)
        self.add_page("graph", self.tr("Graph"), self.graph)
        self.builder = FetchedPage(
            document,
            queries,
            colouring,
            "builder",
            self.tr("Builder program"),
            self.set_busy,
        )
        self.add_page("script", self.tr("Script"), self.script)
        self.add_page("builder", self.tr("Builder"), self.builder)
        self.numpy = FetchedPage(
            document,
            queries,
            colouring,
            "numpy",
            self.tr("NumPy of main"),
            self.set_busy,
            kind="relax",
        )
        self.add_page("numpy", self.tr("NumPy"), self.numpy)
        self.bytecode = CompiledPage(
            document,
            queries,
            colouring,
            build,
            "bytecode",
            self.tr("Bytecode"),
            self.set_busy,
        )
        self.add_page("bytecode", self.tr("Bytecode"), self.bytecode)
        self.set_current("script")
        self.page_changed.connect(self._show_selection)
        document.on(("snapshot",), self._show_snapshot)
        document.on(("recipe", "pending"), self._show_wanted)
        document.on(("selection", "snapshot"), self._show_context)
        stepping.moment_changed.connect(self._show_moment)
        run_steps.call_changed.connect(self._show_call)
        self._show_snapshot()

    def _show_snapshot(self) -> None:
        snapshot = self._document.snapshot
        title, hint = ("", "") if snapshot is not None else nothing_words(self._document)
        for page in (self.builder, self.numpy, self.bytecode):
            page.show_nothing(title, hint)
        if snapshot is None:
            self.graph.canvas.set_empty(title, hint)
            self.script.plain.code.set_empty(title, hint)
            self.graph.show_nothing()
            self.script.show_text(None)
            self.set_context("")
            return
        self.graph.show_source(snapshot.model.title, moment=self._stepping.moment)
        self.script.show_text(snapshot.relax)
        self.builder.show_text_of("", self._stepping.moment)
        if any(each.id == MAIN for each in snapshot.functions):
            self.numpy.show_text_of("main", self._stepping.moment)
            self.bytecode.show_text_of("main", self._stepping.moment)
        self._show_context()

    def _show_wanted(self) -> None:
        if self._document.snapshot is None:
            self._show_snapshot()

    def _show_moment(self) -> None:
        snapshot = self._document.snapshot
        if snapshot is not None:
            moment = self._stepping.moment
            self.graph.show_source(snapshot.model.title, moment=moment)
            self.script.show_moment()
            self.builder.show_text_of("", moment)
            if any(each.id == MAIN for each in snapshot.functions):
                self.numpy.show_text_of("main", moment)
                self.bytecode.show_text_of("main", moment)
            self._show_context()

    def _show_call(self) -> None:
        """Point at the instruction of the current call of the run."""
        call = self._run_steps.call
        self.bytecode.script.point_at(0 if call is None else call.line)

    def _show_selection(self) -> None:
        self.graph.show_selection()
        self.script.show_selection()
        self.builder.script.show_selection()
        self.numpy.script.show_selection()
        self.bytecode.script.show_selection()

    def _show_context(self) -> None:
        snapshot, selection = self._document.snapshot, self._document.selection
        if snapshot is None:
            return
        bindings = tuple(entity for entity in selection.of_kind("relax") if "/" in entity)
        moment = moment_text(self._stepping)
        fate = fate_text(self._document, self._stepping) if moment else ""
        if fate:
            name = name_of(selection.chosen[0])
            self.set_context(self.tr("nothing here for {0} ({1})").format(name, fate))
        elif moment:
            # The script shows the step above its text.
            self.set_context("" if self.current() == "script" else moment)
        elif bindings:
            self.set_context(names_of(bindings))
        elif selection.chosen:
            name = selection.chosen[0].partition(":")[2]
            self.set_context(self.tr("nothing here for {0}").format(name))
        else:
            count = sum("/" in span.entity for span in snapshot.relax.spans)
            one = count == 1
            self.set_context(self.tr("1 binding") if one else self.tr("{0} bindings").format(count))
