"""``explore(model, inputs)``: Lowerscope's views of a model in memory.

Importing this module is cheap: torch and TVM are imported on the first query.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from lowerscope.core.command_line.recipe_options import (
    OneLineParser,
    add_recipe_options,
    recipe_from,
)
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.model.queries import GraphQuery, RunQuery, SnapshotQuery
from lowerscope.core.notebook.window import open_window
from lowerscope.core.recipe import Recipe
from lowerscope.core.sources.handed_over import Parcel, pack

if TYPE_CHECKING:
    from lowerscope.core.model.graph import GraphName, GraphRecord
    from lowerscope.core.pipeline import Pipeline
    from lowerscope.core.records.run import RunRecord
    from lowerscope.core.records.snapshot import FxNode, Snapshot

_NOT_HERE = frozenset(("source", "args", "params", "trust"))
"""Options for files that do not apply to a model in memory."""


class Exploration:
    """A model in memory, and its recipe; made by `explore`.

    It is a snapshot of the model at the call of `explore`. Results are computed in this process and
    cached; records are plain, frozen values. A notebook displays the graph and the scripts.
    """

    def __init__(self, parcel: Parcel, title: str, choices: dict[str, Any]) -> None:
        self._parcel = parcel
        self._choices = choices
        self.title = title
        self.recipe: Recipe = _recipe(parcel.spec, choices)

    def change(self, **choices: Any) -> Exploration:
        """Return the same model with other choices: see `explore`."""
        return Exploration(self._parcel, self.title, self._choices | choices)

    def open(self) -> None:
        """Open a window on it, a process of its own, and return once it is shown.

        Raises a `LowerscopeError` if it does not start, with its output.
        """
        open_window(self._parcel, self.recipe)

    def snapshot(self) -> Snapshot:
        """Return all records that the window shows: model, nodes, functions, passes, links."""
        from lowerscope.core.model.text_metrics import DEFAULT

        return _pipeline().answer(SnapshotQuery(self.recipe, DEFAULT))

    def fx(self) -> tuple[FxNode, ...]:
        """Return the FX nodes, each with its shape, line, rule, bindings and functions."""
        return self.snapshot().fx

    def graph(self, name: GraphName = "fx") -> GraphRecord:
        """Return the graph ``"fx"`` or ``"relax"``, laid out."""
        from lowerscope.core.model.text_metrics import DEFAULT

        return _pipeline().answer(GraphQuery(self.recipe, DEFAULT, name))

    def relax(self) -> str:
        """Return the script of the module before its passes."""
        from lowerscope.core.command_line.showing import show_stage

        return show_stage(_pipeline(), self.recipe, "relax")

    def tensorir(self, function: str = "") -> str:
        """Return the script of the module after its passes, or of one of its functions."""
        from lowerscope.core.command_line.showing import show_stage

        return show_stage(_pipeline(), self.recipe, "tensorir", function)

    def run(self) -> RunRecord:
        """Build and run it, compare with torch, and time both."""
        return _pipeline().answer(RunQuery(self.recipe))

    # Display in a notebook

    def __repr__(self) -> str:
        words = ", ".join(f"{name}={value!r}" for name, value in self._choices.items())
        return f"<Exploration of {self.title}{': ' if words else ''}{words}>"

    def _repr_html_(self) -> str:
        from lowerscope.core.notebook.page import page

        return page(self)


def explore(
    model: object,
    inputs: object = None,
    *,
    title: str = "",
    window: bool | None = None,
    **choices: Any,
) -> Exploration:
    """Explore a model in memory, in a window or inline in a notebook.

    Raises a `LowerscopeError` if the model cannot be pickled, a choice does not exist, or the
    window does not start.

    Parameters
    ----------
    model
        An ``nn.Module``, an ``IRModule`` or a TensorIR function. It is not changed.
    inputs
        As a file's ``example_inputs``: a tensor; a tuple of them, by position; a dict, by
        keyword; left out, the model's own ``example_inputs``.
    title
        The model's title; left out, the name of its class.
    window
        Whether a window is opened; left out, one is opened everywhere but in Jupyter.
    **choices
        The options of the command line, with ``_`` for ``-``: ``lowering="te"``,
        ``pipeline="fuse"``, ``schedule="rules"``, ``target="native"``, ``override=["relu=te"]``.
    """
    name = title or type(model).__name__
    explored = Exploration(pack(model, inputs, name), name, choices)
    if window if window is not None else not _in_jupyter():
        explored.open()
    return explored


def _in_jupyter() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


@cache
def _pipeline() -> Pipeline:
    """Return the pipeline of this process."""
    from lowerscope.core.pipeline import Pipeline

    return Pipeline()


def _recipe(spec: str, choices: dict[str, Any]) -> Recipe:
    parser = OneLineParser(prog="explore", add_help=False, allow_abbrev=False)
    parser.add_argument("source")
    add_recipe_options(parser)
    wrong = sorted(_NOT_HERE & choices.keys())
    if wrong:
        raise LowerscopeError(
            f"{wrong[0]} has no meaning for a model that is built already",
            where=f"explore(…, {wrong[0]}=…)",
            todo="Leave it out",
        )
    return recipe_from(parser.parse_args([*_words(choices), spec]))


def _words(choices: dict[str, Any]) -> Iterable[str]:
    for name, value in choices.items():
        option = f"--{name.replace('_', '-')}"
        for each in value if isinstance(value, list | tuple) else (value,):
            if each is True:
                yield option
            elif each not in (False, None):
                yield f"{option}={each}"
