"""Facts about selected entities, and texts of several functions as one."""

from __future__ import annotations

import msgspec

from lowerscope.app.kit.code.code_editor import Heading
from lowerscope.app.panes.common.descriptions import in_order
from lowerscope.app.panes.model.details_view import Section, sections_of
from lowerscope.app.panes.tensorir.tensorir_view import joined
from lowerscope.core.model.run_records import NodeRun
from lowerscope.core.model.snapshot import (
    FunctionRecord,
    ParameterRecord,
    SourceLine,
    Span,
    TextRecord,
)
from tests.app.plain_values import RECORD, snapshot

NODE, FUNCTION, WEIGHT = "fx:dense", "tir:dense", "param:dense.weight"


def facts_in(sections: tuple[Section, ...]) -> dict[str, tuple[str, ...]]:
    return {
        fact.label: fact.entities or (fact.text, fact.note)
        for section in sections
        for fact in section.facts
    }


def test_a_node_says_where_it_is_from_and_what_it_became() -> None:
    plain = snapshot("dense")
    weight = ParameterRecord(
        id=WEIGHT, name="dense.weight", shape=(4, 8), dtype="float32", size=128
    )
    node = msgspec.structs.replace(
        plain.fx[0],
        label="Linear · 8 → 4",
        shape=(1, 4),
        dtype="float32",
        line=SourceLine(file="/m/mlp.py", line=7, text="    x = self.dense(x)"),
        strategy="te",
        rule="linear: topi.nn.dense",
        bindings=("relax:main/lv",),
        functions=(FUNCTION,),
    )
    model = msgspec.structs.replace(plain.model, parameters=(weight,))
    records = msgspec.structs.replace(plain, fx=(node,), model=model)
    facts = facts_in(sections_of(records, NODE, frozenset({WEIGHT, FUNCTION})))
    assert facts == {
        "operator": ("Linear", ""),
        "opcode": ("call_module", ""),
        "source": ("mlp.py:7", ""),
        "": ("x = self.dense(x)", ""),
        "weight": ("4×8", "128 B"),
        "out": ("1×4", "float32"),
        "rule": ("linear: topi.nn.dense", ""),
        "bindings": ("relax:main/lv",),
        "functions": (FUNCTION,),
    }


def test_counts_of_one_are_singular() -> None:
    records = snapshot("dense")
    functions = [
        FunctionRecord(id=FUNCTION, name="dense", kind="tensorir", loops=loops, blocks=blocks)
        for loops, blocks in ((3, 1), (1, 2))
    ]
    sizes = [
        facts_in(sections_of(records, FUNCTION, frozenset(), each))["size"][0] for each in functions
    ]
    assert sizes == ["3 loops in 1 block", "1 loop in 2 blocks"]


def test_an_error_has_a_mark_and_its_reason() -> None:
    run = NodeRun(
        id=NODE, status="differs", matches=False, max_abs_error=0.5, max_rel_error=2.0, reason="why"
    )
    record = msgspec.structs.replace(RECORD, nodes=(run,))
    facts = facts_in(sections_of(snapshot("dense"), NODE, frozenset(), run=record))
    assert facts["error"] == ("✕ 0.50", "2.0 relative")
    assert facts["why"] == ("why", "")


def test_texts_of_functions_are_one_with_headings() -> None:
    texts = {
        name: TextRecord(
            text=f"def {name}():\n    pass",
            language="tvmscript",
            spans=(Span(entity=f"tir:{name}", first=1, last=2),),
            changed=changed,
        )
        for name, changed in (("dense", (2,)), ("add", ()))
    }
    headings = [
        Heading("dense", "dense"),
        Heading("relu", "relu", is_open=False),
        Heading("add", "add"),
    ]
    record, lines = joined(headings, texts)
    assert record.text.split("\n") == [
        " ",
        "def dense():",
        "    pass",
        " ",
        " ",
        "def add():",
        "    pass",
    ]
    assert {at: each.key for at, each in lines.items()} == {0: "dense", 3: "relu", 4: "add"}
    assert [(each.entity, each.first, each.last) for each in record.spans] == [
        ("tir:dense", 2, 3),
        ("tir:add", 6, 7),
    ]
    assert record.changed == (3,)


def test_linked_ids_are_in_the_order_of_the_program() -> None:
    shown = snapshot("softmax", "dense", "add")
    assert in_order(shown, {"fx:add", "fx:dense", "fx:softmax"}) == (
        "fx:softmax",
        "fx:dense",
        "fx:add",
    )
    bindings = {f"relax:main/lv{number}" for number in (10, 2, 1)}
    assert in_order(shown, bindings) == ("relax:main/lv1", "relax:main/lv2", "relax:main/lv10")
