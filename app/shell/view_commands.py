"""Commands on the graph or the text that has the focus, or else on the first visible one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QMenuBar, QWidget
from shiboken6 import isValid

from lowerscope.app.document.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.kit import theme
from lowerscope.app.kit.canvas.colouring import Colouring as NodeColouring
from lowerscope.app.kit.commands import Command, available
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas
    from lowerscope.app.kit.code.code_view import CodeView
    from lowerscope.app.panes.common.graph_page import GraphPage
    from lowerscope.app.shell.panes import Panes

# --- The graph that a command applies to: the focused one, or the first visible one ---


class Graphs(QObject):
    """The graphs of the window's panes.

    Args:
        panes: Returns the panes, if they have been created.
    """

    def __init__(
        self, document: Document, panes: Callable[[], Panes | None], window: QWidget
    ) -> None:
        super().__init__(window)
        self._document = document
        self._panes = panes
        self._window = window
        # The widget that the menu bar took the keyboard focus from.
        self._before: QWidget | None = None

        theme.application().focusChanged.connect(self._note_focus)

    def _note_focus(self, old: QWidget | None, new: QWidget | None) -> None:
        if isinstance(new, QMenuBar):
            self._before = old

    def current(self) -> GraphPage | None:
        """Return the focused graph, or else the first visible one."""
        panes = self._panes()
        pages = [] if panes is None else [panes.fx.graph, panes.relax.graph]
        focus = self._focus()
        for page in pages:
            if focus is not None and page.isAncestorOf(focus):
                return page
        return next((page for page in pages if page.isVisible()), None)

    def canvas(self) -> GraphCanvas | None:
        """Return the focused canvas, including that of a difference, or else that of `current`."""
        from lowerscope.app.kit.canvas.graph_canvas import GraphCanvas

        widget = self._focus()
        while widget is not None:
            if isinstance(widget, GraphCanvas):
                return widget
            widget = widget.parentWidget()
        page = self.current()
        return None if page is None else page.canvas

    def _focus(self) -> QWidget | None:
        """Return the focus widget, or that of this window while another window is in front."""
        focus = QApplication.focusWidget()
        if isinstance(focus, QMenuBar) and self._before is not None and isValid(self._before):
            return self._before
        return focus or self._window.focusWidget()

    def commands(self) -> list[Command]:
        """Return the graph commands, in the order of the menu."""

        def call(
            found: Callable[[], QWidget | None], method: str, *values: object
        ) -> Callable[[], None]:
            def run() -> None:
                if (widget := found()) is not None:
                    getattr(widget, method)(*values)

            return run

        def fold() -> None:
            if (canvas := self.canvas()) is not None:
                canvas.fold(canvas.current())

        def is_on(switch: str) -> Callable[[], bool]:
            def checked() -> bool:
                canvas = None if self._panes() is None else self.canvas()
                return canvas is not None and getattr(canvas, switch)()

            return checked

        def why_not(colouring: NodeColouring) -> str:
            from lowerscope.app.panes.common.run_figures import why_no_figures

            return why_no_figures(self._document.run_record, colouring)

        def has_figures(colouring: NodeColouring) -> bool:
            return not why_not(colouring)

        of_canvas = partial(call, self.canvas)
        fold_title = _("Expand or co&llapse the module")
        return [
            Command("find-node", _("Find a &node…"), of_canvas("open_find"), key_there="/"),
            Command("expand-module", fold_title, fold, key_there="Return"),
            *(
                Command(key, title, of_canvas(method), key_there=there)
                for key, title, method, there in (
                    ("fit-graph", _("&Fit the graph"), "fit", "F"),
                    ("zoom-to-selection", _("&Zoom to the selection"), "zoom_to_selection", "Z"),
                    ("graph-size", _("&Actual size"), "reset_zoom", "0"),
                )
            ),
            *(
                Command(key, title, call(self.current, method))
                for key, title, method in (
                    (
                        "collapse-all",
                        _("&Collapse all modules and fused functions"),
                        "collapse_all",
                    ),
                    ("expand-all", _("&Expand all modules and fused functions"), "expand_all"),
                    ("fitting-level", _("Expand modules &to fit"), "show_fitting_level"),
                )
            ),
            *(
                Command(key, title, of_canvas(act), checked=is_on(switch), key_there=there)
                for key, title, act, switch, there in (
                    (
                        "edge-labels",
                        _("Show &values beside all edges"),
                        "switch_labels",
                        "labels",
                        "L",
                    ),
                    ("graph-overview", _("&Overview"), "switch_minimap", "wants_minimap", "M"),
                )
            ),
            Command(
                "node-colours",
                _("Colour nodes by operator family or &strategy"),
                of_canvas("switch_colouring"),
                key_there="C",
            ),
            *(
                Command(
                    f"colours-{name}",
                    title,
                    of_canvas("set_colouring", name),
                    enabled=partial(has_figures, name),
                    reason=partial(why_not, name),
                )
                for name, title in _FIGURES
            ),
        ]


_FIGURES: tuple[tuple[NodeColouring, str], ...] = (
    ("time", _("Colour nodes &by time")),
    ("error", _("Colour nodes by e&rror")),
)
"""Colourings by what a run measured."""


class CodeCommands(QObject):
    """Finds, folds, copies and colours in the current text, and sets the form of all."""

    def __init__(
        self,
        document: Document,
        colouring: Colouring,
        panes: Callable[[], Panes | None],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._document = document
        self._colouring = colouring
        self._panes = panes
        self._window = window
        self._last: CodeView | None = None
        theme.application().focusChanged.connect(self._follow)

    def commands(self) -> tuple[Command, ...]:
        colouring, act = self._colouring, partial(partial, self._press)
        return (
            Command("find-in-text", _("&Find in the text…"), act("find"), "Ctrl+F"),
            Command("go-to-line", _("&Go to line…"), act("line"), "Ctrl+G"),
            Command("fold-all", _("F&old all functions"), act("fold-all")),
            Command("unfold-all", _("&Unfold all"), act("unfold-all")),
            Command(
                "line-colours",
                _("&Colour lines by node"),
                colouring.toggle,
                "Ctrl+Shift+L",
                checked=lambda: colouring.on,
            ),
            *(
                Command(key, title, partial(self._switch, name), checked=partial(self._is_on, name))
                for key, title, name in (
                    ("compact", _("&Compact script"), "compact"),
                    ("wrap-lines", _("&Wrap long lines"), "wraps"),
                    ("show-types", _("T&ypes of bindings"), "types"),
                    ("follow-selection", _("TensorIR follows the &selection"), "follows"),
                )
            ),
            *available(
                self._document.is_open,
                Command("copy-script", _("Co&py TVM's exact text"), self._copy),
                Command(
                    "go-to-source", _("&Go to the source"), self._show_source, explore_keys="F2"
                ),
            ),
        )

    def _switch(self, name: str) -> None:
        form = self._document.code_form
        self._document.set(code_form=replace(form, **{name: not getattr(form, name)}))

    def _is_on(self, name: str) -> bool:
        return bool(getattr(self._document.code_form, name))

    def _copy(self) -> None:
        if (text := self.text()) is not None:
            QGuiApplication.clipboard().setText(text.printed())

    def _show_source(self) -> None:
        panes = self._panes()
        if panes is not None:
            panes.bring("fx")
            panes.fx.show_source()

    def _follow(self, _old: QWidget | None, new: QWidget | None) -> None:
        if self._document.snapshot is None:
            # There is no text yet, and no need to load the panes.
            return
        from lowerscope.app.kit.code.code_view import CodeView

        widget: QWidget | None = new
        while widget is not None and not isinstance(widget, CodeView):
            widget = widget.parentWidget()
        if widget is None:
            return
        # A pane may be in a window of its own.
        panes = self._panes()
        if panes is not None and panes.isAncestorOf(widget):
            self._last = widget

    def text(self) -> CodeView | None:
        """Return the text that last had the focus, if visible; else the Relax script."""
        panes, last = self._panes(), self._last
        if panes is None:
            return None
        if last is not None and isValid(last) and last.isVisible():
            return last
        code = panes.relax.script.code
        return code if code.isVisible() else None

    def shown(self) -> list[CodeView]:
        """Return the visible texts, the one that last had the focus first."""
        from lowerscope.app.kit.code.code_view import CodeView

        panes = self._panes()
        views = [] if panes is None else panes.findChildren(CodeView)
        last = self.text()
        seen = [view for view in views if view.editor.isVisible() and view.text()]
        return sorted(seen, key=lambda view: view is not last)

    def _press(self, key: str) -> None:
        if (text := self.text()) is not None:
            text.press(key)
