"""Footer of a pane of code: the form that code is shown in, and a figure at the right."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QCheckBox, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit import theme
from lowerscope.app.kit.layouts import row_of
from lowerscope.app.kit.pane import ElidedLabel
from lowerscope.app.kit.typefaces import ui_font
from lowerscope.core.model.texts import _

HEIGHT = 28


class CodeFooter(QWidget):
    """Switches for the form of all code, below a pane.

    Args:
        with_types: Whether the pane shows bindings, whose types can be hidden.
        more: Switches of the pane's own.
    """

    def __init__(
        self,
        document: Document,
        *more: QCheckBox,
        with_types: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self.setFixedHeight(HEIGHT)
        self.compact = QCheckBox(_("Compact"))
        self.compact.setToolTip(
            _(
                "Parameters by name, numbers without their types, shapes at the right "
                "edge.\nOff: TVM's exact text. Copied and exported text is always TVM's exact text."
            )
        )
        self.wraps = QCheckBox(_("Wrap"))
        self.wraps.setToolTip(_("Continue long lines below, indented, marked ↳"))
        self.types = QCheckBox(_("Types"))
        self.types.setToolTip(_("Show the types of bindings in their lines"))
        if not with_types:
            self.types.hide()
        self.figure = ElidedLabel(role="quiet")
        self.figure.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        switches = (*more, self.compact, self.wraps, self.types)
        for switch in (*switches, self.figure):
            switch.setFont(ui_font(12))
        row_of(self, *switches, (self.figure, 1), margins=(10, 1, 10, 0), spacing=12)
        self.compact.clicked.connect(self._set_compact)
        self.wraps.clicked.connect(self._set_wraps)
        self.types.clicked.connect(self._set_types)
        document.on(("code_form",), self._show)
        theme.notifier().changed.connect(self.update)
        self._show()

    def set_script(self, is_script: bool) -> None:
        """Offer the compact form where a script is shown, which alone has one."""
        self.compact.setEnabled(is_script)
        self.types.setEnabled(is_script and self._document.code_form.compact)

    def _set_compact(self, on: bool) -> None:
        self._document.set(code_form=replace(self._document.code_form, compact=on))

    def _set_wraps(self, on: bool) -> None:
        self._document.set(code_form=replace(self._document.code_form, wraps=on))

    def _set_types(self, on: bool) -> None:
        self._document.set(code_form=replace(self._document.code_form, types=on))

    def _show(self) -> None:
        form = self._document.code_form
        self.compact.setChecked(form.compact)
        self.wraps.setChecked(form.wraps)
        # A script has all types as printed.
        self.types.setChecked(form.types or not form.compact)
        self.types.setEnabled(form.compact and self.compact.isEnabled())

    # Qt

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = theme.current()
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colours.panel))
        painter.fillRect(0, 0, self.width(), 1, QColor(colours.line))
