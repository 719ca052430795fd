"""Tuning on other machines, two real servers of this one: one is lost in the middle."""

from __future__ import annotations

import json
import threading
import time

import pytest

from lowerscope.core import cli
from tests.remote_servers import Farm

WORDS = ["sample:fashion_mlp", "--lowering", "te", "--target", "native"]


def test_tuning_goes_on_where_a_server_is_lost(
    farm: Farm, capsys: pytest.CaptureFixture[str]
) -> None:
    farm.add()
    killed: list[int] = []

    def kill_who_measures() -> None:
        until = time.monotonic() + 200
        seen = 0
        while not killed and time.monotonic() < until:
            # It is seen at work for a while, so that it is lost among the candidates.
            serving = farm.serving()
            seen = seen + 1 if serving else 0
            if seen > 4:
                farm.kill(serving[0])
                killed.append(serving[0])
            time.sleep(0.1)

    threading.Thread(target=kill_who_measures, daemon=True).start()
    tune = ["tune", *WORDS, "--function", "dense", "--trials", "8", "--json", *farm.words]
    assert cli.main(tune) == 0
    (found,) = json.loads(capsys.readouterr().out)["state"]["functions"]
    assert len(killed) == 1
    assert len(farm.servers) == 1
    assert (found["trials"], found["state"]) == (8, "done")
    # What the lost server was at may be lost with it, and nothing else.
    assert found["failed"] <= 1
    assert found["best"] < found["unscheduled"]
    assert found["torch"] is None
    words = ["run", *WORDS, "--schedule", "tuned", *farm.words, "--json"]
    # What was found for the machine is there for the run on it; the other functions were not tuned.
    cli.main(words)
    said = capsys.readouterr()
    assert json.loads(said.out)["verdict"] == "match"
    assert "add: it was not tuned" in said.err
    assert "dense: it was not tuned" not in said.err
    farm.kill(next(iter(farm.servers)))
    assert cli.main([*tune, "--fresh"]) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "no server has the key" in line
