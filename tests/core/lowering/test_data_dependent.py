"""Branches, loops and sizes that depend on data: decided when the lowered model runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import cond, nn
from torch._higher_order_ops.map import map as higher_order_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from lowerscope.core.lowering.translator import lower
from lowerscope.core.model.recipe import TracerName
from lowerscope.core.run.execution import to_torch, to_tvm
from lowerscope.core.sources.opened_model import uses_gradients, with_gradients
from lowerscope.core.tracing.grouping import mark_varying
from lowerscope.core.tracing.tracing import TracedModel, trace
from tests.core.lowering import conftest
from tests.core.lowering.calling_models import Calls


def check(
    model: nn.Module,
    *inputs: tuple[torch.Tensor, ...],
    lowered: int,
    tracer: TracerName = "auto",
) -> tuple[TracedModel, list[str]]:
    """Lower a model on the first inputs, and compare with torch on all.

    At least `lowered` nodes must not run in torch; those that do are returned.
    """
    model.eval()
    traced = trace(model, inputs[0], tracer)
    specs = [
        (f"input_{index}", tuple(each.shape), str(each.dtype).removeprefix("torch."))
        for index, each in enumerate(inputs[0])
    ]
    result = lower(traced, specs, "high-level")
    conftest.register_library(result.library)
    machine = conftest.built(result.module)
    for values in inputs:
        with torch.no_grad():
            expected = model(*(each.clone() for each in values))
        actual = machine["main"](*map(to_tvm, values))
        pairs = zip(conftest._flat(actual), conftest.pytree.tree_leaves(expected), strict=True)
        for ours, theirs in pairs:
            result_of = to_torch(ours)
            number = None if isinstance(theirs, torch.Tensor) else result_of.dtype
            torch.testing.assert_close(result_of, torch.as_tensor(theirs, dtype=number))
    by_tvm = [each for each in result.nodes.values() if each.strategy in ("high-level", "te")]
    assert len(by_tvm) >= lowered
    return traced, [each.node for each in result.nodes.values() if each.strategy == "library"]


class Routed(nn.Module):
    """A mixture of experts that calls only those that have rows."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        top = self.gate(x).argmax(-1)
        y = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            mask = top == index
            if mask.any():
                y[mask] = expert(x[mask])
        return y * 2


class Skipping(nn.Module):
    """A mixture of experts that skips those without rows, whose loop has no use afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(4, 4)) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, places = self.gate(x).softmax(-1).topk(2)
        y = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            rows, columns = torch.where(places == index)
            if rows.numel() == 0:
                continue
            y.index_add_(0, rows, expert(x[rows]) * weights[rows, columns, None])
        return y * 2


class Masked(nn.Module):
    """The nearest of the points that were chosen so far, written where it is nearer."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        nearest = torch.full((x.shape[0],), 1e10)
        place = torch.zeros((), dtype=torch.int64)
        for _ in range(3):
            distance = (x - x.index_select(0, place.reshape(1))).square().sum(-1)
            closer = distance < nearest
            nearest[closer] = distance[closer]
            place = nearest.max(0)[1]
        some = x[:, 0] > 0
        return nearest, torch.zeros_like(x).masked_scatter(some[:, None], x[some] * 2)


class Leaving(nn.Module):
    """Layers of which the first that is sure ends the model."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).tanh()
            if x.abs().max().item() > 0.9:
                return x
        return x * 0.5


def divided(x: torch.Tensor, count: torch.Tensor, row: torch.Tensor) -> Any:
    y, z = count, x[:1, :1]
    if count > 0:
        y = 12 // count
    if row < 4:
        z = x.gather(0, row.view(1, 1))
    return x * 2, y, z


class Named(nn.Module):
    """Layers of which the first that is sure ends the model, and is named."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> Any:
        x = x.exp() * 2
        for layer in self.layers:
            x = layer(x).tanh()
            if x.abs().max().item() > 2:
                return x, "early"
        return x, "late"


def halved(x: torch.Tensor) -> torch.Tensor:
    while x.norm() > 1:
        x = x / 2
    return x


def shortened(x: torch.Tensor) -> torch.Tensor:
    while x.norm() > 1:
        x = x[1:]
    return x


