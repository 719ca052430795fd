"""Tuning on another machine from the command line: a real server of this one, until it is lost."""

from __future__ import annotations

import json

import pytest

from lowerscope.core.cli import main
from tests.remote_servers import Farm

pytestmark = pytest.mark.usefixtures("shared_results")

WORDS = ["sample:fashion_mlp", "--lowering", "te", "--target", "native"]


def test_what_is_tuned_there_is_run_there(farm: Farm, capsys: pytest.CaptureFixture[str]) -> None:
    tune = ["tune", *WORDS, "--function", "dense", "--trials", "4", "--json", *farm.words]
    assert main.main(tune) == 0
    (found,) = json.loads(capsys.readouterr().out)["state"]["functions"]
    assert (found["trials"], found["failed"], found["state"]) == (4, 0, "done")
    assert found["best"] < found["unscheduled"]
    assert found["torch"] is None
    words = ["run", *WORDS, "--schedule", "tuned", *farm.words, "--json"]
    # What was found for the machine is there for the run on it; the other functions were not tuned.
    main.main(words)
    said = capsys.readouterr()
    assert json.loads(said.out)["verdict"] == "match"
    assert "add: it was not tuned" in said.err
    assert "dense: it was not tuned" not in said.err
    # So does the command on schedules; what was found there is nothing for this machine.
    schedule = ["schedule", *WORDS, "--apply", "tuned", "--function", "dense"]
    assert main.main([*schedule, *farm.words]) == 0
    assert main.main(schedule) == 2
    assert "dense: it was not tuned for this target" in capsys.readouterr().err
    farm.kill(next(iter(farm.servers)))
    assert main.main([*tune, "--fresh"]) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "no server has the key" in line
