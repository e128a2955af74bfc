# SPDX-License-Identifier: Apache-2.0
"""The documents agree with the tree: links lead to files, maps, lists and defences are complete."""

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
#: of a link in Markdown its target without the part after `#`
LINK = re.compile(r"\]\(([^)#\s]*)(?:#[^)\s]*)?\)")


def _links(page: str) -> list[str]:
    """Return the targets in this tree of the links of a page; links in code do not count."""
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


def test_every_decision_is_listed_with_the_page_that_has_it() -> None:
    folder = TOP / "docs" / "decisions"
    written = [
        (number, page.name)
        for page in folder.glob("[0-9]*.md")
        for number in re.findall(r"^##? (\d+)\. ", page.read_text(), re.MULTILINE)
    ]
    listed = re.findall(r"^- \[(\d+)\]\((.*?)\)", (folder / "README.md").read_text(), re.MULTILINE)
    assert listed == sorted(written, key=lambda entry: int(entry[0]))


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
    """Return whether a name of the map stands for a folder; `**` stands for all below it."""
    return name == folder or (name.endswith("**") and folder.startswith(name[:-2]))


def test_the_map_names_every_folder_and_no_other() -> None:
    table = (TOP / "CONTRIBUTING.md").read_text().partition("| folder | content |")[2]
    cells = re.findall(r"^\| (`.*?) \|", table.partition("\n\n")[0], flags=re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    folders = sorted(_tracked_folders())
    assert [f for f in folders if not any(_covers(name, f) for name in names)] == []
    assert [name for name in names if not any(_covers(name, f) for f in folders)] == []


# ---- docs/security.md names a test in every row

#: without the tables of the sandbox and of programs that run: test_programs_run.py
SECURITY = re.sub(
    r"^## The sandbox\n.*?(?=^## A fleet)", "", (TOP / "docs/security.md").read_text(),
    flags=re.DOTALL | re.MULTILINE,
)  # fmt: skip
ROWS = [
    line
    for line in SECURITY.splitlines()
    if line.startswith("| ") and not line.startswith("| who ")
]
#: what is between backquotes in the last cell: a file, a test of one, or both
NAMED = re.compile(r"`([\w/]+\.py)?(?:::)?(?:\.\.)?(test_\w+|\w+)?(?:\.\.)?`")


def _files(name: str) -> list[Path]:
    return list(TOP.glob(name)) or list(TOP.glob(f"tests/**/{name}"))


@pytest.mark.parametrize("row", ROWS)
def test_each_defence_names_tests_that_are_there(row: str) -> None:
    last = row.rstrip("| ").rpartition(" | ")[2]
    named = NAMED.findall(last)
    assert named or "](" in last, "neither a test nor a documented limit"
    sources = ""
    for file, test in named:
        if file:
            found = _files(file)
            assert found, f"{file} is not there"
            sources = "".join(path.read_text() for path in found)
        if test:
            assert re.search(rf"def \w*{test}", sources), f"{test} is not in {file or 'the file'}"


def test_the_page_has_rows() -> None:
    assert len(ROWS) > 20
