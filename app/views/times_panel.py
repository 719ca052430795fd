"""The end-to-end times of the last run: a bar with its spread for each side, and the claims."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.runs.running import Runs
from lowerscope.app.views.measuring_dialog import edit_measuring
from lowerscope.app.views.time_words import bars_of, claims_of, how_of, medians_of
from lowerscope.app.widgets.charts.bars import Bars
from lowerscope.app.widgets.pane import ElidedLabel, PartsLabel


class TimesPanel(QWidget):
    """Hidden until there are times."""

    def __init__(self, document: Document, runs: Runs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._runs = runs
        self._short = False
        self.bars = Bars(self.tr("Times of the run"))
        self.claim = ElidedLabel()
        self.how = PartsLabel()
        self.how.setProperty("role", "quiet")
        self.again = _button(self.tr("Measure again"))
        self.again.setToolTip(self.tr("By the same executable; the verdict stays"))
        self.again.clicked.connect(runs.measure_again)
        self.settings = _button(self.tr("Settings…"))
        self.settings.setToolTip(self.tr("Threads, repeats, warm-up, and torch.compile"))
        self.settings.clicked.connect(self._edit)
        # A shortened label uses its whole width for the text.
        first = QHBoxLayout()
        first.setContentsMargins(10, 0, 12, 0)
        first.addWidget(self.claim)
        row = QHBoxLayout()
        row.setContentsMargins(10, 0, 8, 0)
        row.setSpacing(8)
        row.addWidget(self.how, 1)
        row.addWidget(self.again)
        row.addWidget(self.settings)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.bars)
        column.addLayout(first)
        column.addLayout(row)
        document.on(("run", "running"), self._show_run)
        self._show_run()

    def fit(self, room: int) -> None:
        """Hide the bars if the width is too small for them; the text has all times."""
        words = max(self.how.sizeHint().height(), self.again.sizeHint().height())
        needed = self.bars.sizeHint().height() + self.claim.sizeHint().height() + words
        short = room < needed
        if short != self._short:
            self._short = short
            self._show_run()

    def _show_run(self) -> None:
        record = self._document.run_record
        times = None if record is None else record.times
        self.setVisible(times is not None)
        self.again.setEnabled(not self._document.running)
        if times is not None:
            self.bars.set_bars(bars_of(times))
            self.bars.setVisible(not self._short)
            claims = claims_of(times)
            self.claim.set_whole(f"{medians_of(times)} · {claims}" if self._short else claims)
            self.how.set_whole(how_of(times))

    def _edit(self) -> None:
        edit_measuring(self._document, self._runs, self)


def _button(text: str) -> QPushButton:
    button = QPushButton(text)
    button.setProperty("quiet", True)
    button.setAccessibleName(text)
    return button
