"""Every preset on drawn TensorIR functions by the hundred: ``python -m pytest tests/soak``."""

from __future__ import annotations

import os

from tests.core.schedule.preset_numerics import examine

COUNT = int(os.environ.get("LOWERSCOPE_SOAK_TENSORIR", "400"))


def test_presets_fail_on_no_function_and_change_no_value_at_length() -> None:
    findings = examine(first=1000, count=COUNT, seconds=300)
    print(f"{findings.modules} modules, {findings.refused} refused: {dict(findings.compared)}")
    assert findings.bad == []
    assert sum(findings.compared.values()) > COUNT
