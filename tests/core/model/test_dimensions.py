"""Named dimensions on the command line: ranges, sizes, and what is wrong with them."""

from __future__ import annotations

import pytest

from lowerscope.core.cli.main import main
from lowerscope.core.files.sources import parse_input
from lowerscope.core.model.dimensions import (
    parse_dimension,
    parse_sizes,
    runs_of,
    traced_sizes,
    with_sizes,
)
from lowerscope.core.model.recipe import Dimension, Recipe, Source


def recipe_of(inputs: tuple[str, ...], dims: tuple[str, ...], *sizes: str) -> Recipe:
    return Recipe(
        source=Source(spec="net.py"),
        inputs=tuple(map(parse_input, inputs)),
        dimensions=with_sizes(map(parse_dimension, dims), map(parse_sizes, sizes)),
    )


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("batch=1..64", 1, 64),
        ("batch = 2 .. 9", 2, 9),
        ("batch=4..", 4, 1024),
        ("batch=..64", 1, 64),
        ("batch=5000..", 5000, 5000 + 1024),
    ],
)
def test_a_range_may_leave_out_an_end(text: str, low: int, high: int) -> None:
    assert parse_dimension(text) == Dimension(name="batch", low=low, high=high)


@pytest.mark.parametrize(
    ("inputs", "dims", "sizes"),
    [
        (("x=batch,784",), ("batch=1..64",), {"batch": 5}),
        (("x=batch,5",), ("batch=1..64",), {"batch": 7}),
        (("x=a,b,c",), ("a=1..64", "b=1..64", "c=1..64"), {"a": 5, "b": 7, "c": 11}),
        (("x=batch,784",), ("batch=1..2",), {"batch": 2}),
        (("x=batch,784",), ("batch=100..200",), {"batch": 101}),
    ],
)
def test_the_traced_size_is_like_no_other(
    inputs: tuple[str, ...], dims: tuple[str, ...], sizes: dict[str, int]
) -> None:
    assert traced_sizes(recipe_of(inputs, dims)) == sizes


def test_the_default_runs_end_where_the_inputs_would_be_very_large() -> None:
    recipe = recipe_of(("x=batch,3,224,224",), ("batch=1..1024",))
    assert runs_of(recipe) == ({"batch": 5}, {"batch": 1})
    assert runs_of(recipe_of(("x=batch,784",), ("batch=1..1024",)))[-1] == {"batch": 64}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dim", "batch"], "--dim batch: this is not a name with a range"),
        (["--dim", "batch=1"], "this is not a name with a range"),
        (["--dim", "batch=one..2"], "'one' is not a number"),
        (["--dim", "batch=64..1"], "64 is more than 1"),
        (["--dim", "batch=0..4"], "0..4 is not within 1.."),
        (["--dim", "batch=4..4"], "4 in the shape in place of batch"),
        (["--dim", "n=1..4"], "no input has a dimension called n"),
        (["--dim", "batch=1..4", "--dim", "batch=1..5"], "batch is given twice"),
        (["--sizes", "batch=1", "--sizes", "batch=2"], "batch is given twice"),
        (["--sizes", "batch"], "this is not a name with sizes"),
        (["--sizes", "batch=2000"], "batch = 2000 is outside 1..1024"),
        (["--sizes", "n=2"], "no input has a dimension called n"),
        (["--sizes", "batch=1,2", "--sizes", "seq=1,2,3"], "seq has 3 sizes to run at"),
        (["--input", "y=for,2"], "'for' cannot be the name of a dimension"),
        (["--input", "y=x.npy@batch,2"], "any size, and a file has one"),
    ],
)
def test_what_is_wrong_is_one_line_before_anything_is_opened(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(["run", "net.py", "--input", "x=batch,seq:float32", *options]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]
