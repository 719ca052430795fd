"""Queries and the code that answers them, without a child."""

from typing import Any

from lowerscope.core.engine.protocol import Failure
from lowerscope.core.engine.server import CANCELLED, Context, Job, Jobs, NotCached
from lowerscope.core.model.encoding import to_bytes
from lowerscope.core.model.graph import DEFAULT
from lowerscope.core.model.module_steps import ComparedModule, Moment
from lowerscope.core.model.queries import (
    ANSWERING,
    QUERIES,
    CoachQuery,
    DifferenceQuery,
    FunctionsQuery,
    FunctionTextsQuery,
    GraphDifferenceQuery,
    GraphQuery,
    LoweredQuery,
    MovesQuery,
    Query,
    RunEstimateQuery,
    ScheduleQuery,
    TextQuery,
    TranslationQuery,
    ValuesQuery,
    WorkQuery,
)
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline

MLP = Recipe(source=Source(spec="sample:fashion_mlp"))
OTHER = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te")
LAST = Moment(section="passes", index=1)
SIDES = ComparedModule(recipe=MLP), ComparedModule(recipe=OTHER)

CACHED_FIRST: tuple[Query[Any], ...] = (
    TextQuery(MLP, "matmul"),
    GraphQuery(MLP, DEFAULT, moment=LAST),
    FunctionsQuery(MLP, LAST),
    FunctionTextsQuery(MLP, ("matmul",)),
    DifferenceQuery(*SIDES),
    GraphDifferenceQuery(*SIDES, DEFAULT),
    ValuesQuery(MLP, "param:linear1.weight"),
    TranslationQuery(MLP, "linear1"),
    ScheduleQuery(MLP, "matmul"),
    CoachQuery(MLP, "matmul"),
    MovesQuery(MLP, "matmul"),
    WorkQuery(MLP, "matmul"),
    LoweredQuery(MLP, DEFAULT),
    RunEstimateQuery(MLP),
)


def test_all_queries_are_answered() -> None:
    Pipeline()
    own = {name for name, kind in QUERIES.items() if kind.__module__.startswith("lowerscope.")}
    assert own == ANSWERING.keys() & own
    assert {type(each).__name__ for each in CACHED_FIRST} == {
        name for name in own if QUERIES[name].cached_first
    }


def test_answers_are_computed_in_the_light_lane_only_where_they_are_cached() -> None:
    pipeline = Pipeline()
    assert not any(pipeline.is_cached(each) for each in CACHED_FIRST)
    computed = [to_bytes(pipeline.answer(each)) for each in CACHED_FIRST]
    assert all(pipeline.is_cached(each) for each in CACHED_FIRST)
    assert [to_bytes(pipeline.answer(each)) for each in CACHED_FIRST] == computed
    # Compiled in passing, it would keep a run waiting.
    assert not pipeline.is_cached(TextQuery(MLP, "main", "bytecode"))


class CancelledBetweenLanes:
    """Cancels a job when it has left the light lane, where a run's calls are taken down."""

    jobs: Jobs

    def at_part(self, _part: str) -> None:
        self.jobs.cancel(1)


def test_a_query_that_is_cancelled_between_the_lanes_does_not_wait_again() -> None:
    def answer(_query: Query[Any], _context: Context) -> None:
        raise NotCached

    sent: list[Any] = []
    calls = CancelledBetweenLanes()
    calls.jobs = jobs = Jobs(sent.append, calls)  # type: ignore[arg-type]
    job = Job(1, TextQuery(MLP, "matmul"))
    jobs.add(job)
    assert jobs.run(job, answer)
    jobs.cancel(1)
    assert jobs.run(job, answer)
    assert sent == [Failure(1, CANCELLED)]
