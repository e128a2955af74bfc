# SPDX-License-Identifier: Apache-2.0
"""The command etrace_parser: exit statuses, what it prints, which files it leaves."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from backends import need_root

from etrace.cli.parser import main
from etrace.nfsdb.outputs import output_files

GOOD = b"""INITCWD=/work
1,0,1,0!SysClone|flags=17
1,0,1,5!SchedFork|pid=2
2,0,1,10!Open|fnamesize=4,forigsize=4,flags=577,mode=438,fd=3
2,0,1,10!FN|/out
2,0,1,10!FO|/out
2,1,1,20!Close|fd=3
2,1,1,30!Exit|status=7
1,0,1,40!Exit|status=0
"""
BROKEN = GOOD.replace(b"FO|/out", b"FO|/outer")
RUN = [sys.executable, "-c", "import sys; from etrace.cli.parser import main; sys.exit(main())"]


def entries(output: Path) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads(output.read_bytes())
    return loaded


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t.nfsdb"
    path.write_bytes(GOOD)
    return path


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out" / "t.nfsdb.json"


@pytest.fixture(autouse=True)
def output_directory(output: Path) -> None:
    output.parent.mkdir()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_clean_trace_exits_0_and_prints_nothing(
    trace: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([str(trace), str(output)]) == 0
    assert capfd.readouterr() == ("", "")
    assert [(e["p"], e["x"], e.get("!")) for e in entries(output)] == [(1, 0, 0), (2, 0, 7)]
    assert [(f["p"], f["b"], f["e"]) for f in entries(output)[1]["o"]] == [
        ("/out", 1000000010, 1000000020)
    ]


def test_the_side_files_lie_next_to_the_output_and_are_written_when_empty(
    trace: Path, output: Path
) -> None:
    main([str(trace), str(output)])
    assert names(output.parent) == [
        "t.nfsdb.env.json", "t.nfsdb.img", "t.nfsdb.json", "t.nfsdb.mounts.json",
    ]  # fmt: skip
    assert [json.loads(path.read_bytes()) for path in output_files(output)[1:]] == [{}, []]


def test_salvage_exits_2_and_names_the_line_and_the_cost(
    trace: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trace.write_bytes(BROKEN)
    assert main([str(trace), str(output)]) == 2
    err = capfd.readouterr().err
    assert err.splitlines() == [
        (f"etrace_parser: 1 event whose strings do not match its arguments ({trace}:4): left out")
    ]
    assert entries(output)[1]["o"] == []
    assert entries(output)[1]["!"] == 7


def test_a_flood_of_problems_is_one_line_with_the_first_places(
    trace: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trace.write_bytes(GOOD + b"nonsense\n" * 100_000)
    assert main([str(trace), str(output)]) == 2
    places = ", ".join(f"{trace}:{line}" for line in range(10, 15))
    assert capfd.readouterr().err == (
        f"etrace_parser: 100,000 lines without a prefix N,N,N,N! ({places}, ...): left out\n"
    )


@pytest.mark.parametrize("data", [b"", b"\n", b"x", b"INITCWD=/\n", b"\0", b"1,0,1,1!Foo|\n"])
def test_nothing_usable_exits_1_and_leaves_no_file(
    trace: Path, output: Path, data: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    trace.write_bytes(data)
    assert main([str(trace), str(output)]) == 2
    assert f"{trace}: no events" in capfd.readouterr().err
    assert names(output.parent) == []


def test_an_old_output_stays_when_nothing_is_usable(trace: Path, output: Path) -> None:
    output.write_text("old")
    trace.write_bytes(b"x")
    assert main([str(trace), str(output)]) == 2
    assert output.read_text() == "old"


def test_an_input_that_is_not_there_is_named_with_a_hint(
    tmp_path: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "missing.nfsdb"
    assert main([str(missing), str(output)]) == 2
    message, hint = capfd.readouterr().err.splitlines()
    assert message == f"etrace_parser: error: cannot read {missing}: No such file or directory"
    assert hint.startswith("  hint: ")


@pytest.mark.parametrize("target", ["/dev/null", "."])
def test_an_output_that_is_no_regular_file_is_refused(
    trace: Path, target: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([str(trace), target]) == 2
    assert "cannot write" in capfd.readouterr().err
    assert Path("/dev/null").is_char_device()


def test_an_output_directory_that_is_not_there_is_named(
    trace: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([str(trace), str(tmp_path / "none" / "x.json")]) == 2
    assert f"cannot write {tmp_path}/none/x.json: No such file" in capfd.readouterr().err


def test_a_full_disk_is_an_error_that_leaves_no_file(
    trace: Path, output: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    real_open = os.open

    def open_full(path: Any, flags: int, mode: int = 0o777, dir_fd: int | None = None) -> int:
        if re.fullmatch(r"\.t\.nfsdb\.json\.\w+\.tmp", Path(path).name):
            return real_open("/dev/full", os.O_WRONLY)
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_full)
    assert main([str(trace), str(output)]) == 2
    assert "No space left on device" in capfd.readouterr().err
    assert names(output.parent) == []


def test_a_symlink_to_an_output_stays_a_symlink(trace: Path, output: Path) -> None:
    link = output.with_name("link.json")
    link.symlink_to(output)
    assert main([str(trace), str(link)]) == 0
    assert link.is_symlink()
    assert len(entries(output)) == 2


@pytest.mark.root
def test_a_link_of_another_user_is_not_followed(
    trace: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """They would have root overwrite a file of its own, and get it."""
    need_root()
    precious = output.with_name("precious")
    precious.write_text("precious")
    own, other = output.with_name("own.json"), output.with_name("other.json")
    own.symlink_to(other)
    other.symlink_to(precious)
    os.lchown(other, 65534, 65534)
    for link in (other, own):
        assert main([str(trace), str(link)]) == 2
        assert "it is a link of another user" in capfd.readouterr().err
    assert precious.read_text() == "precious"
    assert names(output.parent) == ["other.json", "own.json", "precious"]


@pytest.mark.parametrize("quiet", [False, True])
def test_a_part_whose_name_would_change_the_terminal_is_shown_quoted(
    tmp_path: Path, output: Path, quiet: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "a\x1b[31m").write_bytes(BROKEN)
    assert main([*(["--quiet"] if quiet else []), str(parts), str(output)]) == 2
    shown = capfd.readouterr().err
    assert "\x1b" not in shown
    assert ("a\\x1b[31m" in shown) is not quiet


def test_standard_input_is_read_to_its_end(trace: Path, output: Path) -> None:
    done = subprocess.run([*RUN, "-", str(output)], input=GOOD, check=False)
    assert done.returncode == 0
    assert len(entries(output)) == 2


def test_a_compressed_trace_is_read(trace: Path, output: Path) -> None:
    subprocess.run(["zstd", "-q", str(trace)], check=True)
    assert main([f"{trace}.zst", str(output)]) == 0
    assert len(entries(output)) == 2


def test_parts_of_each_cpu_are_merged_by_time(
    tmp_path: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = tmp_path / "whole.json"
    (tmp_path / "whole.nfsdb").write_bytes(GOOD)
    assert main([str(tmp_path / "whole.nfsdb"), str(whole)]) == 0
    first, *lines = GOOD.splitlines(keepends=True)
    parts = tmp_path / ".nfsdb_parts"
    parts.mkdir()
    for number in range(2):
        mine = [line for line in lines if line.split(b",")[1] == b"%d" % number]
        (parts / f".nfsdb_part_{number}").write_bytes(b"".join([first, *mine]))
    assert main([str(parts), str(output)]) == 0
    assert output.read_bytes() == whole.read_bytes()
    assert capfd.readouterr().err == ""


def test_a_comment_in_a_part_has_no_time(tmp_path: Path, output: Path) -> None:
    (tmp_path / "a").write_bytes(b"# 1,0,9,0!a later time\n1,0,2,0!Comm|size=1\n")
    (tmp_path / "b").write_bytes(b"1,1,2,0!CN|x\n1,1,3,0!Exit|status=7\n")
    assert main([str(tmp_path / "a"), str(tmp_path / "b"), str(output)]) == 0
    assert entries(output)[0]["!"] == 7


def test_problems_of_merged_parts_are_named_by_part_and_line(
    tmp_path: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_bytes(b"INITCWD=/\n1,0,1,0!Exit|status=0\n")
    (tmp_path / "b").write_bytes(b"INITCWD=/\n2,0,0,5!Exit|status=0\n2,0,2,0!Bad|\n")
    assert main([str(tmp_path / "a"), str(tmp_path / "b"), str(output)]) == 2
    assert f"({tmp_path}/b:3)" in capfd.readouterr().err
    assert [e["s"] for e in entries(output)] == [999999995, 0]


def test_a_last_line_without_a_newline_counts_when_it_is_whole(trace: Path, output: Path) -> None:
    trace.write_bytes(GOOD.rstrip(b"\n"))
    assert main([str(trace), str(output)]) == 0
    assert entries(output)[0]["!"] == 0


def test_an_event_that_the_end_cuts_off_is_a_problem(
    trace: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trace.write_bytes(GOOD[: GOOD.index(b"FO|/out") + 3])
    assert main([str(trace), str(output)]) == 2
    assert "cuts off" in capfd.readouterr().err


def test_any_number_of_threads_makes_the_same_output(tmp_path: Path, output: Path) -> None:
    trace = tmp_path / "many.nfsdb"
    trace.write_bytes(
        b"".join(
            b"%d,0,%d,0!Open|fnamesize=%d,forigsize=2,flags=0,mode=0,fd=3\n%d,0,%d,0!FN|%b\n"
            b"%d,0,%d,0!FO|/a\n" % (u, t, len(p), u, t, p, u, t)
            for t in range(400)
            for u in range(1, 100)
            for p in [b"/%d/%d" % (u, t)]
        )
    )
    texts = []
    for jobs in (1, 2, 7):
        assert main(["-j", str(jobs), str(trace), str(output)]) == 0
        texts.append(output.read_bytes())
    assert len(set(texts)) == 1
    assert len(entries(output)) == 99


def test_stats_count_lines_tags_and_problems(
    trace: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--stats", str(trace), str(output)]) == 0
    rows = dict(line.rsplit(maxsplit=1) for line in capfd.readouterr().out.splitlines())
    assert {key: rows[key] for key in ("lines", "Open", "Exit", "processes", "problems")} == {
        "lines": "9",
        "Open": "1",
        "Exit": "2",
        "processes": "2",
        "problems": "0",
    }


def test_quiet_keeps_the_status_and_says_nothing(
    trace: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trace.write_bytes(BROKEN)
    assert main(["--quiet", str(trace), str(output)]) == 2
    assert capfd.readouterr() == ("", "")


def test_split_breaks_an_entry_and_loses_no_file(trace: Path, output: Path) -> None:
    opens = b"".join(
        b"2,0,1,1%d!Open|fnamesize=4,forigsize=4,flags=0,mode=0,fd=%d\n"
        b"2,0,1,1%d!FN|/f%02d\n2,0,1,1%d!FO|/f%02d\n" % (i, i, i, i, i, i)
        for i in range(10, 15)
    )
    trace.write_bytes(opens)
    assert main(["--split", "10", str(trace), str(output)]) == 0
    found = entries(output)
    assert [[file["p"] for file in entry.pop("o")] for entry in found] == [
        ["/f10", "/f11"],
        ["/f12", "/f13"],
        ["/f14"],
    ]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("options", [["-j", "0"], ["-j", "x"], ["--split", "-1"], []])
def test_wrong_usage_exits_2_and_shows_the_usage(
    options: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*options, "only-one"])
    assert caught.value.code == 2
    assert capfd.readouterr().err.startswith("usage: etrace_parser")


def test_help_imports_neither_the_native_parser_nor_anything_third_party() -> None:
    code = (
        "import sys\nfrom etrace.cli.parser import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'libetrace', 'rich', 'numpy', 'jinja2', 'subprocess'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
    assert done.stdout.splitlines()[-1] == b"[]"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_file_and_its_status(output: Path, number: signal.Signals) -> None:
    with subprocess.Popen([*RUN, "-", str(output)], stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        child.stdin.write(GOOD)
        child.stdin.flush()
        wait_until_reading(child.pid)
        child.send_signal(number)
        assert child.wait(timeout=20) == 128 + number
    assert names(output.parent) == []


@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDWR])
def test_a_pipe_that_never_ends_is_no_input(output: Path, flags: int) -> None:
    os.mkfifo(output.with_name("pipe"))
    reader = os.open(output.with_name("pipe"), os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(os.open(output.with_name("pipe"), flags), "wb") as end:
        done = subprocess.run(
            [*RUN, "-", str(output)], stdin=end, capture_output=True, check=False, timeout=30
        )
    os.close(reader)
    assert done.returncode == 2
    assert b"standard input is a pipe that is open for writing" in done.stderr
    assert names(output.parent) == ["pipe"]


def wait_until_reading(pid: int) -> None:
    """Wait until the command sleeps in a read of its standard input, the trace."""
    for _ in range(400):
        if any("poll" in wchan.read_text() for wchan in Path(f"/proc/{pid}/task").glob("*/wchan")):
            return
        time.sleep(0.05)
    raise AssertionError("the command never reads its standard input")


def test_ctrl_c_while_parsing_leaves_no_file(trace: Path, output: Path) -> None:
    from etrace.parse import parse_trace

    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parse_trace([trace], output, progress=interrupt)
    assert names(output.parent) == []


def test_ctrl_c_while_json_is_written_removes_the_pending_files(
    trace: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from etrace.parse import parse_trace

    seen: list[list[str]] = []

    def interrupt(*_arguments: Any, **_options: Any) -> None:
        seen.append(names(output.parent))
        raise KeyboardInterrupt

    monkeypatch.setattr("libetrace.convert.json_files.write_json_files", interrupt)
    with pytest.raises(KeyboardInterrupt):
        parse_trace([trace], output)
    assert len(seen[0]) == 4  # the image and the JSON files, all under temporary names
    assert all(name.endswith(".tmp") for name in seen[0])
    assert names(output.parent) == []


def test_a_short_run_shows_no_progress_on_a_terminal(trace: Path, output: Path) -> None:
    shown = run_on_terminal([*RUN, str(trace), str(output)])
    assert b"MB" not in shown


def run_on_terminal(command: list[str]) -> bytes:
    leader, follower = pty.openpty()
    with subprocess.Popen(command, stderr=follower) as child:
        os.close(follower)
        shown = b""
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:  # EIO: the other side is closed
                break
            if not piece:
                break
            shown += piece
        assert child.wait() == 0
    os.close(leader)
    return shown


def test_of_a_directory_of_etrace_run_the_trace_is_read(trace: Path, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / ".nfsdb").write_bytes(trace.read_bytes())
    (directory / ".nfsdb.old").write_bytes(trace.read_bytes())
    (directory / ".nfsdb.stats").write_text("{}")
    assert main([str(directory), str(tmp_path / "a.json")]) == 0
    assert main([str(trace), str(tmp_path / "b.json")]) == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_of_a_directory_of_parts_only_traces_are_read(trace: Path, tmp_path: Path) -> None:
    directory = tmp_path / "parts"
    directory.mkdir()
    (directory / "part_0").write_bytes(trace.read_bytes())
    (directory / "notes.txt").write_text("no trace")
    assert main([str(directory), str(tmp_path / "a.json")]) == 0


def test_an_input_is_not_overwritten(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = trace.read_bytes()
    assert main([str(trace), str(trace)]) == 2
    assert "is an input and the output" in capsys.readouterr().err
    assert trace.read_bytes() == before