class Pondering(nn.Module):
    """Steps until all rows have halted, with a number and a variable of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        state, halted, steps = torch.zeros_like(x), x.new_zeros(len(x)), 0
        while steps < 6 and not (halted > 0.9).all() and float(x.abs().sum()) > 0:
            state = self.cell(x, state)
            share = torch.sigmoid(state.sum(-1)) * (1 - halted)
            halted = halted + share
            steps += 1
        return state + 1, halted


def iterated_until(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y, last = x[0], torch.zeros(())
    while True:
        z = y @ x.t() @ x
        size = z.norm() + 1
        if (size - last).abs() < 1e-3 * size or size > 1e9:
            last = size * 2
            break
        y, last = z / size, size
    return y, last, z


def stopped_early(x: torch.Tensor) -> torch.Tensor:
    for place in range(x.shape[0]):
        if x.abs().max() < 1.5:
            break
        x = x / (2 + 0 * place)
    return x + 1


def added_in_place(x: torch.Tensor) -> torch.Tensor:
    y = first = x * 2
    while y.sum() < 9:
        y += 1
    return first + y


def kept(x: torch.Tensor) -> torch.Tensor:
    rows = []
    order = x.sum(-1).argsort()
    while order.numel() > 1:
        rows.append(order[0])
        order = order[2:] if x[order[0], 0] > 0 else order[1:]
    return x[torch.stack(rows)] * 3


def by_sign(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0 and x[0, 0] > -10:
        y = x.exp()
    else:
        z = x * 2
        y = z + 1
    return y.relu() + 1


def scattered(x: torch.Tensor) -> torch.Tensor:
    rows = (x[:, 0] > 0).nonzero().squeeze(1)
    out = torch.zeros(x.size(0), 2)
    out[rows] = F.relu(x[rows])[:, :2]
    return out


def sorted_by_numpy(x: torch.Tensor) -> torch.Tensor:
    import numpy as np

    y = (x * 2).numpy()
    z = torch.from_numpy(np.sort(y, axis=1))
    return z.exp()


def added_by_numpy(x: torch.Tensor) -> torch.Tensor:
    # One row, whatever the values are.
    rows, _columns = torch.where(F.one_hot(x.argmax(1)[:1], 4) == 1)
    found = torch.from_numpy(x[rows].numpy() * 2)
    return torch.zeros_like(x).index_add_(0, rows, found).relu() + 1


def placed(x: torch.Tensor) -> torch.Tensor:
    places = (x > -100).any(0).nonzero()
    return torch.stack([x.T[each].squeeze(0) * 2 for each in (places[0], places[1])])


def sized(x: torch.Tensor) -> torch.Tensor:
    count = int((x > 0).sum()) + 1
    size = (*x.size()[:0], count, *x.size()[1:])
    places = torch.zeros(x.shape[0], dtype=torch.int64)
    return x.new_zeros(size).index_add_(0, places, x)[0].exp() + x


def moved(x: torch.Tensor) -> Any:
    rows = x[x[:, 0] > 0]
    found = torch.nextafter(rows, rows * 2)
    return found @ torch.ones(4, 3) + 1, found + rows


def counted(x: torch.Tensor) -> Any:
    y = x * 2
    count = int(x.sum())
    return y, count


def by_distribution(x: torch.Tensor) -> Any:
    own = torch.distributions.Categorical(logits=x)
    other = torch.distributions.Categorical(logits=x * 0)
    return own.entropy(), torch.distributions.kl_divergence(own, other)


def force(x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        x = x.clone().requires_grad_(True)
        (found,) = torch.autograd.grad((x.tanh() ** 2).sum(), x)
    return found * 2


def vectorised(x: torch.Tensor) -> torch.Tensor:
    return torch.vmap(lambda row: row.softmax(0) * row.norm())(x)


def chosen(x: torch.Tensor) -> torch.Tensor:
    def positive(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.max() > 1, lambda x: x * 2, torch.sin, (x,))

    return torch.cond(x.sum() > 0, positive, lambda x: x - 1, (x,)) + 1


def scanned(x: torch.Tensor) -> Any:
    weights = x.T @ x

    def step(sums: torch.Tensor, row: torch.Tensor) -> Any:
        sums = sums * 0.5 + row @ weights
        return sums, sums.sin()

    last, sines = scan(step, torch.zeros(4), x, dim=0)
    return last, sines, higher_order_map(lambda row, factor: row * factor.sum(), sines, x)


@torch.inference_mode()
def inferring(x: torch.Tensor) -> torch.Tensor:
    for factor in torch.arange(1, 3):
        x = x * factor
        x += 1
    return x.sin()


def sensitive(x: torch.Tensor) -> Any:
    return torch.func.jacrev(lambda row: row.sin() * row.sum())(x[0])


def curved(x: torch.Tensor) -> Any:
    return torch.func.hessian(lambda row: row.tanh().pow(2).sum())(x[0])


def sloped(x: torch.Tensor) -> Any:
    return torch.vmap(torch.func.jacrev(lambda row: row.sin() * 2))(x)


def checked(x: torch.Tensor) -> torch.Tensor:
    assert not torch.isnan(x).any(), "not a number"
    return x + 1


def verified(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 1:
        torch._check_tensor_all((x * 2).isfinite())
    return x + 1


def padded(x: torch.Tensor) -> torch.Tensor:
    rows, width = torch.tensor(2), torch.tensor(1)
    return F.pad(x.view(rows, 10), (width, 2))


def windows(x: torch.Tensor) -> torch.Tensor:
    rows = x.transpose(0, 1)[1:]
    found = rows.as_strided([2, 2, 3], [1, 4, 4])
    if x.sum() > 0 and x[0, 0] > -10:
        found = found.exp()
    return found * 2


def nested(x: torch.Tensor) -> torch.Tensor:
    rows = torch.nested.nested_tensor([x[:2], x[2:]])
    return torch.nested.to_padded_tensor(rows * 2, 0.0) + 1


def pasted(x: torch.Tensor) -> torch.Tensor:
    out = x.new_zeros(2, *x.shape)
    for index in range(out.shape[0]):
        out[index, : x.shape[0]].copy_(x)
    if x.sum() > 0 and x[0, 0] > -10:
        out = out.exp()
    return out * 2


class Forces(nn.Module):
    """The gradient of a network by its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: torch.Tensor) -> Any:
        x = x.detach().requires_grad_(True)
        with torch.enable_grad():
            energy = self.energy(x).sum()
            (gradient,) = torch.autograd.grad(energy, x)
        return energy, -gradient


