"""Random primitives on the functions of all samples: ``python -m pytest tests/soak``, by hand."""

from __future__ import annotations

import os

from tests.core.schedule.fuzzing import fuzz

COUNT = int(os.environ.get("LOWERSCOPE_SOAK_PRIMITIVES", "5000"))
SAMPLES = [
    f"sample:{name}"
    for name in (
        "matmul",
        "matmul_relu",
        "fashion_mlp",
        "conv_net",
        "mlp_tvmscript",
        "transformer_block",
        "resnet18",
    )
]


def test_random_primitives_neither_kill_nor_deceive_at_length() -> None:
    findings = fuzz(first=1000, count=COUNT, share=0.25, samples=SAMPLES, seconds=300)
    print(
        f"{findings.applications} applications: {findings.done} done, {findings.refused} refused, "
        f"{findings.forced} forced; {findings.schedules} schedules replayed, "
        f"{findings.checked} built and compared"
    )
    assert findings.bad == []
