"""The files of tests that take long begin first, so that none is left alone at the end.

pytest-xdist, which gives files to two processes, would begin with those of most tests; a file of
three tests that takes a minute was the last, and one processor had nothing to do beside it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent

LONGEST = (
    # These only compute, and mypy runs beside them.
    *("core/lowering/test_operator_table.py", "core/lowering/test_models.py"),
    *("end_to_end/test_killing.py", "end_to_end/test_remote.py", "end_to_end/test_tuning.py"),
    *("end_to_end/test_children.py", "core/remote/test_remote_runs.py", "core/test_cli.py"),
    *("end_to_end/test_faults.py", "core/export/test_exports.py", "end_to_end/test_exploring.py"),
    *("core/test_rule_files.py", "end_to_end/test_sample_verdicts.py", "core/test_supervised.py"),
    *("core/scheduling/test_rules_of_depthwise.py", "core/rendering/test_builder_text.py"),
    *("core/test_how_to_pages.py", "end_to_end/test_main_job.py", "end_to_end/test_troubles.py"),
    *("end_to_end/test_variants.py", "core/remote/test_remote_tuning.py"),
    *("core/dynamic/test_dynamic_runs.py", "end_to_end/test_graph_steps.py"),
    *("core/test_cli_showing.py", "core/rendering/test_sample_programs.py"),
    *("core/scheduling/test_rule_numerics.py", "end_to_end/test_inputs.py"),
    *("core/passes/test_presets.py", "core/tuning/test_measuring.py"),
    *("end_to_end/test_sessions.py", "end_to_end/test_tensor_page.py"),
    *("end_to_end/test_run_times.py", "end_to_end/test_large_models.py"),
    *("end_to_end/test_compiled_code.py", "end_to_end/test_keyboard.py"),
    *("end_to_end/test_course.py", "end_to_end/test_endings.py", "core/tuning/test_tuning.py"),
    *("end_to_end/test_bad_files.py", "end_to_end/test_tour.py"),
)
"""Files that take more than about ten seconds (``--durations`` says it), roughly in this order."""


def longest_first(items: list[pytest.Item]) -> None:
    """Sort tests by their files: the longest, and then the others by how many tests they have."""
    missing = [name for name in LONGEST if not (TESTS / name).is_file()]
    assert not missing, missing
    counts: dict[Path, int] = {}
    for item in items:
        counts[item.path] = counts.get(item.path, 0) + 1
    rank = {TESTS / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (rank.get(item.path, len(rank)), -counts[item.path]))
