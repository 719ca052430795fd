"""Every fault in every sample in both lowerings; ``LOWERSCOPE_SOAK=1`` runs it."""

from __future__ import annotations

import json
import os
from itertools import product
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from lowerscope.core.cli.main import main, recipe_of_command
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.stages import Pipeline
from tests.end_to_end.conftest import _look, children, lasting, open_window
from tests.end_to_end.driving import OpenWindow, wait_for_records, wait_until
from tests.soak.seeding import FAULTS, FEW, LOWERINGS, SAMPLES_OF_TORCH

__all__ = ["_look", "children", "lasting", "open_window"]

pytestmark = pytest.mark.skipif("LOWERSCOPE_SOAK" not in os.environ, reason="takes minutes")

PATIENCE = 600_000
"""Milliseconds for a run: ResNet-18 as it is takes some each time that it is run."""

CASES = [*product(SAMPLES_OF_TORCH, FAULTS, LOWERINGS)]


@pytest.mark.parametrize(("name", "fault", "lowering"), CASES)
def test_the_command_line_names_the_node_where_a_fault_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, fault: str, lowering: str
) -> None:
    options, node = FAULTS[fault](name, tmp_path, lowering)
    assert main(("run", *options, "--json", *FEW)) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "differ"
    assert found["first_difference"] == f"fx:{node}"


@pytest.mark.parametrize(("name", "fault", "lowering"), CASES)
def test_the_window_names_the_node_where_a_fault_starts(
    qtbot: QtBot,
    open_window: OpenWindow,
    tmp_path: Path,
    name: str,
    fault: str,
    lowering: str,
) -> None:
    options, node = FAULTS[fault](name, tmp_path, lowering)
    window = open_window()
    document = window.document
    document.open(recipe_of_command(("run", *options, *FEW)))
    wait_for_records(qtbot, window)
    window.commands.action("run").trigger()
    assert wait_until(lambda: document.run_record is not None, PATIENCE)
    line = window.panes.summary.first_difference.node
    assert line.text() == node
    line.click()
    assert document.selection.chosen == (f"fx:{node}",)


def test_the_first_batch_norm_of_many_that_a_stock_importer_trains_is_named() -> None:
    small = ("--input", "x=1,3,64,64:float32")
    recipe = recipe_of_command(("run", "sample:resnet18", *small, *FEW, "--importer", "tvm-fx"))
    assert Pipeline().answer(RunQuery(recipe)).first_difference == "fx:bn1"
