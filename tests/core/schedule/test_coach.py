"""Warnings on schedules: those spoiled on purpose get the right one, and good ones hardly any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tvm
from tvm import te, tirx
from tvm.s_tir import Schedule

from lowerscope.core.build.build import compile_function
from lowerscope.core.build.remarks import scalar_loops, spills_of
from lowerscope.core.build.targets import make_target
from lowerscope.core.model import processors
from lowerscope.core.model.processors import cache_sizes
from lowerscope.core.model.schedule import At
from lowerscope.core.schedule.applying import apply
from lowerscope.core.schedule.coach import advice, compiled_advice, with_cures
from lowerscope.core.schedule.nests import Caches, caches_here
from lowerscope.core.schedule.price import predicted_ms, rates_here
from lowerscope.core.schedule.references import first_outputs, function_of
from lowerscope.core.schedule.rules.by_rule import written_by_rule
from lowerscope.core.schedule.rules.recorder import Machine, ScheduleRecorder, machine_of

MACHINE, CACHES = Machine(32, 16, 4), Caches(32 << 10, 512 << 10)


def product(n: int = 256, m: int = 256, k: int = 256) -> tirx.PrimFunc:
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, c])


def convolution(channels: int = 32, size: int = 28, filters: int = 64) -> tirx.PrimFunc:
    a = te.placeholder((channels, size + 2, size + 2), name="A")
    w = te.placeholder((filters, channels, 3, 3), name="W")
    c, y, x = (
        te.reduce_axis((0, n), name=name) for n, name in ((channels, "c"), (3, "y"), (3, "x"))
    )
    out = te.compute(
        (filters, size, size),
        lambda f, i, j: te.sum(a[c, i + y, j + x] * w[f, c, y, x], axis=[c, y, x]),
        name="C",
    )
    return te.create_prim_func([a, w, out])


def elementwise(n: int, m: int, act: Callable[[Any], Any] = lambda x: x + 1.0) -> tirx.PrimFunc:
    a = te.placeholder((n, m), name="A")
    return te.create_prim_func([a, te.compute((n, m), lambda i, j: act(a[i, j]), name="C")])


def transposed(n: int, m: int) -> tirx.PrimFunc:
    a = te.placeholder((m, n), name="A")
    return te.create_prim_func([a, te.compute((n, m), lambda i, j: a[j, i], name="C")])


def stencil(n: int, m: int, width: int = 3) -> tirx.PrimFunc:
    a = te.placeholder((n, m + width), name="A")
    b = te.compute((n, m + width), lambda i, j: a[i, j] * 2.0, name="B")
    r = te.reduce_axis((0, width), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(b[i, j + r], axis=r), name="C")
    return te.create_prim_func([a, c])


def every_other(n: int, m: int) -> tirx.PrimFunc:
    a = te.placeholder((n, 2 * m), name="A")
    return te.create_prim_func([a, te.compute((n, m), lambda i, j: a[i, 2 * j] + 1.0, name="C")])


def row_sums(n: int, m: int) -> tirx.PrimFunc:
    a = te.placeholder((n, m), name="A")
    r = te.reduce_axis((0, m), name="r")
    return te.create_prim_func([a, te.compute((n,), lambda i: te.sum(a[i, r], axis=r), name="C")])


def column_sums(n: int, m: int) -> tirx.PrimFunc:
    a = te.placeholder((n, m), name="A")
    r = te.reduce_axis((0, n), name="r")
    return te.create_prim_func([a, te.compute((m,), lambda j: te.sum(a[r, j], axis=r), name="C")])


def left(sch: Any) -> None:
    """Leave it unscheduled."""


def rows_inside(sch: Any) -> None:
    i, j, *_others = sch.get_loops("C")
    sch.reorder(j, i)


def columns_innermost(sch: Any) -> None:
    i, j, *reduced = sch.get_loops("C")
    sch.reorder(i, *reduced, j)


def vector(sch: Any, factor: int = 8) -> None:
    columns_innermost(sch)
    *_others, j = sch.get_loops("C")
    _outer, inner = sch.split(j, [None, factor])
    sch.vectorize(inner)


def parallel(place: int, *acts: Callable[[Any], None]) -> Callable[[Any], None]:
    def act(sch: Any) -> None:
        for each in acts:
            each(sch)
        sch.parallel(sch.get_loops("C")[place])

    return act


def split(place: int, factor: int, *, last: bool = False) -> Callable[[Any], None]:
    def act(sch: Any) -> None:
        loop = sch.get_loops("C")[place]
        parts = sch.split(loop, [None, factor])
        if last:
            sch.vectorize(parts[1])

    return act


def produced_at(place: int) -> Callable[[Any], None]:
    return lambda sch: sch.compute_at("B", sch.get_loops("C")[place])


def split_and_produced(factor: int) -> Callable[[Any], None]:
    def act(sch: Any) -> None:
        outer, _inner = sch.split(sch.get_loops("C")[1], [None, factor])
        sch.compute_at("B", outer)

    return act


def exp(x: Any) -> Any:
    return te.exp(x)


SPOILED: tuple[tuple[str, tirx.PrimFunc, Callable[[Any], None]], ...] = (
    ("serial-reduction", product(), left),
    ("serial-reduction", convolution(), left),
    ("serial-reduction", row_sums(512, 1024), left),
    ("serial-reduction", product(64, 512, 128), parallel(0)),
    ("strided", product(512, 512, 512), left),
    ("strided", elementwise(1024, 1024), rows_inside),
    ("strided", transposed(1024, 1024), left),
    ("strided", column_sums(1024, 1024), left),
    ("strided", elementwise(2048, 512, exp), parallel(0, rows_inside)),
    ("no-vectors", elementwise(512, 512, exp), left),
    ("no-vectors", elementwise(512, 512, te.erf), parallel(0)),
    ("no-vectors", every_other(512, 512), left),
    ("one-thread", elementwise(1024, 1024), left),
    ("one-thread", product(), columns_innermost),
    ("one-thread", product(), vector),
    ("one-thread", convolution(), left),
    ("fine-threads", elementwise(1024, 1024), parallel(1)),
    ("fine-threads", transposed(512, 1024), parallel(1)),
    ("fine-threads", elementwise(4096, 256, exp), parallel(1)),
    ("uneven-threads", elementwise(5, 65536), parallel(0)),
    ("uneven-threads", product(), parallel(0, split(0, 52))),
    ("uneven-threads", product(2, 512, 512), parallel(0)),
    ("false-sharing", elementwise(65536, 8), parallel(0, rows_inside)),
    ("false-sharing", product(4096, 16, 64), parallel(0, rows_inside)),
    ("scalar-tail", elementwise(1024, 1001), split(1, 32, last=True)),
    ("scalar-tail", product(256, 250, 256), vector),
    ("scalar-tail", elementwise(130, 4096), split(0, 64)),
    ("beyond-cache", product(1024, 1024, 1024), columns_innermost),
    ("beyond-cache", product(512, 2048, 256), vector),
    ("recomputed", stencil(256, 256), produced_at(1)),
    ("recomputed", stencil(128, 1024, 7), produced_at(1)),
    ("recomputed", stencil(64, 1024, 5), split_and_produced(4)),
    ("allocation", stencil(1024, 512), produced_at(0)),
    ("allocation", stencil(4096, 300), produced_at(0)),
)
"""Codes of warnings, with functions and what spoils their schedules."""


def test_spoiled_schedules_get_the_right_warning() -> None:
    wrong = []
    for code, function, spoil in SPOILED:
        sch = Schedule(tvm.IRModule({"main": function}))
        spoil(sch)
        found = advice(function_of(sch), MACHINE, CACHES)
        if code not in [each.code for each in found]:
            wrong.append((code, spoil, [each.code for each in found]))
        for each in found:
            assert any(letter.isdigit() for letter in each.text), each
            assert each.cure
            assert each.primitive
    assert wrong == []


def test_caches_are_usual_where_the_system_does_not_tell_their_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for level, size in ((1, "64K"), (2, None)):
        folder = tmp_path / f"index{level}"
        folder.mkdir()
        (folder / "type").write_text("Data\n")
        (folder / "level").write_text(f"{level}\n")
        if size is not None:
            (folder / "size").write_text(f"{size}\n")
    monkeypatch.setattr(processors, "Path", lambda _folder: tmp_path)
    cache_sizes.cache_clear()
    try:
        assert caches_here() == Caches(64 << 10, 512 << 10)
    finally:
        cache_sizes.cache_clear()


GOOD = (
    product(),
    product(512, 512, 512),
    product(64, 1024, 256),
    convolution(),
    elementwise(1024, 1024),
    row_sums(512, 1024),
    column_sums(1024, 512),
    transposed(512, 512),
    elementwise(2048, 2048),
    product(128, 128, 1024),
)


def test_schedules_of_the_rules_get_hardly_any_warning() -> None:
    target = make_target("native", 2)
    told = {}
    for number, function in enumerate(GOOD):
        _rule, writing, _reason = written_by_rule(function, target, {})
        assert writing is not None
        found = advice(function_of(writing.sch), machine_of(target), caches_here())
        if found:
            told[number] = [each.text for each in found]
    assert len(told) <= 1, told


CURED = ("serial-reduction", "strided", "one-thread", "beyond-cache")


def test_cures_are_primitives_that_are_faster_by_prediction() -> None:
    target = make_target("native", 2)
    rates = rates_here(target, None)
    cured = Counter()
    for code, function, spoil in SPOILED:
        sch = Schedule(tvm.IRModule({"main": function}))
        spoil(sch)
        spoiled = function_of(sch)
        now = predicted_ms(spoiled, rates)
        warnings = advice(spoiled, MACHINE, CACHES)
        for each in with_cures(warnings, spoiled, target, rates, lambda: None):
            if each.code != code or each.predicted_ms is None:
                continue
            assert now is not None
            assert each.predicted_ms < now
            sch = Schedule(tvm.IRModule({"main": spoiled}))
            outputs = first_outputs(sch)
            for step in each.steps:
                sch = apply(sch, step, outputs, target).sch
            assert predicted_ms(function_of(sch), rates) == each.predicted_ms
            cured[code] += 1
            several = len({step.name for step in each.steps}) > 1
            assert not several or all(step.name in each.cure for step in each.steps)
    assert set(CURED) <= set(cured), cured


def codes_of(function: tirx.PrimFunc) -> dict[str, str]:
    """Return the codes of the warnings that machine code gives, with their texts."""
    target = make_target("native", 2)
    assembly = compile_function("main", function, target).mod.inspect_source("asm")
    reasons, spills = scalar_loops(function, target), spills_of(assembly)
    found = compiled_advice(function, machine_of(target), reasons, spills)
    return {each.code: each.text for each in found}


def unrolled(rows: int) -> tirx.PrimFunc:
    """Return a product whose tile of vector registers has so many rows."""
    writing = ScheduleRecorder(product(), make_target("native", 2))
    loops = [At("C", loop=number) for number in range(5)]
    writing.split(loops[0], rows, "")
    writing.split(loops[2], 32, "")
    writing.reorder((loops[each] for each in (0, 2, 4, 1, 3)), "")
    writing.do("vectorize", "", loop=loops[4])
    writing.do("unroll", "", loop=loops[3])
    writing.do("decompose_reduction", "", block=At("C"), loop=loops[2])
    return function_of(writing.sch)


def test_llvm_tells_why_it_does_not_vectorize() -> None:
    assert "reorder floating-point operations" in codes_of(product())["llvm-scalar"]
    assert "reorder floating-point operations" in codes_of(row_sums(512, 1024))["llvm-scalar"]
    erf = codes_of(elementwise(512, 512, te.erf))["llvm-scalar"]
    assert "call instruction cannot be vectorized" in erf
    for plain in (elementwise(512, 512), every_other(512, 512), unrolled(2)):
        assert codes_of(plain) == {}


def test_spilled_registers_are_seen_in_the_assembly() -> None:
    # 128 vectors of 16 numbers, or 256 of 8: no processor has as many registers.
    assert "spills" in codes_of(unrolled(64))


def test_symbolic_extents_have_no_warnings() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    function = te.create_prim_func([a, te.compute((n,), lambda i: a[i] + 1.0, name="C")])
    assert advice(function, MACHINE, CACHES) == ()


def test_a_short_loop_that_llvm_vectorizes_is_as_fast_as_one_that_is_vectorized() -> None:
    rates = rates_here(make_target("native", 2), None)
    sch = Schedule(product(512, 512, 512))
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
    (i0, i1), (j0, j1), (k0, k1) = (
        sch.split(loop, [None, size]) for loop, size in ((i, 32), (j, 32), (k, 4))
    )
    sch.reorder(i0, j0, k0, i1, k1, j1)
    before = predicted_ms(function_of(sch), rates)
    sch.vectorize(j1)
    after = predicted_ms(function_of(sch), rates)
    assert before == pytest.approx(after, rel=0.1)
