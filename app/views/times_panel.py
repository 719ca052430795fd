"""The times of the last run, end to end: a bar with its spread for each side, and what they say."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from lowerscope.app.views.measuring_dialog import edit_measuring
from lowerscope.app.views.time_words import bars_of, claims_of, how_of
from lowerscope.app.widgets.pane import ElidedLabel, PartsLabel
from lowerscope.app.widgets.time_bars import TimeBars
from lowerscope.app.workspace import Workspace


class TimesPanel(QWidget):
    """Hidden until there are times."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self.bars = TimeBars(self.tr("Times of the run"))
        self.claim = ElidedLabel()
        self.how = PartsLabel()
        self.how.setProperty("role", "quiet")
        self.again = _button(self.tr("Measure again"))
        self.again.setToolTip(self.tr("By the same executable; the verdict stays"))
        self.again.clicked.connect(workspace.runs.measure_again)
        self.settings = _button(self.tr("Settings…"))
        self.settings.setToolTip(self.tr("Threads, repeats, warm-up, and torch.compile"))
        self.settings.clicked.connect(self._edit)
        self.claim.setContentsMargins(12, 0, 12, 0)
        row = QHBoxLayout()
        row.setContentsMargins(12, 0, 8, 0)
        row.setSpacing(8)
        row.addWidget(self.how, 1)
        row.addWidget(self.again)
        row.addWidget(self.settings)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.bars)
        column.addWidget(self.claim)
        column.addLayout(row)
        workspace.run_changed.connect(self._show_run)
        self._show_run()

    def _show_run(self) -> None:
        record = self._workspace.run_record
        times = None if record is None else record.times
        self.setVisible(times is not None)
        self.again.setEnabled(not self._workspace.running)
        if times is not None:
            self.bars.set_bars(bars_of(times))
            self.claim.set_whole(claims_of(times))
            self.how.set_whole(how_of(times))

    def _edit(self) -> None:
        edit_measuring(self._workspace, self)


def _button(text: str) -> QPushButton:
    button = QPushButton(text)
    button.setProperty("quiet", True)
    button.setAccessibleName(text)
    return button
