"""The links of the README and of the help: each file, each section and each picture is there."""

from __future__ import annotations

import re
from pathlib import Path

from lowerscope.app.shell.help_pages import anchor_of
from lowerscope.resources import HELP

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def test_every_link_leads_somewhere() -> None:
    seen = 0
    for page in (ROOT / "README.md", *HELP.glob("*.md")):
        for link in LINK.findall(BLOCK.sub("", page.read_text("utf-8"))):
            path, _, anchor = link.partition("#")
            if link.startswith("http"):
                continue
            target = page.parent / path if path else page
            assert target.is_file(), f"{page.name}: {link}"
            if anchor:
                headings = HEADING.findall(BLOCK.sub("", target.read_text("utf-8")))
                assert anchor in map(anchor_of, headings), f"{page.name}: {link}"
            seen += 1
    assert seen > 200


def test_every_page_is_linked_from_the_contents_and_from_another_page() -> None:
    pages = [ROOT / "README.md", *HELP.glob("*.md")]
    linked = {
        page: {link.partition("#")[0].rpartition("/")[2] for link in LINK.findall(page.read_text())}
        for page in pages
    }
    for page in pages:
        if page.name != "README.md":
            assert page.name in linked[HELP / "README.md"], page.name
            others = (linked[each] for each in pages if each not in (page, HELP / "README.md"))
            assert any(page.name in links for links in others), f"nothing leads to {page.name}"
