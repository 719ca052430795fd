"""The form for named dimensions: rows with the range and the sizes to run at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
from PySide6.QtWidgets import QGridLayout, QLineEdit, QWidget

from lowerscope.app.widgets.plain_text import Label
from lowerscope.core.dimensions import parse_dimension, parse_sizes
from lowerscope.core.recipe import Dimension


@dataclass(frozen=True)
class DimensionRow:
    """The fields of one dimension, and the labels beside them."""

    span: QLineEdit
    sizes: QLineEdit
    widgets: tuple[QWidget, ...]


class DimensionsForm(QWidget):
    """A form with a row for each name in the shapes; hidden if there are none.

    Parameters
    ----------
    said
        The user's previous specification.
    """

    def __init__(self, said: Sequence[Dimension], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._said = {each.name: each for each in said}
        self._rows: dict[str, DimensionRow] = {}
        self._names: tuple[str, ...] = ()
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(2, 1)
        titles = (self.tr("dimension"), self.tr("sizes"), self.tr("run at"))
        for column, title in enumerate(titles):
            label = Label(title)
            label.setProperty("role", "quiet")
            self._grid.addWidget(label, 0, column)
        self.hide()

    def row(self, name: str) -> DimensionRow:
        """Return the fields of a dimension."""
        return self._rows[name]

    def set_names(self, names: Iterable[str]) -> None:
        """Show a row for each of `names`; the values of other rows are kept for later."""
        self._names = tuple(dict.fromkeys(names))
        for name in self._names:
            if name not in self._rows:
                self._rows[name] = self._add_row(name)
        for name, row in self._rows.items():
            for widget in row.widgets:
                widget.setVisible(name in self._names)
        self.setVisible(bool(self._names))

    def dimensions(self) -> tuple[Dimension, ...]:
        """Return the filled in dimensions.

        Raises
        ------
        LowerscopeError
            If a range or a size is invalid, with the message of the command line.
        """
        return tuple(self._dimension(name, self._rows[name]) for name in self._names)

    def _dimension(self, name: str, row: DimensionRow) -> Dimension:
        span, sizes = row.span.text().strip(), row.sizes.text().strip()
        dimension = parse_dimension(f"{name}={span}") if span else Dimension(name=name)
        if not sizes:
            return dimension
        return msgspec.structs.replace(dimension, sizes=parse_sizes(f"{name}={sizes}")[1])

    def _add_row(self, name: str) -> DimensionRow:
        said = self._said.get(name)
        standard = Dimension(name=name)
        span, sizes = QLineEdit(), QLineEdit()
        span.setPlaceholderText(f"{standard.low}..{standard.high}")
        span.setAccessibleName(self.tr("Range of {0}").format(name))
        sizes.setPlaceholderText(self.tr("the traced size and the ends"))
        sizes.setAccessibleName(self.tr("Sizes of {0} to run at").format(name))
        sizes.setToolTip(self.tr("With several dimensions, the k-th run takes the k-th of each."))
        if said is not None:
            span.setText(f"{said.low}..{said.high}")
            sizes.setText(",".join(map(str, said.sizes)))
        label = Label(name)
        label.setProperty("role", "title")
        index = self._grid.rowCount()
        for column, widget in enumerate((label, span, sizes)):
            self._grid.addWidget(widget, index, column)
        return DimensionRow(span, sizes, (label, span, sizes))
