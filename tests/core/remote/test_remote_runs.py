"""Runs and tuning on another machine, which is this one: a real tracker and servers of TVM's."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from lowerscope.core.cli import main
from lowerscope.core.model.machines import Remote, remote_of
from lowerscope.core.model.problems import Cancelled, LowerscopeError
from lowerscope.core.model.progress import Silent
from lowerscope.core.model.queries import AgreementQuery, RunQuery
from lowerscope.core.model.recipe import Recipe, Source, Step, from_json, to_json
from lowerscope.core.model.schedule import APPLY_RULES
from lowerscope.core.remote.running import measure_remotely, remote_state
from lowerscope.core.stages import Pipeline
from tests.problems import problem_of
from tests.remote_servers import KEY, Farm, farm_in, free_port, relay

MLP = Recipe(source=Source(spec="sample:fashion_mlp"))

SLOW = """
import torch
class Slow(torch.nn.Module):
    def forward(self, x):
        for _ in range(4):
            x = x @ x * 1e-3
        return x
example_inputs = (torch.ones(700, 700),)
"""


class Stopping(Silent):
    """Progress of something that is stopped a little after it has said a word."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._until: float | None = None

    def report(self, text: str, fraction: float | None = None) -> None:
        if self._word in text:
            self._until = time.monotonic() + 0.3

    def check(self) -> None:
        if self._until is not None and time.monotonic() > self._until:
            raise Cancelled


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """Return a tracker with one server."""
    yield from farm_in(tmp_path_factory.mktemp("farm"))


def remote(farm: Farm, timeout: float = 60.0) -> Remote:
    return Remote(tracker=farm.tracker, key=KEY, timeout=timeout)


def refused(pipeline: Pipeline, recipe: Recipe) -> str:
    return problem_of(pipeline.answer, RunQuery(recipe)).line()


