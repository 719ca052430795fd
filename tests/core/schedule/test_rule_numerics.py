"""Functions of all kinds, dtypes and extents, scheduled by rule for three targets.

What is scheduled is run in a child beside the unscheduled function, its buffers guarded, and some
of the models beside torch. ``python -m pytest tests/soak`` draws thousands.
"""

from __future__ import annotations

from tests.core.schedule.rule_numerics import examine


def test_functions_scheduled_by_rule_compute_the_same() -> None:
    # The child imports torch and TVM, and compiles what it draws: most of its time.
    findings = examine(first=1, count=60, share=0.3, seconds=240)
    assert findings.bad == []
    assert findings.models == 60
    assert findings.checked == findings.by_rule.total() >= 12
    assert findings.with_torch >= 4
    assert {"contraction", "elementwise"} <= set(findings.by_rule)
