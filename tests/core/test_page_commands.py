"""The commands of the README and of the help run as they stand there, and name options that exist.

Those of the course, and of the pages that say how to add something, have tests of their own.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from lowerscope.app.kit.glossary import anchor_of
from lowerscope.core.cli.main import COMMANDS, _parser, main
from lowerscope.core.cli.recipe_options import OneLineParser, add_recipe_options

pytestmark = pytest.mark.usefixtures("shared_results")

ROOT = Path(__file__).parents[2]
HELP = ROOT / "resources" / "help"
TRANSLATED = [*sorted(HELP.glob("*_*/*.md")), *ROOT.glob("README.*.md")]
TEXT = {
    os.path.relpath(page, HELP): page.read_text("utf-8")
    for page in (*sorted(HELP.glob("*.md")), *TRANSLATED)
}
TEXT["../README.md"] = (ROOT / "README.md").read_text("utf-8")

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]+")

ELSEWHERE = {
    *("--output", "--port", "--tracker", "--key"),
    *("--json", "--version", "--store-durations"),
}
"""Options of other programs that the pages name: pytest, benchmarks, TVM's tracker and servers."""

TESTED = ("tune", "compare")
"""Commands that take long, and have tests of their own, as have dynamic shapes."""

SMALL = {"sample:resnet18": "sample:matmul_relu", "sample:conv_net": "sample:matmul_relu"}
"""Models that are opened in place of those that take long, which have tests of their own."""

MODEL = """
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


example_inputs = torch.randn(1, 16)
"""


def commands(*pages: str) -> Iterator[str]:
    """Yield the commands of pages, each once, without comments and what follows ``&&``."""
    lines = (
        line.partition(" #")[0].partition(" && ")[0].strip()
        for page in pages
        for block in _BLOCK.findall(TEXT[page])
        for line in block.splitlines()
    )
    yield from dict.fromkeys(line for line in lines if line.startswith("lowerscope "))


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    shown = (each for each in parser._actions if each.help != argparse.SUPPRESS)
    return {option for each in shown for option in each.option_strings}


def parsers() -> dict[str, argparse.ArgumentParser]:
    window = OneLineParser(prog="lowerscope")
    add_recipe_options(window)
    (below,) = (each for each in _parser()._actions if isinstance(each, argparse._SubParsersAction))
    return {"": window, **below.choices}


def test_every_command_can_be_read() -> None:
    found, parser = 0, _parser()
    for command in commands(*TEXT):
        name, *arguments = shlex.split(command)[1:]
        if name in COMMANDS:
            parser.parse_args([name, *arguments])
            found += 1
    assert found > 60


def test_every_option_is_on_a_page_and_every_option_of_a_page_is_there() -> None:
    known = {name: options_of(parser) for name, parser in parsers().items()}
    said = {option for text in TEXT.values() for option in _OPTION.findall(text)}
    for name, options in known.items():
        assert options - said - {"-h", "--help"} == set(), name
    there = set().union(*known.values()) | ELSEWHERE
    assert said - there == set()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the files that the commands name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "mine.py").write_text("")
    random = np.random.default_rng(0)
    np.savez("clothes.npz", x=random.random((5, 784), dtype=np.float32))
    export = ["export", "sample:fashion_mlp", "--what", "schedule", "--schedule", "rules"]
    assert main([*export, "--output", "saved"]) == 0
    (tmp_path / "saved" / "schedules.json").rename("matmul.json")
    return tmp_path


def test_the_commands_run_as_they_stand(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in commands("../README.md", "command-line.md", "export.md"):
        name, *arguments = (SMALL.get(word, word) for word in shlex.split(command)[1:])
        if name not in COMMANDS or name in TESTED or "--dim" in arguments:
            continue
        if name in ("run", "compare"):
            # As many calls as a second allows are not needed to see that it runs.
            arguments += ["--repeats", "2"]
        if name in ("export", "course"):
            arguments.append("--force")
        if any("graph" in each for each in arguments):
            # The other kinds of pictures are painted by the window's own code.
            arguments += ["--picture", "dot"]
        capsys.readouterr()
        code = main([name, *arguments])
        out, err = capsys.readouterr()
        # Nothing has been tuned here, which is said.
        assert code == (2 if "tuned" in arguments else 0), f"{command}\n{err}"
        assert out.strip(), command


# The links of the README and of the help: each file, each section and each picture is there


LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def headings(page: Path) -> list[str]:
    return HEADING.findall(BLOCK.sub("", page.read_text("utf-8")))


def test_every_link_leads_somewhere() -> None:
    seen = 0
    for page in (ROOT / "README.md", *HELP.glob("*.md"), *TRANSLATED):
        for link in LINK.findall(BLOCK.sub("", page.read_text("utf-8"))):
            path, _, anchor = link.partition("#")
            if link.startswith("http"):
                continue
            target = page.parent / path if path else page
            assert target.is_file(), f"{page.name}: {link}"
            if anchor:
                # A translation has the anchors of its English page.
                english = HELP / target.name if target in TRANSLATED else target
                anchors = map(anchor_of, headings(english))
                assert anchor in anchors, f"{page.name}: {link}"
            seen += 1
    assert seen > 200


# Translations: each names its English page with its hash, and has the same sections


SOURCE = re.compile(r"^<!-- Translation of (\S+) ([0-9a-f]{12}) -->$", re.MULTILINE)


def test_translations_are_as_new_as_their_english_pages() -> None:
    assert TRANSLATED
    for page in TRANSLATED:
        source = SOURCE.search(page.read_text("utf-8"))
        assert source, f"{page} does not say what it translates"
        path, told = source.groups()
        now = sha256((page.parent / path).read_bytes()).hexdigest()[:12]
        assert told == now, f"{page}: {path} has changed; update the page, then write {now}"
        assert len(headings(page)) == len(headings(page.parent / path)), page
