"""Prefill and decode of language models: token by token beside torch, by one executable."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lowerscope.core.export.reproducing import reproduction
from lowerscope.core.files.pipelines_and_schedules import PRESETS, with_pipeline
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import GenerationQuery, RunQuery
from lowerscope.core.model.recipe import Dimension, Extension, Recipe, Source
from lowerscope.core.stages import Pipeline
from tests.problems import problem_of

TOKENS = 24

FILE = Path(__file__).with_name("cached_models.py")

CLAMPED = """
import torch
from tvm import relax
from lowerscope.core.rules import Refused, rule

@rule(torch.ops.aten.embedding.default)
def clamped(builder, node, weight, places):
    if len(places.ty.shape) != 1:
        raise Refused("it is not the one of the positions")
    most = relax.const(20, "int64")
    return builder.emit(relax.op.take(weight, relax.op.minimum(places, most), axis=0))
"""


def recipe(entry: str, **more: object) -> Recipe:
    made = Recipe(source=Source(spec=str(FILE), entry=entry))
    return msgspec.structs.replace(made, **more)


def test_tokens_equal_torchs_with_one_build(pipeline: Pipeline) -> None:
    wide = Dimension(name="length", low=1, high=2048)
    record = pipeline.answer(GenerationQuery(recipe("Grows", dimensions=(wide,)), TOKENS))
    assert record.verdict == "match"
    assert record.fault is None
    assert (record.same, len(record.tokens)) == (TOKENS, TOKENS)
    assert len({each.token for each in record.tokens}) > 5
    assert [each.entry for each in record.tokens[:3]] == ["prefill", "decode", "decode"]
    assert record.decode.dimensions == (wide,)
    # Five tokens of the prompt, and all but the last that was generated.
    assert [each.cache_bytes for each in record.tokens] == [
        4 * 4 * 8 * n for n in range(5, TOKENS + 5)
    ]
    assert next((each.name, each.shape, each.bytes) for each in record.cache) == (
        *("cache.0.keys", (1, TOKENS + 4, 8)),
        (TOKENS + 4) * 8 * 4,
    )


def test_a_mask_that_grows_with_the_cache_has_its_dimension(pipeline: Pipeline) -> None:
    wide = Dimension(name="length", low=1, high=2048)
    record = pipeline.answer(GenerationQuery(recipe("Masks", dimensions=(wide,)), TOKENS))
    assert record.verdict == "match", record.fault
    assert record.same == TOKENS
    assert not record.later
    assert record.decode.dimensions == (wide,)
    shapes = {each.name: each.shape for each in record.decode.inputs}
    assert shapes["mask"] == (1, "length + 1")
    assert shapes["cache_0_keys"] == (1, "length", 8)


def test_a_window_that_gets_full_has_steps_of_its_own(pipeline: Pipeline) -> None:
    record = pipeline.answer(GenerationQuery(recipe("Slides"), TOKENS))
    assert record.verdict == "match", record.fault
    assert record.same == TOKENS
    # Five tokens of the prompt: the window of nine is full when the fifth is added.
    ranges = [[(each.low, each.high) for each in step.dimensions] for step in record.steps]
    assert [step.source.after for step in record.steps] == [0, 4]
    assert ranges[0] == [(1, 8)]
    assert ranges[1][0][0] == 9
    assert [record.recipe_of(token) for token in (0, 1, 4, 5, TOKENS)] == [
        record.prefill,
        *[record.decode] * 2,
        *[record.later[0]] * 2,
    ]
    assert record.cache[0].shape == (1, 9, 8)


def test_a_state_written_in_place_is_returned_beside_a_cache_that_grows(
    pipeline: Pipeline,
) -> None:
    record = pipeline.answer(GenerationQuery(recipe("Mixes", tracer="export"), TOKENS))
    assert record.verdict == "match", record.fault
    assert record.same == TOKENS
    assert "cache.state" in [each.name for each in record.cache]


def test_a_cache_in_the_buffers_of_the_model_is_given_and_returned(pipeline: Pipeline) -> None:
    record = pipeline.answer(GenerationQuery(recipe("Keeps"), TOKENS))
    assert record.verdict == "match", record.fault
    assert record.same == TOKENS
    assert len({each.token for each in record.tokens}) > 5
    # Ninety-six keys of eight float32, a flag for each, and the next place.
    sizes = {each.name: each.bytes for each in record.cache}
    assert sizes == {"state.keys": 96 * 8 * 4, "state.seen": 96, "outputs[1]": 8}


STATEFUL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(32, 16), nn.Linear(16, 32)
        self.register_buffer("keys", torch.zeros(1, 16, 16))
        KEPT

    def forward(self, tokens, position):
        x = self.embedding(tokens)
        WRITES
        return self.head(self.keys.mean(1, keepdim=True) + x), position

torch.manual_seed(0)
model = Net().eval()
MORE
example_inputs = torch.tensor([[3, 1, 4, 1]]), torch.arange(4)

def next_inputs(outputs, token):
    return token, outputs[1][-1:] + 1
"""


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize(
    ("kept", "writes", "more", "given"),
    [
        ("pass", "self.keys[:, position] = x", "", True),
        ("pass", "self.keys.data[:, position] = x", "", True),
        ("self.sign = torch.ones(1)", "self.sign.neg_(); x = x * self.sign", "", True),
        (
            "self.packed = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)",
            *("self.keys[:, position] = x", "", True),
        ),
        (
            "self.fixed = torch.inference_mode()(torch.ones)(3)",
            *("self.keys[:, position] = x", "", True),
        ),
        ("self.all = [self.keys]", "self.all[0][:, position] = x", "", False),
        ("self.part = self.keys[:, :8]", "self.keys[:, position] = x", "", False),
        ("pass", "self.keys[:, position] = x", "model.register_forward_hook(len)", False),
    ],
    ids=[
        *("in place", "by its data", "back after two calls", "beside a quantised tensor"),
        "beside a tensor of inference mode",
        *("in a list", "a view", "hooked"),
    ],
)
def test_a_state_is_given_only_where_it_has_one_name(
    tmp_path: Path, kept: str, writes: str, more: str, given: bool
) -> None:
    path = tmp_path / "net.py"
    more = more.replace("len", "lambda *_others: None")
    source = STATEFUL.replace("KEPT", kept).replace("WRITES", writes).replace("MORE", more)
    path.write_text(source, encoding="utf-8")
    stages = Pipeline().stages(Recipe(source=Source(spec=str(path))))
    opened = stages.opened
    assert opened.gives_state == given
    assert opened.model is not None
    assert not opened.model.get_buffer("keys").any(), "opening it leaves its state as it was"
    if given:
        with pytest.raises(LowerscopeError, match="keeps its state in its own attributes"):
            reproduction(stages, stages.recipe)


