"""The dialog that confirms running a file, with its content."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtWidgets import QDialogButtonBox, QTabWidget, QVBoxLayout, QWidget

from lowerscope.app.views.help_key import offer_help
from lowerscope.app.widgets.code.view import CodeView
from lowerscope.app.widgets.dialog import Dialog
from lowerscope.app.widgets.plain_text import Label, literal
from lowerscope.core.plain_files import read_plain
from lowerscope.core.sources.approved_files import long_lines, readable_source

MOST = 1 << 20
"""Maximum characters shown of a file."""

MOST_LINES = 5
"""Maximum number of long lines that are listed."""


class RunCodeDialog(Dialog):
    """Code files, to be read before they run.

    Parameters
    ----------
    paths
        The files.
    changed
        Those of them that ran before with other content.

    Attributes
    ----------
    shown
        The SHA-256 of the content shown of each file, by its path; ``""`` if it cannot be read.
    """

    def __init__(
        self, paths: Sequence[str], changed: Sequence[str], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        several = len(paths) > 1
        self.setWindowTitle(self.tr("Run these files?") if several else self.tr("Run this file?"))
        if several:
            text = self.tr("Opening runs these files as programs, with all that you may do: {0}.")
            again = self.tr("Since they were opened here, these have changed: {0}.")
            first = self.tr("They have not been opened here before.")
        else:
            text = self.tr("Opening runs {0} as a program, with all that you may do.")
            again = self.tr("It has changed since it was opened here.")
            first = self.tr("It has not been opened here before.")
        since = again.format(_names(changed)) if changed else first
        question = Label(f"{text.format(_names(paths))} {since}")
        question.setWordWrap(True)
        self.shown: dict[str, str] = {}
        far: list[str] = []
        self.files = QTabWidget()
        self.files.setAccessibleName(self.tr("What stands in it"))
        self.files.setDocumentMode(True)
        for path in paths:
            view = CodeView(Path(path).name)
            language = "json" if path.endswith(".json") else "python"
            text = self._text(path)
            view.set_text(text, language)
            if language == "python" and (long := long_lines(text)):
                far.append(self._far(path, long))
            self.files.addTab(view, literal(Path(path).name))
            self.files.setTabToolTip(self.files.count() - 1, path)
        if far:
            question.setText(f"{question.text()} {' '.join(far)}")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        words = self.tr("Run them") if several else self.tr("Run it")
        self.run = buttons.addButton(words, QDialogButtonBox.ButtonRole.AcceptRole)
        self.run.setAutoDefault(False)
        cancel = buttons.button(QDialogButtonBox.StandardButton.Cancel)
        cancel.setDefault(True)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 12)
        column.setSpacing(12)
        column.addWidget(question)
        column.addWidget(self.files, 1)
        column.addWidget(buttons)
        self.resize(760, 520)
        cancel.setFocus()
        offer_help(self, "sessions#opening-is-not-running")

    def _far(self, path: str, lines: Sequence[int]) -> str:
        """Return a warning about text to the right of the visible part."""
        text = self.tr("Scroll to the right in {0}, where lines are long: {1}.")
        numbers = ", ".join(map(str, lines[:MOST_LINES]))
        return text.format(
            Path(path).name, numbers if len(lines) <= MOST_LINES else f"{numbers}, …"
        )

    def _text(self, path: str) -> str:
        try:
            content = read_plain(path)
        except (OSError, ValueError) as error:
            self.shown[path] = ""
            return f"# {error}"
        self.shown[path] = hashlib.sha256(content).hexdigest()
        text = readable_source(content)
        if len(text) > MOST:
            # A truncated file must not look complete.
            more = self.tr("What follows is too long to be shown: look at it in an editor")
            text = f"# {more}\n\n{text[:MOST]}"
        return text


def _names(paths: Sequence[str]) -> str:
    return ", ".join(Path(path).name for path in paths)
