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
from lowerscope.app.kit.canvas.colouring import Colouring as NodeColouring
from lowerscope.app.kit.commands import Command
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

        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._note_focus)

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

        def of_page(act: Callable[[GraphPage], object]) -> Callable[[], None]:
            def run() -> None:
                page = self.current()
                if page is not None:
                    act(page)

            return run

        def of_canvas(act: Callable[[GraphCanvas], object]) -> Callable[[], None]:
            def run() -> None:
                canvas = self.canvas()
                if canvas is not None:
                    act(canvas)

            return run

        def is_on(switch: Callable[[GraphCanvas], bool]) -> Callable[[], bool]:
            def checked() -> bool:
                canvas = None if self._panes() is None else self.canvas()
                return canvas is not None and switch(canvas)

            return checked

        def why_not(colouring: NodeColouring) -> str:
            from lowerscope.app.panes.common.run_figures import why_no_figures

            return why_no_figures(self._document.run_record, colouring)

        return [
            Command(
                "find-node",
                _("Find a &node…"),
                of_canvas(lambda canvas: canvas.open_find()),
                key_there="/",
            ),
            Command(
                "expand-module",
                _("Expand or co&llapse the module"),
                of_canvas(lambda canvas: canvas.fold(canvas.current())),
                key_there="Return",
            ),
            Command(
                "fit-graph",
                _("&Fit the graph"),
                of_canvas(lambda canvas: canvas.fit()),
                key_there="F",
            ),
            Command(
                "zoom-to-selection",
                _("&Zoom to the selection"),
                of_canvas(lambda canvas: canvas.zoom_to_selection()),
                key_there="Z",
            ),
            Command(
                "graph-size",
                _("&Actual size"),
                of_canvas(lambda canvas: canvas.reset_zoom()),
                key_there="0",
            ),
            Command(
                "collapse-all",
                _("&Collapse all modules and fused functions"),
                of_page(lambda page: page.collapse_all()),
            ),
            Command(
                "expand-all",
                _("&Expand all modules and fused functions"),
                of_page(lambda page: page.expand_all()),
            ),
            Command(
                "fitting-level",
                _("Expand modules &to fit"),
                of_page(lambda page: page.show_fitting_level()),
            ),
            Command(
                "edge-labels",
                _("Show &values beside all edges"),
                of_canvas(lambda canvas: canvas.switch_labels()),
                checked=is_on(lambda canvas: canvas.labels()),
                key_there="L",
            ),
            Command(
                "graph-overview",
                _("&Overview"),
                of_canvas(lambda canvas: canvas.switch_minimap()),
                checked=is_on(lambda canvas: canvas.wants_minimap()),
                key_there="M",
            ),
            Command(
                "node-colours",
                _("Colour nodes by operator family or &strategy"),
                of_canvas(lambda canvas: canvas.switch_colouring()),
                key_there="C",
            ),
            Command(
                "colours-time",
                _("Colour nodes &by time"),
                of_canvas(lambda canvas: canvas.set_colouring("time")),
                enabled=lambda: not why_not("time"),
                reason=partial(why_not, "time"),
            ),
            Command(
                "colours-error",
                _("Colour nodes by e&rror"),
                of_canvas(lambda canvas: canvas.set_colouring("error")),
                enabled=lambda: not why_not("error"),
                reason=partial(why_not, "error"),
            ),
        ]


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
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._follow)

    def commands(self) -> tuple[Command, ...]:
        colouring = self._colouring
        return (
            Command("find-in-text", _("&Find in the text…"), self._find, "Ctrl+F"),
            Command("go-to-line", _("&Go to line…"), self._go_to_line, "Ctrl+G"),
            Command("fold-all", _("F&old all functions"), self._fold_all),
            Command("unfold-all", _("&Unfold all"), self._unfold_all),
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
            Command("copy-script", _("Co&py TVM's exact text"), self._copy, enabled=self._has),
            Command(
                "go-to-source",
                _("&Go to the source"),
                self._show_source,
                enabled=self._has,
                mode_keys="F2",
                mode="explore",
            ),
        )

    def _switch(self, name: str) -> None:
        form = self._document.code_form
        self._document.set(code_form=replace(form, **{name: not getattr(form, name)}))

    def _is_on(self, name: str) -> bool:
        return bool(getattr(self._document.code_form, name))

    def _has(self) -> bool:
        return self._document.is_open()

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

    def _find(self) -> None:
        if (text := self.text()) is not None:
            text.open_find()

    def _go_to_line(self) -> None:
        if (text := self.text()) is not None:
            text.open_go_to_line()

    def _fold_all(self) -> None:
        if (text := self.text()) is not None:
            text.editor.fold_all()

    def _unfold_all(self) -> None:
        if (text := self.text()) is not None:
            text.editor.unfold_all()
