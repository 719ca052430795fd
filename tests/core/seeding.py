"""Faults that are put into the lowering of the samples on purpose, and the node that they start at.

Torch has none of them: each is made by what a user can write, a rule, a pass or a schedule, and
comes as the options of the command line that have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lowerscope.core.files.pipelines_and_schedules import save_schedules
from lowerscope.core.model.schedule import At, Primitive, Schedule
from lowerscope.resources import SAMPLES

LOWERINGS = ("high-level", "te")

FEW = ("--repeats", "3", "--warm-up", "1")
"""Options for runs whose times do not matter."""

Place = tuple[str, str, int]
"""A function, a block, and a loop around it."""


@dataclass(frozen=True)
class Sample:
    """Places in a sample for faults.

    Attributes
    ----------
    model
        Name of its class.
    features
        How many there are along the second axis of its output, for a batch norm.
    weight
        Which of the constants of ``main`` that are no vectors is spoilt, and the node that has it.
    reduction
        Function, block and loop of a reduction, by lowering, and the node that it computes.
    size
        Of its square matrices, where it is made smaller than it is.
    """

    model: str
    features: int
    weight: tuple[int, str]
    reduction: tuple[Mapping[str, Place], str]
    size: int | None = None


def _matmul(
    high_level: str, te: str, block: str, loop: int = 2
) -> Mapping[str, tuple[str, str, int]]:
    return {"high-level": (high_level, "matmul", loop), "te": (te, block, loop)}


_CONV = dict.fromkeys(("high-level", "te"), ("conv2d", "conv2d_nchw", 5))

SAMPLES_OF_TORCH: Mapping[str, Sample] = {
    "matmul": Sample(
        "Matmul", 64, (0, "matmul"), (_matmul("matmul", "te_matmul", "matmul"), "matmul"), size=64
    ),
    "matmul_relu": Sample(
        "MatmulRelu", 128, (0, "matmul"), (_matmul("matmul", "te_matmul", "matmul"), "matmul")
    ),
    "fashion_mlp": Sample(
        "FashionMLP", 10, (1, "linear1"), (_matmul("matmul1", "dense1", "T_matmul_NT"), "linear1")
    ),
    "conv_net": Sample("ConvNet", 10, (1, "linear0"), (_CONV, "conv")),
    "transformer_block": Sample(
        "TransformerBlock",
        64,
        (2, "attention_value"),
        (_matmul("matmul2", "dense1", "dense", 3), "linear0"),
    ),
    "resnet18": Sample("ResNet18", 1000, (3, "layer1_1_conv1"), (_CONV, "conv1")),
}
"""The samples that have a side of torch."""

_VARIANT = """
import importlib.util

import torch
from torch import nn

found = importlib.util.spec_from_file_location("the_sample", {file!r})
sample = importlib.util.module_from_spec(found)
found.loader.exec_module(sample)
example_inputs = sample.example_inputs


