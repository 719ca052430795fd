"""What is asked about the recipe that is shown: what a page fetches when it is looked at, and what
is written to a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from lowerscope.app.children.handing_over import ask_for_file
from lowerscope.app.children.requests import OnProblem, OnProgress, Requests
from lowerscope.app.engine_client import EngineClient
from lowerscope.core.engine.protocol import (
    CatalogueParams,
    DifferenceParams,
    FunctionsParams,
    GraphDifferenceParams,
    GraphParams,
    RuleParams,
    SaveValuesParams,
    TextParams,
    TranslationParams,
    ValuesParams,
)
from lowerscope.core.engine.run_params import (
    ComparisonParams,
    RunStepParams,
    SaveRunValuesParams,
    WindowParams,
)
from lowerscope.core.recipe import Recipe
from lowerscope.core.records.comparison import Comparison, Saved, TensorPlace, Window
from lowerscope.core.records.difference import DifferenceRecord, GraphDifference, Side
from lowerscope.core.records.graph import FITS, GraphName, GraphRecord
from lowerscope.core.records.model import ValuesRecord
from lowerscope.core.records.passes import PassType
from lowerscope.core.records.run_step import RunStep
from lowerscope.core.records.snapshot import FunctionRecord, SourceLine, TextRecord, View
from lowerscope.core.records.steps import Moment
from lowerscope.core.records.translation import NodeTranslation
from lowerscope.core.rendering.graph_layout.metrics import TextMetrics


class Fetches:
    """Asks about the recipe that is shown: the worker about what has to be compiled, the engine
    about the rest.

    Each question returns a number, by which the answer can be dropped.

    Parameters
    ----------
    engine, worker
        Who is asked.
    shown
        Returns the recipe that is shown, and the metrics of its fonts.
    """

    def __init__(
        self,
        engine: EngineClient,
        worker: EngineClient,
        shown: Callable[[], tuple[Recipe, TextMetrics]],
    ) -> None:
        self._engine = engine
        self._worker = worker
        self._shown = shown
        self._requests = Requests()

    def compiled(
        self,
        view: View,
        name: str,
        on_text: Callable[[TextRecord], None],
        on_problem: OnProblem,
        on_progress: OnProgress,
        moment: Moment | None = None,
    ) -> int:
        """Ask for the bytecode of a Relax function, or for a TensorIR function's LLVM IR or
        assembly.

        Parameters
        ----------
        moment
            Of a schedule, at which the function is compiled by itself; ``None`` for the build.
        """
        recipe, _ = self._shown()
        params = TextParams(recipe=recipe, view=view, name=name, moment=moment)
        return self._requests.ask(self._worker, "text", params, on_text, on_problem, on_progress)

    def text(
        self,
        view: View,
        name: str,
        on_text: Callable[[TextRecord], None],
        on_problem: OnProblem,
        moment: Moment | None = None,
    ) -> int:
        """Ask for a text of a function, or for one of the module with an empty name."""
        recipe, _ = self._shown()
        params = TextParams(recipe=recipe, view=view, name=name, moment=moment)
        return self._ask("text", params, on_text, on_problem, moment)

    def functions(
        self,
        moment: Moment,
        on_functions: Callable[[tuple[FunctionRecord, ...]], None],
        on_problem: OnProblem,
    ) -> int:
        """Ask for the functions of the module at a moment."""
        recipe, _ = self._shown()
        params = FunctionsParams(recipe=recipe, moment=moment)
        return self._ask("functions", params, on_functions, on_problem, moment)

    def catalogue(
        self, on_types: Callable[[tuple[PassType, ...]], None], on_problem: OnProblem
    ) -> None:
        """Ask for the passes that steps can name."""
        recipe, _ = self._shown()
        self._engine.request("catalogue", CatalogueParams(recipe=recipe), on_types, on_problem)

    def graph(
        self,
        on_graph: Callable[[GraphRecord], None],
        on_problem: OnProblem,
        *,
        graph: GraphName,
        moment: Moment | None = None,
        expanded: tuple[str, ...] | None = None,
        fits: tuple[float, float] | None = None,
    ) -> int:
        """Ask for a graph with these modules expanded, or at the level that fits a picture."""
        recipe, metrics = self._shown()
        params = GraphParams(
            recipe=recipe,
            metrics=metrics,
            graph=graph,
            moment=moment,
            expanded=expanded,
            fits=fits or FITS,
        )
        return self._ask("graph", params, on_graph, on_problem, moment)

    def difference(
        self,
        sides: tuple[Side, Side],
        on_difference: Callable[[DifferenceRecord], None],
        on_problem: OnProblem,
    ) -> int:
        """Ask for the difference of two modules."""
        params = DifferenceParams(old=sides[0], new=sides[1])
        moments = (side.moment for side in sides)
        return self._ask("difference", params, on_difference, on_problem, *moments)

    def graph_difference(
        self,
        sides: tuple[Side, Side],
        function: str,
        on_difference: Callable[[GraphDifference], None],
        on_problem: OnProblem,
    ) -> int:
        """Ask for the difference of the data flow of a Relax function in two modules."""
        _, metrics = self._shown()
        params = GraphDifferenceParams(
            old=sides[0], new=sides[1], function=function, metrics=metrics
        )
        moments = (side.moment for side in sides)
        return self._ask("graph_difference", params, on_difference, on_problem, *moments)

    def values(
        self, name: str, on_values: Callable[[ValuesRecord], None], on_problem: OnProblem
    ) -> int:
        """Ask for the values of a tensor in figures."""
        recipe, _ = self._shown()
        params = ValuesParams(recipe=recipe, name=name)
        return self._ask("values", params, on_values, on_problem)

    def translation(
        self, node: str, on_record: Callable[[NodeTranslation], None], on_problem: OnProblem
    ) -> int:
        """Ask how a node was translated."""
        recipe, _ = self._shown()
        params = TranslationParams(recipe=recipe, node=node)
        return self._ask("translation", params, on_record, on_problem)

    def run_step(
        self,
        call: int,
        lines: tuple[int, int],
        on_step: Callable[[RunStep], None],
        on_problem: OnProblem,
    ) -> int:
        """Ask what a call of the last run has read and written, with lines of the bytecode."""
        recipe, _ = self._shown()
        params = RunStepParams(recipe=recipe, call=call, lines=lines)
        return self._requests.ask(self._worker, "run_step", params, on_step, on_problem)

    def drop(self, number: int) -> None:
        """Forget about what is no longer looked at."""
        self._requests.drop(number)

    def cancel(self) -> None:
        """Stop compiling what is looked at."""
        self._requests.cancel_all(self._worker)

    def replace(self) -> None:
        """Give up compiling for the recipe that was shown until now."""
        self._requests.replace_all(self._worker)

    def save_values(
        self, name: str, file: str, on_path: Callable[[str], None], on_problem: OnProblem
    ) -> None:
        """Let the engine write a tensor to a ``.npy`` file."""
        recipe, _ = self._shown()
        params = SaveValuesParams(recipe=recipe, name=name, file=file)
        ask_for_file(self._engine, "save_values", params, on_path, on_problem)

    def comparison(
        self, place: TensorPlace, on_record: Callable[[Comparison], None], on_problem: OnProblem
    ) -> int:
        """Ask for a tensor of the last run beside torch's, in figures."""
        recipe, _ = self._shown()
        params = ComparisonParams(recipe=recipe, place=place)
        return self._requests.ask(self._worker, "comparison", params, on_record, on_problem)

    def window(
        self,
        place: TensorPlace,
        leading: tuple[int, ...],
        part: tuple[int, int, int, int],
        on_window: Callable[[Window], None],
        on_problem: OnProblem,
    ) -> int:
        """Ask for a piece of a tensor of the last run, as a matrix in cells.

        Parameters
        ----------
        leading
            The index in each dimension before the last two.
        part
            First row and column, and how many rows and columns.
        """
        recipe, _ = self._shown()
        top, left, rows, columns = part
        params = WindowParams(
            recipe=recipe,
            place=place,
            leading=leading,
            top=top,
            left=left,
            rows=rows,
            columns=columns,
        )
        return self._requests.ask(self._worker, "window", params, on_window, on_problem)

    def save_run_values(
        self,
        place: TensorPlace,
        side: Saved,
        file: str,
        on_path: Callable[[str], None],
        on_problem: OnProblem,
    ) -> None:
        """Let the worker write a tensor of the last run to a ``.npy`` file."""
        recipe, _ = self._shown()
        params = SaveRunValuesParams(recipe=recipe, place=place, file=file, side=side)
        ask_for_file(self._worker, "save_run_values", params, on_path, on_problem)

    def write_rule(
        self, node: str, file: str, on_line: Callable[[SourceLine], None], on_problem: OnProblem
    ) -> None:
        """Let the engine write a working rule for a node into a file."""
        recipe, _ = self._shown()
        params = RuleParams(recipe=recipe, node=node, file=file)
        ask_for_file(self._engine, "write_rule", params, on_line, on_problem)

    def _ask(
        self,
        method: str,
        params: msgspec.Struct,
        on_record: Callable[[Any], None],
        on_problem: OnProblem,
        *moments: Moment | None,
    ) -> int:
        built = any(moment is not None and moment.clock == "build" for moment in moments)
        client = self._worker if built else self._engine
        return self._requests.ask(client, method, params, on_record, on_problem)
