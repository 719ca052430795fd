"""Set-up of all tests: no display, no settings of the user's."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import partialmethod
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

# Else each of some hundred processes compiles all modules that it imports, for two seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Before what has texts is imported: tests compare them in English, whatever the locale.
os.environ["LOWERSCOPE_LANGUAGE"] = os.environ.get("LOWERSCOPE_TEST_LANGUAGE", "en")

from lowerscope.core.ir.libraries import read_symbols
from lowerscope.core.model.processors import prepare
from tests.by_file import pytest_testnodedown, pytest_xdist_make_scheduler
from tests.diagonal import SOAK, many, off_diagonal
from tests.durations import DurationStore, longest_first, stored_durations

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication, QWidget

    from lowerscope.app.kit.background import CycleCollector
    from lowerscope.core.stages import Pipeline

__all__ = ["pytest_testnodedown", "pytest_xdist_make_scheduler"]

PATIENCE = 60_000
"""Milliseconds to wait at most for what takes milliseconds on a machine that is not busy."""

# Before torch and TVM are imported, whose threads wait by this, as they do for users.
prepare()
read_symbols()
# Collection of tests imports them, as `import_libraries` does.
gc.disable()

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


# A busy machine is no failure of a test.
hypothesis.settings.register_profile(
    "patient",
    max_examples=many(30),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("patient")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a job in the background has it, and would hand it on to what the tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    told = "store how long each file takes in tests/durations.json, by which files are ordered"
    parser.addoption("--store-durations", action="store_true", help=told)


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if config.getoption("--store-durations") and not is_worker:
        config.pluginmanager.register(DurationStore())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if SOAK:
        for item in items:
            item.add_marker(pytest.mark.timeout(0))
    else:
        left_out = set(off_diagonal(items))
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]
    longest_first(items, stored_durations())


def pytest_collection_finish() -> None:
    # What is imported stays: 400,000 objects of torch and TVM, which each collection would visit.
    gc.collect()
    gc.freeze()
    # Tracing and translating make many objects, few of them in cycles: by Python's own threshold,
    # collections take a twentieth of the time.
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


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


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    """Return what answers queries in process, with one cache for the tests of a file."""
    from lowerscope.core.stages import Pipeline

    return Pipeline()


@pytest.fixture(scope="session")
def qapp_args() -> list[str]:
    """Return the arguments of the tests' application, which has the style of the real one."""
    from lowerscope.app.kit import theme

    return ["tests", *theme.STYLE]


@pytest.fixture(scope="session")
def qapp(qapp: QApplication) -> QApplication:
    """Collect cycles in the thread of the tests alone, as `start.make_window` does."""
    global _cycles
    from lowerscope.app.kit.background import CycleCollector

    _cycles = CycleCollector(qapp)
    _refuse_file_dialogs()
    return qapp


_cycles: CycleCollector | None = None


def _refuse_file_dialogs() -> None:
    """Fail where a file dialog opens that the test does not answer: its event loop never ends."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a file dialog was opened, which the test does not answer")

    for name in ("getOpenFileName", "getOpenFileNames", "getSaveFileName", "getExistingDirectory"):
        setattr(QFileDialog, name, staticmethod(refuse))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Iterator[None]:
    yield
    # Most tests have no event loop that would do so. What is to be deleted goes first: a window
    # that Python finds in a cycle, while Qt still has it, is taken to pieces in any order.
    if _cycles is not None:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        _cycles.collect()


class PatientBot(QtBot):
    """Waits for as long as a busy machine may take, and holds on to the widgets of the test.

    By itself it gives up after 5 s, and refers to widgets weakly: a window of which a test has the
    only reference is left to Python's collector when the test ends, before it is closed. If that
    runs then, it takes the window to pieces while it is shown, and the process crashes.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        super().__init__(request)
        self._widgets: list[QWidget] = []

    def addWidget(self, widget: QWidget, **options: Any) -> None:
        super().addWidget(widget, **options)
        self._widgets.append(widget)

    waitUntil = partialmethod(QtBot.waitUntil, timeout=PATIENCE)
    waitSignal = partialmethod(QtBot.waitSignal, timeout=PATIENCE)
    waitSignals = partialmethod(QtBot.waitSignals, timeout=PATIENCE)
    waitExposed = partialmethod(QtBot.waitExposed, timeout=PATIENCE)
    waitActive = partialmethod(QtBot.waitActive, timeout=PATIENCE)


@pytest.fixture
def qtbot(qapp: object, request: pytest.FixtureRequest) -> QtBot:
    """Return what presses, types and waits, with patience."""
    return PatientBot(request)
