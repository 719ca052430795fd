"""Numbers that no machine holds, as they may be typed anywhere: refused in words, never raised."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lowerscope.app.panes.steps.pass_dialog import option_value
from lowerscope.core.engine.protocol import ProtocolError, to_raw
from lowerscope.core.files.sources import check_input, parse_input
from lowerscope.core.model.dimensions import parse_dimension
from lowerscope.core.model.machines import parse_bytes, tracker_address
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.snapshot import PassOption

DIGITS = ("99999999999999999999", "9" * 5000)


def read_option(kind: str) -> Callable[[str], object]:
    option = PassOption(name="option", kind=kind)  # type: ignore[arg-type]
    return lambda text: option_value(option, text)


def read_input(text: str) -> None:
    check_input(parse_input(text), text)


@pytest.mark.parametrize("digits", DIGITS, ids=("20", "5000"))
@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_input, "x=1,{}:float32"),
        (read_input, "x=4:int64[0,{})"),
        (read_input, "x=values.npz#{}"),
        (parse_dimension, "batch=1..{}"),
        (tracker_address, "host:{}"),
        (parse_bytes, "{} GB"),
        (read_option("int"), "-{}"),
        (read_option("float"), "1e{}"),
    ],
)
def test_a_number_that_is_too_large_is_refused(
    read: Callable[[str], object], text: str, digits: str
) -> None:
    with pytest.raises((LowerscopeError, ValueError), match=r"[a-z]{3}") as raised:
        read(text.format(digits))
    assert "exceeds the limit" not in str(raised.value).lower()


def test_what_has_no_encoding_is_an_error_of_the_protocol() -> None:
    for value in (2**70, "\ud800"):
        with pytest.raises(ProtocolError):
            to_raw(value)
