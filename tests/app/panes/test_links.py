"""The command line that shows what the window shows makes the same recipe again."""

from __future__ import annotations

import shlex

import msgspec
import pytest

from lowerscope.app.document.links import build_link, node_link, recipe_words, step_link
from lowerscope.app.document.stepping import StepLine
from lowerscope.core.cli.recipe_options import OneLineParser, add_recipe_options, recipe_from
from lowerscope.core.files.pipelines_and_schedules import PRESETS
from lowerscope.core.model.recipe import Dimension, InputSpec, Override, Recipe, Source, Step
from lowerscope.core.model.time_records import Measuring
from lowerscope.core.model.tolerances import Tolerance, Tolerances

PLAIN = Recipe(source=Source(spec="sample:fashion_mlp"))
RECIPES = (
    PLAIN,
    msgspec.structs.replace(
        PLAIN,
        source=Source(spec="/tmp/a model.py", entry="Net", args='{"width": 3}', trust=True),
        seed=7,
        inputs=(
            InputSpec(name="x", shape=(1, 3), dtype="int64", low=0, high=9),
            InputSpec(name="y", shape=("batch", 3)),
            InputSpec(name="s", shape=(), dtype="float32"),
            InputSpec(name="v", shape=(4,)),
        ),
        dimensions=(Dimension(name="batch", low=2, high=64, sizes=(2, 7)),),
        tracer="export",
        translator="tvm-export",
        lowering="te",
        overrides=(Override(pattern="layer1.*", strategy="library"),),
        steps=(
            *PRESETS[2].steps,
            Step(name="FuseOps", options={"fuse_opt_level": 0}),
            Step(name="LegalizeOps", options={"skip_ops": ("relax.add", "relax.matmul")}),
        ),
        tolerances=Tolerances(float32=Tolerance(1.25e-5, 0.0), bfloat16=Tolerance(0.1, 3e-3)),
        measuring=Measuring(warm_up=5, repeats=500, torch_compile=True),
        target="native",
        threads=2,
    ),
    msgspec.structs.replace(PLAIN, steps=()),
)


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_options_make_the_recipe_again(recipe: Recipe) -> None:
    parser = OneLineParser()
    parser.add_argument("source")
    add_recipe_options(parser)
    assert recipe_from(parser.parse_args(list(recipe_words(recipe)))) == recipe


def test_a_step_has_its_number_without_those_that_are_off() -> None:
    steps = (Step(name="LegalizeOps", on=False), *PRESETS[2].steps)
    recipe = msgspec.structs.replace(PLAIN, steps=steps)
    line = StepLine(number=90, title="FuseOps", label="5.2")
    words = shlex.split(step_link(recipe, line, "matmul"))
    assert words[:5] == ["lowerscope", "passes", "sample:fashion_mlp", "--pipeline", "fuse"]
    assert words[5:] == ["--step", "4.2", "--function", "matmul"]
    assert step_link(PLAIN, None).endswith("--step 0")


def test_a_pass_of_the_build_has_a_link() -> None:
    line = StepLine(number=90, title="tirx.Simplify", label="2.7")
    words = shlex.split(build_link(PLAIN, line, "dense"))
    assert words[-5:] == ["--build", "--step", "2.7", "--function", "dense"]


def test_a_node_of_the_translation_has_a_link() -> None:
    assert node_link(PLAIN, "relu") == (
        "lowerscope show sample:fashion_mlp --pipeline legalise --stage translation --node relu"
    )
