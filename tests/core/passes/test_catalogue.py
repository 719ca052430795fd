"""The catalogue: all passes of TVM, with options as fields."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tvm
import tvm_ffi
from tvm import relax, s_tir, tirx

from lowerscope.core.model.recipe import OptionValue, Step
from lowerscope.core.passes.catalogue import arguments_of, catalogue
from lowerscope.core.passes.transforming import transform
from tests.core.passes.test_following import Model


def functions_of(module: Any) -> Iterator[str]:
    """Yield the names of the functions of a module that make passes, by what they are in TVM."""
    for name, value in vars(module).items():
        if inspect.isfunction(value) and name[0].isupper():
            yield name


@pytest.mark.parametrize(
    ("prefix", "module"),
    [("", relax.transform), ("tirx.", tirx.transform), ("s_tir.", s_tir.transform)],
)
def test_every_pass_of_tvm_is_listed_with_its_docstring(prefix: str, module: Any) -> None:
    for name in functions_of(module):
        record = catalogue()[prefix + name].type
        assert record.summary
        assert record.doc == inspect.getdoc(getattr(module, name))


def test_every_pass_without_a_hindrance_can_be_made(tmp_path: Path) -> None:
    fields: dict[tuple[str, str], OptionValue] = {
        ("BindSymbolicVars", "binding_map"): ("n=4",),
        ("ConvertLayout", "desired_layouts"): ("relax.nn.conv2d=NHWC OHWI",),
        ("IPCAllReduceRewrite", "allreduce_strategy"): 1,
        ("tirx.BindTarget", "target"): "llvm",
        ("tirx.NarrowDataType", "target_bits"): 32,
        ("s_tir.ThreadSync", "storage_scope"): "shared",
    }
    required = {
        (name, option.name)
        for name, found in catalogue().items()
        for option in found.type.options
        if option.required
    }
    assert required == set(fields)
    # One of them reads a database that has to be there.
    for file in ("database_workload.json", "database_tuning_record.json"):
        (tmp_path / file).touch()
    fields["MetaScheduleApplyDatabase", "work_dir"] = str(tmp_path)
    # One of them looks the target up when it is made.
    with tvm.target.Target("llvm"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, found in catalogue().items():
            if found.type.hindrance:
                continue
            values = {option: value for (of, option), value in fields.items() if of == name}
            arguments = arguments_of(found.options, values, name)
            if found.given:
                arguments[found.given] = {}
            assert isinstance(found.make(**arguments), tvm.transform.Pass), name


def test_options_of_the_pass_context_are_those_of_their_pass() -> None:
    records = {each.record.name: each.record for each in catalogue()["tirx.UnrollLoop"].options}
    assert records["auto_max_depth"].kind == "int"
    assert records["auto_max_depth"].default == 8
    assert "nested level" in records["auto_max_depth"].doc
    begin = (Step(name="LegalizeOps"), Step(name="AnnotateTIROpPattern"))
    given = transform(Model, begin).module
    for options in ({}, {"max_depth": 1}):
        found = transform(given, (Step(name="FuseOps", options=options),))
        found.check()
        config = {f"relax.FuseOps.{name}": value for name, value in options.items()}
        with tvm.transform.PassContext(opt_level=3, config=config):
            assert tvm_ffi.structural_equal(found.module, relax.transform.FuseOps()(given))
        groups = sum(
            bool(function.attrs.get("Primitive"))
            for _, function in found.module.functions_items()
            if isinstance(function, relax.Function) and function.attrs is not None
        )
        # Of one function each, nothing is a group.
        assert bool(groups) == (not options)
    unrolled = transform(given, (Step(name="tirx.UnrollLoop", options={"auto_max_step": "many"}),))
    assert unrolled.problem is not None
    assert "auto_max_step cannot be 'many'" in unrolled.problem.what
