"""What an accessibility client finds of a window that runs: printed as lines of JSON.

Run by the interpreter that has ``pyatspi``: it talks to the window through the bus alone, as a
screen reader does.
"""

import json
import sys
import time

import pyatspi  # type: ignore[import-not-found]
from gi.repository import GLib  # type: ignore[import-not-found]

MOST = 60


def application(name):
    """Return the application, as soon as it has a window."""
    for _ in range(240):
        for each in pyatspi.Registry.getDesktop(0):
            if each is not None and each.name == name and each.childCount:
                return each
        time.sleep(0.25)
    raise SystemExit(f"no application {name} on the bus")


def entries(node):
    """Yield what is said of what is shown in a node, itself first."""
    try:
        if not node.getState().contains(pyatspi.STATE_SHOWING) and node.parent is not None:
            return
        found = entry(node)
        children = [node[place] for place in range(min(node.childCount, MOST))]
    except GLib.GError:
        return  # It is gone since: the window goes on meanwhile.
    yield found
    for child in children:
        if child is not None:
            yield from entries(child)


def entry(node):
    """Return what is said of a node."""
    found = {"role": node.getRoleName(), "name": node.name, "description": node.description}
    interfaces = pyatspi.listInterfaces(node)
    if "Text" in interfaces and node.queryText().characterCount:
        text = node.queryText()
        line = text.getTextAtOffset(text.caretOffset, pyatspi.TEXT_BOUNDARY_LINE_START)
        found["line"] = line[0].rstrip("\n")
    if "Value" in interfaces:
        found["value"] = node.queryValue().currentValue
    if "Table" in interfaces:
        found["rows"] = node.queryTable().nRows
    return found


if __name__ == "__main__":
    window = application(sys.argv[1])
    wanted = sys.argv[2:]
    for _ in range(240):
        nodes = [each for frame in window for each in entries(frame)]
        said = [text for each in nodes for text in (each.get("line", ""), each["description"])]
        # A list that is being filled is said to have no rows yet.
        said += [each["name"] for each in nodes if each.get("rows")]
        if all(any(each in text for text in said) for each in wanted):
            break
        time.sleep(0.5)
    for each in nodes:
        print(json.dumps(each))
