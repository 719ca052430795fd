"""Commands on texts: they apply to the text that has or last had the focus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from lowerscope.app.document.colouring import Colouring
from lowerscope.app.document.document import Document
from lowerscope.app.kit.commands import Command
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.app.kit.code.code_view import CodeView
    from lowerscope.app.shell.panes import Panes


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
        """Return the commands."""
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
