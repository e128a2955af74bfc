# SPDX-License-Identifier: Apache-2.0
"""`cas` used wrongly, interrupted, or before a broken database: a message, a hint, a status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import databases
import pytest

from etrace.cli.cas import program

#: what a query needs to be said
ASKED = {
    "deps": ("/src/main.c",),
    "moddeps": ("/src/main.c",),
    "rdeps": ("/src/main.c",),
    "revmoddeps": ("/src/main.c",),
    "unused": ("/usr/share/doc/bash",),
}
PROGRAM = [sys.executable, "-c", "import sys; from etrace.cli.main import cas; sys.exit(cas())"]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return databases.write_database(tmp_path_factory.mktemp("build"))


def environment(database: Path) -> dict[str, str]:
    return {**os.environ, "DB_DIR": str(database), "PYTHONPATH": os.pathsep.join(sys.path)}


def run(words: Sequence[str], database: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words], env=environment(database), capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["refz"], 2, "cas: error: no command 'refz'\n  hint: did you mean refs"),
        (["qqqqqq"], 2, "cas: error: no command 'qqqqqq'\n  hint: cas --help lists them\n"),
        (["--json"], 2, "usage: cas"),
        ([], 2, "usage: cas"),
        (["refs", "--nothing"], 2, "unrecognized arguments: --nothing\n"),
        (["refs", "--jsn"], 2, "unrecognized arguments: --jsn; did you mean --json?\n"),
        (["why", "--fulll", "a", "b"], 2, "arguments: --fulll; did you mean --full?\n"),
        (["refs", "-n", "x"], 2, "argument -n/--entries-per-page: invalid"),
        (["refs", "--page=-1"], 2, "-1 is below 0"),
        (["refs", "--range", "1:2:0"], 2, "'1:2:0' is not START:END or START:END:STEP"),
        (["refs", "--range", "3"], 2, "'3' is not START:END"),
        (["refs", "--filter", "[path=a"], 2,
         "cas: error: --filter: '[' is never closed\n    [path=a\n    ^\n  hint: end the part"),
        (["cmds", "--command-filter", "[cmmd=a]"], 2, "    [cmmd=a]\n     ^\n  hint: did you mean"),
        (["cmds", "--command-filter", "[ppid=99999999999999999999]"], 2, "99999999 is not a upid"),
        (["refs", "--fmt", "{filename"], 2, "cas: error: --fmt '{filename': "),
        (["refs", "--fmt", "{file_name}"], 2, "no key 'file_name' here\n  hint: did you mean file"),
        (["refs", "--sorting-key", "x"], 2, "no key 'x' here\n  hint: there are: filename"),
        (["refs", "-p", "1"], 2, "cas: error: --page needs -n\n"),
        (["refs", "--json", "--fmt", "x"], 2, "cas: error: --fmt and --json exclude each other"),
        (["deps", "b"], 2, "cas: error: no FILE\n  hint: b is a query; for a file of that"),
        (["deps"], 2, "cas: error: no FILE\n  hint: name a file: a path, the end of a path"),
        (["stat", "refs"], 2, "cas: error: ref-files cannot take the result of the query"),
        (["refs", "stat"], 2, "cas: error: info cannot take the result of the query"),
        (["pr", "--pid", "make"], 2, "cas: error: 'make' is not a process\n  hint: write PID"),
        (["fa", "--path", "/x/util.h"], 1, "hint: did you mean one of these: /src/util.h"),
        (["ci", "--path", "Makefile"], 1, "cas: error: the build did not compile Makefile"),
        (["--dbdir", "/nowhere", "diff", "a", "b"], 2, "--dbdir is not an option of this command"),
        (["diff", "a", "b", "c"], 2, "unrecognized arguments: c"),
        (["--dbdir", "/nowhere", "refs"], 2, "cas: error: /nowhere: no such directory"),
        (["--dbdir", "/usr", "refs"], 2, "cas: error: /usr: no database\n  hint: make one"),
        (["refs", "-o", "/nowhere/x"], 2, "cas: error: /nowhere/x: No such file or directory\n"),
        (["refs", "-o", "/dev/null/x"], 2, "cas: error: /dev/null/x: Not a directory\n"),
        (["cmds", "--makefile"], 2, "cas: error: --makefile needs --generate"),
    ],
)  # fmt: skip
def test_wrong_usage_has_a_message(
    database: Path, words: list[str], status: int, message: str
) -> None:
    done = run(words, database)
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_before_pp_a_question_for_its_products_says_what_to_do(tmp_path: Path) -> None:
    done = run(["lm"], databases.write_parsed(tmp_path / "build"))
    assert done.returncode == 2
    assert done.stderr.endswith("hint: make them: cas pp\n")


def only_image(directory: Path) -> Path:
    databases.write_database(directory)
    for path in directory.iterdir():
        if path.name != ".nfsdb.img":
            path.unlink()
    return directory / ".nfsdb.img"


def test_a_truncated_image_is_refused(tmp_path: Path) -> None:
    image = only_image(tmp_path / "build")
    whole = image.read_bytes()
    for n_bytes in (0, 7, 20, 100, len(whole) // 2, len(whole) - 1):
        image.write_bytes(whole[:n_bytes])
        done = run(["refs"], image.parent)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("cas: error: ")
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["refs"], ["execs", "--details"], ["ci"], ["lm", "--details"]])
def test_an_image_of_wild_numbers_is_refused(tmp_path: Path, words: list[str]) -> None:
    image = only_image(tmp_path / "build")
    whole = bytearray(image.read_bytes())
    start = whole.index(b"}]}]}") + 5
    whole[start:] = b"\xfe" * (len(whole) - start)
    image.write_bytes(whole)
    done = run(words, image.parent)
    assert done.returncode == 2
    assert done.stderr.startswith("cas: error: ")
    assert "Traceback" not in done.stderr


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    image = only_image(tmp_path / "build")
    image.unlink()
    image.mkdir()
    done = run(["refs"], image.parent)
    assert done.returncode == 2
    assert str(image) in done.stderr


@pytest.mark.parametrize("suffix", ["img", "json", "env.json", "mounts.json", "rsp.json"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path, suffix: str) -> None:
    image = only_image(tmp_path / "build")
    image.unlink()
    os.mkfifo(image.with_name(f".nfsdb.{suffix}"))
    done = run(["stat"], image.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert "not a file" in done.stderr


@pytest.mark.parametrize("kind", ["pipe", "endless", "deep"])
@pytest.mark.parametrize(
    "name", ["bas_config", "nfsdb", "nfsdb.stats", "nfsdb.accesses", "nfsdb.rsp.json"]
)
def test_what_a_foreign_directory_has_beside_its_database_is_not_waited_for(
    name: str, kind: str, tmp_path: Path
) -> None:
    folder = databases.write_database(tmp_path / "build")
    side = folder / f".{name}"
    side.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(side)
    elif kind == "endless":
        side.symlink_to("/dev/zero")
    else:
        side.write_text("[" * 200_000)
    for words in (["deps", "/src/hello"], ["parse"], ["export", "file-access-trace"]):
        done = run(words, folder)
        assert done.returncode in (0, 2), words
        assert "Traceback" not in done.stderr, (words, done.stderr)


@pytest.mark.parametrize("number", ["1" * 5000, "1" * 25, "\u00b2"])
@pytest.mark.parametrize(
    "words",
    [
        ["execs", "--pid={}"], ["execs", "-n", "{}"], ["execs", "-n", "5", "-p", "{}"],
        ["refs", "--range={}:"], ["tree", "--levels={}"], ["parse", "--max-unpacked={}", "--force"],
        ["execs", "--command-filter=ppid={}"], ["export", "file-access-trace", "--root={}"],
        ["parse", "-j{}", "--force"], ["pp", "-j{}", "--force"],
    ],
)  # fmt: skip
def test_a_number_of_any_length_is_answered(database: Path, words: list[str], number: str) -> None:
    done = run([word.format(number) for word in words], database)
    assert done.returncode in (0, 1, 2)
    assert "Traceback" not in done.stderr, done.stderr


def test_nobody_reads_the_rest(database: Path) -> None:
    command = [*PROGRAM, "refs", "--fmt", "x" * 100_000]
    with subprocess.Popen(
        command, env=environment(database), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE


def test_a_full_disk_is_said(database: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PROGRAM, "refs"], env=environment(database), stdout=full,
                              stderr=subprocess.PIPE, check=False)  # fmt: skip
    assert done.returncode == 2
    assert b"No space left on device" in done.stderr


def test_ctrl_c_has_a_message(tmp_path: Path) -> None:
    fifo = tmp_path / "trace"  # reading it waits until somebody writes
    os.mkfifo(fifo)
    command = [*PROGRAM, "parse", str(fifo)]
    with (
        subprocess.Popen(
            command, env=environment(tmp_path), cwd=tmp_path,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process,
        fifo.open("wb"),  # returns when cas has opened it
    ):  # fmt: skip
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, b"", b"cas: interrupted\n")


def test_a_closed_standard_output_is_reported(database: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *PROGRAM, "export", "json"],
        env=environment(database), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        2, "cas: error: standard output is closed\n  hint: give -o FILE, or leave it open\n",
    )  # fmt: skip


@pytest.mark.parametrize("query", [command.name for command in program.QUERIES])
def test_before_cas_pp_each_query_answers_or_says_what_to_do(query: str, tmp_path: Path) -> None:
    asked = run([query, *ASKED.get(query, ())], databases.write_parsed(tmp_path / "parsed"))
    assert (asked.returncode in (0, 1) and not asked.stderr) or asked.stderr.endswith(
        "yet\n  hint: make them: cas pp\n"
    )
