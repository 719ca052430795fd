"""The steps of the translation: what each node added, and the module as it grew."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import tvm
import tvm_ffi
from torch import fx
from tvm import relax

from lowerscope.core.build.build import register_library
from lowerscope.core.lowering.partial_module import leaves_of, module_prefix
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.module_steps import Moment, TranslationRecord
from lowerscope.core.model.queries import SnapshotQuery, TranslationQuery
from lowerscope.core.model.recipe import Extension, Recipe, Source, Strategy, with_params_as_inputs
from lowerscope.core.stages import Pipeline, Stages

SAMPLES = ("fashion_mlp", "conv_net", "transformer_block")
STRATEGIES: tuple[Strategy, ...] = ("high-level", "te", "library")

PIPELINE = Pipeline()


def recipe_of(sample: str, strategy: Strategy) -> Recipe:
    return Recipe(source=Source(spec=f"sample:{sample}"), lowering=strategy)


def records_of(recipe: Recipe) -> tuple[TranslationRecord, ...]:
    return PIPELINE.answer(SnapshotQuery(recipe, DEFAULT)).translation


def graph_of(stages: Stages) -> fx.Graph:
    assert stages.traced is not None
    return stages.traced.graph_module.graph


def bindings_of(module: tvm.IRModule) -> list[str]:
    blocks = module["main"].body.blocks
    return [f"relax:main/{each.var.name}" for block in blocks for each in block.bindings]


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_records_have_every_binding_and_function_once_in_order(
    sample: str, strategy: Strategy
) -> None:
    recipe = recipe_of(sample, strategy)
    records = records_of(recipe)
    stages = PIPELINE.stages(recipe)
    assert [each.number for each in records] == list(range(1, len(records) + 1))
    assert [each.node for each in records] == [f"fx:{node.name}" for node in graph_of(stages).nodes]
    assert [name for each in records for name in each.bindings] == bindings_of(stages.module)
    added = [name for each in records for name in each.functions]
    functions = [each.name_hint for each in stages.module.get_global_vars()]
    assert sorted(added) == sorted(set(functions) - {"main"})
    assert len(set(added)) == len(added)


@pytest.mark.diagonal
@pytest.mark.parametrize("inputs", [False, True], ids=["constants", "params-as-inputs"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_the_module_at_every_moment_is_well_formed_and_grows(
    sample: str, strategy: Strategy, inputs: bool
) -> None:
    stages = PIPELINE.stages(with_params_as_inputs(recipe_of(sample, strategy), inputs))
    lowered, graph = stages.lowered, graph_of(stages)
    assert lowered is not None
    whole = bindings_of(stages.module)
    nodes = list(graph.nodes)
    for count in range(len(nodes)):
        module = module_prefix(lowered, graph, count)
        # It raises at the first violation; TVM's own imports are well formed as well.
        relax.analysis.well_formed(module)
        done = [name for node in nodes[:count] for name in lowered.nodes[node.name].bindings]
        leaving = bindings_of(module)[len(done) :]
        assert bindings_of(module)[: len(done)] == whole[: len(done)]
        assert all(name.startswith("relax:main/gv") for name in leaving)
        called = {name for node in nodes[:count] for name in lowered.nodes[node.name].functions}
        assert {each.name_hint for each in module.get_global_vars()} == {"main", *called}
    last = module_prefix(lowered, graph, len(nodes))
    assert tvm_ffi.structural_equal(last, stages.module, map_free_vars=True)


class _Values(fx.Interpreter):
    """Runs a graph as torch does, and keeps what each node gives."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.values: dict[str, object] = {}

    def run_node(self, n: fx.Node) -> object:
        value = super().run_node(n)
        self.values[n.name] = value.clone() if isinstance(value, torch.Tensor) else value
        return value


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("sample", ["matmul_relu", "fashion_mlp", "conv_net", "transformer_block"])
def test_what_the_module_computes_at_a_moment_is_what_torch_has_there(
    sample: str, strategy: Strategy
) -> None:
    stages = PIPELINE.stages(recipe_of(sample, strategy))
    lowered, traced = stages.lowered, stages.traced
    assert lowered is not None
    assert traced is not None
    values = [each.value for each in stages.loaded.inputs]
    interpreter = _Values(traced.graph_module)
    with torch.no_grad():
        interpreter.run(*values)
    register_library(lowered.library)
    nodes = list(traced.graph_module.graph.nodes)
    counts = sorted({2, len(nodes) // 3, len(nodes) // 2, len(nodes) - 1})
    compared = 0
    for count in counts:
        node = nodes[count - 1]
        expected = interpreter.values[node.name]
        if not list(leaves_of(lowered.nodes[node.name].value)):
            continue
        module = stages.module_at(Moment(section="translate", index=count))
        machine = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
        result = machine["main"](*(tvm.runtime.tensor(each.numpy()) for each in values))
        assert isinstance(expected, torch.Tensor)
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
        compared += 1
    assert compared >= 2


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_every_node_has_the_source_of_its_rule_and_the_steps_of_emit_te(
    sample: str, strategy: Strategy
) -> None:
    recipe = recipe_of(sample, strategy)
    lowered = PIPELINE.stages(recipe).lowered
    assert lowered is not None
    for name, known in lowered.nodes.items():
        translation = PIPELINE.answer(TranslationQuery(recipe, f"fx:{name}"))
        assert translation.summary
        if known.strategy:
            assert translation.sources[0].text
        for source in translation.sources:
            if source.line is not None:
                lines = Path(source.line.file).read_text().split("\n")
                # What is said to stand there does.
                assert lines[source.line.line - 1].strip() == source.line.text
        for call in translation.calls:
            assert call.by_pass == (strategy == "high-level")
            signature = next(x for x in call.script.text.split("\n") if x.startswith("def "))
            for each in call.placeholders if not call.first_made else ():
                assert f"{each.name}: T.Buffer(" in signature
            assert signature.count("T.Buffer(") > len(call.placeholders)
            assert call.expression is not None, call.refusal
            assert f"cls.{call.function}" in call.call
        if strategy == "te":
            made = [call.binding.removeprefix("relax:main/") for call in translation.calls]
            assert made == [each for each in known.bindings if each in lowered.te_calls]


def test_sources_of_a_rule_of_the_users_and_of_parts(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import torch\nfrom torch import nn\n\n"
        "model = nn.Sequential(nn.ReLU(), nn.LSTM(3, 4, proj_size=2))\n"
        "example_inputs = (torch.ones(2, 3),)\n"
    )
    rules = tmp_path / "my_rules.py"
    rules.write_text(
        "import torch\nfrom tvm import relax\nfrom lowerscope.core.rules import rule\n\n\n"
        "@rule(torch.nn.ReLU)\ndef my_relu(builder, node, x):\n"
        "    return builder.emit(relax.op.nn.relu(x))\n"
    )
    recipe = Recipe(
        source=Source(spec=str(tmp_path / "model.py"), entry="model"),
        extensions=(Extension(path=str(rules), kind="rules"),),
    )
    names = {each.node for each in records_of(recipe)}
    assert {"fx:_0", "fx:_1"} <= names
    own = PIPELINE.answer(TranslationQuery(recipe, "_0")).sources[0]
    assert (own.kind, own.name) == ("user", "my_relu")
    assert own.line is not None
    assert (own.line.file, own.line.line) == (str(rules), 6)
    assert own.text.startswith("@rule(torch.nn.ReLU)\ndef my_relu(")
    parts = PIPELINE.answer(TranslationQuery(recipe, "_1"))
    assert "parts" in parts.summary
    assert {each.name for each in parts.sources} >= {"linear", "tanh", "sigmoid"}
    assert all(each.remark.startswith("for ") for each in parts.sources)
