"""The window's theme: colours by role, the style sheet, and switching between themes.

A widget that paints itself reads ``current()`` when it paints, and repaints on
``notifier().changed``. Everything else follows the palette and the style sheet.

Code that runs before the first paint does not touch PySide6's ``Qt``: making that class with its
hundred enumerations takes as long as a tenth of the whole start.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QColor, QGradient, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QToolTip

from lowerscope.app.kit import typefaces
from lowerscope.app.kit.typefaces import ui_font
from lowerscope.core.model.texts import language
from lowerscope.resources import ICONS


class Theme(NamedTuple):
    """The colours of a theme, each as ``#rrggbb``."""

    name: str  # ``"light"`` or ``"dark"``.
    ground: str  # Background of the window, of a pane and of a code pane; separators.
    panel: str
    code_ground: str
    line: str
    text: str  # Text, explanatory text, line numbers and disabled text.
    quiet: str
    faint: str
    accent: str  # The accent colour, the background of selected items, text on the accent.
    accent_ground: str
    on_accent: str
    te: str  # Strategies; the high-level one has the accent.
    library: str
    right: str  # Text and background of a verdict; background of a changed line.
    right_ground: str
    wrong: str
    wrong_ground: str
    changed: str
    hover: str  # Background of the item under the mouse.
    found: str  # Background of search results, half transparent.
    stop: str  # Disc of a node with a breakpoint.
    node: str  # An input or output in a graph, outlines, edges, and marks without a strategy.
    node_line: str
    edge: str
    neutral: str
    # A measured time, and backgrounds of nodes with the longest time and the largest error; the
    # smallest have that of a node.
    heat: str
    heat_ground: str
    error_ground: str
    keyword: str  # Tokens of code; all others have the colour of text.
    string: str
    number: str
    comment: str
    function: str
    decorator: str
    builtin: str

    @property
    def dark(self) -> bool:
        """Return whether the text is lighter than the background."""
        return self.name == "dark"

    @property
    def unsure(self) -> str:
        """Amber, for an inconclusive verdict; its background is ``changed``."""
        return self.library

    @property
    def tints(self) -> tuple[str, ...]:
        """Backgrounds that distinguish the lines of nodes, also for colour-blind users.

        None is that of a selected or of a changed line.
        """
        return _DARK_TINTS if self.dark else _LIGHT_TINTS


_LIGHT_TINTS = (
    *("#d9f0f9", "#fbe3d6", "#dcefd9", "#f6dfe9"),
    *("#ebe9c4", "#e2dcf3", "#d3ede4", "#e6e6e6"),
)
_DARK_TINTS = (
    *("#173a46", "#46301f", "#22391f", "#452536"),
    *("#33351a", "#312a4a", "#15403a", "#33363b"),
)

_PALETTE = {
    # The light theme, the dark theme.
    "ground": ("#f4f5f7", "#16191f"),
    "panel": ("#ffffff", "#1d2129"),
    "code_ground": ("#fbfbfd", "#1a1e25"),
    "line": ("#dfe2e7", "#2f3540"),
    "text": ("#1d2430", "#dfe4ec"),
    "quiet": ("#636c7b", "#959fae"),
    "faint": ("#8d96a5", "#656f80"),
    "accent": ("#2c68d1", "#6ea0ff"),
    "accent_ground": ("#e7effc", "#24344f"),
    "on_accent": ("#ffffff", "#10151d"),
    "te": ("#0d7a60", "#4cc9a4"),
    "library": ("#936119", "#e0ac55"),
    "right": ("#147b52", "#57c998"),
    "right_ground": ("#e3f5ec", "#1d3a30"),
    "wrong": ("#c2372e", "#ff7b72"),
    "wrong_ground": ("#fdeceb", "#43262a"),
    "changed": ("#fff6dc", "#3a3420"),
    "hover": ("#f0f2f5", "#272d37"),
    "found": ("#e5a50a", "#e0ac55"),
    "stop": ("#e5352b", "#ff5a50"),
    "node": ("#eef2f7", "#262c36"),
    "node_line": ("#d3dae4", "#3b4453"),
    "edge": ("#8795a8", "#748092"),
    "neutral": ("#626c80", "#959fae"),
    "heat": ("#0b7285", "#5cc8de"),
    "heat_ground": ("#86cbdc", "#1d6478"),
    "error_ground": ("#b9c2cf", "#566174"),
    "keyword": ("#8b3fb0", "#c58af0"),
    "string": ("#0f7b55", "#7fd1a9"),
    "number": ("#ac5219", "#f0a972"),
    "comment": ("#636c7b", "#959fae"),
    "function": ("#2559b8", "#7fb0ff"),
    "decorator": ("#2559b8", "#7fb0ff"),
    "builtin": ("#8b3fb0", "#c58af0"),
}
"""The colours of both themes, by role."""

