"""``run --per-node``: each node in the run, and alone on torch's inputs, with both times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lowerscope.core.cli.main import main

SHIFTED = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.nn.ReLU)
def shifted(builder, node, x):
    return relax.op.add(relax.op.nn.relu(x), relax.const(1.0, "float32"))
"""

KEYS = {
    *("fx", "bindings", "functions", "strategy", "max_abs_error", "max_rel_error"),
    *("own_abs_error", "status", "own_status", "reason", "own_reason", "own_with"),
    *("tvm_ms", "torch_ms", "hand_overs"),
}


@pytest.fixture
def shifted(tmp_path: Path) -> str:
    path = tmp_path / "shifted.py"
    path.write_text(SHIFTED)
    return str(path)


@pytest.mark.parametrize("lowering", ["high-level", "te"])
def test_an_error_that_starts_at_a_node_is_told_from_one_from_above(
    shifted: str, lowering: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--rules", shifted, "--lowering", lowering, "--per-node", "--json"]
    assert main(["run", "sample:conv_net", *options]) == 1
    record = json.loads(capsys.readouterr().out)
    nodes = {each["fx"]: each for each in record["nodes"]}
    assert all(set(each) == KEYS for each in record["nodes"])
    assert record["first_difference"] == "fx:relu"

    # Both add one to what torch has; the others pass on what is wrong, and are right alone.
    for name in ("fx:relu", "fx:relu_1"):
        assert nodes[name]["own_status"] == "differs"
        assert nodes[name]["own_abs_error"] == pytest.approx(1.0, abs=1e-5)
    for name in ("fx:pool", "fx:flatten", "fx:linear0", "fx:linear1"):
        assert (nodes[name]["status"], nodes[name]["own_status"]) == ("differs", "matches")
        assert nodes[name]["max_abs_error"] > 0.1
        assert nodes[name]["own_abs_error"] < 1e-5
    assert nodes["fx:conv"]["status"] == "matches"
    for name in ("fx:conv", "fx:relu", "fx:linear0"):
        assert nodes[name]["tvm_ms"] > 0
        assert nodes[name]["torch_ms"] > 0
        assert nodes[name]["functions"]
        assert nodes[name]["bindings"]
    assert nodes["fx:x"]["torch_ms"] is None
    assert nodes["fx:x"]["own_reason"] == "an input: it is given"


@pytest.mark.parametrize("pipeline", ["fuse", "cpu"])
def test_fused_nodes_are_run_together(pipeline: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "sample:conv_net", "--pipeline", pipeline, "--per-node"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "alone" in lines["node"]
    assert "fused into fused_conv2d_add_relu by FuseOps" in lines["conv"]
    assert lines["relu"].endswith("matches; run with conv")
    assert lines["linear1"].endswith("matches")
    assert float(lines["linear1"].split()[3]) < 1e-5
    assert "First" not in lines


def test_a_source_without_torch_has_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "sample:mlp_tvmscript", "--per-node"]) == 0
    assert "There are no FX nodes" in capsys.readouterr().out
