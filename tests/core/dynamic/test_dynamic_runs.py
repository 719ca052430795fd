"""One build of a symbolic module runs at several sizes, and gives what torch gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch

from lowerscope.core.cli.main import main
from lowerscope.core.files.pipelines_and_schedules import find_pipeline
from lowerscope.core.files.sources import parse_input
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Dimension, Recipe, Source, Strategy, TracerName
from lowerscope.core.model.run_records import RunRecord
from lowerscope.core.run.execution import Execution
from lowerscope.core.stages import Pipeline
from tests.diagonal import at_length

pytestmark = pytest.mark.usefixtures("shared_results")

Run = Callable[..., RunRecord]
RecipeOf = Callable[..., Recipe]

CASES = {
    "Mlp": (("x=batch,12:float32",), ("batch=1..64",), ("batch=1,7,64",)),
    "Cnn": (("x=batch,1,8,8:float32",), ("batch=1..16",), ("batch=1,5,16",)),
    "AnySize": (
        ("x=1,3,height,width:float32",),
        ("height=8..40", "width=8..40"),
        ("height=8,11,20", "width=8,17,20"),
    ),
    "Encoder": (
        ("tokens=batch,length:int64[0,20)",),
        ("length=2..32", "batch=1..8"),
        ("length=2,9,32", "batch=1,8,3"),
    ),
    "Two": (
        ("x=n,3:float32", "y=n,4:float32", "z=m,7:float32"),
        ("n=2..32", "m=2..9"),
        ("n=2,9,32", "m=4"),
    ),
    "Recurrent": (("x=batch,4,6:float32",), ("batch=1..16",), ("batch=1,6,16",)),
    "Neighbours": (("x=batch,n,4:float32",), ("batch=1..3", "n=2..7"), ("batch=1,2,3", "n=2,5,7")),
    "Slices": (("x=n,4:float32",), ("n=4..32",), ("n=4,7,32",)),
    "Outputs": (("x=n,4:float32",), ("n=2..32",), ("n=5,2,32",)),
}
MIXED = {"Mlp": "relu", "Cnn": "conv*", "Encoder": "linear*", "Two": "cat*", "Slices": "stack"}


def check(record: RunRecord, runs: int = 3) -> None:
    assert record.verdict == "match", record.reason
    assert [each.verdict for each in record.sizes] == ["match"] * runs
    # The nodes are looked at in the first size.
    nodes = [each for each in record.nodes if each.id.startswith("fx:")]
    assert not [each for each in nodes if each.matches is False]
    assert [each for each in nodes if each.matches]


@pytest.mark.diagonal
@pytest.mark.parametrize("strategy", ["high-level", "te"])
@pytest.mark.parametrize("entry", CASES)
def test_one_build_matches_torch_at_every_size(
    recipe_of: RecipeOf, run: Run, entry: str, strategy: Strategy
) -> None:
    overrides: dict[str, Strategy] = {}
    if strategy == "te" and entry in MIXED:
        overrides = {MIXED[entry]: "library"}
    check(run(recipe_of(entry, *CASES[entry]), strategy, **overrides))


def test_what_depends_on_data_runs_in_torch_at_every_size(
    pipeline: Pipeline, recipe_of: RecipeOf, run: Run
) -> None:
    inputs, dims = ("x=n,4:float32", "past=m,4:float32"), ("n=2..32", "m=2..64")
    recipe = recipe_of("Routed", inputs, dims, ("n=2,9,32", "m=5,2,64"))
    lowered = pipeline.stages(recipe).lowered
    assert lowered is not None
    in_torch = [each.node for each in lowered.nodes.values() if each.strategy == "library"]
    assert [each for each in in_torch if each.startswith("for_line")]
    assert lowered.nodes["while_loop"].strategy == "high-level"
    assert "first" in [each.node for each in lowered.nodes.values() if each.strategy != "library"]
    check(run(recipe, "high-level"))


@pytest.mark.parametrize("tracer", ["fx", "export"])
def test_rows_are_split_by_data_at_every_size(
    pipeline: Pipeline, recipe_of: RecipeOf, run: Run, tracer: TracerName
) -> None:
    recipe = recipe_of("Shared", ("x=n,4:float32",), ("n=2..32",), ("n=2,9,32",))
    recipe = msgspec.structs.replace(recipe, tracer=tracer)
    lowered = pipeline.stages(recipe).lowered
    assert lowered is not None
    by_tvm = [each for each in lowered.nodes.values() if each.strategy == "high-level"]
    assert len(by_tvm) > 5
    check(run(recipe, "high-level"))


def test_a_number_that_no_shape_of_its_group_has_is_passed_to_it(
    recipe_of: RecipeOf, run: Run
) -> None:
    inputs, dims = ("x=n,3:float32", "y=m,3:float32"), ("n=2..32", "m=2..9")
    recipe = recipe_of("Places", inputs, dims, ("n=2,9,32", "m=4"))
    steps = find_pipeline("fuse").steps
    record = run(msgspec.structs.replace(recipe, steps=steps), "high-level")
    assert record.verdict == "match", record.reason
    assert [each.verdict for each in record.sizes] == ["match"] * 3


@pytest.mark.parametrize("entry", ["Two", *at_length("Cnn")])
def test_the_export_tracer_names_dimensions_as_well(
    pipeline: Pipeline, recipe_of: RecipeOf, run: Run, entry: str
) -> None:
    recipe = msgspec.structs.replace(recipe_of(entry, *CASES[entry]), tracer="export")
    check(run(recipe, "high-level"))
    traced = pipeline.stages(recipe).traced
    assert traced is not None
    name = "batch" if entry == "Cnn" else "n"
    assert traced.values["x"].text.startswith(f"{name}×")


@pytest.mark.parametrize("entry", ["Mlp", "Cnn", "Encoder", "Two", "Slices"])
def test_the_rules_cover_symbolic_shapes(
    pipeline: Pipeline, recipe_of: RecipeOf, entry: str
) -> None:
    lowered = pipeline.stages(recipe_of(entry, *CASES[entry])).lowered
    assert lowered is not None
    assert [each.reason for each in lowered.nodes.values() if each.reason] == []


@pytest.mark.parametrize(
    ("entry", "given"), [("Converts", "x=n,4:float32"), ("Repeats", "x=1,2,n,4:float32")]
)
def test_what_export_adds_for_sizes_is_lowered(
    pipeline: Pipeline, recipe_of: RecipeOf, run: Run, entry: str, given: str
) -> None:
    recipe = recipe_of(entry, (given,), ("n=1..32",), ("n=5,1,32",))
    recipe = msgspec.structs.replace(recipe, tracer="export")
    lowered = pipeline.stages(recipe).lowered
    assert lowered is not None
    assert lowered.notes == ()
    check(run(recipe, "high-level"))


def test_checks_of_sizes_that_depend_on_data_stay(pipeline: Pipeline, recipe_of: RecipeOf) -> None:
    recipe = recipe_of("Checks", ("x=n:float32",), ("n=2..9",))
    traced = pipeline.stages(msgspec.structs.replace(recipe, tracer="export")).traced
    assert traced is not None
    targets = [each.target for each in traced.graph_module.graph.nodes]
    assert torch.ops.aten._assert_scalar.default in targets


@pytest.mark.parametrize(
    ("entry", "given"),
    [
        ("Recurrent", "x=batch,length,6:float32"),
        ("Stacked", "x=batch,length,6:float32"),
        ("Iterated", "x=batch,length,6:float32"),
        ("Settling", "x=batch,length,6:float32"),
        ("Shares", "x=batch,length,6:float32"),
        ("LastRows", "x=batch,length,6:float32"),
        ("Cells", "x=batch,3,6:float32"),
        ("Attends", "x=batch,length,6:float32"),
        ("Translates", "x=batch,length,6:float32"),
        ("Resized", "x=batch,3,4,5:float32"),
    ],
)
def test_layers_are_lowered_for_named_sizes(
    pipeline: Pipeline, recipe_of: RecipeOf, run: Run, entry: str, given: str
) -> None:
    first = 1 if entry in ("Recurrent", "Stacked", "Iterated", "Settling") else 3
    dims = ("batch=1..9", f"length={first}..7")
    sizes = ("batch=4,1,9", f"length=4,{first},7")
    count = 1 + ("length" in given)
    recipe = recipe_of(entry, (given,), dims[:count], sizes[:count])
    lowered = pipeline.stages(recipe).lowered
    assert lowered is not None
    assert [each.node for each in lowered.nodes.values() if each.strategy == "library"] == []
    check(run(recipe, "high-level"))


def test_what_is_not_the_same_for_all_sizes_runs_in_torch_and_says_so(
    pipeline: Pipeline, recipe_of: RecipeOf
) -> None:
    recipe = recipe_of("Projected", ("x=2,length,6:float32",), ("length=1..16",))
    lowered = pipeline.stages(recipe).lowered
    assert lowered is not None
    assert [note.text for note in lowered.notes] == [
        "lstm: no rule covers it as a whole, and its operators are not the same for all sizes; "
        "runs in torch (node lstm)"
    ]


def test_numbers_of_data_beside_named_sizes_stay_in_torch(
    pipeline: Pipeline, recipe_of: RecipeOf, run: Run
) -> None:
    inputs = "x=1,4:float32", "past=length,4:float32"
    recipe = recipe_of("Numbered", inputs, ("length=2..32",), ("length=5,2,32",))
    lowered = pipeline.stages(recipe).lowered
    assert lowered is not None
    by_tvm = {each.node for each in lowered.nodes.values() if each.strategy == "high-level"}
    assert {"first", "relu", "add"} <= {each.rstrip("_0123456789") for each in by_tvm}
    check(run(recipe, "high-level"))


@pytest.mark.parametrize("tracer", ["auto", "export"])
def test_a_comparison_of_sizes_is_found(recipe_of: RecipeOf, run: Run, tracer: str) -> None:
    recipe = recipe_of("Branches", ("x=batch,12:float32",), ("batch=1..64",))
    with pytest.raises(LowerscopeError, match="torch needs batch == 5") as caught:
        run(msgspec.structs.replace(recipe, tracer=tracer), "high-level")
    assert caught.value.problem.where.endswith(f":{line_of('the line that decides')}")


def line_of(comment: str) -> int:
    text = Path(__file__).with_name("dynamic_models.py").read_text(encoding="utf-8")
    return next(n for n, line in enumerate(text.splitlines(), 1) if comment in line)


@pytest.mark.parametrize(
    "shapes", [((5, 3), (4, 4), (2, 7)), ((5, 3), (5, 5), (2, 7))], ids=["shared", "extent"]
)
def test_the_compiled_function_refuses_shapes_that_do_not_fit(
    pipeline: Pipeline, recipe_of: RecipeOf, shapes: tuple[tuple[int, int], ...]
) -> None:
    stages = pipeline.stages(recipe_of("Two", *CASES["Two"]))
    values = [torch.zeros(shape) for shape in shapes]
    with pytest.raises(LowerscopeError, match="the argument y does not fit") as caught:
        Execution(stages.built.executable, "main", values).call()
    assert "\n" not in caught.value.problem.line()


def test_the_command_line_says_a_verdict_for_each_size(
    recipe_of: RecipeOf, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = recipe_of("Mlp", ("x=batch,12:float32",)).source.spec
    options = ["--input", "x=batch,12:float32", "--dim", "batch=1..64", "--sizes", "batch=1,7,64"]
    assert main(["run", f"{spec}:Mlp", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Matches torch at 3 sizes"
    assert [line.split()[2:5] for line in lines if "batch = " in line] == [
        [size, "✓", "matches"] for size in ("1", "7", "64")
    ]
    assert main(["run", f"{spec}:Mlp", "--json", *options]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [each["sizes"]["batch"] for each in record["sizes"]] == [1, 7, 64]
    assert main(["show", f"{spec}:Mlp", "--stage", "fx", *options[:4]]) == 0
    assert "batch×8" in capsys.readouterr().out


def test_an_exported_program_takes_names_within_its_range(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    program = torch.export.export(
        torch.nn.Linear(4, 3),
        (torch.randn(5, 4),),
        dynamic_shapes=({0: torch.export.Dim("b", min=1, max=16)},),
    )
    file = tmp_path / "linear.pt2"
    torch.export.save(program, file)
    recipe = Recipe(
        source=Source(spec=str(file)),
        inputs=(parse_input("input=n,4:float32"),),
        dimensions=(Dimension(name="n", high=16, sizes=(1, 7, 16)),),
    )
    check(pipeline.answer(RunQuery(recipe)))
    with pytest.raises(LowerscopeError, match="torch needs 1 <= n <= 16"):
        pipeline.answer(
            RunQuery(msgspec.structs.replace(recipe, dimensions=(Dimension(name="n", high=64),)))
        )
