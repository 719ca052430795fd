"""LLVM IR, assembly and bytecode of what was compiled, and what ties their lines to the rest."""

from __future__ import annotations

import re

import pytest

from lowerscope.core.build.build import llvm_modules
from lowerscope.core.ir.tensorir import parts_of
from lowerscope.core.model.queries import TextQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.snapshot import TextRecord, View
from lowerscope.core.stages import Pipeline
from tests.core.large_samples import LARGE
from tests.diagonal import at_length

NESTS = """
import tvm
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module(s_tir=True)
class Nests:
    @T.prim_func(s_tir=True)
    def twice(A: T.Buffer((1000,), "float32"), C: T.Buffer((1000,), "float32")):
        B = T.sblock_alloc_buffer((1000,))
        for i in range(1000):
            with T.sblock("first"):
                v = T.axis.spatial(1000, i)
                B[v] = A[v] * T.float32(3.0)
        for i in range(1000):
            with T.sblock("second"):
                v = T.axis.spatial(1000, i)
                C[v] = B[999 - v] + T.float32(5.0)

    @T.prim_func(s_tir=True)
    def threads(A: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
        for i in T.parallel(64):
            for j in T.vectorized(64):
                with T.sblock("body"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj] * T.float32(7.0)

    @T.prim_func(s_tir=True)
    def tail(A: T.Buffer((10,), "float32"), C: T.Buffer((10,), "float32")):
        for i in range(2):
            for j in T.vectorized(8):
                with T.sblock("body"):
                    v = T.axis.spatial(10, i * 8 + j)
                    T.where(i * 8 + j < 10)
                    C[v] = A[v] * T.float32(7.0)

    @R.function
    def main(a: R.Tensor((1000,), "float32"), b: R.Tensor((64, 64), "float32")):
        cls = Nests
        with R.dataflow():
            c = R.call_tir(cls.twice, (a,), R.Tensor((1000,), "float32"))
            d = R.call_tir(cls.threads, (b,), R.Tensor((64, 64), "float32"))
            e = R.call_tir(cls.twice, (c,), R.Tensor((1000,), "float32"))
            out = (d, e)
            R.output(out)
        return out
"""


