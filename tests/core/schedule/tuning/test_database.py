"""The traces of an earlier tuning are opened again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import tvm
from tvm import te
from tvm.s_tir import Schedule, meta_schedule

from lowerscope.core.build.targets import make_target
from lowerscope.core.lowering.legal_forms import extremum, make_known
from lowerscope.core.run.tuning.database import Database

make_known()
x = te.placeholder((16, 64), "float32")
k = te.reduce_axis((0, 64))
largest = te.compute((16,), lambda i: extremum(True)(x[i, k], axis=k), name="largest")
module = tvm.IRModule({"main": te.create_prim_func([x, largest])})
schedule = Schedule(module)
_, loop = schedule.get_loops(schedule.get_sblock("largest"))
_, inner = schedule.split(loop, (None, 4))
schedule.rfactor(inner, 1)
database = Database(make_target("llvm", 1), 1)
record = meta_schedule.database.TuningRecord(
    schedule.trace, database.traces.commit_workload(module), [1e-6]
)
database.traces.commit_tuning_record(record)
database.close()

records = database.folder / "database_tuning_record.json"
whole = records.read_text()
print(len(Database(make_target("llvm", 1), 1).traces))
# Nor do lines that are no traces stand in the way.
records.write_text(f'[9, []]\\n{whole}["no trace"]\\n')
print(len(Database(make_target("llvm", 1), 1).traces), records.read_text() == whole)
"""


def test_a_trace_with_a_reducer_from_python_is_opened_again(tmp_path: Path) -> None:
    # One that hangs has to be ended from outside.
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "1\n1 True\n"), ended.stderr
