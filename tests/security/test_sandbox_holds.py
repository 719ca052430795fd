"""Code in a sandbox that tries to get out of it, or to take the machine down with it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from lowerscope.core.sandbox import bubblewrap, running_call
from lowerscope.core.sandbox.bubblewrap import call_filter
from tests.sandboxes import needs_sandbox

pytestmark = needs_sandbox

MB = 1 << 20


def enclosed(
    code: str,
    writable: Sequence[Path] = (),
    network: bubblewrap.Network = "none",
    memory: int | None = None,
    calls_file: int | None = None,
) -> tuple[str, ...]:
    program = bubblewrap.program()
    assert program is not None
    command = (sys.executable, "-c", code)
    return bubblewrap.enclosed(
        program, command, writable, network, memory=memory, calls_file=calls_file
    )


def ended(command: Sequence[str], **how: object) -> subprocess.CompletedProcess[str]:
    given = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, **how}
    return subprocess.run(command, timeout=120, check=False, **given)  # type: ignore[call-overload,no-any-return]


def printed(code: str, network: bubblewrap.Network = "none", **how: object) -> object:
    """Return what code prints as JSON."""
    done = ended(enclosed(code, network=network), **how)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


CALLS = """
import ctypes, errno, json, os, platform, signal, socket

libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"

def call(*numbers, arguments=()):
    ctypes.set_errno(0)
    words = [ctypes.c_ulong(each) for each in (*arguments, *(6 - len(arguments)) * (0,))]
    done = libc.syscall(ctypes.c_long(numbers[0 if x86 else 1]), *words)
    if done == 0 and numbers == CLONE:
        os._exit(0)
    return "done" if done >= 0 else errno.errorcode[ctypes.get_errno()]

def pair(kind):
    try:
        return [each.close() for each in socket.socketpair(socket.AF_UNIX, kind)] and "done"
    except OSError as error:
        return errno.errorcode[error.errno]

CLONE = 56, 220
USER = 0x10000000
HIGH = 1 << 32  # no flag, and may not hide the others
print(json.dumps({
    "keyctl": call(250, 219, arguments=(0, 2**64 - 3, 1)),
    "add_key": call(248, 217),
    "request_key": call(249, 218),
    "unshare": call(272, 97, arguments=(USER,)),
    "clone": call(*CLONE, arguments=(USER | signal.SIGCHLD,)),
    "clone, high bits": call(*CLONE, arguments=(HIGH | USER | signal.SIGCHLD,)),
    "clone3": call(435, 435),
    "setns": call(308, 268),
    "ptrace": call(101, 117),
    "process_vm_writev": call(311, 271),
    "pidfd_getfd": call(438, 438),
    "perf_event_open": call(298, 241),
    "bpf": call(321, 280),
    "io_uring_setup": call(425, 425),
    "memfd_create": call(319, 279),
    "mount": call(165, 40),
    "open_tree": call(428, 428),
    "unknown": call(600, 600),
    "datagrams": pair(socket.SOCK_DGRAM),
    "raw": pair(socket.SOCK_RAW),
    "stream": pair(socket.SOCK_STREAM),
    "stream, flags": pair(socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK),
    "fork": "done" if os.fork() or os._exit(0) else "",
}))
"""


@pytest.mark.parametrize("network", ["none", "open"])
def test_calls_that_lead_out_of_the_sandbox_do_not_exist_there(network: bubblewrap.Network) -> None:
    calls = printed(CALLS, network)
    assert isinstance(calls, dict)
    assert {name for name, end in calls.items() if end == "done"} == {
        "stream",
        "stream, flags",
        "fork",
    }
    assert {calls[each] for each in ("clone", "clone, high bits")} == {"EPERM"}
    assert {calls[each] for each in ("datagrams", "raw")} == {"EAFNOSUPPORT"}
    # As on a kernel without them: that is what programs expect, and do without.
    others = {"clone", "clone, high bits", "datagrams", "raw", "stream", "stream, flags", "fork"}
    assert {end for name, end in calls.items() if name not in others} == {"ENOSYS"}


DATAGRAM = """
import json, socket
try:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"out", {path!r})
    print(json.dumps("sent"))
except OSError as error:
    print(json.dumps("refused"))
"""


def test_one_of_a_pair_of_sockets_is_not_sent_to_a_program_outside(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outside:
        outside.bind(path)
        outside.setblocking(False)
        assert printed(DATAGRAM.format(path=path)) == "refused"
        with pytest.raises(BlockingIOError):
            outside.recv(9)


def test_a_machine_without_a_filter_has_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call_filter("riscv64") == b""
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(bubblewrap.NoSandbox, match="riscv64"):
        enclosed("")


WALK = """
import json, os, stat

