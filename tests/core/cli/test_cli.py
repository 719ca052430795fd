"""The command line, in process: what runs say, and the exit codes."""

from __future__ import annotations

import io
import json
import math
import pickle
from pathlib import Path

import pytest
import torch
from torch import nn

from lowerscope.core.cli.main import main
from tests.core.large_samples import LARGE

SAMPLES = (
    "matmul_relu",
    "matmul",
    "fashion_mlp",
    "conv_net",
    "resnet18",
    "depthwise_net",
    "transformer_block",
    "mlp_tvmscript",
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


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text(NET)
    return str(path)


def test_samples_are_listed_with_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["samples"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == set(SAMPLES)
    assert all(len(line.split()) > 4 for line in lines)


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


def test_a_run_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "sample:fashion_mlp", "--target", "native", "--threads", "1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Matches torch: largest error")
    assert "Prediction: TVM Ankle boot, torch Ankle boot (by softmax)" in text
    assert "  torch  Ankle boot > 99.9%, Sneaker" in text


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


def test_overrides(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["sample:fashion_mlp", "--lowering", "te", "--override", "linear0=library"]
    arguments += ["--override", "relu = high-level", "--json"]
    assert main(["show", *arguments, "--stage", "fx"]) == 0
    nodes = {node["name"]: node for node in json.loads(capsys.readouterr().out)}
    assert nodes["linear0"]["strategy"] == "library"
    assert nodes["linear0"]["rule"] == "linear: torch.linear"
    assert nodes["linear0"]["functions"] == ["ext:torch.linear"]
    assert nodes["relu"]["strategy"] == "high-level"
    assert nodes["linear1"]["strategy"] == "te"
    assert main(["run", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "match"


def test_what_only_torch_can_runs_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spectrum = tmp_path / "spectrum.py"
    spectrum.write_text(
        NET.replace("return self.linear(x)", "return torch.fft.rfft(self.linear(x)).abs()")
    )
    arguments = [str(spectrum), "--input", "x=1,4", "--json"]
    assert main(["run", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "match"
    assert main(["show", *arguments, "--stage", "fx"]) == 0
    nodes = {node["name"]: node for node in json.loads(capsys.readouterr().out)}
    assert nodes["fft_rfft"]["strategy"] == "library"
    assert nodes["fft_rfft"]["rule"] == "fft_rfft: torch.fft_rfft"
    assert nodes["fft_rfft"]["reason"] == "no relax operator for fft_rfft; runs in torch"
    assert nodes["linear"]["strategy"] == "high-level"


def test_what_draws_random_numbers_is_no_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noisy = tmp_path / "noisy.py"
    noisy.write_text(
        NET.replace(
            "return self.linear(x)",
            "y = self.linear(x); return torch.nn.functional.dropout(y, 0.5), y",
        )
    )
    arguments = ["run", str(noisy), "--input", "x=1,4"]
    assert main([*arguments, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["verdict"] == "not-comparable"
    assert record["reason"] == "output[0] depends on dropout, which draws random numbers"
    assert [each["verdict"] for each in record["outputs"]] == ["not-comparable", "match"]
    assert record["max_abs_error"] < 1e-5
    assert main(arguments) == 0
    assert "Not comparable: output[0] depends on dropout" in capsys.readouterr().out


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


def test_a_match_says_how_many_values_are_not_finite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, report = tmp_path / "masked.py", tmp_path / "report.html"
    text = NET.replace(
        "return self.linear(x)", "y = self.linear(x); return torch.cat([y, torch.log(y - y)])"
    )
    path.write_text(text)
    arguments = ["run", str(path), "--input", "x=1,4"]
    assert main([*arguments, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["verdict"] == "match"
    half = record["outputs"][0]["shape"][1]
    assert record["not_finite_count"] == half
    said = f"{half} infinities on both sides"
    assert record["outputs"][0]["not_finite"] == said
    assert main([*arguments, "--html", str(report)]) == 0
    assert said in capsys.readouterr().out
    text = report.read_text(encoding="utf-8")
    assert said in text
    assert f"✓ matches torch · {half} not finite</span>" in text
    lowerings = ["--lowering", "high-level", "--lowering", "te"]
    assert main(["compare", *arguments[1:], *lowerings, "--html", str(report)]) == 0
    assert f"match, {half} not finite" in capsys.readouterr().out
    assert f"✓ matches torch · {half} not finite</td>" in report.read_text(encoding="utf-8")


def test_values_that_are_not_finite_at_one_size_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sizes.py"
    text = NET.replace("return self.linear(x)", "return 1 / (torch.ones_like(x).cumsum(0) - 3)")
    path.write_text(text)
    arguments = ["run", str(path), "--input", "x=n,4", "--dim", "n=1..8"]
    assert main([*arguments, "--sizes", "n=2,4", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [each["not_finite_count"] for each in record["sizes"]] == [0, 4]
    assert (record["verdict"], record["not_finite_count"]) == ("match", 4)
    assert record["reason"] == "n = 4: output: 4 infinities on both sides"


def test_an_empty_output_beside_a_fine_one_matches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "empty.py"
    path.write_text(NET.replace("return self.linear(x)", "y = self.linear(x); return y, y[:0]"))
    assert main(["run", str(path), "--input", "x=1,4"]) == 0
    assert "output[1] has no elements to compare" in capsys.readouterr().out
    path.write_text(NET.replace("return self.linear(x)", "return self.linear(x)[:0]"))
    assert main(["run", str(path), "--input", "x=1,4"]) == 1
    assert capsys.readouterr().out.startswith("Inconclusive: output has no elements to compare")


def test_what_the_file_prints_is_not_among_the_records(
    net: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", net, "--input", "x=2,4:float32", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["outputs"][0]["shape"] == [2, 3]
    assert "a word from the file" in captured.err


def test_arguments_of_the_entry(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", f"{net}:Net", "--args", '{"width": 6}', "--input", "x=1,4", "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["outputs"][0]["shape"] == [1, 6]


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
        (["run", "sample:fashion_mlp", "--tolerance", "float32=-1,0"], ["rtol", "distance"]),
        (["run", "sample:fashion_mlp", "--tolerance", "float32=2,0"], ["rtol", "below 1"]),
        (["run", "sample:fashion_mlp", "--tolerance", "float32=0,nan"], ["atol", "number"]),
        (["run", "sample:fashion_mlp", "--warm-up", "0"], ["--warm-up", "1 to 100000"]),
        (["run", "sample:fashion_mlp", "--threads", "-1"], ["--threads"]),
        (["run", "sample:fashion_mlp", "--threads", "9999"], ["--threads", "1 to 1024"]),
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


def test_what_fx_cannot_trace_export_can(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text(NET.replace("return self.linear(x)", "return self.linear(x) if len(x) else x"))
    arguments = ["run", str(flow), "--input", "x=1,4", "--tracer", "export", "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "match"


def with_forward(path: Path, body: str, setup: str = "") -> str:
    path.write_text(
        "import sys, warnings\nfrom traceback import extract_stack\n"
        "import torch\nfrom torch import nn\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.linear = nn.Linear(4, 3)\n"
        f"        {setup or 'pass'}\n"
        "    def forward(self, x):\n"
        f"        {body}\n"
        "        return self.linear(x)\n"
    )
    return str(path)


@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_an_exit_in_the_model_is_not_a_match(
    tmp_path: Path, tracer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = with_forward(tmp_path / "net.py", "sys.exit(0)")
    assert main(["run", path, "--input", "x=1,4", "--tracer", tracer]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_an_exit_in_the_comparison_is_not_a_match(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = (
        "if torch.is_inference_mode_enabled() and not isinstance(x, torch.fx.Proxy) "
        "and 'trace' not in [each.name for each in extract_stack()]: sys.exit(0)"
    )
    path = with_forward(tmp_path / "net.py", body)
    assert main(["run", path, "--input", "x=1,4"]) == 2
    assert "torch's own run" in capsys.readouterr().err


@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_a_model_with_a_normed_weight_runs(
    tmp_path: Path, tracer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    setup = "warnings.simplefilter('ignore'); self.linear = nn.utils.weight_norm(self.linear)"
    path = with_forward(tmp_path / "net.py", "pass", setup)
    assert main(["run", path, "--input", "x=1,4", "--tracer", tracer, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "match"


@pytest.mark.parametrize("seed", ["99999999999999999999999", "-1"])
def test_a_seed_out_of_range_is_one_line(seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "sample:matmul_relu", "--seed", seed]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_help_is_not_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--help"])
    assert ended.value.code == 0
    assert "--lowering" in capsys.readouterr().out


def test_an_input_of_one_named_dimension_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "line.py"
    path.write_text(NET.replace("self.linear(x)", "x * 2"))
    arguments = ["run", str(path), "--dim", "n=1..8", "--sizes", "n=2,5", "--input", "x=n"]
    assert main([*arguments, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["verdict"] == "match"
    assert len(record["sizes"]) == 2
