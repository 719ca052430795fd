"""Trust in code files: the user confirms one before it runs for the first time.

A file is identified by its path and its content. One that the user has approved is not asked about
again: on the command line, in the dialog, or by saving it while it was open. The children are sent
the table of files that may run, and reject all others: those changed since they were shown, and
imports that were not known beforehand. The window then shows the dialog for these.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QDialogButtonBox, QTabWidget, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.document.settings import Settings
from lowerscope.app.engine.children import Children
from lowerscope.app.kit.code.code_view import CodeView
from lowerscope.app.kit.dialogs import Dialog
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.plain_text import Label, literal
from lowerscope.core.files.approved import long_lines, readable_source
from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.paths import read_plain
from lowerscope.core.files.sessions import files_of
from lowerscope.core.files.sources import PREFIX, database_files, neighbours
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.texts import _, sentences


class Trusting(QObject):
    """Shows the dialog about a recipe's files, and stores those that may run.

    Args:
        confinement: Returns what code that runs may do, as a sentence.
    """

    declined = Signal()  # The user declined to run the files.

    def __init__(
        self,
        document: Document,
        children: Children,
        run: Callable[[], None],
        settings: Settings,
        confinement: Callable[[], str],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._document = document
        self._confinement = confinement
        self._run = run
        self._settings = settings
        self._window = window
        self._allowed: dict[str, str] = {}
        """Hashes of the files that this window may run."""
        self._table: dict[str, str] = {}
        self._asks_unseen = False
        self._publish()
        for client in (children.engine, children.worker):
            client.approved = self.approved
        children.unseen.connect(self._take_unseen)

    def ask(self, recipe: Recipe, go: Callable[[Recipe], object]) -> None:
        """Call `go` with a recipe, at once or when the user has approved its files, or never."""
        self._ask(partial(code_of, recipe), partial(go, recipe), self.declined.emit)

    def allow(self, recipe: Recipe) -> None:
        """Approve a recipe's files as they are: the user named them on the command line."""
        self._allow(_hashes(code_of(recipe)))

    def take_saved(self, paths: Iterable[str]) -> None:
        """Approve again those approved files that were saved while open."""
        self._allow(_hashes(path for path in paths if path in self._allowed))

    def approved(self) -> Mapping[str, str] | None:
        """Return the approved files with the hashes of their content; ``None`` for any."""
        return self._table if self._settings.asks_first else None

    def _ask(
        self,
        files: Callable[[], Iterable[str]],
        go: Callable[[], object],
        decline: Callable[[], object],
    ) -> None:
        known = self._settings.trusted()
        hashes = _hashes(files())
        unknown = [path for path, content in hashes.items() if known.get(path) != content]
        if not unknown or not self._settings.asks_first:
            self._allow(hashes)
            go()
            return

        changed = [path for path in unknown if path in known]
        dialog = RunCodeDialog(unknown, changed, self._confinement(), self._window)
        # Each dialog approves only what it shows, in case a second one opens.
        dialog.accepted.connect(partial(self._go, files, hashes | dialog.shown, go, decline))
        dialog.rejected.connect(decline)
        dialog.pop_up()

    def _go(
        self,
        files: Callable[[], Iterable[str]],
        hashes: dict[str, str],
        go: Callable[[], object],
        decline: Callable[[], object],
    ) -> None:
        if _hashes(files()) != hashes:
            # Written while being read: what would run is not what was shown.
            self._ask(files, go, decline)
            return
        # What was shown is approved, whether or not it can be opened afterwards.
        self._allow(hashes)
        go()

    def _allow(self, hashes: dict[str, str]) -> None:
        known = self._settings.trusted()
        if hashes.items() - known.items():
            self._settings.set_trusted(known | hashes)
        self._allowed |= hashes
        self._publish()

    def _publish(self) -> None:
        # A model may import its files by another path to their folder.
        real = {os.path.realpath(path): content for path, content in self._allowed.items()}
        self._table = self._settings.trusted() | real | self._allowed

    # Files that a child has rejected

    def _take_unseen(self, problem: Problem) -> None:
        # The request's own callback comes first.
        ask = partial(self._ask_unseen, problem.choices, running=self._document.running)
        QTimer.singleShot(0, self, ask)

    def _ask_unseen(self, paths: tuple[str, ...], *, running: bool) -> None:
        found = {path: content for path, content in _hashes(paths).items() if content}
        first = paths[0] if paths else ""
        if self._asks_unseen or first not in found or self._allowed.get(first) == found[first]:
            # In these cases the window cannot show what the child has read: the dialog says so.
            return
        if self._is_open(first):
            self.take_saved([first])
            self._read_again(running=running)
            return
        real = os.path.realpath(first)
        for path in [each for each in self._allowed if os.path.realpath(each) == real]:
            # Saving the file does not approve it while the dialog is open.
            del self._allowed[path]
        self._publish()
        self._asks_unseen = True
        again = partial(self._read_again, running=running)
        self._ask(lambda: found, again, self._decline_unseen)

    def _is_open(self, path: str) -> bool:
        """Return whether a change of a file counts as saved by the user; see `SourceWatch`."""
        recipe = self._document.recipe
        if recipe is None or path not in self._allowed or not self._settings.watching:
            return False
        return path in code_of(recipe)

    def _decline_unseen(self) -> None:
        self._asks_unseen = False
        self.declined.emit()

    def _read_again(self, *, running: bool) -> None:
        self._asks_unseen = False
        self._document.reload()
        if running:
            self._run()