@pytest.fixture(scope="module")
def nests(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    path = tmp_path_factory.mktemp("nests") / "nests.py"
    path.write_text(NESTS)
    return Recipe(source=Source(spec=str(path)))


def sample(name: str, target: str = "llvm") -> Recipe:
    return Recipe(source=Source(spec=f"sample:{name}"), lowering="te", target=target)


def text_of(pipeline: Pipeline, recipe: Recipe, view: View, name: str) -> TextRecord:
    return pipeline.answer(TextQuery(recipe, name, view))


def lines_of(record: TextRecord, entity: str) -> list[str]:
    """Return the lines of an entity, without the remarks that the text begins with."""
    lines = record.text.split("\n")
    head = lines.index("")
    return [
        line
        for span in record.spans
        if span.entity == entity
        for line in lines[max(span.first - 1, head) : span.last]
    ]


def plain(lines: list[str]) -> list[str]:
    """Return instructions without what depends on the other functions of a library."""
    found = []
    for line in lines:
        code = re.split(r"\s#\s", line.expandtabs(1))[0].strip()
        code = re.sub(r"\.L(BB|CPI|JTI)\d+_", r".L\1_", code)
        code = re.sub(r"\.L\.str[.\d]*", ".Lstr", code)
        noise = re.match(r"\.(cfi|loc|Ltmp|Lfunc|p2align|file|type|size)|#|$", code)
        if not noise:
            found.append(re.sub(r"\s+", " ", code))
    return found


def test_code_without_optimisation_has_an_assembly(pipeline: Pipeline) -> None:
    recipe = sample("matmul_relu", '{"kind": "llvm", "opt-level": 0}')
    assert lines_of(text_of(pipeline, recipe, "asm", "te_matmul"), "tir:te_matmul")


@pytest.mark.diagonal
@pytest.mark.parametrize("target", ["llvm", "native"])
@pytest.mark.parametrize("name", ["fashion_mlp", "conv_net", *at_length(*LARGE)])
def test_each_function_has_its_own_code_and_no_other(
    name: str, target: str, pipeline: Pipeline
) -> None:
    recipe = sample(name, target)
    build = pipeline.stages(recipe).recorded
    parts = llvm_modules(build.built.executable.mod)
    library = [line for each in parts for line in each.inspect_source("asm").split("\n")]
    for function in build.tensorir:
        own = f"__tvm_ffi_{function}"
        others = {f"__tvm_ffi_{each}" for each in build.tensorir} - {own}
        llvm, asm = (text_of(pipeline, recipe, view, function) for view in ("llvm", "asm"))
        defined = re.findall(r"^define .*?@([\w.]+)\(", llvm.text, re.MULTILINE)
        labels = re.findall(r"^([\w.]+):", asm.text, re.MULTILINE)
        assert own in defined
        assert own in labels
        assert not others.intersection(defined + labels)
        # What is shown is what the library has.
        lines = asm.text.split("\n")
        for symbol in (own, f"{function}_compute_"):
            if symbol in labels:
                shown = lines[lines.index(f"{symbol}:") + 1 :]
                shown = shown[: shown.index("")] if "" in shown else shown
                begin = library.index(f"{symbol}:")
                ends = (i for i in range(begin, len(library)) if "cfi_endproc" in library[i])
                assert plain(shown) == plain(library[begin + 1 : next(ends)]), symbol


@pytest.mark.diagonal
@pytest.mark.parametrize("target", ["llvm", "native"])
@pytest.mark.parametrize("name", ["fashion_mlp", "conv_net", *at_length("transformer_block")])
def test_labels_that_carry_a_name_lie_in_the_lines_of_a_loop_of_that_name(
    name: str, target: str, pipeline: Pipeline
) -> None:
    recipe = sample(name, target)
    seen = 0
    for function, body in pipeline.stages(recipe).recorded.tensorir.items():
        record = text_of(pipeline, recipe, "llvm", function)
        loops = [part.id for part in parts_of(function, body) if part.kind == "loop"]
        covered = {span.entity for span in record.spans}
        assert covered >= set(loops), "a loop without lines has a remark"
        names = {re.sub(r"#\d+$", "", each).rsplit("/", 1)[1] for each in loops}
        for number, line in enumerate(record.text.split("\n"), start=1):
            label = re.match(r"for_body_([a-z]+\d*)(\.us|\.i)?:", line)
            if label is None or label[1] not in names:
                continue
            seen += 1
            around = [span.entity for span in record.spans if span.first <= number <= span.last]
            assert any(re.search(rf"/{label[1]}(#\d+)?$", each) for each in around), line
    assert seen


@pytest.mark.parametrize("view", ["llvm", "asm"])
def test_loops_of_the_same_name_are_told_apart(
    view: View, nests: Recipe, pipeline: Pipeline
) -> None:
    record = text_of(pipeline, nests, view, "twice")
    first, second = (lines_of(record, f"tir:twice/{block}/i") for block in ("first", "second"))
    multiply, add = ("fmul", "fadd") if view == "llvm" else ("mulps", "addps")
    assert any(multiply in line for line in first)
    assert not any(multiply in line for line in second)
    assert any(add in line for line in second)
    assert not any(re.search(rf"\b{add}\b", line) for line in first)
    # A block has the lines of the loop around it.
    assert lines_of(record, "tir:twice/first") == first


@pytest.mark.parametrize("view", ["llvm", "asm"])
def test_a_vector_loop_that_ends_early_has_its_lines(
    view: View, nests: Recipe, pipeline: Pipeline
) -> None:
    """TVM computes it element by element, in a loop of another name."""
    record = text_of(pipeline, nests, view, "tail")
    multiply = "fmul" if view == "llvm" else "mulss"
    assert any(multiply in line for line in lines_of(record, "tir:tail/body/j"))


def test_the_bytecode_is_tied_to_bindings_and_functions(nests: Recipe, pipeline: Pipeline) -> None:
    record = text_of(pipeline, nests, "bytecode", "main")
    lines = record.text.split("\n")
    assert lines[0] == "@main:"
    called = {
        span.entity: lines[span.first - 1].split()[1]
        for span in record.spans
        if span.entity.startswith("relax:main/")
    }
    assert called == {"relax:main/c": "twice", "relax:main/d": "threads", "relax:main/e": "twice"}
    twice = [span.first for span in record.spans if span.entity == "tir:twice"]
    assert [lines[number - 1].split()[1] for number in twice] == ["twice", "twice"]
