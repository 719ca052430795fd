"""``explore(model, inputs)``: Lowerscope's views of a model in memory.

Importing this module is cheap: torch and TVM are imported on the first query.
"""

from __future__ import annotations

import contextlib
import difflib
import selectors
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from functools import cache
from typing import IO, TYPE_CHECKING, Any

import msgspec

from lowerscope.core.cli.recipe_options import OneLineParser, add_recipe_options, recipe_from
from lowerscope.core.files.in_memory import OPTION, SHOWN, TAKEN, Order, Parcel, pack, private_file
from lowerscope.core.files.report import template
from lowerscope.core.files.sources import source_label
from lowerscope.core.model.formatting import shape_text
from lowerscope.core.model.graph import (
    BADGE,
    DEFAULT,
    HEADER,
    NAME_LINE,
    PADDING,
    PILLS,
    ROW,
    STRATEGY_LETTERS,
    TITLE_BAR,
    Edge,
    cut_to,
)
from lowerscope.core.model.problems import LowerscopeError, last_line, listed
from lowerscope.core.model.queries import (
    BisectQuery,
    GraphQuery,
    RunQuery,
    SnapshotQuery,
    WhyFunctionQuery,
    WhyFusedQuery,
    WhyPassQuery,
)
from lowerscope.core.model.recipe import Recipe, Step
from lowerscope.core.model.schedule_records import Advice
from lowerscope.core.model.texts import _, alternatives
from lowerscope.resources import NOTEBOOK

if TYPE_CHECKING:
    from lowerscope.core.model.comparison_records import NodeErrors, WeightDtype
    from lowerscope.core.model.explanation_records import BisectRecord, Explanation
    from lowerscope.core.model.graph import GraphName, GraphRecord
    from lowerscope.core.model.run_records import RunRecord
    from lowerscope.core.model.snapshot import FxNode, Snapshot
    from lowerscope.core.stages import Pipeline


# Window on a model in memory: a separate process, which outlives the one that opened it.


PATIENCE_S = 120.0
"""Time limit of the window's start, in seconds; the machine may be busy."""


def open_window(parcel: Parcel, recipe: Recipe) -> None:
    """Open a window on a model, and return once it is shown.

    Raises a `LowerscopeError` if it does not start.
    """
    # -P: the current folder must not shadow packages.
    command = (sys.executable, "-P", "-m", "lowerscope.app", OPTION)
    title = source_label(parcel.spec)
    with tempfile.TemporaryFile() as log:
        try:
            with private_file(parcel) as (file, token):
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    # An interrupt of the notebook must not reach the window.
                    start_new_session=True,
                )
                try:
                    order = Order(file=file, token=token, recipe=recipe)
                    _give(process, msgspec.json.encode(order))
                    _wait_for(TAKEN, process, log, title)
                except BaseException:
                    process.kill()
                    process.wait()
                    raise
            _wait_for(SHOWN, process, log, title)
        except OSError as error:
            raise LowerscopeError(
                _("the window cannot be opened: {strerror}", strerror=error.strerror or error),
                where=title,
            ) from None
    assert process.stdout is not None
    process.stdout.close()
    # Reap the process once it has ended.
    threading.Thread(target=process.wait, name="lowerscope window", daemon=True).start()


def _give(process: subprocess.Popen[bytes], order: bytes) -> None:
    assert process.stdin is not None
    # If it has already ended, its output is in the log.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(order)
        process.stdin.close()