LIGHT = Theme("light", **{role: light for role, (light, _) in _PALETTE.items()})
DARK = Theme("dark", **{role: dark for role, (_, dark) in _PALETTE.items()})


def strategy_colour(theme: Theme, strategy: str) -> str:
    """Return the colour of a strategy or a change; a quiet one for anything else.

    Strategies are ``"high-level"``, ``"te"`` and ``"library"``; changes are ``"added"``,
    ``"removed"`` and ``"changed"``.
    """
    colours = {
        "high-level": theme.accent,
        "te": theme.te,
        "library": theme.library,
        "added": theme.right,
        "removed": theme.wrong,
        "changed": theme.unsure,
    }
    return colours.get(strategy, theme.neutral)


_FAMILIES = {
    # Of operators in a graph: the light theme, the dark theme.
    "dense": ("#2157b4", "#86b4ff"),
    "attention": ("#a0287a", "#f08cc8"),
    "activation": ("#ad352a", "#ff958a"),
    "normalisation": ("#6c40b3", "#bda0f8"),
    "pooling": ("#08686d", "#5fd0d0"),
    "elementwise": ("#75560d", "#dcb765"),
    "reduction": ("#3a6a1b", "#9ccf72"),
    "shape": ("#4d6273", "#a3b8ca"),
    "": ("#655d55", "#b8ab9e"),
}


def family_colour(theme: Theme, family: str) -> str:
    """Return the colour of a family of operators, for text and marks."""
    return _FAMILIES.get(family, _FAMILIES[""])[theme.dark]


@cache
def mixed(ground: str, colour: str, share: float) -> str:
    """Return a colour between two, with this share of the second."""
    parts = zip(QColor(ground).getRgb()[:3], QColor(colour).getRgb()[:3], strict=True)  # type: ignore[index]
    return QColor(*(round(a + (b - a) * share) for a, b in parts)).name()


# --- The application's style sheet, for Qt's own widgets ---


def stylesheet(colours: Mapping[str, str]) -> str:
    """Return Qt's style sheet in these colours.

    It has few and simple rules, since each is matched against each widget.

    Args:
        colours: The fields of a ``Theme``.
    """
    # Qt hides the menus that are higher than their bar, and Chinese glyphs are 3 px higher.
    around = 4 if language() == "en" else 2
    return _SHEET.format(icons=ICONS.as_posix(), around=around, **colours)


