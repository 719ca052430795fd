"""The parts of panes: with the theme and the typefaces that the window has."""

from tests.app.kit.conftest import _look

__all__ = ["_look"]
