"""What a child calls for its methods, without the child: what is kept is told at once."""

import threading

import msgspec
import pytest

from lowerscope.core.encoding import to_bytes
from lowerscope.core.engine.calls import calls_of
from lowerscope.core.engine.jobs import Context
from lowerscope.core.engine.methods import METHODS, derived
from lowerscope.core.engine.protocol import (
    DifferenceParams,
    FunctionsParams,
    GraphDifferenceParams,
    GraphParams,
    TextParams,
    TranslationParams,
    ValuesParams,
)
from lowerscope.core.engine.schedule_params import MovesParams, ScheduleParams, WorkParams
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.recipe import Recipe, Source
from lowerscope.core.records.difference import Side
from lowerscope.core.records.steps import Moment
from lowerscope.core.rendering.graph_layout.metrics import DEFAULT

MLP = Recipe(source=Source(spec="sample:fashion_mlp"))
OTHER = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te")
LAST = Moment(clock="passes", index=1)
SIDES = {"old": Side(recipe=MLP), "new": Side(recipe=OTHER)}

ASKED: dict[str, msgspec.Struct] = {
    "text": TextParams(recipe=MLP, name="matmul"),
    "graph": GraphParams(recipe=MLP, metrics=DEFAULT, moment=LAST),
    "functions": FunctionsParams(recipe=MLP, moment=LAST),
    "difference": DifferenceParams(**SIDES),
    "graph_difference": GraphDifferenceParams(**SIDES, metrics=DEFAULT),
    "values": ValuesParams(recipe=MLP, name="param:linear1.weight"),
    "translation": TranslationParams(recipe=MLP, node="linear1"),
    "schedule": ScheduleParams(recipe=MLP, function="matmul"),
    "moves": MovesParams(recipe=MLP, function="matmul"),
    "work": WorkParams(recipe=MLP, function="matmul"),
}


def test_what_is_not_kept_is_not_derived_in_passing() -> None:
    context = Context(lambda text, fraction: None, threading.Event())
    calls = calls_of(Pipeline())
    assert calls.keys() == METHODS.keys()
    pairs = {method for method in METHODS if derived(method) in METHODS}
    assert ASKED.keys() >= pairs
    for method, params in ASKED.items():
        assert METHODS[method].lane == "light"
        with pytest.raises(LowerscopeError) as caught:
            calls[method](params, context)
        assert caught.value.problem.code == "not-kept", method
    told = {method: calls[derived(method)](ASKED[method], context) for method in pairs}
    for method, params in ASKED.items():
        answer = calls[method](params, context)
        assert method not in told or to_bytes(answer) == to_bytes(told[method])
    # Compiled in passing, it would keep a run waiting.
    with pytest.raises(LowerscopeError) as caught:
        calls["text"](TextParams(recipe=MLP, name="main", view="bytecode"), context)
    assert caught.value.problem.code == "not-kept"
