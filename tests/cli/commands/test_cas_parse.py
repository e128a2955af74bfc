# SPDX-License-Identifier: Apache-2.0
"""`cas parse`, `cas cache`, `cas export`: databases made, made again, and never half."""

from __future__ import annotations

import json
import lzma
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builders import TraceBuilder
from databases import GOLDEN
from libetrace.image.file import open_image
from terminal import Terminal

from etrace.cli.main import cas
from etrace.nfsdb.store import open_database
from etrace.parse import parse_trace

PROGRAM = [sys.executable, "-c", "import sys; from etrace.cli.main import cas; sys.exit(cas())"]
ROOT = 1 << 22 | 1


def story(program: str = "/bin/cc") -> bytes:
    return TraceBuilder(cwd="/src").exec(ROOT, program).exit(ROOT).trace()


def write(folder: Path, trace: bytes) -> Path:
    (folder / ".nfsdb").write_bytes(trace)
    return folder


def programs(where: Path) -> list[bytes]:
    image = open_database(where)
    return [image.path_string(row) for row in image["executions"]["binary"] if row >= 0]


def mtimes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("DB_DIR", None)
    return subprocess.run(
        [*PROGRAM, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_trace_becomes_a_database(tmp_path: Path) -> None:
    done = run(["parse"], write(tmp_path, story()))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(".nfsdb.img: 1 process, 1 command, 0 opened files in ")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".nfsdb", ".nfsdb.img"]
    assert programs(tmp_path) == [b"/bin/cc"]
    assert open_database(tmp_path).attributes["source_root"] == "/src"


def test_json_is_written_when_it_is_asked_for(tmp_path: Path) -> None:
    run(["parse"], write(tmp_path, story()))
    run(["pp", "-q"], tmp_path)
    before = (tmp_path / ".nfsdb.img").stat().st_ino
    assert "unchanged" in run(["parse", "--json"], tmp_path).stdout
    assert sorted(path.name for path in tmp_path.glob("*.json")) == [
        ".nfsdb.env.json", ".nfsdb.json", ".nfsdb.mounts.json",
    ]  # fmt: skip
    assert "wrappers" in open_database(tmp_path).tables
    assert (tmp_path / ".nfsdb.img").stat().st_ino != before
    assert run(["export", "json"], tmp_path).stdout == (tmp_path / ".nfsdb.json").read_text()


def test_older_json_is_written_again(tmp_path: Path) -> None:
    run(["parse", "--json"], write(tmp_path, story()))
    write(tmp_path, story("/bin/ld"))
    assert run(["parse"], tmp_path).returncode == 0
    assert programs(tmp_path / ".nfsdb.json") == [b"/bin/ld"]
    assert '"/bin/ld"' in (tmp_path / ".nfsdb.json").read_text()


def test_what_is_fresh_is_not_made_again(tmp_path: Path) -> None:
    run(["parse"], write(tmp_path, story()))
    before = mtimes(tmp_path)
    again = run(["parse"], tmp_path)
    assert (again.returncode, "unchanged" in again.stdout) == (0, True)
    assert mtimes(tmp_path) == before
    assert "1 process" in run(["parse", "--force"], tmp_path).stdout
    assert mtimes(tmp_path) != before


def test_a_new_trace_makes_a_new_database(tmp_path: Path) -> None:
    run(["parse"], write(tmp_path, story()))
    write(tmp_path, story("/bin/ld"))
    refused = run(["execs"], tmp_path)
    assert (refused.returncode, "cas parse" in refused.stderr) == (2, True)
    assert run(["parse"], tmp_path).returncode == 0
    assert programs(tmp_path) == [b"/bin/ld"]


def test_products_stay_when_the_trace_is_the_same(tmp_path: Path) -> None:
    run(["parse"], write(tmp_path, story()))
    run(["pp", "-q"], tmp_path)
    before = mtimes(tmp_path)
    assert "unchanged" in run(["parse"], tmp_path).stdout
    assert mtimes(tmp_path) == before
    assert "wrappers" in open_database(tmp_path).tables


def test_problems_of_the_trace_are_reported_each_time(tmp_path: Path) -> None:
    write(tmp_path, story() + b"1,0,9,9!Nonsense|\n")
    first = run(["parse"], tmp_path)
    again = run(["parse"], tmp_path)
    assert (first.returncode, again.returncode) == (2, 2)
    assert first.stderr.startswith("cas parse: 1 string that belongs to no event ")
    assert again.stderr == first.stderr


def test_what_is_no_trace_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "noise").write_text("not\na trace\n")
    done = run(["parse", "noise"], tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no events" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["noise"]
    nothing = run(["parse", "--dbdir", "."], tmp_path)
    assert (nothing.returncode, "etrace run" in nothing.stderr) == (2, True)


def test_a_named_trace_names_its_database(tmp_path: Path) -> None:
    (tmp_path / "make.nfsdb").write_bytes(story())
    (tmp_path / "there").mkdir()
    assert run(["parse", "make.nfsdb"], tmp_path).returncode == 0
    assert programs(tmp_path / "make.nfsdb.img") == [b"/bin/cc"]
    assert run(["parse", "make.nfsdb", "--dbdir", "there"], tmp_path).returncode == 0
    assert programs(tmp_path / "there" / "make.nfsdb.json") == [b"/bin/cc"]


def test_parts_of_a_trace_are_merged(tmp_path: Path) -> None:
    lines = story().splitlines(keepends=True)
    parts = tmp_path / ".nfsdb_parts"
    parts.mkdir()
    (parts / ".nfsdb_part_0").write_bytes(b"".join(lines[:1] + lines[1:-1]))
    (parts / ".nfsdb_part_1").write_bytes(b"".join(lines[:1] + lines[-1:]))
    assert run(["parse"], tmp_path).returncode == 0
    assert programs(tmp_path) == [b"/bin/cc"]
    assert open_database(tmp_path).attributes["source_root"] == "/src"
    assert "unchanged" in run(["parse"], tmp_path).stdout


def test_a_compressed_trace_is_read(tmp_path: Path) -> None:
    write(tmp_path, story())
    subprocess.run(["zstd", "-q", "--rm", tmp_path / ".nfsdb"], check=True)
    assert run(["parse"], tmp_path).returncode == 0
    assert programs(tmp_path) == [b"/bin/cc"]
    assert open_database(tmp_path).attributes["source_root"] == "/src"


def test_root_and_version_can_be_said(tmp_path: Path) -> None:
    words = ["parse", "--json", "--set-root", "/said", "--set-version", "7"]
    run(words, write(tmp_path, story()))
    assert run(["sroot"], tmp_path).stdout == "/said\n"
    run(["cache", "--set-version", "8"], tmp_path)
    run(["cache", "--force"], tmp_path)
    attributes = open_database(tmp_path).attributes
    assert (attributes["source_root"], attributes["version"]) == ("/said", "8")


def test_cache_replaces_what_is_no_image(tmp_path: Path) -> None:
    run(["parse", "--json"], write(tmp_path, story()))
    image = tmp_path / ".nfsdb.img"
    right = open_image(image)
    for content in (b"foreign", image.read_bytes()[:-8], b"ETRACEDB" + b"\xff" * 30):
        image.write_bytes(content)
        refused = run(["execs"], tmp_path)
        assert (refused.returncode, "cas cache" in refused.stderr) == (2, True)
        assert image.read_bytes() == content
        assert run(["cache"], tmp_path).stdout.startswith(".nfsdb.img: made\n")
        assert programs(tmp_path) == [b"/bin/cc"]
    assert run(["cache"], tmp_path).stdout == ".nfsdb.img: unchanged\ngraph: unchanged\n"
    assert right.schema == open_image(image).schema


def test_cache_without_json_says_what_to_do(tmp_path: Path) -> None:
    done = run(["cache"], tmp_path)
    assert (done.returncode, "cas parse" in done.stderr) == (2, True)


def test_what_etrace_parser_wrote_can_be_asked(tmp_path: Path) -> None:
    parse_trace([write(tmp_path, story()) / ".nfsdb"], tmp_path / ".nfsdb.json")
    assert run(["binaries"], tmp_path).stdout == "/bin/cc\n"


def test_json_is_exported_as_it_was(tmp_path: Path) -> None:
    (tmp_path / ".nfsdb").write_bytes(lzma.decompress((GOLDEN / "lua.nfsdb.xz").read_bytes()))
    run(["parse", "--json"], tmp_path)
    text = (tmp_path / ".nfsdb.json").read_text()
    assert run(["export", "json"], tmp_path).stdout == text
    assert run(["export", "json", "-o", "copy"], tmp_path).returncode == 0
    assert (tmp_path / "copy").read_text() == text
    assert json.loads(text)


@pytest.mark.parametrize("words", [["json", "DIR"], ["parquet"], ["parquet", "D", "-o", "F"]])
def test_export_needs_the_right_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    run(["parse"], write(tmp_path, story()))
    assert cas(["export", "--dbdir", str(tmp_path), *words]) == 2
    assert "hint: cas export" in capsys.readouterr().err


def big(folder: Path) -> Path:
    """A database that takes some tenths of a second to make."""
    trace = TraceBuilder(cwd="/src", step_ns=10)
    for number in range(20_000):
        trace.use(ROOT, f"/src/{number}.c")
    return write(folder, trace.trace())


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("words", [["parse", "--force"], ["cache", "--force"]])
def test_stopped_anywhere_the_database_is_whole(
    tmp_path: Path, words: list[str], sent: signal.Signals
) -> None:
    assert run(["parse", "--json"], big(tmp_path)).returncode == 0
    expected = open_database(tmp_path)["opens"].n_rows
    began = time.monotonic()
    run(words, tmp_path)
    length = time.monotonic() - began
    chance = random.Random(1)
    for _ in range(4):
        child = subprocess.Popen(
            [*PROGRAM, *words, "-q"], cwd=tmp_path, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        time.sleep(length * chance.uniform(0.2, 0.9))
        child.send_signal(sent)
        child.wait()
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path, copy, ignore=shutil.ignore_patterns("copy"))
        assert open_database(copy)["opens"].n_rows == expected
        shutil.rmtree(copy)
    if sent == signal.SIGINT:
        assert not list(tmp_path.glob(".*.tmp"))


def test_on_a_terminal_the_row_of_progress_is_cleared(tmp_path: Path) -> None:
    write(tmp_path, story())
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with Terminal([*PROGRAM, "parse"], tmp_path, env) as terminal:
        terminal.wait_for("1 process")
        assert terminal.log.startswith("\x1b[K")
