"""Start of the window: options, missing libraries, fonts, and the first paint."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lowerscope.core.model.texts import VARIABLE, _, language, set_language

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from lowerscope.app.shell.window import MainWindow
    from lowerscope.core.model.recipe import Recipe


def open_window(arguments: Sequence[str]) -> int:
    """Open the window and stay until it is closed; return the exit code."""
    from lowerscope.app.document.settings import Settings

    if VARIABLE not in os.environ and (chosen := Settings().language):
        set_language(chosen)
    # Slow imports are made where they are needed: the window comes first.
    recipe, session = None, ""
    handed_over = list(arguments) == ["--handed-over"]
    if handed_over:
        from lowerscope.app.engine.embedded_start import take_model

        recipe = take_model()
        if recipe is None:
            return 2
    elif arguments:
        from lowerscope.core.model.problems import LowerscopeError

        try:
            session = _session_of(arguments)
            recipe = None if session else _recipe_of(arguments)
        except LowerscopeError as error:
            return _refuse(error.problem.line())

    missing = explain_missing_libraries()
    if missing:
        return _refuse(missing)
    application, window = make_window(recipe, session)

    def begin() -> None:
        end_on_interrupt(application)
        window.begin(recipe, session)
        application.commitDataRequest.connect(window.sessions.save_for_log_out)
        application.saveStateRequest.connect(window.sessions.say_how_to_start)
        if handed_over:
            from lowerscope.app.engine.embedded_start import say_shown

            say_shown()

    window.painted.connect(begin)
    return application.exec()


def _refuse(text: str) -> int:
    from lowerscope.core.files.console import say

    say(text)
    return 2


def make_window(recipe: Recipe | None = None, session: str = "") -> tuple[QApplication, MainWindow]:
    """Create the application and show its window, in which a recipe or a session will be opened.

    ``window.begin`` completes the window and starts the engine.
    """
    from PySide6.QtWidgets import QApplication

    from lowerscope.app.document.settings import Settings
    from lowerscope.app.kit import theme
    from lowerscope.app.kit.background import CycleCollector
    from lowerscope.app.kit.layouts import FRAME
    from lowerscope.app.shell.window import MainWindow

    settings = Settings()
    if settings.scale and "QT_SCALE_FACTOR" not in os.environ:
        # Qt reads only this variable, when the application is created.
        os.environ["QT_SCALE_FACTOR"] = str(settings.scale / 100)
    application = QApplication(["lowerscope", *theme.STYLE])
    application.setApplicationName("Lowerscope")
    _translate_qt(application)
    CycleCollector(application)
    if settings.code_pixels:
        theme.set_code_pixels(settings.code_pixels)
    theme.start(application, settings.scheme)
    window = MainWindow(welcome=recipe is None and not session)
    # Not every desktop keeps a window within a small or scaled screen.
    window.resize(window.size().boundedTo(window.screen().availableSize() - FRAME))
    window.show()
    return application, window


def _translate_qt(application: QApplication) -> None:
    """Set the language of the buttons and menus that Qt makes by itself."""
    from PySide6.QtCore import QLibraryInfo, QLocale, QTranslator

    class Missing(QTranslator):
        """Texts of Qt's file dialog that its own translation lacks."""

        def isEmpty(self) -> bool:
            return False

        def translate(self, _context: str, text: str, *_args: object) -> str | None:
            # Qt takes an empty text for a translation, and asks no other translator.
            return texts.get(text)

    QLocale.setDefault(QLocale(language()))
    translator = QTranslator(application)
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if translator.load(f"qtbase_{language()}", folder):
        texts = {
            "&Look in:": _("&Look in:"),
            "Files of &type:": _("Files of &type:"),
            "Folder": _("Folder"),
        }
        application.installTranslator(translator)
        application.installTranslator(Missing(application))


def _session_of(arguments: Sequence[str]) -> str:
    """Return the session file to open; empty for none."""
    from pathlib import Path

    from lowerscope.core.files.paths import check_readable

    if len(arguments) != 1 or not arguments[0].endswith(".lowerscope"):
        return ""
    check_readable(Path(arguments[0]))
    return arguments[0]


