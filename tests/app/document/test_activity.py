"""The line on what is under way."""

from lowerscope.app.document.document import Activities, Activity


def test_what_ends_leaves_what_else_is_under_way() -> None:
    activities = Activities().after("run", Activity("Compiling", 0.5))
    activities = activities.after("change", Activity("Opening"))
    assert activities.shown == Activity("Opening")
    activities = activities.after("change", Activity())
    assert activities.shown == Activity("Compiling", 0.5)
    assert activities.after("run", Activity()).shown == Activity()
