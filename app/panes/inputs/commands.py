"""Commands for the values of inputs, and files dropped on the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QMimeData, QObject
from PySide6.QtWidgets import QWidget

from lowerscope.app.document.document import Document
from lowerscope.app.kit.commands import Command, Host, available
from lowerscope.app.kit.dialogs import file_to_open
from lowerscope.app.panes.inputs.model import Inputs
from lowerscope.core.files.sources import MEMORY, MODELS, SCRIPTED, WEIGHTS, is_file
from lowerscope.core.model.recipe import Recipe, Source, with_source
from lowerscope.core.model.texts import _

if TYPE_CHECKING:
    from lowerscope.app.panes.inputs.inputs_dialog import InputsDialog
    from lowerscope.app.panes.inputs.inputs_page import InputsPage


class InputsForm(QObject):
    """Shows the form for the inputs, and applies it; it closes once the model is traced with it."""

    def __init__(self, document: Document, window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._window = window
        self._dialog: InputsDialog | None = None
        self._sent: Recipe | None = None  # What the open form waits for.
        self._tried: Recipe | None = None  # What it shows as wrong.
        self._source: Source | None = None  # What it is for.
        document.on(("recipe", "pending", "problems"), self._follow)

    def edit(self) -> None:
        """Show the form for the inputs of the open model, or of the rejected one."""
        recipe, snapshot = self._document.recipe, self._document.snapshot
        refused, names = self._document.rejected, self._missing()
        if refused is not None and names:
            self.ask(refused, names)
        elif recipe is not None and snapshot is not None:
            self._show(recipe, [record.name for record in snapshot.model.inputs], "")

    def ask(self, refused: Recipe, names: Sequence[str]) -> None:
        """Show the form for the inputs of a rejected recipe, and retry with them."""
        if self._dialog is None:
            file = Path(refused.source.spec).name
            fails = self._document.problems[0].code == "change-inputs"
            question = (
                _("The model fails on the inputs of {file}: give others.", file=file)
                if fails
                else _("{file} does not describe its inputs.", file=file)
            )
            self._show(refused, names, "" if refused.inputs else question)

    def can_edit(self) -> bool:
        """Return whether there is a model with inputs."""
        return self._document.is_open() or bool(self._missing())

    def _missing(self) -> Sequence[str]:
        """Return the inputs that the rejected recipe lacks, or that it was given."""
        refused, problems = self._document.rejected, self._document.problems
        if refused is None or not problems:
            return ()
        if problems[0].code in ("give-inputs", "change-inputs"):
            return problems[0].choices
        return () if problems[0].code else [each.name for each in refused.inputs if each.name]

    def _show(self, recipe: Recipe, names: Sequence[str], question: str) -> None:
        from lowerscope.app.panes.inputs.inputs_dialog import InputsDialog

        snapshot = self._document.snapshot
        is_shown = self._document.rejected != recipe and snapshot is not None
        known = snapshot.model.inputs if is_shown and snapshot is not None else ()
        self._source, self._sent, self._tried = recipe.source, None, None
        self._dialog = dialog = InputsDialog(
            names,
            known,
            recipe.inputs,
            recipe.seed,
            question,
            parent=self._window,
            dimensions=recipe.dimensions,
        )
        dialog.filled_in.connect(self._send)
        dialog.finished.connect(self._forget)
        dialog.pop_up()

    def _send(self) -> None:
        dialog, document = self._dialog, self._document
        refused, wanted = document.rejected, document.wanted
        base = refused if refused is not None and refused.source == self._source else wanted
        if dialog is None or base is None:
            return
        if base.source != self._source:
            # The window may open another model while the form is open.
            text = _("Another model is open now; its inputs are unchanged.")
            document.notify(text, "wrong")
            dialog.reject()
            return
        self._sent = sent = msgspec.structs.replace(
            base,
            inputs=dialog.specs(),
            dimensions=dialog.dimensions(),
            seed=dialog.chosen_seed(),
        )
        if base is refused:
            document.retry(sent)
        else:
            document.change(sent)
        self._follow()

    def _follow(self) -> None:
        """Close the form once the model is traced, or show why it is not."""
        document, dialog, sent = self._document, self._dialog, self._sent
        if dialog is None or sent is None or document.is_changing:
            return
        self._sent = None
        refused = document.rejected
        if refused != sent or not document.problems:
            dialog.accept()
        elif document.problems[0].code in ("", "give-inputs", "change-inputs"):
            self._tried = sent
            dialog.show_problem(document.problems[0])
        else:
            # It has a remedy of its own.
            dialog.reject()

    def _forget(self) -> None:
        tried, shown = self._tried, self._document.recipe
        is_left = tried is not None and self._document.rejected == tried
        if is_left and shown is not None and shown.source == self._source:
            # The model is shown as it was: nothing is wrong with that.
            self._document.clear_problems()
        self._dialog = self._sent = self._tried = None


# --- Commands for the file that the open model's parameters are loaded from ---


def loading_parameters(host: Host, document: Document) -> tuple[Command, ...]:
    return (
        Command(
            "load-parameters",
            _("&Load parameters from a file…"),
            partial(choose_parameters, host, document),
            enabled=partial(takes_parameters, document),
        ),
        Command(
            "own-parameters",
            _("Restore the model'&s own parameters"),
            partial(take_parameters, document, ""),
            enabled=lambda: (recipe := document.wanted) is not None and bool(recipe.source.params),
        ),
    )


def takes_parameters(document: Document) -> bool:
    """Return whether the open model's parameters can be loaded from a file."""
    recipe = document.wanted
    spec = "" if recipe is None else recipe.source.spec
    # Another file has its own parameters, and a model in memory keeps its own.
    takes = not spec.endswith((*MODELS[1:], *SCRIPTED)) and not spec.startswith(MEMORY)
    return takes and document.snapshot is not None


