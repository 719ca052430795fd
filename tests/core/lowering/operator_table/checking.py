"""Runs the forms of an entry all the way and compares them with torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, settings
from torch import nn

from lowerscope.core.model.recipe import Override, Strategy
from tests.core.lowering.conftest import Outcome, Way
from tests.core.lowering.operator_table.entries import Drawn, Entry, Form, compile_form, is_tensor

STRATEGIES: tuple[Strategy, ...] = ("high-level", "te", "library")


class Batch(nn.Module):
    """All forms of some entries on examples as one model, so that they are compiled together.

    Each form is called inside a module of its own, by which its nodes are known.
    """

    def __init__(self, examples: Sequence[tuple[Entry, Drawn]]) -> None:
        super().__init__()
        self.calls = nn.ModuleList()
        self.inputs: list[torch.Tensor] = []
        for entry, drawn in examples:
            first = len(self.inputs)
            self.inputs += [each for each in drawn.values() if is_tensor(each)]
            for text in entry.all_forms:
                form = compile_form(text, tuple(entry.arguments), drawn)
                self.calls.append(FormCall(entry, form, drawn, first))
        self.eval()
        for call in self.calls:
            if "trained(" in call.form.text and call.module is not None:
                call.module.train()

    def arguments(self) -> tuple[torch.Tensor, ...]:
        """Return the inputs that the model is traced and run with."""
        return tuple(self.inputs)

    def forward(self, *inputs: torch.Tensor) -> list[Any]:
        return [call(*inputs) for call in self.calls]


class FormCall(nn.Module):
    """A form of an entry on one example, whose tensors begin at an index among the inputs."""

    def __init__(self, entry: Entry, form: Form, drawn: Drawn, first: int) -> None:
        super().__init__()
        self.entry = entry
        self.form = form
        self.drawn = drawn
        self.first = first
        if form.module is not None:
            # Half precision and double modules have parameters of their own dtype.
            tensors = [each for each in drawn.values() if is_tensor(each)]
            floats = [each.dtype for each in tensors if each.is_floating_point()]
            self.module = with_state(form.module).to(floats[0] if floats else torch.float32)
        else:
            self.module = None

    def forward(self, *inputs: torch.Tensor) -> Any:
        place = self.first
        arguments = dict(self.drawn)
        for name, each in self.drawn.items():
            if is_tensor(each):
                arguments[name] = inputs[place]
                place += 1
        return self.form.call(self.module, **arguments)

    def describe(self) -> str:
        """Return the form and what it is called with, in one line."""
        parts = []
        for name, each in self.drawn.items():
            if is_tensor(each):
                each = f"{str(each.dtype)[6:]}{list(each.shape)} strides {each.stride()}"
            parts.append(f"{name}={each}")
        return f"{self.entry.name}: {self.form.text} with {', '.join(parts)}"


def with_state(module: nn.Module) -> nn.Module:
    """Give parameters and statistics values that are not the defaults."""
    generator = torch.Generator().manual_seed(1)
    for name, tensor in [*module.named_buffers(), *module.named_parameters()]:
        if tensor.is_floating_point():
            random = torch.rand(tensor.shape, generator=generator)
            tensor.data.copy_(random + 0.5 if "var" in name else random - 0.5)
    return module


def batches(entry: Entry, count: int, size: int) -> Iterator[list[Drawn]]:
    """Yield `count` examples, the same in each run, `size` at a time."""
    found: list[Drawn] = []

    # The first examples that hypothesis tries are the plainest.
    @settings(
        max_examples=count + 2,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(entry.examples())
    def collect(drawn: Drawn) -> None:
        found.append(drawn)

    collect()
    chosen = found[-count:]
    for start in range(0, len(chosen), size):
        yield chosen[start : start + size]


@dataclass(frozen=True)
class Case:
    """Examples of an entry, and how they are traced and lowered."""

    examples: Sequence[Drawn]
    tracer: str
    strategies: Sequence[str] = STRATEGIES


def check_entry(bench: Any, entry: Entry, cases: Sequence[Case]) -> None:
    """Assert that every form gives what torch does, by each strategy that is asked for."""
    ways = []
    for case in cases:
        model = Batch([(entry, each) for each in case.examples])
        ways += [Way(model, model.arguments(), case.tracer, each) for each in case.strategies]
    for way, outcome in zip(ways, _run(bench, ways), strict=True):
        _check(way, outcome, [way.strategy] * len(way.model.calls))


@dataclass(frozen=True)
class Once:
    """An entry on one example, and how its forms are traced and lowered, each by one strategy."""

    entry: Entry
    example: Drawn
    tracer: str
    strategies: Sequence[Strategy]


def check_once(bench: Any, together: Sequence[Once]) -> None:
    """Assert that the forms of some entries, in one model, give what torch does."""
    model = Batch([(each.entry, each.example) for each in together])
    strategies = [strategy for each in together for strategy in each.strategies]
    overrides = tuple(
        Override(pattern=f"calls.{place}", strategy=strategy)
        for place, strategy in enumerate(strategies)
    )
    way = Way(model, model.arguments(), together[0].tracer, STRATEGIES[0], overrides)
    (outcome,) = _run(bench, [way])
    _check(way, outcome, strategies)


def check_forms_once(bench: Any, together: Sequence[Once]) -> None:
    """Assert the same as `check_once`, and name the entry that fails by itself, if one does."""
    try:
        check_once(bench, together)
    except AssertionError:
        if len(together) > 1:
            for each in together:
                check_once(bench, [each])
        raise


def is_plain(entry: Entry) -> bool:
    """Return whether the forms can be in one model with those of other entries.

    What runs in torch, or stays an operator, is told of a model as a whole.
    """
    return not (entry.in_torch or entry.loose_export or entry.random or entry.operators_stay)


def spread(
    entry: Entry, examples: Sequence[Drawn], offset: int
) -> tuple[Drawn, str, list[Strategy]]:
    """Return the example and the tracer for an entry, and a strategy for each of its forms.

    Neighbouring forms have different strategies. The tracer, the example and the strategy of the
    first form differ from one offset to the next.
    """
    example = examples[offset // 2 % len(examples)]
    tracer = entry.tracers[offset % len(entry.tracers)]
    places = range(offset, offset + len(entry.all_forms))
    return example, tracer, [STRATEGIES[place % len(STRATEGIES)] for place in places]


def _run(bench: Any, ways: Sequence[Way]) -> list[Outcome]:
    try:
        outcomes: list[Outcome] = bench.run_together(ways)
    except Exception as error:
        told = "; ".join(
            f"{way.tracer}, {way.strategy}: "
            + "; ".join(call.describe() for call in way.model.calls)
            for way in ways
        )
        raise AssertionError(f"{told}: {type(error).__name__}: {error}") from error
    return outcomes


def _check(way: Way, outcome: Outcome, strategies: Sequence[str]) -> None:
    start = 0
    calls = list(zip(way.model.calls, strategies, strict=True))
    for (call, strategy), count in zip(calls, outcome.counts, strict=True):
        for index in range(start, start + count):
            actual, expected = outcome.actual[index], outcome.expected[index]
            problem = difference(actual, expected, call.entry)
            assert not problem, f"{way.tracer}, {strategy}: {call.describe()}: {problem}"
        start += count
    assert start == len(outcome.actual), f"{way.tracer}, {way.strategy}"
    for number, (call, strategy) in enumerate(calls):
        check_strategy(call, f"calls.{number}", outcome, way.tracer, strategy)


def check_strategy(call: FormCall, path: str, outcome: Any, tracer: str, strategy: str) -> None:
    """Assert that the nodes of a form were lowered as the entry says."""
    entry = call.entry
    where = f"{tracer}, {strategy}: {call.describe()}"
    names = [
        name
        for name, module in outcome.traced.modules.items()
        if module == path or module.startswith(f"{path}.")
    ]
    nodes = [outcome.lowered.nodes[name] for name in names if name in outcome.lowered.nodes]
    made = [node for node in nodes if node.strategy]
    if strategy == "library":
        assert {node.strategy for node in made} <= {"library"}, where
        return
    reason = entry.in_torch.get(call.form.text)
    if reason is None and tracer == "export" and entry.loose_export:
        return
    if reason is None:
        others = [f"{node.node}: {node.reason}" for node in made if node.strategy != strategy]
        assert not others, f"{where}: {others}"
        if strategy == "te" and not entry.operators_stay:
            stayed = [
                note.text for note in outcome.lowered.notes if "stays an operator" in note.text
            ]
            assert not stayed, f"{where}: {stayed}"
    elif tracer == "fx":
        reasons = [node.reason for node in made if node.strategy == "library"]
        assert any(reason in each for each in reasons), f"{where}: runs by {strategy}: {reasons}"
    if entry.random:
        assert any(node.random for node in made), where


def difference(actual: torch.Tensor, expected: torch.Tensor, entry: Entry) -> str:
    """Return how a value differs from torch's; empty where it matches."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        ours, theirs = (f"{str(each.dtype)[6:]}{list(each.shape)}" for each in (actual, expected))
        return f"{ours} instead of {theirs}"
    if entry.random:
        return ""
    tolerance = entry.tolerance
    if expected.dtype in (torch.float16, torch.bfloat16):
        tolerance = max(4 * torch.finfo(expected.dtype).eps, tolerance)
    elif not expected.dtype.is_floating_point:
        tolerance = 0.0
    half = expected.dtype in (torch.float16, torch.bfloat16)
    near = tolerance if half else tolerance / 10
    same = torch.isclose(actual, expected, rtol=tolerance, atol=near, equal_nan=True)
    if bool(same.all()):
        return ""
    ours, theirs = (each[~same].flatten()[:4].tolist() for each in (actual, expected))
    return f"{ours} instead of {theirs}"
