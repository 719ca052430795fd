"""Targets: what each changes, which cannot be, and which cannot run here."""

from __future__ import annotations

import pytest

from lowerscope.core.build.targets import FEATURES, hindrance, make_target, target_record
from lowerscope.core.cli import main
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.texts import enumeration

PI = '{"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76"}'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("llvm -mcpu=skylark", "no processor of x86_64 called skylark. Did you mean skylake"),
        ("llvm -speed=11", "'-speed=11' is not an option of a target"),
        ('{"kind": "llvm", "mtriple": "vax-dec-vms"}', "no architecture called vax"),
        ('{"kind": "llvm", "mattr": ["+avx2", "+warp"]}', "no feature of x86_64 called warp"),
        ('{"kind": "llvm", "speed": 11}', "Unknown config option 'speed'"),
        ("cuda", "of kind cuda; only processors"),
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


def test_what_this_machine_lacks_is_named() -> None:
    assert hindrance(make_target("native", 0)) == hindrance(make_target("llvm", 0)) == ""
    assert "it is for aarch64" in target_record(PI, 0).hindrance
    own = set(target_record("native", 0).features)
    amx = target_record("llvm -mcpu=sapphirerapids", 0)
    missing = [name for name in FEATURES.values() if name in set(amx.features) - own]
    lacks = f"this machine lacks {enumeration(missing)}" if missing else ""
    assert amx.hindrance == lacks


def test_another_architecture_is_built_and_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample:matmul_relu", "--target", PI, "--schedule", "rules"]
    assert main.main(["show", *words, "--stage", "asm"]) == 0
    assert "fmla" in capsys.readouterr().out
    assert main.main(["run", *words]) == 2
    refused = capsys.readouterr().err.strip().splitlines()
    assert len(refused) == 1
    assert "it is for aarch64, and this machine is x86_64" in refused[0]
    assert "--tracker HOST:PORT --key KEY" in refused[0]
