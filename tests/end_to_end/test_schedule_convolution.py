"""The course's homework by mouse: the loops of a convolution."""

from __future__ import annotations

from lowerscope.core.model.recipe import Recipe, Source
from tests.end_to_end.scheduling import Bench

RECIPE = Recipe(source=Source(spec="sample:conv_net"), lowering="te")


def test_the_homework_of_the_convolution(bench: Bench) -> None:
    bench.open(bench.function_called("conv2d"))
    pad = next(each.name for each in bench.record.tree if "pad" in each.name)
    bench.select(pad)
    bench.apply("compute_inline")
    assert f'T.sblock("{pad}")' not in bench.script
    batch, channel, row, column, *reduced = [
        each.name for each in bench.record.tree if each.kind == "loop"
    ]
    bench.select(batch, channel, row)
    bench.apply("fuse")
    bench.select(bench.record.tree[0].name)
    bench.apply("parallel")
    bench.select(*reduced, column)
    bench.apply("reorder")
    bench.select(column)
    bench.apply("vectorize")
    bench.select(reduced[-1])
    bench.apply("unroll")
    kinds = [each.loop_kind for each in bench.record.tree if each.kind == "loop"]
    assert kinds == ["parallel", "serial", "serial", "unrolled", "vectorized"]
    for word in ("T.parallel(", "T.unroll(", "T.vectorized("):
        assert word in bench.script
    assert set(bench.statuses()) == {"✓ done"}
