"""The rows in which panes stand by default, and how wide each pane is in its row."""

Row = tuple[tuple[str, int], ...]
"""Panes that stand side by side, from the left, each with its width."""

TOP = (("model", 240), ("fx", 360), ("relax", 420), ("tensorir", 420))
BOTTOM = (("pipeline", 440), ("outcome", 710), ("details", 290))
WORKBENCH = (("schedule", 1110), ("outcome", 330))
"""The row at the bottom while the steps are those of a schedule; the details are put away."""

BESIDE_SCRIPT = (("model", 180), ("fx", 250), ("relax", 330), ("tensorir", 680))
"""The row at the top meanwhile: it is the script that is worked on."""

ABOVE = tuple(name for name, _ in TOP)
BELOW = ("schedule", *(name for name, _ in BOTTOM))
"""Names of all panes of the two rows, from the left."""

STEADY = ("model", "pipeline", "details")
"""These get little more than that: more room is that of graphs, scripts and tables."""

MOST_SHARE = 1.3
"""Of that, what these get at most in a wide window: names of parameters are long."""

NARROW = 1440
"""Width of the window for which these widths are."""

BOTTOM_HEIGHT = 250


def widths(row: Row, width: int) -> list[int]:
    """Return how wide the panes of a row are in a window of this width."""
    wide = min(MOST_SHARE, max(1.0, width / NARROW))
    steady = sum(wide * own for name, own in row if name in STEADY)
    others = sum(own for name, own in row if name not in STEADY)
    share = max(1.0, (width - steady) / others)
    return [round((wide if name in STEADY else share) * own) for name, own in row]
