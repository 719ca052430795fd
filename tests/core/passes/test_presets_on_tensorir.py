"""Every preset on modules of drawn TensorIR functions, run beside what TVM alone makes of them.

``python -m pytest tests/soak`` draws hundreds.
"""

from __future__ import annotations

from lowerscope.core.files.pipelines_and_schedules import PRESETS
from tests.core.schedule.preset_numerics import examine


def test_presets_fail_on_no_function_and_change_no_value() -> None:
    findings = examine(first=1, count=10, seconds=300)
    assert findings.bad == []
    assert findings.modules == 10
    # TVM builds no function without a block, unless a preset has fused it into another.
    assert findings.refused < 5
    assert set(findings.compared) == {each.name for each in PRESETS}
