"""What kind of thing our own widgets are, for a screen reader: Qt knows that of its own alone."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget

_ROLE = QAccessible.Role

ROLES = {
    "SegmentedSwitch": _ROLE.ComboBox,
    "GraphCanvas": _ROLE.Canvas,
    "DrawingPad": _ROLE.Canvas,
    "HeatMap": _ROLE.Table,
    "Histogram": _ROLE.Chart,
    "RunChart": _ROLE.Chart,
    "BestCurve": _ROLE.Chart,
    "DiffArea": _ROLE.Document,
    "WelcomePage": _ROLE.Grouping,
    "SplitLine": _ROLE.Splitter,
}
"""By the name of the class."""


@cache
def tell_roles() -> None:
    """Tell the roles to whoever asks, from now on."""
    QAccessible.installFactory(_interface)


def _interface(name: str, widget: QObject) -> QAccessibleInterface | None:
    role = ROLES.get(name)
    if role is None or not isinstance(widget, QWidget):
        return None
    return QAccessibleWidget(widget, role)
