# SPDX-License-Identifier: Apache-2.0
"""The documents agree with the tree: links lead to files, maps and lists are complete."""

from __future__ import annotations

import re
import runpy
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*TOP.glob("*.md"), *TOP.glob("docs/**/*.md")])
#: names that only the authors have
FOREIGN = re.compile(r"\.\./shared|/work/|\bseeds? 00\d|\bthe ancestor\b|\bissue \d", re.IGNORECASE)
#: where the demo was recorded
RECORDED = "/work/main/build/demo"
#: of a link in Markdown its target without the part behind `#`
LINK = re.compile(r"\]\(([^)#\s]*)(?:#[^)\s]*)?\)")


def _links(page: str) -> list[str]:
    """Return the targets in this tree of the links of a page; code is no link."""
    text = re.sub(r"```.*?```|`[^`]*`", "", page, flags=re.S)
    return [target for target in LINK.findall(text) if target and "://" not in target]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(TOP)))
def test_every_link_leads_to_a_file(document: Path) -> None:
    missing = [
        link for link in _links(document.read_text()) if not (document.parent / link).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(TOP)))
def test_no_document_names_what_readers_do_not_have(document: Path) -> None:
    page = document.read_text().replace(RECORDED, "")
    assert [line for line in page.splitlines() if FOREIGN.search(line)] == []


def test_the_readme_is_short() -> None:
    assert len((TOP / "README.md").read_text().split()) <= 700


def test_the_picture_of_the_demo_shows_its_transcript() -> None:
    picture = runpy.run_path(str(TOP / "demo" / "picture.py"))
    lines = picture["shown"](picture["transcript"](picture["PAGE"].read_text()))
    assert picture["PICTURE"].read_text() == picture["svg"](lines)


def test_decisions_are_numbered_without_holes_and_listed() -> None:
    folder = TOP / "docs" / "decisions"
    pages = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert [int(name[:4]) for name in pages] == list(range(1, len(pages) + 1))
    assert re.findall(r"\]\((\d.*?\.md)\)", (folder / "README.md").read_text()) == pages


def test_the_files_of_the_architecture_are_there() -> None:
    page = (TOP / "docs" / "architecture.md").read_text()
    files = re.findall(r"`([\w/]+/[\w/]+\.\w+)`", page)
    assert len(files) > 20
    assert [file for file in files if not (TOP / file).is_file()] == []


def _tracked_folders() -> set[str]:
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=TOP, capture_output=True, text=True, check=True
    ).stdout
    return {f"{Path(file).parent}/" for file in files.split("\0") if "/" in file}


def _covers(name: str, folder: str) -> bool:
    """Tell whether a name of the map stands for a folder; `**` stands for all below it."""
    return name == folder or (name.endswith("**") and folder.startswith(name[:-2]))


def test_the_map_names_every_folder_and_no_other() -> None:
    table = (TOP / "CONTRIBUTING.md").read_text().partition("| folder | content |")[2]
    cells = re.findall(r"^\| (`.*?) \|", table.partition("\n\n")[0], flags=re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    folders = sorted(_tracked_folders())
    assert [f for f in folders if not any(_covers(name, f) for name in names)] == []
    assert [name for name in names if not any(_covers(name, f) for f in folders)] == []
