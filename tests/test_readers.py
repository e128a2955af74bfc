# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/readers: their commands run on demo/hello and print what the page shows.

Numbers may be others, `...` stands for any text or, on a line of its own, for any lines, and /w for
the directory of the build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]
PAGES = sorted((TOP / "docs/readers").glob("*.md"))
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: a page fits one screen, as it is read in a browser
MAX_WORDS = 400


def examples(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command with the lines that it should print."""
    for block in BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            yield command, lines


def expression(lines: list[str], folder: Path) -> str:
    """Return the expression for all of an output."""
    found = ""
    for line in lines:
        if line == "...":
            found += r"(?:.*\n)*?"
            continue
        named = re.sub(r"/w(?=/|:|$)", str(folder), line)
        text = re.escape(named).replace(r"\.\.\.", ".*")
        text = re.sub(r"(?:\\ )+", " +", text)
        found += re.sub(r"\d(?:[\d,]|\\\.(?=\d))*", r"\\d[\\d.,]*", text) + r" *\n"
    return found


def environment(folder: Path) -> dict[str, str]:
    """Return that of a user whose state is in a folder."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"HOME": str(folder), "XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    return {**os.environ, **own, "PATH": programs, "LC_ALL": "C.UTF-8", "CCACHE_DISABLE": "1"}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    shutil.copytree(TOP / "demo/hello", folder)
    found = list(examples(page.read_text("utf-8")))
    assert found
    for command, lines in found:
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=environment(tmp_path), text=True, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        # advice may have nothing to say of a build that is over in a tenth of a second
        statuses = (0, 1) if command == "etrace advise" else (0,)
        assert done.returncode in statuses, (command, done.stdout)
        if lines:
            wanted = expression(lines, folder)
            assert re.fullmatch(wanted, done.stdout), (command, lines, done.stdout)


def test_another_output_would_be_noticed(tmp_path: Path) -> None:
    wanted = expression(["3 files  in /w/a", "..."], tmp_path)
    assert re.fullmatch(wanted, f"1,234 files in {tmp_path}/a\nmore\n")
    assert not re.fullmatch(wanted, f"3 file in {tmp_path}/a\n")
    assert not re.fullmatch(wanted, "more\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_is_one_screen(page: Path) -> None:
    assert len(page.read_text("utf-8").split()) <= MAX_WORDS
