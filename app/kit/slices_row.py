"""Fields that select a slice of a tensor: an index in each dimension before the last two."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QSpinBox, QWidget

from lowerscope.app.kit.plain_text import Label
from lowerscope.core.model.texts import _

_WIDTH = 92


class SlicesRow(QWidget):
    """A field for each of these dimensions."""

    changed = Signal()  # The user selected another slice.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = Label(_("slice"))
        self.title.setProperty("role", "quiet")
        self.fields: list[QSpinBox] = []
        self._shape: tuple[int, ...] = ()
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(4)
        self._row.addWidget(self.title)
        self.hide()

    def set_shape(self, shape: Sequence[int]) -> None:
        """Set the shape of another tensor, and select its first slice."""
        if tuple(shape) == self._shape:
            return
        self._shape = tuple(shape)
        for field in self.fields:
            self._row.removeWidget(field)
            field.hide()
            field.deleteLater()
        self.fields = [self._field(place, extent) for place, extent in enumerate(shape[:-2])]
        for field, extent in zip(self.fields, shape[:-2], strict=True):
            self._row.addWidget(field)
            # A dimension of extent 1 offers no choice.
            field.setVisible(extent > 1)
        self.setVisible(any(extent > 1 for extent in shape[:-2]))

    def index(self) -> tuple[int, ...]:
        """The index of the slice shown."""
        return tuple(field.value() for field in self.fields)

    def set_index(self, index: Sequence[int]) -> None:
        """Select another slice, without a signal."""
        for field, value in zip(self.fields, index, strict=False):
            field.blockSignals(True)
            field.setValue(value)
            field.blockSignals(False)

    def step(self, by: int) -> None:
        """Go to another index of the last dimension that offers a choice, as a channel."""
        for field in reversed(self.fields):
            if field.maximum():
                field.stepBy(by)
                break

    def _field(self, place: int, extent: int) -> QSpinBox:
        field = QSpinBox()
        field.setRange(0, max(0, extent - 1))
        field.setWrapping(True)
        field.setSuffix(_(" of {extent}", extent=extent))
        field.setFixedWidth(_WIDTH)
        field.setKeyboardTracking(False)
        field.setAccessibleName(_("Index in dimension {place}", place=place))
        field.setToolTip(_("Index in dimension {place}, of {extent}", place=place, extent=extent))
        field.valueChanged.connect(self.changed)
        return field
