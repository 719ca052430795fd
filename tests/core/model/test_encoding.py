"""Records as bytes and JSON, with texts of TVM's own class in them."""

from __future__ import annotations

import json

import msgspec
import pytest
from tvm import tirx

from lowerscope.core.model.encoding import to_bytes, to_json
from lowerscope.core.model.snapshot import Note, Span, TextRecord


def test_texts_that_tvm_makes_are_written_as_what_they_say() -> None:
    text = str(tirx.Var("n", "int64"))
    assert type(text) is not str
    record = Note(text=text)
    with pytest.raises(TypeError):
        msgspec.msgpack.encode(record)
    assert msgspec.msgpack.decode(to_bytes(record), type=Note).text == "n"
    assert json.loads(to_json(record))["text"] == "n"


def test_what_is_no_plain_value_is_refused() -> None:
    with pytest.raises(TypeError, match="of the type object"):
        to_bytes((object(),))


def test_rows_have_their_field_names_in_json_and_none_on_the_wire() -> None:
    text = TextRecord(text="a", language="", spans=(Span(entity="fx:a", first=1, last=2),))
    assert json.loads(to_json([text]))[0]["spans"] == [{"entity": "fx:a", "first": 1, "last": 2}]
    assert b"entity" not in to_bytes(text)
    assert msgspec.msgpack.decode(to_bytes(text), type=TextRecord) == text
