"""The planned memory of a run, held against what the virtual machine allocates and gives back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tvm import relax

from lowerscope.core.build.build import AFTER_KILLS, planned_memory
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.model.recipe import Recipe, Source, Step
from lowerscope.core.model.run_records import MemoryRecord
from lowerscope.core.run.calls import CallsOf
from lowerscope.core.run.execution import Execution
from lowerscope.core.stages import Pipeline, Stages

pytestmark = pytest.mark.usefixtures("shared_results")

LEGAL = Step(name="LegalizeOps")
FUSED = (LEGAL, *(Step(name=each) for each in ("AnnotateTIROpPattern", "FuseOps", "FuseTIR")))
PLANNED = find_pipeline("optimise-cpu").steps
"""Allocates by itself, before TVM's build would."""


def stages_of(sample: str, *steps: Step) -> Stages:
    recipe = Recipe(source=Source(spec=f"sample:{sample}"), steps=steps or (LEGAL,))
    return Pipeline().stages(recipe)


def observed(stages: Stages) -> tuple[list[int], int]:
    """Return the bytes of each storage that a run asks for, and how many calls it makes."""
    arguments = stages.arguments([each.value for each in stages.loaded.inputs])
    execution = Execution(stages.built.executable, "main", arguments)
    sizes: list[int] = []

    def tell(_function: Any, name: str, before: bool, _returned: Any, *args: Any) -> int:
        if before and name == "vm.builtin.alloc_storage":
            sizes.append(int(args[1][0]))
        return 0

    execution.watch(tell)
    try:
        execution.call()
    finally:
        execution.watch(None)
    return sizes, len(CallsOf(stages.recorded, "main").calls)


def given_back(stages: Stages) -> list[int]:
    """Return the bytes that are taken at each call, by the kills that stand in the module."""
    module = next(each.after for each in stages.recorded.runs if each.name == AFTER_KILLS)
    assert module is not None
    size: dict[int, int] = {}
    inside: dict[int, set[int]] = {}
    home: dict[int, int] = {}
    dropped: set[int] = set()
    live: list[int] = []
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            value, name = binding.value, hash(binding.var)
            operator = str(getattr(getattr(value, "op", None), "name", ""))
            first = hash(value.args[0]) if isinstance(value, relax.Call) and value.args else 0
            if operator in ("relax.memory.alloc_storage", "relax.vm.alloc_storage"):
                size[name], inside[name] = int(value.args[0].values[0].value), set()
            elif operator == "relax.memory.kill_tensor":
                if first in home:
                    inside[home[first]].discard(first)
            elif operator == "relax.memory.kill_storage":
                dropped.add(first)
            elif operator in ("relax.memory.alloc_tensor", "relax.vm.alloc_tensor"):
                home[name] = first
                inside[first].add(name)
            elif isinstance(value, relax.Call) and value.args:
                if operator == "relax.reshape" and first in home:
                    home[name] = home[first]
                    inside[home[first]].add(name)
                # A storage of which the handle is dropped is kept by the tensors in it.
                kept = [each for each in size if each not in dropped or inside[each]]
                live.append(sum(size[each] for each in kept))
    return live


@pytest.mark.parametrize(
    ("sample", "steps"),
    [
        ("fashion_mlp", ()),
        ("conv_net", FUSED),
        ("transformer_block", FUSED),
        ("matmul_relu", ()),
        ("fashion_mlp", PLANNED),
        ("conv_net", PLANNED),
    ],
)
def test_the_plan_is_what_the_virtual_machine_allocates(
    sample: str, steps: tuple[Step, ...]
) -> None:
    stages = stages_of(sample, *steps)
    plan = planned_memory(stages.recorded)
    sizes, calls = observed(stages)
    assert plan.reason == ""
    assert [each.size for each in plan.storages] == sizes
    assert len(plan.live) == calls
    assert list(plan.live) == given_back(stages)
    assert plan.peak == max(plan.live)
    assert plan.tensors >= sum(sizes)
    for storage in plan.storages:
        # What is in it one after the other is never needed at the same time.
        times = [(each.written, each.last) for each in storage.tensors]
        assert all(one[1] <= two[0] for one, two in pairwise(times))
        assert all(each.size <= storage.size for each in storage.tensors)


def test_sizes_that_have_names_are_not_known_before() -> None:
    pipeline = Pipeline()
    recipe = Recipe(source=Source(spec="sample:mlp_tvmscript"))
    assert planned_memory(pipeline.stages(recipe).recorded) == MemoryRecord(
        reason="sizes are known only at run time: a dimension is symbolic"
    )
