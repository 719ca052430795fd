"""The values of a parameter or a constant: histogram, and a button that saves them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QWidget

from lowerscope.app.views.when_looked_at import WhenLookedAt
from lowerscope.app.widgets.histogram import Histogram
from lowerscope.app.workspace import Workspace
from lowerscope.core.errors import Problem
from lowerscope.core.records.model import ValuesRecord
from lowerscope.core.records.steps import Moment

Facts = tuple[tuple[str, str], ...]


class ValuesPanel(QWidget):
    """What is below the table of Details while a tensor is selected.

    Parameters
    ----------
    show_facts
        Called with what the table should say of the values, as soon as it is known.
    set_busy
        Called with whether the values are on their way.
    """

    def __init__(
        self,
        workspace: Workspace,
        show_facts: Callable[[Facts], None],
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._show_facts = show_facts
        self._entity = ""
        self.histogram = Histogram(self.tr("Histogram"))
        self.save = QPushButton(self.tr("Save as .npy…"))
        self.save.setAccessibleName(self.tr("Save the values as a .npy file"))
        self.save.clicked.connect(self._choose_file)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 12, 0)
        row.setSpacing(0)
        row.addWidget(self.histogram, 1)
        row.addWidget(self.save, 0, Qt.AlignmentFlag.AlignVCenter)
        self._fetching = WhenLookedAt(self, workspace, self._ask, set_busy)

    def show_tensor(self, entity: str) -> None:
        """Show the values of a tensor, by its id."""
        self._entity = entity
        self._fetching.forget()
        self.histogram.set_counts((), ())
        self.show()
        self._fetching.want(entity)

    def show_nothing(self) -> None:
        """Show that no tensor is selected: nothing."""
        self._entity = ""
        self._fetching.forget()
        self.hide()

    def save_to(self, file: str) -> None:
        """Save the values that are shown, in place of what is there."""
        workspace = self._workspace
        workspace.fetches.save_values(self._entity, file, self._note_saved, workspace.report)

    def _note_saved(self, path: str) -> None:
        self._workspace.announced.emit(self.tr("Saved as {0}.").format(path), "info")

    def _ask(self, entity: str, _moment: Moment | None) -> int:
        return self._workspace.fetches.values(entity, self._take_values, self._take_problem)

    def _take_values(self, record: ValuesRecord) -> None:
        self._fetching.settle(came=True)
        self.histogram.set_counts(record.edges, record.counts)
        self._show_facts(value_facts(record))

    def _take_problem(self, problem: Problem) -> None:
        self._fetching.settle(came=False)
        self._show_facts(((self.tr("values"), problem.what),))

    def _choose_file(self) -> None:
        name = self._entity.partition(":")[2]
        title = self.tr("Save the values of {0}").format(name)
        path, _ = QFileDialog.getSaveFileName(
            self, title, f"{name}.npy", self.tr("NumPy arrays (*.npy)")
        )
        if path:
            self.save_to(path if Path(path).suffix == ".npy" else f"{path}.npy")


def value_facts(record: ValuesRecord) -> Facts:
    """Return what a tensor's values are, as labels and values."""
    facts = []
    if record.mean is not None:
        facts += [
            ("range", f"{record.low:.6g} … {record.high:.6g}"),
            ("mean", f"{record.mean:.6g}, std {record.deviation:.6g}"),
        ]
    rare = f"{record.nans:,} NaN, {record.infinities:,} infinite, {record.zeros:,} zero"
    facts.append(("values", f"{record.count:,}: {rare}"))
    if record.first:
        more = ", …" if len(record.first) < record.count else ""
        facts.append(("first", ", ".join(record.first) + more))
    return tuple(facts)
