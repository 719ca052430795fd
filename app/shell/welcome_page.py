"""The welcome page: samples, recent files, opening and dropping."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtGui import QEnterEvent, QKeyEvent, QMouseEvent, QPixmap, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.kit import theme
from lowerscope.app.kit.layouts import STRETCH, column_of, row_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.typefaces import SHOWN_CHARACTERS, TextMetrics
from lowerscope.core.files.samples import samples
from lowerscope.core.model.texts import _
from lowerscope.resources import PICTURES

# It uses Qt's own widgets and the style sheet, without custom painting, since it is part of the
# window's first paint; see `lowerscope.app.kit.theme`.

PADDING = 12
HEIGHT = 46
LEAST_WIDTH = 160

PICTURE = (112, 88)
"""Width and height of a sample's picture, in logical pixels."""

LEAST_CARD = 270
CARD_EDGE = 6
CARDS = 2
"""Cards in a row."""


class LinkRow(QPushButton):
    """A flat, wide button with two lines of text, elided where they do not fit."""

    def __init__(self, title: str, description: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lines = (_line(title, "link", self), _line(description, "quiet", self))
        self._texts = (title, description)
        self.setProperty("row", True)
        self.setAccessibleName(title)
        self.setAccessibleDescription(description)
        self.setToolTip(description)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(LEAST_WIDTH)
        self.setFixedHeight(HEIGHT)
        column_of(self, *self._lines, margins=(PADDING, 4, PADDING, 5))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        from PySide6.QtCore import Qt

        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def enterEvent(self, event: QEnterEvent) -> None:
        from PySide6.QtCore import Qt

        self.setCursor(Qt.CursorShape.PointingHandCursor)
        super().enterEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        room = self.width() - 2 * PADDING
        for line, text in zip(self._lines, self._texts, strict=True):
            # Qt's own eliding takes an argument of its namespace, which is slow to make.
            metrics = TextMetrics(line.font())
            shown = text[:SHOWN_CHARACTERS]
            while len(shown) > 1 and metrics.horizontalAdvance(shown) > room:
                shown = f"{shown.rstrip('…')[:-1]}…"
            line.setText(shown)


def _line(text: str, role: str, parent: QWidget) -> Label:
    line = Label(text, parent, role=role)
    line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    return line


class SampleCard(QPushButton):
    """A sample: the picture of its graph, its name, and what it is."""

    def __init__(self, name: str, description: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = name
        self.picture = Label("", self)
        self.picture.setFixedSize(*PICTURE)
        title = Label(name, self, role="title")
        words = Label(description, self, role="quiet", wraps=True)
        words.setMinimumHeight(0)
        self.setProperty("card", True)
        self.setAccessibleName(name)
        self.setAccessibleDescription(description)
        self.setToolTip(description)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(LEAST_CARD)
        self.setFixedHeight(PICTURE[1] + 2 * CARD_EDGE)
        column = column_of(None, title, words, STRETCH, spacing=2)
        edges = (CARD_EDGE, CARD_EDGE, PADDING, CARD_EDGE)
        row_of(self, self.picture, (column, 1), margins=edges, spacing=PADDING)

    def show_picture(self, *, dark: bool) -> None:
        """Show the picture of the graph, in the colours of a theme."""
        picture = QPixmap(str(picture_of(self.name, dark=dark)))
        picture.setDevicePixelRatio(picture.width() / PICTURE[0])
        self.picture.setPixmap(picture)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        from PySide6.QtCore import Qt

        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)


class DropField(Label):
    """The place where files are dropped; a click selects one in a dialog."""

    clicked = Signal()

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(text, parent, role="quiet", wraps=True)
        self.setProperty("drop", True)

    def enterEvent(self, event: QEnterEvent) -> None:
        from PySide6.QtCore import Qt

        self.setCursor(Qt.CursorShape.PointingHandCursor)
        super().enterEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        # Accepted: the release comes here as well.
        pass

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self.clicked.emit()


def picture_of(name: str, *, dark: bool) -> Path:
    """Return the picture of a sample's graph, which `tests.sample_pictures` writes."""
    return PICTURES / f"{name}-{'dark' if dark else 'light'}.png"


class WelcomePage(QScrollArea):
    """The page without a document."""

    chosen = Signal(str)  # Open this source.
    chosen_again = Signal(str)  # Open this source with its previous recipe.
    open_wanted = Signal()  # Select a file to open.
    tour_wanted = Signal()  # Start the tour.
    last_wanted = Signal(str)  # Resume this session, the last one.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setAccessibleName(_("Welcome"))
        # Widgets are created with their final parent: reparenting applies the style sheet again.
        inside = QWidget(self)
        inside.setProperty("ground", "ground")
        self._inside = inside
        self.setWidget(inside)
        outer = row_of(inside, STRETCH, margins=(16, 40, 16, 16), spacing=None)
        column = column_of(None)
        outer.addLayout(column, 14)
        outer.addStretch(1)
        column.addWidget(self._label(_("Lowerscope"), "heading", PADDING))
        column.addSpacing(4)
        column.addWidget(
            self._label(
                _(
                    "See and steer how a PyTorch model becomes machine code: FX graph, Relax "
                    "module and TensorIR side by side, run and compared with torch."
                ),
                "quiet",
                PADDING,
            )
        )
        column.addSpacing(24)
        column.addLayout(self._open_row())
        column.addSpacing(32)
        lists = QGridLayout()
        lists.setHorizontalSpacing(32)
        lists.setColumnStretch(0, 5)
        lists.setColumnStretch(1, 2)
        lists.addLayout(self._samples(), 0, 0)
        self._recent = column_of(None, spacing=2)
        lists.addLayout(self._recent, 0, 1)
        column.addLayout(lists)
        column.addStretch(1)

    def show_recent(self, sources: Sequence[str]) -> None:
        """List the recent sources, the newest first."""
        while (item := self._recent.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self._recent.addWidget(self._label(_("Recent"), "title", PADDING))
        self._recent.addSpacing(8)
        if not sources:
            hint = self._label(_("Files that you open are listed here."), "quiet", PADDING)
            self._recent.addWidget(hint)
        for source in sources:
            row = self._row(source, *recent_words(source))
            row.clicked.connect(self._choose_again)
            self._recent.addWidget(row)
        self._recent.addStretch(1)

    def show_last(self, session: Path | None) -> None:
        """Offer to resume the last session, if there is one."""
        self._last.setVisible(session is not None)
        self._last.setProperty("session", "" if session is None else str(session))

    def _open_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        # Texts are aligned with those of the rows below, whose background is wider.
        row.setContentsMargins(PADDING, 0, 0, 0)
        row.setSpacing(12)
        button = QPushButton(_("Open a file…"), self._inside)
        button.setProperty("primary", True)
        button.clicked.connect(self.open_wanted)
        row.addWidget(button)
        self.tour = QPushButton(_("Take the tour"), self._inside)
        self.tour.setToolTip(_("Six steps in the real window, on a small model"))
        self.tour.clicked.connect(self.tour_wanted)
        row.addWidget(self.tour)
        self._last = QPushButton(_("Reopen the last session"), self._inside)
        self._last.clicked.connect(self._choose_last)
        self._last.hide()
        row.addWidget(self._last)
        hint = _("Drop a .py, .pt2, .onnx or .lowerscope file here")
        self.drop = DropField(hint, self._inside)
        self.drop.clicked.connect(self.open_wanted)
        row.addWidget(self.drop, 1)
        return row

    def _samples(self) -> QVBoxLayout:
        grid = QGridLayout()
        grid.setSpacing(8)
        # Their edge is visible, so they begin where the texts do.
        grid.setContentsMargins(PADDING, 0, 0, 0)
        self.cards = [SampleCard(each.name, each.description, self._inside) for each in samples()]
        for place, card in enumerate(self.cards):
            card.setProperty("source", f"sample:{card.name}")
            card.clicked.connect(self._choose)
            grid.addWidget(card, place // CARDS, place % CARDS)
        title = self._label(_("Samples"), "title", PADDING)
        return column_of(None, title, 8, grid, STRETCH, spacing=2)

    def show_pictures(self) -> None:
        """Show the pictures of the samples; called once the page is painted."""
        from PySide6.QtCore import Qt

        # Its buttons take the focus, also if the window was active before.
        if self.hasFocus():
            self.focusNextChild()
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        theme.notifier().changed.connect(self._show_pictures)
        self._show_pictures()

    def _show_pictures(self) -> None:
        for card in self.cards:
            card.show_picture(dark=theme.current().dark)

    def _row(self, source: str, title: str, description: str) -> LinkRow:
        row = LinkRow(title, description, self._inside)
        row.setProperty("source", source)
        return row

    def _label(self, text: str, role: str, indent: int = -1) -> Label:
        label = Label(text, self._inside, role=role, wraps=True)
        label.setIndent(indent)
        return label

    def _choose(self) -> None:
        self.chosen.emit(self.sender().property("source"))

    def _choose_last(self) -> None:
        self.last_wanted.emit(self._last.property("session"))

    def _choose_again(self) -> None:
        self.chosen_again.emit(self.sender().property("source"))


def recent_words(source: str) -> tuple[str, str]:
    """Return the name and the place of a recent source."""
    if source.startswith("sample:"):
        return source, ""
    path = Path(source)
    return path.name, str(path.parent)
