"""Code that a trace of one call cannot follow is traced right, left to torch.export, or noted."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from lowerscope.core.run.execution import copied
from lowerscope.core.tracing.example_run import outputs_of
from lowerscope.core.tracing.tracing import TracedModel, trace
from tests.core.lowering.calling_models import Calls

X = torch.arange(20.0).reshape(5, 4) / 7 - 1


class AsksForTypes(nn.Module):
    """Takes another branch where a value is no tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2 if isinstance(x, torch.Tensor) else x - 2
        y = y + 1 if type(y) is torch.Tensor else y - 1
        y = y * 3 if torch.is_tensor(y) else y
        return y + isinstance(x.shape[0], int) + callable(x)


class CallsWithNumbers(nn.Module):
    """Calls functions of torch that take a tensor or a number."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        k = torch.bitwise_and((x * 5).long(), 7)
        y = torch.where(x > 0, x, -1) + torch.where(x > 0, 2.0, x) + torch.pow(x, k)
        y = torch.remainder(y, 3) + nn.functional.softplus(y, 2.0)
        match x:
            case torch.Tensor():
                return y * torch.result_type(x, 1).itemsize
        return y


class AsksForModes(nn.Module):
    """Takes another branch where no gradients are noted."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2 if torch.is_grad_enabled() else x - 2
        return y + 1 if torch.is_inference_mode_enabled() else y - 1


def hooked(model: nn.Module) -> nn.Module:
    """Return a model whose hooks change what it is given, and what it returns."""
    model.register_forward_pre_hook(lambda _, args: (args[0] * 2,))
    model.register_forward_hook(lambda _, args, output: output + args[0].mean())
    model.register_forward_hook(
        lambda _, args, options, output: output * (2 - len(options)), with_kwargs=True
    )
    return model


def run(model: nn.Module) -> Any:
    with torch.inference_mode():
        return model(X.clone())


def computed(traced: TracedModel) -> torch.Tensor:
    outputs = outputs_of(traced.graph_module, (X,))
    return outputs[0] if isinstance(outputs, tuple) else outputs


RIGHT: dict[str, Callable[[], nn.Module]] = {
    "types": AsksForTypes,
    "numbers in place of tensors": CallsWithNumbers,
    "modes": AsksForModes,
    "hooks of a leaf": lambda: nn.Sequential(hooked(nn.Linear(4, 4)), hooked(nn.ReLU())),
    "hooks of the root": lambda: hooked(Calls(torch.relu)),
    "hooks of a root that is a leaf": lambda: hooked(nn.Linear(4, 4)),
    "hooks of a container": lambda: nn.Sequential(hooked(nn.Sequential(nn.Linear(4, 4)))),
}


@pytest.mark.parametrize("tracer", ["auto", "fx", "export"])
@pytest.mark.parametrize("name", RIGHT)
def test_it_is_traced_right(name: str, tracer: Any) -> None:
    torch.manual_seed(0)
    model = RIGHT[name]().eval()
    traced = trace(model, (X,), tracer)
    torch.testing.assert_close(computed(traced), run(model))
    assert traced.notes == ()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1 if hasattr(x, "no_such_attribute") else x - 1,
        lambda x: x + 1 if x.dtype is torch.float32 else x - 1,
        lambda x: x + 1 if str(x.device) == "cpu" else x - 1,
    ],
    ids=["hasattr", "dtype", "device"],
)
def test_export_takes_over_where_the_graph_of_fx_is_another(
    function: Callable[[torch.Tensor], Any],
) -> None:
    model = Calls(function)
    traced = trace(model, (X,), "auto")
    assert traced.tracer == "export"
    assert "does not compute the same as the model" in traced.notes[0].text
    assert "torch.export traced it" in traced.notes[0].text
    torch.testing.assert_close(computed(traced), run(model))
    (note,) = trace(model, (X,), "fx").notes
    assert "traced by torch.fx does not compute the same as the model (output" in note.text


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.calls


class Averages(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.m: Any = 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.m = 0.9 * self.m + x.mean(0)
        return x + self.m


class Appends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, list[int]] = {"sizes": []}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen["sizes"].append(1)
        return x * len(self.seen["sizes"])


STATE = [1.0]


def changing_global(x: torch.Tensor) -> torch.Tensor:
    STATE[0] += 1
    return x * STATE[0]


GENERATOR = np.random.default_rng(0)

