"""The page Tokens: a generation by a language model, token by token beside torch."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QSpinBox

from lowerscope.app.document.document import Document
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.charts.plots import Group, RunChart, Span
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.pane import ElidedLabel, SeenPage
from lowerscope.app.kit.split import Split, strip_of
from lowerscope.app.kit.tables.data_table import Cell, Column, Row, Table, figures
from lowerscope.app.panes.common.descriptions import find_node
from lowerscope.app.panes.run.runs import TOKENS, Generations
from lowerscope.core.model.formatting import duration_text, error_text, shape_text, verdict_words
from lowerscope.core.model.generation_records import (
    GenerationRecord,
    TokenRun,
    fault_text,
    generation_text,
)
from lowerscope.core.model.texts import _

MOST_TOKENS = 65536


def token_row(index: int, run: TokenRun, first: int) -> Row:
    """Return the row of a token; `first` is the size of the cache after the prefill."""
    words, role = verdict_words(run.verdict)
    ours, theirs = (",".join(map(str, each)) for each in (run.token, run.torch_token))
    return Row(
        str(index),
        (
            Cell(str(index + 1), value=index),
            Cell(run.entry, "quiet"),
            Cell(ours, "" if run.is_same else "wrong", bold=not run.is_same),
            Cell(theirs),
            Cell(words, role, tooltip=run.reason),
            Cell(error_text(run.max_abs_error), value=run.max_abs_error),
            Cell(duration_text(run.tvm_ms), value=run.tvm_ms),
            Cell(duration_text(run.torch_ms), value=run.torch_ms),
            Cell(
                f"{run.cache_bytes:,}",
                value=run.cache_bytes,
                tooltip=_("{more:,} more than after the prefill", more=run.cache_bytes - first),
            ),
        ),
    )


def token_spans(record: GenerationRecord) -> tuple[Span, ...]:
    """Return the calls of a generation over time, with the bytes of the cache after each."""
    return tuple(
        Span(
            key=str(index),
            length=each.tvm_ms,
            title=each.text,
            tooltip="\n".join(
                (
                    _("token {n}: {token}", n=index + 1, token=each.text),
                    f"{each.entry}  ·  {duration_text(each.tvm_ms)}",
                    verdict_words(each.verdict, "torch")[0],
                    _("cache: {count:,} bytes", count=each.cache_bytes),
                )
            ),
            family="attention" if each.entry == "prefill" else "dense",
            amount=each.cache_bytes,
        )
        for index, each in enumerate(record.tokens)
    )


class TokensPage(SeenPage):
    """The tokens over time above the growing cache, and a table of them beside the cache's tensors.

    A click on a token marks it in the other.
    """

    node_wanted = Signal()  # Show the selected node beside what it became.

    def __init__(self, document: Document, generations: Generations) -> None:
        super().__init__()
        self._document = document
        self._generations = generations
        self.count = QSpinBox()
        self.count.setRange(1, MOST_TOKENS)
        self.count.setValue(TOKENS)
        self.count.setAccessibleName(_("Number of tokens"))
        self.count.setToolTip(_("Number of tokens"))
        self.count.setSuffix(" " + _("tokens"))
        self.run = push_button(
            _("Generate"),
            _("Generate tokens with TVM and with torch, and compare each call"),
            act=self._run_or_stop,
        )
        self.entry = push_button(
            _("Open decode step"),
            _("Open the decode step as a model, with its dimensions; one step to undo"),
            act=generations.open_entry,
        )
        self.node = push_button(
            _("Show the node"),
            _("Select the first node that differs, in its step"),
            act=self._show_node,
        )
        self._awaited = ""  # Node to select once its step is open.
        self.state = ElidedLabel(role="quiet")
        self.chart = RunChart(_("Tokens and the cache after each"))
        self.chart.chosen.connect(self._choose)
        self.table = Table(
            _("Tokens"),
            (
                Column("#", numeric=True, width=40),
                Column(_("call"), width=64),
                Column(_("TVM token"), numeric=True, width=84),
                Column(_("torch token"), numeric=True, width=90),
                Column(_("verdict"), width=92, stretch=True),
                figures(_("error"), 70),
                Column(_("TVM time"), numeric=True, width=76),
                Column(_("torch time"), numeric=True, width=80),
                Column(_("cache, bytes"), numeric=True, width=92),
            ),
        )
        self.table.set_sortable(True)
        self.table.row_clicked.connect(self._mark)
        self.cache = Table(
            _("Tensors of the cache after the last token"),
            (
                Column(_("cache"), width=150, stretch=True),
                Column(_("shape"), width=140),
                figures(_("bytes"), 80),
            ),
        )
        across, down = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        lower = Split(across, self.table, self.cache, sizes=(700, 360), shares=(2, 1))
        split = Split(down, self.chart, lower, sizes=(160, 340), shares=(0, 1))
        strip = strip_of(self.count, self.run, (self.state, 1), self.node, self.entry)
        column_of(self, strip, (split, 1))
        generations.changed.connect(self.show_if_seen)
        document.on(("snapshot",), self._select_awaited)
        self.show_content()

    def show_content(self) -> None:
        generations, recipe = self._generations, self._document.recipe
        record, problem = generations.record, generations.problem
        is_step = recipe is not None and recipe.source.decode
        self.run.setText(_("Stop") if generations.running else _("Generate"))
        self.entry.setText(_("Open prefill") if is_step else _("Open decode step"))
        self.entry.setEnabled(record is not None)
        fault = None if record is None else record.fault
        self.node.setVisible(fault is not None and bool(fault.node))
        is_running = generations.running
        title = _("Generating…") if is_running else _("No tokens yet")
        what = _("Generate compiles the prefill and the decode step, and runs both beside torch.")
        self.table.set_empty(title, generations.progress[0] if is_running else what)
        self.cache.set_empty(_("No cache"))
        if is_running:
            self.state.set_whole(generations.progress[0])
        elif problem is not None:
            self.state.set_whole(problem.line())
        else:
            self.state.set_whole("" if record is None else state_text(record))
        tokens = () if record is None else record.tokens
        first = tokens[0].cache_bytes if tokens else 0
        self.table.set_rows([token_row(i, each, first) for i, each in enumerate(tokens)])
        self.cache.set_rows(
            [
                Row(
                    each.name,
                    (
                        Cell(each.name, tooltip=each.name),
                        Cell(f"{shape_text(each.shape)} {each.dtype}", "quiet"),
                        Cell(f"{each.bytes:,}", value=each.bytes),
                    ),
                )
                for each in (() if record is None else record.cache)
            ]
        )
        if record is None:
            self.chart.set_run(())
            self.chart.set_empty(title)
            return
        most = _("cache, at most {count:,} bytes", count=max(e.cache_bytes for e in tokens))
        last = len(tokens) - 1
        groups = (Group(0, 0, "prefill"), Group(1, last, "decode")) if last else ()
        self.chart.set_run(token_spans(record), (), most, groups)
        if fault is not None:
            self._choose(str(fault.token))

    def _run_or_stop(self) -> None:
        if self._generations.running:
            self._generations.cancel()
        else:
            self._generations.run(self.count.value())

    def _show_node(self) -> None:
        record, recipe = self._generations.record, self._document.recipe
        if record is None or record.fault is None or recipe is None:
            return
        self._awaited = record.fault.node
        if recipe == record.recipe_of(record.fault.token):
            self._select_awaited()
        else:
            self._generations.open_token(record.fault.token)

    def _select_awaited(self) -> None:
        snapshot, node = self._document.snapshot, self._awaited
        if snapshot is not None and node:
            self._awaited = ""
            if find_node(snapshot, node) is not None:
                self._document.select((node,))
                self.node_wanted.emit()

    def _choose(self, key: str) -> None:
        self.table.set_selection((key,))
        self.table.reveal(key)
        self._mark(key)

    def _mark(self, key: str, _modifiers: object = None) -> None:
        if self.chart.marked() != key:
            self.chart.mark([key])


def state_text(record: GenerationRecord) -> str:
    """Return the outcome of a generation in a line; the fault comes first."""
    texts = [] if record.fault is None else [fault_text(record.fault)]
    return "  ·  ".join([*texts, generation_text(record)])
