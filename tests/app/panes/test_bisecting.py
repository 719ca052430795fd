"""The search for the wrong step in the window, with plain values as answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.app.panes.run.bisecting import WrongStep
from lowerscope.core.model.explanation_records import BisectRecord, WrittenFile
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import BisectQuery
from tests.app.panes.test_run_model import TIMED
from tests.app.panes.test_run_pages import DIFFERS, shown
from tests.app.plain_values import CANCELLED, RECIPE, TE, Bench

FOUND = BisectRecord(
    outcome="found",
    text="The module matches torch before step 4 (FuseOps), and differs after it.",
    stage="pass",
    name="FuseOps",
    moment=Moment(section="passes", index=4),
    files=(WrittenFile(name="reproduce.py", content=b"print()\n"),),
)


def test_the_wrong_step_is_found_shown_and_saved(
    bench: Bench, qtbot: QtBot, tmp_path: Path
) -> None:
    bench.open(RECIPE)
    bisecting = bench.features.bisecting
    section = WrongStep(bench.document, bisecting)
    shown(qtbot, section)
    bench.run(TIMED)
    assert not section.isVisible()
    bench.run(DIFFERS)
    section.search.click()
    sent = bench.sent(BisectQuery)
    sent.progress("Build 2: the module after step 4 (FuseOps)")
    assert section.progress.text() == "Build 2: the module after step 4 (FuseOps)"
    section.stop.click()
    sent.refuse(CANCELLED)
    assert not bisecting.running
    section.search.click()
    bench.sent(BisectQuery).answer(FOUND)
    assert section.answer.text() == FOUND.text
    with qtbot.waitSignal(section.step_wanted) as wanted:
        section.show_step.click()
    assert wanted.args == [FOUND]
    bisecting.save(tmp_path)
    assert (tmp_path / "reproduce.py").read_text() == "print()\n"
    bisecting.save(tmp_path)  # It is there already.
    (tmp_path / "reproduce.py").write_text("another")
    with pytest.raises(LowerscopeError):
        bisecting.save(tmp_path)
    # Of another recipe, nothing is known.
    bench.open(TE)
    assert bisecting.record is None
    assert not section.isVisible()
