# SPDX-License-Identifier: Apache-2.0
"""What the commands import before they work: a slow module costs every call of every script.

`etrace run`, which imports less still, is in commands/test_run.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import databases
import pytest
from builders import TraceBuilder

BIN = Path(sys.executable).parent
#: modules of Python that cost 5 to 50 million instructions each; an empty Python takes 39
SLOW = {
    "dataclasses",  # with inspect, ast and dis
    "importlib.metadata",
    "inspect",
    "shutil",  # with bz2 and lzma
    "signal",
    "subprocess",
    "tempfile",
    "threading",
}
JSON_OUT = {"etrace.nfsdb.to_json", "libetrace.convert.exporter"}
JSON_IN = {"etrace.nfsdb.from_json", "libetrace.convert.importer"}


def imported(name: str, *args: str | Path) -> set[str]:
    """Return what a command imports after Python has started."""
    command = [sys.executable, "-X", "importtime", BIN / "etrace_start", name, *args]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    own = done.stderr.partition(" site\n")[2].splitlines()
    return {line.rpartition("|")[2].strip() for line in own if line.startswith("import time:")}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    upid = 1 << 22 | 1
    built = TraceBuilder().exec(upid, "/bin/true", ["true"]).open(upid, "/etc/passwd").exit(upid)
    (tmp_path / ".nfsdb").write_bytes(built.trace())
    return tmp_path / ".nfsdb"


def test_the_parser_starts_without_slow_imports(trace: Path) -> None:
    found = imported("etrace_parser", trace, trace.with_name("out.json"))
    assert found & (SLOW | JSON_IN) == set()
    assert found >= JSON_OUT


def test_cas_parse_starts_without_slow_imports(trace: Path) -> None:
    found = imported("cas", "--dbdir", trace.parent, "parse")
    assert found & (SLOW | JSON_IN | JSON_OUT) == set()
    assert "libetrace.trace.parser" in found


@pytest.mark.parametrize("options", [(), ("--all",)])
def test_cas_deps_starts_without_slow_imports(tmp_path: Path, options: tuple[str, ...]) -> None:
    databases.write_database(tmp_path)
    found = imported("cas", "--dbdir", tmp_path, "deps", *options, "/src/hello")
    assert found & (SLOW | JSON_IN | JSON_OUT) == set()
    assert "libetrace.depend.graph" in found


@pytest.mark.parametrize(
    "words",
    [["info"], ["version"], ["commands"], ["binaries"], ["linked-modules"], ["compiled"]],
    ids=" ".join,
)
def test_cas_starts_without_slow_imports(tmp_path: Path, words: list[str]) -> None:
    databases.write_database(tmp_path)
    found = imported("cas", words[0], "--db", tmp_path, *words[1:])
    assert found & (SLOW | JSON_IN | JSON_OUT | {"etrace.compilers.tools"}) == set()
