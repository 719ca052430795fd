"""The settings dialog: all preferences, on one page."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QLineEdit, QPushButton, QWidget

from lowerscope.app.document.settings import SCALES
from lowerscope.app.kit.buttons import push_button
from lowerscope.app.kit.dialogs import Dialog, mark_wrong
from lowerscope.app.kit.help_key import offer_help
from lowerscope.app.kit.layouts import STRETCH, column_of
from lowerscope.app.kit.plain_text import Label
from lowerscope.app.kit.typefaces import CODE_PIXELS, CODE_SIZES, ui_font
from lowerscope.app.shell.desktop_commands import ask_to_clear
from lowerscope.app.shell.preferences import Preferences, PreferenceStore
from lowerscope.core.files.cache import cache_size
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.machines import parse_bytes, parse_limit, usual_limit
from lowerscope.core.model.texts import _, _n

FIELD_WIDTH = 200
BESIDE_BOX = 22
"""Indentation of a check box's label."""
HINT_WIDTH = 200
WIDTH = 690


def open_settings(store: PreferenceStore, parent: QWidget, field: str = "") -> None:
    """Open the dialog over the window, with the focus on a field if one is named."""
    dialog = SettingsDialog(store, parent)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()
    if field:
        dialog.fields[field].setFocus(Qt.FocusReason.ShortcutFocusReason)


