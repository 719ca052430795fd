"""The command line, in process: what runs say, and the exit codes."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import signal
from pathlib import Path

import pytest
import torch
from torch import nn

from lowerscope.core.cli.main import main
from tests.core.large_samples import LARGE
from tests.core.run.test_node_runs import WRONG
from tests.diagonal import at_length
from tests.faulty_functions import CRASHES, files
from tests.warm_processes import WarmProcess, run_warm

SAMPLES = (
    "matmul_relu",
    "fashion_mlp",
    "mlp_tvmscript",
    "conv_net",
    "transformer_block",
    *at_length("matmul", "resnet18", "depthwise_net"),
)

LOWERINGS = ("high-level", "te", "library")

NET = """
import torch
from torch import nn
print("a word from the file")

class Net(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.linear = nn.Linear(4, width)
    def forward(self, x):
        return self.linear(x)
"""


@pytest.mark.diagonal
@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_run_and_match(
    sample: str, lowering: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_run(sample, lowering, capsys)


def check_run(sample: str, lowering: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a sample, and look at what is said of it."""
    # Unscheduled, one call of a large one takes a second.
    once = ("--repeats", "1", "--warm-up", "1") if sample in LARGE else ()
    assert main(["run", f"sample:{sample}", "--lowering", lowering, "--json", *once]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["verdict"] == "match"
    assert record["max_abs_error"] < 1e-4
    assert record["torch_ms"] > 0
    assert record["reference"] == ("NumPy" if sample == "mlp_tvmscript" else "torch")
    assert record["tvm_ms"] > 0
    assert record["build_ms"] > 0
    by_torch = lowering == "library" and sample != "mlp_tvmscript"
    assert (record["functions"] == 0) == by_torch
    assert record["outputs"][0]["shape"]
    assert record["outputs"][0]["dtype"] == "float32"
    if sample == "fashion_mlp":
        prediction = record["prediction"]
        assert prediction["torch"] == prediction["tvm"] == prediction["top"][0]["name"]
        assert (prediction["torch"], prediction["scores"]) == ("Ankle boot", "softmax")


def test_a_difference_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A model whose result depends on how often it was called cannot match.
    path = tmp_path / "moody.py"
    path.write_text(
        NET.replace("return self.linear(x)", "return self.linear(x) + self.mood()").replace(
            "    def forward",
            "    def mood(self):\n"
            "        Net.calls = getattr(Net, 'calls', 0) + 1\n"
            "        return float(Net.calls)\n"
            "    def forward",
        )
    )
    assert main(["run", str(path), "--input", "x=1,4", "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["verdict"] == "differ"
    assert record["max_abs_error"] >= 1


@pytest.mark.parametrize("removed", [False, True])
def test_what_draws_random_numbers_is_no_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], removed: bool
) -> None:
    """Without a draw that nothing reads, TVM draws other numbers than torch from there on."""
    noisy = tmp_path / "noisy.py"
    noisy.write_text(
        NET.replace(
            "return self.linear(x)",
            "y = self.linear(x); torch.rand_like(x); return torch.nn.functional.dropout(y, 0.5), y",
        )
    )
    arguments = ["run", str(noisy), "--input", "x=1,4"]
    arguments += ["--pass", "DeadCodeElimination"] if removed else []
    assert main([*arguments, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    drawn = "not-comparable" if removed else "match"
    assert [each["verdict"] for each in record["outputs"]] == [drawn, "match"]
    assert record["verdict"] == drawn
    assert record["max_abs_error"] < 1e-5
    if removed:
        assert record["reason"].startswith("output[0] depends on dropout, which draws random")
        assert main(arguments) == 0
        assert "Not comparable: output[0] depends on dropout" in capsys.readouterr().out


WRONG_RELU = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule(torch.relu)
def wrong(builder, node, x):
    return relax.op.abs(x)
"""


def test_a_fault_behind_random_numbers_is_a_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noisy, rules = tmp_path / "noisy.py", tmp_path / "rules.py"
    rules.write_text(WRONG_RELU)
    noisy.write_text(
        NET.replace(
            "return self.linear(x)",
            "y = torch.nn.functional.dropout(self.linear(x) - 0.1, 0.5, True)"
            "; return torch.relu(y), torch._standard_gamma(torch.relu(y) + 1)",
        )
    )
    assert main(["run", str(noisy), "--input", "x=1,4", "--rules", str(rules), "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert [each["verdict"] for each in record["outputs"]] == ["differ", "differ"]


def test_an_output_without_a_finite_value_is_inconclusive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, report = tmp_path / "overflow.py", tmp_path / "report.html"
    text = NET.replace("return self.linear(x)", "y = torch.exp(self.linear(x) + 200); return y / y")
    path.write_text(text)
    arguments = ["run", str(path), "--input", "x=1,4"]
    assert main([*arguments, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["verdict"], record["max_abs_error"]) == ("inconclusive", None)
    (output,) = record["outputs"]
    assert (output["verdict"], output["matches"]) == ("inconclusive", None)
    assert record["not_finite_count"] == output["not_finite_count"] == math.prod(output["shape"])
    assert main([*arguments, "--allow-nonfinite", "--html", str(report)]) == 0
    assert capsys.readouterr().out.startswith("Inconclusive: output: ")
    words = f"? inconclusive · {record['not_finite_count']} not finite"
    pill = f'<span class="pill unsure">{words}</span>'
    assert pill in report.read_text(encoding="utf-8")
    assert main(["compare", *arguments[1:]]) == 1
    assert main(["compare", *arguments[1:], "--allow-nonfinite"]) == 0


def bad_pickle(path: Path, touched: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (touched,))  # type: ignore[return-value]

    path.write_bytes(pickle.dumps({"w0": Evil()}))


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = tmp_path / "net.py"
    net.write_text(NET)
    two = tmp_path / "two.py"
    two.write_text(NET + NET.replace("Net", "Other"))
    needs = tmp_path / "needs.py"
    needs.write_text(NET.replace("width=3", "width"))
    nothing = tmp_path / "nothing.py"
    nothing.write_text("x = 1\n")
    fails = tmp_path / "fails.py"
    fails.write_text("import torch\n1 / 0\n")
    syntax = tmp_path / "syntax.py"
    syntax.write_text("def broken(:\n")
    text = tmp_path / "readme.txt"
    text.write_text("hello")
    flow = tmp_path / "flow.py"
    flow.write_text(NET.replace("return self.linear(x)", "return self.linear(x) if len(x) else x"))
    cut = tmp_path / "cut.pt2"
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(nn.Linear(4, 3), (torch.ones(1, 4),)), buffer)
    cut.write_bytes(buffer.getvalue()[:500])
    touched = tmp_path / "touched"
    evil = tmp_path / "evil.pkl"
    bad_pickle(evil, touched)
    a_file = tmp_path / "a_file"
    a_file.write_text("")

    x = ["--input", "x=1,4:float32"]
    cases: list[tuple[list[str], list[str]]] = [
        (["run", str(tmp_path / "gone.py")], ["gone.py"]),
        (["run", "sample:nope"], ["nope", "fashion_mlp"]),
        (["run", str(text)], ["readme.txt", ".py"]),
        (["run", str(syntax)], ["syntax.py:1"]),
        (["run", str(fails)], ["fails.py:2", "division by zero"]),
        (["run", str(nothing)], ["nothing.py"]),
        (["run", str(two), *x], ["Net", "Other", "two.py:Net"]),
        (["run", f"{net}:Missing", *x], ["Missing", "Net"]),
        (["run", str(needs), *x], ["width", "--args"]),
        (["run", str(net), "--args", "{width}", *x], ["--args", "JSON"]),
        (["run", str(net)], ["--input x="]),
        (["run", str(net), "--input", "x=1,4.5"], ["--input x=1,4.5"]),
        (["run", str(net), *x, "--input", "y=1,4"], ["y"]),
        (["run", str(net), "--input", "x=1,5:float32"], ["net.py:11"]),
        (["run", str(net), "--input", "x=1,4:int64"], ["net.py:11"]),
        (["run", str(flow), "--tracer", "fx", *x], ["flow.py:11", "--tracer export"]),
        (["run", str(cut)], ["cut.pt2"]),
        (["run", "sample:fashion_mlp", "--params", str(evil)], ["evil.pkl", "touch"]),
        (["run", "sample:fashion_mlp", "--target", "gpu9000"], ["gpu9000", "--target"]),
        (["run", "sample:fashion_mlp", "--target", "cuda"], ["cuda", "llvm"]),
        (["run", "sample:fashion_mlp", "--lowering", "fast"], ["fast"]),
        (["run", "sample:fashion_mlp", "--override", "relu"], ["--override relu", "PATTERN"]),
        (["run", "sample:fashion_mlp", "--override", "relu=fast"], ["relu=fast", "high-level"]),
        (["run", "sample:fashion_mlp", "--override", "=te"], ["--override =te"]),
        (["run", "sample:fashion_mlp", "--tolerance", "int32=1,1"], ["int32", "bfloat16"]),
        (["run", "sample:fashion_mlp", "--tolerance", "float32=-1,0"], ["rtol", "at least 0"]),
        (["run", "sample:fashion_mlp", "--tolerance", "float32=2,0"], ["rtol", "below 1"]),
        (["run", "sample:fashion_mlp", "--tolerance", "float32=0,nan"], ["atol", "number"]),
        (["run", "sample:fashion_mlp", "--warm-up", "0"], ["--warm-up", "1 to 100000"]),
        (["run", "sample:fashion_mlp", "--threads", "-1"], ["--threads"]),
        (["run", "sample:fashion_mlp", "--threads", "9999"], ["--threads", "1 to 1024"]),
        (["run", "sample:fashion_mlp", "--tokens", "0"], ["--tokens", "from 1"]),
        (["run", "sample:fashion_mlp", "--tokens", "-1"], ["--tokens", "from 1"]),
        (["show", "sample:mlp_tvmscript", "--stage", "fx"], ["IRModule"]),
        (["export", "sample:matmul_relu", "--output", str(a_file)], ["a_file"]),
    ]
    for arguments, parts in cases:
        code = main(arguments)
        captured = capsys.readouterr()
        lines = [line for line in captured.err.splitlines() if "a word from" not in line]
        assert code == 2, arguments
        assert captured.out == "", arguments
        assert len(lines) == 1, (arguments, lines)
        for part in parts:
            assert part in lines[0], (arguments, lines[0])
        assert "Traceback" not in lines[0]
    assert not touched.exists()


@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_an_exit_in_the_model_is_not_a_match(
    tmp_path: Path, tracer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.py"
    path.write_text(NET.replace("return", "raise SystemExit(0)\n        return"))
    assert main(["run", str(path), "--input", "x=1,4", "--tracer", tracer]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err


# The command ``run`` when what it runs crashes, spoils memory or never ends


def command(folder: Path, body: str) -> tuple[str, ...]:
    path = files(folder, body)
    own = ("--rules", path, "--library", path)
    return ("-m", "lowerscope.app", "run", "sample:fashion_mlp", *own)


def test_how_a_run_crashed_is_told(tmp_path: Path) -> None:
    done = run_warm(*command(tmp_path, CRASHES))
    assert done.returncode == 2
    assert "the run crashed with SIGSEGV (in call 4 of 7, env.faulty (relu))" in done.stderr


def test_a_run_that_never_ends_is_stopped_and_says_where(tmp_path: Path) -> None:
    # As a loop of a kernel, it does not hear of signals.
    wait = "try: time.sleep(1)\n        except BaseException: pass"
    body = f"print('in it', file=sys.stderr, flush=True)\n    while True:\n        {wait}"
    process = WarmProcess(*command(tmp_path, body))
    assert process.stderr is not None
    for line in process.stderr:
        if "in it" in line:
            break
    os.killpg(process.pid, signal.SIGINT)
    assert process.stderr.read() == "lowerscope: stopped (in call 4 of 7, env.faulty (relu))\n"
    assert process.wait() == 2
    process.close()


# ``run --per-node``: each node in the run, and alone on torch's inputs, with both times


KEYS = {
    *("fx", "bindings", "functions", "strategy", "max_abs_error", "max_rel_error"),
    *("own_abs_error", "status", "own_status", "reason", "own_reason", "own_with"),
    *("tvm_ms", "torch_ms", "hand_overs", "exact", "own_exact"),
}


def test_an_error_that_starts_at_a_node_is_told_from_one_from_above(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shifted.py"
    path.write_text(WRONG)
    options = ["--rules", str(path), "--lowering", "te", "--per-node", "--json"]
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
    assert nodes["fx:x"]["own_reason"] == "an input: its value is given"
