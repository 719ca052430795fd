"""A user without patience: clicks, keys, commands and nonsense while things are under way."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog

from lowerscope.app.shell.window import MainWindow
from tests.end_to_end.driving import wait_until
from tests.pulse import Pulse
from tests.soak.impatient_deeds import Deeds
from tests.soak.killing import PATIENCE

STALL_MS = 100
"""What holds the event loop up for longer is noted."""

LONGEST_WAIT_MS = 300


@dataclass(eq=False)
class Impatience:
    """Steps at random in a window, and what is found wrong.

    Parameters
    ----------
    window
        The window.
    folder
        Where files are that dialogs are answered with.
    seed
        Of all that is drawn.
    exceptions, warnings
        Return how many have been raised in slots, and said by Qt, so far.
    hurry
        What the pauses between the steps are multiplied by.
    """

    window: MainWindow
    folder: Path
    seed: int
    exceptions: Callable[[], Sequence[object]]
    warnings: Callable[[], Sequence[object]]
    hurry: float = 1.0
    stalls: list[tuple[float, str]] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.document = self.window.document
        self.deeds = Deeds(self.window, self.folder, self.seed)
        self.pulse = Pulse()
        self.done = 0
        self.failure = ""
        self._numbers: Iterator[int] = iter(())
        self._over = True
        # How many steps have not come back, as they wait for a dialog or a menu.
        self._inside = 0
        self._timer = QTimer()
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._tick)
        for client in (
            self.window.features.processes.engine,
            self.window.features.processes.worker,
        ):
            client.crashed.connect(self._note_ending)

    def _note_ending(self, ending: object) -> None:
        self.endings.append(f"after step {self.done}: {ending}")

    # The steps

    def run(self, numbers: Collection[int]) -> None:
        """Do the steps with these numbers, with pauses, and whatever comes of the ones before."""
        self._numbers, self._over = iter(numbers), False
        self._pace = random.Random(f"{self.seed} pace")
        self.pulse.begin()
        self._timer.start(0)
        assert wait_until(lambda: self._over, len(numbers) * 2000 + PATIENCE), self.story()
        self.pulse.end()

    def _tick(self) -> None:
        self._take_stall()
        number = next(self._numbers, None)
        self.failure = self.failure or self.deeds.failure or self._wrong()
        if number is None or self.failure or not self.window.isVisible():
            self._end()
            return
        # Before the step: it may open a dialog, and come back after many others.
        pause = self._pace.choice((0, 0, 0, 1, 1)) * self._pace.random() * LONGEST_WAIT_MS
        self._timer.start(round(pause * self.hurry))
        self.done += 1
        act = self.deeds.draw(number)
        self._inside += 1
        try:
            act()
        except RuntimeError as error:
            # What was clicked has closed itself, and what it was in.
            if "already deleted" not in str(error):
                raise
        finally:
            self._inside -= 1

    def _end(self) -> None:
        """Come back from all that waits for an answer."""
        self._numbers = iter(())
        leave_front()
        if self._inside:
            QTest.keyClick(self.window, Qt.Key.Key_Escape)
            self._timer.start(10)
        else:
            self._over = True

    def _take_stall(self) -> None:
        self.pulse.end()
        if self.pulse.processor > STALL_MS:
            after = self.deeds.log[-1] if self.deeds.log else "the start"
            self.stalls.append((self.pulse.processor, after))
        self.pulse.begin()

    # What may never be

    def _wrong(self) -> str:
        """Return what is wrong with the window as it is; empty for nothing."""
        if self.exceptions():
            return f"exceptions in slots: {self.exceptions()[0]}"
        if self.warnings():
            return f"said by Qt: {self.warnings()[0]}"
        document, window = self.document, self.window
        action = window.commands.action
        for key, there in (
            ("undo", document.can_undo),
            ("redo", document.can_redo),
            ("run", document.wanted is not None and not document.running),
            ("stop", bool(document.job.text) or document.running),
            (
                "tune-stop",
                self.window.features.tuning.under_way
                and self.window.features.tuning.phase != "stopping",
            ),
        ):
            if action(key).isEnabled() != there:
                return f"the command {key} is {'off' if there else 'on'}, and should not be"
        wanted = document.wanted
        if wanted is not None and window.tool_bar.lowering.current() != wanted.lowering:
            return f"the tool bar says {window.tool_bar.lowering.current()}"
        if document.running != (window.tool_bar.run.text() == window.tr("Stop")):
            return f"the button says {window.tool_bar.run.text()}"
        if not document.is_changing and document.wanted != document.recipe:
            return "another recipe is wanted than is shown, and none is on its way"
        record, snapshot = document.run_record, document.snapshot
        of_another = record is not None and snapshot is not None and record.key != snapshot.key
        if of_another and not document.is_changing:
            return "the outcome of another recipe is shown"
        for label, client in ((window.status.engine, self.window.features.processes.engine),):
            if client.state not in label.text():
                return f"the status says {label.text()}, and it is {client.state}"
        return ""

    def story(self) -> str:
        """Return what has been done last, and how it is."""
        document = self.document
        states = (
            self.window.features.processes.engine.state,
            self.window.features.processes.worker.state,
            self.window.features.tuning.phase,
        )
        return "\n".join(
            (
                f"seed {self.seed}, {self.done} steps: {self.failure}",
                *self.deeds.log[-40:],
                f"{states}, running {document.running}, changing {document.is_changing},"
                f" {document.job}, {[each.line() for each in document.problems]},"
                f" said: {self.window.banner.message()!r}",
            )
        )

    # The end

    def settle(self) -> None:
        """Close what is open in front, stop what is under way, and wait until all is at rest."""
        while leave_front():
            QTest.qWait(1)
        self.window.features.runs.cancel()
        self.window.features.inputs.cancel()
        self.window.features.measurements.set_automatic(False)
        self.window.features.tuning.stop()
        assert wait_until(self._is_at_rest, PATIENCE), self.story()
        busy = [
            name
            for name, pane in vars(self.window.panes).items()
            if hasattr(pane, "progress")
            and getattr(pane.progress, "state", str)() not in ("", "none")
        ]
        self.failure = self.failure or self.deeds.failure or self._wrong()
        assert not self.failure, self.story()
        assert not busy, (busy, self.story())

    def _is_at_rest(self) -> bool:
        document = self.document
        return (
            self.window.features.processes.engine.state in ("ready", "failed")
            and self.window.features.processes.worker.state in ("ready", "failed", "stopped")
            and not document.is_changing
            and not document.running
            and not self.window.features.inputs.waits
            and not self.window.features.tuning.under_way
            and not document.job.text
        )

    def check_undo(self, most: int) -> None:
        """Take changes back and make them again, one by one: each recipe comes back as it was."""
        document = self.document
        came = [document.recipe]
        for _ in range(most):
            before = document.before
            if before is None:
                break
            self.window.commands.action("undo").trigger()
            assert wait_until(self._is_at_rest, PATIENCE), self.story()
            if document.problems and document.recipe == came[-1]:
                break  # what it was made of has gone since
            assert document.recipe == before, self.story()
            came.append(before)
        for expected in reversed(came[:-1]):
            self.window.commands.action("redo").trigger()
            assert wait_until(self._is_at_rest, PATIENCE), self.story()
            if document.problems:
                break
            assert document.recipe == expected, self.story()


def leave_front() -> bool:
    """Close the menu or the dialog that is in front; return whether there was one."""
    front = QApplication.activePopupWidget() or QApplication.activeModalWidget()
    if isinstance(front, QDialog):
        front.reject()
    elif front is not None:
        front.close()
    return front is not None
