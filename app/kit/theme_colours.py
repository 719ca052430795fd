"""The colours of the light and the dark theme, by role."""

from typing import NamedTuple


class Theme(NamedTuple):
    """The colours of a theme, each as ``#rrggbb``."""

    name: str  # ``"light"`` or ``"dark"``.
    ground: str  # Background of the window, of a pane and of a code pane; separators.
    panel: str
    code_ground: str
    line: str
    text: str  # Text, explanatory text, line numbers and disabled text.
    quiet: str
    faint: str
    accent: str  # The accent colour, the background of selected items, text on the accent.
    accent_ground: str
    on_accent: str
    te: str  # Strategies; the high-level one has the accent.
    library: str
    right: str  # Text and background of a verdict; background of a changed line.
    right_ground: str
    wrong: str
    wrong_ground: str
    changed: str
    hover: str  # Background of the item under the mouse.
    found: str  # Background of search results, half transparent.
    stop: str  # Disc of a node with a breakpoint.
    node: str  # A graph's node, its outline, an edge, and the bar of a node without a strategy.
    node_line: str
    edge: str
    neutral: str
    # Kinds of nodes, where colours are those of kinds; calls are neutral, constants faint.
    input: str
    output: str
    group: str
    # Bar of a node with a measured time, and backgrounds of those with the longest time and the
    # largest error; the smallest have that of a node.
    heat: str
    heat_ground: str
    error_ground: str
    keyword: str  # Tokens of code; all others have the colour of text.
    string: str
    number: str
    comment: str
    function: str
    decorator: str
    builtin: str

    @property
    def dark(self) -> bool:
        """Return whether the text is lighter than the background."""
        return self.name == "dark"

    @property
    def unsure(self) -> str:
        """Amber, for an inconclusive verdict; its background is ``changed``."""
        return self.library

    @property
    def tints(self) -> tuple[str, ...]:
        """Backgrounds that distinguish the lines of nodes, also for colour-blind users.

        None is that of a selected or of a changed line.
        """
        return _DARK_TINTS if self.dark else _LIGHT_TINTS


_LIGHT_TINTS = (
    *("#d9f0f9", "#fbe3d6", "#dcefd9", "#f6dfe9"),
    *("#ebe9c4", "#e2dcf3", "#d3ede4", "#e6e6e6"),
)
_DARK_TINTS = (
    *("#173a46", "#46301f", "#22391f", "#452536"),
    *("#33351a", "#312a4a", "#15403a", "#33363b"),
)

LIGHT = Theme(
    name="light",
    ground="#f4f5f7",
    panel="#ffffff",
    code_ground="#fbfbfd",
    line="#dfe2e7",
    text="#1d2430",
    quiet="#636c7b",
    faint="#8d96a5",
    accent="#2c68d1",
    accent_ground="#e7effc",
    on_accent="#ffffff",
    te="#0d7a60",
    library="#936119",
    right="#147b52",
    right_ground="#e3f5ec",
    wrong="#c2372e",
    wrong_ground="#fdeceb",
    changed="#fff6dc",
    hover="#f0f2f5",
    found="#e5a50a",
    stop="#e5352b",
    node="#eef2f7",
    node_line="#d3dae4",
    edge="#8795a8",
    neutral="#626c80",
    input="#7a4fc0",
    output="#b73c87",
    group="#2b3648",
    heat="#0b7285",
    heat_ground="#86cbdc",
    error_ground="#b9c2cf",
    keyword="#8b3fb0",
    string="#0f7b55",
    number="#ac5219",
    comment="#636c7b",
    function="#2559b8",
    decorator="#2559b8",
    builtin="#8b3fb0",
)

DARK = Theme(
    name="dark",
    ground="#16191f",
    panel="#1d2129",
    code_ground="#1a1e25",
    line="#2f3540",
    text="#dfe4ec",
    quiet="#959fae",
    faint="#656f80",
    accent="#6ea0ff",
    accent_ground="#24344f",
    on_accent="#10151d",
    te="#4cc9a4",
    library="#e0ac55",
    right="#57c998",
    right_ground="#1d3a30",
    wrong="#ff7b72",
    wrong_ground="#43262a",
    changed="#3a3420",
    hover="#272d37",
    found="#e0ac55",
    stop="#ff5a50",
    node="#262c36",
    node_line="#3b4453",
    edge="#748092",
    neutral="#959fae",
    input="#b394f5",
    output="#f07fbf",
    group="#dfe4ec",
    heat="#5cc8de",
    heat_ground="#1d6478",
    error_ground="#566174",
    keyword="#c58af0",
    string="#7fd1a9",
    number="#f0a972",
    comment="#959fae",
    function="#7fb0ff",
    decorator="#7fb0ff",
    builtin="#c58af0",
)


def strategy_colour(theme: Theme, strategy: str) -> str:
    """Return the colour of a strategy or a change; a quiet one for anything else.

    Strategies are ``"high-level"``, ``"te"`` and ``"library"``; changes are ``"added"``,
    ``"removed"`` and ``"changed"``.
    """
    colours = {
        "high-level": theme.accent,
        "te": theme.te,
        "library": theme.library,
        "added": theme.right,
        "removed": theme.wrong,
        "changed": theme.text,
    }
    return colours.get(strategy, theme.neutral)


def kind_colour(theme: Theme, kind: str) -> str:
    """Return the colour of a kind of node.

    Kinds are ``"input"``, ``"constant"``, ``"call"``, ``"output"`` and ``"group"``.
    """
    colours = {"input": theme.input, "output": theme.output, "group": theme.group}
    return colours.get(kind, theme.faint if kind == "constant" else theme.neutral)
