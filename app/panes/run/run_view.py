"""The pane Run: its pages beside the summary of the last run, above the calls over time."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit import theme
from lowerscope.app.kit.bar_controls import MARKS, Pill
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.charts.bars import Bars
from lowerscope.app.kit.charts.images import PictureView
from lowerscope.app.kit.commands import plain
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.pane import FactLines, Pane
from lowerscope.app.kit.pane_messages import EmptyState
from lowerscope.app.kit.plain_text import (
    Label,
    Markup,
    MarkupLabel,
    join_markup,
    literal,
    markup,
    unbroken,
)
from lowerscope.app.kit.split import Split
from lowerscope.app.kit.tables.data_table import ROW_HEIGHT, Cell, Column, Row, Table
from lowerscope.app.panes.common.descriptions import find_node, line_text
from lowerscope.app.panes.common.run_figures import (
    bars_of,
    claims_of,
    how_of,
    show_prediction,
    verdict_state,
)
from lowerscope.app.panes.run.bisecting import Bisecting, WrongStep
from lowerscope.app.panes.run.commands import edit_measuring, edit_tolerances
from lowerscope.app.panes.run.outcomes import fx_runs, starts_here
from lowerscope.app.panes.run.runs import Faults, Runs
from lowerscope.app.panes.run.time_page import CallsStrip
from lowerscope.core.model.dimensions import sizes_text
from lowerscope.core.model.formatting import (
    bytes_text,
    duration_text,
    error_text,
    estimate_text,
    shape_text,
    times_text,
    tolerance_text,
    verdict_words,
)
from lowerscope.core.model.graph import name_of
from lowerscope.core.model.queries import RunEstimateQuery
from lowerscope.core.model.run_records import (
    NOT_THERE,
    NodeRun,
    OutputRecord,
    RunEstimate,
    RunRecord,
    SizeRecord,
)
from lowerscope.core.model.snapshot import FxNode
from lowerscope.core.model.texts import _, _n, capitalized

# --- The summary of the last run: verdict, first difference, prediction, times and memory ---

WIDTH = 256
PICTURE_SIDE = 72
MOST_ROWS = 6
"""Rows of a table that are visible without scrolling."""


class Section(QWidget):
    """A part of the summary below its heading, or without one."""

    def __init__(self, title: str, *parts: QWidget) -> None:
        super().__init__()
        self.heading = Label(title, role="quiet-title")
        self.heading.setVisible(bool(title))
        self.column: QVBoxLayout = column_of(
            self, self.heading, *parts, margins=(12, 8, 12, 4), spacing=6
        )


def _card(label: Label | MarkupLabel, role: str) -> None:
    """Give a label a background by a role."""
    label.setContentsMargins(10, 7, 10, 7)
    if label.property("card") != role:
        label.setProperty("card", role)
        label.style().unpolish(label)
        label.style().polish(label)


class FirstDifference(Section):
    """The first node whose value differs, and what its code was made by; hidden without one."""

    translation_wanted = Signal()  # Show the translation of the node, which is selected.

    def __init__(self, document: Document, runs: Runs) -> None:
        self.node = push_button(
            "", _("Select the node in all panes (F4)"), self._select, look="quiet"
        )
        self.where = Label(role="quiet", wraps=True)
        self.why = Label(wraps=True)
        _card(self.why, "plain")
        self.translation = push_button(
            _("Show its translation"), act=self._show_translation, look="quiet"
        )
        for button in (self.node, self.translation):
            button.setProperty("align", "left")
        parts = (self.node, self.where, self.why, self.translation)
        super().__init__(_("First difference"), *parts)
        self._document = document
        self._runs = runs
        self._id = ""

    def show_record(self, record: RunRecord) -> None:
        """Show the first difference of a run."""
        self._id = record.first_difference
        self.setVisible(bool(self._id))
        if not self._id:
            return
        node = self._node(self._id)
        run = next(each for each in record.nodes if each.id == self._id)
        self.node.setText(literal(name_of(self._id)))
        line = "" if node is None or node.line is None else line_text(node.line)
        label = "" if node is None else node.label
        self.where.setText(" · ".join(each for each in (label, line) if each))
        why = "\n".join(self._why(run, record))
        self.why.setText(self._document.named_engine(why))

    def _why(self, run: NodeRun, record: RunRecord) -> list[str]:
        made = record.first_made
        found = [_("{sentence}.", sentence=run.reason)] if run.reason else []
        if run.own_matches:
            found.append(_("Alone, on torch's inputs, it matches: the difference is inherited."))
        elif run.own_matches is False:
            found.append(_("Alone, on torch's inputs, it differs as well."))
        if made.rule:
            found.append(_("Lowered by {rule}", rule=made.rule))
        if made.passes:
            found.append(_("Changed by {passes}", passes=_(", ").join(made.passes)))
        if made.schedules:
            found.append(_("Scheduled: {schedules}", schedules=_("; ").join(made.schedules)))
        starts = [each.id for each in fx_runs(record) if starts_here(each)]
        operators = {node.operator for each in starts if (node := self._node(each)) is not None}
        if len(starts) > 1 and len(operators) == 1:
            text = _(
                "All {count} nodes that start a difference are {operator}.",
                count=len(starts),
                operator=operators.pop(),
            )
            found.append(text)
        return found

    def _node(self, entity: str) -> FxNode | None:
        snapshot = self._document.snapshot
        return None if snapshot is None else find_node(snapshot, entity)

    def _select(self) -> None:
        if self._id:
            self._document.select((self._id,))

    def _show_translation(self) -> None:
        self._select()
        self.translation_wanted.emit()


class Times(Section):
    """A bar for each side, with its spread, and what can be concluded."""

    def __init__(self, document: Document, runs: Runs) -> None:
        self.bars = Bars(_("Times of the run"))
        self.claim = Label(wraps=True)
        self.how = Label(role="quiet", wraps=True)
        self.again = push_button(
            _("Measure again"), _("With the same executable; the verdict stays"), runs.measure_again
        )
        self.settings = push_button(
            _("Settings…"), _("Threads, repeats, warm-up, and torch.compile"), self._edit
        )
        super().__init__(_("Time"), self.bars, self.claim, self.how)
        self.column.addLayout(row_of(None, self.again, self.settings, STRETCH, spacing=8))
        self._document = document
        self._runs = runs

    def show_record(self, record: RunRecord) -> None:
        """Show the times of a run."""
        times = record.times
        self.setVisible(times is not None)
        self.again.setEnabled(self._runs.record is not None and not self._document.running)
        if times is not None:
            self.bars.set_bars(bars_of(times))
            self.bars.setToolTip(times_text(times))
            self.claim.setText(capitalized(claims_of(times)))
            self.how.setText(capitalized(how_of(times)))

    def _edit(self) -> None:
        edit_measuring(self._document, self._runs, self)


_BARS = (Qt.ScrollBarPolicy.ScrollBarAlwaysOff, Qt.ScrollBarPolicy.ScrollBarAsNeeded)


class SummaryView(QScrollArea):
    """The outcome of the last run, also if the recipe has changed since."""

    def __init__(
        self, document: Document, runs: Runs, faults: Faults, bisecting: Bisecting
    ) -> None:
        super().__init__()
        self._document = document
        self._runs = runs
        self._faults = faults
        self.wrong_step = WrongStep(document, bisecting)
        self.notice = Label(wraps=True)
        _card(self.notice, "unsure")
        self.verdict = MarkupLabel(wraps=True)
        self.errors = FactLines()
        self.outputs = Table(
            _("Outputs"),
            (
                Column(_("output"), width=84, stretch=True),
                Column(_("error"), numeric=True, width=58),
                Column(_("status"), width=90),
            ),
        )
        self.sizes = Table(
            _("Sizes"),
            (
                Column(_("size"), width=70, stretch=True),
                Column("TVM", numeric=True, width=62),
                Column("torch", numeric=True, width=62),
                Column("", width=36),
            ),
        )
        self.sizes.word_titles(document.named_engine)
        self.first_difference = FirstDifference(document, runs)
        self.picture = PictureView(_("Input image"))
        self.picture.setFixedSize(PICTURE_SIDE, PICTURE_SIDE)
        self.prediction = MarkupLabel(wraps=True)
        self.scores = Bars(_("The best classes of both sides"), whole=1.0)
        self.times = Times(document, runs)
        self.memory = FactLines()
        self.details = MarkupLabel(role="quiet", wraps=True)
        self.details.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.details.linkActivated.connect(self._edit_tolerances)
        self._lay_out()
        document.on(("run", "running", "recipe", "snapshot"), self._show)
        document.on(("moment",), self._show_moment)
        faults.changed.connect(self._show)
        theme.notifier().changed.connect(self._show)
        self._show()
        self._show_moment()

    def _show_moment(self) -> None:
        """Say that a run is of the whole module, while the other panes show a step."""
        self.moment.setVisible(self._document.moment is not None)

    def _lay_out(self) -> None:
        title = Label(_("Summary"), role="title")
        self.moment = Label(_("after all steps"), role="quiet")
        top = QWidget()
        row_of(top, title, STRETCH, self.moment)
        head = Section("", top, self.notice, self.verdict, self.errors)
        self._predicted = Section(_("Prediction"), QWidget(), self.scores)
        both = row_of(None, self.picture, (self.prediction, 1), spacing=10)
        self._predicted.column.insertLayout(1, both)
        self._used = Section(_("Memory and build"), self.memory, self.details)
        body = QWidget()
        column_of(
            body,
            head,
            self.wrong_step,
            self.sizes,
            self.outputs,
            self.first_difference,
            self._predicted,
            self.times,
            self._used,
            STRETCH,
        )
        self.setWidget(body)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setMinimumWidth(WIDTH - 40)

    def _show(self) -> None:
        record, outdated = self._runs.newest, self._runs.outdated
        if self._faults.failed is not None:
            outdated = _("The figures are from the last successful run.")
        self.notice.setText(outdated)
        self.notice.setVisible(bool(outdated))
        if record is None:
            return
        self._show_verdict(record)
        for table, rows in (
            (self.sizes, tuple(_size_row(each) for each in record.sizes)),
            (self.outputs, tuple(_row(each) for each in record.outputs)),
        ):
            # Qt would show a scroll bar until the table has its new height.
            table.setVerticalScrollBarPolicy(_BARS[len(rows) > MOST_ROWS])
            table.set_rows(rows)
            table.setFixedHeight((min(len(rows), MOST_ROWS) + 1) * ROW_HEIGHT + 1)
        self.sizes.setVisible(bool(record.sizes))
        # What is to be said of a single one is said above.
        self.outputs.setVisible(len(record.outputs) > 1)
        self.first_difference.show_record(record)
        self._show_prediction(record)
        self.times.show_record(record)
        self.memory.set_facts(self._memory(record))
        self.details.setText(self._details(record))

    def _show_verdict(self, record: RunRecord) -> None:
        role, words, _figure = verdict_state(record)
        mark = MARKS[role]
        reason, failed = record.reason, self._faults.failed
        if failed is not None:
            role, mark, words, reason = "wrong", "✕", _("The last run failed"), failed.line()
        elif self._runs.outdated:
            role = "plain"
        text = markup(
            "<b>{0}</b>",
            f"{mark} {capitalized(words)}".strip(),
        )
        self.verdict.setText(join_markup("<br>", [text, reason]) if reason else text)
        self.verdict.setAccessibleName(_("{first}. {second}", first=words, second=reason))
        _card(self.verdict, role if role in ("right", "wrong", "near", "unsure") else "plain")
        facts = []
        if record.max_abs_error is not None and failed is None:
            facts = [
                (_("max abs"), error_text(record.max_abs_error)),
                (_("max rel"), error_text(record.max_rel_error)),
            ]
        self.errors.set_facts(facts)

    def _show_prediction(self, record: RunRecord) -> None:
        snapshot = self._document.snapshot
        inputs = () if snapshot is None else snapshot.model.inputs
        shown = next((each for each in inputs if each.picture is not None), None)
        self.picture.setVisible(shown is not None)
        if shown is not None and shown.picture is not None:
            found = shown.picture
            self.picture.set_picture(found.pixels, found.width, found.height, found.channels)
            self.picture.setToolTip(f"{shown.name} · {shape_text(shown.shape)} · {shown.origin}")
        self._predicted.setVisible(record.prediction is not None)
        self.prediction.setText(_prediction(record))
        # The lines above serve as the legend of the sides' colours.
        show_prediction(self.scores, record, legend=False)
        self.scores.setVisible(bool(self.scores.bars()))

    def _memory(self, record: RunRecord) -> list[tuple[str, str]]:
        facts, memory = [], record.memory
        if memory.storages:
            facts.append((_("peak"), bytes_text(memory.peak)))
            facts.append((_("unshared"), bytes_text(memory.tensors)))
        if memory.constants:
            facts.append((_("weights"), bytes_text(memory.constants)))
        count = record.functions
        functions = _n("1 function", "{count} functions", count)
        facts.append((_("build"), f"{duration_text(record.build_ms)} · {functions}"))
        if record.kept_budget:
            kept, budget = bytes_text(record.kept_bytes), bytes_text(record.kept_budget)
            facts.append((_("values"), _("{kept} of {budget} kept", kept=kept, budget=budget)))
        return facts

    def _details(self, record: RunRecord) -> Markup:
        parts: list[str] = []
        if record.ran_on:
            there = _("ran on {ran_on}; torch here", ran_on=record.ran_on)
            parts.append(markup("<b>{0}</b>", there))
            parts.append(NOT_THERE)
        if record.max_abs_error is not None:
            tolerance = tolerance_text(record.atol, record.rtol, record.reference)
            words = _("tolerance {tolerance}", tolerance=unbroken(tolerance))
            link = '<a href="tolerances" style="color:{0}">{1}</a>'
            parts.append(markup(link, theme.current().accent, words))
        if record.quick:
            parts.append(_("quick run: times of one call"))
        return join_markup("<br>", parts)

    def _edit_tolerances(self) -> None:
        edit_tolerances(self._document, self)


def _prediction(record: RunRecord) -> Markup:
    if record.prediction is None:
        return markup("")
    colours = theme.current()
    sides = (
        ("TVM", record.prediction.tvm, colours.accent),
        (record.reference, record.prediction.torch, colours.neutral),
    )
    pattern = '<span style="color:{0}">■</span> <span style="color:{1}">{2}</span><br><b>{3}</b>'
    return join_markup(
        "<br>",
        [markup(pattern, ink, colours.quiet, side, name) for side, name, ink in sides if name],
    )


def _size_row(record: SizeRecord) -> Row:
    text, role = verdict_words(record.verdict)
    name = sizes_text(record.sizes)
    mark, _sep, spoken = text.partition(" ")
    facts = (spoken, error_text(record.max_abs_error), record.reason)
    return Row(
        name,
        (
            # The names of the dimensions would be cut in the narrow column.
            Cell(", ".join(map(str, record.sizes.values())), bold=True, tooltip=name, spoken=name),
            duration_text(record.tvm_ms),
            duration_text(record.torch_ms),
            Cell(mark, role, tooltip="\n".join(filter(None, facts)), spoken=spoken),
        ),
    )


def _row(output: OutputRecord) -> Row:
    text, role = verdict_words(output.verdict)
    about = f"{output.name} · {shape_text(output.shape)} {output.dtype}"
    relative = _("max rel error {max_rel_error}", max_rel_error=error_text(output.max_rel_error))
    return Row(
        output.name,
        (
            Cell(output.name, bold=True, tooltip=about),
            Cell(error_text(output.max_abs_error), tooltip=relative),
            Cell(text, role, tooltip=output.reason),
        ),
    )


NEED_A_RUN = ("compare", "time", "memory", "rounding")
"""Pages that show nothing before the first run."""

WITH_CALLS = ("compare", "time")
"""Pages above the calls over time."""

FOLDED = 1250
"""Width below which the verdict in the header takes the place of the summary."""

STRIP, LOW_STRIP = 176, 136
LOW = 720
"""Height below which the calls are low."""


class RunView(Pane):
    """A pane whose pages share the summary of the last run."""

    def __init__(
        self, document: Document, runs: Runs, faults: Faults, bisecting: Bisecting
    ) -> None:
        self._key = ""
        super().__init__(_("Run"))
        self._document = document
        self._runs = runs
        self._faults = faults
        self.header.title.hide()
        self.header.is_movable = False
        self.summary = SummaryView(document, runs, faults, bisecting)
        self.calls = CallsStrip(document, runs)
        self.verdict = Pill()
        self.empty = EmptyState()
        self.run = self.empty.add_action(_("Run"), self._run_or_stop, primary=True)
        self.optimise = self.empty.add_action(_("Optimise for CPU"), runs.optimise)
        self._stack.addWidget(self.empty)
        self._slow = ""
        self._estimate = runs.queries.watch(
            self, self._estimate_query, self._take_estimate, lambda _problem: None
        )
        across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        self._upper = Split(across, self.summary, self._stack, sizes=(WIDTH, 1100), shares=(0, 1))
        self._rows = Split(down, self._upper, self.calls, sizes=(500, STRIP), shares=(1, 0))
        self._is_moved = False
        self._rows.splitterMoved.connect(self._note_moved)
        body = QWidget()
        column_of(body, (self._rows, 1))
        layout = self.layout()
        assert layout is not None
        layout.addWidget(body)
        self.add_corner(self.verdict)
        document.on(("run", "running", "recipe", "snapshot"), self._show)
        document.on(("jobs",), self._show_progress)
        faults.changed.connect(self._show)
        self._show()

    # Pane

    def add_page(self, key: str, label: str, widget: QWidget) -> None:
        super().add_page(key, label, widget)
        self.set_current(self._key or key)

    def set_current(self, key: str) -> None:
        changed, self._key = key != self._key, key
        self.header.tabs.set_current(key)
        self._show()
        if changed:
            self.page_changed.emit(key)

    def current(self) -> str:
        return self._key

    def add_command(self, word: str, action: QAction) -> None:
        """Add a button for a command at the right end of the header."""
        button = push_button(word, act=action.trigger)
        button.setToolTip(
            f"{plain(action.text())} ({action.shortcut().toString()})".removesuffix(" ()")
        )
        button.setAccessibleName(plain(action.text()))
        button.setEnabled(action.isEnabled())
        action.enabledChanged.connect(button.setEnabled)
        self.add_corner(button)

    # Content

    def _show(self) -> None:
        """Show the current page with what belongs to it, or that nothing has run yet."""
        snapshot = self._document.snapshot
        generates = snapshot is not None and snapshot.model.generates
        self.header.tabs.set_absent("tokens", not generates)
        if self._key == "tokens" and snapshot is not None and not generates:
            self.set_current(self.pages()[0])
        has_run = self._runs.newest is not None
        is_empty = not has_run and self._key in NEED_A_RUN
        if self._key:
            self._stack.setCurrentWidget(self.empty if is_empty else self.page(self._key))
        folded = self.width() < FOLDED
        self.summary.setVisible(has_run and not folded)
        self.calls.setVisible(has_run and self._key in WITH_CALLS)
        self._show_verdict(folded)
        self._estimate.update()
        self._say_empty()

    def _estimate_query(self) -> RunEstimateQuery | None:
        """Return the query for the time of a first run on this machine."""
        recipe, self._slow = self._document.recipe, ""
        if recipe is None or self._runs.newest is not None or recipe.remote is not None:
            return None
        return None if self._document.is_changing else RunEstimateQuery(recipe)

    def _take_estimate(self, estimate: RunEstimate) -> None:
        recipe = self._document.recipe
        self._slow = "" if recipe is None else estimate_text(estimate, recipe.measuring)
        self._say_empty()

    def _show_verdict(self, folded: bool) -> None:
        record, failed = self._runs.newest, self._faults.failed
        self.verdict.setVisible(folded and record is not None)
        if failed is not None:
            self.verdict.set_state("wrong", _("failed"), "", failed.line())
        elif record is not None:
            role, words, figure = verdict_state(record)
            outdated = self._runs.outdated
            shown = _("{words}, before", words=words) if outdated else words
            tip = "\n".join(each for each in (outdated, record.reason) if each)
            self.verdict.set_state("neutral" if outdated else role, shown, figure, tip)

    def _say_empty(self) -> None:
        running, failed = self._document.running, self._faults.failed
        self.optimise.setVisible(bool(self._slow) and not running)
        self.run.setText(_("Stop") if running else _("Run"))
        self.run.setEnabled(self._document.wanted is not None)
        if running:
            self.empty.set_text(_("Run in progress"), self._document.job.words)
        elif failed is not None:
            self.empty.set_text(failed.headline, failed.todo)
        else:
            about = _(
                "Run (F5) compiles the module, runs it on the inputs, and compares its outputs "
                "and nodes with the reference."
            )
            self.empty.set_text(_("Not run yet"), f"{about}\n{self._slow}".rstrip())

    def _show_progress(self) -> None:
        if self._document.running and self.empty.isVisible():
            self._say_empty()

    def _run_or_stop(self) -> None:
        if self._document.running:
            self._runs.cancel()
        else:
            self._runs.run()

    def _note_moved(self) -> None:
        self._is_moved = True

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show()
        if not self._is_moved:
            strip = LOW_STRIP if self.height() < LOW else STRIP
            self._rows.setSizes([max(1, self._rows.height() - strip), strip])
