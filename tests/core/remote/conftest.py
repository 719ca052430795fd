"""A tracker and a server that the tests of a folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.remote_servers import Farm


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """Return a tracker with one server."""
    farm = Farm(tmp_path_factory.mktemp("farm"))
    try:
        farm.add()
        yield farm
    finally:
        farm.close()
