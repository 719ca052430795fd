"""Values that are used in many places far away: stubs in the place of long lines."""

from __future__ import annotations

from itertools import combinations

from lowerscope.core.model.graph import DEFAULT, Box, GraphRecord, Port
from lowerscope.core.views.graph.boxes import graph_record
from lowerscope.core.views.graph.hierarchy import BoxText, Flow, Modules, Opening

LAYERS = 8


def masked(expanded: tuple[str, ...]) -> GraphRecord:
    """A chain of layers, each of which reads the same mask beside the value before it."""
    boxes = [BoxText("x", "x", "input"), BoxText("mask", "attention_mask", "input")]
    flows: list[Flow] = []
    paths = ["", ""]
    last = "x"
    for layer in range(LAYERS):
        for name in ("linear", "add", "softmax"):
            entity = f"{name}{layer}"
            boxes.append(BoxText(entity, entity, "call", operator=name))
            paths.append(f"layer.{layer}")
            flows.append(Flow(last, entity, "1×64"))
            last = entity
        flows.append(Flow("mask", f"add{layer}", "1×64 f32"))
    modules = Modules(paths, {}, Opening(expanded))
    return graph_record(boxes, flows, DEFAULT, lambda: None, modules=modules)


EVERYTHING = ("module:layer", *(f"module:layer.{layer}" for layer in range(LAYERS)))


def apart(one: Box | Port, two: Box | Port) -> bool:
    return (
        one.x + one.width <= two.x
        or two.x + two.width <= one.x
        or one.y + one.height <= two.y
        or two.y + two.height <= one.y
    )


def test_far_uses_have_stubs_and_the_nearest_has_a_line() -> None:
    record = masked(EVERYTHING)
    lines = [edge.target for edge in record.edges if edge.source == "mask"]
    assert lines[0] == "add0"
    stubbed = [port.box for port in record.ports if port.side == "in"]
    assert [*lines, *stubbed] == [f"add{layer}" for layer in range(LAYERS)]
    (out,) = [port for port in record.ports if port.side == "out"]
    assert (out.box, out.others) == ("mask", tuple(stubbed))
    assert out.label == f"{len(stubbed)} more uses"
    for port in record.ports:
        if port.side == "in":
            assert port.others == ("mask",)
            assert port.label == "attention_mask"


def test_stubs_stand_at_their_boxes_and_clear_of_everything_else() -> None:
    record = masked(EVERYTHING)
    boxes = {box.id: box for box in record.boxes}
    assert record.ports
    for port in record.ports:
        box = boxes[port.box]
        if port.side == "in":
            assert 0 < box.y - (port.y + port.height) < 10
        else:
            assert 0 < port.y - (box.y + box.height) < 10
        assert port.width >= DEFAULT.quiet_width(port.label)
        for edge in record.edges:
            for (x0, y0), (x1, y1) in zip(edge.points, edge.points[1:], strict=False):
                beside = max(x0, x1) <= port.x or port.x + port.width <= min(x0, x1)
                assert beside or max(y0, y1) <= port.y or port.y + port.height <= min(y0, y1)
    for one, two in combinations([*record.boxes, *record.ports], 2):
        assert apart(one, two)
    frames = {region.id: region for region in record.regions}
    for port in record.ports:
        frame = frames.get(f"module:layer.{port.box[-1]}")
        if port.side == "in":
            assert frame is not None
            assert frame.x < port.x
            assert port.x + port.width < frame.x + frame.width


def test_what_is_collapsed_has_stubs_of_its_own() -> None:
    record = masked(("module:layer",))
    assert {port.box for port in record.ports if port.side == "in"} <= {
        f"module:layer.{layer}" for layer in range(LAYERS)
    }
    assert masked(()).ports == ()
