"""The program that both children run: reads requests, runs them in two lanes, answers.

The heavy lane runs in the main thread, since a model file may do what is allowed only there.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn, Protocol, get_args

import msgspec

from lowerscope.core.engine.channel import Channel, end_group, lead_group
from lowerscope.core.engine.jobs import Context, Job, Jobs, Lane, NotCached, problem_of
from lowerscope.core.engine.protocol import (
    VERSION,
    Approved,
    Cancel,
    Failure,
    Hello,
    ProtocolError,
    Ready,
    Request,
)
from lowerscope.core.files.approved import put_in_force
from lowerscope.core.model.encoding import UNREADABLE
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import QUERIES, LaneName, Query, Role
from lowerscope.core.sandbox import bubblewrap
from lowerscope.core.sandbox.memory_limit import limit_memory
from lowerscope.core.sandbox.running_call import CallWriter
from lowerscope.core.sandbox.temporary_files import remove_own


class Answers(Protocol):
    """The code behind all queries: a `core.pipeline.Pipeline`."""

    def answer(self, query: Query[Any], progress: Context) -> Any:
        """Return the answer to a query."""

    def is_cached(self, query: Query[Any], progress: Context) -> bool:
        """Return whether a query that is ``cached_first`` can be answered at once."""


Warm = Callable[[], Answers]
"""Imports all that answering needs, and returns it."""


def serve(
    role: Role,
    warm: Warm,
    calls_file: int | None = None,
    memory: int | None = None,
) -> NoReturn:
    """Answer queries on descriptors 0 and 1 until the window closes the pipe.

    Parameters
    ----------
    role
        The role of this child.
    warm
        Called when the window has been greeted.
    calls_file
        The descriptor by which the window reads the call of a run that is under way, if any.
    memory
        Limit on the memory of this process, and of all that it starts together, in bytes; ``None``
        for none.
    """
    channel = Channel.claim()
    lead_group()
    faulthandler.enable(file=2)
    running = None if calls_file is None else CallWriter(calls_file)
    channel.start_guard(memory, running)
    if memory is not None:
        limit_memory(memory)
    # A model file that reads the command line must not see this program's.
    sys.argv[1:] = []

    jobs = Jobs(channel.send, running)
    lanes: dict[LaneName, Lane] = {"heavy": Lane(), "light": Lane()}
    _start("reader", partial(_read, channel, role, jobs, lanes))

    channel.send(Hello(VERSION, os.getpid(), role))
    began = time.monotonic()
    try:
        answers = warm()
    except Exception as error:
        channel.send(Failure(0, problem_of(error)))
        end_group(1)
    channel.send(Ready((time.monotonic() - began) * 1000))

    def answer_cached(query: Query[Any], context: Context) -> Any:
        if query.cached_first and not answers.is_cached(query, context):
            raise NotCached
        return answers.answer(query, context)

    def run_light(job: Job) -> None:
        if not jobs.run(job, answer_cached):
            lanes["heavy"].put(job)

    def run_heavy(job: Job) -> None:
        jobs.run(job, answers.answer)

    _start("light lane", partial(lanes["light"].run, run_light))
    lanes["heavy"].run(run_heavy)


def _start(name: str, target: Callable[[], None]) -> None:
    threading.Thread(target=target, name=name, daemon=True).start()


def _read(
    channel: Channel,
    role: Role,
    jobs: Jobs,
    lanes: Mapping[LaneName, Lane],
) -> NoReturn:
    """Put requests into their lanes, until the window has gone."""
    try:
        for message in channel.messages():
            match message:
                case Approved():
                    put_in_force(message.files)
                case Cancel():
                    jobs.cancel(message.id)
                case Request():
                    try:
                        job = _accept(message, role)
                    except ProtocolError as error:
                        problem = Problem(what=f"internal error: {error}", code="internal")
                        channel.send(Failure(message.id, problem))
                    else:
                        jobs.add(job)
                        lanes[job.query.lane].put(job)
    except ProtocolError as error:
        print(f"The window sent something else than a message: {error}", file=sys.stderr)
        end_group(1)
    remove_own()
    end_group(0)


def _accept(request: Request, role: Role) -> Job:
    """Return the job of `request`.

    Raises
    ------
    ProtocolError
        If there is no such query, its fields are of other types, or the other child answers it.
    """
    kind = QUERIES.get(request.name)
    if kind is None:
        raise ProtocolError(f"there is no query {request.name!r}")
    try:
        query = msgspec.msgpack.decode(request.query, type=kind)
    except UNREADABLE as error:
        raise ProtocolError(f"{request.name}: {error}") from error
    if query.child != role:
        raise ProtocolError(f"{request.name} is for the {query.child}")
    return Job(request.id, query)


def _open_pipeline() -> Answers:
    """Import torch and TVM, and return a pipeline."""
    import torch  # noqa: F401

    # TVM replaces the handlers of fatal signals by its own, which print the C++ side of a crash.
    # Enabled after that, faulthandler prints the Python side and leaves the rest to them.
    faulthandler.disable()
    import tvm  # noqa: F401

    faulthandler.enable(file=2)

    from lowerscope.core.stages import Pipeline

    # Objects that torch and TVM made on import stay; collecting them again and again takes 0.1 s
    # each.
    pipeline = Pipeline()
    gc.freeze()
    return pipeline


def main() -> NoReturn:
    """Run as ``python -m lowerscope.core.engine.server --role engine|worker``."""
    parser = argparse.ArgumentParser(prog="lowerscope.core.engine.server", description=__doc__)
    parser.add_argument("--role", choices=get_args(Role), required=True)
    parser.add_argument(
        "--calls", type=int, default=None, help="descriptor to write to which call is under way"
    )
    parser.add_argument("--memory-limit", type=int, default=None, help="in bytes")
    options = parser.parse_args()
    bubblewrap.enter()
    role: Role = options.role
    serve(role, _open_pipeline, options.calls, options.memory_limit)


if __name__ == "__main__":
    main()
