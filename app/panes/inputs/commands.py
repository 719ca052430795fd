"""Commands for the values of inputs, and files dropped on the window."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QMimeData, QObject, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QSpinBox, QWidget

from lowerscope.app.kit.commands import Command
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.panes.sessions.opening import with_source
from lowerscope.core.files.sources import MEMORY, WEIGHTS, is_file

if TYPE_CHECKING:
    from lowerscope.app.document.document import Document
    from lowerscope.app.panes.inputs.inputs_page import InputsPage
    from lowerscope.app.shell.window import MainWindow


# --- Commands for the file that the open model's parameters are loaded from ---


def loading_parameters(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu Lowering."""
    menu, tr = window.tr("&Lowering"), window.tr
    return (
        Command(
            "load-parameters",
            menu,
            tr("&Load parameters from a file…"),
            partial(choose_parameters, window),
            enabled=partial(takes_parameters, window.document),
            separated=True,
        ),
        Command(
            "own-parameters",
            menu,
            tr("The model'&s own parameters"),
            partial(take_parameters, window, ""),
            enabled=lambda: (
                (recipe := window.document.wanted) is not None and bool(recipe.source.params)
            ),
        ),
    )


def takes_parameters(document: Document) -> bool:
    """Return whether the open model's parameters can be loaded from a file."""
    recipe = document.wanted
    spec = "" if recipe is None else recipe.source.spec
    # An exported program has its own parameters, and a model in memory keeps its own.
    takes = not spec.endswith(".pt2") and not spec.startswith(MEMORY)
    return takes and document.snapshot is not None


def choose_parameters(window: MainWindow) -> None:
    """Select a file in a dialog, and load the model's parameters from it."""
    tr = window.tr
    kinds = " ".join(f"*{suffix}" for suffix in WEIGHTS)
    path, _ = QFileDialog.getOpenFileName(
        window,
        tr("Load parameters"),
        _folder(window.document),
        tr("Parameters ({0});;All files (*)").format(kinds),
    )
    if path:
        take_parameters(window, path)


def take_parameters(window: MainWindow, path: str) -> None:
    """Load the parameters from a file, or from the model itself, as one undo step."""
    recipe = window.document.wanted
    if recipe is not None:
        window.document.change(with_source(recipe, params=path))


def _folder(document: Document) -> str:
    """Return the initial folder of the dialog: that of the current file, or of the model."""
    source = None if document.recipe is None else document.recipe.source
    if source is None or not (source.params or is_file(source.spec)):
        return ""
    return str(Path(source.params or source.spec).parent)


def changing_inputs(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu Lowering: they stand below the form for inputs."""
    menu, tr = window.tr("&Lowering"), window.tr

    def shown() -> InputsPage:
        window.show_page("inputs")
        return window.panes.inputs

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
        return bool(window.features.inputs.records)

    return (
        Command(
            "input-page", menu, tr("Value of the input"), shown, "Ctrl+Shift+I", enabled=has_inputs
        ),
        Command(
            "input-file", menu, tr("Input f&rom a file…"), partial(one, "file"), enabled=has_inputs
        ),
        Command(
            "input-random",
            menu,
            tr("Other random &values for the input"),
            partial(one, "random"),
            enabled=has_inputs,
        ),
        Command(
            "input-folder",
            menu,
            tr("Run a fol&der of inputs…"),
            partial(set_of, "folder"),
            enabled=has_inputs,
        ),
        Command(
            "input-archive",
            menu,
            tr("Run a set of inputs in an .np&z…"),
            partial(set_of, "archive"),
            enabled=has_inputs,
        ),
    )


class Dropping(QObject):
    """Handles files dropped on the window: a model, an input, a set, or parameters.

    Any other file is opened as a model all the same, which reports what it is.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    def takes(self, data: QMimeData) -> bool:
        """Return whether a file is being dragged."""
        return bool(_local_file(data))

    def take(self, data: QMimeData) -> bool:
        """Handle a dropped file; return whether it is one."""
        window, path = self._window, _local_file(data)
        model, value = window.opening.dropped_file(data), window.features.inputs.droppable(data)
        if value and not model:
            window.show_page("inputs")
            window.panes.inputs.drop(value)
        elif (
            not model and Path(path).suffix.lower() in WEIGHTS and takes_parameters(window.document)
        ):
            take_parameters(window, path)
        elif path:
            window.open_source(model or path)
        return bool(path)


def _local_file(data: QMimeData) -> str:
    return next((url.toLocalFile() for url in data.urls() if url.isLocalFile()), "")


# --- Selection of a slice of a tensor: an index in each dimension before the last two ---

_WIDTH = 92


class SlicesRow(QWidget):
    """A field for each of these dimensions."""

    changed = Signal()  # The user selected another slice.

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = Label(self.tr("slice"))
        self.title.setProperty("role", "quiet")
        self.fields: list[QSpinBox] = []
        self._shape: tuple[int, ...] = ()
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(4)
        self._row.addWidget(self.title)
        self.hide()

    def set_shape(self, shape: Sequence[int]) -> None:
        """Set the shape of another tensor, and select its first slice."""
        if tuple(shape) == self._shape:
            return
        self._shape = tuple(shape)
        for field in self.fields:
            self._row.removeWidget(field)
            field.hide()
            field.deleteLater()
        self.fields = [self._field(place, extent) for place, extent in enumerate(shape[:-2])]
        for field, extent in zip(self.fields, shape[:-2], strict=True):
            self._row.addWidget(field)
            # A dimension of extent 1 offers no choice.
            field.setVisible(extent > 1)
        self.setVisible(any(extent > 1 for extent in shape[:-2]))

    def index(self) -> tuple[int, ...]:
        """The index of the slice shown."""
        return tuple(field.value() for field in self.fields)

    def set_index(self, index: Sequence[int]) -> None:
        """Select another slice, without a signal."""
        for field, value in zip(self.fields, index, strict=False):
            field.blockSignals(True)
            field.setValue(value)
            field.blockSignals(False)

    def _field(self, place: int, extent: int) -> QSpinBox:
        field = QSpinBox()
        field.setRange(0, max(0, extent - 1))
        field.setWrapping(True)
        field.setSuffix(self.tr(" of {0}").format(extent))
        field.setFixedWidth(_WIDTH)
        field.setKeyboardTracking(False)
        field.setAccessibleName(self.tr("Index in dimension {0}").format(place))
        field.setToolTip(self.tr("Index in dimension {0}, of {1}").format(place, extent))
        field.valueChanged.connect(self.changed)
        return field
