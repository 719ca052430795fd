"""What a tracker has, and what a server says of its machine."""

from __future__ import annotations

from typing import Any

import tvm

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.execution.targets import make_target, target_json
from lowerscope.core.progress import Progress
from lowerscope.core.records.remote import Remote, RemoteMachine, RemoteState
from lowerscope.core.remote.session import Session, session
from lowerscope.core.remote.tracker import BUSY, SOON, Tracker
from lowerscope.core.target_catalogue import lacks


def remote_state(remote: Remote, progress: Progress) -> RemoteState:
    """Return what a tracker has, and the machine behind its key where a server of it is free.

    Raises
    ------
    LowerscopeError
        If there is no tracker, no server with the key, or the server speaks another version.
    """
    with Tracker(remote) as tracker:
        keys = tracker.keys()
    machine = None
    try:
        with session(remote, progress, SOON) as opened:
            machine = machine_of_server(opened)
    except LowerscopeError as error:
        # What is at work for others is there.
        if error.problem.code != BUSY:
            raise
    return RemoteState(tracker=remote.tracker, keys=keys, machine=machine)


def machine_of_server(opened: Session) -> RemoteMachine:
    """Return what a server says of its machine; a runtime without LLVM says little."""

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
    """Refuse a target that is not the server's, as far as that is known.

    Raises
    ------
    LowerscopeError
        With the target to choose.
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
    """Let the server use so many threads, or all; return how many it uses."""
    configure = opened.function("runtime.config_threadpool")
    if configure is None or most is None or not wanted:
        return most
    count = min(wanted, most)
    opened.call("setting the number of threads", lambda: configure(1, count))
    return count
