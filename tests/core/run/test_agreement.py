"""A set of inputs: what both sides say of each sample, over all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lowerscope.core.cli.main import main
from lowerscope.core.model.queries import AgreementQuery, RunQuery
from lowerscope.core.model.recipe import Recipe, Source
from lowerscope.core.stages import Pipeline
from lowerscope.resources import SAMPLES

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
