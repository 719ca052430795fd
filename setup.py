"""The build's one step that pyproject.toml has no table for: catalogues are compiled."""

from __future__ import annotations

from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from setuptools import setup


def compile_catalogues() -> None:
    """Write the ``.mo`` file of each catalogue beside it, for the package and the source tree."""
    for path in Path(__file__).parent.glob("resources/locale/*/LC_MESSAGES/*.po"):
        with path.open("rb") as source, path.with_suffix(".mo").open("wb") as target:
            write_mo(target, read_po(source))


compile_catalogues()
setup()
