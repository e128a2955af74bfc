# SPDX-License-Identifier: Apache-2.0
"""Logs of strangers: endless, forged to cost much, in very many files; each is read or refused."""

from __future__ import annotations

import gzip
import resource
import tracemalloc
from pathlib import Path

import pytest
from imports.access_traces import SEED
from imports.strace_texts import convert, facts, read

from etrace.cli.main import etrace
from etrace.imports.files import MAX_LINE_BYTES
from etrace.imports.strace.sources import find


def said(capfd: pytest.CaptureFixture[str], words: list[str]) -> str:
    assert etrace(["import", *words]) == 2
    return capfd.readouterr().err


def test_a_device_without_end_is_no_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for words in (["strace", "--cwd=/w"], ["file-access-trace"]):
        text = said(capfd, [*words, "/dev/zero", "-o", str(tmp_path)])
        expected = "expected a line of text, this one has more than 32 MB"
        assert text.startswith(f"etrace: error: /dev/zero:1: {expected}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long("25 MB of one line, at the limit; the limit itself is tested above")
def test_the_longest_line_of_strace_is_read(tmp_path: Path) -> None:
    word = '"' + "\\377" * 131071 + '"'
    words = ", ".join([word] * 48)  # 6 MB of arguments, as strace -xx or octal digits show them
    line = f'10 1795392547.1 execve("/bin/x", [{words}], 0x7f /* 1 var */) = 0\n'
    assert 24 << 20 < len(line) < MAX_LINE_BYTES
    trace, converted = convert(tmp_path, line)
    assert converted.counts["New_proc"] == 1
    assert len(trace.lines) > 6 << 8


def test_files_of_ff_beyond_the_limit_of_open_files(tmp_path: Path) -> None:
    """`strace -ff -e trace=execve` names no parent: the files of all processes are read at once."""
    n_files = 300
    for pid in range(1000, 1000 + n_files):
        path = tmp_path / f"log.{pid}"
        path.write_text(f'1795392547.{pid} execve("/bin/x", ["x"], 0x7f /* 1 var */) = 0\n')
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
    try:
        _, converted = read([str(tmp_path / "log")])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert converted.n_processes == n_files


def test_names_that_are_no_pid(tmp_path: Path) -> None:
    for suffix in ("12", "7", "²", "9" * 200, "old", "-3"):
        (tmp_path / f"[x].{suffix}").touch()
    (tmp_path / "x.5").touch()
    assert find([str(tmp_path / "[x]")]) == [str(tmp_path / f"[x].{n}") for n in (7, 12)]


def test_working_directories_do_not_grow_without_end(tmp_path: Path) -> None:
    """Beyond PATH_MAX the kernel gives none either; an absolute one is known again."""
    deeper = '10 1795392547.1 chdir("' + "a" * 200 + '") = 0\n'
    opens = '10 1795392548.1 openat(AT_FDCWD, "x", O_RDONLY) = 3\n' * 20000
    back = '10 1795392549.1 chdir("/b") = 0\n10 1795392549.1 open("y", O_RDONLY) = 3\n'
    trace, converted = convert(tmp_path, deeper * 320 + opens + back)
    assert facts(trace) == ["1 Open 0 0 3 /b/y /b/y"]
    left_out = "20,000 calls were left out: relative to a directory that the log does not show"
    assert left_out in converted.remarks


def test_a_log_that_would_fill_the_disk_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log, trace = tmp_path / "log", tmp_path / "trace"
    deep = '10 1795392547.1 chdir("' + "/a" * 2000 + '") = 0\n'
    log.write_text(deep + '10 1795392548.1 openat(AT_FDCWD, "x", O_RDONLY) = 3\n' * 20000)
    words = ["strace", "--cwd=/w", str(log), "-o", str(trace)]
    assert "takes over 67 MB, too much for its size\n" in said(capfd, words)
    assert list(tmp_path.iterdir()) == [log]
    assert etrace(["import", *words, "--max-unpacked=1G"]) == 0
    assert (trace / ".nfsdb").stat().st_size > 100 * log.stat().st_size


CLONE = "clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD)"
#: a child whose threads come and go
THREADS = (
    "10 1795392547.2 fork() = 9\n"
    + (
        f"9 1795392547.2 {CLONE} = 8\n"
        "8 1795392547.2 exit(0) = ?\n"
        "8 1795392547.2 +++ exited with 0 +++\n"
    )
    * 2000
)


@pytest.mark.long("18 million descriptors; test_costs has the same growth at a smaller size")
@pytest.mark.parametrize(("between", "n"), [("", 1990), (THREADS, 1991)], ids=["none", "threads"])
def test_children_of_a_process_with_very_many_descriptors(
    between: str, n: int, tmp_path: Path
) -> None:
    opens = "".join(f'10 1795392547.1 open("/f", O_RDONLY) = {fd}\n' for fd in range(3, 9000))
    forks = "".join(f"10 1795392548.1 vfork() = {pid}\n" for pid in range(11, 2000))
    tracemalloc.start()
    _, converted = convert(tmp_path, opens + between + forks)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert converted.n_processes == n
    assert most < 200 << 20


@pytest.mark.parametrize("n_lost", [1, 4, 8, 30])
def test_what_is_cut_off_in_its_compressed_form(
    n_lost: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also when only the checksum is missing: the text may be another one."""
    log = tmp_path / "t.gz"
    log.write_bytes(gzip.compress(SEED)[:-n_lost])
    text = said(capfd, ["file-access-trace", str(log), "-o", str(tmp_path / "n")])
    assert f"{log}: damaged gz data" in text
    assert list(tmp_path.iterdir()) == [log]


def test_the_limit_of_what_is_unpacked_can_be_raised(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "t.gz"
    log.write_bytes(gzip.compress(SEED + b"\n" * 1000))
    words = ["file-access-trace", str(log), "-o", str(tmp_path / "n"), "--max-unpacked"]
    assert "raise the limit: --max-unpacked" in said(capfd, [*words, "1000"])
    assert etrace(["import", *words, "1M"]) == 0
