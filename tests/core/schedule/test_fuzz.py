"""A few random schedules in a child: none kills it, none is wrong, all can be replayed.

``python -m pytest tests/soak`` draws thousands of them, on the functions of all samples.
"""

from __future__ import annotations

from tests.core.schedule.fuzzing import fuzz


def test_random_primitives_neither_kill_nor_deceive() -> None:
    # One child that imports torch and TVM, and builds some of what it draws: most of its time.
    findings = fuzz(first=7, count=100, share=0.2, samples=["sample:matmul_relu"], seconds=240)
    assert findings.bad == []
    assert findings.applications >= 100
    assert findings.done >= 15
    assert findings.checked >= 3
