"""5,000 exported programs with one field changed: none runs anything when it is opened.

``LOWERSCOPE_SOAK_PROGRAMS=N`` opens another number of them; see `tests.soak.exported_programs`.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.soak.exported_programs import open_changed

COUNT = int(os.environ.get("LOWERSCOPE_SOAK_PROGRAMS", "5000"))


def test_no_changed_program_runs_anything(tmp_path: Path) -> None:
    tally = open_changed(tmp_path, range(COUNT))
    print(tally.text(), *tally.executed, *tally.broken, sep="\n")
    assert not tally.executed
    assert not tally.broken
    assert tally.opened
    assert tally.refused
