"""``lowerscope compare``: a table of variants, their records, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from lowerscope.core.cli.main import main
from lowerscope.core.files.pipelines_and_schedules import save_schedules
from lowerscope.core.model.run_records import RunTimes, is_reliable
from lowerscope.core.model.schedule import At, Primitive, Schedule

pytestmark = pytest.mark.usefixtures("shared_results")


SPLIT = Primitive(
    id="s1", name="split", arguments={"loop": At(block="T_matmul_NT", loop=1), "factors": (None, 4)}
)
"""Of a loop of ``dense``, which only the lowering by TE makes."""


def milliseconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def cells(line: str) -> list[str]:
    """The cells of a line of the table, which stand at least two spaces apart."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_each_combination_is_a_variant_and_the_table_has_the_figures_of_the_records(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--lowering", "high-level", "--lowering", "te", "--lowering", "te"]
    options += ["--pipeline", "legalise", "--pipeline", "fuse"]
    assert main(["compare", "sample:fashion_mlp", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    headings = ["variant", "verdict", "error", "TVM", "spread", "torch", "vs. torch"]
    assert cells(lines[0]) == [*headings, "functions", "build"]
    rows = {cells(line)[0]: cells(line)[1:] for line in lines[1:5]}
    assert set(rows) == {
        "high-level · legalised",
        "high-level · fused",
        "TE · legalised",
        "TE · fused",
    }
    assert [row[6] for row in rows.values()] == ["7", "2", "5", "2"]
    for verdict, error, tvm, spread, torch, beside, *_ in rows.values():
        assert verdict == "✓ matches"
        assert 0 < float(error) < 1e-4
        low, _, high = spread.rpartition(" – ")
        low = low if not low or " " in low else f"{low} {high.split()[1]}"
        assert milliseconds(low or high) <= milliseconds(tvm) <= milliseconds(high)
        if not beside.endswith("as fast"):
            digits, word = beside.removeprefix("≈ ").split("× ")
            expected = milliseconds(tvm) / milliseconds(torch)
            given = float(digits) if word == "slower" else 1 / float(digits)
            assert given == pytest.approx(expected, rel=0.05)
    # All were measured beside the same calls of torch.
    assert len({row[4] for row in rows.values()}) == 1
    quickest = min(rows, key=lambda name: milliseconds(rows[name][2]))
    if lines[5].startswith("Fastest: "):
        best = lines.pop(5).removeprefix("Fastest: ").partition(" (")[0].split(", ")
        assert rows[quickest][2] in [rows[name][2] for name in best]
    else:
        assert any(line.startswith(f"{quickest}: ") for line in lines[6:]), "it is unreliable"
    # Of few calls, where the machine is busy, the extremes.
    assert lines[5].startswith(("Median and quartiles of ", "Median and extremes of "))
    assert ", in turn; " in lines[5]
    # Figures stand below one another.
    assert len({len(line) for line in lines[:5]}) == 1


def test_as_json_a_variant_has_its_recipe_and_its_record(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    schedule = Schedule(function="dense", primitives=(SPLIT,))
    file = str(save_schedules((schedule,), str(tmp_path / "dense.json")))
    arguments = ["compare", "sample:fashion_mlp", "--lowering", "te", "--json"]
    assert main([*arguments, "--schedule", "none", "--schedule", file]) == 0
    answer = json.loads(capsys.readouterr().out)
    plain, scheduled = answer["variants"]
    assert (plain["name"], scheduled["name"]) == ("TE", "dense scheduled")
    assert plain["recipe"]["schedules"] == []
    assert scheduled["recipe"]["schedules"][0]["function"] == "dense"
    for each in (plain, scheduled):
        assert each["problem"] is None
        assert each["record"]["verdict"] == "match"
        assert each["recipe"]["source"]["spec"] == "sample:fashion_mlp"
        assert {call["function"] for call in each["record"]["calls"]} >= {"dense"}
    quickest = min(answer["variants"], key=lambda each: each["record"]["tvm_ms"])
    times = msgspec.convert(quickest["record"]["times"], RunTimes)
    assert (quickest["name"] in answer["fastest"]) == is_reliable(times)
    sides = [
        [each["side"] for each in one["record"]["times"]["sides"]] for one in (plain, scheduled)
    ]
    assert sides == [["TVM", "torch"]] * 2
    beside = [each["record"]["times"]["sides"][1] for each in (plain, scheduled)]
    assert beside[0] == beside[1]
    assert plain["record"]["torch_ms"] == beside[0]["milliseconds"]
