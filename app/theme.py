"""The window's theme: the current one, and applying another.

A widget that paints itself reads ``current()`` when it paints, and repaints on
``notifier().changed``. Everything else follows the palette and the style sheet.

Code that runs before the first paint does not touch PySide6's ``Qt``: making that class with its
hundred enumerations takes as long as a tenth of the whole start.
"""

from functools import cache

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QColor, QGradient, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QToolTip

from lowerscope.app.theme_colours import DARK, LIGHT, Theme
from lowerscope.app.widgets import typefaces
from lowerscope.app.widgets.stylesheet import stylesheet
from lowerscope.app.widgets.typefaces import ui_font

#: PySide6 makes a type when it is first used. ``QPainter.fillRect`` asks whether a colour is a
#: gradient: if the type is made in the middle of that, the process sometimes crashes.
MADE_BEFORE_PAINTING = (QGradient,)

#: Arguments of the application: the style that ours is based on. ``setStyle`` takes 4 ms more.
STYLE = ("-style", "Fusion")

#: The user's choices: follow the system, or one of our themes.
SCHEMES = ("system", "light", "dark")


class ThemeNotifier(QObject):
    """Signals that the theme changed.

    Signals
    -------
    changed(Theme)
        The new theme.
    """

    changed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.theme = LIGHT
        self.scheme = "system"
        self.follows = False

    def follow_system(self) -> None:
        """Apply the system's scheme, unless the user chose another."""
        if self.scheme == "system":
            _put_on(_wanted(self.scheme))


@cache
def notifier() -> ThemeNotifier:
    """Return the only notifier."""
    return ThemeNotifier()


def current() -> Theme:
    """Return the current theme."""
    return notifier().theme


def scheme() -> str:
    """Return the user's choice: one of ``SCHEMES``."""
    return notifier().scheme


def start(app: QApplication, chosen: str = "system") -> None:
    """Load the typefaces and apply a theme; call it once, before the first widget.

    Parameters
    ----------
    app : QApplication
        The application, made with `STYLE` among its arguments.
    chosen : str
        One of ``SCHEMES``.
    """
    assert chosen in SCHEMES, chosen
    typefaces.load()
    app.setFont(ui_font())
    notifier().scheme = chosen
    dark = app.palette().window().color().lightness() < 128
    _put_on({"system": DARK if dark else LIGHT, "dark": DARK, "light": LIGHT}[chosen])


def follow_system() -> None:
    """Keep the theme in sync with the system's light and dark scheme and the user's choice."""
    notice = notifier()
    if not notice.follows:
        QGuiApplication.styleHints().colorSchemeChanged.connect(notice.follow_system)
        notice.follows = True
    set_scheme(notice.scheme)


def set_scheme(chosen: str) -> None:
    """Choose light or dark, or follow the system.

    Parameters
    ----------
    chosen : str
        One of ``SCHEMES``.
    """
    from PySide6.QtCore import Qt

    assert chosen in SCHEMES, chosen
    notifier().scheme = chosen
    hints = QGuiApplication.styleHints()
    # The title bar and the system's own dialogs follow, where the platform can.
    if chosen == "system":
        hints.unsetColorScheme()
    else:
        dark = chosen == "dark"
        hints.setColorScheme(Qt.ColorScheme.Dark if dark else Qt.ColorScheme.Light)
    _put_on(_wanted(chosen))


def set_code_pixels(pixels: float) -> None:
    """Set the font size of code, in logical pixels, for visible code as well."""
    if pixels != typefaces.code_pixels():
        typefaces.set_code_pixels(pixels)
        notifier().changed.emit(current())


def apply(app: QApplication, theme: Theme) -> None:
    """Apply a theme to every window of the application."""
    notice = notifier()
    notice.theme = theme
    palette = _palette(theme)
    app.setPalette(palette)
    QToolTip.setPalette(palette)
    app.setStyleSheet(stylesheet(theme._asdict()))
    notice.changed.emit(theme)


def _wanted(chosen: str) -> Theme:
    dark = _system_is_dark() if chosen == "system" else chosen == "dark"
    return DARK if dark else LIGHT


def _system_is_dark() -> bool:
    from PySide6.QtCore import Qt

    return QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark


def _put_on(theme: Theme) -> None:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    if theme != current() or not app.styleSheet():
        apply(app, theme)


def _palette(theme: Theme) -> QPalette:
    role = QPalette.ColorRole
    palette = QPalette()
    for which, colour in {
        role.Window: theme.panel,
        role.WindowText: theme.text,
        role.Base: theme.panel,
        role.AlternateBase: theme.code_ground,
        role.Text: theme.text,
        role.PlaceholderText: theme.quiet,
        role.Button: theme.panel,
        role.ButtonText: theme.text,
        role.BrightText: theme.wrong,
        role.ToolTipBase: theme.panel,
        role.ToolTipText: theme.text,
        role.Highlight: theme.accent_ground,
        role.HighlightedText: theme.text,
        role.Accent: theme.accent,
        role.Link: theme.accent,
        role.LinkVisited: theme.accent,
        role.Light: theme.hover,
        role.Midlight: theme.hover,
        role.Mid: theme.line,
        role.Dark: theme.edge,
        role.Shadow: theme.line,
    }.items():
        palette.setColor(which, QColor(colour))
    for which in (role.WindowText, role.Text, role.ButtonText, role.HighlightedText):
        palette.setColor(QPalette.ColorGroup.Disabled, which, QColor(theme.faint))
    return palette