def test_a_run_there_matches_torch_here(farm: Farm, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample:fashion_mlp", *farm.words, "--repeats", "5", "--threads", "1"]
    assert main.main(["run", *words, "--schedule", "rules", "--target", "native"]) == 0
    out = capsys.readouterr().out
    assert "Matches torch" in out
    assert f"TVM ran on {KEY}, 127.0.0.1:" in out
    assert f"TVM ran on {KEY} and torch here, so their times are not compared" in out
    assert "1 thread" in out


def test_parameters_that_are_inputs_and_several_sizes_are_sent(
    farm: Farm, pipeline: Pipeline
) -> None:
    recipe = from_json(
        to_json(
            msgspec.structs.replace(
                MLP,
                remote=remote(farm),
                params_as_inputs=True,
                steps=(Step(name="LegalizeOps"), Step(name=APPLY_RULES)),
            )
        )
    )
    record = pipeline.answer(RunQuery(recipe, quick=True))
    assert record.verdict == "match"
    assert [each.machine for each in record.times.sides] == [KEY, ""]
    again = pipeline.answer(RunQuery(recipe, part="times", before=record))
    assert again.max_abs_error == record.max_abs_error
    assert again.tvm_ms != record.tvm_ms
    named = main.recipe_of_command(
        ["run", "sample:fashion_mlp", "--input", "x=n,784", "--sizes", "n=1,3", *farm.words]
    )
    sized = pipeline.answer(RunQuery(named, quick=True))
    assert [each.verdict for each in sized.sizes] == ["match", "match"]


def test_a_second_model_of_a_session_is_not_the_first(
    farm: Farm, tmp_path: Path, pipeline: Pipeline
) -> None:
    recipes = []
    for size in (256, 32):
        file = tmp_path / f"products_{size}.py"
        file.write_text(SLOW.replace("700", str(size)))
        command = ["run", str(file), "--lowering", "te", *farm.words]
        recipes.append(main.recipe_of_command(command))
    there = recipes[0].remote
    assert there is not None
    stages = [pipeline.stages(each) for each in recipes]
    (of_large,), (of_small,) = measure_remotely(stages, recipes, there, Silent())
    # It has 512 times the work.
    assert 10 * of_small.sides[0].fastest < of_large.sides[0].fastest


def test_what_cannot_run_there_is_refused_in_one_line(farm: Farm, pipeline: Pipeline) -> None:
    there = msgspec.structs.replace(MLP, remote=remote(farm))
    line = refused(pipeline, msgspec.structs.replace(there, lowering="library"))
    assert "Python functions of this machine" in line
    assert "High-level or TE" in line
    arm = '{"kind": "llvm", "mtriple": "aarch64-linux-gnu"}'
    line = refused(pipeline, msgspec.structs.replace(there, target=arm))
    assert "it is for aarch64, and the server is x86_64" in line
    state = remote_state(remote(farm), Silent())
    assert state.machine is not None
    assert state.machine.target in line
    assert [(each.key, each.servers) for each in state.keys] == [(KEY, 1)]
    with pytest.raises(
        LowerscopeError, match="on this machine only, and the recipe runs on remote"
    ):
        pipeline.answer(AgreementQuery(there, "anywhere"))


def test_who_is_not_there_is_named(farm: Farm, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "sample:matmul_relu"]
    nobody, server = f"127.0.0.1:{free_port()}", f"127.0.0.1:{next(iter(farm.servers))}"
    for words, told in (
        (["--tracker", nobody, "--key", KEY], "no tracker answers"),
        (["--tracker", server, "--key", KEY], "not a TVM tracker"),
        (["--tracker", farm.tracker, "--key", "other"], f"there are servers with the keys {KEY}"),
        (["--tracker", farm.tracker], "a tracker needs the key of its servers"),
        (["--key", KEY], "a key needs a tracker"),
        (["--tracker", "host:port", "--key", KEY], "is not the address of a tracker"),
        ([*farm.words, "--remote-timeout", "0"], "not a valid number of seconds"),
    ):
        assert main.main([*run, *words]) == 2
        line = capsys.readouterr().err.strip()
        assert told in line
        assert "\n" not in line
    assert remote_of("", "") is None


TUNED = ["sample:fashion_mlp", "--lowering", "te", "--target", "native"]


@pytest.mark.usefixtures("shared_results")
def test_what_is_tuned_there_is_run_there(farm: Farm, capsys: pytest.CaptureFixture[str]) -> None:
    tune = ["tune", *TUNED, "--function", "dense", "--trials", "4", "--json", *farm.words]
    assert main.main(tune) == 0
    (found,) = json.loads(capsys.readouterr().out)["state"]["functions"]
    assert (found["trials"], found["failed"], found["state"]) == (4, 0, "done")
    assert found["best"] < found["unscheduled"]
    assert found["torch"] is None
    words = ["run", *TUNED, "--schedule", "tuned", *farm.words, "--json"]
    # What was found for the machine is there for the run on it; the other functions were not tuned.
    main.main(words)
    said = capsys.readouterr()
    assert json.loads(said.out)["verdict"] == "match"
    assert "add: it was not tuned" in said.err
    assert "dense: it was not tuned" not in said.err
    # So does the command on schedules; what was found there is nothing for this machine.
    schedule = ["schedule", *TUNED, "--apply", "tuned", "--function", "dense"]
    assert main.main([*schedule, *farm.words]) == 0
    assert main.main(schedule) == 2
    assert "dense: it was not tuned for this target" in capsys.readouterr().err


def test_a_server_that_is_lost_hangs_or_is_of_another_version_is_told(
    farm: Farm, tmp_path: Path, pipeline: Pipeline
) -> None:
    file = tmp_path / "slow.py"
    file.write_text(SLOW)
    slow = Recipe(source=Source(spec=str(file)), remote=remote(farm))
    with pytest.raises(Cancelled):
        pipeline.answer(RunQuery(slow), Stopping("Running on"))
    line = refused(pipeline, msgspec.structs.replace(slow, remote=remote(farm, 0.5)))
    assert "it took longer than 0.5 s" in line
    assert "--remote-timeout" in line
    lost = farm.add()

    def kill_who_serves() -> None:
        until = time.monotonic() + 60
        while lost not in farm.serving() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.2)
        farm.kill(lost)

    for port in list(farm.servers):
        if port != lost:
            farm.kill(port)
    threading.Thread(target=kill_who_serves, daemon=True).start()
    line = refused(pipeline, slow)
    assert f"server 127.0.0.1:{lost}: the connection to the server was lost while" in line
    beside = farm.add("--custom-addr", "127.0.0.2")
    with relay("127.0.0.2", beside, lambda data: data.replace(b"0.8.0", b"0.1.0")):
        line = refused(pipeline, slow)
    assert "the server has another version of TVM" in line
