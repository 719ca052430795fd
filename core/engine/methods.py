"""What the children can be asked for, by name.

This module imports neither torch nor TVM, so that the window can use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from lowerscope.core.engine.protocol import (
    BuildParams,
    CatalogueParams,
    DifferenceParams,
    FunctionsParams,
    GraphDifferenceParams,
    GraphParams,
    LaneName,
    Role,
    RuleParams,
    SaveValuesParams,
    SnapshotParams,
    TextParams,
    TranslationParams,
    ValuesParams,
)
from lowerscope.core.engine.run_params import (
    AgreementParams,
    ComparisonParams,
    ExportParams,
    GuardParams,
    RunParams,
    RunStepParams,
    SaveRunValuesParams,
    VariantTimesParams,
    WindowParams,
)
from lowerscope.core.engine.schedule_params import (
    ByRuleParams,
    CheckParams,
    MeasureParams,
    MovesParams,
    PeaksParams,
    ProgramParams,
    RulesParams,
    ScheduleParams,
    WorkParams,
)
from lowerscope.core.engine.target_params import RemoteParams, TargetsParams
from lowerscope.core.engine.tuning_params import PauseTuningParams, TuneParams, TuneStateParams
from lowerscope.core.export.catalogue import ExportRecord
from lowerscope.core.records.agreement import AgreementRecord
from lowerscope.core.records.comparison import Comparison, Window
from lowerscope.core.records.difference import DifferenceRecord, GraphDifference
from lowerscope.core.records.fault import GuardedRun
from lowerscope.core.records.graph import GraphRecord
from lowerscope.core.records.model import ValuesRecord
from lowerscope.core.records.numbers import Checked, Measured, Peaks, Work
from lowerscope.core.records.passes import PassType
from lowerscope.core.records.remote import RemoteState
from lowerscope.core.records.run import RunRecord
from lowerscope.core.records.run_step import RunStep
from lowerscope.core.records.schedule import ByRule, Move, RuledFunction, ScheduleRecord
from lowerscope.core.records.snapshot import FunctionRecord, Snapshot, SourceLine, TextRecord
from lowerscope.core.records.steps import PassRecord
from lowerscope.core.records.target import TargetRecord
from lowerscope.core.records.times import RunTimes
from lowerscope.core.records.translation import NodeTranslation
from lowerscope.core.records.tuning import Tuned, TuneState


@dataclass(frozen=True)
class MethodType:
    """The types of a method, and where it runs.

    Attributes
    ----------
    params, result
        The struct that it takes and the value that it returns.
    lane
        ``"light"`` methods are answered while a ``"heavy"`` one runs; within a lane, one runs after
        the other.
    doing
        What the child is doing then, in words that follow "while".
    roles
        The children that offer it.
    """

    params: type[msgspec.Struct]
    result: type[Any]
    lane: LaneName
    doing: str
    roles: tuple[Role, ...] = ("engine", "worker")


def derived(method: str) -> str:
    """Return the name of the method that derives what `method` would only answer from."""
    return f"derived_{method}"


def _at_once(
    name: str, params: type[msgspec.Struct], result: type[Any], doing: str
) -> dict[str, MethodType]:
    """Return a method that answers at once from what is kept, and the one that derives it first.

    The first refuses with the code ``"not-kept"``, upon which the second can be asked.
    """
    return {
        name: MethodType(params, result, "light", doing),
        derived(name): MethodType(params, result, "heavy", doing),
    }


METHODS: Mapping[str, MethodType] = MappingProxyType(
    {
        "snapshot": MethodType(SnapshotParams, Snapshot, "heavy", "lowering the model"),
        **_at_once("text", TextParams, TextRecord, "printing a function"),
        "catalogue": MethodType(
            CatalogueParams, tuple[PassType, ...], "light", "listing the passes", ("engine",)
        ),
        **_at_once("graph", GraphParams, GraphRecord, "drawing a graph"),
        **_at_once("difference", DifferenceParams, DifferenceRecord, "comparing two modules"),
        **_at_once("functions", FunctionsParams, tuple[FunctionRecord, ...], "listing functions"),
        **_at_once(
            "graph_difference", GraphDifferenceParams, GraphDifference, "comparing two graphs"
        ),
        **_at_once("values", ValuesParams, ValuesRecord, "looking at a tensor"),
        **_at_once(
            "translation",
            TranslationParams,
            NodeTranslation,
            "looking at the translation of a node",
        ),
        **_at_once("schedule", ScheduleParams, ScheduleRecord, "applying a schedule"),
        "moves": MethodType(
            MovesParams, tuple[Move, ...], "light", "trying what can come next", ("engine",)
        ),
        "by_rule": MethodType(ByRuleParams, ByRule, "light", "scheduling by rule", ("engine",)),
        "rules": MethodType(
            RulesParams,
            tuple[RuledFunction, ...],
            "heavy",
            "scheduling the model by rules",
            ("engine",),
        ),
        "schedule_program": MethodType(
            ProgramParams, str, "light", "writing a schedule as Python", ("engine",)
        ),
        "work": MethodType(WorkParams, Work, "light", "counting operations", ("engine",)),
        "peaks": MethodType(PeaksParams, Peaks, "heavy", "measuring the machine", ("worker",)),
        "measure": MethodType(
            MeasureParams, Measured, "heavy", "measuring a function", ("worker",)
        ),
        "tune": MethodType(TuneParams, Tuned, "heavy", "tuning", ("worker",)),
        "tune_state": MethodType(
            TuneStateParams, TuneState, "light", "looking at the tuning", ("worker",)
        ),
        "pause_tuning": MethodType(
            PauseTuningParams, TuneState, "light", "pausing the tuning", ("worker",)
        ),
        "check": MethodType(CheckParams, Checked, "heavy", "checking a schedule", ("worker",)),
        "targets": MethodType(
            TargetsParams, tuple[TargetRecord, ...], "light", "looking at targets", ("engine",)
        ),
        "remote": MethodType(
            RemoteParams, RemoteState, "heavy", "asking another machine", ("worker",)
        ),
        "save_values": MethodType(SaveValuesParams, str, "heavy", "saving a tensor"),
        "write_rule": MethodType(RuleParams, SourceLine, "heavy", "writing a rule", ("engine",)),
        "build_steps": MethodType(
            BuildParams, tuple[PassRecord, ...], "heavy", "compiling the model", ("worker",)
        ),
        "agreement": MethodType(
            AgreementParams, AgreementRecord, "heavy", "running a set of inputs", ("worker",)
        ),
        "guard": MethodType(
            GuardParams, GuardedRun, "heavy", "running with guarded memory", ("worker",)
        ),
        "export": MethodType(ExportParams, ExportRecord, "heavy", "exporting", ("worker",)),
        "run": MethodType(RunParams, RunRecord, "heavy", "running the model", ("worker",)),
        "comparison": MethodType(
            ComparisonParams, Comparison, "heavy", "comparing a tensor", ("worker",)
        ),
        "run_step": MethodType(RunStepParams, RunStep, "heavy", "looking at a call", ("worker",)),
        "window": MethodType(WindowParams, Window, "heavy", "looking at a tensor", ("worker",)),
        "save_run_values": MethodType(
            SaveRunValuesParams, str, "heavy", "saving a tensor", ("worker",)
        ),
        "variant_times": MethodType(
            VariantTimesParams,
            tuple[tuple[RunTimes, ...], ...],
            "heavy",
            "timing variants of the model",
            ("worker",),
        ),
    }
)
"""What a child can be asked for."""