FROZEN: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "a counter": (Counts, "forward changes calls at each call"),
    "a mean": (Averages, "forward changes m at each call"),
    "a list": (Appends, "forward changes seen at each call"),
    "a part's counter": (lambda: nn.Sequential(Counts()), "forward changes 0.calls"),
    "Python's numbers": (lambda: Calls(lambda x: x + random.random()), "numbers from Python"),
    "NumPy's numbers": (lambda: Calls(lambda x: x + np.random.rand()), "numbers from NumPy"),
    "a generator's": (lambda: Calls(lambda x: x + GENERATOR.random()), "other values at each call"),
    "a global": (lambda: Calls(changing_global), "other values at each call"),
}


@pytest.mark.parametrize("tracer", ["auto", "fx", "export"])
@pytest.mark.parametrize("name", FROZEN)
def test_what_a_graph_freezes_is_noted(name: str, tracer: Any) -> None:
    make, text = FROZEN[name]
    model = make()
    before = random.getstate(), np.random.get_state(legacy=False)["state"]["pos"]
    traced = trace(model, (X,), tracer)
    assert (random.getstate(), np.random.get_state(legacy=False)["state"]["pos"]) == before
    assert [text in note.text for note in traced.notes] == [True]
    assert traced.tracer == ("fx" if tracer == "fx" else "export")
    if isinstance(model, Counts):
        assert model.calls == 0


class Tracks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count: torch.Tensor
        self.mean: torch.Tensor
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> Any:
        self.count += 1
        self.mean.lerp_(x.mean(0), 0.1)
        if x.isnan().any():
            raise ValueError
        best = int(x[:, 0].argmax())
        return best, {"count": self.count, "mean": self.mean}


def test_a_result_that_is_state_has_the_value_after_the_call() -> None:
    traced = trace(Tracks(), (X,), "auto")
    best, state = outputs_of(traced.graph_module, (X,))
    expected = Tracks()(X)
    assert int(best) == expected[0]
    torch.testing.assert_close(state, expected[1])
    assert traced.agrees


def test_hooks_of_a_copy_keep_features_in_the_copy() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model.features = {}
    model[0].register_forward_hook(lambda _, args, output: model.features.update(first=output))
    made = copied(model)
    x = torch.randn(2, 4)
    torch.testing.assert_close(made(x), made.features["first"].relu())
    assert not model.features


class Recreated(nn.Module):
    """A model whose copies have no parameter but its own."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def __deepcopy__(self, _memo: object) -> Recreated:
        made = Recreated()
        made.linear.load_state_dict(self.linear.state_dict())
        return made


def test_a_copy_may_have_other_parameters() -> None:
    model = Recreated()
    model.more = nn.Parameter(torch.zeros(1))
    assert torch.equal(copied(model).get_parameter("linear.weight"), model.linear.weight)


class Masked(nn.Linear):
    """Masks its weights in each call, as autoregressive layers do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.weight.data *= self.weight.new_ones(4, 4).tril()
        return super().forward(x)


class Clamped(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.weight.data.mul_(1).clamp_(min=0)
        return super().forward(x)


class Bounded(nn.Linear):
    """Bounds the norms of its weights in each call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.weight.data = torch.renorm(self.weight.data, p=2, dim=0, maxnorm=0.3)
        return super().forward(x)


class Decays(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.weight.data.mul_(0.5)
        return super().forward(x)


@pytest.mark.parametrize("kind", [Masked, Clamped, Bounded])
def test_weights_that_the_first_call_alone_changes_are_those_after_it(kind: Any) -> None:
    model = nn.Sequential(kind(4, 4), nn.ReLU()).eval()
    before = model[0].weight.detach().clone()
    traced = trace(model, (X,), "auto")
    assert not traced.notes
    assert {node.op for node in traced.graph_module.graph.nodes} >= {"get_attr", "call_module"}
    found = outputs_of(traced.graph_module, (X,))
    assert not torch.equal(model[0].weight, before)
    with torch.no_grad():
        model[0].weight.copy_(before)
        torch.testing.assert_close(found, model(X))


def test_weights_that_each_call_changes_are_restored() -> None:
    model = Decays(4, 4).eval()
    before = model.weight.detach().clone()
    traced = trace(model, (X,), "auto")
    assert torch.equal(model.weight, before)
    assert any("changes its parameters" in each.text for each in traced.notes)
