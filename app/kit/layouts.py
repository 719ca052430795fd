"""Rows and columns of widgets."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import QSize
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

Layout = TypeVar("Layout", bound=QBoxLayout)

Stretch = tuple[None, int]
Part = QWidget | QLayout | int | Stretch | tuple[QWidget | QLayout, int]
"""A widget or a layout, alone or with its stretch; pixels of space; or a stretch alone."""

STRETCH: Stretch = (None, 1)

FRAME = QSize(16, 48)
"""Bound on the desktop's frame around a window or a dialog, in logical pixels."""


def stretch(factor: int) -> Stretch:
    """Return empty room that takes this share of the rest."""
    return None, factor


def row_of(
    parent: QWidget | None,
    *parts: Part,
    margins: int | tuple[int, int, int, int] | None = 0,
    spacing: int | None = 0,
) -> QHBoxLayout:
    """Lay out parts side by side, in a widget or to be put into another layout.

    Without `margins` or `spacing`, those of the style apply.
    """
    return _filled(QHBoxLayout(parent) if parent else QHBoxLayout(), parts, margins, spacing)


def column_of(
    parent: QWidget | None,
    *parts: Part,
    margins: int | tuple[int, int, int, int] | None = 0,
    spacing: int | None = 0,
) -> QVBoxLayout:
    """Lay out parts below one another; see `row_of`."""
    return _filled(QVBoxLayout(parent) if parent else QVBoxLayout(), parts, margins, spacing)


def stack_of(*pages: QWidget) -> QStackedWidget:
    """Return a stack of pages, the first of which is shown."""
    stack = QStackedWidget()
    for page in pages:
        stack.addWidget(page)
    return stack


def scrolled(inside: QWidget | None = None, *, sideways: bool = True) -> QScrollArea:
    """Return an area without a frame that scrolls its contents, which take the focus.

    `sideways`: whether it has a horizontal scroll bar where they are too wide.
    """
    # Imported here since the enumerations of Qt are made then, which the first paint waits for.
    from PySide6.QtCore import Qt

    area = QScrollArea()
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    if not sideways:
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    if inside is not None:
        area.setWidget(inside)
    return area


def _filled(
    layout: Layout,
    parts: tuple[Part, ...],
    margins: int | tuple[int, int, int, int] | None,
    spacing: int | None,
) -> Layout:
    if margins is not None:
        around = (margins,) * 4 if isinstance(margins, int) else margins
        layout.setContentsMargins(*around)
    if spacing is not None:
        layout.setSpacing(spacing)
    for part in parts:
        if isinstance(part, int):
            layout.addSpacing(part)
            continue
        item, share = part if isinstance(part, tuple) else (part, 0)
        if item is None:
            layout.addStretch(share)
        elif isinstance(item, QLayout):
            layout.addLayout(item, share)
        else:
            layout.addWidget(item, share)
    return layout