def _recipe_of(arguments: Sequence[str]) -> Recipe | None:
    if not arguments:
        return None
    from importlib.metadata import version

    from lowerscope.core.cli import recipe_options
    from lowerscope.core.cli.main import COMMANDS
    from lowerscope.core.cli.recipe_options import recipe_from
    from lowerscope.core.files.sources import source_kind, source_path, with_absolute_paths

    _check_command(arguments[0], COMMANDS)
    parser = recipe_options.OneLineParser(
        prog="lowerscope",
        description=_(
            "A debugger for lowering: see and steer how a PyTorch model becomes machine"
            " code in Apache TVM."
        ),
        epilog=_(
            "Without a window: lowerscope {commands} (each has --help).",
            commands=" | ".join(COMMANDS),
        ),
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"%(prog)s {version('lowerscope')}",
        help=_("print the version and exit"),
    )
    parser.add_argument("source", nargs="?", default=None, help=recipe_options.SOURCE_HELP)
    recipe_options.add_recipe_options(parser)
    options = parser.parse_args(arguments)
    if options.source is None:
        return None
    # The window stores it, and may be started from another folder next time.
    recipe = with_absolute_paths(recipe_from(options))
    # A mistyped name is reported in the terminal.
    source_kind(source_path(recipe.source.spec))
    return recipe


def _check_command(word: str, commands: Sequence[str]) -> None:
    """Raise a `LowerscopeError` if a word is an unknown command."""
    from difflib import get_close_matches

    from lowerscope.core.model.problems import LowerscopeError

    close = get_close_matches(word, commands, 1)
    if close and word.isalpha() and not os.path.exists(word):
        raise LowerscopeError(
            _("there is no command {word!r}", word=word),
            todo=_("Did you mean lowerscope {close}?", close=close[0]),
        )


# --- Closing the window on Ctrl+C in the terminal and on log-out ---
#
# The document is saved then, as always when a window is closed.


def end_on_interrupt(application: QApplication) -> None:
    """Close the windows when the process gets SIGINT or SIGTERM, or its terminal is closed.

    Python runs its signal handlers between two bytecode instructions, whatever is running, and not
    while Qt waits. So the signal only writes to a socket that Qt watches.
    """
    import signal
    import socket

    from PySide6.QtCore import QSocketNotifier

    closed = () if sys.platform == "win32" else (signal.SIGHUP,)
    ending = (signal.SIGINT, signal.SIGTERM, *closed)
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    notifier = QSocketNotifier(reader.fileno(), QSocketNotifier.Type.Read, application)

    def end() -> None:
        if set(reader.recv(64)) & set(ending):
            application.closeAllWindows()

    notifier.activated.connect(end)
    # Both ends must live as long as the notifier.
    notifier.setProperty("sockets", (reader, writer))
    signal.set_wakeup_fd(writer.fileno())

    def leave_to_qt(_number: int, _frame: object) -> None:
        """Do nothing: the wakeup socket carries the signal."""

    for number in ending:
        signal.signal(number, leave_to_qt)


# --- System libraries that Qt needs: checked before Qt aborts for lack of one ---

# Libraries by the name the loader uses, with the Debian package of each.
ALWAYS = {
    "libglib-2.0.so.0": "libglib2.0-0",
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
}
ON_X11 = {
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libX11-xcb.so.1": "libx11-xcb1",
}


def explain_missing_libraries() -> str:
    """Return which packages to install, or which display is missing; empty if nothing is."""
    if not sys.platform.startswith("linux"):
        return ""
    platform = os.environ.get("QT_QPA_PLATFORM", "").split(":")[0]
    wayland = bool(os.environ.get("WAYLAND_DISPLAY")) and platform != "xcb"
    on_x11 = platform == "xcb" or (platform == "" and not wayland)
    needed = ALWAYS | (ON_X11 if on_x11 else {})
    missing = {name: package for name, package in needed.items() if not _loads(name)}
    if missing:
        return _(
            "Qt needs {missing}, which this system lacks. Install with: apt-get install {sorted}",
            missing=_(", ").join(missing),
            sorted=" ".join(sorted(set(missing.values()))),
        )
    if on_x11 and not os.environ.get("DISPLAY"):
        return _(
            "there is no display to open a window on (DISPLAY is not set)."
            " Use the commands samples, show, run, export and rule, or start a virtual display:"
            " xvfb-run lowerscope …"
        )
    return ""


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
