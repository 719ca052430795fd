"""A window beside one that opens its session afresh: both have to show the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lowerscope.app.shell.window import MainWindow
from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.sessions import load_session, save_session
from lowerscope.core.model.queries import TextQuery
from lowerscope.core.model.recipe import Recipe
from lowerscope.core.model.snapshot import Snapshot, TextRecord
from tests.end_to_end.driving import wait_until
from tests.soak.killing import PATIENCE


def check_session(window: MainWindow, path: Path, story: Callable[[], str]) -> Recipe | None:
    """Look that what is saved is what is open; return it, saved at `path` as well."""
    document = window.document
    recipe = document.recipe
    if recipe is None:
        return None
    window.sessions.save_now()
    place = window.sessions._place
    assert place is not None
    if not window.sessions.read_only:
        saved = load_session(place.path, Hashes())
        assert without_trust(saved.recipe) == without_trust(recipe), story()
        save_session(path, recipe, saved.layout, {}, Hashes())
    return recipe


def compare(window: MainWindow, fresh: MainWindow, path: Path, story: Callable[[], str]) -> None:
    """Open the session in another window, and look that it shows the same."""
    document, other = window.document, fresh.document
    fresh.open_session(str(path))
    recipe = document.recipe
    assert recipe is not None
    ended = wait_until(
        lambda: (
            not other.changing
            and not other.activity.text
            and (bool(other.problems) or other.recipe == without_trust(recipe))
        ),
        PATIENCE,
    )
    assert ended, (other.recipe, other.problems, story())
    assert not other.problems, (other.problems[0].line(), story())
    assert document.snapshot is not None
    assert other.snapshot is not None
    mine, theirs = comparable(document.snapshot), comparable(other.snapshot)
    different = [name for name in mine if mine[name] != theirs[name]]
    assert not different, (different, story())
    for each in document.snapshot.functions[:8]:
        if each.kind == "tensorir":
            texts = [text_of(shown, each.name) for shown in (window, fresh)]
            assert texts[0] == texts[1], (each.name, story())
    _compare_shown(window, fresh, story)
    record = document.run_record
    if record is not None:
        fresh.features.runs.run()
        assert wait_until(lambda: not other.running, PATIENCE), story()
        assert other.run_record is not None, (other.problems, story())
        found = other.run_record
        assert found.verdict == record.verdict, story()
        assert found.max_abs_error == pytest.approx(record.max_abs_error), story()


def _compare_shown(window: MainWindow, fresh: MainWindow, story: Callable[[], str]) -> None:
    """Look at what the panes show beside what the other window knows."""
    document, panes = window.document, window.panes
    assert document.snapshot is not None
    assert fresh.document.snapshot is not None
    window.features.stepping.set_section("passes")
    window.features.stepping.leave()
    shown = panes.relax.script.plain.record
    assert shown is not None
    assert shown.text == fresh.document.snapshot.relax.text, story()
    functions = [each for each in document.snapshot.functions if each.kind == "tensorir"]
    if not functions:
        return
    window.show_panes()
    panes.bring("tensorir")
    panes.tensorir.set_current("script")
    document.select((functions[0].id,))
    page = panes.tensorir.texts["script"]
    assert wait_until(lambda: page.is_current and page.script.record, PATIENCE), story()
    assert page.script.record is not None
    assert page.script.record.text == text_of(fresh, functions[0].name), story()


def without_trust(recipe: Recipe) -> Recipe:
    """Return a recipe as a session opens it, which nobody trusts before asking."""
    source = msgspec.structs.replace(recipe.source, trust=False)
    return msgspec.structs.replace(recipe, source=source)


def comparable(snapshot: Snapshot) -> dict[str, object]:
    """Return the fields of a snapshot that are the same whenever it is derived."""
    fields = {name: getattr(snapshot, name) for name in snapshot.__struct_fields__}
    del fields["milliseconds"]
    fields["passes"] = tuple(
        msgspec.structs.replace(each, milliseconds=0.0) for each in snapshot.passes
    )
    return fields


def text_of(window: MainWindow, name: str) -> str:
    """Return the script of a function as a window's engine prints it."""
    found: list[object] = []
    query = TextQuery(window.document.recipe, name)
    window.features.queries.ask(query, found.append, found.append)
    assert wait_until(lambda: found, PATIENCE)
    (text,) = found
    assert isinstance(text, TextRecord), text
    return text.text
