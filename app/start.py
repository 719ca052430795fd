"""Start of the window: options, missing libraries, fonts, and the first paint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from lowerscope.app.window import MainWindow
    from lowerscope.core.recipe import Recipe


def open_window(arguments: Sequence[str]) -> int:
    """Open the window and stay until it is closed; return the exit code."""
    from lowerscope.core.command_line.console import say

    # Slow imports are made where they are needed: the window comes first.
    recipe, session = None, ""
    handed_over = list(arguments) == ["--handed-over"]
    if handed_over:
        from lowerscope.app.handing import take_model

        recipe = take_model()
        if recipe is None:
            return 2
    elif arguments:
        from lowerscope.core.errors import LowerscopeError

        try:
            session = _session_of(arguments)
            recipe = None if session else _recipe_of(arguments)
        except LowerscopeError as error:
            say(error.problem.line())
            return 2
    from lowerscope.app.system_libraries import explain_missing_libraries

    missing = explain_missing_libraries()
    if missing:
        say(missing)
        return 2
    application, window = make_window(recipe, session)
    from lowerscope.app.widgets.dialog import FRAME

    # Not every desktop keeps a window within a small or scaled screen.
    window.resize(window.size().boundedTo(window.screen().availableSize() - FRAME))

    def begin() -> None:
        from lowerscope.app.interrupt import end_on_interrupt

        end_on_interrupt(application)
        window.begin(recipe, session)
        application.commitDataRequest.connect(window.sessions.save_for_log_out)
        application.saveStateRequest.connect(window.sessions.say_how_to_start)
        if handed_over:
            from lowerscope.app.handing import say_shown

            say_shown()

    window.painted.connect(begin)
    return application.exec()


def make_window(recipe: Recipe | None = None, session: str = "") -> tuple[QApplication, MainWindow]:
    """Create the application and show its window, in which a recipe or a session will be opened.

    ``window.begin`` completes the window and starts the engine.
    """
    from PySide6.QtWidgets import QApplication

    from lowerscope.app import theme
    from lowerscope.app.background import CycleCollector
    from lowerscope.app.settings import Settings
    from lowerscope.app.window import MainWindow

    settings = Settings()
    if settings.scale() and "QT_SCALE_FACTOR" not in os.environ:
        # Qt reads only this variable, when the application is created.
        os.environ["QT_SCALE_FACTOR"] = str(settings.scale() / 100)
    application = QApplication(["lowerscope", *theme.STYLE])
    application.setApplicationName("Lowerscope")
    CycleCollector(application)
    if settings.code_pixels():
        theme.set_code_pixels(settings.code_pixels())
    theme.start(application, settings.scheme())
    window = MainWindow(welcome=recipe is None and not session)
    window.show()
    return application, window


def _session_of(arguments: Sequence[str]) -> str:
    """Return the session file, or the archive of one, to open; empty for none."""
    from pathlib import Path

    from lowerscope.core.user_paths import check_readable

    if len(arguments) != 1 or not arguments[0].endswith((".lowerscope", ".zip")):
        return ""
    check_readable(Path(arguments[0]), "session")
    return arguments[0]


def _recipe_of(arguments: Sequence[str]) -> Recipe | None:
    if not arguments:
        return None
    from importlib.metadata import version

    from lowerscope.core.cli import COMMANDS
    from lowerscope.core.command_line import recipe_options
    from lowerscope.core.command_line.recipe_options import recipe_from
    from lowerscope.core.recipe_paths import with_absolute_paths
    from lowerscope.core.sources.spec import source_kind, source_path

    _check_command(arguments[0], COMMANDS)
    parser = recipe_options.OneLineParser(
        prog="lowerscope",
        description="A debugger for lowering: see and steer how a PyTorch model becomes machine"
        " code in Apache TVM.",
        epilog=f"Without a window: lowerscope {' | '.join(COMMANDS)} (each has --help).",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('lowerscope')}")
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

    from lowerscope.core.errors import LowerscopeError

    close = get_close_matches(word, commands, 1)
    if close and word.isalpha() and not os.path.exists(word):
        raise LowerscopeError(
            f"there is no command {word!r}", todo=f"Did you mean lowerscope {close[0]}?"
        )
