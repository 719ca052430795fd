"""Typefaces: for text the system's, or Inter where it has none; JetBrains Mono for code.

Both Inter and JetBrains Mono ship with the application.
"""

from __future__ import annotations

import struct
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray
from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF, QGuiApplication

from lowerscope.resources import FONTS

if TYPE_CHECKING:
    from PySide6.QtCore import Qt

UI_FAMILY = "Inter"
CODE_FAMILY = "JetBrains Mono"

#: Sizes in logical pixels.
UI_PIXELS = 13.0
CODE_PIXELS = 11.6
CODE_LINE = 18

CODE_SIZES = (10.0, CODE_PIXELS, 13.0, 14.0, 16.0, 18.0, 20.0)
"""The sizes of code that the user can choose, in logical pixels."""

#: Fallbacks for glyphs that ours lack: Chinese, Japanese and Korean, then symbols.
FALLBACKS = [
    "Noto Sans CJK SC",
    "PingFang SC",
    "Microsoft YaHei",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "DejaVu Sans",
]

_UI_FILES = ("Inter-Regular.otf", "Inter-Medium.otf", "Inter-SemiBold.otf")
_CODE_FILES = ("JetBrainsMono-Regular.ttf", "JetBrainsMono-Bold.ttf")

# Ascent and descent, in em: they give a line of 18 pixels at 11.6, and still at the 12 that it
# becomes where glyphs have whole sizes.
_CODE_ASCENT = 1.13
_CODE_DESCENT = 0.36


_UNNAMED = ("", "Sans Serif", "Sans", "Helvetica")
"""Families that Qt reports if the system has not chosen a font."""


SHOWN_CHARACTERS = 1_000
"""Characters of a line that are laid out, more than any pane shows: layout takes time."""


MEASURED = 8_192
"""Texts whose measures are kept: most of what is painted has been painted before."""


@lru_cache(maxsize=MEASURED)
def _width(font: QFont, text: str) -> float:
    return QFontMetricsF(font).horizontalAdvance(text)


@lru_cache(maxsize=MEASURED)
def _elided(font: QFont, text: str, mode: Qt.TextElideMode, width: float) -> str:
    return QFontMetricsF(font).elidedText(text, mode, width)


def _forget_measures() -> None:
    """Drop the measures of texts: they were taken with other typefaces, or for another screen."""
    _width.cache_clear()
    _elided.cache_clear()


class TextMetrics:
    """Font metrics that bound the time for a line, and measure a text once."""

    def __init__(self, font: QFont) -> None:
        # A copy: that of a style option is part of it.
        self._font = QFont(font)

    def capHeight(self) -> float:
        return QFontMetricsF(self._font).capHeight()

    def height(self) -> float:
        return QFontMetricsF(self._font).height()

    def horizontalAdvance(self, text: str) -> float:
        """Return the width of a text in logical pixels."""
        return _width(self._font, text[:SHOWN_CHARACTERS])

    def elidedText(self, text: str, mode: Qt.TextElideMode, width: float) -> str:
        """Return a text that is elided to a width in logical pixels."""
        if len(text) > SHOWN_CHARACTERS:
            from PySide6.QtCore import Qt  # slow to make, and not needed for the first paint

            half = SHOWN_CHARACTERS // 2
            is_middle = mode == Qt.TextElideMode.ElideMiddle
            text = f"{text[:half]}…{text[-half:]}" if is_middle else f"{text[:SHOWN_CHARACTERS]}…"
        return _elided(self._font, text, mode, width)


class _Code:
    """The chosen size of code."""

    pixels = CODE_PIXELS


def set_code_pixels(pixels: float) -> None:
    """Set the size of code; existing widgets have to update their fonts."""
    _Code.pixels = pixels


def code_pixels() -> float:
    """Return the chosen size of code, in logical pixels."""
    return _Code.pixels


def code_line() -> int:
    """Return the line height of code at the chosen size, in logical pixels."""
    return round(_Code.pixels * CODE_LINE / CODE_PIXELS)


