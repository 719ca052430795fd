"""The times of a run, from the command line and made anew: threads, repeats, ``torch.compile``."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from lowerscope.core.cli.main import main
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.tolerances import Tolerance, Tolerances
from lowerscope.core.stages import Pipeline

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
