"""Candidates are measured whatever they do: they crash, never end, or compute something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psutil
import pytest
import tvm

from lowerscope.core.run.tuning.measurers import Candidate, LocalMeasurer, Sized, Subject

_FUNCTION = """
@T.prim_func(s_tir=True)
def main(x: T.Buffer((4096,), "float32"), y: T.Buffer((4096,), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for i in range(4096):
        with T.sblock("y"):
            v = T.axis.spatial(4096, i)
            {body}
"""

DOUBLES = "y[v] = x[v] * T.float32(2)"
TRIPLES = "y[v] = x[v] * T.float32(3)"
CRASHES = 'T.evaluate(T.call_extern("int32", "raise", 11))'
NEVER_ENDS = 'T.evaluate(T.call_extern("int32", "pause"))'


def sized(body: str) -> Sized:
    function = tvm.script.from_source(_FUNCTION.format(body=body))
    return Sized(str(tvm.ir.save_json(function)))


@pytest.fixture(scope="module")
def measurer() -> Iterator[LocalMeasurer]:
    with LocalMeasurer(lambda: None, patience=3.0) as made:
        yield made
    assert not psutil.pid_exists(made.process)


def measured(measurer: LocalMeasurer, body: str, **more: Any) -> Any:
    return measurer.measure(Candidate(subject=1, scheduled=sized(body), **more))


def test_a_candidate_that_crashes_or_hangs_is_survived(measurer: LocalMeasurer) -> None:
    subject = Subject(1, sized(DOUBLES), '{"kind": "llvm"}', seed=0, threads=1, seconds=30.0)
    begun = measurer.begin(subject)
    assert begun.seconds is not None, begun.reason
    good = measured(measurer, DOUBLES)
    assert good.seconds is not None
    assert good.reason == ""
    wrong = measured(measurer, TRIPLES, best=1.0)
    assert wrong.seconds is None
    assert "computes something else" in wrong.reason
    first = measurer.process
    crashed = measured(measurer, CRASHES)
    assert crashed.seconds is None
    assert "SIGSEGV" in crashed.reason
    second = measurer.process
    assert second != first
    # The process that comes after it knows the subject again.
    assert measured(measurer, DOUBLES).seconds is not None
    hung = measured(measurer, NEVER_ENDS)
    assert hung.seconds is None
    assert "was stopped" in hung.reason
    assert not psutil.pid_exists(second)
    assert measured(measurer, DOUBLES).seconds is not None
