"""The recipe as a value and as a file."""

from __future__ import annotations

import msgspec
import pytest

from lowerscope.core.recipe import InputSpec, Override, Recipe, Source, Step, from_json, to_json

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
    target="native",
    threads=2,
)


def test_a_recipe_survives_its_file() -> None:
    assert from_json(to_json(FULL)) == FULL


def test_equal_recipes_have_equal_hashes() -> None:
    assert hash(from_json(to_json(FULL))) == hash(FULL)


def test_a_minimal_file_has_the_defaults() -> None:
    text = '{"source": {"spec": "sample:conv_net"}}'
    assert from_json(text) == Recipe(source=Source(spec="sample:conv_net"))


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


def test_a_recipe_cannot_be_changed_in_place() -> None:
    with pytest.raises(AttributeError):
        FULL.seed = 1  # type: ignore[misc]
