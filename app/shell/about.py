"""The About dialog: versions, licences, and the details for a bug report."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, qVersion
from PySide6.QtGui import QGuiApplication, QPixmap
from PySide6.QtWidgets import QDialogButtonBox, QGridLayout, QWidget

from lowerscope.app.kit import theme
from lowerscope.app.kit.dialogs import Dialog
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import column_of, row_of
from lowerscope.app.kit.plain_text import Label, PlainTextEdit
from lowerscope.app.kit.typefaces import CODE_PIXELS, code_font, ui_family
from lowerscope.app.shell.features import Features
from lowerscope.app.shell.preferences import Preferences, PreferenceStore
from lowerscope.core.files.sources import PREFIX
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.machines import usual_limit
from lowerscope.core.model.texts import _
from lowerscope.resources import ICONS

if TYPE_CHECKING:
    from lowerscope.app.engine.client import EngineClient


# --- Bug reports: versions, platform, settings, state and problems ---
#
# Nothing else of the user's is included: paths are reduced to their last component, and the model
# to its kind.

PARTS = ("lowerscope", "torch", "apache-tvm", "apache-tvm-ffi", "PySide6-Essentials")

MOST_DETAILS = 40
"""Number of trailing lines kept of a problem's details."""

_PATH = re.compile(
    r"(?<![\w.:/\\~])(?:~|[A-Za-z]:)?(?:[/\\][^/\\:\"'<>|\n]+)+[/\\]([^/\\\s:\"'<>|]+)"
)
"""Folders in a path may have spaces in their names."""


def versions() -> list[str]:
    """Return the versions of Lowerscope and its dependencies, a line each."""
    from importlib.metadata import version

    lines = [f"{name} {version(name)}" for name in PARTS]
    lines.append(f"Python {platform.python_version()}, Qt {qVersion()}")
    return lines


def details(store: PreferenceStore, screen: QWidget) -> str:
    """Return a bug report, as text to paste."""
    sections = (
        ("Versions", versions()),
        ("Platform", list(_platform(screen))),
        ("Settings", list(_settings(store.current()))),
        ("State", list(_state(store.features))),
        ("Problems", list(_problems(store.features)) or ["none"]),
    )
    return "\n".join(
        f"{title}\n" + "\n".join(f"  {line}" for line in lines) for title, lines in sections
    )


def without_paths(text: str) -> str:
    """Return a text with each absolute path in it reduced to its last component."""
    home = str(Path.home())
    if len(home) > 1:
        text = text.replace(home, "~")
    return _PATH.sub(r"…/\1", text)


def _platform(window: QWidget) -> Iterator[str]:
    yield platform.platform()
    yield f"{os.cpu_count()} processors, a worker has {bytes_text(usual_limit())} by default"
    screen = window.screen()
    size, ratio = screen.size(), window.devicePixelRatioF()
    shown = f"{size.width()}×{size.height()} at {ratio * 100:g} %"
    yield f"{QGuiApplication.platformName()}, screen {shown}, words in {ui_family()}"


def _settings(chosen: Preferences) -> Iterator[str]:
    yield f"colours {chosen.scheme} ({theme.current().name})"
    yield f"code {chosen.code_pixels or CODE_PIXELS:g} px, scaling {chosen.scale or 'system'}"
    yield f"asks before code runs: {chosen.asks_first}, watches files: {chosen.watching}"
    limit = bytes_text(chosen.memory_limit) if chosen.memory_limit else "usual"
    yield f"memory limit {limit}, values kept {bytes_text(chosen.keep)}"


def _state(features: Features) -> Iterator[str]:
    recipe = features.document.wanted
    yield f"{_child(features.processes.engine)}, {_child(features.processes.worker)}"
    if recipe is None:
        yield "nothing open"
        return
    spec = recipe.source.spec
    suffix = Path(spec).suffix.partition(":")[0]
    yield spec if spec.startswith(PREFIX) else f"a file {suffix or 'without a suffix'}"
    yield f"tracer {recipe.tracer}, translator {recipe.translator}, lowering {recipe.lowering}"
    yield f"steps {', '.join(step.name for step in recipe.steps) or 'none'}"
    where = "" if recipe.remote is None else ", on another machine"
    yield f"target {recipe.target}, threads {recipe.threads or 'all'}{where}"
    counts = len(recipe.overrides), len(recipe.extensions), len(recipe.schedules)
    yield "{} overrides, {} rule and library files, {} schedules".format(*counts)


def _child(client: EngineClient) -> str:
    return f"{client.role} {client.state}"


def _problems(features: Features) -> Iterator[str]:
    document, processes = features.document, features.processes
    failures = (processes.engine.failure, processes.worker.failure)
    for problem in (*document.problems, *(each for each in failures if each is not None)):
        yield without_paths(problem.line())
        for line in problem.details.splitlines()[-MOST_DETAILS:]:
            yield without_paths(f"  {line}")


SIZE = (640, 560)
ICON = 48


def show_about(store: PreferenceStore, parent: QWidget) -> None:
    """Show the About dialog."""
    dialog = AboutDialog(store, parent)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()


class AboutDialog(Dialog):
    """The program's name and the details, with a button that copies them."""

    def __init__(self, store: PreferenceStore, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(_("About Lowerscope"))
        icon = Label()
        ratio = self.devicePixelRatioF()
        picture = QPixmap(str(ICONS / "lowerscope.png")).scaledToHeight(
            round(ICON * ratio), Qt.TransformationMode.SmoothTransformation
        )
        picture.setDevicePixelRatio(ratio)
        icon.setPixmap(picture)
        name = Label("Lowerscope", role="heading")
        what = Label(_("A debugger for lowering, from PyTorch to machine code."))
        licence = Label(
            _("Apache-2.0. Inter and JetBrains Mono are under the SIL Open Font License."),
            role="quiet",
        )
        licence.setProperty("role", "quiet")
        self.text = PlainTextEdit(details(store, parent))
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setFont(code_font())
        self.text.setAccessibleName(_("Details for a bug report"))
        self.text.document().setDocumentMargin(8)
        self.said = Label(
            _("Paths are reduced to their last names. Check the text before you send it."),
            role="quiet",
            wraps=True,
        )
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.copy = buttons.addButton(_("Copy details"), QDialogButtonBox.ButtonRole.ActionRole)
        self.copy.clicked.connect(self._copy)
        self.copy.setDefault(True)
        buttons.rejected.connect(self.reject)
        head = QGridLayout()
        head.setHorizontalSpacing(16)
        head.setVerticalSpacing(2)
        head.addWidget(icon, 0, 0, 3, 1)
        for row, label in enumerate((name, what, licence)):
            head.addWidget(label, row, 1)
        head.setColumnStretch(1, 1)
        foot = row_of(None, (self.said, 1), buttons, spacing=None)
        column_of(self, head, (self.text, 1), foot, margins=(20, 20, 20, 12), spacing=12)
        offer_help(self, "window#a-report-of-a-problem")
        self.resize(*SIZE)
        self.copy.setFocus()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text.toPlainText())
        self.said.setText(_("Copied."))
