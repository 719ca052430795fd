"""What a file brings into the process: neighbours, registrations and the files that it reads."""

from __future__ import annotations

import inspect
import linecache
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import tvm_ffi

from lowerscope.core.files.sources import neighbours
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.model.recipe import InputSpec, Source
from lowerscope.core.sources import user_code
from lowerscope.core.sources.opened_model import LoadedModel
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


def write(folder: Path, text: str, name: str = "net.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text)
    return file


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


def test_environments_nest_and_leave_the_path_as_it_was(
    two: tuple[LoadedModel, LoadedModel],
) -> None:
    one, other = two
    writes_none = sys.dont_write_bytecode
    before = [name for name in sys.path if "one" not in name and "two" not in name]
    with one.environment(), one.environment():
        assert sys.path[0] == str(one.path.parent)
        assert result(other) == 21
        assert sys.path[0] == str(one.path.parent)
        assert str(other.path.parent) not in sys.path
        assert result(one) == 11
    assert sys.path == [*before, str(one.path.parent)]
    assert sys.dont_write_bytecode is writes_none


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


def test_the_lines_that_were_run_come_back(tmp_path: Path) -> None:
    file = write(tmp_path / "one", LAZY)
    write(tmp_path / "one", "VALUE = 1\n", "neighbour_of_mine.py")
    one = opened(file)
    file.write_text("# edited\n" * 9 + LAZY)
    opened(write(tmp_path / "two", LAZY))
    with one.environment():
        assert linecache.getline(str(file), 5) == "class Net(nn.Module):\n"
        assert inspect.getsource(type(one.model)).startswith("class Net")


def test_folders_that_a_file_puts_on_the_path_come_back(tmp_path: Path) -> None:
    write(tmp_path / "one" / "parts", "VALUE = 5\n", "neighbour_of_mine.py")
    path = "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent / 'parts'))\n"
    one = opened(write(tmp_path / "one", path + LAZY))
    opened(write(tmp_path / "two", LAZY))
    assert result(one) == 6
    assert str(tmp_path / "one" / "parts") not in sys.path


REGISTERS = """
import torch, tvm
from torch import nn
VALUE = {value}

@tvm.register_global_func("lowerscope_test.value")
def value(): return VALUE

class Net(nn.Module):
    def forward(self, x):
        return x + tvm.get_global_func("lowerscope_test.value")()
"""


@pytest.fixture
def _plain(tmp_path: Path) -> Iterator[None]:
    """Leave the process to a file that registers nothing."""
    yield
    opened(write(tmp_path / "plain", "from torch import nn\nnet = nn.Linear(2, 2)\n"))
    assert tvm_ffi.get_global_func("lowerscope_test.value", allow_missing=True) is None


@pytest.mark.usefixtures("_plain")
def test_functions_belong_to_the_file_that_registers_them(tmp_path: Path) -> None:
    file = write(tmp_path / "one", REGISTERS.format(value=10))
    first, again = opened(file), opened(file)
    other = opened(write(tmp_path / "two", REGISTERS.format(value=20)))
    assert [result(loaded) for loaded in (first, other, again, first)] == [11, 21, 11, 11]


@pytest.mark.usefixtures("_plain")
def test_a_function_that_a_file_replaces_comes_back(tmp_path: Path) -> None:
    name = "lowerscope_test.of_the_process"
    tvm_ffi.register_global_func(name, lambda: 1)
    text = REGISTERS.replace("lowerscope_test.value", name).replace(
        'process")\n', 'process", override=True)\n', 1
    )
    one = opened(write(tmp_path / "one", text.format(value=10)))
    opened(write(tmp_path / "two", "from torch import nn\nnet = nn.Linear(2, 2)\n"))
    assert tvm_ffi.get_global_func(name)() == 1
    assert result(one) == 11
    opened(write(tmp_path / "two", "from torch import nn\nnet = nn.Linear(2, 2)\n"))
    assert tvm_ffi.get_global_func(name)() == 1
    tvm_ffi.registry.remove_global_func(name)


def test_what_a_package_registers_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "packages"
    write(
        package,
        "import tvm_ffi\ntvm_ffi.register_global_func('lowerscope_test.package', lambda: 3)\n",
        "package_of_theirs.py",
    )
    monkeypatch.syspath_prepend(package)
    text = "import package_of_theirs\nfrom torch import nn\nnet = nn.Linear(2, 2)\n"
    for _ in range(2):
        opened(write(tmp_path / "one", text))
    assert tvm_ffi.get_global_func("lowerscope_test.package")() == 3
    tvm_ffi.registry.remove_global_func("lowerscope_test.package")
    monkeypatch.delitem(sys.modules, "package_of_theirs")


LIBRARY = """
import torch
from torch import nn
lib = torch.library.Library("lowerscope_test", "DEF")
lib.define("shift(Tensor x) -> Tensor")
lib.impl("shift", lambda x: x + {value}, "CompositeExplicitAutograd")

class Net(nn.Module):
    def forward(self, x):
        return torch.ops.lowerscope_test.shift(x)
"""
CUSTOM = """
import torch
from torch import nn

@torch.library.custom_op("lowerscope_test::shift", mutates_args=())
def shift(x: torch.Tensor) -> torch.Tensor:
    return x + {value}

class Net(nn.Module):
    def forward(self, x):
        return shift(x)
"""
DEFINED = """
import torch
from torch import nn
torch.library.define("lowerscope_test::shift", "(Tensor x) -> Tensor")

@torch.library.impl("lowerscope_test::shift", "cpu")
def shift(x): return x + {value}

class Net(nn.Module):
    def forward(self, x):
        return torch.ops.lowerscope_test.shift(x)
"""


@pytest.mark.parametrize("text", [LIBRARY, CUSTOM, DEFINED])
def test_operators_of_torch_are_registered_anew(tmp_path: Path, text: str) -> None:
    file = write(tmp_path / "one", text.format(value=10))
    first = opened(file)
    assert result(first) == 11
    assert not first.spent
    again = opened(file)
    assert (first.spent, again.spent) == (True, False)
    assert result(again) == 11
    other = opened(write(tmp_path / "two", text.format(value=20)))
    assert result(other) == 21
    with pytest.raises(LowerscopeError) as caught, again.environment():
        pytest.fail("its operators are another file's")
    assert caught.value.problem.where == str(file)
    assert caught.value.problem.todo == "Open the file again"
    assert result(opened(file)) == 11
    opened(write(tmp_path / "plain", "from torch import nn\nnet = nn.Linear(2, 2)\n"))
    assert not hasattr(torch.ops.lowerscope_test, "shift")


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