_SHEET = """
QDialogButtonBox {{ dialogbuttonbox-buttons-have-icons: 0; }}
QMenuBar {{ background: {panel}; padding: 2px 2px; }}
QMenuBar::item {{ padding: {around}px 8px; border-radius: 6px; }}
QMenuBar::item:selected {{ background: {hover}; }}
QMenuBar::item:pressed {{ background: {accent_ground}; color: {accent}; }}
QMenu {{
    background: {panel}; border: 1px solid {line}; padding: 4px; menu-scrollable: 1;
}}
QMenu::item {{ padding: 5px 24px 5px 12px; border-radius: 4px; }}
QMenu::item:selected {{ background: {accent_ground}; color: {text}; }}
QMenu::item:disabled {{ color: {faint}; }}
QMenu::separator {{ height: 1px; background: {line}; margin: 4px 8px; }}
QMenu::icon {{ padding-left: 8px; }}
QMenu::indicator {{ width: 14px; height: 14px; left: 6px; }}
QMenu::indicator:checked {{ image: url("{icons}/check-menu.svg"); }}
QToolTip, QMessageBox QLabel, QFileDialog QLabel {{ qproperty-textFormat: PlainText; }}
QToolTip {{ background: {panel}; color: {text}; border: 1px solid {line}; padding: 4px 6px; }}

QToolBar {{
    background: transparent; border: none; spacing: 2px; padding: 0px;
}}
QToolBar::separator {{ width: 1px; background: {line}; margin: 5px 5px; }}
QToolBar QToolButton {{ padding: 1px 4px; font-size: 12px; }}
QStatusBar {{ background: {ground}; color: {quiet}; border-top: 1px solid {line}; }}
QSizeGrip {{ image: none; width: 0px; height: 0px; }}
QStatusBar::item {{ border: none; }}
QStatusBar QLabel {{ color: {quiet}; }}

QMainWindow::separator {{ background: {line}; width: 1px; height: 1px; }}
QMainWindow::separator:hover {{ background: {accent}; }}
QSplitter::handle {{ background: {line}; }}
QSplitter::handle:horizontal {{ width: 1px; }}
QSplitter::handle:vertical {{ height: 1px; }}
QSplitter::handle:hover {{ background: {accent}; }}

QTabBar::tab {{
    color: {quiet}; background: transparent; border: none;
    padding: 4px 10px; margin: 4px 0px 4px 4px; border-radius: 6px;
}}
QTabBar::tab:hover {{ background: {hover}; }}
QTabBar::tab:selected {{ background: {accent_ground}; color: {accent}; font-weight: 600; }}
QTabBar::tab:disabled {{ color: {faint}; }}
QTabWidget::pane {{ border: none; border-top: 1px solid {line}; }}

QPushButton {{
    background: {panel}; color: {text}; border: 1px solid {line}; border-radius: 6px;
    padding: 0px 10px; min-height: 24px;
}}
QPushButton:hover {{ background: {hover}; }}
QPushButton:pressed, QPushButton:checked {{ background: {accent_ground}; color: {accent}; }}
QPushButton:focus {{ border-color: {accent}; }}
QPushButton:disabled {{ color: {faint}; background: {panel}; }}
QPushButton[primary="true"] {{
    background: {accent}; color: {on_accent}; border-color: {accent};
    font-weight: 600; padding: 0px 16px;
}}
QPushButton[primary="true"]:hover {{ border-color: {text}; }}
QPushButton[primary="true"]:focus {{ border-color: {text}; }}
QPushButton[primary="true"]:disabled {{
    background: {hover}; color: {faint}; border-color: {line};
}}
QPushButton[narrow="true"] {{ padding: 0px; }}
QPushButton[align="left"] {{ text-align: left; }}
QPushButton[align="left"][quiet="true"] {{ padding: 0px; }}
QPushButton[row="true"] {{
    background: {ground}; border-color: {ground}; padding: 0px; min-height: 44px;
}}
QPushButton[row="true"]:hover {{ background: {panel}; border-color: {line}; }}
QPushButton[row="true"]:focus {{ border-color: {accent}; }}
QPushButton[card="true"] {{ background: {panel}; padding: 0px; min-height: 0px; }}
QPushButton[card="true"]:hover {{ border-color: {accent}; }}
QPushButton[card="true"]:focus {{ border-color: {accent}; }}
QLabel[drop="true"] {{
    border: 1px dashed {edge}; border-radius: 6px; padding: 12px 16px;
}}
QPushButton[chip="true"] {{
    background: {accent}; color: {on_accent}; border-color: {accent}; border-radius: 13px;
    padding: 0px 12px; font-weight: 600; font-size: 12px;
}}
QPushButton[chip="true"]:hover, QPushButton[chip="true"]:focus {{ border-color: {text}; }}
QPushButton[quiet="true"] {{ background: transparent; border-color: transparent; color: {accent}; }}
QPushButton[quiet="true"]:hover {{ background: {hover}; }}
QPushButton[quiet="true"]:focus {{ border-color: {accent}; }}
QPushButton[low="true"] {{ min-height: 18px; padding: 0px 8px; color: {quiet}; }}
QPushButton[low="true"][wrong="true"] {{ color: {wrong}; font-weight: 600; }}
QPushButton[quiet="true"]:disabled {{ color: {faint}; }}
QToolButton {{
    background: transparent; border: 1px solid transparent; border-radius: 4px;
    padding: 2px 4px; color: {text};
}}
QToolButton:hover {{ background: {hover}; }}
QToolButton:pressed, QToolButton:checked {{ background: {accent_ground}; color: {accent}; }}
QToolButton:focus {{ border-color: {accent}; }}
QToolButton:disabled {{ color: {faint}; }}
QToolButton::menu-indicator {{ image: none; }}

QLineEdit, QSpinBox, QDoubleSpinBox, QComboBox {{
    background: {panel}; color: {text}; border: 1px solid {line}; border-radius: 6px;
    padding: 0px 7px; min-height: 24px; selection-background-color: {accent};
    selection-color: {on_accent};
}}
QLineEdit {{ placeholder-text-color: {quiet}; }}
QComboBox {{ selection-background-color: {accent_ground}; selection-color: {accent}; }}
QSpinBox, QDoubleSpinBox {{ max-height: 24px; }}
QLineEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus {{
    border-color: {accent};
}}
QComboBox > QLineEdit, QSpinBox > QLineEdit, QDoubleSpinBox > QLineEdit {{
    border: none; padding: 0px; min-height: 0px;
}}
QLineEdit[wrong="true"] {{ border-color: {wrong}; }}
QLineEdit:disabled, QSpinBox:disabled, QComboBox:disabled {{ color: {faint}; }}
QComboBox::drop-down {{ border: none; width: 20px; }}
QComboBox::down-arrow {{ image: url("{icons}/chevron-down.svg"); width: 10px; height: 10px; }}
QSpinBox::up-button, QSpinBox::down-button,
QDoubleSpinBox::up-button, QDoubleSpinBox::down-button {{
    border: none; background: transparent; width: 18px;
}}
QSpinBox::up-arrow, QDoubleSpinBox::up-arrow {{
    image: url("{icons}/chevron-up.svg"); width: 8px; height: 8px;
}}
QSpinBox::down-arrow, QDoubleSpinBox::down-arrow {{
    image: url("{icons}/chevron-down.svg"); width: 8px; height: 8px;
}}
QComboBox QAbstractItemView {{ background: {panel}; border: 1px solid {line}; outline: none; }}

QPlainTextEdit, QTextEdit, QTextBrowser {{
    background: {panel}; color: {text}; border: none;
    selection-background-color: {accent}; selection-color: {on_accent};
}}
CodeEditor {{ background: {code_ground}; }}
QAbstractItemView {{
    background: {panel}; color: {text}; border: none; outline: none;
    selection-background-color: {accent_ground}; selection-color: {text};
}}
QTreeView::item, QListView::item {{ min-height: 24px; border: none; padding: 0px 7px; }}
QTreeView::item:hover, QListView::item:hover {{ background: {hover}; }}
QTreeView::item:selected, QListView::item:selected {{
    background: {accent_ground}; color: {accent};
}}
QHeaderView {{ background: {panel}; border: none; }}
QHeaderView::section {{
    background: {panel}; color: {quiet}; border: none; border-bottom: 1px solid {line};
    padding: 0px 10px; min-height: 24px; font-size: 12px;
}}
QFileDialog {{
    backward-icon: url("{icons}/chevron-left.svg");
    forward-icon: url("{icons}/chevron-right.svg");
    filedialog-parent-directory-icon: url("{icons}/chevron-up.svg");
}}
QFileDialog QTreeView {{ font-size: 12px; }}
QFileDialog QTreeView::item {{ padding: 0px; }}
QFileDialog QHeaderView::section {{ padding: 0px 3px; }}
QTableCornerButton::section {{ background: {panel}; border: none; }}
QCheckBox, QRadioButton {{ spacing: 6px; }}
QCheckBox::indicator, QRadioButton::indicator, QTreeView::indicator {{
    width: 14px; height: 14px; border: 1px solid {faint}; border-radius: 4px;
    background: {panel};
}}
QRadioButton::indicator {{ border-radius: 8px; }}
QCheckBox::indicator:hover, QRadioButton::indicator:hover {{ border-color: {accent}; }}
QCheckBox::indicator:checked, QTreeView::indicator:checked {{
    background: {accent}; border-color: {accent}; image: url("{icons}/check-{name}.svg");
}}
QRadioButton::indicator:checked {{ border: 5px solid {accent}; width: 6px; height: 6px; }}
QCheckBox:focus, QRadioButton:focus {{ color: {accent}; }}
QCheckBox::indicator:focus {{ border: 2px solid {accent}; width: 12px; height: 12px; }}
QRadioButton::indicator:focus {{ border-color: {accent}; }}
QCheckBox::indicator:checked:focus {{ border-color: {text}; }}
QCheckBox:disabled, QRadioButton:disabled {{ color: {faint}; }}
QCheckBox::indicator:checked:disabled {{ background: {faint}; border-color: {faint}; }}
QProgressBar {{
    background: {line}; border: none; border-radius: 3px; max-height: 6px; color: transparent;
}}
QProgressBar::chunk {{ background: {accent}; border-radius: 3px; }}
QGroupBox {{ border: 1px solid {line}; border-radius: 6px; margin-top: 18px; padding: 8px; }}
QGroupBox::title {{ subcontrol-origin: margin; left: 2px; color: {quiet}; }}

QScrollBar {{ background: transparent; border: none; margin: 0px; }}
QScrollBar:vertical {{ width: 10px; }}
QScrollBar:horizontal {{ height: 10px; }}
QScrollBar::handle {{ background: {line}; border-radius: 3px; margin: 2px; }}
QScrollBar::handle:vertical {{ min-height: 28px; }}
QScrollBar::handle:horizontal {{ min-width: 28px; }}
QScrollBar::handle:hover, QScrollBar::handle:pressed {{ background: {faint}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0px; height: 0px; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QAbstractScrollArea::corner {{ background: transparent; border: none; }}

QWidget[banner="info"] {{ background: {accent_ground}; border-bottom: 1px solid {line}; }}
QWidget[banner="wrong"] {{ background: {wrong_ground}; border-bottom: 1px solid {line}; }}
QWidget[floating="true"][banner="info"] {{ border: 1px solid {accent}; border-radius: 8px; }}
QWidget[floating="true"][banner="wrong"] {{ border: 1px solid {wrong}; border-radius: 8px; }}
QWidget[banner="wrong"] QLabel {{ color: {wrong}; }}

QLabel[card] {{ border-radius: 6px; background: {ground}; }}
QLabel[card="right"] {{ background: {right_ground}; color: {right}; }}
QLabel[card="wrong"] {{ background: {wrong_ground}; color: {wrong}; }}
QLabel[card="unsure"], QLabel[card="near"] {{ background: {changed}; }}

QLabel[role="quiet"] {{ color: {quiet}; }}
QLabel[role="quiet-title"] {{ color: {quiet}; font-weight: 600; }}
QLabel[role="title"] {{ font-weight: 600; }}
QLabel[role="wrong-title"] {{ color: {wrong}; font-weight: 600; }}
QTreeWidget[inset="true"] {{ padding-left: 6px; }}
QGraphicsView[clear="true"] {{ background: transparent; }}
QLabel[role="link"] {{ font-weight: 500; }}
QLabel[role="heading"] {{ font-size: 20px; font-weight: 600; }}
QLabel[role="wrong"] {{ color: {wrong}; }}
QLabel[role="right"] {{ color: {right}; }}
QLabel[role="unsure"] {{ color: {library}; }}
QWidget[bar="true"] {{ background: {panel}; border-bottom: 1px solid {line}; }}
QWidget[edge="top"] {{ border-top: 1px solid {edge}; }}
QWidget[edge="bottom"] {{ border-bottom: 1px solid {line}; }}
QWidget[edge="top"] {{ border-top: 1px solid {line}; }}
QFrame[floating="true"] {{
    background: {panel}; border: 1px solid {line}; border-radius: 6px;
}}
QWidget[ground="panel"] {{ background: {panel}; }}
QWidget[ground="ground"] {{ background: {ground}; }}
QWidget[ground="code"] {{ background: {code_ground}; }}
"""


