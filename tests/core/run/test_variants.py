"""Names of variants, and how two runs differ function by function."""

from __future__ import annotations

import msgspec

from lowerscope.core.files.pipelines_and_schedules import find_pipeline, variant_names
from lowerscope.core.model.comparison_records import Variant, can_be_told, fastest, ratio_of
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.run_records import CallRun, RunRecord, RunTimes, SideTimes

PLAIN = Recipe(source=Source(spec="sample:fashion_mlp"))


def changed(**fields: object) -> Recipe:
    return msgspec.structs.replace(PLAIN, **fields)


def test_a_name_says_what_differs_from_the_others() -> None:
    fused = find_pipeline("fuse").steps
    assert variant_names([PLAIN]) == ("high-level",)
    assert variant_names([PLAIN, changed(lowering="te")]) == ("high-level", "TE")
    four = [changed(lowering=each) for each in ("high-level", "te")]
    four += [msgspec.structs.replace(each, steps=fused) for each in four]
    assert variant_names(four)[2:] == ("high-level · fused", "TE · fused")
    avx2 = '{"kind": "llvm", "mattr": ["+avx2", "+fma"]}'
    targets = [changed(target=each) for each in ("llvm", "native", avx2)]
    assert variant_names(targets) == ("llvm", "native", "avx2,fma")
    skylake = changed(target='{"kind": "llvm", "mcpu": "skylake-avx512", "mattr": ["+avx2"]}')
    assert variant_names([PLAIN, skylake])[1] == "skylake-avx512 avx2"


def record(
    tvm_ms: float, *calls: CallRun, verdict: str = "match", spread: float = 0.1
) -> RunRecord:
    sides = tuple(
        SideTimes(
            side=side,
            milliseconds=ms,
            low=ms - spread / 2,
            high=ms + spread / 2,
            fastest=ms - spread,
            slowest=ms + spread,
            repeats=9,
            threads=2,
        )
        for side, ms in (("TVM", tvm_ms), ("torch", 1.0))
    )
    return RunRecord(
        verdict=verdict,
        reason="",
        max_abs_error=0.0,
        max_rel_error=0.0,
        rtol=1e-4,
        atol=1e-5,
        torch_ms=1.0,
        tvm_ms=tvm_ms,
        build_ms=1.0,
        functions=1,
        outputs=(),
        calls=calls,
        times=RunTimes(sides=sides, warm_up=2),
    )


def test_what_differs_is_not_the_fastest_and_nor_is_what_cannot_be_told_from_it() -> None:
    slow, quick = (Variant(name=str(ms), recipe=PLAIN, record=record(ms)) for ms in (2.0, 1.5))
    wrong = Variant(name="wrong", recipe=PLAIN, record=record(0.1, verdict="differ"))
    failed = Variant(name="failed", recipe=PLAIN)
    assert fastest([slow, wrong, quick, failed]) == (quick,)
    assert fastest([slow, failed]) == ()
    assert fastest([wrong, failed]) == ()
    near = Variant(name="near", recipe=PLAIN, record=record(1.55))
    noisy = Variant(name="noisy", recipe=PLAIN, record=record(1.9, spread=0.5))
    assert fastest([slow, near, noisy, quick]) == (near, noisy, quick)
    assert can_be_told(slow, quick)
    assert not can_be_told(quick, near)
    assert ratio_of(record(1.5)) == (1.5, True)
    assert ratio_of(record(1.05)) == (1.05, False)


def test_what_is_inconclusive_or_was_measured_beside_others_is_not_the_fastest() -> None:
    slow, quick = (Variant(name=str(ms), recipe=PLAIN, record=record(ms)) for ms in (2.0, 1.5))
    nothing = Variant(name="nothing", recipe=PLAIN, record=record(0.1, verdict="inconclusive"))
    assert fastest([slow, nothing, quick]) == (quick,)
    times = msgspec.structs.replace(record(0.1).times, processors=2, others=1.8)
    held = msgspec.structs.replace(record(0.1), times=times)
    beside = Variant(name="beside", recipe=PLAIN, record=held)
    # The figures stay, but nothing is stated of them.
    assert not can_be_told(slow, beside)
    assert ratio_of(held) == (0.1, False)
    assert fastest([slow, beside]) == (slow, beside)
