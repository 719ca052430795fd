"""2,000 bad files through the engine, and some through the window; see `tests.bad_files`.

``LOWERSCOPE_SOAK_FILES=N`` opens another number of them.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.bad_files import open_bad_files

COUNT = int(os.environ.get("LOWERSCOPE_SOAK_FILES", "2000"))


def test_bad_files_are_refused_clearly(tmp_path: Path) -> None:
    tally, wrong = open_bad_files(tmp_path, COUNT)
    print(tally.text())
    assert not wrong, "\n".join(wrong)
    assert tally.total == COUNT
