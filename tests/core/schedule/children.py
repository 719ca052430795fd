"""Children that are watched: they say what they do next, so that it is known what killed them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, Queue
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.warm_processes import WarmProcess


def say(event: str, **values: Any) -> None:
    """Tell whoever watches."""
    print(json.dumps({"event": event, **values}), flush=True)


def draw_until(
    is_done: Callable[[], bool], one: Callable[[st.DataObject], None], first: int, examples: int
) -> None:
    """Call `one` with what it draws from until all is done, and say so.

    Parameters
    ----------
    first
        Batch of seeds.
    examples
        Draws by one seed.
    """
    draws = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    turn = first * 100_000
    while not is_done():
        seed(turn)(draws(given(st.data())(one)))()
        turn += 1
    say("end")


def watched(module: str, arguments: Sequence[object], seconds: float) -> Iterator[dict[str, Any]]:
    """Run ``python -m MODULE ARGUMENT…`` and yield what it says.

    Where it dies or hangs before it has said ``"end"``, the last is of the kind ``"death"``, with
    what it said before.

    Parameters
    ----------
    seconds
        After how long without a word it is taken for hung.
    """
    with open(os.devnull, "wb") as nowhere:
        process = WarmProcess("-m", module, *map(str, arguments), errors=nowhere)
    lines: Queue[str | None] = Queue()
    reader = threading.Thread(target=_read, args=(process, lines), daemon=True)
    reader.start()
    last: dict[str, Any] = {}
    try:
        while True:
            try:
                line = lines.get(timeout=seconds if last else 300)
            except Empty:
                yield {**last, "event": "bad", "kind": "death", "how": "hangs"}
                return
            if line is None:
                process.wait()
                if last.get("event") != "end":
                    how = f"status {process.returncode}"
                    yield {**last, "event": "bad", "kind": "death", "how": how}
                return
            last = json.loads(line)
            yield last
    finally:
        process.end()
        reader.join()
        process.close()


def _read(process: WarmProcess, lines: Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('{"event"'):
            lines.put(line)
    lines.put(None)
