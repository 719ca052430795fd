"""The two sides of a comparison, as pins and steps make them."""

from __future__ import annotations

import msgspec
from pytestqt.qtbot import QtBot

from lowerscope.app.pins import Pins
from lowerscope.app.stepping import Stepping
from lowerscope.core.recipe import Recipe, Source
from lowerscope.core.records.difference import Side
from lowerscope.core.records.steps import Moment

RECIPE = Recipe(source=Source(spec="sample:fashion_mlp"))
TE = msgspec.structs.replace(RECIPE, lowering="te")
OTHER = Recipe(source=Source(spec="sample:resnet18"))
START = Moment(clock="passes", index=0)
FIRST = Moment(clock="passes", index=1)


class Shown:
    """A recipe that is shown."""

    def __init__(self) -> None:
        self.recipe: Recipe | None = RECIPE

    def __call__(self) -> Recipe | None:
        """Return it."""
        return self.recipe


def test_nothing_pinned_compares_all_passes(qtbot: QtBot) -> None:
    shown = Shown()
    pins = Pins(shown, Stepping())
    assert pins.sides == (Side(recipe=RECIPE, moment=START), Side(recipe=RECIPE))
    shown.recipe = None
    assert pins.sides is None


def test_one_pin_is_compared_with_what_is_shown_and_two_stay(qtbot: QtBot) -> None:
    shown = Shown()
    pins = Pins(shown, Stepping())
    pins.pin(FIRST)
    assert pins.sides == (Side(recipe=RECIPE, moment=FIRST), Side(recipe=RECIPE))
    shown.recipe = TE
    pins.take()
    assert pins.sides == (Side(recipe=RECIPE, moment=FIRST), Side(recipe=TE))
    with qtbot.waitSignal(pins.wanted):
        pins.compare(FIRST)
    shown.recipe = RECIPE
    pins.take()
    assert pins.sides == (Side(recipe=RECIPE, moment=FIRST), Side(recipe=TE, moment=FIRST))
    pins.swap()
    assert pins.sides == (Side(recipe=TE, moment=FIRST), Side(recipe=RECIPE, moment=FIRST))
    pins.clear()
    assert pins.sides == (Side(recipe=RECIPE, moment=START), Side(recipe=RECIPE))


def test_another_lowering_and_another_pipeline(qtbot: QtBot) -> None:
    pins = Pins(Shown(), Stepping())
    pins.compare_lowering("te")
    assert pins.sides == (Side(recipe=TE), Side(recipe=RECIPE))
    pins.compare_steps(())
    bare = msgspec.structs.replace(RECIPE, steps=())
    assert pins.sides == (Side(recipe=bare), Side(recipe=RECIPE))


def test_pins_on_another_source_are_gone(qtbot: QtBot) -> None:
    shown = Shown()
    pins = Pins(shown, Stepping())
    pins.pin(FIRST)
    shown.recipe = OTHER
    pins.take()
    assert pins.first is None
