"""The Relax graph, which is fetched from the engine when it is looked at."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from lowerscope.app.views.graph_page import GraphPage
from lowerscope.app.views.when_looked_at import WhenLookedAt
from lowerscope.app.workspace import Workspace
from lowerscope.core.errors import Problem
from lowerscope.core.graph_records import GraphRecord
from lowerscope.core.step_records import Moment


class FetchedGraph(GraphPage):
    """A canvas that shows the Relax graph of the snapshot.

    Parameters
    ----------
    name
        Accessible name of the canvas.
    tooltip
        Text for the id of a box.
    set_busy
        Called with whether the graph is on its way.
    """

    def __init__(
        self,
        workspace: Workspace,
        name: str,
        tooltip: Callable[[str], str],
        set_busy: Callable[[bool], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(workspace, name, tooltip, parent)
        self._fetching = WhenLookedAt(self, workspace, self._ask, set_busy)

    def show_snapshot(self) -> None:
        """Show the graph of the workspace's snapshot; until it is there, the one of before."""
        self._fetching.forget()
        snapshot = self._workspace.snapshot
        if snapshot is None:
            self.show_graph(None, "")
        else:
            self._fetching.want(snapshot.model.title)

    def _ask(self, _title: str, _moment: Moment | None) -> int:
        return self._workspace.fetches.graph(self._take_graph, self._take_problem)

    def _take_graph(self, record: GraphRecord) -> None:
        self._fetching.settle(came=True)
        self.show_graph(record, self._fetching.shown or "")

    def _take_problem(self, problem: Problem) -> None:
        self._fetching.settle(came=False)
        self.canvas.set_empty(problem.what[:1].upper() + problem.what[1:], problem.todo)
        self.show_graph(None, "")
