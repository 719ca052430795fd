"""The page Tokens: a generation, its fault, and the entry that it opens."""

from __future__ import annotations

import msgspec
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.run.run_view import RunView
from lowerscope.app.panes.run.tokens_page import TokensPage
from lowerscope.core.model.generation_records import (
    CacheTensor,
    GenerationRecord,
    TokenFault,
    TokenRun,
)
from lowerscope.core.model.queries import GenerationQuery, SnapshotQuery
from lowerscope.core.model.recipe import Dimension
from tests.app.plain_values import CANCELLED, OTHER, RECIPE, Bench, snapshot

STEP = msgspec.structs.replace(
    RECIPE,
    source=msgspec.structs.replace(RECIPE.source, decode=True),
    dimensions=(Dimension(name="length"),),
)


def token(index: int, *, wrong: bool = False) -> TokenRun:
    return TokenRun(
        entry="decode" if index else "prefill",
        token=(7 + wrong,),
        torch_token=(7,),
        verdict="differ" if wrong else "match",
        max_abs_error=0.5 if wrong else 0.0,
        tvm_ms=1.0,
        torch_ms=2.0,
        cache_bytes=64 * (index + 5),
    )


RECORD = GenerationRecord(
    verdict="differ",
    tokens=(token(0), token(1), token(2, wrong=True)),
    fault=TokenFault(token=2, entry="decode", node="fx:relu", layer="layers.1", where="net.py:3"),
    cache=(CacheTensor(name="cache.0.keys", shape=(1, 7, 16), dtype="float32", bytes=448),),
    build_ms=1.0,
    prefill=RECIPE,
    decode=STEP,
)


def derive(bench: Bench, *, generates: bool = True) -> None:
    records = snapshot("dense", "relu")
    model = msgspec.structs.replace(records.model, generates=generates)
    bench.sent(SnapshotQuery).answer(msgspec.structs.replace(records, model=model, key="1"))


def test_a_generation_is_shown_with_its_fault_and_opens_its_step(
    bench: Bench, qtbot: QtBot
) -> None:
    page = TokensPage(bench.document, bench.features.generations)
    qtbot.addWidget(page)
    page.resize(1200, 500)
    page.show()
    bench.document.open(RECIPE)
    derive(bench)
    page.count.setValue(3)
    page.run.click()
    sent = bench.sent(GenerationQuery)
    assert sent.query == GenerationQuery(recipe=RECIPE, tokens=3)
    assert page.run.text() == "Stop"
    sent.answer(RECORD)
    rows = page.table.rows()
    assert [row.cells[1].text for row in rows] == ["prefill", "decode", "decode"]
    assert [row.cells[8].text for row in rows] == ["320", "384", "448"]
    assert (rows[2].cells[2].text, rows[2].cells[3].text) == ("8", "7")
    assert page.cache.rows()[0].cells[2].text == "448"
    text = page.state.whole()
    assert text.startswith("First difference: token 3 (decode), node relu (layers.1, net.py:3)")
    assert (page.chart.marked(), page.table.selected_keys()) == ("2", ["2"])
    page.entry.click()
    derive(bench)
    assert bench.document.recipe == STEP
    # The outcome is of both entries.
    assert len(page.table.rows()) == 3
    assert page.entry.text() == "Open prefill"


def test_a_cancelled_generation_leaves_the_last_one(bench: Bench) -> None:
    generations = bench.features.generations
    bench.document.open(RECIPE)
    derive(bench)
    generations.run()
    bench.sent(GenerationQuery).answer(RECORD)
    generations.run()
    running = bench.sent(GenerationQuery)
    generations.cancel()
    running.refuse(CANCELLED)
    assert (generations.running, generations.problem) == (False, None)
    assert generations.record == RECORD


def test_the_tab_is_there_for_a_file_that_generates(bench: Bench, qtbot: QtBot) -> None:
    features = bench.features
    view = RunView(bench.document, features.runs, features.faults, features.bisecting)
    qtbot.addWidget(view)
    view.add_page("compare", "Compare", TokensPage(bench.document, features.generations))
    view.add_page("tokens", "Tokens", TokensPage(bench.document, features.generations))
    view.add_page("tune", "Tune", TokensPage(bench.document, features.generations))
    view.resize(1200, 400)
    view.show()
    bench.document.open(RECIPE)
    derive(bench)
    tabs = view.header.tabs
    qtbot.waitUntil(tabs.tab("tokens").isVisible)
    view.set_current("tokens")
    bench.document.open(OTHER)
    derive(bench, generates=False)
    assert not tabs.tab("tokens").isVisible()
    assert tabs.hidden_tabs() == []
    assert view.current() == "compare"
