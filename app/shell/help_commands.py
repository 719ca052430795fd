"""Context-sensitive help, in a window of its own; loaded on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit.commands import Command, Host
from lowerscope.app.kit.help_key import PAGE, notifier
from lowerscope.app.kit.pane import Pane
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.app.shell.help_window import CommandView, HelpWindow
    from lowerscope.core.model.recipe import Recipe

BEGIN = "tour"
"""The default page: the welcome page has no pane."""


class Help(QObject):
    """Opens the help of a window.

    Args:
        approve: Calls a function with a recipe once the user has approved its files.
        enter: Gives the keyboard focus to a pane.
    """

    def __init__(
        self,
        host: Host,
        document: Document,
        approve: Callable[[Recipe, Callable[[Recipe], object]], None],
        enter: Callable[[str], object],
    ) -> None:
        super().__init__(host.widget)
        self._host = host
        self._document = document
        self._approve = approve
        self._enter = enter
        self._function = ""  # Id of the function that a command names, and the pane that shows it.
        self._pane = ""
        document.on(("snapshot", "pending"), self._select_function)
        self.shown: HelpWindow | None = None
        notifier().wanted.connect(self._show_of_dialog)

    def commands(self) -> tuple[Command, ...]:
        """Return the commands of the menu Help."""
        return (
            Command("help", _("&Help on this pane"), self.show_here, "F1"),
            Command("help-contents", _("C&ontents"), partial(self.show, "README")),
            Command("tour-page", _("&Read the tour"), partial(self.show, BEGIN)),
            Command("glossary", _("&Glossary"), partial(self.show, "glossary")),
            Command("course", _("The &course, step by step"), partial(self.show, "course")),
        )

    def show_here(self) -> None:
        """Show the page on the focused part of the window."""
        self.show(page_of(QApplication.focusWidget()))

    def show(self, page: str) -> None:
        """Show a page, or the section of it named behind a ``#``."""
        from lowerscope.app.shell.help_window import HelpWindow

        if self.shown is None:
            self.shown = HelpWindow(self._open, self._document.report)
        name, _, section = page.partition("#")
        self.shown.show_page(name, section)
        self.shown.setWindowState(self.shown.windowState() & ~Qt.WindowState.WindowMinimized)
        self.shown.show()
        self.shown.activateWindow()
        self.shown.page.setFocus()

    def close(self) -> None:
        """Close the help together with its window."""
        if self.shown is not None:
            self.shown.close()
            self.shown.deleteLater()
            self.shown = None

    def _open(self, recipe: Recipe, view: CommandView) -> None:
        """Open the recipe of a command, and show what the command prints."""
        from lowerscope.app.panes.fx.fx_view import FxView
        from lowerscope.app.panes.relax.relax_view import RelaxView
        from lowerscope.app.panes.tensorir.tensorir_view import TensorIRView

        def go(approved: Recipe) -> None:
            self._function = f"tir:{view.function}" if view.function else ""
            self._pane = view.pane
            self._document.open(approved)
            self._host.show_panes()
            self._host.bring(view.pane)
            kind = {"fx": FxView, "relax": RelaxView, "tensorir": TensorIRView}.get(view.pane)
            pane: Pane | None = None if kind is None else self._host.view(kind)
            if pane is not None and view.page in pane.pages():
                pane.set_current(view.page)
            # On a small screen, the help covers the window that now shows the recipe.
            self._host.widget.activateWindow()
            self._enter(view.pane)

        self._approve(recipe, go)

    def _select_function(self) -> None:
        """Select the function that the command names, once its records are there."""
        if self._document.is_changing:
            return
        snapshot, function = self._document.snapshot, self._function
        self._function = ""
        if snapshot is not None and function in {each.id for each in snapshot.functions}:
            self._document.select((function,))
            if self._host.widget.isActiveWindow():
                # The list of functions, which had the focus, may have made way for the function.
                self._enter(self._pane)

    def _show_of_dialog(self, dialog: QWidget, page: str) -> None:
        above: QWidget | None = dialog
        while above is not None and above is not self._host.widget:
            above = above.parentWidget()
        if above is not None:
            self.show(page)


def page_of(widget: QWidget | None) -> str:
    """Return the page on a widget: that of the innermost part of the window that has one."""
    while widget is not None:
        page = widget.property(PAGE)
        if isinstance(widget, Pane):
            # The focus is in the header, for example on a tab.
            page = widget.page(widget.current()).property(PAGE) or page
        if page:
            return str(page)
        widget = widget.parentWidget()
    return BEGIN
