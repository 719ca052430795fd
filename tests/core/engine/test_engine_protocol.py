"""Frames and messages: whatever way a stream is split, and whatever else is in it."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowerscope.core.engine.protocol import (
    FRAME_LIMIT,
    MAGIC,
    TO_WINDOW,
    VERSION,
    Failure,
    FrameReader,
    Hello,
    Progress,
    ProtocolError,
    Ready,
    Reply,
    ToWindow,
    encode_frame,
    failure_of,
    reply_to,
    to_raw,
)
from lowerscope.core.model import texts
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.module_steps import ComparedModule, Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import QUERIES, DifferenceQuery, RunQuery, TextQuery, answer_type
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.texts import Text, english, keep_english

IDS = st.integers(min_value=0, max_value=2**53)
VALUES = st.recursive(
    st.none() | st.text() | st.binary() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
MESSAGES = st.one_of(
    st.builds(Hello, st.integers(0, 9), IDS, st.text()),
    st.builds(Ready, st.floats(allow_nan=False)),
    st.builds(Reply, IDS, VALUES.map(to_raw)),
    st.builds(Failure, IDS, st.builds(lambda text: Problem(what=text), st.text())),
    st.builds(Progress, IDS, st.text(), st.none() | st.floats(0, 1)),
)


def plain(message: ToWindow) -> object:
    """Return `message` as something that compares by content; `Raw` compares by identity."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(message))


def read_in_pieces(stream: bytes, cuts: list[int]) -> list[ToWindow]:
    reader = FrameReader(TO_WINDOW)
    borders = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    messages = []
    for first, last in itertools.pairwise(borders):
        messages += reader.feed(stream[first:last])
    return messages


@given(st.lists(MESSAGES, max_size=6), st.lists(st.integers(0, 2**16), max_size=12))
def test_messages_arrive_however_the_stream_is_split(
    messages: list[ToWindow], cuts: list[int]
) -> None:
    stream = b"".join(map(encode_frame, messages))
    arrived = read_in_pieces(stream, cuts)
    assert [plain(each) for each in arrived] == [plain(each) for each in messages]


def test_messages_that_are_spoilt_are_messages_or_an_error() -> None:
    random = Random(0)
    messages = (
        Hello(VERSION, 1, "engine"),
        Failure(3, Problem(what="grüße", choices=("a", "b"))),
        Progress(2, "Tracing", 0.5),
        Reply(1, to_raw({"a": [1.5, None, {"b": b"bytes"}]})),
    )
    errors = 0
    for _ in range(500):
        stream = bytearray(encode_frame(random.choice(messages)))
        for _ in range(random.randint(1, 6)):
            stream[random.randrange(8, len(stream))] = random.randrange(256)
        try:
            list(FrameReader(TO_WINDOW).feed(bytes(stream)))
        except ProtocolError:
            errors += 1
    assert errors > 300


def test_random_bytes_are_no_result_of_any_method() -> None:
    random = Random(0)
    for _ in range(500):
        data = random.randbytes(random.randint(0, 60))
        for kind in QUERIES.values():
            with contextlib.suppress(*UNREADABLE):
                msgspec.msgpack.decode(data, type=answer_type(kind))


def test_a_frame_that_claims_too_much_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="bytes long"):
        list(FrameReader(TO_WINDOW).feed(MAGIC + (FRAME_LIMIT + 1).to_bytes(4, "big")))


def test_only_the_worker_runs_code() -> None:
    recipe = Recipe(source=Source(spec="sample:fashion_mlp"))
    assert RunQuery(recipe).child == "worker"
    for view in ("bytecode", "llvm", "asm"):
        assert TextQuery(recipe, "main", view).child == "worker"
    built = ComparedModule(recipe=recipe, moment=Moment(section="build", index=1))
    assert DifferenceQuery(ComparedModule(recipe=recipe), built).child == "worker"
    assert (
        DifferenceQuery(ComparedModule(recipe=recipe), ComparedModule(recipe=recipe)).child
        == "engine"
    )


def test_the_protocol_and_the_server_import_neither_torch_nor_tvm() -> None:
    code = (
        "import sys, lowerscope.core.engine.protocol, lowerscope.core.engine.server;"
        "print(*(name for name in ('torch', 'tvm', 'PySide6') if name in sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.strip() == ""


def test_texts_of_a_child_keep_their_english_in_the_window() -> None:
    text = Text("差异出自第一个调用")
    text.english = "first differs at this call"
    sent = (reply_to(1, ((text,), {"a": text})), failure_of(2, Problem(what=text)))
    received = list(FrameReader(TO_WINDOW).feed(b"".join(map(encode_frame, sent))))
    for message in received:
        assert isinstance(message, Reply | Failure)
        assert message.english == {str(text): text.english}
        keep_english(message.english)
    assert english(str(text)) == text.english
    assert isinstance(received[1], Failure)
    assert received[1].problem.what == text


def test_a_child_cannot_fill_the_window_with_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, str] = {}
    monkeypatch.setattr(texts, "_received", kept)
    long = "中" * (texts.LONGEST_RECEIVED + 1)
    keep_english({long: "short", "短": long})
    assert kept == {}
    for begin in range(0, 3 * texts.MOST_RECEIVED, texts.MOST_RECEIVED):
        keep_english({f"文{begin + number}": "text" for number in range(texts.MOST_RECEIVED)})
    assert len(kept) == texts.MOST_RECEIVED
