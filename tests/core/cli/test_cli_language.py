"""Files and ``--json`` are for other people and for programs: in English, whatever the language."""

from __future__ import annotations

import json
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


RUN = """
import contextlib, importlib, io, json, sys
from lowerscope.app import __main__ as program

# In this process, which has imported torch and TVM. Its language is fixed before what has texts is
# imported.
program._command = lambda words: importlib.import_module("lowerscope.core.cli.main").main(words)
printed = []
for line in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as text:
        assert program.main(line.split()) == 0, line
    printed.append(text.getvalue())
print(json.dumps(printed))
"""


def printed_in_chinese(folder: Path, *lines: str) -> list[str]:
    """Return what commands print, one after the other in one process."""
    chinese = {**os.environ, VARIABLE: "zh_CN"}
    done = run_warm("-c", RUN, *lines, folder=folder, environment=chinese)
    assert done.returncode == 0, done.stderr
    printed: list[str] = json.loads(done.stdout)
    return printed


def test_files_and_json_are_in_english(tmp_path: Path) -> None:
    samples, _paths = printed_in_chinese(tmp_path, "samples", EXPORT)
    printed = printed_in_chinese(tmp_path, *JSON)
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
