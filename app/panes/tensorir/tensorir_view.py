"""The TensorIR pane: the script of one function, and the list of all with their call sites."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from lowerscope.app.document.build_steps import BuildSteps
from lowerscope.app.document.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.document.selection import EXTENDING
from lowerscope.app.document.stepping import Stepping
from lowerscope.app.kit.bar_controls import Segment, SegmentedSwitch
from lowerscope.app.kit.pane import Pane
from lowerscope.app.kit.plain_text import Label, literal
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table
from lowerscope.app.panes.common.compiled_page import CompiledPage
from lowerscope.app.panes.common.descriptions import names_of, nothing_words
from lowerscope.app.panes.common.script_page import FetchedPage
from lowerscope.app.panes.common.step_texts import fate_text, moment_text
from lowerscope.app.panes.tensorir.library_page import LibraryPage
from lowerscope.core.model.graph import name_of
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import FunctionsQuery
from lowerscope.core.model.snapshot import FunctionRecord

# --- The callers of a function, as links ---

_OFFERED = 4


class CalledBy(QWidget):
    """A row of links to the bindings that call a function; a click selects one of them."""

    def __init__(self, document: Document, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self.title = Label(self.tr("called by"))
        self.title.setProperty("role", "quiet")
        self.more = Label()
        self.more.setProperty("role", "quiet")
        self.buttons: list[QPushButton] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(4)
        self._row.addWidget(self.title)
        self._row.addWidget(self.more)
        self.hide()

    def show_callers_of(self, function: FunctionRecord | None) -> None:
        """Show the callers of a function, if there are several."""
        calls = function.calls if function is not None and len(function.calls) > 1 else ()
        for button in self.buttons:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self.buttons = [self._button(call) for call in calls[:_OFFERED]]
        for place, button in enumerate(self.buttons, start=1):
            self._row.insertWidget(place, button)
        others = calls[_OFFERED:]
        self.more.setText(self.tr("and {0} more").format(len(others)))
        self.more.setToolTip(names_of(others, most=60))
        self.more.setVisible(bool(others))
        self.setVisible(bool(calls))

    def _button(self, call: str) -> QPushButton:
        button = QPushButton(literal(name_of(call)))
        button.setProperty("quiet", True)
        button.setAccessibleName(self.tr("Called by {0}").format(name_of(call)))
        button.setObjectName(call)
        button.clicked.connect(self._select_sender)
        return button

    def _select_sender(self) -> None:
        sender = self.sender()
        if sender is not None:
            self._document.select((sender.objectName(),))


OFFERED = 5
"""Maximum number of functions in the strip above a text."""

KINDS = {"tensorir": "TensorIR", "external": "library", "relax": "Relax"}


class TensorIRView(Pane):
    """The pane with the functions after the passes."""

    rules_wanted = Signal()  # Schedule all functions by rules.

    def __init__(
        self,
        document: Document,
        queries: Queries,
        stepping: Stepping,
        colouring: Colouring,
        build: BuildSteps,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(self.tr("TensorIR"), parent)
        self._document = document
        self._stepping = stepping
        self._colouring = colouring
        self._function = ""
        # The functions of the snapshot, or those at the current step.
        self._functions: tuple[FunctionRecord, ...] = ()
        self._watch = queries.watch(
            self, self._query, self._take_functions, self._take_problem, while_hidden=True
        )
        self.siblings = SegmentedSwitch(self.tr("Functions of the selection"))
        self.siblings.changed.connect(self._show_function)
        self.texts: dict[str, FetchedPage] = {
            "script": FetchedPage(
                document,
                queries,
                colouring,
                "script",
                self.tr("TensorIR script"),
                self.set_busy,
            ),
            "numpy": FetchedPage(
                document,
                queries,
                colouring,
                "numpy",
                self.tr("NumPy loops"),
                self.set_busy,
            ),
            "te": FetchedPage(
                document,
                queries,
                colouring,
                "te",
                self.tr("Tensor expressions"),
                self.set_busy,
            ),
            "llvm": CompiledPage(
                document,
                queries,
                colouring,
                build,
                "llvm",
                self.tr("LLVM IR"),
                self.set_busy,
            ),
            "asm": CompiledPage(
                document,
                queries,
                colouring,
                build,
                "asm",
                self.tr("Assembly"),
                self.set_busy,
            ),
        }
        self.script = self.texts["script"].script
        self.functions = Table(
            self.tr("Functions"),
            (
                Column(self.tr("function"), width=170),
                Column(self.tr("kind")),
                Column(self.tr("blocks"), numeric=True),
                Column(self.tr("loops"), numeric=True),
                Column(self.tr("calls"), numeric=True),
                Column(self.tr("called by"), stretch=True, width=110),
            ),
        )
        self.functions.row_clicked.connect(self._select)
        self.functions.row_activated.connect(self._show_script)
        self.add_page("script", self.tr("Script"), self.texts["script"])
        self.add_page("numpy", self.tr("NumPy"), self.texts["numpy"])
        self.add_page("te", self.tr("TE"), self.texts["te"])
        self.add_page("llvm", self.tr("LLVM"), self.texts["llvm"])
        self.add_page("asm", self.tr("Assembly"), self.texts["asm"])
        self.add_page("functions", self.tr("Functions"), self._functions_page())
        self.library = LibraryPage(document)
        self.add_page("library", self.tr("Library"), self.library)
        self._strip = QWidget()
        row = QHBoxLayout(self._strip)
        row.setContentsMargins(8, 6, 8, 6)
        row.addWidget(self.siblings)
        self.others = QPushButton()
        self.others.setProperty("quiet", True)
        self.others.setToolTip(self.tr("All functions, those of the selection marked"))
        self.others.clicked.connect(self._show_functions)
        row.addWidget(self.others)
        self.callers = CalledBy(document)
        row.addWidget(self.callers)
        row.addStretch(1)
        self._move_strip("script")
        self.page_changed.connect(self._move_strip)
        document.on(("snapshot",), self._show_snapshot)
        document.on(("recipe", "pending"), self._show_wanted)
        document.on(("selection", "snapshot"), self._show_selection)
        stepping.moment_changed.connect(self._show_moment)
        self._show_snapshot()

    def _functions_page(self) -> QWidget:
        """Return the page with the table of all functions, and the commands on all."""
        self.by_rules = QPushButton(self.tr("All by rules"))
        self.by_rules.setToolTip(
            self.tr("Schedule the whole model by rules, and show which function has which")
        )
        self.by_rules.clicked.connect(self.rules_wanted)
        row = QHBoxLayout()
        row.setContentsMargins(8, 4, 8, 4)
        row.addWidget(self.by_rules)
        row.addStretch(1)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row)
        column.addWidget(self.functions, 1)
        return page

    def _move_strip(self, page: str) -> None:
        """Move the switch between functions above the visible text."""
        if page in self.texts:
            self.texts[page].column.insertWidget(0, self._strip)

    def _show_snapshot(self) -> None:
        snapshot = self._document.snapshot
        self._function = ""
        words = (
            nothing_words(self._document)
            if snapshot is None
            else (
                self.tr("No function selected"),
                self.tr("Click a node, a binding or a function to see its TensorIR."),
            )
        )
        for page in self.texts.values():
            page.show_nothing(*words)
        self.by_rules.setEnabled(snapshot is not None)
        if snapshot is None:
            self.functions.set_empty(*words)
            self.functions.set_rows(())
            self._strip.hide()
            self.set_context("")
            return
        self._show_moment()

    def _show_wanted(self) -> None:
        if self._document.snapshot is None:
            self._show_snapshot()

    def _show_moment(self) -> None:
        document = self._document
        snapshot, moment = document.snapshot, self._stepping.moment
        self._watch.refresh()
        if snapshot is not None and moment is None:
            self._show_functions_of(snapshot.functions)
            document.show_functions(())
            self._colouring.renew()

    def _query(self) -> FunctionsQuery | None:
        recipe, moment = self._document.recipe, self._stepping.moment
        if recipe is None or moment is None:
            return None
        return FunctionsQuery(recipe, moment)

    def _take_functions(self, functions: tuple[FunctionRecord, ...]) -> None:
        self._show_functions_of(functions)
        self._document.show_functions(functions)
        self._colouring.renew()

    def _show_functions_of(self, functions: tuple[FunctionRecord, ...]) -> None:
        self._functions = functions
        self.functions.set_rows([_row(each) for each in functions])
        self._show_selection()

    def _take_problem(self, problem: Problem) -> None:
        self._functions = ()
        self.functions.set_rows(())
        self._strip.hide()
        for page in self.texts.values():
            page.show_nothing(problem.headline, problem.todo)

    def _show_selection(self) -> None:
        selection = self._document.selection
        if self._document.snapshot is None:
            return
        linked = [each for each in self._functions if self._is_linked(each)]
        callable_ = [each for each in linked if each.kind != "relax"]
        if self.current() == "functions":
            self.functions.set_selection([each.id for each in linked])
            if linked:
                self.functions.reveal(linked[0].id)
        shown = [each for each in callable_ if each.kind == "tensorir"]
        fate = "" if callable_ else fate_text(self._document, self._stepping)
        if fate:
            self._show_gone(fate)
            return
        if not shown and (not selection.chosen or self._stepping.moment is not None):
            # Keep the function that is shown, or its counterpart at this step; by default, show
            # the one with the most work.
            everything = [each for each in self._functions if each.kind == "tensorir"]
            kept = [each for each in everything if each.name == self._function]
            shown = callable_ = kept or sorted(everything, key=_work)[-1:]
        self._offer(shown)
        self._show_context(callable_)
        if shown:
            names = [each.name for each in shown]
            chosen = [each for each in shown if each.id in selection.chosen]
            best = max(chosen or shown, key=_work).name
            stays = self._function in names and not chosen
            self._show_function(self._function if stays else best)
        elif self._stepping.moment is not None:
            self._show_none_yet()
        elif selection.chosen:
            self._show_nothing(callable_)

    def _is_linked(self, function: FunctionRecord) -> bool:
        selection = self._document.selection
        if self._stepping.moment is None:
            return function.id in selection.linked
        # Another function may have had the name at this step: compare the calls.
        return function.id in selection.chosen or any(
            call in selection.linked for call in function.calls
        )

    def _offer(self, functions: list[FunctionRecord]) -> None:
        """Show the functions of the selection in the strip: if many, those with the most work."""
        self.siblings.setVisible(len(functions) > 1)
        self.others.hide()
        if not functions:
            self._strip.hide()
        if len(functions) > 1:
            most = sorted(functions, key=_work)[-OFFERED:]
            offered = [each.name for each in functions if each in most]
            if self._function in [each.name for each in functions] and (
                self._function not in offered
            ):
                offered[-1] = self._function
            self.siblings.set_segments([Segment(name, name) for name in offered])
            others = len(functions) - len(offered)
            self.others.setText(self.tr("and {0} more").format(others))
            self.others.setVisible(others > 0)

    def _show_none_yet(self) -> None:
        for page in self.texts.values():
            page.show_nothing(
                self.tr("No TensorIR function at this step"),
                self.tr("LegalizeOps makes one of each operator."),
            )

    def _show_gone(self, fate: str) -> None:
        self._function = ""
        self._offer([])
        name = name_of(self._document.selection.chosen[0])
        self.set_context(self.tr("nothing here for {0} ({1})").format(name, fate))
        for page in self.texts.values():
            page.show_nothing(
                self.tr("Nothing here for {0}").format(name), f"{fate[:1].upper()}{fate[1:]}."
            )

    def _show_nothing(self, external: list[FunctionRecord]) -> None:
        self._function = ""
        name = self._document.selection.chosen[0].partition(":")[2]
        if external:
            title = self.tr("{0} is a library function").format(external[0].name)
            hint = self.tr("It runs outside of TVM, so there is no TensorIR to show.")
        else:
            title = self.tr("No TensorIR for {0}").format(name)
            hint = self.tr("It calls no function of the module.")
        for page in self.texts.values():
            page.show_nothing(title, hint)

    def _show_context(self, functions: list[FunctionRecord]) -> None:
        moment = moment_text(self._stepping)
        untied = self._untied_text(functions)
        if untied:
            self.set_context(untied)
        elif moment:
            self.set_context(moment)
        elif len(functions) == 1:
            self.set_context(_call_text(functions[0], self._document))
        elif functions:
            self.set_context(self.tr("{0} functions").format(len(functions)))
        else:
            self.set_context("")

    def _untied_text(self, functions: list[FunctionRecord]) -> str:
        """Show why the selection's lines are not marked in a function of several bindings."""
        selection = self._document.selection
        lost = [
            each
            for each in functions
            if each.untied
            and each.id not in selection.chosen
            and not any(
                binding in selection.linked for piece in each.pieces for binding in piece.bindings
            )
        ]
        if not lost or not selection.chosen:
            return ""
        return self.tr("which lines are of {0} is not known: {1} {2}").format(
            name_of(selection.chosen[0]), lost[0].name, lost[0].untied
        )

    def _show_function(self, name: str) -> None:
        self.siblings.set_current(name)
        self._function = name
        record = next((each for each in self._functions if each.name == name), None)
        self.callers.show_callers_of(record)
        several = self.siblings.isVisibleTo(self._strip) or self.callers.isVisibleTo(self._strip)
        self._strip.setVisible(several)
        for page in self.texts.values():
            page.show_text_of(name, self._stepping.moment)

    def _show_functions(self) -> None:
        self.set_current("functions")

    def _show_script(self) -> None:
        self.set_current("script")

    def _select(self, entity: str, modifiers: Qt.KeyboardModifier) -> None:
        self._document.select((entity,), extend=bool(modifiers & EXTENDING))


def _work(function: FunctionRecord) -> tuple[int, int, str]:
    return (function.runs, function.loops, function.name)


def _call_text(function: FunctionRecord, document: Document) -> str:
    nodes = tuple(
        sorted(each for each in document.linked_to(function.id) if each.startswith("fx:"))
    )
    callers = names_of(nodes or function.calls, most=3)
    return f"{function.name} · {callers}" if callers else function.name


def _row(function: FunctionRecord) -> Row:
    sizes = function.kind == "tensorir"
    callers = names_of(function.calls, most=12)
    return Row(
        function.id,
        (
            Cell(function.name, bold=True),
            Cell(KINDS[function.kind], role="quiet"),
            str(function.blocks) if sizes else "",
            str(function.loops) if sizes else "",
            str(len(function.calls)),
            Cell(callers, role="quiet", tooltip=names_of(function.calls, most=60)),
        ),
    )
