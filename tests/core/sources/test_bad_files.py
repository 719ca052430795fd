"""Bad files: a clear error each, nothing executed, nothing left behind; see `tests.bad_files`.

`tests/soak/test_bad_files_at_length.py` has 2,000 of them.
"""

from __future__ import annotations

from pathlib import Path

from tests.bad_files import numbers
from tests.opening_bad_files import open_bad_files

COUNT = 40


def test_bad_files_are_refused_clearly(tmp_path: Path) -> None:
    tally, wrong = open_bad_files(tmp_path, COUNT)
    print(tally.text())
    assert not wrong, "\n".join(wrong)
    assert tally.total == len(list(numbers(COUNT)))
    assert tally.refused > COUNT / 3
