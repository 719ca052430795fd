"""Language models of the transformers package with their caches: 64 tokens equal torch's."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowerscope.core.model.queries import GenerationQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline

pytest.importorskip("transformers", minversion="5.24")  # its models return ``cache``

SIZES = (
    "vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2, "
    "num_attention_heads=4"
)
STATES = "vocab_size=96, hidden_size=32, state_size=8, num_hidden_layers=2"
OF_T5 = "vocab_size=96, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4"
MODELS = {
    "gpt2": "t.GPT2LMHeadModel(t.GPT2Config(vocab_size=96, n_embd=32, n_layer=2, n_head=4))",
    "llama": f"t.LlamaForCausalLM(t.LlamaConfig({SIZES}, num_key_value_heads=2))",
    "mistral": f"t.MistralForCausalLM(t.MistralConfig({SIZES}, num_key_value_heads=2))",
    "gemma2": f"t.Gemma2ForCausalLM(t.Gemma2Config({SIZES}, num_key_value_heads=2, head_dim=8))",
    "mamba": f"t.MambaForCausalLM(t.MambaConfig({STATES}))",
    "falcon_mamba": f"t.FalconMambaForCausalLM(t.FalconMambaConfig({STATES}))",
    "t5": f"t.T5ForConditionalGeneration(t.T5Config({OF_T5}))",
}

FILE = """
import torch
import transformers as t

def model():
    return {model}

def example_inputs():
    ids = torch.arange(1, 9)[None]
    return {first}

def next_inputs(outputs, token):
    return {following}
"""


@pytest.mark.parametrize("name", MODELS)
def test_a_generation_equals_torchs(name: str, tmp_path: Path) -> None:
    first, following = '{"input_ids": ids}', '{"input_ids": token, "cache": outputs.cache}'
    if name == "t5":
        first = '{"input_ids": ids, "decoder_input_ids": ids[:, :3]}'
        following = (
            '{"decoder_input_ids": token, "cache": outputs.cache, '
            '"encoder_outputs": (outputs.encoder_last_hidden_state,)}'
        )
    path = tmp_path / f"{name}.py"
    path.write_text(FILE.format(model=MODELS[name], first=first, following=following))
    recipe = Recipe(source=Source(spec=str(path), entry="model"))
    record = Pipeline().answer(GenerationQuery(recipe, 64))
    assert record.verdict in ("match", "rounding")
    assert record.same == len(record.tokens) == 64
