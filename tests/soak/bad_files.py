"""Bad files of every kind that Lowerscope opens, made of good ones: each has a number."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import torch

from lowerscope.core.files.memo import Hashes
from lowerscope.core.files.pipelines_and_schedules import load_schedules, schedules_text
from lowerscope.core.files.sessions import load_session, save_session
from lowerscope.core.model.recipe import InputSpec, Recipe, Source, WindowLayout, applied_to_model
from lowerscope.core.model.schedule import At, Made, Primitive, Schedule
from tests.soak.mutating import ARCHIVE, BYTES, JSON, PICKLE, PROGRAM, Mutation, headed, spliced

MODEL = Recipe(source=Source(spec="sample:fashion_mlp"), lowering="te")

PROGRAM_TEXT = """
import tvm
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module(s_tir=True)
class Module:
    @T.prim_func(s_tir=True)
    def product(x: T.Buffer((4, 8), "float32"), w: T.Buffer((8, 4), "float32"),
                y: T.Buffer((4, 4), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i, j, k in T.grid(4, 4, 8):
            with T.sblock("y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    y[vi, vj] = T.float32(0)
                y[vi, vj] = y[vi, vj] + x[vi, vk] * w[vk, vj]

    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 4), "float32")):
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.product, (x, w), out_ty=R.Tensor((4, 4), "float32"))
            gv = R.nn.relu(lv)
            R.output(gv)
        return gv
"""


class Shell:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return os.system, (self.command,)


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    share
        Of the files of all kinds, in hundredths.
    mutations
        What is done to one.
    asked
        The recipe that a file stands for, where it can be read by the window: what its engine is
        asked for.
    """

    share: int
    mutations: Sequence[Mutation]
    asked: Callable[[Path], Recipe]


def _of_session(path: Path) -> Recipe:
    recipe = load_session(path, Hashes()).recipe
    return msgspec.structs.replace(
        recipe, source=msgspec.structs.replace(recipe.source, trust=False)
    )


def _of_schedules(path: Path) -> Recipe:
    return applied_to_model(
        msgspec.structs.replace(MODEL, schedules=load_schedules(str(path))), True
    )


def _of_input(path: Path) -> Recipe:
    return msgspec.structs.replace(MODEL, inputs=(InputSpec(name="x", file=str(path)),))


def _of_parameters(path: Path) -> Recipe:
    return msgspec.structs.replace(
        MODEL, source=Source(spec="sample:fashion_mlp", params=str(path))
    )


def _of_source(path: Path) -> Recipe:
    return Recipe(source=Source(spec=str(path)))


KINDS: Mapping[str, Kind] = {
    ".lowerscope": Kind(25, (*BYTES, *JSON, *JSON), _of_session),
    ".json": Kind(20, (*BYTES, *JSON, *JSON), _of_schedules),
    ".npz": Kind(12, (*BYTES, *ARCHIVE), _of_parameters),
    ".npy": Kind(5, (*BYTES, headed), _of_input),
    ".pkl": Kind(10, (*BYTES, *PICKLE, *PICKLE), _of_parameters),
    ".pth": Kind(8, (*BYTES, *ARCHIVE), _of_parameters),
    ".pt": Kind(5, (*BYTES, *ARCHIVE), _of_input),
    ".pt2": Kind(10, (*BYTES, *ARCHIVE), _of_source),
    ".py": Kind(5, (*BYTES, *PROGRAM), _of_source),
}


class Net(torch.nn.Module):
    """A model with a parameter, a buffer and a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.linear(x)) + torch.arange(3.0)


def write_seeds(folder: Path, marker: Path) -> dict[str, list[bytes]]:
    """Return good files of each kind, and some that would leave `marker` if they were run."""
    found: dict[str, list[bytes]] = {suffix: [] for suffix in KINDS}
    shell = Shell(f"touch {marker}")

    def take(suffix: str, write: Callable[[Path], object]) -> None:
        file = folder / f"seed{suffix}"
        write(file)
        found[suffix].append(file.read_bytes())

    schedule = Schedule(
        function="te_relu",
        primitives=(
            Primitive(id="s1", name="get_loops", arguments={"block": At(block="relu")}, on=False),
            Primitive(
                id="s2",
                name="split",
                arguments={"loop": At(block="relu", loop=1), "factors": (None, 8)},
            ),
            Primitive(id="s3", name="vectorize", arguments={"loop": Made(step="s2", output=1)}),
        ),
    )
    recipe = msgspec.structs.replace(
        applied_to_model(MODEL, True),
        schedules=(schedule,),
        inputs=(InputSpec(name="x", shape=(1, 784), dtype="float32"),),
    )
    layout = WindowLayout(
        size=(1200, 800),
        mode="step",
        widths={"step": {"pipeline": 300}},
        closed=("model",),
        drawer=200,
        selection=("fx:relu",),
    )
    take(".lowerscope", lambda file: save_session(file, recipe, layout, Hashes()))
    take(".lowerscope", lambda file: save_session(file, MODEL, layout, Hashes()))
    take(".json", lambda file: file.write_text(schedules_text([schedule])))
    arrays = {
        "w0": np.zeros((128, 784), "f4"),
        "b0": np.ones(128, "f4"),
        "w1": np.zeros((10, 128), "f4"),
        "b1": np.ones(10, "f4"),
    }
    take(".npz", lambda file: np.savez(file, **arrays))
    take(".npz", lambda file: np.savez_compressed(file, **arrays))
    objects = np.array([shell], dtype=object)
    take(".npz", lambda file: np.savez(file, w0=objects))
    take(".npy", lambda file: np.save(file, np.zeros((1, 784), "f4")))
    take(".npy", lambda file: np.save(file, objects, allow_pickle=True))
    for protocol in (0, 2, 5):
        found[".pkl"].append(pickle.dumps(arrays, protocol))
        found[".pkl"].append(pickle.dumps({"w0": shell}, protocol))
    weights = {name: torch.from_numpy(each) for name, each in arrays.items()}
    for legacy in (False, True):
        form = {"_use_new_zipfile_serialization": not legacy}
        take(".pth", lambda file, form=form: torch.save(weights, file, **form))
        take(".pth", lambda file, form=form: torch.save({"w0": shell}, file, **form))
        take(".pt", lambda file, form=form: torch.save(torch.zeros(1, 784), file, **form))
        take(".pt", lambda file, form=form: torch.save(shell, file, **form))
    torch.manual_seed(0)
    program = torch.export.export(Net().eval(), (torch.zeros(2, 4),))
    take(".pt2", lambda file: torch.export.save(program, file))
    take(".py", lambda file: file.write_text(PROGRAM_TEXT))
    return found


def bad_file(seeds: Mapping[str, Sequence[bytes]], suffix: str, number: int) -> bytes:
    """Return the bad file of a kind that has a number: the same one each time."""
    random = Random(f"{suffix} {number}")
    data = random.choice(seeds[suffix])
    if random.random() < 0.06:
        return spliced(data, random.choice(random.choice(list(seeds.values()))), random)
    for _ in range(random.choice((1, 1, 1, 2))):
        data = random.choice(KINDS[suffix].mutations)(data, random)
    return data


def numbers(total: int) -> Iterator[tuple[str, int]]:
    """Yield the kinds and the numbers of so many bad files, each kind by its share."""
    for suffix, kind in KINDS.items():
        for number in range(max(1, total * kind.share // 100)):
            yield suffix, number
