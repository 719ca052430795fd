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
from typing import NoReturn, get_args

import msgspec

from lowerscope.core import sandbox
from lowerscope.core.encoding import UNREADABLE
from lowerscope.core.engine.channel import Channel, end_group, lead_group
from lowerscope.core.engine.jobs import Call, Job, Jobs, Lane, problem_of
from lowerscope.core.engine.methods import METHODS, MethodType
from lowerscope.core.engine.protocol import (
    VERSION,
    Approved,
    Cancel,
    Failure,
    Hello,
    LaneName,
    ProtocolError,
    Ready,
    Request,
    Role,
)
from lowerscope.core.engine.temporary_files import remove_own
from lowerscope.core.errors import Problem
from lowerscope.core.memory_limit import limit_memory
from lowerscope.core.running.running_call import CallWriter
from lowerscope.core.sources.approved_files import put_in_force

Warm = Callable[[], Mapping[str, Call]]
"""Imports all that the methods need, and returns them by name."""


def serve(
    role: Role,
    types: Mapping[str, MethodType],
    warm: Warm,
    calls_file: int | None = None,
    memory: int | None = None,
) -> NoReturn:
    """Serve the methods of `types` on descriptors 0 and 1 until the window closes the pipe.

    Parameters
    ----------
    role
        Which child this is.
    types
        The methods that can be asked for.
    warm
        Called when the window has been greeted; returns the functions behind `types`.
    calls_file
        The descriptor by which the window reads which call of a run is under way, if any.
    memory
        Bytes of memory that this process may have, and also all that it starts together; ``None``
        for any number.
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
    _start("reader", partial(_read, channel, types, jobs, lanes))

    channel.send(Hello(VERSION, os.getpid(), role))
    began = time.monotonic()
    try:
        calls = warm()
    except Exception as error:
        channel.send(Failure(0, problem_of(error)))
        end_group(1)
    channel.send(Ready((time.monotonic() - began) * 1000))

    def run(job: Job) -> None:
        jobs.run(job, calls[job.method])

    _start("light lane", partial(lanes["light"].run, run))
    lanes["heavy"].run(run)


def _start(name: str, target: Callable[[], None]) -> None:
    threading.Thread(target=target, name=name, daemon=True).start()


def _read(
    channel: Channel,
    types: Mapping[str, MethodType],
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
                        job = _accept(message, types)
                    except ProtocolError as error:
                        problem = Problem(what=f"internal error: {error}", code="internal")
                        channel.send(Failure(message.id, problem))
                    else:
                        jobs.add(job)
                        lanes[types[job.method].lane].put(job)
    except ProtocolError as error:
        print(f"The window sent something else than a message: {error}", file=sys.stderr)
        end_group(1)
    remove_own()
    end_group(0)


def _accept(request: Request, types: Mapping[str, MethodType]) -> Job:
    """Return the job that `request` asks for.

    Raises
    ------
    ProtocolError
        If there is no such method, or its parameters are of another type.
    """
    method = types.get(request.method)
    if method is None:
        raise ProtocolError(f"there is no method {request.method!r}")
    try:
        params = msgspec.msgpack.decode(request.params, type=method.params)
    except UNREADABLE as error:
        raise ProtocolError(f"parameters of {request.method}: {error}") from error
    return Job(request.id, request.method, params)


def _open_pipeline() -> Mapping[str, Call]:
    """Import torch and TVM, and return the methods of a pipeline."""
    import torch  # noqa: F401

    # TVM replaces the handlers of fatal signals by its own, which print the C++ side of a crash.
    # Enabled after that, faulthandler prints the Python side and leaves the rest to them.
    faulthandler.disable()
    import tvm  # noqa: F401

    faulthandler.enable(file=2)

    from lowerscope.core.engine.calls import calls_of
    from lowerscope.core.pipeline import Pipeline

    # What torch and TVM made on import stays; looking through it again and again takes 0.1 s each.
    gc.freeze()
    return calls_of(Pipeline())


def main() -> NoReturn:
    """Run as ``python -m lowerscope.core.engine.server --role engine|worker``."""
    parser = argparse.ArgumentParser(prog="lowerscope.core.engine.server", description=__doc__)
    parser.add_argument("--role", choices=get_args(Role), required=True)
    parser.add_argument(
        "--calls", type=int, default=None, help="descriptor to write to which call is under way"
    )
    parser.add_argument("--memory-limit", type=int, default=None, help="in bytes")
    options = parser.parse_args()
    sandbox.enter()
    role: Role = options.role
    types = {name: method for name, method in METHODS.items() if role in method.roles}
    serve(role, types, _open_pipeline, options.calls, options.memory_limit)


if __name__ == "__main__":
    main()
