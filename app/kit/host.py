"""The window, as the commands of features know it."""

from __future__ import annotations

from typing import Protocol, TypeVar

from PySide6.QtWidgets import QWidget

V = TypeVar("V", bound=QWidget)


class Host(Protocol):
    """The parent of a feature's dialogs, which shows its pane."""

    @property
    def widget(self) -> QWidget:
        """The parent of dialogs, and of objects that live as long as the window."""

    def view(self, kind: type[V]) -> V:
        """Return the pane, or the page of one, of a class; the panes are made on first use."""

    def show_panes(self) -> None:
        """Show the panes in place of the welcome page."""

    def show_page(self, key: str) -> None:
        """Show a page, whichever pane and mode it belongs to."""

    def bring(self, name: str) -> None:
        """Make a pane visible, whichever mode it belongs to."""
