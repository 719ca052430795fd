"""Records of one call of a run: the tensors that it read and wrote, and its bytecode.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from lowerscope.core.records.comparison import TensorPlace, TensorStatistics

TensorKind = Literal["input", "constant", "value"]


class StepTensor(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that a call has read or written.

    Attributes
    ----------
    place
        Place of its values.
    name
        ``x``, ``linear0.weight``, ``lv1``; empty where that is not known.
    kind
        An input of ``main``, a constant, or what another call has computed; of what is written, the
        last.
    entity
        Its id, for the selection: ``relax:main/lv1``, ``param:linear0.weight``; empty for none.
    statistics, first
        In figures, and the first few of its elements; without the latter where the values are
        beyond the budget.
    """

    place: TensorPlace
    name: str
    kind: TensorKind
    shape: tuple[int, ...]
    dtype: str
    entity: str = ""
    statistics: TensorStatistics | None = None
    first: tuple[str, ...] = ()


class RunStep(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a run in full.

    Attributes
    ----------
    call
        Its place in `RunRecord.calls`.
    tensors
        The tensors that it has read, then those that it has written, in the order of its arguments.
    instructions
        The lines of the bytecode from after the call before up to its own, which is the last.
    first_line
        The number of the first of them in the bytecode of ``main``; 0 where that is not known.
    """

    call: int
    tensors: tuple[StepTensor, ...]
    instructions: tuple[str, ...] = ()
    first_line: int = 0
