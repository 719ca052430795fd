"""Ratios of times that were measured beside other programs."""

from __future__ import annotations

from lowerscope.app.panes.schedule.metrics import faster_text, measured_rows, standing
from lowerscope.app.panes.tuning.tune_page import points_of, tuned_row
from lowerscope.core.cli.tune import _end, _table
from lowerscope.core.model.formatting import UNRELIABLE
from lowerscope.core.model.schedule_records import Measured
from lowerscope.core.model.tuning_records import Tuned, TunedFunction, TunedPoint, TuneState


def measured(
    milliseconds: float, *, disturbed: bool = False, torch: float | None = None
) -> Measured:
    return Measured(
        torch_ms=torch,
        milliseconds=milliseconds,
        low=milliseconds,
        high=milliseconds,
        repeats=9,
        build_ms=1.0,
        disturbed=disturbed,
    )


def tuned(*disturbed: str) -> TunedFunction:
    point = TunedPoint(trials=1, seconds_spent=1.0, best=0.001)
    return TunedFunction(
        name="f",
        unscheduled=0.01,
        torch=0.002,
        best=0.001,
        points=(point,),
        state="done",
        disturbed=disturbed,  # type: ignore[arg-type]
    )


def test_a_ratio_of_either_time_that_was_disturbed_is_marked() -> None:
    assert faster_text(measured(24), measured(2)) == "12.0×"
    assert faster_text(measured(24, disturbed=True), measured(2)) == "≈ 12.0×"
    assert faster_text(measured(24), measured(2, disturbed=True)) == "≈ 12.0×"


def test_the_time_of_torch_is_marked_as_well() -> None:
    ours, torch = measured(2), measured(3, disturbed=True, torch=4)
    cell = next(iter(measured_rows(ours, None, torch))).cell(2)
    assert (cell.text, cell.role) == ("4 ms", "unsure")
    assert UNRELIABLE in cell.tooltip
    assert standing(ours, None, torch)[-1].startswith("≈ 2.00×")
    torch = measured(3, torch=4)
    assert next(iter(measured_rows(ours, None, torch))).cell(2).role == ""
    assert standing(ours, None, torch)[-1].startswith("2.00×")


def test_tuning_states_no_ratio_of_disturbed_times() -> None:
    assert "as fast" in points_of(tuned())[0].tooltip
    assert "as fast" not in points_of(tuned("unscheduled"))[0].tooltip
    assert "as fast" in points_of(tuned("torch"))[0].tooltip
    assert "≈ 2.00× faster" in str(tuned_row(tuned("torch")).cells)
    assert "2.00× faster" in str(tuned_row(tuned()).cells)
    assert UNRELIABLE in str(tuned_row(tuned("torch")).cells[-1])
    assert "≈" not in str(tuned_row(tuned()).cells)


def test_the_command_says_so_beside_the_function_and_at_the_end() -> None:
    for function, said in ((tuned(), False), (tuned("best"), True)):
        end = "\n".join(_end(Tuned(state=TuneState(functions=(function,)))))
        assert ("unreliable" in end and "--fresh" in end) == said
        assert ("unreliable" in "\n".join(_table((function,)))) == said
