# SPDX-License-Identifier: Apache-2.0
"""`etrace xray` as a user meets it: output, warnings, exit statuses, wrong input."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from xray import samples
from xray.builder import LogBuilder
from xray.samples import MT, MT_MAP, TAIL, run

from etrace import xray
from etrace.cli.xray import COMMANDS


def damaged(tmp_path: Path) -> str:
    path = tmp_path / "damaged.xray"
    data = LogBuilder().thread(1).cpu(0, 1).enter(1, 1).raw(b"\xff" * 20).build()
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize("command", [c.name for c in COMMANDS])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run(command, "--help")
    assert end.value.code == 0
    assert "usage: etrace xray " + command in capsys.readouterr().out


def test_an_account_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("account", "-m", MT_MAP, MT, "--top", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["calls", "self", "sum"]
    assert len(lines) == 3
    assert "main" in lines[1] or "worker" in lines[1] or "leaf" in lines[1]


def test_an_account_as_csv_begins_with_the_columns_of_llvm_xray(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("account", "--format", "csv", "-m", MT_MAP, MT) == 0
    text = capsys.readouterr().out
    wanted = "funcid,count,min,median,90%ile,99%ile,max,sum,debug,function,"
    assert text.startswith(wanted)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert sum(int(row["count"]) for row in rows) == 361
    assert [int(row["funcid"]) for row in rows] == sorted(int(row["funcid"]) for row in rows)


def test_an_account_as_json_is_by_thread_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("account", "--format", "json", "--by-thread", MT) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["calls"] == 361
    assert len({row["thread"] for row in document["functions"]}) == 5


def test_logs_come_compressed_and_by_a_pipe(tmp_path: Path) -> None:
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(Path(TAIL).read_bytes()))
    subprocess.run(["zstd", "-q", TAIL, "-o", tmp_path / "log.zst"], check=True)
    command = [
        sys.executable,
        "-c",
        "from etrace.cli.main import etrace; raise SystemExit(etrace())",
    ]
    wanted = subprocess.run([*command, "xray", "account", TAIL], capture_output=True, check=True)
    for path in (packed, tmp_path / "log.zst"):
        done = subprocess.run([*command, "xray", "account", path], capture_output=True, check=True)
        assert done.stdout == wanted.stdout
    piped = subprocess.run(
        [*command, "xray", "account", "-"],
        input=packed.read_bytes(),
        capture_output=True,
        check=True,
    )
    assert piped.stdout == wanted.stdout


@pytest.mark.parametrize("packer", [["gzip"], ["zstd", "-q"]])
def test_a_log_that_takes_too_much_is_refused(
    packer: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("etrace.parse.unpacking.FREE_BYTES", 1 << 20)
    data = Path(TAIL).read_bytes() + bytes(4 << 20)
    done = subprocess.run([*packer, "-c"], input=data, capture_output=True, check=True)
    path = tmp_path / "log"
    path.write_bytes(done.stdout)
    assert run("account", str(path)) == 2
    shown = capsys.readouterr().err
    assert f"{path}: unpacked it takes more than 1 MB" in shown
    assert "--max-unpacked SIZE" in shown
    assert run("account", str(path), "--max-unpacked", "5M") in (0, 2)


@pytest.mark.parametrize("packer", [["gzip"], ["zstd", "-q", "--no-check"]])
def test_what_damaged_compressed_data_held_is_used(
    packer: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noise = random.Random(1)
    builder = LogBuilder().thread(1).cpu(0, 1)
    for _ in range(40_000):
        builder.enter(1, noise.randrange(2**32))
    data = builder.build()
    done = subprocess.run([*packer, "-c"], input=data, capture_output=True, check=True)
    path = tmp_path / "cut"
    path.write_bytes(done.stdout[: len(done.stdout) * 9 // 10])
    assert run("account", str(path)) == 2
    shown = capsys.readouterr().err
    assert "the compressed data ends here or is damaged" in shown
    log = xray.read(path)
    assert log.damage.is_lossy
    assert 10_000 < log.n_records < 40_000
    assert run("account", "--strict", str(path)) == 2
    path.write_bytes(done.stdout[:12])
    assert run("account", str(path)) == 2
    assert "copy the log again" in capsys.readouterr().err


def test_damage_is_reported_and_the_status_is_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = damaged(tmp_path)
    assert run("account", path) == 2
    shown = capsys.readouterr()
    assert (
        f"warning: {path}: offset 120: metadata record of unknown kind 127; 20 bytes" in shown.err
    )
    assert run("account", "--strict", path) == 2
    assert "offset 120: an unknown kind of metadata after Function" in capsys.readouterr().err


def test_what_is_no_log_is_an_error_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("hello, this is not a log, but long enough to be one\n")
    for command in ("account", "stack", "convert", "flame", "graph", "dump"):
        assert run(command, str(tmp_path / "text")) == 2
        assert "hint: is it an XRay log?" in capsys.readouterr().err
    assert run("account", str(tmp_path / "none")) == 2
    assert "No such file" in capsys.readouterr().err


def test_output_files_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "out.yaml"
    assert run("convert", TAIL, "-o", str(out)) == 0
    before = out.read_bytes()
    bad = tmp_path / "bad"
    bad.write_bytes(b"nothing")
    assert run("convert", str(bad), "-o", str(out)) == 2
    assert out.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad", "out.yaml"]


def test_a_device_and_a_link_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    """As root a renamed file would take the place of /dev/null."""
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    assert run("convert", TAIL, "-o", str(link)) == 0
    assert link.is_symlink()
    assert target.stat().st_size > 0
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE)
    assert run("convert", TAIL, "-o", str(fifo)) == 0
    assert reader.communicate(timeout=20)[0] == target.read_bytes()
    assert fifo.is_fifo()


def test_a_dump_has_every_record_with_its_offset(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("dump", "--verify", TAIL) == 0
    lines = capsys.readouterr().out.splitlines()
    offsets = [int(line.split()[0]) for line in lines]
    assert offsets == sorted(offsets)
    assert lines[0].split()[:2] == ["32", "BufferExtents"]
    assert len([line for line in lines if " Function " in line]) == 46


def dumped(capsys: pytest.CaptureFixture[str], *args: str) -> list[str]:
    assert run("dump", *args) == 0
    return [" ".join(line.split()[1:]) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("version", [3, 5])
def test_a_dump_has_filters(
    version: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log"
    builder = LogBuilder(version).thread(1).cpu(0, 1000).function(3, 7, 10).argument(5).enter(8, 20)
    builder.custom(b"x", 70 if version >= 5 else 1100).exit(8, 0 if version >= 5 else 70)
    builder.thread(2).cpu(0, 1000).enter(7, 5)
    path.write_bytes(builder.build())
    event = "CustomEvent 1 bytes, 70 ticks" if version >= 5 else "CustomEvent 1 bytes, 1100 ticks"
    last = f"Function exit #8 +{0 if version >= 5 else 70}"
    first, second = "Function enter-arg #7 +10", "Function enter #8 +20"
    argument = "CallArgument 5 (0x5)"
    assert dumped(capsys, "-f", "#7", "-t", "1", str(path)) == [first, argument]
    assert dumped(capsys, "-t", "1", "--from", "20ns", str(path)) == [second, event, last]
    assert dumped(capsys, "--until", "30ns", "-t", "1", str(path)) == [first, argument]
    whole = dumped(capsys, str(path))
    assert dumped(capsys, "-t", "2", str(path)) == whole[-6:]
    assert whole[-6].startswith("BufferExtents")


def test_a_dump_says_where_the_grammar_is_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("dump", "--verify", damaged(tmp_path)) == 2
    assert "offset 120" in capsys.readouterr().err


def test_a_dump_goes_on_after_a_bad_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log"
    path.write_bytes(samples.synthetic("bad_unknown_metadata"))
    assert run("dump", str(path)) == 2
    shown = capsys.readouterr()
    assert "offset 80: metadata record of unknown kind 63; 16 bytes skipped" in shown.err
    offsets = [int(line.split()[0]) for line in shown.out.splitlines()]
    assert offsets[3:6] == [80, 96, 112]
    assert run("account", str(path)) == 2


def test_a_dump_is_of_flight_data_recorder_logs(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--no-demangle", "--verify"):
        assert run("dump", option, str(samples.log("ev_pie19.basic"))) == 2
        assert "a log of basic mode" in capsys.readouterr().err


def test_a_map_is_extracted_as_llvm_xray_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("extract", MT_MAP) == 0
    assert capsys.readouterr().out == samples.oracle("mt_pie19.extract")
    for form in ("text", "csv", "json"):
        assert run("extract", "--format", form, MT_MAP) == 0


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = "from etrace.cli.main import etrace; raise SystemExit(etrace())"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", program, "xray", "convert", MT],
        stdout=write, stderr=subprocess.PIPE,
        check=False,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_numbers_of_objects_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    for number in ("-1", "256"):
        assert run("extract", "--object", number, MT_MAP) == 2
        assert "no shared object" in capsys.readouterr().err


def test_help_keeps_names_of_formats(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("flame", "--help")
    assert "A flame graph as one HTML file." in capsys.readouterr().out


def test_calls_whose_time_goes_back_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A thread that moves to another CPU may find an earlier time there."""
    path = tmp_path / "log"
    builder = LogBuilder().thread(1).cpu(0, 1000).enter(1, 0).enter(2, 100).cpu(1, 500)
    path.write_bytes(builder.exit(2, 0).exit(1, 900).build())
    assert run("account", "--format", "json", str(path)) == 0
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["backwards"] == 1
    found = {row["function_id"]: row["sum_ns"] for row in document["functions"]}
    assert found == {1: 400, 2: 0}
    note = "etrace xray: note: 1 call whose time went backwards, counted as 0\n"
    assert shown.err == note
    for command in ("account", "stack", "graph", "flame"):
        assert run(command, str(path), "-o", str(tmp_path / "out")) == 0
        assert note in capsys.readouterr().err


def test_a_file_is_not_cut_to_the_width_of_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out = tmp_path / "account"
    assert run("account", "-m", MT_MAP, MT, "-o", str(out)) == 0
    assert run("account", "-m", MT_MAP, MT) == 0
    whole, shown = out.read_text().splitlines(), capsys.readouterr().out.splitlines()
    assert max(map(len, whole)) > 80
    assert [line[:80] for line in whole] == shown
