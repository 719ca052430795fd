"""Accessible roles of our own widgets, which Qt does not know."""

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
    "Chart": _ROLE.Chart,
    "Bars": _ROLE.Chart,
    "WelcomePage": _ROLE.Grouping,
    "SplitLine": _ROLE.Splitter,
}
"""Accessible role by the name of the class, or of a base class."""


@cache
def tell_roles() -> None:
    """Install the accessible roles."""
    QAccessible.installFactory(_interface)


def _interface(name: str, widget: QObject) -> QAccessibleInterface | None:
    role = ROLES.get(name)
    if role is None or not isinstance(widget, QWidget):
        return None
    return QAccessibleWidget(widget, role)
