"""Functions of all kinds scheduled by rule, by the thousand: ``python -m pytest tests/soak``."""

from __future__ import annotations

import os

from tests.core.schedule.rule_numerics import examine

COUNT = int(os.environ.get("LOWERSCOPE_SOAK_RULES", "3000"))


def test_functions_scheduled_by_rule_compute_the_same_at_length() -> None:
    findings = examine(first=1000, count=COUNT, share=0.3, seconds=300)
    print(
        f"{findings.models} models, {findings.functions} functions: {findings.checked} built and "
        f"compared, by rule {dict(findings.by_rule)}; {findings.with_torch} models as torch; "
        f"no rule: {dict(findings.unfit)}"
    )
    assert findings.bad == []
    assert findings.checked == findings.by_rule.total()
