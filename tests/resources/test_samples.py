"""The samples: each opens, traces, and computes what NumPy and torch say."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import numpy as np
import pytest
import torch

from lowerscope.core.files.samples import samples
from lowerscope.core.files.sources import sample_path
from lowerscope.core.model.recipe import InputSpec, Source
from lowerscope.core.sources.input_values import picture_of
from lowerscope.core.sources.opened_model import LoadedModel
from tests.opening import load

TORCH_SAMPLES = {
    "matmul_relu": ((1, 128), (1, 128)),
    "matmul": ((512, 512), (512, 512)),
    "fashion_mlp": ((1, 784), (1, 10)),
    "conv_net": ((1, 1, 28, 28), (1, 10)),
    "resnet18": ((1, 3, 224, 224), (1, 1000)),
    "depthwise_net": ((1, 3, 112, 112), (1, 1000)),
    "transformer_block": ((1, 64, 256), (1, 64, 256)),
}


def opened(name: str, *inputs: InputSpec, seed: int = 0) -> LoadedModel:
    return load(Source(spec=f"sample:{name}"), inputs, seed)


def run(loaded: LoadedModel, *values: torch.Tensor) -> torch.Tensor:
    assert loaded.model is not None
    with torch.no_grad():
        found = loaded.model(*(values or tuple(entry.value for entry in loaded.inputs)))
    assert isinstance(found, torch.Tensor)
    return found


@pytest.mark.parametrize("name", TORCH_SAMPLES)
def test_a_sample_opens_and_traces(name: str) -> None:
    loaded = opened(name)
    assert loaded.title == name
    assert loaded.description == next(s.description for s in samples() if s.name == name)
    assert tuple(loaded.inputs[0].value.shape) == TORCH_SAMPLES[name][0]
    assert loaded.inputs[0].origin == f"example_inputs of {name}.py"
    found = run(loaded)
    assert tuple(found.shape) == TORCH_SAMPLES[name][1]
    assert 0.05 < float(found.abs().max()) < 50
    assert loaded.model is not None
    with torch.no_grad():
        traced = torch.fx.symbolic_trace(loaded.model)(loaded.inputs[0].value)
    assert torch.allclose(traced, found, atol=1e-5)
    assert torch.equal(run(opened(name)), found)


def test_the_batch_norms_of_resnet18_are_not_the_defaults() -> None:
    loaded = opened("resnet18")
    assert loaded.model is not None
    norms = [m for m in loaded.model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert len(norms) == 20
    for norm in norms:
        assert norm.running_mean is not None
        assert norm.running_var is not None
        for value, default in (
            (norm.running_mean, 0),
            (norm.running_var, 1),
            (norm.weight, 1),
            (norm.bias, 0),
        ):
            assert float((value.detach() - default).abs().max()) > 0.05
    assert sum(parameter.numel() for parameter in loaded.model.parameters()) == 11_689_512
    evaluated = run(loaded)
    loaded.model.train()
    assert float((run(loaded) - evaluated).abs().max()) > 0.1


def test_mlp_tvmscript_runs_and_equals_numpy() -> None:
    import tvm
    from tvm import relax

    loaded = opened("mlp_tvmscript")
    assert loaded.model is None
    assert [entry.name for entry in loaded.inputs] == ["x", "w0", "b0", "w1", "b1"]
    machine = relax.VirtualMachine(tvm.compile(loaded.module, "llvm"), tvm.cpu())
    for width in (784, 30):
        arrays = [entry.value.numpy() for entry in loaded.inputs]
        arrays[:2] = arrays[0][:, :width].copy(), arrays[1][:, :width].copy()
        x, w0, b0, w1, b1 = arrays
        found = machine["main"](*map(tvm.runtime.tensor, arrays)).numpy()
        np.testing.assert_allclose(found, np.maximum(x @ w0.T + b0, 0) @ w1.T + b1, atol=1e-4)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """Return the script that draws and trains."""
    path = sample_path("fashion_mlp").with_name("train_fashion_mlp.py")
    spec = importlib.util.spec_from_file_location("train_fashion_mlp", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fashion_mlp_is_right_about_its_own_picture() -> None:
    loaded = opened("fashion_mlp")
    assert len(loaded.classes) == 10
    assert loaded.classes[int(run(loaded).argmax())] == "Ankle boot"
    picture = picture_of(loaded.inputs[0].value)
    assert picture is not None
    assert (picture.width, picture.height, picture.channels) == (28, 28, 1)
    assert max(picture.pixels) > 150
    assert sample_path("fashion_mlp").with_suffix(".npz") in loaded.files


def test_fashion_mlp_is_right_about_every_class_and_new_pictures(script: ModuleType) -> None:
    loaded = opened("fashion_mlp")
    with np.load(sample_path("fashion_mlp").with_suffix(".npz")) as trained:
        stored = trained["pictures"]
    assert stored.shape == (10, 28, 28)
    assert run(loaded, script.as_batch(stored)).argmax(dim=1).tolist() == list(range(10))
    pictures, kinds = script.draw_many(20, seed=99)
    assert (pictures.shape, pictures.dtype) == ((200, 28, 28), np.uint8)
    right = run(loaded, script.as_batch(pictures)).argmax(dim=1).numpy() == kinds
    assert right.mean() > 0.97
