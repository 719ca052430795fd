"""``explore(model, inputs)``: what Lowerscope shows of a model that is in memory.

Importing this module is cheap: torch and TVM are imported when something is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from lowerscope.core.command_line.recipe_from_options import recipe_from
from lowerscope.core.command_line.recipe_options import OneLineParser, add_recipe_options
from lowerscope.core.errors import LowerscopeError
from lowerscope.core.notebook.window import open_window
from lowerscope.core.progress import Silent
from lowerscope.core.recipe import Recipe
from lowerscope.core.sources.handed_over import Parcel, pack

if TYPE_CHECKING:
    from lowerscope.core.pipeline import Pipeline
    from lowerscope.core.records.graph import GraphName, GraphRecord
    from lowerscope.core.records.run import RunRecord
    from lowerscope.core.records.snapshot import FxNode, Snapshot

_NOT_HERE = frozenset(("source", "args", "params", "trust"))
"""Choices of a file's that a model in memory does not have."""


class Exploration:
    """A model in memory, and how it is lowered; made by `explore`.

    It is the model as it was when `explore` was called. What is asked of it is computed in this
    process, and kept; records are plain, frozen values. In a notebook it shows itself: the graph
    and the scripts.

    Attributes
    ----------
    title
        What it is called.
    recipe
        All choices; see `core.recipe`.
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
        """Open a window on it, a process of its own, and return once it is there.

        Raises
        ------
        LowerscopeError
            If it does not come, with what it said.
        """
        open_window(self._parcel, self.recipe)

    def snapshot(self) -> Snapshot:
        """Return all records that the window shows: model, nodes, functions, passes, links."""
        from lowerscope.core.rendering.graph_layout.metrics import DEFAULT

        return _pipeline().snapshot(self.recipe, DEFAULT, Silent())

    def fx(self) -> tuple[FxNode, ...]:
        """Return the FX nodes, each with its shape, line, rule, bindings and functions."""
        return self.snapshot().fx

    def graph(self, name: GraphName = "fx") -> GraphRecord:
        """Return the graph ``"fx"`` or ``"relax"``, laid out."""
        from lowerscope.core.rendering.graph_layout.metrics import DEFAULT

        return _pipeline().graph(self.recipe, DEFAULT, Silent(), name)

    def relax(self) -> str:
        """Return the script of the module as it was lowered."""
        from lowerscope.core.command_line.showing import show_relax

        return show_relax(_pipeline(), self.recipe, "", as_json=False)

    def tensorir(self, function: str = "") -> str:
        """Return the script of the module after its passes, or of one of its functions."""
        from lowerscope.core.command_line.showing import show_tensorir

        return show_tensorir(_pipeline(), self.recipe, function, as_json=False)

    def run(self) -> RunRecord:
        """Build and run it, compare with torch, and time both."""
        return _pipeline().run(self.recipe, Silent())

    # What a notebook shows

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
    """Look at a model that is in memory, in a window, or in a notebook right there.

    Parameters
    ----------
    model
        An ``nn.Module``, an ``IRModule`` or a TensorIR function. It is not changed.
    inputs
        As a file's ``example_inputs``: a tensor; a tuple of them, by position; a dict, by
        keyword; left out, the model's own ``example_inputs``.
    title
        What it is called; left out, the name of its class.
    window
        Whether a window is opened; left out, it is everywhere but in Jupyter.
    **choices
        The options of the command line, with ``_`` for ``-``: ``lowering="te"``,
        ``pipeline="fuse"``, ``schedule="rules"``, ``target="native"``, ``override=["relu=te"]``.

    Raises
    ------
    LowerscopeError
        If the model cannot be handed over, a choice is none, or the window does not come.
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
