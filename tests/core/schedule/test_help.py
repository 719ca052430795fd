"""The help of each primitive says what TVM does."""

from __future__ import annotations

import pytest
import tvm

from lowerscope.core.model.texts import LANGUAGES
from lowerscope.core.schedule.primitive_table import PRIMITIVES
from lowerscope.core.schedule.references import function_of
from lowerscope.core.views.workbench import help_texts, page
from tests.core.schedule.examples import EXAMPLES
from tests.core.schedule.functions import Steps
from tests.core.schedule.running import Runner
from tests.primitive_page import with_examples, written


def test_page_has_what_tvm_makes_of_each_example() -> None:
    assert page() == written()
    assert set(help_texts()) == set(PRIMITIVES)
    for code in LANGUAGES:
        assert with_examples(page(code), page()) == page(code)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_each_primitive_has_help_and_an_example(name: str) -> None:
    text = help_texts()[name]
    assert text.help.endswith(".")
    # What draws at random leaves the loops as they are; bind is refused.
    assert bool(text.after) != (PRIMITIVES[name].draws or name == "bind")


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, example in EXAMPLES.items()
        # Not every machine has what the others need; and half precision is another result.
        if example.target == "llvm" and not example.forced
    ],
)
def test_each_example_computes_what_it_did(name: str) -> None:
    example = EXAMPLES[name]
    steps = Steps(example.function)
    for earlier in example.earlier:
        steps.step(earlier.name, **earlier.arguments)
    steps.step(name, **example.arguments)
    runner = Runner(tvm.target.Target("llvm"))
    assert runner.difference(name, example.function, function_of(steps.sch)) is None
