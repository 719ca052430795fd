"""Files and ``--json`` are for other people and for programs: in English, whatever the language."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lowerscope.core.model.texts import VARIABLE
from tests.warm_processes import run_warm

MODEL = "sample:fashion_mlp"

EXPORT = (
    f"export {MODEL} --output files --pipeline fuse --schedule rules --level none --picture "
    "dot,graphml,json --what module,script,builder,fx,step,patch,function,schedule,reproduce,"
    "fx-graph,relax-graph,report"
)

JSON = (
    "targets --json",
    f"run {MODEL} --per-node --repeats 3 --json",
    f"tune {MODEL} --trials 0 --js",
    f"bisect {MODEL} --json",
)
"""One of each kind: all commands choose the language in the same place."""

CHINESE = re.compile(r"[\u2e80-\uffef]")


def test_files_and_json_are_in_english(tmp_path: Path) -> None:
    printed = []
    for line in ("samples", EXPORT, *JSON):
        # Each in a process of its own, as its language is fixed when it starts.
        words = ("-m", "lowerscope.app", *line.split())
        chinese = {**os.environ, VARIABLE: "zh_CN"}
        done = run_warm(*words, folder=tmp_path, environment=chinese)
        assert done.returncode == 0, line
        printed.append(done.stdout)
    samples, _paths, *printed = printed
    assert CHINESE.search(samples)
    written = {path.name: path.read_bytes() for path in tmp_path.glob("files/**/*.*")}
    found = dict(zip(JSON, printed, strict=True))
    for name, content in written.items():
        if not name.endswith((".npz", ".so")):
            found[name] = content.decode()
    assert len(found) > 24
    assert all(found.values())
    wrong = {
        name: line
        for name, text in found.items()
        for line in text.split("\n")
        if CHINESE.search(line)
    }
    assert wrong == {}