def halving(most: int) -> type[nn.Module]:
    class Halving(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            while x.norm() > most:
                x = x / 2
            return x

    return Halving


@pytest.mark.parametrize(
    ("model", "lowered", "in_torch"),
    [
        pytest.param(Routed(), 7, 3, id="experts"),
        pytest.param(Skipping(), 5, 1, id="experts that are skipped"),
        pytest.param(Masked(), 20, 4, id="writes by masks"),
        pytest.param(Leaving(), 10, 3, id="early exit"),
        pytest.param(Calls(halved), 1, 0, id="while"),
        pytest.param(Calls(shortened), 0, 1, id="while of any size"),
        pytest.param(Pondering(), 2, 0, id="while with a number"),
        pytest.param(Calls(iterated_until), 2, 0, id="while True"),
        pytest.param(Calls(stopped_early), 1, 0, id="for with break"),
        pytest.param(Calls(added_in_place), 2, 1, id="while in place"),
        pytest.param(Calls(kept), 2, 3, id="a list of rows"),
        pytest.param(Calls(by_sign), 2, 1, id="branch"),
        pytest.param(Calls(scattered), 6, 3, id="nonzero"),
        pytest.param(Calls(lambda x: x[x > 0] * 2), 1, 1, id="mask"),
        pytest.param(Calls(lambda x: torch.zeros(x[x > 0].shape[0]) + 1), 2, 1, id="size"),
        pytest.param(Calls(lambda x: x[:, 0][x[:, 0] > 0].sum()), 2, 2, id="sum of a mask"),
        pytest.param(Calls(lambda x: x * x.sum().item()), 1, 1, id="item"),
        pytest.param(Calls(counted), 1, 1, id="a number as output"),
        pytest.param(Calls(sorted_by_numpy), 2, 1, id="numpy"),
        pytest.param(Calls(moved), 5, 2, id="shapes by torch"),
        pytest.param(Calls(sized), 2, 3, id="shape with a number of data"),
        pytest.param(Calls(added_by_numpy), 4, 2, id="one row of data"),
        pytest.param(Calls(placed), 8, 1, id="places"),
        pytest.param(Calls(by_distribution), 8, 0, id="distributions"),
        pytest.param(Calls(force), 2, 0, id="gradient"),
        pytest.param(Calls(vectorised), 3, 0, id="vmap"),
        pytest.param(Calls(chosen), 10, 0, id="torch.cond"),
        pytest.param(Calls(scanned), 20, 0, id="scan and map"),
        pytest.param(Calls(inferring), 5, 0, id="inference mode"),
        pytest.param(Calls(sensitive), 3, 0, id="jacobian"),
        pytest.param(Calls(curved), 4, 0, id="hessian"),
        pytest.param(Calls(sloped), 3, 0, id="jacobians of rows"),
        pytest.param(Calls(checked), 1, 0, id="check"),
        pytest.param(Calls(verified), 1, 0, id="check of a tensor"),
        pytest.param(Calls(padded), 2, 0, id="sizes in tensors"),
        pytest.param(Calls(windows), 4, 1, id="elements of memory"),
        pytest.param(Calls(nested), 0, 1, id="nested tensor"),
        pytest.param(Calls(pasted), 2, 3, id="write through a view"),
        pytest.param(Forces(), 0, 1, id="gradient of a network"),
        pytest.param(nn.Sequential(nn.ReLU(), halving(1)(), nn.Tanh()), 2, 1, id="module"),
    ],
)
def test_what_depends_on_data_is_decided_when_the_model_runs(
    model: nn.Module, lowered: int, in_torch: int
) -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 4)
    inputs = [(x,), (-x,), (x * 0,), (x.abs() * 5,), (-x.abs(),)]
    if model.__dict__.get("function") is kept:
        del inputs[2]
    _traced, nodes = check(model, *inputs, lowered=lowered)
    assert len(nodes) <= in_torch


