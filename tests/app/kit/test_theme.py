"""The theme: its colours, where they are put on, and who hears of it."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from lowerscope.app.kit import theme
from lowerscope.app.kit.theme import DARK, LIGHT, Theme
from lowerscope.core.model.graph import FAMILY_NAMES


@pytest.fixture(autouse=True)
def _started(qapp: QApplication) -> None:
    theme.start(qapp, "light")


def contrast(one: str, other: str) -> float:
    """WCAG 2's ratio of two colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=lambda look: look.name)
def test_words_can_be_read(look: Theme) -> None:
    verdicts = (look.changed, look.right_ground, look.wrong_ground)
    code = (look.keyword, look.string, look.number, look.comment, look.function)
    strategies = (look.accent, look.te, look.library)
    for ground in (
        look.panel,
        look.ground,
        look.code_ground,
        look.accent_ground,
        look.hover,
        *verdicts,
    ):
        assert contrast(look.text, ground) >= 7
        for words in (look.quiet, look.right, look.wrong, *strategies, *code):
            assert contrast(words, ground) >= 4.5, (words, ground)
    for words in (look.quiet, *strategies):
        assert contrast(words, look.node) >= 4.5, words
    for ground in (look.heat_ground, look.error_ground):
        assert contrast(look.text, ground) >= 4.5, ground
    for family in FAMILY_NAMES:
        ink = theme.family_colour(look, family)
        for share, words in ((0.15, ink), (0.3, look.text)):
            assert contrast(words, theme.mixed(look.panel, ink, share)) >= 4.5, (family, share)
    assert contrast(look.on_accent, look.accent) >= 4.5
    # What is disabled, and the outline of a box to tick.
    assert contrast(look.faint, look.panel) >= 2.9


def test_override_changes_palette_and_says_so(qtbot: QtBot, qapp: QApplication) -> None:
    with qtbot.waitSignal(theme.notifier().changed) as heard:
        theme.set_scheme("dark")
    assert heard.args == [DARK]
    assert theme.current() is DARK
    assert theme.scheme() == "dark"
    window = qapp.palette().color(QPalette.ColorRole.Window)
    assert window == QColor(DARK.panel)


def test_system_is_followed_only_when_asked(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    # The offscreen platform has no scheme of its own.
    system = {"dark": False}
    monkeypatch.setattr(theme, "_system_is_dark", lambda: system["dark"])
    hints = QGuiApplication.styleHints()
    theme.follow_system()
    theme.set_scheme("system")
    assert theme.current() is LIGHT
    system["dark"] = True
    hints.colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert theme.current() is DARK
    theme.set_scheme("light")
    hints.colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert theme.current() is LIGHT
