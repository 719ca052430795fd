"""Build, run and measure, against NumPy and torch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
import tvm
import tvm_ffi
from torch import nn

from lowerscope.core.build.targets import FEATURES, hindrance, make_target, target_record
from lowerscope.core.cli import main
from lowerscope.core.model.module_steps import Moment
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.progress import Silent
from lowerscope.core.model.queries import BuildStepsQuery, RunQuery, TextQuery
from lowerscope.core.model.recipe import Extension, Recipe, Source
from lowerscope.core.model.run_records import ClassScore, DlpackTransfer, best_of
from lowerscope.core.model.texts import enumeration
from lowerscope.core.run.execution import Reference, to_torch, to_tvm
from lowerscope.core.run.runs import predict
from lowerscope.core.sandbox.running_call import CallWriter, new_file, read
from lowerscope.core.stages import Pipeline
from tests.faulty_functions import ASKS_FOR_MUCH, RAISES, faulty_relu
from tests.problems import problem_of


class Noisy(nn.Module):
    """Differs between training and eval, and changes its input."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.9)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor | int]:
        x += 1
        return {"value": self.dropout(x), "size": x.shape[0]}


@pytest.mark.parametrize(
    "dtype",
    ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"],
)
def test_tensors_of_every_dtype_go_there_and_back(dtype: str) -> None:
    values = torch.randint(0, 2, (5, 3)).to(getattr(torch, dtype))
    for value in (values, values[1:], values.t(), values[:0], values[0, 0]):
        back = to_torch(to_tvm(value))
        assert back.dtype == value.dtype
        assert torch.equal(back, value)


def test_the_reference_is_a_copy_in_eval_mode_that_leaves_the_inputs() -> None:
    model, x = Noisy().train(), torch.ones(2, 3)
    value, size = Reference(model, (x,), seed=0).outputs()
    assert torch.equal(value, torch.full((2, 3), 2.0))
    assert int(size) == 2
    assert model.training
    assert torch.equal(x, torch.ones(2, 3))