def _wait_for(answer: bytes, process: subprocess.Popen[bytes], log: IO[bytes], title: str) -> None:
    """Wait for an answer of the window."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        came = selector.select(PATIENCE_S)
    if came and process.stdout.read(len(answer)) == answer:
        return
    process.kill()
    process.wait()
    process.stdout.close()
    log.seek(0)
    words = log.read().decode("utf-8", "replace")
    reason = last_line(RuntimeError(words)) if words.strip() else _("it does not answer")
    raise LowerscopeError(
        _("the window does not open: {reason}", reason=reason),
        where=title,
        todo=_("Without a display, explore(…, window=False) gives records and scripts"),
        details=words,
    )


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
        from lowerscope.core.model.graph import DEFAULT

        return _pipeline().answer(SnapshotQuery(self.recipe, DEFAULT))

    def fx(self) -> tuple[FxNode, ...]:
        """Return the FX nodes, each with its shape, line, rule, bindings and functions."""
        return self.snapshot().fx

    def graph(self, name: GraphName = "fx") -> GraphRecord:
        """Return the graph ``"fx"`` or ``"relax"``, laid out."""
        from lowerscope.core.model.graph import DEFAULT

        return _pipeline().answer(GraphQuery(self.recipe, DEFAULT, name))

    def relax(self) -> str:
        """Return the script of the module before its passes."""
        from lowerscope.core.cli.showing import show_stage

        return show_stage(_pipeline(), self.recipe, "relax")

    def tensorir(self, function: str = "") -> str:
        """Return the script of the module after its passes, or of one of its functions."""
        from lowerscope.core.cli.showing import show_stage

        return show_stage(_pipeline(), self.recipe, "tensorir", function)

    def run(self) -> RunRecord:
        """Build and run it, compare with torch, and time both."""
        return _pipeline().answer(RunQuery(self.recipe))

    def referee(self, dtype: WeightDtype = "") -> tuple[NodeErrors, ...]:
        """Return the errors of TVM and of torch against float64, for each compared node.

        Uses the values of the last run; if that was another, or there is none, runs the model.

        Args:
            dtype: ``"float16"``, ``"bfloat16"`` or ``"int8"``: also the errors that weights of this
                dtype would make.
        """
        from lowerscope.core.cli.run import judged
        from lowerscope.core.model.progress import SILENT

        return judged(_pipeline(), self.recipe, dtype, SILENT).nodes

    def bisect(self) -> BisectRecord:
        """Return the first step after which it differs from torch, with a reproduction."""
        return _pipeline().answer(BisectQuery(self.recipe))

    def why(self, name: str, other: str = "") -> Explanation:
        """Return why two nodes are fused or not; of one name, of a function's schedule or a pass.

        Raises `LowerscopeError` if there is no such node, function or pass.
        """
        pipeline = _pipeline()
        if other:
            return pipeline.answer(WhyFusedQuery(self.recipe, name, other))
        stages = pipeline.stages(self.recipe)
        functions, passes = tuple(stages.functions.by_name), tuple(stages.passes)
        if name.removeprefix("tir:") in functions:
            return pipeline.answer(WhyFunctionQuery(self.recipe, name))
        short = (each.rpartition(".")[2] for each in passes)
        if name.removeprefix("relax.") in {*passes, *short}:
            return pipeline.answer(WhyPassQuery(self.recipe, Step(name=name)))
        nodes = () if stages.lowered is None else tuple(stages.lowered.nodes)
        if name.removeprefix("fx:") in nodes:
            raise LowerscopeError(
                _("{name} is a node, and fusion is explained for two of them", name=name),
                where="why",
                todo=_("Give another node as well: {listed}", listed=listed(nodes)),
                choices=nodes,
            )
        near = difflib.get_close_matches(name, (*functions, *nodes, *passes), n=3)
        raise LowerscopeError(
            _("there is no function, pass or node '{name}'", name=name),
            where="why",
            todo=_("Did you mean {near}?", near=alternatives(near))
            if near
            else _(
                "Give a function ({functions}), a pass or two nodes ({nodes})",
                functions=listed(functions),
                nodes=listed(nodes),
            ),
            choices=(*functions, *nodes),
        )

    def coach(self, function: str) -> tuple[Advice, ...]:
        """Return what makes a TensorIR function slow with its schedule, and the cures.

        Raises `LowerscopeError` if there is no such function.
        """
        from lowerscope.core.cli.schedule import coached

        return coached(_pipeline(), self.recipe, function.removeprefix("tir:")).advice

    # Display in a notebook

    def __repr__(self) -> str:
        words = ", ".join(f"{name}={value!r}" for name, value in self._choices.items())
        return f"<Exploration of {self.title}{': ' if words else ''}{words}>"

    def _repr_html_(self) -> str:

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

    Args:
        model: An ``nn.Module``, an ``IRModule`` or a TensorIR function. It is not changed.
        inputs: As a file's ``example_inputs``: a tensor; a tuple of them, by position; a dict, by
            keyword; left out, the model's own ``example_inputs``.
        title: The model's title; left out, the name of its class.
        window: Whether a window is opened; left out, one is opened everywhere but in Jupyter.
        **choices: The options of the command line, with ``_`` for ``-``: ``lowering="te"``,
            ``pipeline="fuse"``, ``schedule="rules"``, ``target="llvm"``,
            ``override=["relu=te"]``.
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
    from lowerscope.core.stages import Pipeline

    return Pipeline()


def _recipe(spec: str, choices: dict[str, Any]) -> Recipe:
    parser = OneLineParser(prog="explore", add_help=False, allow_abbrev=False)
    parser.add_argument("source")
    add_recipe_options(parser)
    wrong = sorted(_NOT_HERE & choices.keys())
    if wrong:
        raise LowerscopeError(
            _("{wrong} has no effect on a model that is built already", wrong=wrong[0]),
            where=f"explore(…, {wrong[0]}=…)",
            todo=_("Leave it out"),
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


# HTML display of a model in a notebook: graph and scripts, for light and dark themes.

MOST_LINES = 2000
"""Bound on the lines shown of a script; the methods of the exploration return all."""


def page(explored: Exploration) -> str:
    """Return the HTML, without scripts and external resources."""
    try:
        values = _values(explored)
    except LowerscopeError as error:
        values = {"problem": error.problem.line()}
    return template(NOTEBOOK / "page.html").render(
        {"problem": "", **values},
        style=(NOTEBOOK / "page.css").read_text(encoding="utf-8"),
        MARGIN=12,
        MOST_LINES=MOST_LINES,
        TITLE_BAR=TITLE_BAR,
        PILLS=PILLS,
        PADDING=PADDING,
        BADGE=BADGE,
        HEADER=HEADER,
        NAME_LINE=NAME_LINE,
        ROW=ROW,
        LETTERS=STRATEGY_LETTERS,
        cut=lambda title, width: cut_to(title, width, DEFAULT.title_width),
        path_of=_path,
        highlighted=_highlighted,
    )


def _values(explored: Exploration) -> dict[str, Any]:
    snapshot = explored.snapshot()
    recipe = explored.recipe
    inputs = ", ".join(
        f"{each.name} {shape_text(each.shape)} {each.dtype}" for each in snapshot.model.inputs
    )
    steps = ", ".join(step.name for step in recipe.steps if step.on) or "no passes"
    return {
        "title": explored.title,
        "facts": " · ".join(filter(None, (inputs, recipe.lowering, steps, recipe.target))),
        "snapshot": snapshot,
        "graph": explored.graph("fx") if snapshot.fx else None,
        "tensorir": explored.tensorir(),
    }


def _highlighted(code: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    shown = "\n".join(code.splitlines()[:MOST_LINES]) + "\n"
    return str(highlight(shown, PythonLexer(), HtmlFormatter(nowrap=True)))


def _path(edge: Edge) -> str:
    """Return the path of an edge in SVG: straight, or between two rows with vertical ends."""
    (x, y), *rest = edge.points
    path = [f"M{x:.1f} {y:.1f}"]
    for right, below in rest:
        half = (y + below) / 2
        if right == x:
            path.append(f"L{right:.1f} {below:.1f}")
        else:
            path.append(f"C{x:.1f} {half:.1f} {right:.1f} {half:.1f} {right:.1f} {below:.1f}")
        x, y = right, below
    return "".join(path)
