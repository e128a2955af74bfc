# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/queries.md, run on the Lua build of tests/golden."""

from __future__ import annotations

import lzma
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from etrace.cli.cas import program as cas
from etrace.parse import parse_trace

TOP = Path(__file__).parents[2]
PAGE = TOP / "docs" / "queries.md"
PROGRAM = "import sys; from etrace.cli.main import cas; sys.exit(cas())"
CAS = shlex.join([sys.executable, "-c", PROGRAM])


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a parsed build of Lua."""
    directory = tmp_path_factory.mktemp("lua")
    trace = directory / ".nfsdb"
    trace.write_bytes(lzma.decompress((TOP / "tests/golden/lua.nfsdb.xz").read_bytes()))
    parse_trace([str(trace)], str(directory / ".nfsdb.json"))
    return directory


def sessions() -> list[tuple[str, str]]:
    """Return the commands of the page's terminal sessions, each with what it printed."""
    blocks = re.findall(r"^```\n(\$ .*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    parts = (part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE))
    found = (part.partition("\n") for part in parts)
    return [(command, output) for command, _, output in found if command]


EXAMPLES = sessions()


@pytest.mark.parametrize(("command", "output"), EXAMPLES)
def test_an_example_prints_what_the_page_says(lua: Path, command: str, output: str) -> None:
    path = os.pathsep.join(sys.path)
    line = command.replace("cas", CAS, 1)
    done = subprocess.run(
        ["bash", "-c", f"exec 2>&1; {line}"], cwd=lua, env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == output


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 5


def test_every_query_is_on_a_page() -> None:
    pages = " ".join(path.read_text() for path in (TOP / "docs").glob("*.md"))
    assert [c.name for c in cas.QUERIES if not re.search(rf"(`|cas ){c.name}\b", pages)] == []
