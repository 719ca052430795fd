"""The two sides of a comparison, as pins and steps make them."""

from __future__ import annotations

import msgspec
from pytestqt.qtbot import QtBot

from lowerscope.app.document.document import Document
from lowerscope.app.document.pins import Pins
from lowerscope.core.model.module_steps import ComparedModule, Moment
from lowerscope.core.model.recipe import Recipe, Source
from tests.app.plain_values import document_of, show

RECIPE = Recipe(source=Source(spec="sample:fashion_mlp"))
TE = msgspec.structs.replace(RECIPE, lowering="te")
OTHER = Recipe(source=Source(spec="sample:resnet18"))
START = Moment(section="passes", index=0)
FIRST = Moment(section="passes", index=1)


def test_nothing_pinned_compares_all_passes(qtbot: QtBot) -> None:
    document = document_of(RECIPE)
    pins = Pins(document)
    assert pins.sides == (
        ComparedModule(recipe=RECIPE, moment=START),
        ComparedModule(recipe=RECIPE),
    )
    assert Pins(Document()).sides is None


def test_one_pin_is_compared_with_what_is_shown_and_two_stay(qtbot: QtBot) -> None:
    document = document_of(RECIPE)
    pins = Pins(document)
    pins.pin(FIRST)
    assert pins.sides == (
        ComparedModule(recipe=RECIPE, moment=FIRST),
        ComparedModule(recipe=RECIPE),
    )
    show(document, TE)
    assert pins.sides == (ComparedModule(recipe=RECIPE, moment=FIRST), ComparedModule(recipe=TE))
    with qtbot.waitSignal(pins.wanted):
        pins.compare(FIRST)
    show(document, RECIPE)
    assert pins.sides == (
        ComparedModule(recipe=RECIPE, moment=FIRST),
        ComparedModule(recipe=TE, moment=FIRST),
    )
    pins.swap()
    assert pins.sides == (
        ComparedModule(recipe=TE, moment=FIRST),
        ComparedModule(recipe=RECIPE, moment=FIRST),
    )
    pins.clear()
    assert pins.sides == (
        ComparedModule(recipe=RECIPE, moment=START),
        ComparedModule(recipe=RECIPE),
    )


def test_another_lowering_and_another_pipeline(qtbot: QtBot) -> None:
    pins = Pins(document_of(RECIPE))
    pins.compare_lowering("te")
    assert pins.sides == (ComparedModule(recipe=TE), ComparedModule(recipe=RECIPE))
    pins.compare_steps(())
    bare = msgspec.structs.replace(RECIPE, steps=())
    assert pins.sides == (ComparedModule(recipe=bare), ComparedModule(recipe=RECIPE))


def test_pins_on_another_source_are_gone(qtbot: QtBot) -> None:
    document = document_of(RECIPE)
    pins = Pins(document)
    pins.pin(FIRST)
    show(document, OTHER)
    assert pins.first is None
