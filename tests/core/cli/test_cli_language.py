"""Files and ``--json`` are for other people and for programs: in English, whatever the language."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from lowerscope.core.model.texts import VARIABLE

MODEL = "sample:fashion_mlp"

EXPORT = (
    f"export {MODEL} --output files --pipeline fuse --schedule rules --level none --picture "
    "dot,graphml,json --what module,script,builder,fx,step,patch,function,schedule,reproduce,"
    "fx-graph,relax-graph,report"
)

JSON = (
    "targets --json",
    f"show {MODEL} --stage translation --node linear0 --json",
    f"run {MODEL} --per-node --repeats 3 --json",
    f"compare {MODEL} --pipeline fuse --schedule none --schedule rules --repeats 3 --json",
    f"passes {MODEL} --step 1 --diff --json",
    f"schedule {MODEL} --rules --check --json",
    f"tune {MODEL} --trials 0 --js",
    f"why {MODEL} --nodes linear0 linear1 --pipeline fuse --json",
    f"why {MODEL} --function fused_matmul_add_relu1 --pipeline optimise-cpu --json",
    f"bisect {MODEL} --json",
)

# Each command in a process of its own, as its language is fixed when it starts; the libraries,
# which have no texts, are imported once.
COMMANDS = """
import os, sys
import torch, tvm, tvm.relax, tvm.s_tir

for number, line in enumerate(sys.stdin.read().splitlines()):
    child = os.fork()
    if not child:
        os.dup2(os.open(f"{number}.out", os.O_WRONLY | os.O_CREAT), 1)
        from lowerscope.app.__main__ import main
        code = main(line.split())
        sys.stdout.flush()
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0, line
"""

CHINESE = re.compile(r"[\u2e80-\uffef]")


def test_files_and_json_are_in_english(tmp_path: Path) -> None:
    lines = ("samples", EXPORT, *JSON)
    subprocess.run(
        [sys.executable, "-c", COMMANDS],
        input="\n".join(lines),
        cwd=tmp_path,
        env={**os.environ, VARIABLE: "zh_CN"},
        text=True,
        check=True,
    )
    samples, _paths, *printed = (
        (tmp_path / f"{number}.out").read_text(encoding="utf-8") for number in range(len(lines))
    )
    assert CHINESE.search(samples)
    written = {path.name: path.read_bytes() for path in tmp_path.glob("files/**/*.*")}
    found = dict(zip(JSON, printed, strict=True))
    for name, content in written.items():
        if not name.endswith((".npz", ".so")):
            found[name] = content.decode()
    assert len(found) > 30
    assert all(found.values())
    wrong = {
        name: line
        for name, text in found.items()
        for line in text.split("\n")
        if CHINESE.search(line)
    }
    assert wrong == {}