class SettingsDialog(Dialog):
    """Sections of fields, each with a line of explanation; *OK* applies them."""

    def __init__(self, store: PreferenceStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self.setWindowTitle(_("Settings"))
        # The fields, by name of the attribute of `Preferences`.
        self.fields: dict[str, QWidget] = {}
        self._amounts: list[tuple[QLineEdit, Callable[[str], int]]] = []
        self._before = store.current()
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnMinimumWidth(0, 120)
        self._grid.setColumnStretch(2, 1)
        self._add_appearance()
        self._add_files()
        self._add_runs()
        self._add_caches()
        self.wrong = Label(role="wrong", wraps=True)
        self.wrong.hide()
        buttons = self.answers()
        self.ok = buttons.act
        self.accepted.connect(self._take)
        column = column_of(
            self, self._grid, STRETCH, self.wrong, margins=(20, 16, 20, 12), spacing=12
        )
        self.keep_in_view(self.wrong)
        column.addWidget(buttons)
        self.setMinimumWidth(WIDTH)
        offer_help(self, "window#settings")

    def wanted(self) -> Preferences:
        """Return the preferences from the fields.

        Raises:
            ValueError: If an amount of memory is invalid.
        """
        # A displayed amount is rounded: one that was not edited keeps its exact value.
        before = self._before
        limit, keep = self.memory_limit.text().strip(), self.keep.text()
        return Preferences(
            scheme=self.scheme.currentData(),
            code_pixels=self.code_pixels.currentData(),
            scale=self.scale.currentData(),
            asks_first=self.asks_first.isChecked(),
            watching=self.watching.isChecked(),
            sandbox=self.sandbox.isChecked(),
            memory_limit=before.memory_limit if limit == self._limit() else _limit_of(limit),
            keep=before.keep if keep == bytes_text(before.keep) else parse_bytes(keep),
        )

    # Sections

    def _add_appearance(self) -> None:
        before = self._before
        self._add_title(_("Appearance"))
        self.scheme = self._choice(
            "scheme",
            _("Colours"),
            (("system", _("System")), ("light", _("Light")), ("dark", _("Dark"))),
            before.scheme,
        )
        sizes = tuple((size, _("{size:g} px", size=size)) for size in CODE_SIZES)
        usual = (0.0, _("Default, {code_pixels:g} px", code_pixels=CODE_PIXELS))
        others = tuple(each for each in sizes if each[0] != CODE_PIXELS)
        self.code_pixels = self._choice(
            "code_pixels", _("Code font size"), (usual, *others), before.code_pixels
        )
        scales = tuple((int(each), f"{each} %") for each in SCALES)
        self.scale = self._choice(
            "scale",
            _("Scaling"),
            ((0, _("System")), *scales),
            before.scale,
            _("Takes effect at the next start"),
        )

    def _add_files(self) -> None:
        self._add_title(_("Opening files"))
        self.asks_first = self._switch(
            "asks_first",
            _("Confirm before a code file runs for the first time"),
            self._before.asks_first,
        )
        self.watching = self._switch(
            "watching", _("Reload files when they are saved"), self._before.watching
        )
        sandboxing = self._store.sandbox.sandboxing
        self.sandbox = self._switch("sandbox", _("Run code in a sandbox"), self._before.sandbox)
        self.sandbox.setEnabled(sandboxing.state != "missing")
        self.sandbox.setToolTip(sandboxing.availability)
        known = len(self._store.settings.trusted())
        self.forget = self._button(_("Forget all"), self._forget)
        self.forget.setEnabled(known > 0)
        self.known = self._add_row(_("Trusted files"), self.forget, self._said_known(known))

    def _add_runs(self) -> None:
        before = self._before
        self._add_title(_("Runs"))
        self.memory_limit = self._amount(
            "memory_limit",
            _("Memory"),
            self._limit(),
            _("Limit of the worker; a call that needs more fails"),
            _limit_of,
        )
        self.memory_limit.setPlaceholderText(
            _("Default, {usual_limit}", usual_limit=bytes_text(usual_limit()))
        )
        self.keep = self._amount(
            "keep",
            _("Values kept"),
            bytes_text(before.keep),
            _("Tensors of the calls of a run, until the next run"),
        )
        self.measuring = self._button(_("Threads and repeats…"), self._edit_measuring)
        action = self._store.commands.action("measuring")
        self.measuring.setEnabled(action.isEnabled())
        words = _("For the open model, saved in its session")
        self._add_row(_("Measurement"), self.measuring, words)

    def _add_caches(self) -> None:
        self._add_title(_("Cache of tuning and measuring"))
        self.clear = self._button(_("Clear…"), self._ask_to_clear)
        self.cached = self._add_row(_("Size"), self.clear)
        self._show_cached()

    # Slots

    def _ask_to_clear(self) -> None:
        ask_to_clear(self._store.features.document, self).cleared.connect(self._show_cached)

    def _show_cached(self) -> None:
        size = cache_size()
        self.clear.setEnabled(size > 0)
        self.cached.setText(_("{size} on disk", size=bytes_text(size)))

    def _check(self) -> None:
        said = ""
        for field, parse in self._amounts:
            wrong = ""
            try:
                parse(field.text())
            except ValueError as error:
                wrong = _(
                    "{accessiblename}: {error}", accessiblename=field.accessibleName(), error=error
                )
            mark_wrong(field, bool(wrong))
            said = said or wrong
        self.wrong.setText(said)
        self.wrong.setVisible(bool(said))
        self.ok.setEnabled(not said)

    def _take(self) -> None:
        self._store.change(self.wanted())

    def _forget(self) -> None:
        self._store.settings.set_trusted({})
        self.forget.setEnabled(False)
        self.known.setText(self._said_known(0))

    def _edit_measuring(self) -> None:
        from lowerscope.app.panes.run.commands import edit_measuring

        features = self._store.features
        edit_measuring(features.document, features.runs, self)

    # Construction

    def _limit(self) -> str:
        limit = self._before.memory_limit
        return bytes_text(limit) if limit else ""

    def _said_known(self, count: int) -> str:
        if not count:
            return _("None")
        return _n("1 file may run", "{count} files may run", count)

    def _add_title(self, text: str) -> None:
        row = self._grid.rowCount()
        if row > 1:
            self._grid.setRowMinimumHeight(row, 8)
            row += 1
        title = Label(text)
        title.setFont(ui_font(13, QFont.Weight.DemiBold))
        self._grid.addWidget(title, row, 0, 1, 3)

    def _add_row(self, title: str, field: QWidget, hint: str = "") -> Label:
        row = self._grid.rowCount()
        label = Label(title)
        label.setBuddy(field)
        said = Label(hint, role="quiet", wraps=True)
        said.setMinimumWidth(HINT_WIDTH)
        field.setFixedWidth(FIELD_WIDTH)
        field.setAccessibleDescription(hint)
        self._grid.addWidget(label, row, 0)
        self._grid.addWidget(field, row, 1)
        self._grid.addWidget(said, row, 2)
        return said

    def _choice(
        self,
        name: str,
        title: str,
        choices: tuple[tuple[object, str], ...],
        chosen: object,
        hint: str = "",
    ) -> QComboBox:
        field = QComboBox()
        for value, words in choices:
            field.addItem(words, value)
        field.setCurrentIndex(max(0, field.findData(chosen)))
        field.setAccessibleName(title)
        self.fields[name] = field
        self._add_row(title, field, hint)
        return field

    def _switch(self, name: str, words: str, on: bool, hint: str = "") -> QCheckBox:
        field = QCheckBox(words)
        field.setChecked(on)
        self.fields[name] = field
        self._grid.addWidget(field, self._grid.rowCount(), 1, 1, 2)
        if hint:
            label = Label(hint, role="quiet")
            label.setIndent(BESIDE_BOX)
            field.setAccessibleDescription(hint)
            self._grid.addWidget(label, self._grid.rowCount(), 1, 1, 2)
        return field

    def _amount(
        self, name: str, title: str, text: str, hint: str, parse: Callable[[str], int] = parse_bytes
    ) -> QLineEdit:
        field = QLineEdit(text)
        field.setAccessibleName(title)
        field.textChanged.connect(self._check)
        self._amounts.append((field, parse))
        self.fields[name] = field
        self._add_row(title, field, hint)
        return field

    def _button(self, words: str, act: Callable[[], None]) -> QPushButton:
        return push_button(words, act=act, auto_default=False)


def _limit_of(text: str) -> int:
    return parse_limit(text) if text.strip() else 0
