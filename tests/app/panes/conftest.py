"""The parts of panes: with the theme and the typefaces that the window has."""

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication

from lowerscope.app.kit import theme


@pytest.fixture(autouse=True)
def _look(qapp: QApplication) -> Iterator[None]:
    theme.start(qapp, "light")
    yield
    theme.set_scheme("light")
