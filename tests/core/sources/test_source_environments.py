"""Effects of a file on the process: neighbours, registrations and the files that it reads."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
import torch

from lowerscope.core.files.sources import neighbours
from lowerscope.core.model.recipe import InputSpec, Source
from lowerscope.core.sources import user_code
from lowerscope.core.sources.opened_model import LoadedModel
from tests.core.sources.test_source_python import write
from tests.opening import load

LAZY = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        import neighbour_of_mine
        return x + neighbour_of_mine.VALUE
"""
ONE = torch.ones(1, 2)


def opened(file: Path) -> LoadedModel:
    return load(Source(spec=str(file)), (InputSpec(shape=(1, 2)),), 0)


def result(loaded: LoadedModel) -> float:
    assert loaded.model is not None
    with loaded.environment():
        return float(loaded.model(ONE)[0, 0])


@pytest.fixture
def two(tmp_path: Path) -> tuple[LoadedModel, LoadedModel]:
    for name, value in (("one", 10), ("two", 20)):
        write(tmp_path / name, f"VALUE = {value}\n", "neighbour_of_mine.py")
    return tuple(opened(write(tmp_path / name, LAZY)) for name in ("one", "two"))  # type: ignore[return-value]


def test_a_kept_model_finds_its_own_neighbours(two: tuple[LoadedModel, LoadedModel]) -> None:
    one, other = two
    for _ in range(2):
        assert result(one) == 11
        assert result(other) == 21


def test_the_modules_of_a_file_are_run_once(tmp_path: Path) -> None:
    counting = "import torch\nVALUE = 1\nstate = torch.zeros(())\n"
    write(tmp_path / "one", counting, "neighbour_of_mine.py")
    text = LAZY.replace(
        "        return x",
        "        neighbour_of_mine.state += 1\n        return neighbour_of_mine.state + x",
    )
    one = opened(write(tmp_path / "one", text))
    other = opened(write(tmp_path / "two", "from torch import nn\nnet = nn.Linear(2, 2)\n"))
    assert result(one) == 3
    with other.environment():
        assert "neighbour_of_mine" not in sys.modules
    assert result(one) == 4


def test_one_thread_at_a_time_is_in_an_environment(two: tuple[LoadedModel, LoadedModel]) -> None:
    results: dict[str, set[float]] = {"one": set(), "two": set()}

    def run(name: str, loaded: LoadedModel) -> None:
        for _ in range(20):
            results[name].add(result(loaded))

    threads = [threading.Thread(target=run, args=each) for each in zip(results, two, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"one": {11}, "two": {21}}


def test_files_that_are_found_by_computing_are_known(tmp_path: Path) -> None:
    write(tmp_path / "data", "3", "width.txt")
    write(tmp_path / "parts", "WIDTH = 4\n", "late.py")
    write(tmp_path.parent / "outside", "5", "width.txt")
    file = write(
        tmp_path,
        "import importlib, pathlib\nfrom torch import nn\n"
        "here = pathlib.Path(__file__).parent\n"
        "(here / ('ma' + 'de.txt')).write_text('1')\n(here / ('ma' + 'de.txt')).read_text()\n"
        "(here.parent / 'outside' / 'width.txt').read_text()\n"
        "late = importlib.import_module('parts.' + 'la' + 'te')\n"
        "def build() -> nn.Module:\n"
        "    width = int(pathlib.Path(here, 'data', 'wid' + 'th.txt').read_text())\n"
        "    return nn.Linear(2, width)\n",
    )
    expected = {file, tmp_path / "data/width.txt", tmp_path / "parts/late.py"}
    loaded = opened(file)
    assert set(loaded.files) == expected
    (tmp_path / "data/width.txt").read_text()
    (tmp_path / "net.txt").write_text("1")
    (tmp_path / "net.txt").read_text()
    assert set(opened(file).files) == expected


def test_packages_import_nothing_from_beside_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what they look for in vain nor what they import late, but what they are given."""
    package = tmp_path / "installed"
    write(package, "VALUE = 'installed'\n", "late_of_mine.py")
    write(
        package,
        """
import importlib

def late():
    import late_of_mine
    return late_of_mine.VALUE

def missing():
    try:
        import missing_of_mine
    except ModuleNotFoundError as error:
        return error.name

def given(name):
    return importlib.import_module(name).VALUE
""",
        "package_of_mine.py",
    )
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.setattr(user_code, "_INSTALLED", (*user_code._INSTALLED, package))
    ran = "from pathlib import Path\nPath(__file__ + '.ran').touch()\nVALUE = 'beside'\n"
    for name in ("late_of_mine", "missing_of_mine", "given_of_mine", "own_of_mine"):
        write(tmp_path / "model", ran, f"{name}.py")
    text = """
import importlib
import torch
import package_of_mine as package

def told():
    import own_of_mine
    return (package.late(), package.missing(), own_of_mine.VALUE,
            package.given("given_of_mine"), importlib.import_module("missing_of_mine").VALUE)

net = torch.nn.Identity()
"""
    file = write(tmp_path / "model", text)
    assert [each.name for each in neighbours(file)] == ["own_of_mine.py", "missing_of_mine.py"]
    loaded = opened(file)
    with loaded.environment():
        modules = tuple(sys.modules.values())
        [module] = [each for each in modules if getattr(each, "__file__", "") == str(file)]
        found = module.told()
    assert found == ("installed", "missing_of_mine", "beside", "beside", "beside")
    assert not (tmp_path / "model" / "late_of_mine.py.ran").exists()
