"""Opening a source from the window: files, samples, and the dialogs involved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QMimeData, QObject
from PySide6.QtWidgets import QListWidget, QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit.dialogs import Dialog, LineQuestion, file_to_open
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import column_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.panes.sessions.trust import Trusting
from lowerscope.core.files.sessions import SUFFIX
from lowerscope.core.files.sources import (
    MODELS,
    SCRIPTED,
    is_scripted,
    parse_spec,
    with_absolute_paths,
)
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.problems import LowerscopeError, Problem
from lowerscope.core.model.recipe import (
    NATIVE,
    Recipe,
    Source,
    TracerName,
    from_json,
    with_source,
)
from lowerscope.core.model.schedule import with_unique_names
from lowerscope.core.model.texts import _

SUFFIXES = (*MODELS, *SCRIPTED, SUFFIX)


class Opening(QObject):
    """Opens sources, and shows the dialogs that resolve a problem with one.

    Args:
        ask_inputs: Shows the form for the inputs of a rejected recipe, with their names.
    """

    def __init__(
        self,
        document: Document,
        trusting: Trusting,
        ask_inputs: Callable[[Recipe, Sequence[str]], None],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._document = document
        self._trusting = trusting
        self._ask_inputs = ask_inputs
        self._window = window
        self._folder = ""
        document.on(("problems",), self.ask)

    def text_of(self, recipe: Recipe) -> str:
        """Return a recipe's source in the syntax of the command line."""
        spec, entry = recipe.source.spec, recipe.source.entry
        return f"{spec}:{entry}" if entry else spec

    def dropped_file(self, data: QMimeData) -> str:
        """Return the path of a dragged file that can be opened; empty otherwise."""
        paths = [url.toLocalFile() for url in data.urls() if url.isLocalFile()]
        return next(filter(_is_model, paths), "")

    def choose_file(self) -> str:
        """Select a file to open in a dialog; return its path, empty if cancelled."""
        suffixes = " ".join(f"*{suffix}" for suffix in SUFFIXES)
        kinds = _("Models and sessions ({kinds});;All files (*)", kinds=suffixes)
        path = file_to_open(self._window, _("Open a model or a session"), self._folder, kinds)
        if path:
            self._folder = str(Path(path).parent)
        return path

    def open_recent(self, text: str, saved: str) -> None:
        """Reopen a source with its saved recipe, `saved`."""
        try:
            recipe = from_json(saved)
        except UNREADABLE:
            # Saved by another version: only the source can be used.
            self.open_source(text)
            return
        recipe = msgspec.structs.replace(recipe, schedules=with_unique_names(recipe.schedules))
        # The file may have changed since: confirm again before it may run code.
        self._trusting.ask(with_source(recipe, trust=False), self._document.open)

    def open_source(self, text: str) -> None:
        """Open ``sample:NAME`` or ``FILE[:ENTRY]``; the lowering and the target stay."""
        try:
            spec, entry = parse_spec(text)
        except LowerscopeError as error:
            self._document.report(error.problem)
            return
        recipe = with_absolute_paths(Recipe(source=Source(spec=spec, entry=entry), target=NATIVE))
        current = self._document.recipe
        if current is not None:
            recipe = msgspec.structs.replace(
                recipe, lowering=current.lowering, target=current.target, threads=current.threads
            )
        self._trusting.ask(recipe, self._document.open)

    def trace_by(self, tracer: TracerName) -> None:
        """Retry a rejected source with another tracer."""
        refused = self._document.rejected
        if refused is not None:
            self._document.retry(msgspec.structs.replace(refused, tracer=tracer))

    def translate_by_own(self) -> None:
        """Retry with Lowerscope's translator a source that TVM's importer rejected."""
        refused = self._document.rejected
        if refused is not None:
            self._document.retry(msgspec.structs.replace(refused, translator="lowerscope"))

    def trust(self) -> None:
        """Open a rejected source although it can run code."""
        refused = self._document.rejected
        if refused is not None:
            self._document.retry(with_source(refused, trust=True))

    def ask(self) -> None:
        """Show the dialog that resolves a problem, if any: for entry, arguments or inputs."""
        refused = self._document.rejected
        problems = self._document.problems
        if refused is None or not problems:
            return
        problem: Problem = problems[0]
        if problem.code == "choose-entry":
            self._ask_entry(refused, problem.choices)
        elif problem.code == "give-args":
            self._ask_arguments(refused, problem)
        elif problem.code == "give-inputs":
            self._ask_inputs(refused, problem.choices)

    def _ask_entry(self, refused: Recipe, choices: Sequence[str]) -> None:
        dialog = EntryDialog(Path(refused.source.spec).name, choices, self._window)
        dialog.accepted.connect(self._take_entry)
        dialog.pop_up()

    def _ask_arguments(self, refused: Recipe, problem: Problem) -> None:
        text = _(
            "{name}: {what}. Give them as JSON.",
            name=Path(refused.source.spec).name,
            what=problem.what,
        )
        dialog = LineQuestion(
            _("Arguments"),
            text,
            _("Open"),
            problem.choices[0] if problem.choices else "{}",
            self._window,
        )
        offer_help(dialog, "sources")
        dialog.accepted.connect(self._take_arguments)
        dialog.open()

    def _take_arguments(self) -> None:
        dialog, refused = self.sender(), self._document.rejected
        if refused is not None and isinstance(dialog, LineQuestion):
            self._document.retry(with_source(refused, args=dialog.answer()))

    def _take_entry(self) -> None:
        dialog, refused = self.sender(), self._document.rejected
        if refused is not None and isinstance(dialog, EntryDialog):
            self._document.retry(with_source(refused, entry=dialog.choice()))


# --- The dialog that selects the class, instance or function of a file to open ---


class EntryDialog(Dialog):
    """A list of candidates, selected with Enter or a double click."""

    def __init__(self, file: str, choices: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(_("Choose what to open"))
        self.list = QListWidget()
        self.list.setAccessibleName(_("Candidates"))
        # The style determines the height of rows once it has been applied to the list.
        self.list.ensurePolished()
        self.list.addItems(list(choices))
        self.list.setCurrentRow(0)
        self.list.itemActivated.connect(self.accept)
        question = Label(_("{file} has several models.", file=file), wraps=True)
        parts = (question, (self.list, 1), self.answers(_("Open")))
        column_of(self, *parts, margins=(16, 16, 16, 12), spacing=12)
        self.resize(380, 280)
        self.list.setFocus()
        offer_help(self, "sources")

    def choice(self) -> str:
        """Return the selected candidate."""
        item = self.list.currentItem()
        return "" if item is None else item.text()


def _is_model(path: str) -> bool:
    """Return whether a file can be opened: tensors and weights have a suffix of models as well."""
    return path.endswith(SUFFIXES) and (not path.endswith(SCRIPTED) or is_scripted(Path(path)))