def test_the_step_is_a_model_of_its_own(pipeline: Pipeline) -> None:
    step = recipe("InPlace", source=Source(spec=str(FILE), entry="InPlace", decode=True))
    whole = recipe("InPlace")
    shared, own = (pipeline.stages(each).opened.model for each in (step, whole))
    assert shared is not None
    assert own is not None
    assert all(a is b for a, b in zip(shared.parameters(), own.parameters(), strict=True))
    record = pipeline.answer(RunQuery(step))
    assert record.verdict == "match", record.reason
    assert pipeline.answer(GenerationQuery(whole, TOKENS)).same == TOKENS


def test_a_fault_that_begins_at_a_position_is_named(pipeline: Pipeline, tmp_path: Path) -> None:
    file = tmp_path / "clamped.py"
    file.write_text(CLAMPED)
    rules = (Extension(path=str(file), kind="rules"),)
    faulty = recipe("Grows", extensions=rules, tracer="export")
    record = pipeline.answer(GenerationQuery(faulty, TOKENS))
    assert record.verdict == "differ"
    assert record.fault is not None
    # Positions 0 to 4 are the prompt's, so that of token 18 is the first behind 20.
    assert (record.fault.token, record.fault.entry, len(record.tokens)) == (17, "decode", 18)
    assert record.fault.node == "fx:embedding_1"
    assert record.fault.layer == "positions"
    assert record.fault.where.startswith("cached_models.py:")