@cache
def ui_family() -> str:
    """Return the family of text: that of the desktop, if it has one.

    Needs a QGuiApplication, whose font is the desktop's as long as nobody has set another one. A
    query of the font database takes a millisecond more, before the first paint.
    """
    family = QGuiApplication.font().family()
    return UI_FAMILY if family in _UNNAMED else family


@cache
def load() -> None:
    """Load the typeface of text into Qt. Needs a QGuiApplication."""
    if ui_family() != UI_FAMILY:
        return
    for name in _UI_FILES:
        QFontDatabase.addApplicationFont(str(FONTS / name))
    _forget_measures()


@cache
def _load_code() -> None:
    """Load the typeface of code into Qt, only once there is code to show."""
    for name in _CODE_FILES:
        data = with_line_height(Path(FONTS / name).read_bytes(), _CODE_ASCENT, _CODE_DESCENT)
        QFontDatabase.addApplicationFontFromData(QByteArray(data))
    _forget_measures()


def ui_font(
    pixels: float = UI_PIXELS, weight: QFont.Weight = QFont.Weight.Normal, tabular: bool = False
) -> QFont:
    """Return the font of text.

    Args:
        pixels: Size in logical pixels.
        weight: Normal, Medium or DemiBold.
        tabular: Whether digits have one width, for columns of numbers.
    """
    # A copy, which may be changed.
    return QFont(_ui_font(_points(pixels), weight, tabular))


@lru_cache(maxsize=64)
def _ui_font(points: float, weight: QFont.Weight, tabular: bool) -> QFont:
    font = QFont([ui_family(), *FALLBACKS])
    font.setPointSizeF(points)
    font.setWeight(weight)
    if tabular:
        font.setFeature(QFont.Tag("tnum"), 1)
    return font


def code_font(pixels: float = 0.0) -> QFont:
    """Return the font of code, by default in the chosen size."""
    return QFont(_code_font(_points(pixels or _Code.pixels)))


@lru_cache(maxsize=64)
def _code_font(points: float) -> QFont:
    _load_code()
    font = QFont([CODE_FAMILY, *FALLBACKS])
    font.setPointSizeF(points)
    font.setFixedPitch(True)
    font.setStyleHint(QFont.StyleHint.Monospace)
    return font


def with_line_height(font_file: bytes, ascent: float, descent: float) -> bytes:
    """Return a TrueType or OpenType file with another line height.

    ``QPlainTextEdit`` takes the line height from its font alone.

    Args:
        font_file: The file's content.
        ascent, descent: Above and below the baseline, in em.

    Returns:
        The same font with these metrics in its ``hhea`` and ``OS/2`` tables, and no line gap.
    """
    data = bytearray(font_file)
    tables = {}
    for i in range(struct.unpack_from(">H", data, 4)[0]):
        tag, _, offset, _ = struct.unpack_from(">4sLLL", data, 12 + 16 * i)
        tables[tag] = offset
    em = struct.unpack_from(">H", data, tables[b"head"] + 18)[0]
    above, below = round(ascent * em), round(descent * em)
    struct.pack_into(">hhh", data, tables[b"hhea"] + 4, above, -below, 0)
    # sTypoAscender, sTypoDescender, sTypoLineGap, usWinAscent, usWinDescent
    struct.pack_into(">hhhHH", data, tables[b"OS/2"] + 68, above, -below, 0, above, below)
    return bytes(data)


def _points(pixels: float) -> float:
    # A size in pixels must be whole; one in points is scaled by the screen's 72 or 96 dpi.
    return pixels * 72 / _Screen.dots_per_inch()


class _Screen:
    """The resolution of the first screen; what was measured at another one is dropped."""

    _known = 0.0

    @classmethod
    def dots_per_inch(cls) -> float:
        if not cls._known:
            screen, application = QGuiApplication.primaryScreen(), QGuiApplication.instance()
            if screen is None or not isinstance(application, QGuiApplication):
                return 96.0
            cls._known = screen.logicalDotsPerInch()
            screen.logicalDotsPerInchChanged.connect(cls._forget)
            application.primaryScreenChanged.connect(cls._forget)
        return cls._known

    @classmethod
    def _forget(cls) -> None:
        cls._known = 0.0
        _forget_measures()
