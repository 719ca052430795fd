"""What the window asks of the worker about runs.

This module imports neither torch nor TVM.
"""

from __future__ import annotations

import msgspec

from lowerscope.core.export.catalogue import Wanted
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.comparison import Saved, TensorPlace
from lowerscope.core.records.run import KEEP, RunPart, RunRecord
from lowerscope.core.session_files import Layout


class RunParams(msgspec.Struct, frozen=True, kw_only=True):
    """Build and run, compare with torch, and time both.

    ``keep`` is how many bytes of the run's values may be kept, so that they can be looked at. A
    ``quick`` run answers soon: its times are of one call. Of an earlier run of the same
    module, ``before``, one ``part`` can be made anew: the verdict, by other tolerances; or the
    times, in another way.
    """

    recipe: Recipe
    quick: bool = False
    keep: int = KEEP
    part: RunPart = "all"
    before: RunRecord | None = None


class VariantTimesParams(msgspec.Struct, frozen=True, kw_only=True):
    """Time recipes of one source, with the same inputs and threads, by turns."""

    recipes: tuple[Recipe, ...]


class AgreementParams(msgspec.Struct, frozen=True, kw_only=True):
    """Build, run each sample of the set of inputs at ``path``, and compare with torch."""

    recipe: Recipe
    path: str


class GuardParams(msgspec.Struct, frozen=True, kw_only=True):
    """Build and run once, each call with guarded memory: who writes beside its own is named."""

    recipe: Recipe


class ExportParams(msgspec.Struct, frozen=True, kw_only=True):
    """Write files to ``folder``, in place of those of ``replacing``.

    ``record`` is that of a run, for the report; without one it is run. Of graphs, DOT is written
    alone: the window paints by itself, what ``painted`` names. ``layout`` is that of the window,
    for the session.
    """

    recipe: Recipe
    wanted: tuple[Wanted, ...]
    folder: str
    replacing: tuple[str, ...] = ()
    painted: tuple[str, ...] = ()
    record: RunRecord | None = None
    layout: Layout = Layout()


class ComparisonParams(msgspec.Struct, frozen=True, kw_only=True):
    """The tensor at ``place`` in the last run, which has to be of ``recipe``, beside torch's."""

    recipe: Recipe
    place: TensorPlace


class WindowParams(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the tensor at ``place``, in ``cells`` rows and columns at most.

    Attributes
    ----------
    leading
        An index in each dimension before the last two; those that are missing are 0.
    top, left, rows, columns
        First row and column, and how many elements from there; 0 for all. What lies outside of the
        tensor is left out.
    """

    recipe: Recipe
    place: TensorPlace
    leading: tuple[int, ...] = ()
    top: int = 0
    left: int = 0
    rows: int = 0
    columns: int = 0
    cells: int = 256


class SaveRunValuesParams(msgspec.Struct, frozen=True, kw_only=True):
    """Write the tensor at ``place`` to ``file``, a ``.npy``; the result is the path.

    ``side`` is ``"tvm"``, ``"torch"`` or ``"difference"``, ours - torch.
    """

    recipe: Recipe
    place: TensorPlace
    file: str
    side: Saved = "tvm"


class RunStepParams(msgspec.Struct, frozen=True, kw_only=True):
    """What the call of this index has read and written in the last run, which is of ``recipe``.

    ``lines`` are the first and the last line of the bytecode that is to be given with it, from 1.
    """

    recipe: Recipe
    call: int
    lines: tuple[int, int] = (0, 0)
