"""Distribution of the tests' files over processes, of which one may be lost.

pytest-xdist gives the files of a lost process to the others with those that were done, and a
process that is given nothing to run asks for no more: the run would never end. It also gives out
the test again that ended the process.
"""

from __future__ import annotations

import subprocess

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class ByFile(LoadFileScheduling):
    """Gives a file to one process; what a lost one had left goes to the others."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a process out; return the test that it was lost in, which counts as done."""
        files = self.assigned_work.pop(node)
        left = [(file, test) for file, tests in files.items() for test in tests if not tests[test]]
        if not left:
            return None
        file, lost = left[0]
        files[file][lost] = True
        self.workqueue.update(
            {name: tests for name, tests in files.items() if not all(tests.values())}
        )
        for each in self.assigned_work:
            self._reschedule(each)
        return lost

    def schedule(self) -> None:
        """Give out what there is, or the end, to each process that waits."""
        is_first = self.collection is None
        super().schedule()
        if not is_first:
            # One that came later and has a single test waits for what follows it.
            for each in self.nodes:
                self._reschedule(each)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController, error: object) -> None:
    if error:
        print(f"\n{node.gateway.id} was lost: {exit_text(node)}", flush=True)


def exit_text(node: WorkerController) -> str:
    """Return how the process of a node has ended, as far as that is known."""
    process = getattr(getattr(node.gateway, "_io", None), "popen", None)
    try:
        code = None if process is None else process.wait(1)
    except subprocess.TimeoutExpired:
        code = None
    if code is None:
        return "its process is alive, or is not known"
    return f"it was killed by signal {-code}" if code < 0 else f"it ended with exit code {code}"
