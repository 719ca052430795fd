"""What becomes of tensors that are handed to library functions: observed, not assumed."""

from __future__ import annotations

from pathlib import Path

from lowerscope.core.model.queries import RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.run_records import DlpackTransfer
from lowerscope.core.stages import Pipeline

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
