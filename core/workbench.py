"""The workbench: what can be asked of the schedule of one function."""

from __future__ import annotations

from collections.abc import Callable

import tvm

from lowerscope.core.errors import LowerscopeError
from lowerscope.core.memo import key_of
from lowerscope.core.progress import Progress
from lowerscope.core.recipe import Recipe
from lowerscope.core.rendering.script import function_text
from lowerscope.core.schedule_records import ScheduleRecord
from lowerscope.core.scheduling.structure import structure_of
from lowerscope.core.scheduling.tree import buffers_of, loop_tree
from lowerscope.core.stages import Stages
from lowerscope.core.texts import prim_funcs_of


class Workbench:
    """Answers about schedules, from what the pipeline keeps.

    Parameters
    ----------
    stages
        Returns those of a recipe.
    """

    def __init__(self, stages: Callable[[Recipe, Progress], Stages]) -> None:
        self._stages = stages

    def schedule(
        self, recipe: Recipe, function: str, index: int | None, progress: Progress
    ) -> ScheduleRecord:
        """Return the record of a schedule, if its function is kept: see `derived_schedule`.

        Raises
        ------
        LowerscopeError
            With the code ``"not-kept"`` if the module would have to be derived first.
        """
        self._check_kept(recipe, progress)
        return self.derived_schedule(recipe, function, index, progress)

    def derived_schedule(
        self, recipe: Recipe, function: str, index: int | None, progress: Progress
    ) -> ScheduleRecord:
        """Return a function after the first primitives of its schedule.

        Parameters
        ----------
        index
            How many primitives; ``None`` for all.

        Raises
        ------
        LowerscopeError
            If there is no such function.
        """
        stages = self._stages(recipe, progress)
        base = _base(stages, function)
        structures = structures_of(stages)
        script = function_text(tvm.IRModule({function: base}), function)
        return ScheduleRecord(
            function=function,
            structure=structures[function],
            index=0,
            script=script,
            tree=loop_tree(function, base, script),
            buffers=buffers_of(base, script),
            twins=tuple(
                name
                for name, structure in structures.items()
                if structure == structures[function] and name != function
            ),
        )

    def _check_kept(self, recipe: Recipe, progress: Progress) -> None:
        stages = self._stages(recipe, progress)
        if not stages.is_kept(stages.unscheduled_key):
            raise LowerscopeError("the module is not kept", code="not-kept")


def structures_of(stages: Stages) -> dict[str, str]:
    """Return the structural hashes of the functions that schedules are made for, by name."""
    module = stages.unscheduled.module
    return stages.keep(
        "structures",
        key_of("structures", stages.unscheduled_key),
        lambda: {name: structure_of(each) for name, each in prim_funcs_of(module).items()},
    )


def _base(stages: Stages, function: str) -> tvm.tirx.PrimFunc:
    functions = prim_funcs_of(stages.unscheduled.module)
    if function not in functions:
        names = tuple(sorted(functions))
        raise LowerscopeError(
            f"there is no TensorIR function {function!r} to schedule",
            where="schedule",
            todo=f"Choose one of {', '.join(names)}"
            if names
            else "Legalise the operators of the module, so that there are some",
            choices=names,
        )
    return functions[function]
