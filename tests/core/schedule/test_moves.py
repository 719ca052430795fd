"""The menu has what applies to the selection, tried with sensible values, and reasons."""

from __future__ import annotations

from lowerscope.core.model.schedule import Reference
from lowerscope.core.model.schedule_records import Move
from lowerscope.core.views.workbench import moves
from tests.core.schedule.functions import TARGET, Steps, add_relu, block, loop, made, matmul


def _menu(steps: Steps, *chosen: Reference) -> dict[str, Move]:
    return {move.name: move for move in moves(steps.sch, chosen, steps.outputs, TARGET)}


def test_a_loop_has_the_primitives_of_loops() -> None:
    menu = _menu(Steps(matmul), loop("matmul", 0))
    assert {"split", "fuse", "reorder", "parallel", "vectorize", "unroll", "bind"} <= set(menu)
    assert not {"compute_inline", "cache_write", "sample_categorical"} & set(menu)
    assert menu["split"].primitive.arguments["factors"] == (None, 16)
    assert menu["fuse"].primitive.arguments["loops"] == (loop("matmul", 0), loop("matmul", 1))
    assert menu["reorder"].primitive.arguments["loops"] == (loop("matmul", 1), loop("matmul", 0))
    assert menu["parallel"].legal
    assert not menu["bind"].legal
    assert "no threads of a GPU" in menu["bind"].reason
    assert not menu["rfactor"].legal
    assert "\n" not in menu["rfactor"].reason


def test_fields_know_the_extent_and_the_names() -> None:
    steps = Steps(matmul)
    fields = {field.name: field for field in _menu(steps, loop("matmul", 1))["split"].fields}
    assert fields["factors"].product == 48
    assert fields["loop"].default == loop("matmul", 1)
    menu = _menu(steps, block("matmul"))
    fields = {field.name: field for field in menu["cache_read"].fields}
    assert fields["read_buffer_index"].choices == ("A", "B")
    fields = {field.name: field for field in menu["reorder_block_iter_var"].fields}
    assert fields["new_order"].choices == ("vi", "vj", "vk")
    fields = {field.name: field for field in menu["transform_layout"].fields}
    assert fields["buffer"].choices == ("A", "B", "C")
    assert fields["index_map"].choices == ("i", "j")


def test_each_legal_move_can_be_applied_as_it_is() -> None:
    for function in (matmul, add_relu):
        for chosen in ((loop("add", 1),), (block("add"),), (block("relu"),), (block("matmul"),)):
            steps = Steps(function)
            for move in _menu(steps, *chosen).values():
                if move.legal:
                    again = Steps(function)
                    again.step(move.name, **move.primitive.arguments)


def test_several_loops_a_block_with_a_loop_and_nothing() -> None:
    steps = Steps(matmul)
    steps.step("split", loop=loop("matmul", 1), factors=(None, 16))
    menu = _menu(steps, loop("matmul", 0), made("s1"))
    assert set(menu) == {"fuse", "reorder", "merge"}
    assert menu["fuse"].primitive.arguments["loops"] == (loop("matmul", 0), made("s1"))
    assert menu["reorder"].primitive.arguments["loops"] == (made("s1"), loop("matmul", 0))
    assert set(_menu(steps)) == {"sample_categorical"}
    menu = _menu(Steps(add_relu), block("add"), loop("relu", 0))
    assert menu["compute_at"].primitive.arguments["loop"] == loop("relu", 0)