def _hashes(paths: Iterable[str]) -> dict[str, str]:
    """Return the hashes of files, read anew: equal size and time do not prove equality."""
    hashes = Hashes()
    return {path: hashes.of(Path(path)) for path in paths}


def code_of(recipe: Recipe) -> tuple[str, ...]:
    """Return the files that run when a recipe is derived, without samples.

    These are the Python files that it names, those of their folders that these import, and the
    databases that its steps apply.
    """
    named = [
        path
        for name, path in files_of(recipe).items()
        if not name.startswith(PREFIX) and _is_python(path)
    ]
    imported = [str(each) for path in named for each in neighbours(Path(path))]
    found = (*named, *filter(_is_python, imported), *database_files(recipe))
    return tuple(dict.fromkeys(found))


def _is_python(path: str) -> bool:
    return Path(path).suffix.lower() == ".py"


# --- The dialog that confirms running a file, with its content ---

MOST = 1 << 20
"""Maximum characters shown of a file."""

MOST_LINES = 5
"""Maximum number of long lines that are listed."""


class RunCodeDialog(Dialog):
    """Code files, to be read before they run.

    Args:
        paths: The files.
        changed: Those of them that ran before with other content.
        confinement: What they may do, as a sentence.
    """

    def __init__(
        self,
        paths: Sequence[str],
        changed: Sequence[str],
        confinement: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        several = len(paths) > 1
        self.setWindowTitle(_("Run these files?") if several else _("Run this file?"))
        if several:
            text = _("Opening runs these files as programs: {names}.", names=_names(paths))
            again = _(
                "Since they were opened here, these have changed: {names}.", names=_names(changed)
            )
            first = _("They have not been opened here before.")
        else:
            text = _("Opening runs {name} as a program.", name=_names(paths))
            again = _("It has changed since it was opened here.")
            first = _("It has not been opened here before.")
        since = again if changed else first
        question = Label(sentences(text, confinement, since), wraps=True)
        # The SHA-256 of the content shown of each file, by its path; ``""`` if it cannot be read.
        self.shown: dict[str, str] = {}
        far: list[str] = []
        self.files = QTabWidget()
        self.files.setAccessibleName(_("Contents"))
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
            question.setText(sentences(question.text(), *far))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        words = _("Run them") if several else _("Run it")
        self.run = buttons.addButton(words, QDialogButtonBox.ButtonRole.AcceptRole)
        cancel = buttons.button(QDialogButtonBox.StandardButton.Cancel)
        cancel.setDefault(True)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column_of(self, question, (self.files, 1), buttons, margins=(16, 16, 16, 12), spacing=12)
        self.resize(760, 520)
        cancel.setFocus()
        offer_help(self, "sessions#opening-is-not-running")

    def _far(self, path: str, lines: Sequence[int]) -> str:
        """Return a warning about text to the right of the visible part."""
        numbers = _(", ").join(map(str, lines[:MOST_LINES]))
        return _(
            "Scroll right in {name}, which has long lines: {lines}.",
            name=Path(path).name,
            lines=numbers if len(lines) <= MOST_LINES else _(", ").join((numbers, "…")),
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
            more = _("The rest is too long to be shown: read it in an editor")
            text = f"# {more}\n\n{text[:MOST]}"
        return text


def _names(paths: Sequence[str]) -> str:
    return _(", ").join(Path(path).name for path in paths)
