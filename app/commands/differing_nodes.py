"""Commands that go to the nodes whose values differ from torch's."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import partial
from typing import TYPE_CHECKING

from lowerscope.app.actions import Command

if TYPE_CHECKING:
    from lowerscope.app.document.document import Document
    from lowerscope.app.window import MainWindow


def finding_differences(window: MainWindow) -> tuple[Command, ...]:
    """Return the commands, for the menu Run."""
    document, tr = window.document, window.tr
    menu = tr("&Run")

    def select() -> None:
        record = document.run_record
        if record is not None and record.first_difference:
            document.select((record.first_difference,))

    def show_nodes() -> None:
        window.show_page("compare")
        window.panes.compare.show_part("nodes")

    def look() -> None:
        window.show_panes()
        window.panes.show_tensor()

    def differs() -> bool:
        return bool(differing(document))

    def differs_first() -> bool:
        record = document.run_record
        return record is not None and bool(record.first_difference)

    return (
        Command(
            "compare-nodes",
            menu,
            tr("Compare no&de by node"),
            show_nodes,
            "Ctrl+N",
            enabled=document.is_open,
            separated=True,
        ),
        Command(
            "compare-values",
            menu,
            tr("Look at the values o&f the node"),
            look,
            "Ctrl+Shift+E",
            enabled=document.is_open,
        ),
        Command(
            "first-difference",
            menu,
            tr("Select the first difference"),
            select,
            "F9",
            enabled=differs_first,
        ),
        Command(
            "next-difference",
            menu,
            tr("Ne&xt node that differs"),
            partial(select_differing, document, 1),
            "Alt+PgDown",
            enabled=differs,
        ),
        Command(
            "previous-difference",
            menu,
            tr("Previous node that differs"),
            partial(select_differing, document, -1),
            "Alt+PgUp",
            enabled=differs,
        ),
    )


def differing(document: Document) -> tuple[str, ...]:
    """Return the ids of the nodes that differed in the last run, in the graph's order."""
    record = document.run_record
    nodes = () if record is None else record.nodes
    return tuple(each.id for each in nodes if each.id.startswith("fx:") and each.matches is False)


def select_differing(document: Document, step: int) -> None:
    """Select the next or previous node that differs, wrapping around."""
    snapshot, found = document.snapshot, differing(document)
    if snapshot is None or not found:
        return
    places = {node.id: place for place, node in enumerate(snapshot.fx)}
    where = sorted(places[each] for each in found if each in places)
    marked = [places[each] for each in document.selection.of_kind("fx") if each in places]
    if not marked:
        place = 0 if step > 0 else -1
    elif step > 0:
        place = bisect_right(where, max(marked)) % len(where)
    else:
        # In Python, index −1 is that of the last one.
        place = bisect_left(where, min(marked)) - 1
    document.select((snapshot.fx[where[place]].id,))
