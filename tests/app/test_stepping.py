"""The moment that is looked at stays within the lists that there are."""

from __future__ import annotations

import msgspec
import pytest

from lowerscope.app.stepping import Stepping
from lowerscope.core.recipe import Source
from lowerscope.core.records import ModelRecord, Snapshot, TextRecord
from lowerscope.core.step_records import Moment, PassRecord, TranslationRecord

SOURCE = Source(spec="sample:fashion_mlp")
PASSES = tuple(PassRecord(number=number, name=f"Pass{number}") for number in range(1, 5))
NODES = tuple(TranslationRecord(number=number, node=f"fx:n{number}") for number in range(1, 3))
MODEL = ModelRecord(title="m", path="", kind="torch", description="", inputs=())
SNAPSHOT = Snapshot(
    model=MODEL,
    fx=(),
    tracer="fx",
    fx_graph=None,
    relax=TextRecord(text="", language="python"),
    functions=(),
    links=(),
    passes=PASSES,
    translation=NODES,
)


def after(index: int) -> Moment:
    return Moment(clock="passes", index=index)


@pytest.fixture
def stepping() -> Stepping:
    stepping = Stepping()
    stepping.take(SOURCE, SNAPSHOT)
    return stepping


def test_steps_go_from_either_end_and_stop_at_the_ends(stepping: Stepping) -> None:
    assert stepping.moment is None
    stepping.step(1)
    assert stepping.moment == after(1)
    stepping.step(-5)
    assert stepping.moment == after(0)
    stepping.step(99)
    assert stepping.moment == after(4)
    stepping.leave()
    assert stepping.moment is None
    stepping.step(-1)
    assert stepping.moment == after(4)


def test_a_moment_is_told_once(stepping: Stepping) -> None:
    seen: list[Moment | None] = []
    stepping.moment_changed.connect(lambda: seen.append(stepping.moment))
    stepping.go(after(2))
    stepping.go(after(2))
    stepping.go(Moment(clock="translate", index=9))
    assert seen == [after(2), Moment(clock="translate", index=2)]


def test_a_shorter_list_clamps_and_an_empty_one_leaves(stepping: Stepping) -> None:
    stepping.go(after(4))
    stepping.take(SOURCE, msgspec.structs.replace(SNAPSHOT, passes=PASSES[:2]))
    assert stepping.moment == after(2)
    stepping.take(SOURCE, msgspec.structs.replace(SNAPSHOT, passes=()))
    assert stepping.moment is None
    stepping.go(after(1))
    assert stepping.moment is None


def test_another_source_has_nothing_stepped(stepping: Stepping) -> None:
    stepping.go(after(3))
    stepping.take(Source(spec="sample:conv_net"), SNAPSHOT)
    assert stepping.moment is None


def test_there_is_nothing_to_see_after_a_failed_step(stepping: Stepping) -> None:
    failed = msgspec.structs.replace(PASSES[2], status="failed", error="no")
    skipped = msgspec.structs.replace(PASSES[3], status="skipped")
    passes = (*PASSES[:2], failed, skipped)
    stepping.take(SOURCE, msgspec.structs.replace(SNAPSHOT, passes=passes))
    stepping.step(99)
    assert stepping.moment == after(1)
    stepping.go(after(4))
    assert stepping.moment == after(2)
