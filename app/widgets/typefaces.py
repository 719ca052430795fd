"""The typefaces: the system's for words, or Inter where it names none; JetBrains Mono for code.

Both of ours ship with the window.
"""

import struct
from functools import cache
from pathlib import Path

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF, QGuiApplication

from lowerscope.resources import FONTS

UI_FAMILY = "Inter"
CODE_FAMILY = "JetBrains Mono"

#: Sizes in logical pixels.
UI_PIXELS = 13.0
CODE_PIXELS = 11.6
CODE_LINE = 18

CODE_SIZES = (10.0, CODE_PIXELS, 13.0, 14.0, 16.0, 18.0, 20.0)
"""The sizes of code that can be chosen, in logical pixels."""

#: Where glyphs are missing in ours: Chinese, Japanese and Korean, then symbols.
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

# Above and below the base line, in parts of the em: a line of 18 pixels at 11.6, and still at the
# 12 that it becomes where glyphs have whole sizes.
_CODE_ASCENT = 1.13
_CODE_DESCENT = 0.36


_UNNAMED = ("", "Sans Serif", "Sans", "Helvetica")
"""What Qt calls the font of a system that has chosen none: whatever font there is."""


SHOWN_CHARACTERS = 1_000
"""Of a line: it is wider than any pane. What follows takes time to be laid out, and is not seen."""


class TextMetrics(QFontMetricsF):
    """The metrics of a font, in which the time that a line takes is bounded."""

    # Qt

    def horizontalAdvance(self, text: str) -> float:  # type: ignore[override]
        return super().horizontalAdvance(text[:SHOWN_CHARACTERS])

    def elidedText(self, text: str, mode: Qt.TextElideMode, width: float) -> str:  # type: ignore[override]
        if len(text) <= SHOWN_CHARACTERS:
            return super().elidedText(text, mode, width)
        if mode == Qt.TextElideMode.ElideMiddle:
            half = SHOWN_CHARACTERS // 2
            return super().elidedText(f"{text[:half]}…{text[-half:]}", mode, width)
        return super().elidedText(f"{text[:SHOWN_CHARACTERS]}…", mode, width)


class _Code:
    """The size of code that was chosen."""

    pixels = CODE_PIXELS


def set_code_pixels(pixels: float) -> None:
    """Choose the size of code; what is there already has to take it over."""
    _Code.pixels = pixels


def code_pixels() -> float:
    """The size of code that was chosen, in logical pixels."""
    return _Code.pixels


def code_line() -> int:
    """The height of a line of code at the size that was chosen, in logical pixels."""
    return round(_Code.pixels * CODE_LINE / CODE_PIXELS)


@cache
def ui_family() -> str:
    """The family of words: that of the desktop, where it has one.

    Needs a QGuiApplication, whose font is the desktop's as long as nobody has set another one. To
    ask the font database for it takes a millisecond more, before the first paint.
    """
    family = QGuiApplication.font().family()
    return UI_FAMILY if family in _UNNAMED else family


@cache
def load() -> None:
    """Make the typeface of words known to Qt. Needs a QGuiApplication."""
    if ui_family() != UI_FAMILY:
        return
    for name in _UI_FILES:
        QFontDatabase.addApplicationFont(str(FONTS / name))


@cache
def _load_code() -> None:
    """Make the typeface of code known to Qt, when there is code to show: not before."""
    for name in _CODE_FILES:
        data = with_line_height(Path(FONTS / name).read_bytes(), _CODE_ASCENT, _CODE_DESCENT)
        QFontDatabase.addApplicationFontFromData(QByteArray(data))


def ui_font(
    pixels: float = UI_PIXELS,
    weight: QFont.Weight = QFont.Weight.Normal,
    tabular: bool = False,
) -> QFont:
    """The font of words.

    Parameters
    ----------
    pixels : float
        Size in logical pixels.
    weight : QFont.Weight
        Normal, Medium or DemiBold.
    tabular : bool
        Figures of one width, for columns of numbers.
    """
    font = QFont([ui_family(), *FALLBACKS])
    font.setPointSizeF(_points(pixels))
    font.setWeight(weight)
    if tabular:
        font.setFeature(QFont.Tag("tnum"), 1)
    return font


def code_font(pixels: float = 0.0) -> QFont:
    """The font of code, in the size that was chosen unless another is asked for."""
    _load_code()
    font = QFont([CODE_FAMILY, *FALLBACKS])
    font.setPointSizeF(_points(pixels or _Code.pixels))
    font.setFixedPitch(True)
    font.setStyleHint(QFont.StyleHint.Monospace)
    return font


def with_line_height(font_file: bytes, ascent: float, descent: float) -> bytes:
    """Give a TrueType or OpenType file another line height.

    ``QPlainTextEdit`` takes the height of a line from its font and from nothing else.

    Parameters
    ----------
    font_file : bytes
        The file's content.
    ascent, descent : float
        Above and below the base line, in parts of the em.

    Returns
    -------
    bytes
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
    # A size in pixels can only be whole; one in points is scaled by the screen's 72 or 96 dpi.
    screen = QGuiApplication.primaryScreen()
    return pixels * 72 / (screen.logicalDotsPerInch() if screen else 96.0)
