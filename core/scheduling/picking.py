"""The selection as arguments of primitives."""

from __future__ import annotations

from tvm import tirx

from lowerscope.core.scheduling.entry import Site
from lowerscope.core.scheduling.failures import REFUSED
from lowerscope.core.scheduling.references import loops_around, resolve, stmt_of


def loop_alone(site: Site) -> int | None:
    """Return the place of the selected loop, if nothing else is selected."""
    if len(site.chosen) == 1 and not site.chosen[0].place.is_block:
        return site.chosen[0].index
    return None


def block_alone(site: Site) -> int | None:
    """Return the place of the selected block, if it is in another and nothing else is selected."""
    if len(site.chosen) == 1 and site.chosen[0].place.is_block and site.chosen[0].index:
        return site.chosen[0].index
    return None


def block_and_loop(site: Site) -> tuple[int, int] | None:
    """Return the places of a selected block and a selected loop, in either order."""
    if len(site.chosen) != 2:
        return None
    blocks = [each.index for each in site.chosen if each.place.is_block]
    loops = [each.index for each in site.chosen if not each.place.is_block]
    return (blocks[0], loops[0]) if len(blocks) == 1 and len(loops) == 1 else None


def chosen_loops(site: Site) -> list[int]:
    """Return the places of the selected loops, if nothing else is selected."""
    if any(each.place.is_block for each in site.chosen):
        return []
    return [each.index for each in site.chosen]


def inner_loop(site: Site, loop: int) -> int | None:
    """Return the loop that is the whole body of another."""
    inside = loop + 1
    if inside >= len(site.found) or site.found[inside].is_block:
        return None
    return inside if isinstance(site.found[loop].stmt.body, tirx.For) else None


def outer_loop(site: Site, loop: int) -> int | None:
    """Return the loop whose whole body another one is."""
    parent = site.found[loop].parent
    if parent < 0 or site.found[parent].is_block:
        return None
    return parent if isinstance(site.found[parent].stmt.body, tirx.For) else None


def extent(site: Site, loop: int) -> int | None:
    """Return the extent of a loop; ``None`` where it is symbolic."""
    found = site.found[loop].stmt.extent
    return int(found) if isinstance(found, tirx.IntImm) else None


def neighbours(site: Site, block: int, *, consumers: bool) -> list[int]:
    """Return the places of the consumers of a block's output, or of the producers of its input."""
    sch = site.sch.copy()
    made = resolve(sch, site.named[block], site.outputs)
    try:
        next_to = sch.get_consumers(made) if consumers else sch.get_producers(made)
    except REFUSED:
        # TVM does not find producers among blocks that have no order.
        return []
    stmts = [stmt_of(sch, each) for each in next_to]
    return [
        index
        for index, place in enumerate(site.found)
        if place.is_block and any(place.stmt.same_as(stmt) for stmt in stmts)
    ]


def around(site: Site, block: int) -> list[int]:
    """Return the places of the loops around a block, the outermost first."""
    return loops_around(list(site.found), block)
