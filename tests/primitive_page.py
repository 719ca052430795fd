"""Write the examples of ``resources/help/primitives.md``: ``python -m tests.primitive_page``.

With names of primitives, those alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import tvm

from lowerscope.core.model.schedule import Primitive
from lowerscope.core.schedule.applying import call_text, name_of
from lowerscope.core.schedule.references import resolve
from lowerscope.core.views.workbench import PAGE, page
from tests.core.schedule.examples import EXAMPLES, Example
from tests.core.schedule.functions import Steps, function_text

_HEADING = re.compile(r"^### (\w+)\n", re.MULTILINE)
_SHOWN = re.compile(r"```tvmscript\n.*?```|`sch\.[^`]*`", re.DOTALL)
_EXAMPLE = re.compile(r"\nBefore:\n.*", re.DOTALL)


def written(names: Collection[str] = ()) -> str:
    """Return the page with the examples as TVM makes them: of some primitives, or of all."""
    return "".join(_sections(page(), names))


def _sections(text: str, names: Collection[str]) -> Iterator[str]:
    starts = [found.start() for found in _HEADING.finditer(text)]
    yield text[: starts[0]]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        section = text[start:end]
        heading = _HEADING.match(section)
        assert heading is not None
        if names and heading[1] not in names:
            yield section
            continue
        # A heading of the next group stands after the last section of a group.
        body, mark, group = section.partition("\n## ")
        body = _EXAMPLE.sub("\n", body).rstrip("\n") + "\n"
        example = EXAMPLES.get(heading[1])
        shown = "" if example is None else _shown(heading[1], example)
        yield body + shown + ("\n## " + group if mark else "" if end == len(text) else "\n")


def with_examples(translated: str, english: str) -> str:
    """Return a translated page with the examples of the English one."""
    examples = dict(_by_name(english))
    for name, section in _by_name(translated):
        shown = iter(_SHOWN.findall(examples[name]))
        translated = translated.replace(
            section, _SHOWN.sub(lambda _old, new=shown: next(new), section)
        )
    return translated


def _by_name(text: str) -> Iterator[tuple[str, str]]:
    found = list(_HEADING.finditer(text))
    ends = (*(each.start() for each in found[1:]), len(text))
    for heading, end in zip(found, ends, strict=True):
        yield heading[1], text[heading.start() : end]


def _shown(name: str, example: Example) -> str:
    steps = Steps(example.function, tvm.target.Target(example.target))
    for earlier in example.earlier:
        steps.step(earlier.name, **earlier.arguments)
    before = function_text(steps.sch)
    primitive = Primitive(id="", name=name, arguments=dict(example.arguments))
    looking = steps.sch.copy()
    call = call_text(
        primitive,
        lambda reference: name_of(looking, resolve(looking, reference, steps.outputs)),
        (),
    )
    steps.step(name, forced=example.forced, **example.arguments)
    return (
        f"\nBefore:\n\n```tvmscript\n{before}\n```\n\n"
        f"After `{call}`:\n\n```tvmscript\n{function_text(steps.sch)}\n```\n"
    )


def main() -> None:
    """Write the page, and the examples of its translations."""
    folder = Path(__file__).parents[1] / "resources" / "help"
    english = written(sys.argv[1:])
    (folder / PAGE).write_text(english, encoding="utf-8")
    for each in folder.glob(f"*_*/{PAGE}"):
        each.write_text(with_examples(each.read_text("utf-8"), english), encoding="utf-8")


if __name__ == "__main__":
    main()
