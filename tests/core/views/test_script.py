"""Script text: exactly TVM's own, with spans that point at the right lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tvm
from tvm import s_tir

from lowerscope.core.ir.relax import binding_ids
from lowerscope.core.ir.script import function_text, module_text, relax_text
from lowerscope.core.ir.tensorir import prim_funcs_of
from lowerscope.core.model.queries import TextQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.snapshot import Card, TextRecord
from lowerscope.core.stages import Pipeline, Stages


def lines_of(record: TextRecord, entity: str) -> list[str]:
    (span,) = [span for span in record.spans if span.entity == entity]
    return record.text.split("\n")[span.first - 1 : span.last]


@pytest.mark.parametrize("text_of", [relax_text, module_text])
def test_every_binding_has_its_line(relax_module: tvm.IRModule, text_of: object) -> None:
    assert callable(text_of)
    record = text_of(relax_module)
    bound = binding_ids(relax_module)
    assert len({each.id for each in bound}) == len(bound)
    for each in bound:
        first = lines_of(record, each.id)[0].strip()
        if type(getattr(each.binding, "value", None)).__name__ == "If":
            assert first.startswith("if ")
        else:
            assert re.match(rf"{each.name}(:| =)", first)


def test_functions_span_from_decorator_to_return(relax_module: tvm.IRModule) -> None:
    record = module_text(relax_module)
    for name in ["main", *prim_funcs_of(relax_module)]:
        kind = "relax" if name == "main" else "tir"
        lines = lines_of(record, f"{kind}:{name}")
        assert lines[0].strip().startswith("@")
        assert lines[1].strip().startswith(f"def {name}(")
        assert lines[-1].strip()
        assert not any(line.strip().startswith("@") for line in lines[1:])
    assert lines_of(record, "relax:main")[-1].strip().startswith("return ")


def test_blocks_and_loops_have_their_lines(relax_modules: dict[str, tvm.IRModule]) -> None:
    module = relax_modules["attention legalised"]
    for name in prim_funcs_of(module):
        record = function_text(module, name)
        blocks = re.findall(r'^ *with T\.sblock\("(\w+)"\)', record.text, re.MULTILINE)
        seen = []
        for span in record.spans[1:]:
            header = record.text.split("\n")[span.first - 1].strip()
            _, block, *variable = span.entity.split("/")
            if not block:
                buffer = variable[0].partition("#")[0]
                assert re.match(rf"{buffer}(_\d+)? = T\.sblock_alloc_buffer\(", header)
            elif variable:
                names = re.match(r"for (.*?) in ", header)
                assert names is not None
                assert variable[0].partition("#")[0] in names[1].split(", ")
            else:
                seen.append(block)
                assert header == f'with T.sblock("{block.partition("#")[0]}"):'
        assert [block.partition("#")[0] for block in seen] == blocks


def test_a_grid_is_the_line_of_all_its_loops(relax_modules: dict[str, tvm.IRModule]) -> None:
    record = function_text(relax_modules["mlp legalised"], "matmul")
    spans = {span.entity: (span.first, span.last) for span in record.spans}
    assert spans["tir:matmul/matmul/i0"] == spans["tir:matmul/matmul/k"]
    assert "T.grid" in lines_of(record, "tir:matmul/matmul/i1")[0]
    assert set(spans) == {
        "tir:matmul",
        "tir:matmul/matmul",
        *(f"tir:matmul/matmul/{variable}" for variable in ("i0", "i1", "k")),
    }


def test_scheduled_loops_have_lines_of_their_own(relax_modules: dict[str, tvm.IRModule]) -> None:
    schedule = s_tir.Schedule(relax_modules["mlp legalised"])
    schedule.work_on("matmul")
    block = schedule.get_sblock("matmul")
    i0, _, k = schedule.get_loops(block)
    outer, _ = schedule.split(k, [None, 4])
    schedule.parallel(i0)
    schedule.decompose_reduction(block, outer)
    record = function_text(schedule.mod, "matmul")
    assert (
        lines_of(record, "tir:matmul/matmul_init/i0")[0].strip().startswith("for i0 in T.parallel")
    )
    init = lines_of(record, "tir:matmul/matmul_init")
    assert init[-1].strip().endswith("= T.float32(0.0)")
    update = lines_of(record, "tir:matmul/matmul_update/k_0")
    assert 'with T.sblock("matmul_update"):' in (line.strip() for line in update)


# What the names of a script stand for, against the objects themselves


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


# The user's own file, with the nodes that its lines make


MODEL = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        y = torch.relu(x) + 1
        return y * y


def example_inputs():
    return torch.ones(2, 3)


entry = Net
"""


def test_each_line_has_the_nodes_that_it_makes(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(MODEL, encoding="utf-8")
    recipe = Recipe(source=Source(spec=str(file)), tracer="fx", lowering="te")
    pipeline = Pipeline()
    record = pipeline.answer(TextQuery(recipe, str(file), "source"))
    assert record.text == MODEL.rstrip("\n")
    assert record.language == "python"
    nodes = {node.name: node for node in pipeline.stages(recipe).traced.graph_module.graph.nodes}
    assert {"relu", "add", "mul"} <= set(nodes)
    lines = record.text.split("\n")
    spans = {span.entity: lines[span.first - 1].strip() for span in record.spans}
    assert spans[f"torch:{file}:6"] == "y = torch.relu(x) + 1"
    assert spans[f"torch:{file}:7"] == "return y * y"
