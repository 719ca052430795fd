"""The values of a parameter or a constant: histogram, and a button that saves them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QPushButton,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.document.queries import Queries
from lowerscope.app.engine.file_broker import ask_for_file
from lowerscope.app.kit.charts.plots import Histogram
from lowerscope.app.kit.dialogs import file_to_save
from lowerscope.app.panes.common.descriptions import Facts
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import SaveValuesQuery, ValuesQuery
from lowerscope.core.model.snapshot import ValuesRecord
from lowerscope.core.model.texts import _, labelled


class ValuesPanel(QWidget):
    """The panel below the table of Details while a tensor is selected.

    Args:
        show_facts: Called with the facts about the values, for the table, once they arrive.
        set_busy: Called with whether the values are being fetched.
    """

    def __init__(
        self,
        document: Document,
        queries: Queries,
        show_facts: Callable[[Facts], None],
        set_busy: Callable[[bool], None],
    ) -> None:
        super().__init__()
        self._document = document
        self._queries = queries
        self._show_facts = show_facts
        self._entity = ""
        self.histogram = Histogram(_("Histogram"))
        self.save = QPushButton(_("Save as .npy…"))
        self.save.setAccessibleName(_("Save the values as a .npy file"))
        self.save.clicked.connect(self._choose_file)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 12, 0)
        row.setSpacing(0)
        row.addWidget(self.histogram, 1)
        row.addWidget(self.save, 0, Qt.AlignmentFlag.AlignVCenter)
        self._watch = queries.watch(
            self, self._query, self._take_values, self._take_problem, set_busy
        )

    def show_tensor(self, entity: str) -> None:
        """Show the values of a tensor, by its id."""
        self._entity = entity
        self.histogram.set_counts((), ())
        self.show()
        self._watch.refresh()

    def show_nothing(self) -> None:
        """Hide the values: no tensor is selected."""
        self._entity = ""
        self._watch.update()
        self.hide()

    def save_to(self, file: str) -> None:
        """Save the values shown, overwriting an existing file."""
        document = self._document
        assert document.recipe is not None
        query = SaveValuesQuery(document.recipe, self._entity, file)
        ask_for_file(self._queries, query, self._note_saved, document.report)

    def _note_saved(self, path: str) -> None:
        self._document.notify(_("Saved as {path}.", path=path), "info")

    def _query(self) -> ValuesQuery | None:
        recipe = self._document.recipe
        return ValuesQuery(recipe, self._entity) if recipe is not None and self._entity else None

    def _take_values(self, record: ValuesRecord) -> None:
        self.histogram.set_counts(record.edges, record.counts)
        self._show_facts(value_facts(record))

    def _take_problem(self, problem: Problem) -> None:
        self._show_facts(((_("values"), problem.what),))

    def _choose_file(self) -> None:
        name = self._entity.partition(":")[2]
        title = _("Save the values of {name}", name=name)
        kinds = _("NumPy arrays (*.npy)")
        if path := file_to_save(self, title, f"{name}.npy", kinds):
            self.save_to(path)


def value_facts(record: ValuesRecord) -> Facts:
    """Return the facts about a tensor's values, as labels and values."""
    facts = []
    if record.mean is not None:
        facts += [
            (_("range"), f"{record.low:.6g} … {record.high:.6g}"),
            (
                _("mean"),
                _("{mean:.6g}, std {deviation:.6g}", mean=record.mean, deviation=record.deviation),
            ),
        ]
    rare = _(
        "{nans:,} NaN, {infinities:,} infinite, {zeros:,} zero",
        nans=record.nans,
        infinities=record.infinities,
        zeros=record.zeros,
    )
    facts.append((_("values"), labelled(f"{record.count:,}", rare)))
    if record.first:
        more = ["…"] if len(record.first) < record.count else []
        facts.append((_("first values"), ", ".join([*record.first, *more])))
    return tuple(facts)
