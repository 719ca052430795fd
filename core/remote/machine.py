"""State of a tracker, and description of a server's machine."""

from __future__ import annotations

from typing import Any

import tvm

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.targets import make_target, target_json
from lowerscope.core.model.queries import RemoteQuery, TargetsQuery, answers
from lowerscope.core.pipeline import Pipeline
from lowerscope.core.progress import Progress
from lowerscope.core.records.remote import Remote, RemoteMachine, RemoteState
from lowerscope.core.records.target import TargetRecord
from lowerscope.core.remote.session import Session, session
from lowerscope.core.remote.tracker import BUSY, SOON, Tracker
from lowerscope.core.target_catalogue import lacks, target_records


def remote_state(remote: Remote, progress: Progress) -> RemoteState:
    """Return the state of a tracker, and the machine behind its key if a server of it is free.

    Raises a `LowerscopeError` if there is no tracker, no server with the key, or the server has
    another version.
    """
    with Tracker(remote) as tracker:
        keys = tracker.keys()
    machine = None
    try:
        with session(remote, progress, SOON) as opened:
            machine = machine_of_server(opened)
    except LowerscopeError as error:
        # A busy server exists.
        if error.problem.code != BUSY:
            raise
    return RemoteState(tracker=remote.tracker, keys=keys, machine=machine)


def machine_of_server(opened: Session) -> RemoteMachine:
    """Return a server's description of its machine; a runtime without LLVM has little."""

    def asked(name: str) -> Any | None:
        function = opened.function(name)
        return None if function is None else opened.call(f"asking for {name}", function)

    threads = asked("runtime.NumThreads")
    triple = str(asked("target.llvm_get_system_triple") or "")
    cpu = str(asked("target.llvm_get_system_cpu") or "")
    count = None if threads is None else int(threads)
    return RemoteMachine(
        address=opened.address,
        threads=count,
        triple=triple,
        cpu=cpu,
        target=target_json(triple, cpu, count) if triple and cpu else "",
    )


def check_runs_there(target: tvm.target.Target, machine: RemoteMachine, where: str) -> None:
    """Reject a target that is not the server's, as far as that is known.

    Raises a `LowerscopeError` with the target to choose.
    """
    if not machine.target:
        return
    reason = lacks(target, make_target(machine.target, 0), machine.triple, "the server")
    if reason:
        raise LowerscopeError(
            f"what is built for this target cannot run there: {reason}",
            where=where,
            todo=f"Choose its own, --target '{machine.target}'",
        )


def use_threads_there(opened: Session, wanted: int, most: int | None) -> int | None:
    """Set the number of the server's threads, 0 for all; return the number it uses."""
    configure = opened.function("runtime.config_threadpool")
    if configure is None or most is None or not wanted:
        return most
    count = min(wanted, most)
    opened.call("setting the number of threads", lambda: configure(1, count))
    return count


@answers(RemoteQuery)
def answer_remote(query: RemoteQuery, _pipeline: Pipeline, job: Progress) -> RemoteState:
    """Return the machines of a tracker."""
    return remote_state(query.remote, job)


@answers(TargetsQuery)
def targets(query: TargetsQuery, _pipeline: Pipeline, _job: Progress) -> tuple[TargetRecord, ...]:
    """Return the records of targets."""
    return target_records(query.texts, query.threads)
