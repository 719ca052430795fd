"""The command line, in process: stages that are shown, and files that are exported."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest

from lowerscope.core.cli.main import main

pytestmark = pytest.mark.usefixtures("shared_results")


def test_show_translation_lists_the_node_map_and_tells_of_one_node(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["show", "sample:fashion_mlp", "--lowering", "te", "--stage", "translation"]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("2  linear0"))
    assert re.search(r"TE +linear: topi.nn.dense, topi.add +lv1 +1×128 float32 +dense, add$", row)
    assert main([*arguments, "--node", "linear0"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 linear0: Lowered to tensor expressions by linear")
    assert "    def linear(b: NodeBuilder, input: Value" in out
    steps = ("1 placeholders", "2 expression", "3 function dense", "4 call_tir")
    places = [out.index(f"  {step}") for step in steps]
    assert places == sorted(places)
    assert main([*arguments, "--node", "linear0", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [each["function"] for each in record["calls"]] == ["dense", "add"]
    assert main([*arguments, "--json"]) == 0
    assert [each["value"] for each in json.loads(capsys.readouterr().out)][1] == "lv1"
    assert main([*arguments, "--node", "nothing"]) == 2
    assert "there is no node nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stage", "function", "there", "not_there"),
    [
        ("llvm", "dense", ("@__tvm_ffi_dense(", "for_body_k:"), ("@__tvm_ffi_add(",)),
    ],
)
def test_what_is_compiled_is_printed(
    stage: str,
    function: str,
    there: tuple[str, ...],
    not_there: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--function", function] if function else []
    arguments = ["show", "sample:fashion_mlp", "--lowering", "te", "--stage", stage, *options]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert all(each in out for each in there)
    assert not any(each in out for each in not_there)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "the question is missing"),
        (("--nodes", "linear0", "relu", "--function", "matmul"), "two questions are given"),
        (("--nodes", "", "relu"), "there is no node, binding or function ''"),
        (("--function", "relu0"), "there is no TensorIR function 'relu0'"),
        (("--pass", "Nothing"), "there is no pass Nothing"),
    ],
)
def test_why_rejects_what_is_no_question(
    options: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", "sample:fashion_mlp", *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
