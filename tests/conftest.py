"""What all tests share: no display, no settings of the user's."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from functools import partialmethod

import pytest
from pytestqt.qtbot import QtBot
from xdist.remote import Producer
from xdist.workermanage import WorkerController

from lowerscope.core.execution.environment import prepare
from tests.by_file import ByFile, exit_text
from tests.longest_first import longest_first

PATIENCE = 60_000
"""Milliseconds to wait at most for what takes milliseconds on a machine that is not busy."""

# Before torch and TVM are imported, whose threads wait by this, as they do for users.
prepare()

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
if "SECOND_DISPLAY" in os.environ and os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579":
    # Of two files at a time each has a display, and its keyboard, for itself.
    os.environ["DISPLAY"] = os.environ["SECOND_DISPLAY"]


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a job in the background has it, and would hand it on to what the tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController, error: object) -> None:
    if error:
        print(f"\n{node.gateway.id} was lost: {exit_text(node)}", flush=True)


@pytest.fixture(scope="session", autouse=True)
def _own_settings() -> Iterator[None]:
    """Keep the tests away from the settings and caches of whoever runs them."""
    with tempfile.TemporaryDirectory() as folder:
        patch = pytest.MonkeyPatch()
        patch.setenv("XDG_CONFIG_HOME", folder)
        patch.setenv("XDG_CACHE_HOME", folder)
        patch.setenv("XDG_DATA_HOME", folder)
        yield
        patch.undo()


@pytest.fixture(scope="session")
def qapp_args() -> list[str]:
    """Return the arguments of the tests' application, which has the style of the real one."""
    from lowerscope.app import theme

    return ["tests", *theme.STYLE]


class PatientBot(QtBot):
    """Waits for as long as a busy machine may take; by itself it gives up after 5 s."""

    waitUntil = partialmethod(QtBot.waitUntil, timeout=PATIENCE)
    waitSignal = partialmethod(QtBot.waitSignal, timeout=PATIENCE)
    waitSignals = partialmethod(QtBot.waitSignals, timeout=PATIENCE)
    waitExposed = partialmethod(QtBot.waitExposed, timeout=PATIENCE)


@pytest.fixture
def qtbot(qapp: object, request: pytest.FixtureRequest) -> QtBot:
    """Return what presses, types and waits, with patience."""
    return PatientBot(request)
