"""``lowerscope passes``, and the options that choose the passes of a recipe."""

from __future__ import annotations

import pytest
import tvm
from tvm import relax

from lowerscope.core.cli.main import main
from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline

MLP = "sample:fashion_mlp"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(arguments) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.out + captured.err


def test_a_step_is_the_module_that_tvm_makes(capsys: pytest.CaptureFixture[str]) -> None:
    module = Pipeline().stages(Recipe(source=Source(spec=MLP), steps=())).module
    assert printed(capsys, "passes", MLP, "--step", "0").strip() == module.script().strip()
    with tvm.transform.PassContext(opt_level=3), tvm.target.Target("llvm"):
        for make in ("LegalizeOps", "AnnotateTIROpPattern", "FoldConstant", "FuseOps"):
            module = getattr(relax.transform, make)()(module)
    text = printed(capsys, "passes", MLP, "--pipeline", "fuse", "--step", "4")
    assert text.strip() == module.script().strip()
    part = printed(
        capsys,
        "passes",
        MLP,
        "--pipeline",
        "fuse",
        "--step",
        "4",
        "--function",
        "fused_matmul1_add1",
    )
    assert "def fused_matmul1_add1(" in part
    assert "def main(" not in part


def test_a_step_that_fails_is_listed_and_the_run_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--pass", "FuseOps:level=1", "--pass", "FuseTIR")
    text = printed(capsys, "passes", MLP, *options, code=2)
    assert "2  FuseOps      failed: there is no option level" in text
    # Below the table, where it is and what to do.
    assert text.rstrip().splitlines()[-1].startswith("step 2 (FuseOps): there is no option level.")
    assert "3  FuseTIR      skipped" in text
    for command in (("run", MLP), ("show", MLP, "--stage", "tensorir")):
        said = printed(capsys, *command, *options, code=2)
        assert "step 2 (FuseOps): there is no option level" in said


def test_presets_are_the_pipelines_of_tvm() -> None:
    """TVM's own lists, as they run, are those of the presets."""
    module = Pipeline().stages(Recipe(source=Source(spec=MLP), steps=())).module
    target = tvm.target.Target("llvm")
    pipelines = {
        "default-build": relax.pipeline.default_build_pipeline(),
        "cpu": relax.get_default_pipeline(target),
    }
    presets = {each.name: each for each in PRESETS}
    for name, pipeline in pipelines.items():
        ran: list[str] = []

        @tvm.ir.instrument.pass_instrument
        class Listing:
            depth = 0

            def run_before_pass(self, _module: object, info: object, ran: list[str] = ran) -> None:
                # In the pipeline's own pass, and in the sequence there.
                if self.depth == 2:
                    ran.append(str(info.name))  # type: ignore[attr-defined]
                self.depth += 1

            def run_after_pass(self, _module: object, _info: object) -> None:
                self.depth -= 1

        with tvm.transform.PassContext(opt_level=3, instruments=[Listing()]), target:
            pipeline(module)
        assert ran == [step.name for step in presets[name].steps]


# ``lowerscope passes --step N --diff``: what it prints is what a step changed


STEP = ["passes", "sample:fashion_mlp", "--step", "1", "--diff"]


def applied(old: list[str], hunks: list[str]) -> list[str]:
    """Apply a unified difference to a text, and check that all of its context is there."""
    result: list[str] = []
    place = 0
    for line in hunks:
        if line.startswith("@@"):
            first, count = line.split()[1][1:].split(",")
            start = int(first) - (1 if int(count) else 0)
            result += old[place:start]
            place = start
        elif line[0] == "+":
            result.append(line[1:])
        else:
            assert old[place] == line[1:]
            if line[0] == " ":
                result.append(old[place])
            place += 1
    return result + old[place:]


def test_the_text_turns_the_old_function_into_the_new_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*STEP, "--function", "main"]) == 0
    lines = capsys.readouterr().out.rstrip("\n").split("\n")
    assert lines[0] == "# old: fashion_mlp · High-level · before 1 LegalizeOps"
    assert lines[1] == "# new: fashion_mlp · High-level · after 1 LegalizeOps"
    stages = Pipeline().stages(Recipe(source=Source(spec="sample:fashion_mlp")))
    old, new = (
        [line for line in script.split("\n") if line.strip() and not line.startswith("#")]
        for script in (
            stages.module["main"].script(name="main"),
            stages.transformed.module["main"].script(name="main"),
        )
    )
    assert lines[4:6] == ["--- main", "+++ main"]
    assert applied(old, lines[6:]) == new
