"""Targets: what each changes, which cannot be, and which cannot run here."""

from __future__ import annotations

import json

import pytest

from lowerscope.core.build.targets import FEATURES, hindrance, make_target, target_record
from lowerscope.core.cli import main
from lowerscope.core.model.machines import MACHINE
from lowerscope.core.model.problems import LowerscopeError

PI = '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76"}'


def test_the_catalogue_says_what_each_target_changes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["targets", "--json", "--threads", "3"]) == 0
    records = {each["text"]: each for each in json.loads(capsys.readouterr().out)}
    by_cpu = {each["cpu"]: each for each in records.values()}
    widths = [by_cpu[name]["lanes"] for name in ("x86-64-v3", "skylake-avx512", "cortex-a76")]
    assert widths == [8, 16, 4]
    assert "AVX-512 VNNI" in by_cpu["sapphirerapids"]["features"]
    assert "AVX-512 VNNI" not in by_cpu["skylake-avx512"]["features"]
    assert by_cpu["cortex-a76"]["registers"] == 32
    assert records["llvm"]["threads"] == 3
    assert records["llvm"]["hindrance"] == records["native"]["hindrance"] == ""
    assert main.main(["targets", PI, "llvm -mcpu=skylake -num-cores=6"]) == 0
    printed = capsys.readouterr().out
    assert "dot product" in printed
    assert printed.splitlines()[3].split()[3:9] == ["x86_64", "skylake", "256", "bits", "8", "16"]
    assert printed.splitlines()[3].split()[9] == "6"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("llvm -mcpu=skylark", "no processor of x86_64 called skylark. Did you mean skylake"),
        ("llvm -speed=11", "'-speed=11' is no option of a target"),
        ('{"kind": "llvm", "mtriple": "vax-dec-vms"}', "no architecture called vax"),
        ('{"kind": "llvm", "mattr": ["+avx2", "+warp"]}', "no feature of x86_64 called warp"),
        ('{"kind": "llvm", "speed": 11}', "Unknown config option 'speed'"),
        ("cuda", "of kind cuda, and only processors"),
        ("nonsense", "TVM does not know the target 'nonsense'"),
        ("", "TVM does not know the target ''"),
    ],
)
def test_a_wrong_target_is_refused_in_one_line(text: str, told: str) -> None:
    with pytest.raises(LowerscopeError) as caught:
        make_target(text, 0)
    line = caught.value.problem.line()
    assert told in line
    assert line.startswith("--target")
    assert "\n" not in line


def test_the_number_of_threads_is_in_the_target() -> None:
    assert int(make_target("llvm", 1).attrs["num-cores"]) == 1
    assert "num-cores" not in make_target("llvm", 0).attrs
    assert int(make_target("native", 0).attrs["num-cores"]) == MACHINE
    # What was typed with a number of cores keeps it: it is another machine's.
    assert int(make_target("llvm -num-cores=7", 2).attrs["num-cores"]) == 7


def test_what_this_machine_lacks_is_named() -> None:
    assert hindrance(make_target("native", 0)) == hindrance(make_target("llvm", 0)) == ""
    assert "it is for aarch64" in target_record(PI, 0).hindrance
    own = set(target_record("native", 0).features)
    amx = target_record("llvm -mcpu=sapphirerapids", 0)
    missing = [name for name in FEATURES.values() if name in set(amx.features) - own]
    assert amx.hindrance == (f"this machine has no {', no '.join(missing)}" if missing else "")


def test_another_architecture_is_built_and_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample:matmul_relu", "--target", PI, "--schedule", "rules"]
    assert main.main(["show", *words, "--stage", "asm"]) == 0
    assert "fmla" in capsys.readouterr().out
    assert main.main(["run", *words]) == 2
    refused = capsys.readouterr().err.strip().splitlines()
    assert len(refused) == 1
    assert "it is for aarch64, and this machine is x86_64" in refused[0]
    assert "--tracker HOST:PORT --key KEY" in refused[0]
