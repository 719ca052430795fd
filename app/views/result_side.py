"""What a run was given and what it says: the input's picture, and the prediction of both sides."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from lowerscope.app import theme
from lowerscope.app.views.formats import shape_text
from lowerscope.app.widgets.picture_view import PictureView
from lowerscope.app.workspace import Workspace
from lowerscope.core.run_records import RunRecord

WIDTH, PICTURE_HEIGHT = 164, 152


class ResultSide(QWidget):
    """The strip beside the outputs; hidden where no input is a picture."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self.picture = PictureView(self.tr("Input picture"))
        self.picture.setFixedHeight(PICTURE_HEIGHT)
        self.prediction = QLabel()
        self.prediction.setTextFormat(Qt.TextFormat.RichText)
        self.setFixedWidth(WIDTH)
        side = QVBoxLayout(self)
        side.setContentsMargins(12, 4, 12, 4)
        side.setSpacing(4)
        side.addWidget(self.picture)
        side.addWidget(self.prediction)
        side.addStretch(1)
        workspace.snapshot_changed.connect(self._show_input)
        workspace.run_changed.connect(self._show_run)
        theme.notifier().changed.connect(self._show_run)
        self._show_input()
        self._show_run()

    def _show_input(self) -> None:
        snapshot = self._workspace.snapshot
        shown = next(
            (each for each in snapshot.model.inputs if each.picture is not None)
            if snapshot is not None
            else iter(()),
            None,
        )
        self.setVisible(shown is not None)
        if shown is not None and shown.picture is not None:
            picture = shown.picture
            caption = f"{shown.name} · {shape_text(shown.shape)}"
            self.picture.set_picture(
                picture.pixels, picture.width, picture.height, picture.channels, caption
            )

    def _show_run(self) -> None:
        record = self._workspace.run_record
        found = record is not None and record.prediction is not None
        self.prediction.setVisible(found)
        self.prediction.setText(_prediction(record) if record is not None and found else "")


def _prediction(record: RunRecord) -> str:
    assert record.prediction is not None
    quiet = theme.current().quiet
    rows = [("TVM", record.prediction.tvm), (record.reference, record.prediction.torch)]
    return "<br>".join(
        f'<span style="color:{quiet}">{side}</span>&nbsp; <b>{name}</b>'
        for side, name in rows
        if name
    )
