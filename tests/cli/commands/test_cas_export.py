# SPDX-License-Identifier: Apache-2.0
"""`cas export compile_commands`; the other formats are in test_cas_parse.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from compiling import BuildTeller, write_database

from etrace.cli.main import cas
from etrace.nfsdb.store import open_database
from etrace.postprocess import config, run

EXPECTED = [
    {
        "directory": "/src",
        "arguments": ["gcc", "-c", "a.c"],
        "file": "/src/a.c",
        "output": "/src/a.o",
    }
]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    told = BuildTeller().run(10, "/usr/bin/gcc", "gcc -c a.c", writes=["/src/a.o"]).end(10)
    image = write_database(tmp_path, told.trace())
    run.postprocess(image, config.load(tmp_path), ["compilations"], is_probing=False)
    return tmp_path


def test_compile_commands_go_to_the_output_or_a_file(
    database: Path, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    words = ["export", "compile_commands", "--dbdir", str(database)]
    assert cas(words) == 0
    assert json.loads(capfdbinary.readouterr().out) == EXPECTED
    assert cas([*words, "-o", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_bytes()) == EXPECTED


def test_without_compilations_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_database(tmp_path, BuildTeller().trace())
    assert open_database(tmp_path)
    output = tmp_path / "out.json"
    words = ["export", "compile_commands", "--dbdir", str(tmp_path), "-o", str(output)]
    assert cas(words) == 1
    assert "run: cas pp" in capsys.readouterr().err
    assert not output.exists()
