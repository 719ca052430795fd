"""Models of the transformers package, small and with random weights, opened as a user's file."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Override, Recipe, Source
from lowerscope.core.stages import Pipeline

pytest.importorskip("transformers")

SMALL = "vocab_size=50, bos_token_id=1, eos_token_id=2, pad_token_id=0, "
BLOCKS = (
    "hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, "
    "max_position_embeddings=32"
)
MODELS = {
    "bert": f"t.BertModel(t.BertConfig({SMALL}{BLOCKS}))",
    "gpt2": (
        f"t.GPT2LMHeadModel(t.GPT2Config({SMALL}n_embd=32, n_layer=2, n_head=4, n_positions=32))"
    ),
    "llama": f"t.LlamaForCausalLM(t.LlamaConfig({SMALL}{BLOCKS}, num_key_value_heads=2))",
    "vit": (
        "t.ViTForImageClassification(t.ViTConfig(hidden_size=32, num_hidden_layers=2, "
        "num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=4, num_labels=5))"
    ),
}
# A cache of keys and values for each of two layers stands beside the logits; its name in them
# depends on the version.
CACHED = {"logits", *(f"cache.{i}.{each}" for i in (0, 1) for each in ("keys", "values"))}
OUTPUTS = {
    "bert": {"last_hidden_state", "pooler_output"},
    "gpt2": CACHED,
    "llama": CACHED,
    "vit": {"logits"},
}

PIPELINE = Pipeline()


def recipe_of(name: str, folder: Path, **fields: object) -> Recipe:
    path = folder / f"{name}.py"
    inputs = "torch.randn(1, 3, 16, 16)" if name == "vit" else "torch.randint(0, 50, (2, 7))"
    path.write_text(
        "import torch\nimport transformers as t\n\n"
        f"def model():\n    return {MODELS[name]}\n\n"
        f"def example_inputs():\n    return ({inputs},)\n"
    )
    return Recipe(source=Source(spec=str(path), entry="model"), **fields)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _their_warnings() -> object:
    """Let the package warn of its own dependencies' deprecations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize(
    ("tracer", "fields"),
    [
        ("export", {"lowering": "high-level"}),
        (
            "auto",
            {"lowering": "te", "overrides": (Override(pattern="linear", strategy="library"),)},
        ),
    ],
)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_transformers_matches_torch(
    tmp_path: Path, name: str, tracer: str, fields: dict[str, object]
) -> None:
    record = PIPELINE.answer(RunQuery(recipe_of(name, tmp_path, tracer=tracer, **fields)))
    assert record.verdict == "match"
    assert record.tracer == "export"
    names = {each.name.replace("past_key_values", "cache") for each in record.outputs}
    assert names == OUTPUTS[name]
