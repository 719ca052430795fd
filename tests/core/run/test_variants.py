"""Names of variants, and how two runs differ function by function."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from PIL import Image

from lowerscope.core.cli.main import main
from lowerscope.core.files.pipelines_and_schedules import find_pipeline, variant_names
from lowerscope.core.model.comparison_records import Variant, can_be_told, fastest, ratio_of
from lowerscope.core.model.queries import AgreementQuery, RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.model.run_records import CallRun, RunRecord, RunTimes, SideTimes
from lowerscope.core.stages import Pipeline
from lowerscope.resources import SAMPLES

PLAIN = Recipe(source=Source(spec="sample:fashion_mlp"))


def changed(**fields: object) -> Recipe:
    return msgspec.structs.replace(PLAIN, **fields)


def test_a_name_says_what_differs_from_the_others() -> None:
    fused = find_pipeline("fuse").steps
    assert variant_names([PLAIN]) == ("high-level",)
    assert variant_names([PLAIN, changed(lowering="te")]) == ("high-level", "TE")
    four = [changed(lowering=each) for each in ("high-level", "te")]
    four += [msgspec.structs.replace(each, steps=fused) for each in four]
    assert variant_names(four)[2:] == ("high-level · fused", "TE · fused")
    avx2 = '{"kind": "llvm", "mattr": ["+avx2", "+fma"]}'
    targets = [changed(target=each) for each in ("llvm", "native", avx2)]
    assert variant_names(targets) == ("llvm", "native", "avx2,fma")
    skylake = changed(target='{"kind": "llvm", "mcpu": "skylake-avx512", "mattr": ["+avx2"]}')
    assert variant_names([PLAIN, skylake])[1] == "skylake-avx512 avx2"


def record(
    tvm_ms: float, *calls: CallRun, verdict: str = "match", spread: float = 0.1
) -> RunRecord:
    sides = tuple(
        SideTimes(
            side=side,
            milliseconds=ms,
            low=ms - spread / 2,
            high=ms + spread / 2,
            fastest=ms - spread,
            slowest=ms + spread,
            repeats=9,
            threads=2,
        )
        for side, ms in (("TVM", tvm_ms), ("torch", 1.0))
    )
    return RunRecord(
        verdict=verdict,
        reason="",
        max_abs_error=0.0,
        max_rel_error=0.0,
        rtol=1e-4,
        atol=1e-5,
        torch_ms=1.0,
        tvm_ms=tvm_ms,
        build_ms=1.0,
        functions=1,
        outputs=(),
        calls=calls,
        times=RunTimes(sides=sides, warm_up=2),
    )


def test_what_differs_is_not_the_fastest_and_nor_is_what_cannot_be_told_from_it() -> None:
    slow, quick = (Variant(name=str(ms), recipe=PLAIN, record=record(ms)) for ms in (2.0, 1.5))
    wrong = Variant(name="wrong", recipe=PLAIN, record=record(0.1, verdict="differ"))
    failed = Variant(name="failed", recipe=PLAIN)
    assert fastest([slow, wrong, quick, failed]) == (quick,)
    assert fastest([slow, failed]) == ()
    assert fastest([wrong, failed]) == ()
    near = Variant(name="near", recipe=PLAIN, record=record(1.55))
    noisy = Variant(name="noisy", recipe=PLAIN, record=record(1.9, spread=0.5))
    assert fastest([slow, near, noisy, quick]) == (near, noisy, quick)
    assert can_be_told(slow, quick)
    assert not can_be_told(quick, near)
    assert ratio_of(record(1.5)) == (1.5, True)
    assert ratio_of(record(1.05)) == (1.05, False)


def test_what_is_inconclusive_or_was_measured_beside_others_is_not_the_fastest() -> None:
    slow, quick = (Variant(name=str(ms), recipe=PLAIN, record=record(ms)) for ms in (2.0, 1.5))
    nothing = Variant(name="nothing", recipe=PLAIN, record=record(0.1, verdict="inconclusive"))
    assert fastest([slow, nothing, quick]) == (quick,)
    times = msgspec.structs.replace(record(0.1).times, processors=2, others=1.8)
    held = msgspec.structs.replace(record(0.1), times=times)
    beside = Variant(name="beside", recipe=PLAIN, record=held)
    # The figures stay, but nothing is stated of them.
    assert not can_be_told(slow, beside)
    assert ratio_of(held) == (0.1, False)
    assert fastest([slow, beside]) == ()
    assert fastest(
        [
            quick,
            slow,
            msgspec.structs.replace(beside, record=msgspec.structs.replace(held, tvm_ms=1.6)),
        ]
    ) == (quick,)


# A set of inputs: what both sides say of each sample, over all


MLP = Recipe(source=Source(spec="sample:fashion_mlp"))


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    """One picture of each class, that the sample was not trained on, and noise."""
    with np.load(SAMPLES / "fashion_mlp.npz") as trained:
        known = trained["pictures"].reshape(-1, 28, 28)
    noise = np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)
    return np.concatenate([known, noise])


def test_an_archive_gives_agreement_and_accuracy(
    pipeline: Pipeline, pictures: np.ndarray, tmp_path: Path
) -> None:
    labels = np.arange(len(pictures)) % 10
    path = tmp_path / "clothes.npz"
    np.savez(path, anything=pictures, labels=labels)
    record = pipeline.answer(AgreementQuery(MLP, str(path)))
    loaded = pipeline.stages(MLP).loaded
    model = loaded.model
    assert model is not None
    values = torch.from_numpy(pictures).reshape(-1, 784).float() / 255
    with torch.inference_mode():
        chosen = [int(model(each[None]).argmax()) for each in values]
    assert (record.count, record.ran, record.matching, record.compared) == (15, 15, 15, 15)
    assert (record.same_class, record.classed, record.labelled) == (15, 15, 15)
    correct = sum(each == label for each, label in zip(chosen, labels, strict=True))
    assert record.tvm_correct == record.torch_correct == correct >= 10
    errors = [each.max_abs_error or 0.0 for each in record.worst]
    assert errors == sorted(errors, reverse=True)
    assert record.max_abs_error == errors[0] < 1e-4
    # One that is listed, taken as the input, is the same run.
    worst = record.worst[0]
    run = pipeline.answer(RunQuery(Recipe(source=MLP.source, inputs=worst.inputs), True))
    assert run.max_abs_error == worst.max_abs_error
    assert run.prediction is not None
    assert run.prediction.torch == worst.torch
    assert worst.label == loaded.classes[labels[int(worst.title.split()[-1])]]


def test_a_folder_is_run_in_the_order_of_its_numbers_without_what_is_broken(
    pipeline: Pipeline, pictures: np.ndarray, tmp_path: Path
) -> None:
    for place in (1, 2, 10):
        Image.fromarray(pictures[place % 10]).resize((56, 56)).save(tmp_path / f"{place}.png")
    np.save(tmp_path / "3.npy", pictures[3])
    np.save(tmp_path / "4.npy", pictures[:2])
    (tmp_path / "5.png").write_bytes(b"no picture")
    (tmp_path / "notes.txt").write_text("not looked at")
    record = pipeline.answer(AgreementQuery(MLP, str(tmp_path)))
    assert (record.count, record.ran, record.matching) == (6, 4, 4)
    assert sorted(each.title for each in record.worst) == ["1.png", "10.png", "2.png", "3.npy"]
    assert [each.partition(":")[0] for each in record.unread] == ["4.npy", "5.png"]
    assert "it holds 2 samples" in record.unread[0]
    classes = pipeline.stages(MLP).loaded.classes
    assert {each.title: each.torch for each in record.worst}["3.npy"] == classes[3]


WRONG = """
import torch
from tvm import relax
from lowerscope.core.rules import rule