def choose_parameters(host: Host, document: Document) -> None:
    """Select a file in a dialog, and load the model's parameters from it."""
    suffixes = " ".join(f"*{suffix}" for suffix in WEIGHTS)
    kinds = _("Parameters ({kinds});;All files (*)", kinds=suffixes)
    if path := file_to_open(host.widget, _("Load parameters"), _folder(document), kinds):
        take_parameters(document, path)


def take_parameters(document: Document, path: str) -> None:
    """Load the parameters from a file, or from the model itself, as one undo step."""
    document.change_by(partial(with_source, params=path))


def _folder(document: Document) -> str:
    """Return the initial folder of the dialog: that of the current file, or of the model."""
    source = None if document.recipe is None else document.recipe.source
    if source is None or not (source.params or is_file(source.spec)):
        return ""
    return str(Path(source.params or source.spec).parent)


def changing_inputs(host: Host, inputs: Inputs) -> tuple[Command, ...]:
    """Return the commands: they stand below the form for inputs."""

    def shown() -> InputsPage:
        from lowerscope.app.panes.inputs.inputs_page import InputsPage

        host.show_page("inputs")
        return host.view(InputsPage)

    def one(what: str) -> None:
        page = shown()
        page.show_one()
        button = {"file": page.one.file, "random": page.one.random}[what]
        button.click()

    def set_of(what: str) -> None:
        page = shown()
        page.show_set()
        {"folder": page.sets.choose_folder, "archive": page.sets.choose_file}[what]()

    def has_inputs() -> bool:
        return bool(inputs.records)

    return (
        *available(
            has_inputs,
            Command("input-page", _("Show the inputs"), shown, "Ctrl+Shift+I"),
            Command("input-file", _("Input f&rom a file…"), partial(one, "file")),
            Command("input-random", _("New random &values for the input"), partial(one, "random")),
            Command("input-folder", _("Run a fol&der of inputs…"), partial(set_of, "folder")),
            Command(
                "input-archive", _("Run a set of inputs in an .np&z…"), partial(set_of, "archive")
            ),
        ),
    )


class Dropping(QObject):
    """Handles files dropped on the window: a model, an input, a set, or parameters.

    Any other file is opened as a model all the same, which reports what it is.

    Args:
        model_in: Returns the path of a dragged model or session; empty for another file.
        open_source: Opens a file.
    """

    def __init__(
        self,
        host: Host,
        document: Document,
        inputs: Inputs,
        model_in: Callable[[QMimeData], str],
        open_source: Callable[[str], None],
    ) -> None:
        super().__init__(host.widget)
        self._host = host
        self._document = document
        self._inputs = inputs
        self._model_in = model_in
        self._open_source = open_source

    def takes(self, data: QMimeData) -> bool:
        """Return whether a file is being dragged."""
        return bool(_local_file(data))

    def take(self, data: QMimeData) -> bool:
        """Handle a dropped file; return whether it is one."""
        document, path = self._document, _local_file(data)
        model, value = self._model_in(data), self._inputs.droppable(data)
        if value and not model:
            from lowerscope.app.panes.inputs.inputs_page import InputsPage

            self._host.show_page("inputs")
            self._host.view(InputsPage).drop(value)
        elif not model and Path(path).suffix.lower() in WEIGHTS and takes_parameters(document):
            take_parameters(document, path)
        elif path:
            self._open_source(model or path)
        return bool(path)


def _local_file(data: QMimeData) -> str:
    return next((url.toLocalFile() for url in data.urls() if url.isLocalFile()), "")