def test_an_attribute_of_the_model_does_not_name_the_reference(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(
        "import torch\nfrom torch import nn\nmodel = nn.Sequential(nn.ReLU())\n"
        "model.side = 'left'\nexample_inputs = (torch.randn(3),)\n"
    )
    record = Pipeline().answer(RunQuery(Recipe(source=Source(spec=str(path))), quick=True))
    assert record.reference == "torch"


def test_predictions_need_a_score_for_each_class() -> None:
    scores = torch.tensor([[0.1, 0.9]])
    found = predict(("cat", "dog"), (scores,), (scores.flip(1),))
    assert found is not None
    assert (found.torch, found.tvm) == ("cat", "dog")
    assert predict((), (scores,), None) is None
    assert predict(("a", "b", "c"), (scores,), None) is None
    # The five best of either side, with what softmax makes of the scores; but not of probabilities.
    names = tuple("abcdefgh")
    ours, torchs = torch.randn(1, 8), torch.randn(8)
    top = predict(names, (ours,), (torchs,))
    assert top is not None
    assert top.scores == "softmax"
    for side, output in (("tvm", ours[0]), ("torch", torchs)):
        expected = torch.softmax(output.double(), 0)
        best = best_of(top, side)  # type: ignore[arg-type]
        order = expected.argsort(descending=True)[:5].tolist()
        assert [each.name for each in best] == [names[place] for place in order]
        shown = [getattr(each, side) for each in best]
        assert shown == pytest.approx([float(expected[place]) for place in order])
    given = predict(("cat", "dog"), (scores,), (scores,))
    assert given is not None
    assert given.scores == "output"
    assert given.top[0] == ClassScore(name="dog", tvm=pytest.approx(0.9), torch=pytest.approx(0.9))
    broken = predict(("cat", "dog"), (scores * float("nan"),), (scores,))
    assert broken is not None
    assert broken.top == ()
    without = predict(("cat", "dog"), (scores,), None)
    assert without is not None
    assert without.torch == ""


# Runs that come to a bad end in this process, and the call that fails


NESTED = """
import numpy as np
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module(s_tir=True)
class Nested:
    @T.prim_func(s_tir=True)
    def double(X: T.Buffer((64, 64), "float32"), Y: T.Buffer((64, 64), "float32")):
        for i in T.parallel(64):
            for j in T.parallel(64):
                with T.sblock("Y"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Y[vi, vj] = X[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((64, 64), "float32")) -> R.Tensor((64, 64), "float32"):
        cls = Nested
        with R.dataflow():
            y = R.call_tir(cls.double, (x,), R.Tensor((64, 64), "float32"))
            R.output(y)
        return y


def example_inputs():
    return (np.ones((64, 64), "float32"),)
"""


def mlp(extensions: tuple[Extension, ...] = ()) -> Recipe:
    return Recipe(source=Source(spec="sample:fashion_mlp"), extensions=extensions)


@pytest.mark.parametrize(
    ("body", "said", "code"),
    [(ASKS_FOR_MUCH, "out of memory", "memory"), (RAISES, "the run failed", "")],
)
def test_the_call_that_fails_is_named(
    pipeline: Pipeline, tmp_path: Path, body: str, said: str, code: str
) -> None:
    problem = problem_of(pipeline.answer, RunQuery(mlp(faulty_relu(tmp_path, body)), True))
    assert problem.where == "in call 4 of 7, env.faulty (relu)"
    assert problem.what.startswith(said)
    assert problem.code == code


def test_loops_in_parallel_inside_of_one_another_are_an_error(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    path = tmp_path / "nested.py"
    path.write_text(NESTED)
    recipe = Recipe(source=Source(spec=str(path)))
    with pytest.raises(LowerscopeError, match="Nested parallel loop is not supported"):
        pipeline.answer(RunQuery(recipe, quick=True))


def test_each_call_is_known_in_the_file_while_it_is_under_way(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    file = new_file()
    seen: list[str] = []

    class Told(Silent):
        def __init__(self) -> None:
            self.writer = CallWriter(file)

        def begin_calls(self, names: object) -> None:
            self.writer.begin(names)  # type: ignore[arg-type]

        def at_call(self, index: int, inside: bool) -> None:
            self.writer.at(index, inside)
            seen.append(read(file).text)

    pipeline.answer(RunQuery(mlp(), True), Told())
    assert "before call 1 of 7, transpose (linear0)" in seen
    assert "in call 4 of 7, relu (relu)" in seen
    assert "after the last of 7 calls" in seen
    assert read(file).text == ""
    os.close(file)


# Targets: what each changes, which cannot be, and which cannot run here


PI = '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76"}'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("llvm -mcpu=skylark", "no processor of x86_64 called skylark. Did you mean skylake"),
        ("llvm -speed=11", "'-speed=11' is not an option of a target"),
        ('{"kind": "llvm", "mtriple": "vax-dec-vms"}', "no architecture called vax"),
        ('{"kind": "llvm", "mattr": ["+avx2", "+warp"]}', "no feature of x86_64 called warp"),
        ('{"kind": "llvm", "speed": 11}', "Unknown config option 'speed'"),
        ("cuda", "of kind cuda; only processors"),
        ("nonsense", "TVM does not know the target 'nonsense'"),
        ("", "TVM does not know the target ''"),
    ],
)
def test_a_wrong_target_is_refused_in_one_line(text: str, told: str) -> None:
    line = problem_of(make_target, text, 0).line()
    assert told in line
    assert line.startswith("--target")


def test_what_this_machine_lacks_is_named() -> None:
    assert hindrance(make_target("native", 0)) == hindrance(make_target("llvm", 0)) == ""
    assert "it is for aarch64" in target_record(PI, 0).hindrance
    own = set(target_record("native", 0).features)
    amx = target_record("llvm -mcpu=sapphirerapids", 0)
    missing = [name for name in FEATURES.values() if name in set(amx.features) - own]
    lacks = f"this machine lacks {enumeration(missing)}" if missing else ""
    assert amx.hindrance == lacks


def test_another_architecture_is_built_and_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample:matmul_relu", "--target", PI, "--schedule", "rules"]
    assert main.main(["show", *words, "--stage", "asm"]) == 0
    assert "fmla" in capsys.readouterr().out
    assert main.main(["run", *words]) == 2
    refused = capsys.readouterr().err.strip().splitlines()
    assert len(refused) == 1
    assert "it is for aarch64, and this machine is x86_64" in refused[0]
    assert "--tracker HOST:PORT --key KEY" in refused[0]


# The passes of TVM's own build, noted while it runs


MLP = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te")


def functions_of(module: tvm.IRModule) -> dict[str, object]:
    return {str(each.name_hint): function for each, function in module.functions_items()}


def test_what_is_listed_as_changed_is_what_differs(pipeline: Pipeline) -> None:
    steps, build = pipeline.answer(BuildStepsQuery(MLP)), pipeline.stages(MLP).recorded
    for each, run in zip(steps, build.runs, strict=True):
        assert run.after is not None
        before, after = functions_of(run.before), functions_of(run.after)
        differing = {
            name
            for name in before.keys() | after.keys()
            if name not in before
            or name not in after
            or (
                not tvm_ffi.structural_equal(before[name], after[name])
                # What cannot be read in its script is no change that can be shown.
                and before[name].script() != after[name].script()
            )
        }
        assert set(each.changed) == differing, each.name


def test_each_function_can_be_read_after_each_pass(pipeline: Pipeline) -> None:
    steps = pipeline.answer(BuildStepsQuery(MLP))

    def text(name: str, index: int) -> str:
        moment = Moment(section="build", index=index)
        return pipeline.answer(TextQuery(MLP, name, "script", moment)).text

    lowered = pipeline.answer(TextQuery(MLP, "dense", "script")).text
    assert text("dense", 0) == lowered
    number = {each.name: each.number for each in steps}
    assert "T.sblock" in text("dense", number["s_tir.ConvertBlocksToOpaque"])
    assert "T.sblock" not in text("dense", number["s_tir.LowerOpaqueBlock"])
    assert "num_args" in text("dense", number["tirx.MakePackedAPI"])
    # Passes for TensorIR leave main as it went into the bytecode.
    last = text("", len(steps))
    assert "R.vm.kill_object" in last
    assert "R.vm.kill_object" not in text("", 0)
    lowering = number["s_tir.LowerInitBlock"]
    build = pipeline.stages(MLP).recorded
    assert build.module_before(lowering)["dense"].same_as(build.runs[lowering - 1].before["dense"])
    with pytest.raises(LowerscopeError, match="no step 500"):
        text("dense", 500)


# What becomes of tensors that are handed to library functions: observed, not assumed


PROGRAM = """
import numpy as np
import torch
import tvm
from tvm.script import ir as I
from tvm.script import relax as R

@tvm.register_global_func("env.in_place", override=True)
def in_place(x, out):
    torch.add(torch.from_dlpack(x)[0:2].view(2, 4), 1, out=torch.from_dlpack(out))

@tvm.register_global_func("env.copied", override=True)
def copied(x, out):
    torch.from_dlpack(out).copy_(torch.from_dlpack(x).clone() * 2)

@tvm.register_global_func("env.straight", override=True)
def straight(x, out):
    torch.from_dlpack(out).copy_(torch.from_dlpack(x))

@tvm.register_global_func("env.numpy", override=True)
def by_numpy(x, out):
    out.copyfrom(x.numpy() + 1)

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 4), "float32")):
        with R.dataflow():
            a = R.call_dps_packed("env.in_place", (x,), out_ty=R.Tensor((2, 4), "float32"))
            b = R.call_dps_packed("env.copied", (a,), out_ty=R.Tensor((2, 4), "float32"))
            c = R.call_dps_packed("env.straight", (b,), out_ty=R.Tensor((2, 4), "float32"))
            d = R.call_dps_packed("env.numpy", (c,), out_ty=R.Tensor((2, 4), "float32"))
            R.output(d)
        return d

def reference(x):
    return (x + 1) * 2 + 1
"""


def test_what_torch_did_with_the_memory_is_told(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    record = Pipeline().answer(RunQuery(Recipe(source=Source(spec=str(path)))))
    assert record.verdict == "match"
    found = {each.function: each.hand_over for each in record.calls}
    whole = 2 * 4 * 4
    assert found == {
        "env.in_place": DlpackTransfer(inputs=("in place",), results=("in place",)),
        "env.copied": DlpackTransfer(
            inputs=("copied",), results=("copied",), copied_bytes=2 * whole
        ),
        "env.straight": DlpackTransfer(
            inputs=("in place",), results=("copied",), copied_bytes=whole
        ),
        "env.numpy": DlpackTransfer(inputs=("unseen",), results=("unseen",)),
    }
