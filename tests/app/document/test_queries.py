"""Queries of the window, with answers as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from lowerscope.app.document import queries as module
from lowerscope.app.document.queries import Queries
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import Problem
from lowerscope.core.model.queries import FunctionsQuery, TextQuery
from tests.app.plain_values import CRASHED, RECIPE, TE, Client


class Page(QWidget):
    """A view of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "matmul"
        self.shown: list[Any] = []
        self.problems: list[Problem] = []

    def query(self) -> TextQuery | None:
        return TextQuery(RECIPE, self.name) if self.name else None


@dataclass
class Setting:
    engine: Client
    worker: Client
    queries: Queries
    page: Page

    def watch(self) -> module.Watch:
        page = self.page
        return self.queries.watch(page, page.query, page.shown.append, page.problems.append)


@pytest.fixture
def setting(qtbot: QtBot) -> Setting:
    engine, worker, page = Client("engine"), Client("worker"), Page()
    qtbot.addWidget(page)
    page.show()
    queries = Queries(engine, worker, page)  # type: ignore[arg-type]
    queries.show(RECIPE, "1")
    return Setting(engine, worker, queries, page)


def test_an_answer_is_shown_and_cached(setting: Setting) -> None:
    watch = setting.watch()
    watch.update()
    watch.update()
    (sent,) = setting.engine.sent
    assert sent.query == TextQuery(RECIPE, "matmul")
    assert not watch.is_current
    sent.answer("text of matmul")
    assert setting.page.shown == ["text of matmul"]
    assert watch.is_current
    setting.page.name = "add"
    watch.update()
    setting.engine.sent[-1].answer("text of add")
    setting.page.name = "matmul"
    watch.update()
    assert setting.page.shown == ["text of matmul", "text of add", "text of matmul"]
    assert len(setting.engine.sent) == 2


def test_another_query_supersedes_the_one_before(setting: Setting) -> None:
    watch = setting.watch()
    watch.update()
    setting.page.name = "add"
    watch.update()
    assert [each.fate for each in setting.engine.sent] == ["dropped", ""]
    setting.page.name = ""
    watch.update()
    assert setting.engine.sent[-1].fate == "dropped"


def test_a_query_sent_ahead_is_not_sent_again(setting: Setting) -> None:
    watch, sent = setting.watch(), setting.engine.sent
    queries, page, came = setting.queries, setting.page, list[str]()
    queries.ask_ahead(TextQuery(RECIPE, "matmul"), came.append)
    watch.update()
    assert [each.query for each in sent] == [TextQuery(RECIPE, "matmul")]
    sent[0].answer("text of matmul")
    assert page.shown == ["text of matmul"]
    queries.ask_ahead(TextQuery(RECIPE, "matmul"), came.append)  # its answer is cached
    queries.ask_ahead(TextQuery(RECIPE, "add"), came.append)
    sent[1].answer("text of add")
    page.name = "add"
    watch.update()
    assert page.shown[1:] == ["text of add"]
    queries.ask_ahead(TextQuery(RECIPE, "relu"), came.append)
    page.name = "dense"
    watch.update()
    assert [each.query for each in sent[2:]] == [TextQuery(RECIPE, "relu"), watch.pending]
    assert sent[2].fate == "dropped"
    assert came == ["text of add"]


def test_a_hidden_view_sends_nothing(setting: Setting) -> None:
    watch = setting.watch()
    watch.update()
    setting.page.hide()
    assert setting.engine.sent[0].fate == "dropped"
    watch.update()
    assert len(setting.engine.sent) == 1
    setting.page.show()
    assert len(setting.engine.sent) == 2
    setting.engine.sent[1].answer("text")
    setting.page.hide()
    setting.page.name = ""
    watch.update()
    assert watch.shown is None


def test_a_query_is_sent_once_more_after_a_crash(setting: Setting) -> None:
    watch = setting.watch()
    watch.update()
    setting.engine.sent[0].refuse(CRASHED)
    assert setting.page.problems == [CRASHED]
    watch.update()
    assert len(setting.engine.sent) == 1
    setting.queries.retry()
    assert len(setting.engine.sent) == 2
    setting.engine.sent[1].refuse(CRASHED)
    setting.queries.retry()
    assert len(setting.engine.sent) == 2
    watch.refresh()
    assert len(setting.engine.sent) == 3


def test_a_query_that_was_answered_is_sent_once_more_after_the_next_crash(setting: Setting) -> None:
    watch = setting.watch()
    watch.update()
    setting.engine.sent[0].refuse(CRASHED)
    setting.queries.retry()
    setting.engine.sent[1].answer("text")
    setting.queries.clear()
    watch.update()
    setting.engine.sent[2].refuse(CRASHED)
    setting.queries.retry()
    assert len(setting.engine.sent) == 4


def test_a_query_under_way_is_not_sent_again_when_the_other_child_crashed(setting: Setting) -> None:
    watch = setting.watch()
    watch.update()
    setting.queries.retry()
    (sent,) = setting.engine.sent
    assert not sent.fate


def test_an_answer_is_shown_again_after_another_one_was_awaited(setting: Setting) -> None:
    watch = setting.watch()
    watch.update()
    setting.engine.sent[0].answer("text of matmul")
    setting.page.name = "add"
    watch.update()
    setting.page.name = "matmul"
    watch.update()
    assert setting.engine.sent[1].fate == "dropped"
    # It may have been replaced by words on what was awaited.
    assert setting.page.shown == ["text of matmul"] * 2


def test_answers_are_outdated_once_the_files_have_been_read_again(setting: Setting) -> None:
    watch = setting.watch()
    watch.update()
    setting.engine.sent[0].answer("before")
    setting.queries.note_reload()
    # The file may have an error; what was open stays.
    assert watch.is_current
    setting.queries.show(RECIPE, "1")
    assert not watch.is_current
    watch.update()
    assert len(setting.engine.sent) == 2


def test_a_cached_answer_counts_for_its_files_alone(setting: Setting) -> None:
    watch = setting.watch()
    watch.update()
    setting.engine.sent[0].answer("before")
    setting.queries.show(TE, "2")
    assert watch.is_current
    setting.queries.show(RECIPE, "1")
    assert watch.is_current
    setting.queries.show(RECIPE, "3")
    assert not watch.is_current
    watch.update()
    setting.queries.clear()
    setting.engine.sent[1].answer("of files that have changed by now")
    assert not watch.is_current
    watch.update()
    assert len(setting.engine.sent) == 3


def test_the_least_recently_used_answers_make_room(setting: Setting) -> None:
    setting.engine.received_bytes = module.CACHE_BYTES // 2
    watch = setting.watch()
    for name in ("a", "b", "a", "c", "a", "b"):
        setting.page.name = name
        watch.update()
        if setting.engine.sent[-1].query == setting.page.query():
            setting.engine.sent[-1].answer(name)
    assert setting.page.shown == ["a", "b", "a", "c", "a", "b"]
    assert [each.query.name for each in setting.engine.sent] == ["a", "b", "c", "b"]  # type: ignore[attr-defined]


def test_the_worker_is_killed_for_a_recipe_that_is_not_shown(setting: Setting) -> None:
    built = Moment(section="build", index=1)
    page = setting.page
    watch = setting.queries.watch(
        page, lambda: FunctionsQuery(RECIPE, built), page.shown.append, page.problems.append
    )
    watch.update()
    assert setting.engine.sent == []
    setting.queries.show(TE, "2")
    assert setting.worker.sent[0].fate == f"killed after {module.SUPERSEDED_MS}"
    watch.update()
    watch.cancel()
    assert setting.worker.sent[1].fate == "cancelled"
