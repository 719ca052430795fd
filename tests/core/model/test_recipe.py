"""The recipe as a value and as a file."""

from __future__ import annotations

import msgspec
import pytest

from lowerscope.core.model.recipe import (
    InputSpec,
    Override,
    Recipe,
    Source,
    Step,
    from_json,
    to_json,
)
from lowerscope.core.model.tolerances import Tolerance, Tolerances

FULL = Recipe(
    source=Source(spec="model.py", entry="Net", args='{"width": 3}', params="p.pkl", trust=True),
    seed=7,
    inputs=(InputSpec(name="x", shape=(1, 3), dtype="int64", low=0, high=9),),
    tracer="export",
    lowering="te",
    overrides=(Override(pattern="layer1.*", strategy="library"),),
    steps=(
        Step(name="LegalizeOps", on=False),
        Step(name="FuseOps", options={"fuse_opt_level": 1, "patterns": ("a", "b")}),
    ),
    tolerances=Tolerances(float16=Tolerance(1e-3, 0.0)),
    target="native",
    threads=2,
)


def test_a_recipe_survives_its_file() -> None:
    assert from_json(to_json(FULL)) == FULL


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("{}", "source"),
        ('{"source": {"spec": "a"}, "lowering": "fast"}', "lowering"),
        ('{"source": {"spec": "a"}, "seed": "one"}', "seed"),
        (
            '{"source": {"spec": "a"}, "overrides": [{"pattern": "a", "strategy": "b"}]}',
            r"overrides\[0\].strategy|overrides\[...\].strategy",
        ),
    ],
)
def test_what_is_no_recipe_is_refused_with_the_field(text: str, field: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=field):
        from_json(text)


def test_a_file_with_one_tolerance_for_all_dtypes_is_read() -> None:
    old = (
        '{"source": {"spec": "a"}, "version": 1, "seed": 3, "tolerances": {"rtol": %s, "atol": %s}}'
    )
    assert from_json(old % (1e-4, 1e-5)) == Recipe(source=Source(spec="a"), seed=3)
    chosen = from_json(old % (1e-3, 1e-6))
    assert chosen.tolerances.float32 == Tolerance(1e-3, 1e-6)
    # As it was then: no closer than four units in the last place.
    assert chosen.tolerances.float16 == Tolerance(4 * 2.0**-10, 0.4 * 2.0**-10)
    assert from_json(to_json(chosen)) == chosen
    with pytest.raises(msgspec.ValidationError, match="lowering"):
        from_json(
            '{"source": {"spec": "a"}, "version": 1, "tolerances": {"rtol": 1}, "lowering": 1}'
        )
