"""Selection of the current node while stepping through the translation."""

from __future__ import annotations

from PySide6.QtCore import QObject

from lowerscope.app.workspace import Workspace


class Following(QObject):
    """Selects the node of each translation step, so that all panes mark its results."""

    def __init__(self, workspace: Workspace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        workspace.stepping.moment_changed.connect(self._follow)

    def _follow(self) -> None:
        snapshot, moment = self._workspace.snapshot, self._workspace.stepping.moment
        if snapshot is None or moment is None or moment.clock != "translate":
            return
        if 0 < moment.index <= len(snapshot.translation):
            self._workspace.select((snapshot.translation[moment.index - 1].node,))