def writable(tops):
    for top in tops:
        for folder, folders, files in os.walk(top):
            if os.statvfs(folder).f_flag & os.ST_RDONLY:
                # So is all that is mounted with it; what is mounted below is a top of its own.
                folders.clear()
                continue
            # Processes come and go, and what is below one is below all.
            folders[:] = [each for each in folders if not (folder == "/proc" and each != "1"
                          and each.isdecimal()) and each not in ("task", "fd", "map_files")]
            for each in (folder, *(os.path.join(folder, file) for file in files)):
                # To pipes and sockets, a file system is never read-only.
                kind = os.lstat(each).st_mode
                kinds = stat.S_ISREG(kind), stat.S_ISDIR(kind), stat.S_ISCHR(kind)
                if any(kinds) and os.access(each, os.W_OK):
                    yield each

def opened():
    for each in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory",
                 "/proc/sysrq-trigger", "/proc/self/mem", "/proc/1/oom_score_adj",
                 "/dev/lowerscope-sandbox", "/sys/fs/cgroup/cgroup.procs"):
        try:
            os.close(os.open(each, os.O_WRONLY))
            yield each
        except OSError:
            pass

tops, mounts = [], []
with open("/proc/self/mountinfo") as file:
    for line in file:
        fields = line.split()
        tops.append(fields[4])
        if "rw" in fields[5].split(","):
            mounts.append(fields[4])
print(json.dumps([sorted(set(writable(tops))), sorted(opened()), sorted(mounts)]))
"""

DEVICES = {f"/dev/{each}" for each in ("null", "zero", "full", "random", "urandom", "tty")}


def test_nothing_is_writable_but_what_is_promised(tmp_path: Path) -> None:
    """For root as well, who owns what rules the system: files below ``/proc/sys``."""
    (tmp_path / "mine").mkdir()
    done = ended(enclosed(WALK, [tmp_path / "mine"]))
    assert done.returncode == 0, done.stderr
    writable, opened, mounts = json.loads(done.stdout)
    assert opened == []
    own = {"/dev/shm", "/dev/pts", *DEVICES}
    assert set(mounts) - own == {str(tmp_path / "mine")}
    assert {each for each in writable if not each.startswith("/dev/pts/")} - own == {
        str(tmp_path / "mine")
    }


DESCRIPTORS = """
import json, os
print(json.dumps({each: os.readlink("/proc/self/fd/" + each)
    for each in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + each)}))
"""


def test_descriptors_are_not_inherited(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w+") as file:
        found = printed(DESCRIPTORS, pass_fds=(file.fileno(),))
    assert isinstance(found, dict)
    assert set(found) == {"0", "1", "2"}


# Bounds: each of these stops by itself, should nothing else stop it, and later than `ended` waits.

HUNGRY = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            held = b"x" * {each}
            time.sleep(200)
        os._exit(0)
time.sleep(200)
"""

FORKING = """
import os, time
for _ in range({count}):
    try:
        if os.fork() == 0:
            os.setsid()
            time.sleep(200)
            os._exit(0)
    except BlockingIOError:
        pass
time.sleep(200)
"""

THREADED = """
import threading, time
for _ in range({count}):
    threading.Thread(target=time.sleep, args=(200,), daemon=True).start()
time.sleep(200)
"""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(bubblewrap, "task_limit", lambda: 60)
    return 60


@pytest.fixture
def report() -> Iterator[int]:
    descriptor = running_call.new_file()
    os.set_inheritable(descriptor, True)
    yield descriptor
    os.close(descriptor)


def test_memory_is_limited_for_the_whole_tree_whatever_session_it_is_in(report: int) -> None:
    code = HUNGRY.format(each=100 * MB)
    done = ended(enclosed(code, memory=300 * MB, calls_file=report), pass_fds=(report,))
    assert done.returncode == 2
    assert "used more than the memory limit, 315 MB" in done.stderr
    found = running_call.read(report)
    assert found.too_much > 300 * MB
    assert found.too_many == 0


@pytest.mark.parametrize("code", [FORKING, THREADED])
def test_processes_and_threads_are_limited_for_the_whole_tree(
    few: int, report: int, code: str
) -> None:
    command = enclosed(code.format(count=few + 10), calls_file=report)
    done = ended(command, pass_fds=(report,))
    assert done.returncode == 2
    assert f"processes and threads than the limit, {few}" in done.stderr
    found = running_call.read(report)
    assert found.too_many > few
    assert found.too_much == 0


def test_the_sandbox_ends_with_its_window_whatever_runs_there(report: int) -> None:
    """Code there could have killed what waits for the end of the window's pipe."""
    code = "import signal, time\nprint('here', flush=True)\nwhile True:\n    time.sleep(200)\n"
    program = (
        "import json, subprocess, sys\n"
        "process = subprocess.Popen(json.loads(sys.argv[1]), close_fds=False)\n"
        "print(process.pid, flush=True)\n"
        "process.wait()\n"
    )
    command = [sys.executable, "-c", program, json.dumps(enclosed(code, calls_file=report))]
    window = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=(report,))
    assert window.stdout is not None
    with window, window.stdout:
        said = {window.stdout.readline().strip(), window.stdout.readline().strip()}
        (pid,) = said - {"here"}
        family = [psutil.Process(int(pid)), *psutil.Process(int(pid)).children(recursive=True)]
        window.send_signal(signal.SIGKILL)
    gone, alive = psutil.wait_procs(family, timeout=30)
    assert not alive
    assert len(gone) >= 3
