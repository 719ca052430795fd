"""Banner: a message across a pane, with buttons for what can be done about it."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QToolButton, QWidget

from lowerscope.app import theme
from lowerscope.app.widgets.icons import icon
from lowerscope.app.widgets.plain_text import Label
from lowerscope.app.widgets.typefaces import TextMetrics

_ROLES = ("info", "wrong")


class Banner(QWidget):
    """A message that stays until it is dismissed; hidden while there is none.

    Parameters
    ----------
    parent : QWidget, optional
        The parent widget.
    wraps : bool
        Whether a long message is wrapped, as in a dialog, which has room; otherwise it is elided.

    Signals
    -------
    dismissed()
        The user closed it.
    """

    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None, *, wraps: bool = False) -> None:
        super().__init__(parent)
        self._wraps = wraps
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._message = Label()
        self._message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._message.setMinimumWidth(40)
        self._message.setWordWrap(wraps)
        self._buttons: list[QPushButton] = []
        self._close = QToolButton()
        self._close.setToolTip(self.tr("Dismiss"))
        self._close.setAccessibleName(self.tr("Dismiss"))
        self._close.clicked.connect(self._dismiss_by_user)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(12, 4, 6, 4)
        self._row.setSpacing(8)
        self._row.addWidget(self._message, 1)
        self._row.addWidget(self._close)
        self._whole = ""
        theme.notifier().changed.connect(self._draw_icon)
        self._draw_icon()
        self.hide()

    def show_message(
        self,
        message: str,
        role: str = "info",
        actions: Sequence[tuple[str, Callable[[], None]]] = (),
    ) -> None:
        """Show a message in place of the current one.

        Parameters
        ----------
        message : str
            One line; elided, with all of it in the tool tip, unless the banner wraps.
        role : str
            ``"info"`` or ``"wrong"``.
        actions : sequence of (str, callable)
            Buttons; each dismisses the banner and then calls its function.
        """
        assert role in _ROLES, role
        for button in self._buttons:
            self._row.removeWidget(button)
            button.deleteLater()
        self._buttons = [self._button(label, callback) for label, callback in actions]
        for i, button in enumerate(self._buttons):
            self._row.insertWidget(1 + i, button)
        self._whole = message
        self._message.setToolTip(message)
        self.setAccessibleName(message)
        self.setProperty("banner", role)
        self.style().unpolish(self)
        self.style().polish(self)
        self.show()
        self._elide()

    def message(self) -> str:
        """Return the message, or ``""``."""
        return self._whole

    def dismiss(self) -> None:
        """Hide the banner."""
        self._whole = ""
        self.hide()

    def actions_offered(self) -> list[QPushButton]:
        """Return the buttons, from left to right."""
        return list(self._buttons)

    def _dismiss_by_user(self) -> None:
        self.dismiss()
        self.dismissed.emit()

    def _button(self, label: str, callback: Callable[[], None]) -> QPushButton:
        button = QPushButton(label)
        button.clicked.connect(self.dismiss)
        button.clicked.connect(callback)
        return button

    def _draw_icon(self) -> None:
        self._close.setIcon(icon("close"))

    def _elide(self) -> None:
        if self._wraps:
            self._message.setText(self._whole)
            return
        first = self._whole.split("\n", 1)[0]
        room = self._message.width()
        right = Qt.TextElideMode.ElideRight
        self._message.setText(TextMetrics(self._message.font()).elidedText(first, right, room))

    # Qt

    def event(self, event: QEvent) -> bool:
        handled = super().event(event)
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest) and self._whole:
            self._elide()
        return handled
