"""Schedules of functions of a model: their records, replayed step by step."""

from __future__ import annotations

import msgspec
import pytest

from lowerscope.core.encoding import to_bytes
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Silent
from lowerscope.core.recipe import Recipe, Source
from lowerscope.core.schedule_records import ScheduleRecord
from lowerscope.core.schedules import At

MLP = Recipe(source=Source(spec="sample:fashion_mlp"))


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline()


def test_a_function_has_a_loop_tree_and_buffers(pipeline: Pipeline) -> None:
    record = pipeline.workbench.derived_schedule(MLP, "matmul", None, Silent())
    assert msgspec.msgpack.decode(to_bytes(record), type=ScheduleRecord) == record
    shown = {span.entity for span in record.script.spans}
    assert {node.id for node in record.tree} <= shown
    i, j, k, block = record.tree
    assert [node.name for node in (i, j, k, block)] == ["i0", "i1", "k", "matmul"]
    assert [node.size for node in (i, j, k)] == [1, 128, 784]
    assert [node.parent for node in (i, j, k, block)] == [-1, 0, 1, 2]
    assert k.reference == At(block="matmul", loop=2)
    assert block.axes == (("v_i0", "S", "1"), ("v_i1", "S", "128"), ("v_k", "R", "784"))
    assert block.writes == ("matmul[v_i0, v_i1]",)
    assert [buffer.role for buffer in record.buffers] == ["input", "input", "output"]
    assert [buffer.size for buffer in record.buffers] == [4 * 784, 4 * 784 * 128, 4 * 128]
    assert record.steps == ()


def test_what_is_not_kept_is_not_derived_in_passing() -> None:
    pipeline = Pipeline()
    with pytest.raises(LowerscopeError) as raised:
        pipeline.workbench.schedule(MLP, "matmul", None, Silent())
    assert raised.value.problem.code == "not-kept"
    with pytest.raises(LowerscopeError, match="no TensorIR function 'nothing'"):
        pipeline.workbench.derived_schedule(MLP, "nothing", None, Silent())
