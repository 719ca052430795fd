"""The Relax pane: the lowered module, as script and as graph."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from lowerscope.app.build_steps import BuildSteps
from lowerscope.app.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.runs.steps import RunSteps
from lowerscope.app.stepping import Stepping
from lowerscope.app.views.compiled_page import CompiledPage
from lowerscope.app.views.descriptions import names_of
from lowerscope.app.views.fetched_page import FetchedPage
from lowerscope.app.views.graph_page import GraphPage
from lowerscope.app.views.nothing_shown import nothing_words
from lowerscope.app.views.relax_script import RelaxScript
from lowerscope.app.views.step_words import fate_text, moment_text
from lowerscope.app.widgets.pane import Pane
from lowerscope.core.model.entities import name_of

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
            self.bytecode.show_text_of("main")
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