class Variant(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = sample.{model}({arguments})
        {part}

    def forward(self, x):
        y = self.inner(x)
        y = {call}
        return y * 0.5 + 1


entry = "Variant"
"""

_RULE = """
import torch
from tvm import relax

from lowerscope.core.rules import rule


@rule({of})
def faulty(builder, node, x, *more, **options):
{body}
"""

_SPOIL = """
import tvm
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator, mutator


@mutator
class Spoiler(PyExprMutator):
    def __init__(self, module, which):
        super().__init__(module)
        self.left = which

    def visit_generic_const_(self, constant):
        if len(constant.value.shape) < 2:
            return constant
        self.left -= 1
        if self.left != -1:
            return constant
        values = constant.value.numpy().copy()
        values[0] *= -2
        return relax.const(values)


def wrong_weight(which: int) -> tvm.transform.Pass:
    @tvm.transform.module_pass(opt_level=0)
    def spoil(module, context):
        spoilt = Spoiler(module, which).visit_expr(module["main"])
        module = tvm.IRModule(module.functions, attrs=module.attrs)
        module.update_func(module.get_global_var("main"), spoilt)
        return module

    return spoil
"""


def _smaller(name: str, *, whole: bool = True) -> Sequence[str]:
    """Return the options that make a sample smaller, the `whole` of it or its input alone."""
    size = SAMPLES_OF_TORCH[name].size
    if name == "resnet18":
        return ("--input", "x=1,3,64,64:float32")
    if size is None:
        return ()
    arguments = ("--args", f'{{"size": {size}}}') if whole else ()
    return (*arguments, "--input", f"x={size},{size}:float32")


Seeded = tuple[Sequence[str], str]
"""The options that have the fault, the source first, and the name of the node where it starts."""


def wrong_weight(name: str, folder: Path, lowering: str) -> Seeded:
    """Let a pass change the first row of a weight."""
    which, node = SAMPLES_OF_TORCH[name].weight
    path = folder / "spoil.py"
    path.write_text(_SPOIL)
    own = ("--passes", str(path), "--pass", f"spoil.wrong_weight:which={which}")
    return (f"sample:{name}", "--lowering", lowering, *own, *_smaller(name)), node


def partitioned_reduction(name: str, folder: Path, lowering: str) -> Seeded:
    """Partition the loop of a reduction, which computes something else and has to be forced."""
    places, node = SAMPLES_OF_TORCH[name].reduction
    function, block, loop = places[lowering]
    place = At(block=block, loop=loop)
    step = Primitive(
        id="s1", name="loop_partition", arguments={"loop": place, "factors": (2, None)}, forced=True
    )
    path = save_schedules(
        [Schedule(function=function, primitives=(step,))], str(folder / "partition.json")
    )
    own = ("--schedule", str(path))
    return (f"sample:{name}", "--lowering", lowering, *own, *_smaller(name)), node


def _rules(folder: Path, of: str, body: str) -> Sequence[str]:
    path = folder / "faulty.py"
    indented = "\n".join(f"    {each}" for each in body.splitlines())
    path.write_text(_RULE.format(of=of, body=indented))
    return ("--rules", str(path))


def _with_call(
    name: str, folder: Path, lowering: str, call: str, part: str = "pass"
) -> Sequence[str]:
    """Return the options of a sample with one more call after it."""
    sample = SAMPLES_OF_TORCH[name]
    path = folder / f"{name}_variant.py"
    path.write_text(
        _VARIANT.format(
            file=str(SAMPLES / f"{name}.py"),
            model=sample.model,
            arguments=sample.size or "",
            part=part,
            call=call,
        )
    )
    return (str(path), "--lowering", lowering, *_smaller(name, whole=False))


def dropped_alpha(name: str, folder: Path, lowering: str) -> Seeded:
    """Let a rule for ``torch.add`` forget about ``alpha``."""
    rules = _rules(folder, "torch.add", "return builder.emit(relax.op.add(x, more[0]))")
    model = _with_call(name, folder, lowering, "torch.add(y, y, alpha=3)")
    # Nodes are counted: the sample has additions of its own.
    node = {"transformer_block": "add_2", "resnet18": "add_8"}.get(name, "add")
    return (*model, *rules), node


def training_batch_norm(name: str, folder: Path, lowering: str) -> Seeded:
    """Let a rule for batch norm take the mean of the batch, as in training."""
    body = """norm = node.module
values = (norm.weight, norm.bias, norm.running_mean, norm.running_var)
constants = [builder.constant(each) for each in values]
return builder.emit(relax.op.nn.batch_norm(x, *constants, axis=1, training=True)[0])"""
    if name == "resnet18":
        own = _rules(folder, "torch.nn.BatchNorm2d", body)
        return (f"sample:{name}", "--lowering", lowering, *own, *_smaller(name)), "bn1"
    part = f"self.norm = nn.BatchNorm1d({SAMPLES_OF_TORCH[name].features})"
    model = _with_call(name, folder, lowering, "self.norm(y)", part)
    return (*model, *_rules(folder, "torch.nn.BatchNorm1d", body)), "norm"


def half_overflow(name: str, folder: Path, lowering: str) -> Seeded:
    """Let a rule compute in float16 what is too large for it."""
    body = """large = relax.op.multiply(relax.op.abs(x), relax.const(1e6, "float32"))
half = relax.op.astype(large, "float16")
back = relax.op.astype(half, "float32")
return builder.emit(relax.op.multiply(back, relax.const(1e-6, "float32")))"""
    model = _with_call(name, folder, lowering, "torch.abs(y)")
    return (*model, *_rules(folder, "torch.abs", body)), "abs_1"


def not_a_number(name: str, folder: Path, lowering: str) -> Seeded:
    """Let a rule take the root of what is negative."""
    body = """negative = relax.op.subtract(x, relax.const(1e6, "float32"))
return builder.emit(relax.op.sqrt(negative))"""
    model = _with_call(name, folder, lowering, "torch.abs(y)")
    return (*model, *_rules(folder, "torch.abs", body)), "abs_1"


FAULTS: Mapping[str, Callable[[str, Path, str], Seeded]] = {
    "wrong weight": wrong_weight,
    "partitioned reduction": partitioned_reduction,
    "dropped alpha": dropped_alpha,
    "training batch norm": training_batch_norm,
    "half overflow": half_overflow,
    "not a number": not_a_number,
}
