"""Text of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from lowerscope.core.model.formatting import (
    bytes_text,
    duration_text,
    durations_text,
    error_text,
    figure_text,
    operations_text,
    ratio_text,
    seconds_text,
    shape_text,
    share_text,
)
from lowerscope.core.model.machines import parse_bytes
from tests.catalogue import catalogues, read

TABLES: dict[Callable[..., str], dict[object, str]] = {
    bytes_text: {
        0: "0 B",
        999: "999 B",
        1000: "1 kB",
        401_408: "401 kB",
        999_499: "999 kB",
        # No exponent, and not 1000 of a unit.
        999_500: "1 MB",
        1_500_000_000: "1.5 GB",
        10**15: "1,000 TB",
    },
    operations_text: {12: "12 FLOP", 231_400_000: "231 MFLOP", 3 * 10**15: "3,000 TFLOP"},
    duration_text: {
        None: "–",
        0.0: "0 ms",
        0.00032: "320 ns",
        0.0123: "12.3 µs",
        0.9996: "1 ms",
        1.234: "1.23 ms",
        123.4: "123 ms",
        999.6: "1 s",
        4500.0: "4.5 s",
        40_000.0: "40 s",
        99_949.0: "99.9 s",
        99_951.0: "1 min 40 s",
        3_599_600.0: "1 h 0 min",
        4_800_000.0: "1 h 20 min",
    },
    seconds_text: {None: "–", 1e-6: "1 µs", 2.5: "2.5 s"},
    ratio_text: {
        0.0123: "0.0123×",
        0.5: "0.500×",
        1.8: "1.80×",
        9.999: "10.0×",
        12.34: "12.3×",
        999.6: "1,000×",
        12_345.6: "12,346×",
    },
    error_text: {
        None: "–",
        0.0: "0",
        2.1e-07: "2.1e-07",
        0.0123: "0.012",
        3.0: "3.0",
        51_234.0: "5.1e+04",
        math.inf: "∞",
        math.nan: "∞",
    },
    figure_text: {None: "–", 0.01234: "0.0123", 123.4: "123", 999.6: "1,000", 12_345.6: "12,346"},
    shape_text: {None: "", (): "scalar", (1, 784): "1×784", ("n + 1", 4): "(n + 1)×4"},
}


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [(function, *row) for function, table in TABLES.items() for row in table.items()],
)
def test_numbers_as_text(function: Callable[[object], str], value: object, text: str) -> None:
    assert function(value) == text


def test_an_estimated_ratio_is_marked() -> None:
    assert ratio_text(1.8, about=True) == "≈ 1.80×"


def test_a_range_of_durations_has_its_unit_once() -> None:
    assert durations_text(1.2, 1.4) == "1.2 – 1.4 ms"
    assert durations_text(0.9, 1.4) == "900 µs – 1.4 ms"
    assert durations_text(1.201, 1.202) == "1.2 ms"


@pytest.mark.parametrize("count", [0, 999, 2_000, 1_500_000, 3_000_000_000])
def test_a_size_is_read_as_it_is_written(count: int) -> None:
    assert parse_bytes(bytes_text(count)) == count


def test_a_size_with_an_i_is_binary() -> None:
    assert parse_bytes("4 GiB") == 4 << 30
    assert parse_bytes("4g") == 4_000_000_000


def test_a_part_is_neither_nothing_nor_all() -> None:
    shares = 0.0, 0.0001, 0.1234, 0.99996, 1.0
    assert [share_text(each) for each in shares] == ["0.0%", "< 0.1%", "12.3%", "> 99.9%", "100.0%"]


def test_an_estimated_ratio_has_its_mark_in_its_place_in_chinese() -> None:
    # From the catalogue itself: compiled ones are made by the build.
    (path,) = (each for each in catalogues() if "zh_CN" in each.parts)
    texts = {each.id: each.string for each in read(path)}
    ratio = texts["≈ {digits}×"].format(digits="1.80")
    assert texts["{ratio} faster"].format(ratio=ratio) == "速度 ≈ 1.80×"
    slower = texts["{ratio} slower than {name}"].format(ratio=ratio, name="torch")
    assert slower == "耗时为 torch 的 ≈ 1.80×"
