"""Shortcuts of focused panes that are not in the menus, as text."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication

Keys = tuple[str, str]
"""An action, and its keys."""


def pane_keys() -> Sequence[tuple[str, Sequence[Keys]]]:
    """Return the places with shortcuts of their own, each with these."""
    tr = _tr
    return (
        (
            tr("Everywhere"),
            (
                (tr("Next and previous field, list or text"), "Tab  ·  Shift+Tab"),
                (tr("Menu of what the focus is on"), "Menu  ·  Shift+F10"),
                (tr("Another tab, or another choice of a switch"), "Left  ·  Right"),
                (tr("Press a button, tick a box"), "Space"),
                (tr("Move the line between two parts"), "Left … Down  ·  Home  ·  End"),
            ),
        ),
        (
            tr("Graphs"),
            (
                (tr("Walk along the edges"), "Up  ·  Down  ·  Left  ·  Right"),
                (tr("Walk, and add to the selection"), "Shift+Up … Shift+Right"),
                (tr("Move the graph"), "Ctrl+Up … Ctrl+Right"),
                (tr("First and last node"), "Home  ·  End"),
                (tr("Select the node, or open the module"), "Return"),
                (tr("Open or close the module"), "Space  ·  +  ·  -"),
                (tr("Larger, smaller, actual size"), "+  ·  -  ·  0"),
                (tr("Fit the graph; zoom to the selection"), "F  ·  Z"),
                (tr("Find a node; the next, the previous"), "/  ·  F3  ·  Shift+F3"),
                (tr("What is known of the node"), "I"),
                (tr("Toggle breakpoint"), "B"),
                (tr("Values beside edges, overview, colours"), "L  ·  M  ·  C"),
            ),
        ),
        (
            tr("Code"),
            (
                (tr("Select what the name, or the line, belongs to"), "Return"),
                (tr("Find; the next, the previous"), "Ctrl+F  ·  F3  ·  Shift+F3"),
                (tr("Go to a line"), "Ctrl+G"),
                (tr("What the name under the caret stands for"), "F2"),
                (tr("Fold and unfold"), "Ctrl+Shift+[  ·  Ctrl+Shift+]"),
                (tr("Copy; select all"), "Ctrl+C  ·  Ctrl+A"),
                (tr("Close the bar, or the card"), "Escape"),
            ),
        ),
        (
            tr("Differences"),
            (
                (tr("Another row, page, first, last"), "Up  ·  Down  ·  PgUp  ·  PgDown"),
                (tr("Select rows; of the old side, of the new"), "Shift+Down  ·  Shift+Left"),
                (tr("Next and previous change"), "N  ·  P"),
                (tr("Unfold equal lines"), "Return  ·  Space"),
                (tr("Find; the next, the previous"), "Ctrl+F  ·  F3  ·  Shift+F3"),
            ),
        ),
        (
            tr("Timeline"),
            (
                (tr("Next and previous step"), "Right  ·  Left"),
                (tr("Ten steps on or back"), "PgDown  ·  PgUp"),
                (tr("First and last step"), "Home  ·  End"),
            ),
        ),
        (
            tr("Tables and trees"),
            (
                (tr("Another row; several rows"), "Up  ·  Down  ·  Shift+Down"),
                (tr("Open a row"), "Return"),
                (tr("Copy the rows"), "Ctrl+C"),
                (tr("Open or close a part of a tree"), "Right  ·  Left"),
                (tr("Name a variant anew; forget it"), "F2  ·  Del"),
            ),
        ),
        (
            tr("Pipeline"),
            (
                (tr("Options of the step"), "Return"),
                (tr("Switch the step off or on"), "Space"),
                (tr("Delete the step"), "Del"),
            ),
        ),
        (
            tr("Workbench"),
            (
                (tr("Moves for the loop or block, in the tree"), "S"),
                (tr("Edit the step; switch it off or on"), "Return  ·  Space"),
                (tr("Insert before the step; delete it"), "Insert  ·  Del"),
                (tr("Move the step"), "Ctrl+Up  ·  Ctrl+Down"),
            ),
        ),
        (
            tr("Values and curves"),
            (
                (tr("Another element, trial or bar"), "Up  ·  Down  ·  Left  ·  Right"),
                (tr("First and last"), "Home  ·  End"),
                (tr("Longer and shorter times; all of them"), "+  ·  -  ·  0"),
            ),
        ),
        (
            tr("Drawing an input"),
            (
                (tr("Move the pen; draw a line"), "Up … Right  ·  Shift+Up … Right"),
                (tr("A dab of the pen"), "Space"),
                (tr("Pen or eraser"), "E"),
                (tr("Clear"), "Del"),
            ),
        ),
    )


def _tr(text: str) -> str:
    return QCoreApplication.translate("pane_keys", text)
