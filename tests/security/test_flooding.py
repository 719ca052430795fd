"""A child that says far too much neither stalls the window nor fills it.

The bounds that are tested are those of what is kept and of what is handled before the window gets
to its other events.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtWidgets import QApplication, QPlainTextEdit
from pytestqt.qtbot import QtBot

from lowerscope.app.document.document import Document
from lowerscope.app.engine import children as both_children
from lowerscope.app.engine import messages, pending
from lowerscope.app.engine.child_process import LOG_LIMIT
from lowerscope.app.engine.children import Children
from lowerscope.app.engine.client import EngineClient
from lowerscope.app.engine.messages import Incoming
from lowerscope.app.engine.pending import UnreadableResult, read_result
from lowerscope.app.panes.log import log_view
from lowerscope.app.panes.log.log_view import LogView
from lowerscope.app.shell.window import MainWindow
from lowerscope.core.engine.protocol import Failure, ProtocolError, Reply, encode_frame, to_raw
from lowerscope.core.model.graph import GraphRecord
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import QUERIES, Query, answer_type
from lowerscope.core.model.snapshot import Note, Span
from tests.app.engine.practice_window import Window, practice
from tests.end_to_end.driving import PATIENCE, OpenWindow
from tests.pulse import Pulse
from tests.security import flooding_child

CHILD = str(Path(flooding_child.__file__))

TURN = 2**20
"""Bytes that a pipe can hold at most, and a window reads before it handles its other events."""


OWN_CHILDREN = True
"""No window has the children of the window before."""


@pytest.fixture
def flooded(qtbot: QtBot) -> Iterator[Callable[[str], Window]]:
    """Return a function that returns a client whose child floods it in a named way."""
    windows: list[Window] = []

    def begin(flood: str) -> Window:
        windows.append(Window(qtbot, sys.executable, CHILD, "engine", flood))
        windows[-1].client.start()
        return windows[-1]

    yield begin
    for window in windows:
        window.client.stop()


@pytest.fixture
def flooded_window(
    open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], MainWindow]:
    """Return a function that opens a source in a window whose engine floods it."""

    def begin(flood: str) -> MainWindow:
        def client(role: str, parent: Children) -> EngineClient:
            command = (sys.executable, CHILD, role, flood)
            return EngineClient(role, command=command, parent=parent)  # type: ignore[arg-type]

        monkeypatch.setattr("lowerscope.app.engine.children.EngineClient", client)
        return open_window("sample:matmul_relu", wait=False)

    return begin


def size_of(problem: Problem) -> int:
    """Return the characters of a problem."""
    lines = (problem.what, problem.where, problem.todo, problem.code, problem.details)
    return sum(map(len, (*lines, *problem.choices, *problem.calls)))


# --- problems -------------------------------------------------------------------------------------


@pytest.mark.parametrize("flood", ["huge-error", "choices", "long-choices"])
def test_a_long_problem_is_shortened(flooded: Callable[[str], Window], flood: str) -> None:
    window, sent = flooded(flood), flooding_child.problem(flood)
    problem = window.problem(window.ask("echo", practice.Text("a")))
    assert size_of(problem) < 100_000
    assert problem.code == sent.code
    assert problem.what[:10] == sent.what[:10]
    head, *_, tail = problem.details.splitlines() or ["", ""]
    assert sent.details.startswith(head)
    assert sent.details.endswith(f"{tail}\n" if tail else "")
    assert ("characters left out" in problem.details) == (len(sent.details) > 64_000)
    assert not window.endings


def test_a_problem_that_is_longer_than_can_be_held_ends_the_child(
    flooded: Callable[[str], Window],
) -> None:
    window = flooded("too-long-error")
    problem = window.problem(window.ask("echo", practice.Text("a")))
    assert problem.code == "crashed"
    assert window.endings[0].how == "garbage"
    assert f"longer than its {messages.PROBLEM_LIMIT}" in window.endings[0].reason


@pytest.mark.parametrize("name", ["what", "where", "todo", "details", "choices", "calls"])
def test_each_part_of_a_problem_is_bounded(name: str) -> None:
    long: object = "\x00é" * 3_000_000
    if name in ("choices", "calls"):
        long = ("a",) * 1_000_000
    problem = Problem(**{"what": "a", name: long})  # type: ignore[arg-type]
    (failure,) = Incoming().read(encode_frame(Failure(1, problem)))
    assert isinstance(failure, Failure)
    assert size_of(failure.problem) < 100_000


# --- progress, and messages at large --------------------------------------------------------------


def test_a_flood_of_progress_is_told_now_and_then(flooded: Callable[[str], Window]) -> None:
    window = flooded("progress")
    request = window.ask("echo", practice.Text("a"))
    assert window.result(request) == "done"
    told = window.told[request]
    assert max(map(len, told)) <= messages.PROGRESS_CHARACTERS
    assert all(text.isprintable() for text in told)
    # Of 200,000 reports, those that a turn of the event loop begins and ends with.
    assert len(told) < 5_000
    assert not window.endings


def test_more_messages_than_can_wait_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "HELD_LIMIT", 100_000)
    incoming = Incoming()
    sent = encode_frame(Reply(1, to_raw(None))) * 2_500
    assert len(list(incoming.read(sent))) == messages.MOST_MESSAGES
    with pytest.raises(ProtocolError, match="more messages"):
        incoming.read(sent)


def test_a_result_that_is_too_large_is_a_problem(flooded: Callable[[str], Window]) -> None:
    window = flooded("large")
    for _ in range(2):
        problem = window.problem(window.ask("big", practice.Count(1)))
        assert "answer to big is larger than the window can show: more than 32 MB" in problem.what
        assert problem.todo
    assert not window.endings


def test_only_an_answer_may_be_so_long(flooded: Callable[[str], Window]) -> None:
    window = flooded("wrong-kind")
    window.ask("echo", practice.Text("a"))
    window.until(lambda: bool(window.endings))
    assert f"longer than its {messages.SMALL_LIMIT}" in window.endings[0].reason


# --- results --------------------------------------------------------------------------------------

ARRAY, MAPPING = b"\xdd", b"\xdf"


def read(data: bytes, result: object) -> object:
    return read_result("The answer", msgspec.Raw(data), result)


def many(head: bytes, count: int, element: bytes) -> bytes:
    """Return a container with the same element again and again."""
    return head + count.to_bytes(4, "big") + element * count


def note(text: str) -> bytes:
    return msgspec.msgpack.encode(Note(text=text))


ROW = msgspec.msgpack.encode(Span(entity="", first=1, last=1))


@pytest.mark.parametrize(
    ("data", "result"),
    [
        pytest.param(to_raw(bytes(pending.RESULT_LIMIT)), bytes, id="bytes"),
        pytest.param(many(ARRAY, 1_000_001, b"\1"), tuple[int, ...], id="integers"),
        pytest.param(many(ARRAY, 600_000, b"\x91\1"), tuple[tuple[int, ...], ...], id="nested"),
        pytest.param(many(ARRAY, 20_001, note("")), tuple[Note, ...], id="records"),
        pytest.param(many(ARRAY, 20_001, ROW), tuple[Span, ...], id="rows"),
        pytest.param(many(ARRAY, 100_001, b"\xa0"), tuple[str, ...], id="texts"),
        pytest.param(many(MAPPING, 50_001, b"\xa1a\1"), dict[str, int], id="mapping"),
        pytest.param(note("x" * 65_537), Note, id="name"),
        pytest.param(to_raw("x" * (2**23 + 1)), str, id="text"),
        pytest.param(
            to_raw({"boxes": [], "edges": [], "width": 1e9, "height": 1.0, "title": "x" * 70_000}),
            GraphRecord,
            id="pixels",
        ),
    ],
)
def test_a_result_is_bounded_in_each_way(data: bytes, result: object) -> None:
    # Without what is bounded it is a value of its type.
    msgspec.msgpack.decode(data, type=result)
    with pytest.raises(UnreadableResult) as caught:
        read(data, result)
    assert "larger than the window can show" in caught.value.problem.what
    assert caught.value.problem.todo


@pytest.mark.parametrize("query", QUERIES.values())
def test_answers_to_all_queries_have_bounds(query: type[Query[Any]]) -> None:
    # What is no value of the type is told as such: the bounds themselves can be made of it.
    with pytest.raises(UnreadableResult, match="cannot be read"):
        read(b"\xc1" + bytes(pending.NAME_CHARACTERS), answer_type(query))


@pytest.mark.parametrize("flood", flooding_child.SNAPSHOTS)
def test_what_a_snapshot_says_does_not_stall_the_window(
    qtbot: QtBot, flooded_window: Callable[[str], MainWindow], flood: str
) -> None:
    window = flooded_window(flood)
    window.show_panes()
    pulse = Pulse()
    qtbot.waitUntil(lambda: window.document.snapshot is not None, timeout=PATIENCE)
    for _ in range(20):
        QApplication.processEvents()
    pulse.end()
    # Of the thread's own processor time. It took 2 to 10 seconds, or for ever; what a window that
    # has never shown a model imports and lays out is in it.
    assert pulse.processor < 1_500


# --- the log --------------------------------------------------------------------------------------


@pytest.fixture
def log(qtbot: QtBot) -> LogView:
    view = LogView(Document(), Children())
    qtbot.addWidget(view)
    return view


@pytest.mark.parametrize("flood", ["line", "lines"])
def test_what_is_printed_is_bounded_and_held_whole(
    flooded: Callable[[str], Window],
    log: LogView,
    flood: str,
    tmp_path: Path,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit = 2**22
    monkeypatch.setattr(both_children, "PART_LIMIT", limit)
    window = flooded(flood)
    shown: list[str] = []
    printed: list[int] = []
    window.client.log.connect(shown.append)
    window.client.log.connect(log.append_text)
    window.client.printed.connect(lambda data: printed.append(len(data)))
    window.client.printed.connect(log._children.whole_log.add)
    assert window.result(window.ask("echo", practice.Text("a"))) == "done"
    original = b"".join(b"%d\n" % number for number in range(flooding_child.LINES))
    is_line = flood == "line"
    total = flooding_child.CHUNKS * flooding_child.CHUNK if is_line else len(original)
    window.until(lambda: sum(printed) == total and bool(shown))
    assert max(printed) <= TURN
    assert max(map(len, shown)) < LOG_LIMIT + 100
    document = log.document()
    assert document.characterCount() <= log_view.MOST_CHARACTERS
    assert document.blockCount() <= log_view.MOST_LINES
    text = log.toPlainText()
    assert max(map(len, text.splitlines()), default=0) < log_view.LINE_CHARACTERS + 10
    assert all(each.isprintable() for line in text.splitlines() for each in line)
    held = log._children.whole_log
    assert held.held <= 2 * limit
    assert (held.dropped > 0) == is_line
    assert held.held + held.dropped == total
    file = tmp_path / "log"
    with qtbot.waitSignal(log.saving.done, timeout=PATIENCE):
        log.saving.save(file, held.text)
    if is_line:
        assert file.stat().st_size >= limit
    else:
        assert file.read_bytes() == original


# --- the window -----------------------------------------------------------------------------------


@pytest.mark.parametrize("flood", ["huge-error", "empty-lines"])
def test_the_window_goes_on_in_a_flood(
    qtbot: QtBot, flooded_window: Callable[[str], MainWindow], flood: str
) -> None:
    window = flooded_window(flood)
    document = window.document
    # What the child answers is no model, or a problem: either is told.
    qtbot.waitUntil(lambda: bool(document.problems), timeout=PATIENCE)
    assert size_of(document.problems[0]) < 100_000
    assert len(document.job.text) <= messages.PROGRESS_CHARACTERS
    assert window.panes.log.document().characterCount() <= log_view.MOST_CHARACTERS
    details = window.panes.problems.findChild(QPlainTextEdit)
    # A problem without details has no field for them.
    assert (details is not None) == bool(document.problems[0].details)
    if details is not None:
        assert details.document().characterCount() < 70_000
    window.close()