@rule(torch.nn.ReLU)
def six_at_most(builder, node, x):
    return builder.emit(relax.op.clip(x, 0, 6))
"""


def test_the_command_says_which_samples_differ(
    pictures: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rule clips where torch does not: faint pictures match, others do not."""
    rules, path = tmp_path / "rules.py", tmp_path / "set.npz"
    rules.write_text(WRONG)
    faint = (pictures[:4] * 0.01).astype(np.uint8)
    np.savez(path, x=np.concatenate([faint, pictures[:3]]), y=[0, 1, 2, 3, 0, 1, 2])
    command = ["run", "sample:fashion_mlp", "--inputs-set", str(path)]
    assert main(command) == 0
    assert "  within the tolerance of torch: 7 of 7 (100.0%)" in capsys.readouterr().out
    assert main([*command, "--rules", str(rules), "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["matching"], record["compared"]) == (4, 7)
    assert record["max_abs_error"] > 1e-2
    differing = [each["title"] for each in record["worst"] if each["verdict"] == "differ"]
    assert sorted(differing) == ["sample 4", "sample 5", "sample 6"]
    assert [each["title"] for each in record["worst"][:3]] == differing
    assert record["torch_correct"] >= 3
    assert main([*command, "--per-node"]) == 2
    assert "--per-node" in capsys.readouterr().err