DRIFTS = """
import torch
from tvm import relax
from lowerscope.core.rules import Refused, rule

@rule(torch.ops.aten.embedding.default)
def drifts(builder, node, weight, places):
    if len(places.ty.shape) != 1:
        raise Refused("it is not the one of the positions")
    one, more = (relax.const(each, "float32") for each in (1.0, 1.000005))
    late = builder.emit(relax.op.greater(places, relax.const(12, "int64")))
    factor = builder.emit(relax.op.expand_dims(builder.emit(relax.op.where(late, more, one)), 1))
    return builder.emit(relax.op.multiply(node.built_in(weight, places), factor))
"""


def test_a_fault_within_the_tolerance_of_the_outputs_is_named(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    file = tmp_path / "drifts.py"
    file.write_text(DRIFTS)
    rules = (Extension(path=str(file), kind="rules"),)
    faulty = recipe("Grows", extensions=rules, tracer="export")
    record = pipeline.answer(GenerationQuery(faulty, TOKENS))
    assert record.fault is not None
    assert record.verdict == "differ"
    assert {each.verdict for each in record.tokens[:-1]} == {"match"}
    # Position 13 is that of token 10.
    assert (record.fault.token, record.fault.entry, len(record.tokens)) == (9, "decode", 10)
    assert record.fault.node == "fx:embedding_1"
    assert record.fault.layer == "positions"


DOUBLED = """
import torch
from tvm import relax
from lowerscope.core.rules import Refused, rule

@rule(torch.ops.aten.matmul.default)
def doubled(builder, node, x, y):
    if node.name != "matmul":
        raise Refused("it is another one")
    product = node.built_in(x, y)
    return builder.emit(relax.op.add(product, product))
"""


def test_a_fault_inside_a_fused_call_is_named(pipeline: Pipeline, tmp_path: Path) -> None:
    file = tmp_path / "doubled.py"
    file.write_text(DOUBLED)
    rules = (Extension(path=str(file), kind="rules"),)
    steps = next(each.steps for each in PRESETS if each.name == "optimise-cpu")
    faulty = with_pipeline(recipe("Grows", extensions=rules, tracer="export"), steps)
    record = pipeline.answer(GenerationQuery(faulty, 3))
    assert record.fault is not None
    assert record.fault.node == "fx:matmul"


def test_a_range_that_ends_before_the_tokens_is_named(pipeline: Pipeline) -> None:
    short = Dimension(name="length", low=1, high=12)
    problem = problem_of(
        pipeline.answer, GenerationQuery(recipe("Grows", dimensions=(short,)), TOKENS)
    )
    assert problem.what == "length is 13 at token 10, and its range ends at 12"


def test_a_source_without_a_step_says_what_to_define(pipeline: Pipeline) -> None:
    assert "next_inputs" in problem_of(pipeline.answer, GenerationQuery(recipe("Holds"), 4)).todo


MISNAMED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.out = nn.Linear(4, 9)

    def forward(self, ids):
        return self.out(self.embedding(ids))

example_inputs = (torch.tensor([[1, 2]]),)

def next_inputs(outputs, token):
    return {"tokens": token}
"""


def test_a_fault_of_the_next_inputs_is_not_one_of_the_example_inputs(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    file = tmp_path / "net.py"
    file.write_text(MISNAMED)
    query = GenerationQuery(Recipe(source=Source(spec=str(file))), 4)
    assert problem_of(pipeline.answer, query).what.startswith("next_inputs gives tokens")


SCALED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(32, 16), nn.Linear(16, 32)
        self.scales = [1 / (1 + n) for n in range(64)]

    def forward(self, tokens, keys):
        keys = torch.cat([keys, self.embedding(tokens)], 1)
        return self.head(keys.sum(1, keepdim=True) * self.scales[keys.shape[1]]), keys

model = Net().eval()
example_inputs = torch.tensor([[3]]), torch.zeros(1, 2, 16)

def next_inputs(outputs, token):
    return token, outputs[1]
"""


def test_a_step_that_takes_one_size_says_how_many_tokens_fit(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    path = tmp_path / "scaled.py"
    path.write_text(SCALED)
    one = Recipe(source=Source(spec=str(path)))
    with pytest.raises(LowerscopeError) as caught:
        pipeline.answer(GenerationQuery(one, TOKENS))
    problem = caught.value.problem
    assert "needs more than 8 functions" in problem.what
    assert "at most 8 tokens" in problem.todo
    assert pipeline.answer(GenerationQuery(one, 8)).same == 8