def followed(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    place = x[0].argmax()
    for row in x.argsort(1):
        place = row[place]
    return place, x[place], x[:, place]


def test_an_element_at_a_place_of_data_is_read_by_its_tensor() -> None:
    x = torch.randn(5, 4)
    _traced, nodes = check(Calls(followed), (x,), (-x,), lowered=8, tracer="export")
    assert not nodes


@pytest.mark.parametrize(
    "place", [torch.tensor([2]), torch.tensor([[1]]), torch.tensor(2, dtype=torch.uint8)]
)
def test_a_number_of_a_tensor_of_another_kind_is_one_place(place: torch.Tensor) -> None:
    check(
        Calls(lambda x, at: x[at.item()] * 2),
        (torch.randn(4, 3), place),
        lowered=0,
        tracer="export",
    )


def test_a_branch_that_may_fail_is_computed_only_if_it_is_chosen() -> None:
    x = torch.randn(5, 4)
    inputs = [(x, *map(torch.tensor, each)) for each in ((5, 1), (0, 10**12))]
    check(Calls(divided), *inputs, lowered=1)


def shared(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    if count == 0:
        return x * 2
    return x * (12 // count)


def test_an_early_exit_keeps_the_rest_from_failing() -> None:
    inputs = [(torch.randn(5, 4), torch.tensor(count)) for count in (0, 5)]
    check(Calls(shared), *inputs, lowered=0)
    check(Calls(shared), *reversed(inputs), lowered=0)


def test_an_exit_with_a_name_of_its_own_does_not_stop_the_rest_from_being_lowered() -> None:
    traced = trace(Named().eval(), (torch.randn(5, 4),), "auto")
    names = [node.name for node in traced.graph_module.graph.nodes]
    assert names[1:3] == ["exp", "mul"]
    assert {"layers_0", "layers_1", "layers_2"} <= {*names}


class Padded(nn.TransformerEncoder):
    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return super().forward(x, src_key_padding_mask=padding)


class Encoding(nn.Module):
    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return self.encoder(x, src_key_padding_mask=padding) * 2


@pytest.mark.parametrize("whole", [True, False])
def test_an_encoder_gives_zeros_for_padding_at_the_ends_of_rows(whole: bool) -> None:
    layer, norm = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.LayerNorm(8)
    nn.init.normal_(norm.bias)
    model = Encoding(nn.TransformerEncoder(layer, 1, norm)) if whole else Padded(layer, 1)
    x, none = torch.randn(2, 4, 8), torch.zeros(2, 4) > 0
    at_end = torch.tensor([[0, 0, 0, 0], [0, 0, 1, 1]]) > 0
    between = torch.tensor([[0, 0, 0, 0], [0, 1, 0, 1]]) > 0
    _traced, in_torch = check(model, *((x, each) for each in (at_end, between, none)), lowered=2)
    assert not in_torch


class SplitOnce(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        a = float(y.sum())
        y.mul_(2)
        return y * a


class SplitOften(SplitOnce):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        a = float(y.sum())
        y.mul_(2)
        b = float(y.sum())
        y.add_(1)
        c = float(y.sum())
        d = [each for each in y.tolist() if sum(each) > c][:1]
        return y * a + b - c + len(d)


def test_nodes_do_not_run_again_however_often_a_model_is_split(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = torch.randn(3, 4)
    forward, ran = nn.Linear.forward, [0]

    def counting(module: nn.Linear, value: torch.Tensor) -> torch.Tensor:
        ran[-1] += 1
        return forward(module, value)

    for model in (SplitOnce(), SplitOften()):
        traced, _others = check(model, (x,), (-x,), (x * 9,), lowered=1)
        assert not traced.notes
        with monkeypatch.context() as patch:
            patch.setattr(nn.Linear, "forward", counting)
            trace(model, (x,), "auto")
        ran.append(0)
    # What is changed in place after it was read runs once more.
    assert 0 < ran[1] < 1.5 * ran[0]


def test_the_reason_and_the_line_of_what_runs_in_torch_are_named() -> None:
    model = Calls(shortened)
    traced = trace(model.eval(), (torch.randn(5, 4),), "auto")
    result = lower(traced, [("x", (5, 4), "float32")], "high-level")
    line = inspect.getsourcelines(shortened)[1] + 1
    (note,) = [each for each in result.notes if "runs in torch" in each.text]
    assert note.where == f"{__file__}:{line}"
    assert "a condition depends on a tensor" in note.text


def test_parts_of_a_tensor_are_written_where_the_rest_runs_in_torch() -> None:
    def filled(x: torch.Tensor, n: torch.Tensor) -> Any:
        out = x.new_empty(x.shape[0], 6)
        out[:, :4].copy_(x)
        out[..., 4:].fill_(2.0)
        out.narrow(1, 1, 2).add_(x[:, :2])
        out[1][2:].zero_()
        every = out[:, ::2]
        every += 1
        out[:, 3] *= every[:, 0]
        row = out.select(0, 2).clamp_(min=0.5)
        last = out[-1]
        out.mul_(2)
        wide = out.narrow(dim=1, start=0, length=2).select(dim=0, index=0)
        if n.sum() > 0:
            print("positive")
            out = out + 1
        return torch.cat([out, every.repeat(1, 2)]), row - 1, last, wide

    inputs = [(torch.randn(3, 4), torch.tensor([each])) for each in (1.0, -1.0)]
    _traced, in_torch = check(Calls(filled), *inputs, lowered=20)
    (left,) = in_torch
    assert left.startswith("if_line")


def test_sizes_and_indices_that_are_tensors_are_named_as_the_reason() -> None:
    def sized(x: torch.Tensor, lengths: torch.Tensor) -> Any:
        longest = lengths.max()
        if longest > 100:
            longest = longest - 1
        row = x.narrow(1, lengths.min(), 1)
        new = torch.zeros((2, longest)), torch.full((longest,), 2.0), x.new_ones(longest, 3)
        return new, x[:, :longest] + 1, row, x.repeat(longest, 1)

    inputs = [(torch.randn(2, 5), torch.tensor(each)) for each in ([3, 2], [1, 4])]
    traced, in_torch = check(Calls(sized), *inputs, lowered=1)
    specs = [("x", (2, 5), "float32"), ("lengths", (2,), "int64")]
    notes = [each.text for each in lower(traced, specs, "high-level").notes]
    for name in ("zeros", "full", "new_ones", "getitem", "narrow", "repeat"):
        assert name in in_torch
        assert f"{name}: a size or an index is a tensor; runs in torch (node {name})" in notes


def test_what_is_left_of_a_size_of_data_has_a_known_shape() -> None:
    def pooled(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
        padded, _lengths = nn.utils.rnn.pad_packed_sequence(packed, True)
        return padded.amax(1) @ weight

    weight = torch.randn(4, 3)
    x = torch.randn(2, 5, 4)
    inputs = [(x, torch.tensor(each)) for each in ([5, 2], [1, 3])]
    _traced, in_torch = check(Calls(pooled), *inputs, lowered=1)
    assert "matmul" not in in_torch


class Iterated(nn.Module):
    """As many steps as the data says, in functions of Relax."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, most: torch.Tensor) -> tuple[torch.Tensor, ...]:
        def goes_on(count: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return (count < most) & (x.abs().max() > 1e-3)

        def step(count: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return count + 1, torch.sin(self.layer(x))

        count, y = while_loop(goes_on, step, (torch.zeros((), dtype=torch.int64), x * 2))
        return y + 1, count


def test_a_loop_of_data_becomes_functions() -> None:
    x = torch.randn(3, 4)
    # So many steps that each has no call of its own on the stack.
    inputs = [(x, torch.tensor(most)) for most in (5, 0, 1, 2, 9, 20_000)]
    _traced, in_torch = check(Iterated(), *inputs, (x * 0, torch.tensor(5)), lowered=3)
    assert in_torch == []


@pytest.mark.parametrize("strategy", ["high-level", "te"])
def test_a_loop_of_data_goes_through_the_preset(bench: Any, strategy: str) -> None:
    model, inputs = Iterated().eval(), (torch.randn(3, 4), torch.tensor(6))
    _, lowered = bench.lower(model, inputs, "export", strategy)
    actual = conftest.built_by_preset(lowered.module, "optimise-cpu")["main"](*map(to_tvm, inputs))
    with torch.no_grad():
        expected = model(*inputs)
    for ours, theirs in zip(map(to_torch, actual), expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def seeded(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(7)
    noise = torch.randn(x.shape, generator=generator)
    places = torch.randperm(4, generator=generator)
    drawn = torch.bernoulli(torch.sigmoid(x), generator=generator)
    return x + noise, x[:, places], drawn + torch.rand(4, generator=generator)


def test_a_generator_that_is_made_in_a_call_draws_the_same_in_each() -> None:
    x = torch.randn(5, 4)
    check(Calls(seeded), (x,), (x,), (-x,), (x + 1,), lowered=2, tracer="export")


class Packed(nn.Module):
    """A recurrent layer on sequences of several lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 5, batch_first=True)
        self.last = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
        states, (last, _cell) = self.layer(packed)
        padded, counts = self.padded(states, x.shape[1])
        return self.last(padded), counts, self.last(last[0])

    def padded(self, states: Any, length: int) -> Any:
        return nn.utils.rnn.pad_packed_sequence(states, True)


class PackedToALength(Packed):
    def padded(self, states: Any, length: int) -> Any:
        return nn.utils.rnn.pad_packed_sequence(states, True, total_length=length)


RELU = nn.ReLU(inplace=True)


def written_in_an_expression(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    h = x * 2
    y = h.add_(1) if n.item() != 7 else h * 2
    return y + h


def written_by_a_module(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    h = x * 2
    if n.item() != 7:
        y, scale = RELU(h), 1
    else:
        y, scale = h - 1, 2
    return y * scale + h


def popped(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    held = [x, x * 3]
    y = held.pop() if n.item() != 7 else x
    return y + held[-1]


def named_twice(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    h = x * n
    y = h if h.sum() > 0 else -h
    h[0] = 5
    return y + 1


def listed(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    h, held = x * n, []
    if h.sum() > 0:
        held.append(h)
    else:
        held.append(-h)
    h.mul_(3)
    return held[0] + h


@pytest.mark.parametrize(
    "function", [written_in_an_expression, written_by_a_module, popped, named_twice, listed]
)
def test_what_a_side_writes_or_names_is_seen_by_the_rest(function: Callable[..., Any]) -> None:
    x = torch.tensor([1.0, -2.0, 4.0])
    check(Calls(function), *((x, torch.tensor(each)) for each in (3, 7, -1)), lowered=0)


class Remembers(nn.Module):
    """Changes a buffer at each call, and decides by data."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        y = x - self.mean
        if y.sum() > 0:
            y = y * 2
        return y


def test_what_runs_in_torch_begins_each_run_with_the_same_buffers() -> None:
    x = torch.ones(2, 4)
    traced = trace(Remembers().eval(), (x,), "auto")
    result = lower(traced, [("x", (2, 4), "float32")], "high-level")
    conftest.register_library(result.library)
    machine = conftest.built(result.module)
    with torch.inference_mode():
        found = [to_torch(conftest._flat(machine["main"](to_tvm(x)))[0]) for _run in range(3)]
    for each in found:
        torch.testing.assert_close(each, Remembers()(x))


def test_places_are_counted_of_a_mask_that_is_named() -> None:
    def places(x: torch.Tensor) -> Any:
        return torch.nonzero(input=x), torch.argwhere(input=x), x[x > 0]

    check(
        Calls(places), *((torch.tensor(each),) for each in ([1.0, 0, 2], [0.0, 3, -1])), lowered=1
    )


@pytest.mark.parametrize("kind", [Packed, PackedToALength])
def test_a_layer_takes_packed_sequences_of_any_lengths(kind: type[Packed]) -> None:
    x = torch.randn(3, 6, 4)
    inputs = [(x, torch.tensor(each)) for each in ([6, 2, 5], [1, 3, 2], [4, 4, 4])]
    _traced, in_torch = check(kind(), *inputs, lowered=1)
    assert "layer" in in_torch


def test_two_sizes_of_data_are_not_said_to_be_reduced() -> None:
    x = torch.randn(5, 4)
    model = Calls(lambda x: x[x[:, 0] > 0] * x[x[:, 0] > 0])
    result = lower(trace(model, (x,), "auto"), [("x", (5, 4), "float32")], "high-level")
    assert any("mul: it is not known whether sizes" in each.text for each in result.notes)


def test_functions_of_the_model_are_as_before() -> None:
    code = by_sign.__code__
    trace(Calls(by_sign).eval(), (torch.randn(5, 4),), "auto")
    assert by_sign.__code__ is code


@pytest.mark.parametrize(
    ("function", "enables"), [(force, True), (halved, False), (lambda x: force(x), True)]
)
def test_gradients_are_found_in_code(function: Callable[..., Any], enables: bool) -> None:
    assert uses_gradients(function) is enables


class Exiting(nn.Module):
    """A network that stops as soon as it is sure, and says after how many layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        for index, layer in enumerate(self.layers):
            x = torch.tanh(layer(x))
            if x.max().item() > 0.5:
                return x, index
        return x, len(self.layers)


def test_an_early_exit_with_a_number() -> None:
    inputs = [(torch.full((2, 4), scale),) for scale in (0.0, 0.5, 1.0, -3.0)]
    _traced, in_torch = check(Exiting(), *inputs, lowered=6)
    assert not in_torch


def with_an_early_number(x: torch.Tensor) -> Any:
    if x.sum() < 0:
        return 0
    return x.mean() * 2


def with_an_early_number_and_a_loop(x: torch.Tensor) -> Any:
    if x.sum() < 0:
        return 0
    return sum(each.sum() for each in x if each.sum() > 1)


@pytest.mark.parametrize("function", [with_an_early_number, with_an_early_number_and_a_loop])
@pytest.mark.parametrize("first", [1, -1])
def test_a_number_beside_a_tensor_has_its_dtype(function: Callable[..., Any], first: int) -> None:
    inputs = [(torch.full((2, 4), scale * first),) for scale in (1.0, -1.0, 0.1)]
    check(Calls(function), *inputs, lowered=0)


def with_a_caught_float(x: torch.Tensor) -> torch.Tensor:
    try:
        scale = float(x.abs().max())
    except Exception:
        scale = 1.0
    return x / scale


def with_a_caught_branch(x: torch.Tensor) -> torch.Tensor:
    try:
        if x.sum() > 0:
            return x * 2
    except (TypeError, ValueError):
        pass
    return x + 1


@pytest.mark.parametrize("function", [with_a_caught_float, with_a_caught_branch])
def test_an_error_of_the_tracer_that_the_model_catches(function: Callable[..., Any]) -> None:
    inputs = [(torch.full((2, 4), scale),) for scale in (2.0, -3.0)]
    traced, _in_torch = check(Calls(function), *inputs, lowered=0)
    assert traced.agrees
    assert not traced.notes


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.cond(x.sum() > 0, lambda x: self.a(x), lambda x: self.b(x) * 2, (x,))
        return self.a(y) if y.mean() > 0 else self.b(y).relu()

    def cond(self, *args: Any) -> torch.Tensor:
        result: torch.Tensor = torch.cond(*args)
        return result


class BranchingByName(Branching):
    def cond(self, *args: Any) -> torch.Tensor:
        result: torch.Tensor = cond(*args)
        return result


@pytest.mark.parametrize("kind", [Branching, BranchingByName])
def test_a_branch_of_torch_cond_before_another(kind: type[Branching]) -> None:
    inputs = [(torch.randn(3, 4) + shift,) for shift in (-2, 0, 2)]
    _traced, in_torch = check(kind(), *inputs, lowered=6)
    assert not in_torch


class SelectingTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = x[:, 0] > 0
        places = mask.nonzero()[:, 0]
        return torch.relu(self.layer(x)[mask] + x[mask]) * 2 + x[places]


@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_selections_by_one_mask_have_one_size(tracer: TracerName) -> None:
    inputs = [(torch.randn(6, 4) + shift,) for shift in (0, 3, -9)]
    _traced, in_torch = check(SelectingTwice(), *inputs, lowered=7, tracer=tracer)
    assert not [each for each in in_torch if each.startswith(("add", "mul", "relu", "cat"))]


class Descending(nn.Module):
    """A step of gradient descent, for which ``forward`` relies on gradients being on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        loss = self.layer(x).square().mean()
        gradients = torch.autograd.grad(loss, list(self.parameters()))
        return [each - 0.1 * own for each, own in zip(self.parameters(), gradients, strict=True)]


class Attacking(nn.Module):
    """Adds the sign of the gradient that is left at a new tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            p = x.detach().clone().requires_grad_(True)
            (self.layer(p) ** 2).mean().backward()
        assert p.grad is not None
        return p.grad.sign() * 0.03 + x


class Residual(nn.Module):
    """A derivative by an input of a method whose decorator enables gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.solution = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))

    @torch.enable_grad()
    def forward(self, x: torch.Tensor) -> Any:
        x = x.clone().requires_grad_(True)
        return torch.autograd.grad(self.solution(x).sum(), x)[0] + x


def test_decorators_that_enable_gradients_are_found() -> None:
    assert uses_gradients(Residual())
    assert not uses_gradients(Filling())
    check(Residual(), (torch.randn(3, 1),), (torch.randn(3, 1),), lowered=1)


def test_gradients_left_at_tensors_are_read_where_they_are_computed() -> None:
    with torch.inference_mode(False):
        check(Attacking(), (torch.randn(3, 4),), (torch.randn(3, 4),), lowered=0)


def test_gradients_of_the_parameters() -> None:
    model = with_gradients(Descending())
    _traced, in_torch = check(model, (torch.randn(3, 4),), (torch.randn(3, 4),), lowered=1)
    assert not in_torch


class Filling(nn.Module):
    """Assignments to parts of tensors, in a model that is split."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = torch.zeros(5, 3, 4)
        for index in range(3):
            out[:, index] = self.layer(x) * index if x.sum() > index else x - index
        out[1:3, ..., 0] = 7
        y = self.layer(x)
        y[..., 1::2] = 0
        y[0] = x[1]
        y[:, torch.tensor([0, 3])] += 1.5
        y[y[:, 0] > 0] = -1
        return out, y


def test_assignments_to_parts_of_tensors() -> None:
    inputs = [(torch.randn(5, 4) + shift,) for shift in (-2, 0, 2)]
    _traced, in_torch = check(Filling(), *inputs, lowered=8)
    assert not in_torch


class Asking(nn.Module):
    """A model that asks for the types of its values, with a branch on data."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        if not isinstance(y, torch.Tensor):
            raise TypeError("it is no tensor")
        return y * 2 if x.sum() > 0 else y


def test_types_of_values_in_a_model_that_is_split() -> None:
    _traced, in_torch = check(Asking(), (torch.ones(2, 4),), (-torch.ones(2, 4),), lowered=3)
    assert not in_torch


def repeated_and_filled(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    out = torch.as_tensor(0.5).repeat([4, 3])
    out[places] = x
    return out * 2 if x.sum() > 0 else out


def filled_before_the_end(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    mask = x[:, 0] > places
    if mask.all():
        return x * 2
    mask.logical_not_()
    for row in x:
        if row.sum() > 0:
            return x + mask[:, None]
    return x * mask[:, None]


@pytest.mark.parametrize("function", [repeated_and_filled, filled_before_the_end])
def test_new_tensors_may_be_written(function: Callable[..., Any]) -> None:
    x, places = torch.randn(2, 3), torch.tensor([3, 1])
    inputs = [(x, places), (-x, places - 1), (x.abs() + 4, places)]
    traced, _in_torch = check(Calls(function), *inputs, lowered=1)
    assert len(traced.graph_module.graph.nodes) > 5


def written_for_the_caller(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = writes_its_argument(y)
    return y + z


def writes_its_argument(y: torch.Tensor) -> torch.Tensor:
    for row in y:
        if row.sum() > 0:
            y.add_(1)
            return y * 2
    return y


def test_what_the_caller_reads_later_is_written() -> None:
    x = torch.randn(2, 3)
    check(Calls(written_for_the_caller), (x,), (x.abs(),), (-x.abs(),), lowered=0)


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 4))

    def forward(self, places: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        adjacency = torch.sparse_coo_tensor(places, values, (6, 6))
        weights = torch.sparse.softmax(adjacency, 1).to_dense()
        twice = (adjacency * 2).coalesce().values()
        return weights @ self.weight, torch.sparse.sum(adjacency, 1).to_dense(), twice


def by_rows(crow: torch.Tensor, column: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.sparse_csr_tensor(crow, column, x[:, 0], (6, 6)) @ x[:6]


def test_places_of_sparse_rows_are_checked_on_other_inputs() -> None:
    crow, column = torch.tensor([0, 2, 3, 4, 6, 7, 8]), torch.tensor([0, 1, 2, 3, 0, 4, 5, 1])
    ran: list[bool] = []
    own = torch.sparse_csr_tensor

    def watched(*args: object) -> torch.Tensor:
        ran.append(torch.sparse.check_sparse_tensor_invariants.is_enabled())
        return own(*args)

    inputs = crow, column, torch.randn(8, 4)
    traced, _in_torch = check(Calls(by_rows), inputs, lowered=1)
    for node in traced.graph_module.graph.find_nodes(op="call_function", target=own):
        node.target = watched
    mark_varying(traced.graph_module, traced.values, [inputs], of_data=True)
    assert set(ran) == {True}


def read_after_it_was_written(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    y = x * other
    return set_or_written(y) + y


def set_or_written(y: torch.Tensor) -> torch.Tensor:
    if y.sum().item() > 1e6:
        y = y.abs()
    else:
        y[:, 0] *= 3
    return y + 1


def written_in_the_condition(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    y = x * other
    z = x + 1
    if y.mul_(3).sum().item() > 1e6:
        z = x - 1
    return y + z


def test_a_tensor_that_a_branch_writes_or_replaces_is_given_as_a_copy() -> None:
    x, other = torch.rand(3, 4), torch.rand(3, 4)
    inputs = [(x, other), (x * 1e6, other), (x, other + 1e7)]
    _traced, in_torch = check(Calls(read_after_it_was_written), *inputs, lowered=3)
    assert in_torch == [f"if_line{inspect.getsourcelines(set_or_written)[1] + 1}"]


def written_by_another_name(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    y = x * other
    z = y.to(torch.float32)
    count = int((x > 0.5).sum())
    if count > 100:
        z.mul_(2)
    else:
        z.mul_(3)
    return y + count


def written_as_a_view(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    y = x * other
    z = y
    y = y.view(-1)
    if y.sum().item() > 1e6:
        y.mul_(2)
    else:
        y.mul_(3)
    return z + 1


def written_in_rows(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    y = x * other
    rows = y.unbind(0)
    if x.sum().item() > 1e6:
        rows[1].zero_()
    else:
        rows[2].index_put_((torch.tensor([0]),), torch.tensor(7.0))
    y.t().reshape(-1).mul_(2)  # of a copy
    return y.cumsum(0)


def written_in_a_loop(x: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x * other
    z = y.view(-1)
    for index in range(int(x.argmax()) % 4):
        z[index] += 1
        y[0] *= 2
    return y, z + 1


@pytest.mark.parametrize(
    "function", [written_by_another_name, written_as_a_view, written_in_rows, written_in_a_loop]
)
def test_a_write_is_seen_by_all_names_of_its_memory(function: Callable[..., Any]) -> None:
    x, other = torch.rand(3, 4), torch.rand(3, 4)
    inputs = [(x, other), (x * 1e6, other + 1e6), (-x, other), (x.flip(0), other * 3)]
    check(Calls(function), *inputs, lowered=0)


def test_sparse_tensors_stay_in_torch() -> None:
    places = torch.tensor([[0, 1, 2, 5], [1, 2, 0, 4]])
    check(Sparse(), (places, torch.randn(4)), (places.flip(0), torch.randn(4)), lowered=1)


def by_a_count(x: torch.Tensor) -> torch.Tensor:
    count = x[x[:, 0] > 0].shape[0] + 1
    y = x * 2
    if count > 2:
        y = y + 1
    return y.relu()


def test_a_branch_on_a_size_of_data_selects() -> None:
    x = torch.randn(3, 4)
    _traced, in_torch = check(Calls(by_a_count), (x,), (x.abs(),), (-x.abs(),), lowered=3)
    assert not any(each.startswith("if_line") for each in in_torch), in_torch


class Biased(nn.Module):
    """Attention with a mask that is made in ``forward``, and scores that a parameter changes."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.rand(2))

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        def score(score: Any, _batch: Any, head: Any, row: Any, column: Any) -> Any:
            return score - self.slope[head] * (row - column)

        def near(_batch: Any, _head: Any, row: Any, column: Any) -> Any:
            return (row >= column) & (row - column < 5)

        mask = create_block_mask(near, None, None, q.shape[2], k.shape[2], device="cpu")
        return cast(torch.Tensor, flex_attention(q, k, v, score_mod=score, block_mask=mask))


def test_attention_of_functions_is_lowered_by_its_parts() -> None:
    inputs = tuple(torch.randn(1, 2, 8, 4) for _ in range(3))
    _traced, in_torch = check(Biased(), inputs, tuple(each * 3 for each in inputs), lowered=3)
    assert not in_torch


class Reporting(nn.Module):
    """Layers of which the first that is sure ends the model, with how sure it is and which."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        for index, layer in enumerate(self.layers):
            x = layer(x).tanh()
            most = x.abs().max().item()
            if most > 0.9:
                return {"x": x, "most": most, "index": index}
        return {"x": x * 0.5, "most": 0.0, "index": -1}


def test_numbers_beside_the_result_of_a_branch_are_selected() -> None:
    x = torch.randn(3, 4)
    _traced, in_torch = check(Reporting(), (x,), (x * 20,), (x * 0,), lowered=6)
    assert not in_torch


class Held:
    """Rows, and how many there are."""

    def __init__(self, rows: torch.Tensor, count: int) -> None:
        self.rows = rows
        self.count = count


class Halving(nn.Module):
    """A loop over the tensor in an object, whose result is in another one."""

    def forward(self, held: Held) -> Held:
        rows = held.rows
        while float(rows.abs().max()) > 1:
            rows = rows * 0.5
        return Held(rows, held.count)


class OfObjects(nn.Module):
    """Modules that pass objects with tensors on, and a loop that reads one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.halving = Halving()
        self.last = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        held = self.halving(Held(self.first(x), x.shape[0]))
        for row in held.rows.sum(1).tolist():
            held = Held(held.rows + row, held.count)
        return self.last(held.rows) * held.count


def test_objects_with_tensors_enter_and_leave_what_runs_in_torch() -> None:
    x = torch.randn(3, 4)
    check(OfObjects(), (x,), (x * 20,), (-x * 5,), lowered=3)


class ByIterator(nn.Module):
    """An iterator over rows that a loop takes from as often as data say."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.last = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        rows = iter(y)
        total = torch.zeros(4)
        for kind in x[:, 0].gt(0).tolist():
            total = total + (next(rows) if kind else 1)
        return self.last(total)


class Calling(nn.Module):
    """A loop that runs in torch and calls a function with statements that do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = ByIterator()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        once = self.inner(x)
        total = torch.zeros(2)
        for row in (once * x.sum()).tolist():
            if row > 0:
                total = total + self.inner(x * row)
        return total + once


@pytest.mark.parametrize("model", [ByIterator(), Calling()], ids=lambda each: type(each).__name__)
def test_an_iterator_stays_with_what_it_reads(model: nn.Module) -> None:
    x = torch.randn(3, 4)
    check(model, (x,), (-x,), (x.abs(),), lowered=2)


@torch.compile(backend="eager")
def compiled_branch(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.sum() > 0 else x - 1


class OfCompiled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        while x.abs().max() > 1:
            x = x * 0.5
        return compiled_branch(x).relu() * 3


def test_a_compiled_function_is_traced_with_the_model() -> None:
    x = torch.randn(3, 4)
    check(OfCompiled(), (x,), (-x * 4,), lowered=3)


class ByName(nn.Module):
    """Choose a layer by a name that depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.heads = nn.ModuleDict({"small": nn.Linear(4, 3), "large": nn.Linear(4, 3)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        name = "large" if x.mean() > 0 else "small"
        return self.heads[name](h)  # type: ignore[no-any-return]


class Telling(nn.Module):
    """Return something that is no tensor, and depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        y = self.body(x)
        kind = inspect.Parameter.empty if x.mean() > 0 else object()
        return {"y": y.relu(), "kind": kind}


def test_a_text_that_depends_on_the_data_stays_with_what_reads_it() -> None:
    x = torch.rand(2, 4)
    _traced, in_torch = check(ByName(), (x,), (-x,), lowered=1)
    assert len(in_torch) == 1


def test_an_output_of_any_type_may_depend_on_the_data() -> None:
    x = torch.rand(2, 4)
    model = Telling().eval()
    traced = trace(model, (x,), "auto")
    assert "body" in [node.name for node in traced.graph_module.graph.nodes]
    for values in (x, -x):
        with torch.no_grad():
            actual = traced.graph_module(values)
        leaves = conftest.pytree.tree_leaves(actual)
        found = [each for each in leaves if isinstance(each, torch.Tensor)]
        torch.testing.assert_close(found[0], model(values)["y"].detach())


class Decoding(nn.Module):
    """Return a list of numbers for each row, of a length that depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.body(x)
        found = []
        for row in y:
            numbers = [0]
            while len(numbers) < int(row.argmax()) + 2:
                numbers.append(int(row.argmin()))
            found.append(numbers)
        return found, y


def test_the_number_of_outputs_may_depend_on_the_data() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    traced, in_torch = check(Decoding(), (x,), (x * 2,), lowered=1)
    assert len(in_torch) == 1
    part = traced.graph_module.get_submodule(in_torch[0])
    assert "the number of results depends on the data" in str(part.reason)
    with pytest.raises(RuntimeError, match="another structure than with the example inputs"):
        traced.graph_module(-x)


class Experts(nn.Module):
    """A mixture of experts whose weights are slices of one parameter, as in transformers."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.weights = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = self.gate(x).argmax(-1)
        mask = F.one_hot(chosen, 3)
        y = torch.zeros_like(x)
        for expert in mask.sum(0).greater(0).nonzero():
            (rows,) = torch.where(mask[:, expert[0]])
            y.index_add_(0, rows, F.linear(x[rows], self.weights[expert[0]]))
        return y.relu() + x


def test_a_part_in_torch_reads_parameters_of_its_module() -> None:
    x = torch.randn(5, 4)
    _traced, in_torch = check(Experts(), (x,), (-x,), (x[:1].repeat(5, 1),), lowered=6)
    assert len(in_torch) == 1


@dataclass
class Result:
    logits: torch.Tensor
    layer: int
    score: torch.Tensor | None = None


class Exits(nn.Module):
    """Return an object early, with or without one of its tensors."""

    def __init__(self, last_has_score: bool) -> None:
        super().__init__()
        self.body = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.last_has_score = last_has_score

    def forward(self, x: torch.Tensor) -> Result:
        for index, layer in enumerate(self.body):
            x = layer(x).relu()
            score = x.mean()
            if score > 0.5:
                return Result(x, index, score)
        return Result(x, 3, score if self.last_has_score else None)


@pytest.mark.parametrize("last_has_score", [True, False])
def test_an_early_exit_with_an_object(last_has_score: bool) -> None:
    torch.manual_seed(0)
    model = Exits(last_has_score).eval()
    x = torch.rand(2, 4)
    traced = trace(model, (x * 20,), "auto")
    assert {"body_0", "body_1", "body_2"} <= {n.name for n in traced.graph_module.graph.nodes}
    for values in (x * 20, x * 0) if last_has_score else (x * 20, x * -20):
        with torch.no_grad():
            actual, expected = traced.graph_module(values), model(values)
        assert int(actual["layer"]) == expected.layer
        torch.testing.assert_close(actual["logits"], expected.logits)
        torch.testing.assert_close(actual["score"], expected.score)
    if not last_has_score:
        with pytest.raises(RuntimeError, match="another structure than with the example inputs"):
            traced.graph_module(x * 0)
