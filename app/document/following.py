"""Selection of the current node while stepping through the translation."""

from __future__ import annotations

from PySide6.QtCore import QObject

from lowerscope.app.document.document import Document


class Following(QObject):
    """Selects the node of each translation step, so that all panes mark its results."""

    def __init__(self, document: Document, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        document.on(("moment",), self._follow)

    def _follow(self) -> None:
        snapshot, moment = self._document.snapshot, self._document.moment
        if snapshot is None or moment is None or moment.section != "translate":
            return
        if 0 < moment.index <= len(snapshot.translation):
            self._document.select((snapshot.translation[moment.index - 1].node,))
