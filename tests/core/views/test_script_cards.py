"""What the names of a script stand for, against the objects themselves."""

from __future__ import annotations

import pytest

from lowerscope.core.ir.script import function_text, relax_text
from lowerscope.core.model.formatting import bytes_text
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.snapshot import Card, TextRecord
from lowerscope.core.stages import Pipeline, Stages


@pytest.fixture(scope="module")
def stages() -> Stages:
    recipe = Recipe(source=Source(spec="sample:transformer_block"), lowering="te")
    return Pipeline().stages(recipe)


def cards_of(record: TextRecord, kind: str) -> dict[str, Card]:
    return {card.name: card for card in record.cards if card.kind == kind}


def test_buffers_are_those_of_the_function(stages: Stages) -> None:
    record = function_text(stages.transformed.module, "softmax")
    buffers = cards_of(record, "buffer")
    lines = record.text.split("\n")
    assert {"T_softmax_maxelem", "T_softmax_exp", "T_softmax_expsum", "T_softmax_norm"} < set(
        buffers
    )
    card = buffers["T_softmax_exp"]
    assert dict(card.facts) == {
        "shape": "(1, 4, 64, 64)",
        "dtype": "float32",
        "size": "65.5 kB",
        "scope": "global",
    }
    assert lines[card.first - 1].startswith("@T.prim_func")
    assert card.last == len(lines)


def test_loops_of_one_header_are_told_apart(stages: Stages) -> None:
    record = function_text(stages.transformed.module, "dense")
    loops = cards_of(record, "loop")
    extents = {name: dict(card.facts) for name, card in loops.items()}
    assert extents == {
        "i0": {"extent": "1", "kind": "serial"},
        "i1": {"extent": "64", "kind": "serial"},
        "i2": {"extent": "256", "kind": "serial"},
        "k": {"extent": "256", "kind": "serial"},
    }
    header = record.text.split("\n")[loops["k"].first - 1]
    assert header.strip().startswith("for i0, i1, i2, k in T.grid(")
    assert loops["k"].entity == "tir:dense/dense/k"


def test_names_of_several_loops_hold_in_their_lines(stages: Stages) -> None:
    record = function_text(stages.transformed.module, "softmax")
    lines = record.text.split("\n")
    for card in record.cards:
        if card.kind == "loop":
            assert card.name in lines[card.first - 1]
    firsts = [card.first for card in record.cards if card.kind == "loop" and card.name == "i0"]
    assert len(firsts) == len(set(firsts)) > 1


def test_constants_of_the_relax_script(stages: Stages) -> None:
    record = relax_text(stages.module)
    lines = record.text.split("\n")
    constants = [card for card in record.cards if card.kind == "constant"]
    assert len(constants) == record.text.count('metadata["')
    for card in constants:
        assert card.name in lines[card.first - 1]
    # The weight of the first linear layer, against torch.
    weight = stages.loaded.model.attention.query.weight
    facts = dict(constants[2].facts)
    assert facts["shape"] == str(tuple(weight.shape))
    assert facts["size"] == bytes_text(weight.numel() * weight.element_size())


def test_a_scheduled_function(stages: Stages) -> None:
    from tvm import s_tir

    schedule = s_tir.Schedule(stages.transformed.module)
    schedule.work_on("dense")
    block = schedule.get_sblock("dense")
    outer, inner = schedule.split(schedule.get_loops(block)[2], factors=[None, 8])
    schedule.parallel(schedule.get_loops(block)[1])
    schedule.vectorize(inner)
    schedule.unroll(outer)
    schedule.cache_read(block, 0, "local")
    record = function_text(schedule.mod, "dense")
    kinds = [dict(card.facts)["kind"] for card in record.cards if card.kind == "loop"]
    assert {"parallel", "vectorized", "unrolled", "serial"} <= set(kinds)
    buffers = [dict(card.facts) for card in record.cards if card.kind == "buffer"]
    assert [facts["scope"] for facts in buffers].count("local") == 1
