"""Where in the lists of steps the window is: the moment that the panes show."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from lowerscope.core.recipe import Source
from lowerscope.core.records import Snapshot
from lowerscope.core.step_records import Clock, Moment, PassRecord, TranslationRecord

StepRecord = PassRecord | TranslationRecord


class Stepping(QObject):
    """The moment that is looked at, and the lists that it lies in.

    Signals
    -------
    moment_changed
        `moment` is another one.
    """

    moment_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._source: Source | None = None
        self._moment: Moment | None = None
        self._lists: dict[Clock, tuple[StepRecord, ...]] = {}

    @property
    def moment(self) -> Moment | None:
        """What is looked at; ``None`` while nothing is stepped through."""
        return self._moment

    def steps(self, clock: Clock) -> tuple[StepRecord, ...]:
        """Return the list of a clock: that of the snapshot, or of the build once it is known."""
        return self._lists.get(clock, ())

    def last(self, clock: Clock) -> int:
        """Return the index of the last moment there is to see: steps after a failed one have none.

        It is 0 where the list is empty.
        """
        done = 0
        for record in self.steps(clock):
            if isinstance(record, PassRecord) and record.status in ("failed", "skipped"):
                break
            done = record.number
        return done

    def go(self, moment: Moment) -> None:
        """Look at a moment, or at the nearest one that there is."""
        if self.steps(moment.clock):
            self._set(self._clamped(moment))

    def step(self, by: int) -> None:
        """Go on, or back, by a number of steps; from nothing, to either end of the passes."""
        if self._moment is None:
            clock: Clock = "passes" if self.steps("passes") else "translate"
            self.go(Moment(clock=clock, index=1 if by > 0 else self.last(clock)))
        else:
            self.go(Moment(clock=self._moment.clock, index=self._moment.index + by))

    def leave(self) -> None:
        """Show what is open as a whole again."""
        self._set(None)

    def take(self, source: Source, snapshot: Snapshot) -> None:
        """Go over to the lists of new records; another source has nothing stepped at first."""
        self._lists = {"translate": snapshot.translation, "passes": snapshot.passes}
        moment = self._moment if source == self._source else None
        self._source = source
        if moment is not None:
            moment = self._clamped(moment) if self.steps(moment.clock) else None
        self._set(moment)

    def _clamped(self, moment: Moment) -> Moment:
        index = max(0, min(moment.index, self.last(moment.clock)))
        return Moment(clock=moment.clock, index=index)

    def _set(self, moment: Moment | None) -> None:
        if moment != self._moment:
            self._moment = moment
            self.moment_changed.emit()
