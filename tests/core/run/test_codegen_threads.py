"""LLVM's work by several threads: the functions are the same, wherever they are compiled."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import te, tirx
from tvm.script import ir as I
from tvm.script import tirx as T

from lowerscope.core.build import build
from lowerscope.core.build.build import compiled, llvm_modules, make_machine_code
from lowerscope.core.build.targets import make_target

TARGET = make_target("llvm", 2)


@I.ir_module
class Calling:
    """A function that calls another one, among many."""

    @T.prim_func(s_tir=True)
    def main(a: T.Buffer((4,), "float32")):
        T.func_attr({"global_symbol": "main"})
        Calling.three(T.address_of(a[0]))

    @T.prim_func(private=True, s_tir=True)
    def three(a: T.handle("float32")):
        first = T.decl_buffer((4,), data=a)
        first[0] = T.float32(3)


@pytest.fixture(autouse=True)
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MACHINE", 3)


def adding(value: int) -> tirx.PrimFunc:
    x = te.placeholder((64,), name="x")
    function = te.create_prim_func([x, te.compute((64,), lambda i: x[i] + float(value))])
    return function.with_attr("global_symbol", f"add{value}")


def test_each_thread_compiles_some_of_the_functions_and_all_are_called(tmp_path: Path) -> None:
    module = tvm.IRModule({f"add{value}": adding(value) for value in range(13)})
    executable = compiled(module, TARGET)
    parts = llvm_modules(executable.mod)
    assert [len(each["get_func_names"]()) for each in parts] == [5, 4, 4]
    make_machine_code(executable.mod)
    file = tmp_path / "all.so"
    executable.export_library(str(file))
    x = np.arange(64, dtype="float32")
    for functions in (executable.jit(), tvm.runtime.load_module(str(file))):
        for value in range(13):
            out = tvm.runtime.tensor(np.zeros(64, "float32"))
            functions.get_function(f"add{value}", query_imports=True)(tvm.runtime.tensor(x), out)
            np.testing.assert_array_equal(out.numpy(), x + value)


OPTIONS = {"cl-opt": ["-hints-allow-reordering:bool=0", "-unroll-threshold:uint=7"]}


def test_builds_with_options_of_llvm_stand_alone() -> None:
    """TVM sets such options for the process, and checks that no other build has set them."""
    module = tvm.IRModule({f"add{value}": adding(value) for value in range(13)})
    with_options = tvm.target.Target({**TARGET.export(), **OPTIONS})

    def parts(target: tvm.target.Target) -> int:
        return len(llvm_modules(compiled(module, target).mod))

    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(parts, [with_options, TARGET] * 12))
    assert made == [1, 3] * 12


def test_few_functions_and_those_that_call_one_another_stay_together() -> None:
    few = tvm.IRModule({f"add{value}": adding(value) for value in range(7)})
    assert len(llvm_modules(compiled(few, TARGET).mod)) == 1
    many = {f"add{value}": adding(value) for value in range(13)}
    executable = compiled(tvm.IRModule({**dict(Calling.functions_items()), **many}), TARGET)
    assert len(llvm_modules(executable.mod)) == 1
    given = tvm.runtime.tensor(np.zeros(4, "float32"))
    executable["main"](given)
    assert given.numpy()[0] == 3


def test_functions_whose_buffers_may_overlap_do_not_slow_down_the_others() -> None:
    """TVM takes the buffers of a whole module of LLVM for overlapping if those of one may."""
    functions = {f"add{value}": adding(value) for value in range(3)}
    functions["add1"] = functions["add1"].without_attr("tirx.noalias")
    parts = llvm_modules(compiled(tvm.IRModule(functions), TARGET).mod)
    names = [list(each["get_func_names"]()) for each in parts]
    assert [[name[-4:] for name in each] for each in names] == [["add0", "add2"], ["add1"]]