#: PySide6 makes a type when it is first used. ``QPainter.fillRect`` asks whether a colour is a
#: gradient: if the type is made in the middle of that, the process sometimes crashes.
MADE_BEFORE_PAINTING = (QGradient,)

#: Arguments of the application: the style that ours is based on. ``setStyle`` takes 4 ms more.
STYLE = ("-style", "Fusion")

#: The user's choices: follow the system, or one of our themes.
SCHEMES = ("system", "light", "dark")


class ThemeNotifier(QObject):
    """Signals that the theme changed."""

    changed = Signal(object)  # The new theme.

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
    return ThemeNotifier()


def application() -> QApplication:
    """Return the application, which has been made."""
    made = QApplication.instance()
    assert isinstance(made, QApplication)
    return made


def current() -> Theme:
    return notifier().theme


def scheme() -> str:
    """Return the user's choice: one of ``SCHEMES``."""
    return notifier().scheme


def start(app: QApplication, chosen: str = "system") -> None:
    """Load the typefaces and apply a theme; call it once, before the first widget.

    Args:
        app: The application, made with `STYLE` among its arguments.
        chosen: One of ``SCHEMES``.
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

    Args:
        chosen: One of ``SCHEMES``.
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
    # Qt makes a new style of it. To change that of one takes it ten times as long, and it visits
    # objects that are no more: a style is made and left for all widgets at once, and no widget has
    # a style sheet of its own, which would keep what Qt stores for them.
    app.setStyleSheet("")
    app.setStyleSheet(stylesheet(theme._asdict()))
    notice.changed.emit(theme)


@contextmanager
def polished_at_once() -> Iterator[None]:
    """Leave the widgets made meanwhile without the style sheet until they are complete.

    With it, Qt polishes a widget and all that is in it anew each time that it gets a parent.
    """
    app = application()
    sheet = app.styleSheet()
    app.setStyleSheet("")
    try:
        yield
    finally:
        app.setStyleSheet(sheet)


def _wanted(chosen: str) -> Theme:
    dark = _system_is_dark() if chosen == "system" else chosen == "dark"
    return DARK if dark else LIGHT


def _system_is_dark() -> bool:
    from PySide6.QtCore import Qt

    return QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark


def _put_on(theme: Theme) -> None:
    app = application()
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
