"""The form of a primitive: its fields, its error, and the buttons."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from lowerscope.app.document.document import Document
from lowerscope.app.views.schedule_fields import Editor, editor_of, follow_selection
from lowerscope.app.widgets.plain_text import Label
from lowerscope.app.workbench.scheduling import Scheduling
from lowerscope.app.workbench.trying import Draft
from lowerscope.core.schedules import Argument

ROOMY = 240
"""Height from which the description of a primitive is shown above its fields."""

ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class ScheduleForm(QWidget):
    """The form of the draft, previewed while it is filled in."""

    def __init__(
        self, document: Document, scheduling: Scheduling, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._scheduling = scheduling
        self._trying = scheduling.trying
        self._shown: tuple[str, str] | None = None
        self.editors: dict[str, Editor] = {}
        self.back = QPushButton("‹")
        self.back.setAccessibleName(self.tr("Back to the moves"))
        self.back.setToolTip(self.tr("Back to the moves (Esc)"))
        self.back.setFixedWidth(26)
        self.back.setStyleSheet("padding: 0px")
        self.title = Label()
        self.title.setProperty("role", "title")
        self.about = Label()
        self.about.setProperty("role", "quiet")
        self.about.setWordWrap(True)
        self.state = Label()
        self.state.setWordWrap(True)
        self.apply = QPushButton(self.tr("Apply"))
        self.apply.setProperty("primary", True)
        self.force = QPushButton(self.tr("Apply anyway"))
        self.keep = QPushButton(self.tr("Keep as a draft"))
        self.keep.setToolTip(
            self.tr("Put it into the history as a step that is still to be mended")
        )
        self._rows = QWidget()
        self._form = QFormLayout(self._rows)
        self._form.setContentsMargins(0, 4, 6, 4)
        self._form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        self._form.setHorizontalSpacing(10)
        self._form.setVerticalSpacing(6)
        self._lay_out()
        for button in (self.apply, self.force, self.keep):
            button.installEventFilter(self)
        self.back.clicked.connect(self._trying.cancel_draft)
        self.apply.clicked.connect(self._apply)
        self.keep.clicked.connect(self._apply)
        self.force.clicked.connect(self._force)
        self._trying.draft_changed.connect(self._show)
        self._trying.preview_changed.connect(self._show_state)
        document.on(("selection", "snapshot"), self._follow_selection)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(6)
        head.addWidget(self.back)
        head.addWidget(self.title, 1)
        area = QScrollArea()
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidget(self._rows)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._rows.setProperty("ground", "panel")
        area.viewport().setProperty("ground", "panel")
        buttons = QHBoxLayout()
        buttons.setSpacing(6)
        for button in (self.apply, self.force, self.keep):
            buttons.addWidget(button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 6, 8, 6)
        column.setSpacing(4)
        column.addLayout(head)
        column.addWidget(self.about)
        column.addWidget(area, 1)
        column.addWidget(self.state)
        column.addLayout(buttons)

    def _show(self) -> None:
        draft = self._trying.draft
        shown = None if draft is None else (draft.move.name, draft.primitive.id)
        if shown != self._shown:
            self._shown = shown
            self._fill(draft)
        self._show_state()

    def _fill(self, draft: Draft | None) -> None:
        if self._rows.isAncestorOf(QApplication.focusWidget() or self):
            # Keep the focus in the form when the focused row is removed.
            self.back.setFocus()
        while self._form.rowCount():
            self._form.removeRow(0)
        self.editors = {}
        if draft is None:
            return
        move = draft.move
        self.title.setText(move.name)
        self.about.setText(move.help or move.title)
        self.title.setToolTip(self.about.text())
        self.apply.setText(self.tr("Change") if draft.edits else self.tr("Apply"))
        for field in move.fields:
            editor = editor_of(field, self._scheduling)
            editor.set_value(draft.primitive.arguments.get(field.name, field.default))
            label = Label("" if field.kind == "flag" else field.label)
            label.setToolTip(field.help)
            label.setBuddy(editor)
            self._form.addRow(label, editor)
            self.editors[field.name] = editor
            editor.edited.connect(self._edit)
            for line in editor.findChildren(QLineEdit):
                line.installEventFilter(self)
        self._focus_first()

    def _focus_first(self) -> None:
        for editor in self.editors.values():
            line = next(iter(editor.findChildren(QLineEdit)), None)
            if line is not None:
                line.setFocus()
                line.selectAll()
                return
        self.apply.setFocus()

    def _edit(self) -> None:
        draft = self._trying.draft
        if draft is None:
            return
        # Connect to added fields as well.
        for editor in self.editors.values():
            for line in editor.findChildren(QLineEdit):
                line.installEventFilter(self)
        arguments: dict[str, Argument] = dict(draft.primitive.arguments)
        wrong = ""
        for name, editor in self.editors.items():
            wrong = wrong or editor.problem()
            value = editor.value()
            if value is None and editor.field.optional:
                arguments.pop(name, None)
            else:
                arguments[name] = value
        self._trying.fill_in(arguments, wrong)

    def _show_state(self) -> None:
        draft, preview = self._trying.draft, self._trying.preview
        if draft is None:
            return
        error = None if preview is None else preview.error
        text, role = "", "quiet"
        if draft.wrong:
            text, role = f"✕ {draft.wrong}", "wrong"
        elif error is not None:
            mark = "⚠" if error.unsafe else "✕"
            text, role = f"{mark} {error.message}", "wrong"
        elif preview is not None and preview.record is not None:
            text, role = self.tr("✓ it can be applied"), "right"
        elif preview is not None:
            text = self.tr("trying…")
        self.state.setText(text)
        self.state.setProperty("role", role)
        self.state.style().polish(self.state)
        unsafe = error is not None and error.unsafe
        self.apply.setEnabled(not draft.wrong and error is None)
        self.force.setVisible(unsafe)
        self.keep.setVisible(error is not None and not unsafe and not draft.wrong)

    def _follow_selection(self) -> None:
        if self._trying.draft is not None:
            for editor in self.editors.values():
                follow_selection(editor)

    def _apply(self) -> None:
        self._trying.apply_draft()

    def _force(self) -> None:
        self._trying.apply_draft(forced=True)

    # Qt overrides

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # It is also the tool tip of the title.
        self.about.setVisible(self.height() >= ROOMY)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._trying.cancel_draft()
        elif event.key() in ENTER and self.apply.isEnabled():
            self._apply()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.MouseButtonDblClick and isinstance(watched, QPushButton):
            # The second click of a double click on the widget that the form replaced.
            return True
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in ENTER and self.apply.isEnabled():
                self._apply()
                return True
            if event.key() == Qt.Key.Key_Escape:
                self._trying.cancel_draft()
                return True
        return super().eventFilter(watched, event)
