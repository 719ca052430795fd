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
from typing import TYPE_CHECKING, NoReturn, get_args

import msgspec

from lowerscope.core.encoding import UNREADABLE
from lowerscope.core.engine.channel import Channel, end_group, lead_group
from lowerscope.core.engine.jobs import Call, Context, Job, Jobs, Lane, problem_of
from lowerscope.core.engine.methods import METHODS, MethodType
from lowerscope.core.engine.protocol import (
    VERSION,
    Cancel,
    Failure,
    Hello,
    LaneName,
    ProtocolError,
    Ready,
    Request,
    Role,
)
from lowerscope.core.engine.run_params import ExportParams
from lowerscope.core.engine.running_call import CallWriter
from lowerscope.core.engine.temporary_files import remove_own
from lowerscope.core.errors import Problem
from lowerscope.core.export.catalogue import ExportRecord
from lowerscope.core.running.memory_limit import limit_memory

if TYPE_CHECKING:
    from lowerscope.core.pipeline import Pipeline

Warm = Callable[[], Mapping[str, Call]]
"""Imports all that the methods need, and returns them by name."""


def serve(
    role: Role,
    types: Mapping[str, MethodType],
    warm: Warm,
    calls_file: str = "",
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
        Where the window reads which call of a run is under way; empty for nowhere.
    memory
        Bytes of memory that this process may have, and also all that it starts together; ``None``
        for any number.
    """
    channel = Channel.claim()
    lead_group()
    faulthandler.enable(file=2)
    running = CallWriter(calls_file) if calls_file else None
    channel.start_guard(memory, running)
    if memory is not None:
        limit_memory(memory)
    # A model file that reads the command line must not see this program's.
    sys.argv[1:] = []

    jobs = Jobs(channel.send, running)
    lanes: dict[LaneName, Lane] = {"heavy": Lane(), "light": Lane()}
    _start("reader", partial(_read, channel, types, jobs, lanes, running))

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
    running: CallWriter | None,
) -> NoReturn:
    """Put requests into their lanes, until the window has gone."""
    try:
        for message in channel.messages():
            match message:
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
    if running is not None:
        running.remove()
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

    from lowerscope.core.comparing.variants import measure_variants
    from lowerscope.core.execution.target_catalogue import target_records
    from lowerscope.core.pipeline import Pipeline
    from lowerscope.core.remote.machine import remote_state
    from lowerscope.core.rendering.graphs.hierarchy import Opening
    from lowerscope.core.scheduling.code_by_name import program_by_name

    # What torch and TVM made on import stays; looking through it again and again takes 0.1 s each.
    gc.freeze()
    pipeline = Pipeline()
    workbench, numbers, values = pipeline.workbench, pipeline.numbers, pipeline.values_of_run
    return {
        "snapshot": lambda p, context: pipeline.snapshot(p.recipe, p.metrics, context),
        "text": lambda p, context: pipeline.text(p.recipe, p.view, p.name, context, p.moment),
        "derived_text": lambda p, context: pipeline.derived_text(
            p.recipe, p.view, p.name, context, p.moment
        ),
        "catalogue": lambda p, context: pipeline.catalogue(p.recipe, context),
        "graph": lambda p, context: pipeline.graph(
            p.recipe, p.metrics, context, p.graph, p.moment, Opening(p.expanded, p.fits)
        ),
        "derived_graph": lambda p, context: pipeline.derived_graph(
            p.recipe, p.metrics, context, p.graph, p.moment, Opening(p.expanded, p.fits)
        ),
        "difference": lambda p, context: pipeline.difference(p.old, p.new, context),
        "derived_difference": lambda p, context: pipeline.derived_difference(p.old, p.new, context),
        "functions": lambda p, context: pipeline.functions(p.recipe, p.moment, context),
        "derived_functions": lambda p, context: pipeline.derived_functions(
            p.recipe, p.moment, context
        ),
        "graph_difference": lambda p, context: pipeline.graph_difference(
            p.old, p.new, p.function, p.metrics, context
        ),
        "derived_graph_difference": lambda p, context: pipeline.derived_graph_difference(
            p.old, p.new, p.function, p.metrics, context
        ),
        "values": lambda p, context: pipeline.values(p.recipe, p.name, context),
        "derived_values": lambda p, context: pipeline.derived_values(p.recipe, p.name, context),
        "translation": lambda p, context: pipeline.translation(p.recipe, p.node, context),
        "derived_translation": lambda p, context: pipeline.derived_translation(
            p.recipe, p.node, context
        ),
        "schedule": lambda p, context: workbench.schedule(p.recipe, p.function, p.index, context),
        "derived_schedule": lambda p, context: workbench.derived_schedule(
            p.recipe, p.function, p.index, context
        ),
        "moves": lambda p, context: workbench.moves(
            p.recipe, p.function, p.index, p.chosen, context
        ),
        "by_rule": lambda p, context: workbench.by_rule(p.recipe, p.function, context),
        "rules": lambda p, context: workbench.rules(p.recipe, context),
        "schedule_program": lambda p, context: program_by_name(p.schedule),
        "work": lambda p, context: numbers.work(p.recipe, p.function, context),
        "peaks": lambda p, context: numbers.peaks(p.recipe, p.again, context),
        "measure": lambda p, context: numbers.measure(p.recipe, p.function, p.index, context),
        "check": lambda p, context: numbers.check(
            p.recipe, p.function, p.index, p.seconds, context
        ),
        "targets": lambda p, context: target_records(p.texts, p.threads),
        "remote": lambda p, context: remote_state(p.remote, context),
        "tune": lambda p, context: pipeline.tuning.tune(p.recipe, p.options, context),
        "tune_state": lambda p, context: pipeline.tuning.state,
        "pause_tuning": lambda p, context: pipeline.tuning.pause(p.paused),
        "save_values": lambda p, context: pipeline.save_values(p.recipe, p.name, p.file, context),
        "write_rule": lambda p, context: pipeline.write_rule(p.recipe, p.node, p.file, context),
        "build_steps": lambda p, context: pipeline.build_steps(p.recipe, context),
        "agreement": lambda p, context: pipeline.agreement(p.recipe, p.path, context),
        "guard": lambda p, context: pipeline.guard(p.recipe, context),
        "export": lambda p, context: _export(pipeline, p, context),
        "run": lambda p, context: pipeline.run(
            p.recipe, context, p.part, p.before, quick=p.quick, keep=p.keep
        ),
        "comparison": lambda p, context: values.comparison(p.recipe, p.place, context),
        "run_step": lambda p, context: values.step(p.recipe, p.call, p.lines, context),
        "window": lambda p, context: values.window(
            p.recipe, p.place, p.leading, (p.top, p.left, p.rows, p.columns), p.cells, context
        ),
        "save_run_values": lambda p, context: values.save(
            p.recipe, p.place, p.side, p.file, context
        ),
        "variant_times": lambda p, context: measure_variants(pipeline, p.recipes, context),
    }


def _export(pipeline: Pipeline, params: ExportParams, context: Context) -> ExportRecord:
    # Who never exports need not wait for it.
    from lowerscope.core.export.folder import export_record

    return export_record(pipeline, params, context)


def main() -> NoReturn:
    """Run as ``python -m lowerscope.core.engine.server --role engine|worker``."""
    parser = argparse.ArgumentParser(prog="lowerscope.core.engine.server", description=__doc__)
    parser.add_argument("--role", choices=get_args(Role), required=True)
    parser.add_argument("--calls", default="", help="where to write which call is under way")
    parser.add_argument("--memory-limit", type=int, default=None, help="in bytes")
    options = parser.parse_args()
    role: Role = options.role
    types = {name: method for name, method in METHODS.items() if role in method.roles}
    serve(role, types, _open_pipeline, options.calls, options.memory_limit)


if __name__ == "__main__":
    main()
