"""The Relax pane: the lowered module, as script and as graph."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QStackedWidget

from lowerscope.app.document.shared import Shared
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.pane import Pane
from lowerscope.app.panes.common.descriptions import fate_text, moment_text, names_of, nothing_words
from lowerscope.app.panes.common.graph_page import GraphPage
from lowerscope.app.panes.common.script_page import (
    CodeFooter,
    CompiledPage,
    FetchedPage,
    ScriptPage,
)
from lowerscope.core.model.graph import name_of
from lowerscope.core.model.snapshot import TextRecord
from lowerscope.core.model.texts import _, _n


class RelaxScript(QStackedWidget):
    """The page with the script of the Relax functions: as lowered, or at the current step."""

    def __init__(self, shared: Shared, set_busy: Callable[[bool], None]) -> None:
        super().__init__()
        self.plain = ScriptPage(shared, _("Relax script"))
        self.stepped = FetchedPage(shared, "script", _("Relax script at the step"), set_busy)
        self._stepping = shared.stepping
        self.addWidget(self.plain)
        self.addWidget(self.stepped)

    @property
    def code(self) -> CodeView:
        """The code view of the script."""
        return self._script.code

    @property
    def _script(self) -> ScriptPage:
        return self.plain if self._stepping.moment is None else self.stepped.script

    def show_text(self, record: TextRecord | None) -> None:
        """Show a script; nothing for ``None``."""
        self.plain.show_text(record)
        if record is not None:
            self.show_moment()

    def show_moment(self) -> None:
        """Show the script at the current step, or as it was lowered."""
        moment = self._stepping.moment
        if moment is not None:
            if not self.stepped.script.code.text():
                self.stepped.script.show_text(self.plain.record)
                self.stepped.script.code.set_place(self.plain.code.place())
            self.stepped.show_text_of("", moment)
        self.setCurrentWidget(self.plain if moment is None else self.stepped)

    def show_selection(self) -> None:
        """Mark the lines of the selection."""
        for page in (self.plain, self.stepped.script):
            page.show_selection()


MAIN = "relax:main"

CODE = ("script", "builder", "numpy")
"""Pages whose code can be wrapped."""


class RelaxView(Pane):
    """The pane with the Relax functions."""

    def __init__(self, shared: Shared) -> None:
        super().__init__(_("Relax"))
        self._document = document = shared.document
        self._stepping = stepping = shared.stepping
        self._run_steps = run_steps = shared.run_steps
        busy = self.set_busy
        self.graph = GraphPage(shared, "relax", _("Relax graph"), busy)
        self.script = RelaxScript(shared, busy)
        self.builder = FetchedPage(shared, "builder", _("Builder program"), busy)
        self.numpy = FetchedPage(shared, "numpy", _("NumPy of main"), busy, kind="relax")
        self.bytecode = CompiledPage(shared, "bytecode", _("Bytecode"), busy)
        self.metadata = FetchedPage(shared, "metadata", _("Relax script with metadata"), busy)
        for key, title, page in (
            ("script", _("Script"), self.script),
            ("graph", _("Graph"), self.graph),
            ("builder", _("Builder"), self.builder),
            ("numpy", _("NumPy"), self.numpy),
            ("bytecode", _("Bytecode"), self.bytecode),
            ("metadata", _("Metadata"), self.metadata),
        ):
            self.add_page(key, title, page)
        self.metadata.script.as_printed = True
        self.set_current("script")
        self.footer = CodeFooter(document, with_types=True)
        column = self.layout()
        assert column is not None
        column.addWidget(self.footer)
        self.page_changed.connect(self._show_selection)
        self.page_changed.connect(self._show_footer)
        document.on(("snapshot", "nothing"), self._show_snapshot)
        document.on(("selection", "snapshot"), self._show_context)
        stepping.moment_changed.connect(self._show_moment)
        run_steps.call_changed.connect(self._show_call)
        self._show_snapshot()

    def _show_snapshot(self) -> None:
        snapshot = self._document.snapshot
        title, hint = ("", "") if snapshot is not None else nothing_words(self._document)
        for page in (self.builder, self.numpy, self.bytecode, self.metadata):
            page.show_nothing(title, hint)
        if snapshot is None:
            self.graph.canvas.set_empty(title, hint)
            self.script.plain.code.set_empty(title, hint)
            self.graph.show_nothing()
            self.script.show_text(None)
            self.set_context("")
            self._show_footer()
            return
        self.graph.show_source(snapshot.model.title, moment=self._stepping.moment)
        self.script.show_text(snapshot.relax)
        self.builder.show_text_of("", self._stepping.moment)
        self.metadata.show_text_of("", self._stepping.moment)
        if any(each.id == MAIN for each in snapshot.functions):
            self.numpy.show_text_of("main", self._stepping.moment)
            self.bytecode.show_text_of("main", self._stepping.moment)
        self._show_context()
        self._show_footer()

    def _show_moment(self) -> None:
        snapshot = self._document.snapshot
        if snapshot is not None:
            moment = self._stepping.moment
            self.graph.show_source(snapshot.model.title, moment=moment)
            self.script.show_moment()
            self.builder.show_text_of("", moment)
            self.metadata.show_text_of("", moment)
            if any(each.id == MAIN for each in snapshot.functions):
                self.numpy.show_text_of("main", moment)
                self.bytecode.show_text_of("main", moment)
            self._show_context()
            self._show_footer()

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
        self.metadata.script.show_selection()

    def _show_footer(self) -> None:
        """Show the switches below code, the functions, and which side of the passes they are on."""
        snapshot, page = self._document.snapshot, self.current()
        self.footer.setVisible(page in CODE and snapshot is not None)
        self.footer.set_script(page == "script")
        parts = []
        if snapshot is not None and page == "script":
            count = sum(each.kind == "relax" for each in snapshot.functions)
            parts += [_n("1 function", "{count} functions", count)] if count > 1 else []
        if self._stepping.moment is None and snapshot is not None and snapshot.passes:
            before = page != "numpy"
            parts.append(_("before the passes") if before else _("after the passes"))
        self.footer.figure.set_whole(" · ".join(parts))

    def _show_context(self) -> None:
        snapshot, selection = self._document.snapshot, self._document.selection
        if snapshot is None:
            return
        bindings = tuple(entity for entity in selection.of_kind("relax") if "/" in entity)
        moment = moment_text(self._stepping)
        fate = fate_text(self._document, self._stepping) if moment else ""
        if fate:
            name = name_of(selection.chosen[0])
            self.set_context(_("nothing here for {name} ({fate})", name=name, fate=fate))
        elif moment:
            self.set_context(moment)
        elif bindings:
            self.set_context(names_of(bindings))
        elif selection.chosen:
            name = selection.chosen[0].partition(":")[2]
            self.set_context(_("nothing here for {name}", name=name))
        else:
            count = sum("/" in span.entity for span in snapshot.relax.spans)
            self.set_context(_n("{count} binding", "{count} bindings", count))
