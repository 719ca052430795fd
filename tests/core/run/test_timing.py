"""Times: their spread, what may be claimed of them, and the turns that they are taken in."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest

from lowerscope.core.build.targets import ProcessorUse
from lowerscope.core.cli.main import main
from lowerscope.core.model.formatting import claims_text, times_text
from lowerscope.core.model.problems import Cancelled
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.run_records import (
    LEAST,
    REPEATS,
    Measuring,
    RunTimes,
    SideTimes,
    held_up,
    is_reliable,
    is_short_of_processors,
    side_times,
    times_as_fast,
)
from lowerscope.core.model.tolerances import Tolerance, Tolerances
from lowerscope.core.run.implementations import TURN, Implementation, measure
from lowerscope.core.stages import Pipeline


@pytest.fixture
def _collecting() -> Iterator[None]:
    """Have cycles collected, which a process that has shown a window does from its event loop."""
    was_on = gc.isenabled()
    gc.enable()
    yield
    if not was_on:
        gc.disable()


def sample(middle: float, spread: float, count: int = 200, threads: int = 2) -> SideTimes:
    """Return times in ms around a middle, half of which are within the spread."""
    quantiles = np.linspace(0, 1, count)
    milliseconds = middle + spread * 2 * (quantiles - 0.5)
    return side_times("side", list(milliseconds / 1000), threads)


def test_median_and_quarters_are_numpys() -> None:
    seconds = np.random.default_rng(0).lognormal(-7, 0.3, 101)
    found = side_times("TVM", list(seconds), 2)
    expected = np.quantile(seconds * 1000, (0.0, 0.25, 0.5, 0.75, 1.0))
    told = (found.fastest, found.low, found.milliseconds, found.high, found.slowest)
    assert told == pytest.approx(tuple(expected))
    assert (found.repeats, found.threads) == (101, 2)
    # One call that was held up moves neither median nor spread.
    held_up = side_times("TVM", [*seconds[1:], 10.0], 2)
    assert held_up.milliseconds == pytest.approx(found.milliseconds, rel=0.05)
    assert held_up.high < 2 * found.high


def test_nothing_is_claimed_where_the_spread_is_larger_than_the_difference() -> None:
    slow, fast = sample(2.0, 0.2), sample(1.0, 0.2)
    assert times_as_fast(fast, slow) == pytest.approx(2.0)
    assert times_as_fast(slow, fast) == pytest.approx(0.5)
    # The spread of either side counts.
    assert times_as_fast(fast, sample(2.0, 1.1)) is None
    assert times_as_fast(sample(1.0, 1.1), slow) is None
    assert times_as_fast(sample(1.0, 0.2), sample(1.1, 0.2)) is None
    assert times_as_fast(fast, fast) is None


def test_nothing_is_claimed_where_the_fastest_calls_say_otherwise() -> None:
    ours, quick = sample(2.0, 0.2), [0.001] * 3
    held = side_times("torch", [*quick, *(each / 1000 for each in [20.0, 20.1, 20.2] * 60)], 2)
    assert held.milliseconds > 9 * ours.milliseconds
    assert times_as_fast(ours, held) is None
    assert held_up(RunTimes(sides=(ours, held), warm_up=2)) == (held,)


def test_what_other_programs_take_from_the_threads_is_said() -> None:
    sides = (sample(1.0, 0.1), sample(3.0, 0.1))
    beside = RunTimes(sides=sides, warm_up=2, processors=2, others=0.9)
    assert is_short_of_processors(beside)
    assert "other programs used 0.9 of the 2 processors meanwhile" in claims_text(beside)
    # Of eight processors, six are left over by two threads.
    enough = RunTimes(sides=sides, warm_up=2, processors=8, others=5.0)
    assert not is_short_of_processors(enough)
    assert "other programs" not in claims_text(enough)
    assert is_short_of_processors(RunTimes(sides=sides, warm_up=2, processors=8, others=6.5))


def test_a_ratio_of_times_that_are_not_reliable_is_not_stated() -> None:
    sides = (sample(0.01, 0.001), sample(9.42, 0.1))
    quiet = RunTimes(sides=sides, warm_up=2, processors=2)
    assert "942× as fast" in claims_text(quiet)
    held = side_times("torch", [0.002, *[0.02] * 200], 2)
    for change in ({"others": 1.8}, {"disturbed": 0.5}, {"sides": (sides[0], held)}):
        busy = msgspec.structs.replace(quiet, **change)
        assert not is_reliable(busy)
        assert "as fast" not in claims_text(busy)
        assert "unreliable" in claims_text(busy)
        assert "measure again" in claims_text(busy)
        assert times_text(busy).count("s (") == 2


def test_what_another_program_uses_is_counted() -> None:
    working = "print(flush=True)\nwhile True: pass"
    busy = subprocess.Popen([sys.executable, "-c", working], stdout=subprocess.PIPE)
    assert busy.stdout is not None
    with busy.stdout:
        busy.stdout.readline()
        use = ProcessorUse()
        time.sleep(0.3)
        beside = use.by_others()
        busy.kill()
    busy.wait()
    assert 0.2 < beside <= use.processors


def test_nothing_is_claimed_where_the_sides_had_other_threads() -> None:
    assert times_as_fast(sample(1.0, 0.1, threads=2), sample(2.0, 0.1, threads=1)) is None


@pytest.mark.usefixtures("_collecting")
def test_the_sides_take_turns_and_the_first_calls_do_not_count() -> None:
    turns: list[str] = []
    collecting: list[bool] = []

    def call(name: str) -> None:
        turns.append(name)
        collecting.append(gc.isenabled())

    sides = [
        Implementation(name, partial(call, name), 1, partial(turns.append, f"-{name}"))
        for name in "ab"
    ]
    times = measure(sides, Measuring(warm_up=3, repeats=TURN + 2), lambda: None)
    # The first call of each turn finds the caches as the other side has left them.
    counts = (3, 1 + TURN, 1 + 2)
    assert turns == [
        word for count in counts for name in "ab" for word in [f"-{name}", name] * count
    ]
    assert [each.repeats for each in times.sides] == [TURN + 2, TURN + 2]
    assert times.warm_up == 3
    # The garbage of one side is not collected in the time of another.
    assert not any(collecting[6:])
    assert gc.isenabled()


def test_the_number_of_repeats_follows_from_the_budget() -> None:
    quick = [Implementation("a", lambda: None, 1)]
    assert measure(quick, Measuring(), lambda: None).sides[0].repeats == REPEATS
    assert measure(quick, Measuring(), lambda: None, budget=0.0).sides[0].repeats == LEAST
    assert measure(quick, Measuring(), lambda: None, most=0).sides[0].repeats == LEAST


@pytest.mark.usefixtures("_collecting")
def test_measuring_can_be_stopped() -> None:
    def stop() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        measure([Implementation("a", lambda: None, 1)], Measuring(), stop)
    assert gc.isenabled()


# The times of a run, from the command line and made anew: threads, repeats, ``torch.compile``


MLP = Recipe(source=Source(spec="sample:matmul_relu"))


def test_threads_and_repeats_are_what_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--threads", "1", "--repeats", "7", "--warm-up", "3")
    assert main(["run", "sample:matmul_relu", "--json", *options]) == 0
    record = json.loads(capsys.readouterr().out)
    times = record["times"]
    assert [each["side"] for each in times["sides"]] == ["TVM", "torch"]
    assert [(each["threads"], each["repeats"]) for each in times["sides"]] == [(1, 7), (1, 7)]
    assert times["warm_up"] == 3
    for side, median in zip(times["sides"], (record["tvm_ms"], record["torch_ms"]), strict=True):
        assert side["milliseconds"] == median
        assert side["fastest"] <= side["low"] <= median <= side["high"] <= side["slowest"]


def test_a_compiler_that_is_missing_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor import config

    # What was compiled before, it would take from there.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(config.cpp, "cxx", (None, "/nowhere/g++"))
    assert main(["run", "sample:matmul_relu", "--torch-compile", "--repeats", "3"]) == 0
    text = capsys.readouterr().out
    assert "torch.compile does not work: it needs a C++ compiler, and there is none" in text


def test_of_an_earlier_run_the_times_or_the_verdict_are_made_anew() -> None:
    pipeline = Pipeline()
    first = pipeline.answer(RunQuery(MLP))
    again = pipeline.answer(RunQuery(MLP, part="times", before=first))
    assert again.times != first.times
    assert msgspec.structs.replace(
        again, times=first.times, tvm_ms=first.tvm_ms, torch_ms=first.torch_ms
    ) == (first)
    narrow = Tolerances(float32=Tolerance(0.0, 0.0))
    stricter = msgspec.structs.replace(MLP, tolerances=narrow, lowering="te")
    other = pipeline.answer(RunQuery(stricter, part="verdict", before=first))
    # What was another module has to be measured.
    assert other.times != first.times
    judged = pipeline.answer(
        RunQuery(
            msgspec.structs.replace(stricter, lowering="high-level"), part="verdict", before=first
        )
    )
    assert judged.times == first.times
    assert (judged.rtol, judged.atol) == (0.0, 0.0)
    assert judged.build_ms == first.build_ms
