"""Panes moved, put together and given room without a mouse, wherever they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from PySide6.QtCore import QByteArray, QObject, QPoint, QSize, Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTabBar

from lowerscope.app import arrangement
from lowerscope.app.arrangement import Node, Rect, Tabs, Way

STEP = 40
"""Pixels that a pane gets more or less at a time, or that one that floats is moved."""

_SHARES = {"left": 0.25, "right": 0.25, "up": 0.4, "down": 0.4}
"""Of the window, what the first pane gets in an area that was empty."""

_AREAS = {
    "left": Qt.DockWidgetArea.LeftDockWidgetArea,
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "up": Qt.DockWidgetArea.TopDockWidgetArea,
    "down": Qt.DockWidgetArea.BottomDockWidgetArea,
}

_BY: Mapping[Way, QPoint] = {
    "left": QPoint(-STEP, 0),
    "right": QPoint(STEP, 0),
    "up": QPoint(0, -STEP),
    "down": QPoint(0, STEP),
}


class Docking:
    """What can be done with the place of a pane.

    Parameters
    ----------
    window
        What the docks are in.
    docks
        By the names of the panes.
    rows
        Names of panes that stand side by side by default: one that is closed is kept beside those.
    """

    def __init__(
        self, window: QMainWindow, docks: Mapping[str, QDockWidget], rows: Sequence[Sequence[str]]
    ) -> None:
        self._window = window
        self._docks = docks
        self._rows = rows
        self._before = QByteArray()

    def set_corners(self) -> None:
        """Give a pane at the left or right edge of the window all of that edge."""
        left, right = _AREAS["left"], _AREAS["right"]
        self._window.setCorner(Qt.Corner.TopLeftCorner, left)
        self._window.setCorner(Qt.Corner.BottomLeftCorner, left)
        self._window.setCorner(Qt.Corner.TopRightCorner, right)
        self._window.setCorner(Qt.Corner.BottomRightCorner, right)

    # Where panes are

    def is_in_front(self, name: str) -> bool:
        """Return whether a pane is in view, and not behind another one's tab."""
        dock = self._docks[name]
        # Qt leaves what is behind a tab visible, out of the window.
        return dock.isVisible() and (dock.isFloating() or dock.geometry().right() >= 0)

    def mates(self, name: str) -> tuple[str, ...]:
        """Return the names of the panes that share the place of one, itself among them."""
        dock = self._docks[name]
        beside = [dock, *self._window.tabifiedDockWidgets(dock)]
        return tuple(name for name, each in self._docks.items() if each in beside)

    def docked(self) -> tuple[str, ...]:
        """Return the names of the panes that stand in the window, but for those behind a tab."""
        return tuple(
            name
            for name, dock in self._docks.items()
            if not dock.isFloating() and self.is_in_front(name)
        )

    def _places(self) -> dict[str, Rect]:
        found = {name: self._docks[name].geometry() for name in self.docked()}
        return {name: (at.x(), at.y(), at.width(), at.height()) for name, at in found.items()}

    def _area_of(self, name: str) -> Way:
        area = self._window.dockWidgetArea(self._docks[name])
        return next(way for way in _WAYS if _AREAS[way] == area)

    def _tree(self, area: Way) -> Node | None:
        places = {
            self.mates(name): place
            for name, place in self._places().items()
            if self._area_of(name) == area
        }
        return arrangement.tree_of(places)

    def stand_in_rows(self, rows: Mapping[Way, Sequence[str]]) -> bool:
        """Return whether the panes of each area stand in one row, those in view that it names."""
        places = self._places()
        for area, names in rows.items():
            there = [name for name in places if name in names]
            tops = {places[name][1] for name in there}
            if len(tops) > 1 or any(self._area_of(name) != area for name in there):
                return False
        return True

    # Moving

    def move(self, name: str, way: Way) -> bool:
        """Move a pane past its neighbour, into the next area, or to the edge of the window.

        Returns
        -------
        bool
            False where it is at the edge already.
        """
        dock = self._docks[name]
        if dock.isFloating():
            dock.move(dock.pos() + _BY[way])
            return True
        own = self._area_of(name)
        mates = [each for each in self.mates(name) if each != name]
        mate = mates[0] if mates else arrangement.neighbour(self._places(), name, way)
        if mate is None:
            return self._move_to_edge(name, own, way)
        area = self._area_of(mate)
        tree = self._tree(area)
        across = way in ("left", "right")
        share = arrangement.siblings_share(tree, name, mate, across)
        # One step at a time: past what is in the same area, else to the near side of it.
        side = way if mates or area == own else _OPPOSITE[way]
        rest = arrangement.without(tree, name)
        assert rest is not None
        self._show(area, arrangement.beside(rest, mate, name, side, share))
        return True

    def _move_to_edge(self, name: str, own: Way, way: Way) -> bool:
        tree = self._tree(way)
        if own == way and arrangement.is_at_edge(tree, name, way):
            return False
        rest = arrangement.without(tree, name)
        self._show(way, arrangement.at_edge(rest, name, way))
        return True

    def join(self, name: str, mate: str) -> None:
        """Put a pane where another one is, as a tab beside its."""
        dock = self._docks[name]
        dock.setFloating(False)
        self._window.tabifyDockWidget(self._docks[mate], dock)
        dock.show()
        dock.raise_()

    def _show(self, area: Way, tree: Node) -> None:
        """Have the panes of an area stand as a tree says, and have the room that it gives them."""
        places = self._places()
        there = [name for name in places if self._area_of(name) == area]
        room = _extent([places[name] for name in there])
        window = self._window.size()
        if not there and area in ("left", "right"):
            room = (round(window.width() * _SHARES[area]), window.height())
        elif not there:
            room = (window.width(), round(window.height() * _SHARES[area]))
        wanted = arrangement.sizes(tree, room)
        fronts = [name for name in self._docks if self.is_in_front(name)]
        whole = self._with_hidden(tree, area)
        first = next(arrangement.leaves(whole)).names[0]
        self._window.addDockWidget(_AREAS[area], self._docks[first])
        self._build(whole)
        for tabs in arrangement.leaves(whole):
            for before, after in pairwise(tabs.names):
                self._window.tabifyDockWidget(self._docks[before], self._docks[after])
        for name in fronts:
            if len(self.mates(name)) > 1:
                self._docks[name].raise_()
        self._resize({name: size for name, size in wanted.items() if name in fronts})

    def _build(self, node: Node) -> None:
        """Split the place of the first pane of a tree among all of them."""
        if isinstance(node, Tabs):
            return
        firsts = [self._docks[next(arrangement.leaves(part)).names[0]] for part in node.parts]
        orientation = Qt.Orientation.Horizontal if node.across else Qt.Orientation.Vertical
        for before, after in pairwise(firsts):
            self._window.splitDockWidget(before, after, orientation)
        for part in node.parts:
            self._build(part)

    def _with_hidden(self, tree: Node, area: Way) -> Node:
        """Return a tree with the panes of an area that are closed, each beside its usual mate."""
        for row in self._rows:
            for place, name in enumerate(row):
                dock = self._docks[name]
                if dock.isFloating() or not dock.isHidden() or self._area_of(name) != area:
                    continue
                known = {each for tabs in arrangement.leaves(tree) for each in tabs.names}
                before = [each for each in row[:place] if each in known]
                after = [each for each in row[place + 1 :] if each in known]
                if before:
                    tree = arrangement.beside(tree, before[-1], name, "right")
                elif after:
                    tree = arrangement.beside(tree, after[0], name, "left")
                else:
                    tree = arrangement.at_edge(tree, name, "right")
        return tree

    def _resize(self, wanted: Mapping[str, arrangement.Size]) -> None:
        docks = [self._docks[name] for name in wanted]
        widths = [size[0] for size in wanted.values()]
        heights = [size[1] for size in wanted.values()]
        self._window.resizeDocks(docks, widths, Qt.Orientation.Horizontal)
        self._window.resizeDocks(docks, heights, Qt.Orientation.Vertical)

    # Room

    def grow(self, name: str, across: bool, by: int) -> None:
        """Give a pane more width or height, or less; its neighbour has the rest."""
        dock = self._docks[name]
        if dock.isFloating():
            dock.resize(dock.size() + (QSize(by, 0) if across else QSize(0, by)))
            return
        places = self._places()
        ways: tuple[Way, Way] = ("right", "left") if across else ("down", "up")
        found = (arrangement.neighbour(places, name, way) for way in ways)
        mate = next((each for each in found if each is not None), None)
        if mate is None:
            return
        axis = 2 if across else 3
        orientation = Qt.Orientation.Horizontal if across else Qt.Orientation.Vertical
        by = max(by, STEP - places[name][axis])
        own, other = places[name][axis] + by, max(1, places[mate][axis] - by)
        self._window.resizeDocks([dock, self._docks[mate]], [own, other], orientation)

    @property
    def is_maximised(self) -> bool:
        """Whether one pane has the room of all of them."""
        return not self._before.isEmpty()

    def maximise(self, name: str) -> None:
        """Give a pane the room of all that are docked; `take_back` undoes it."""
        self._before = self._window.saveState()
        for other, dock in self._docks.items():
            if other != name and not dock.isFloating():
                dock.hide()

    def take_back(self) -> None:
        """Put all panes back to where they were before one was given all the room."""
        before, self._before = self._before, QByteArray()
        if not before.isEmpty():
            self._window.restoreState(before)

    def forget(self) -> None:
        """Forget where panes were before: they are about to be put elsewhere."""
        self._before = QByteArray()

    def state(self) -> QByteArray:
        """Return the arrangement to keep: the one that a maximised pane would go back to."""
        return self._before if self.is_maximised else self._window.saveState()


_WAYS: Sequence[Way] = ("left", "right", "up", "down")
_OPPOSITE: Mapping[Way, Way] = {"left": "right", "right": "left", "up": "down", "down": "up"}


def name_tabs(part: QObject) -> None:
    """Tell a screen reader what tabs are, if it is those that Qt has made for panes."""
    if isinstance(part, QTabBar):
        part.setAccessibleName(part.tr("Panes in this place"))


def _extent(places: Sequence[Rect]) -> arrangement.Size:
    if not places:
        return 0, 0
    left, top = min(place[0] for place in places), min(place[1] for place in places)
    right = max(place[0] + place[2] for place in places)
    bottom = max(place[1] + place[3] for place in places)
    return right - left, bottom - top
