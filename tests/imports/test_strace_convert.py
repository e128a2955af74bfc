# SPDX-License-Identifier: Apache-2.0
"""Logs of strace become the events that they say, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from imports.strace_texts import convert, facts, read

from etrace.errors import EtraceError

SH = '10 1.0 execve("/bin/sh", ["sh", "-c", "x"], 0x7f /* 3 vars */) = 0\n'
T = 1795392547


def timed(*lines: str) -> str:
    """Give each line a time of -ttt, a millisecond after the one before, after its pid."""
    out = ""
    for n, line in enumerate(lines):
        pid, _, rest = line.partition(" ")
        out += f"{pid} {T}.{n:03d}000 {rest}\n"
    return out


def test_a_vfork_whose_result_comes_after_the_child(tmp_path: Path) -> None:
    log = timed(
        '10 execve("/bin/sh", ["sh"], 0x7f /* 3 vars */) = 0',
        "10 pipe2([3, 4], O_CLOEXEC) = 0",
        "10 vfork( <unfinished ...>",
        "11 close(4 <unfinished ...>",
        "11 <... close resumed>) = 0",
        '11 execve("a", ["a", "b c"], 0x7f /* 3 vars */ <unfinished ...>',
        "10 <... vfork resumed>) = 11",
        "11 <... execve resumed>) = 0",
        "11 exit_group(3) = ?",
        "11 +++ exited with 3 +++",
        "10 +++ killed by SIGTERM +++",
    )
    trace, converted = convert(tmp_path, log)
    assert facts(trace) == [
        "1 New_proc /bin/sh /bin/sh /w sh",
        "1 Pipe 3 4 524288",
        "1 SchedFork 1.1",
        "1.1 Close 4",
        "1.1 Close 3",  # by the exec, with its stamp
        "1.1 New_proc /w/a /w/a /w a b c",
        "1.1 Exit 3",
        "1 Exit 143",
    ]
    assert converted.n_processes == 2
    assert [line.time_ns for line in trace.lines if line.data.startswith(b"SchedFork")] == [
        T * 10**9 + 2_000_000
    ]


def test_paths_are_those_of_the_directory_at_the_time(tmp_path: Path) -> None:
    log = timed(
        '10 openat(AT_FDCWD, "a", O_RDONLY) = 3',
        '10 chdir("sub") = 0',
        '10 openat(AT_FDCWD, "b", O_RDWR|O_CREAT|O_TRUNC, 0644) = 4</real/b>',
        '10 openat(AT_FDCWD, ".", O_RDONLY|O_DIRECTORY) = 5',
        '10 chdir("/nowhere") = -1 ENOENT (No such file or directory)',
        '10 chdir("/") = 0',
        '10 openat(5, "c", O_RDONLY) = 6',
        "10 fchdir(5) = 0",
        '10 renameat2(AT_FDCWD, "c", 5, "../d", RENAME_NOREPLACE) = 0',
        '10 rename("c", "d") = -1 ENOENT (No such file or directory)',
        '10 symlink("d", "e") = 0',
        '10 linkat(AT_FDCWD, "d", AT_FDCWD, "f", 0) = 0',
        '10 openat(AT_FDCWD</moved>, "g", O_RDONLY) = 7',
        '10 creat("h", 0600) = 8',
    )
    trace, _ = convert(tmp_path, log)
    assert facts(trace) == [
        "1 Open 0 0 3 /w/a /w/a",
        "1 Open 578 420 4 /real/b /w/sub/b",
        "1 Open 65536 0 5 /w/sub /w/sub/.",
        "1 Open 0 0 6 /w/sub/c /w/sub/c",
        "1 Rename2From 1 /w/sub/c",
        "1 RenameTo /w/d",
        "1 RenameFailed",
        "1 Symlink d /w/sub/e",
        "1 LinkatFrom 0 /w/sub/d",
        "1 LinkTo /w/sub/f",
        "1 Open 0 0 7 /moved/g /moved/g",
        "1 Open 577 384 8 /moved/h /moved/h",
    ]


def test_a_symbolic_link_is_linked_itself_unless_it_is_followed(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "link").symlink_to("file")
    log = timed(
        '10 linkat(AT_FDCWD, "link", AT_FDCWD, "a", 0) = 0',
        '10 linkat(AT_FDCWD, "link", AT_FDCWD, "b", AT_SYMLINK_FOLLOW) = 0',
    )
    trace, _ = convert(tmp_path, log, cwd=bytes(folder), is_here=True)
    assert facts(trace) == [
        f"1 LinkatFrom 0 {folder}/link",
        f"1 LinkTo {folder}/a",
        f"1 LinkatFrom 1024 {folder}/file",
        f"1 LinkTo {folder}/b",
    ]


def test_threads_share_descriptors_and_directory(tmp_path: Path) -> None:
    flags = "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM"
    log = timed(
        '10 openat(AT_FDCWD, "a", O_RDONLY|O_CLOEXEC) = 3',
        f"10 clone3({{flags={flags}, exit_signal=0, stack=0x7f}} => {{parent_tid=[11]}}, 88) = 11",
        '11 chdir("/x") = 0',
        "11 fcntl(3, F_DUPFD, 10) = 10",
        "11 fcntl(10, F_SETFD, FD_CLOEXEC) = 0",
        '10 openat(AT_FDCWD, "b", O_RDONLY) = 4',
        '11 execve("p", ["p"], 0x7f /* 3 vars */ <pid changed to 10 ...>',
        "10 +++ superseded by execve in pid 11 +++",
        "10 <... execve resumed>) = -1 (errno 18446744073709551385)",
        "10 dup3(4, 5, O_CLOEXEC) = 5",
        "10 +++ exited with 0 +++",
    )
    trace, _ = convert(tmp_path, log)
    assert facts(trace) == [
        "1 Open 524288 0 3 /w/a /w/a",
        "1 SysClone 331520",
        "1 SchedFork 1.1",
        "1.1 Dup 3 10 0",
        "1 Open 0 0 4 /x/b /x/b",
        "1 Exit 0",
        "1.1 Close 3",
        "1.1 Close 10",
        "1.1 New_proc /x/p /x/p /x p",
        "1.1 Dup 4 5 524288",
        "1.1 Exit 0",
    ]


def test_a_pid_that_comes_again_is_another_process(tmp_path: Path) -> None:
    log = timed(
        "10 fork() = 11",
        "11 +++ exited with 1 +++",
        "10 fork() = 11",
        "11 +++ exited with 2 +++",
    )
    trace, converted = convert(tmp_path, log)
    assert facts(trace) == [
        "1 SchedFork 1.1", "1.1 Exit 1", "1 SchedFork 1.2", "1.2 Exit 2",
    ]  # fmt: skip
    assert converted.n_processes == 3


def test_calls_that_are_made_again_and_failed_clones(tmp_path: Path) -> None:
    log = timed(
        "10 clone(child_stack=NULL, flags=SIGCHLD) = ? ERESTARTNOINTR (To be restarted)",
        "10 clone(child_stack=NULL, flags=SIGCHLD) = -1 EAGAIN (Resource temporarily unavailable)",
        '10 openat(AT_FDCWD, "a", O_RDONLY) = ? ERESTARTSYS (To be restarted)',
        "10 close(7) = -1 EBADF (Bad file descriptor)",
        "10 close(8) = -1 EIO (Input/output error)",
        "10 exit_group(9) = ?",
    )
    trace, _ = convert(tmp_path, log)
    assert facts(trace) == ["1 SysClone 17", "1 SysCloneFailed", "1 Close 8", "1 Exit 9"]


def test_a_log_on_a_terminal_names_no_single_process(tmp_path: Path) -> None:
    log = (
        'execve("/bin/sh", ["sh"], 0x7f /* 3 vars */) = 0\n'
        "clone(child_stack=NULL, flags=SIGCHLDstrace: Process 11 attached\n"
        " <unfinished ...>\n"
        "the program itself said something\n"
        "[pid 11] close(3 <unfinished ...>\n"
        "[pid 10] <... clone resumed>, child_tidptr=0x7f) = 11\n"
        "[pid 11] <... close resumed>) = 0\n"
        "[pid 10] close(4) = 0\n"
        "[pid 11] +++ exited with 0 +++\n"
        "close(5) = 0\n"
        "+++ exited with 0 +++\n"
    )
    trace, converted = convert(tmp_path, log)
    assert facts(trace) == [
        "1 New_proc /bin/sh /bin/sh /w sh",
        "1 SysClone 17",
        "1 SchedFork 1.1",
        "1.1 Close 3",
        "1 Close 4",
        "1.1 Exit 0",
        "1 Close 5",
        "1 Exit 0",
    ]
    assert converted.remarks[-1] == (
        f"1 line was not understood and left out; the first is {tmp_path}/log:4"
    )


def test_a_script_a_comment_and_an_environment(tmp_path: Path) -> None:
    log = timed(
        r'10 execve("./s", ["./s", "a\nb", "\303\251\x41"...], ["A=1", "B=\n2"]) = 0',
        '10 execve("./t", ["./t", ...], ["A=1"]) = 0',
        '10 prctl(PR_SET_NAME, "a-name-of-many-"...) = 0',
    )
    trace, converted = convert(tmp_path, log)
    assert facts(trace) == [
        "1 New_proc /w/s /w/s /w ./s a\nb \u00e9A",
        "1 New_proc /w/t /w/t /w ./t",
        "1 Comm a-name-of-many-",
    ]
    variables = [line.data for line in trace.lines if line.upid == 0]
    upid = trace.roots()[0]
    assert variables == [
        b"UPID|%d" % upid, b"Env[0]A=1", b"UPID|%d" % upid, b"Env[0]B=", b"Cont|2", b"Cont_end|",
    ]  # fmt: skip
    assert "2 strings were cut off by strace; record with -s 131072" in converted.remarks


def test_variables_that_take_much_memory_are_written_and_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("etrace.imports.strace.calls.KEPT_BYTES", 10_000)
    lines = [f'10 execve("/a", ["a"], ["{n}=", "SAME=1"]) = 0' for n in range(100)]
    trace, _ = convert(tmp_path, timed(*lines))
    data = [line.data for line in trace.lines if line.upid == 0 and line.data[:3] == b"Env"]
    assert sorted(set(data)) == sorted([b"Env[0]SAME=1", *(b"Env[0]%d=" % n for n in range(100))])
    assert 2 < data.count(b"Env[0]SAME=1") < 10
    assert len(data) < 110


def test_files_of_ff_are_merged_by_time(tmp_path: Path) -> None:
    (tmp_path / "x.10").write_text(
        '00:00:01.5 execve("/a", ["a"], 0x7f /* 1 var */) = 0\n'
        "00:00:01.6 vfork() = 9\n"
        "00:00:01.9 +++ exited with 0 +++\n"
    )
    (tmp_path / "x.9").write_text("00:00:01.7 close(3) = 0\n00:00:01.8 +++ exited with 1 +++\n")
    trace, converted = read([str(tmp_path / "x")])
    assert facts(trace) == [
        "1 New_proc /a /a /w a", "1 SchedFork 1.1", "1.1 Close 3", "1.1 Exit 1", "1 Exit 0",
    ]  # fmt: skip
    assert "the date" in converted.remarks[0]


def test_times_of_the_day_go_on_after_midnight_and_relative_ones_add_up(tmp_path: Path) -> None:
    trace, _ = convert(tmp_path, "23:59:59 close(3) = 0\n00:00:01 close(4) = 0\n")
    first, second = (line.time_ns for line in trace.lines)
    assert second - first == 2 * 10**9
    trace, converted = convert(tmp_path, "  0.000000 close(3) = 0\n  0.000412 close(4) = 0\n")
    first, second = (line.time_ns for line in trace.lines)
    assert second - first == 412_000
    assert "when the build began" in converted.remarks[0]


def test_what_a_log_lacks_is_said_once(tmp_path: Path) -> None:
    _, converted = convert(tmp_path, 'execve("/a", ["a"], 0x7f /* 1 var */) = 0\n' * 3)
    first, second = converted.remarks
    assert first == (
        "the log does not say: the CPU of each event: it is 0; what processes used (CPU time, "
        "memory, I/O); times: the order of the lines is kept, one microsecond apart; record with "
        "-ttt"
    )
    assert second == (
        "the log has no calls for: opens, closes, copies of descriptors, forks, pipes, changes of "
        "the working directory, renames, links: if there were any, strace was not asked for them"
    )


def test_the_directory_is_the_one_of_y_or_must_be_named(tmp_path: Path) -> None:
    shown = '10 openat(AT_FDCWD</home/me>, "a", O_RDONLY) = 3</home/me/a>\n'
    trace, _ = convert(tmp_path, shown, cwd=None)
    assert trace.cwd == b"/home/me"
    for text in ("10 close(3) = 0\n", f'10 chdir("x") = 0\n{shown}'):
        with pytest.raises(EtraceError, match="does not say in which directory") as raised:
            convert(tmp_path, text, cwd=None)
        assert "--cwd" in raised.value.hint


ATTACHED = timed(
    '10 execve("/bin/sh", ["sh"], 0x7f /* 3 vars */) = 0',
    '20 execve("/bin/gcc", ["gcc", "n.c"], 0x7f /* 3 vars */) = 0',
    '20 openat(AT_FDCWD, "n.c", O_RDONLY) = 3',
    '20 rename("a", "/b") = 0',
    '20 openat(AT_FDCWD, "/n.h", O_RDONLY) = 4',
    '20 execve("./x", ["x"], 0x7f /* 3 vars */) = 0',
    "20 +++ exited with 0 +++",
)


def test_the_directory_of_a_process_without_parent_is_not_guessed(tmp_path: Path) -> None:
    trace, converted = convert(tmp_path, ATTACHED)
    assert facts(trace) == [
        "1 New_proc /bin/sh /bin/sh /w sh",
        "2 New_proc /bin/gcc /bin/gcc  gcc n.c",
        "2 Open 0 0 4 /n.h /n.h",
        "2 New_proc ./x ./x  x",
        "2 Exit 0",
    ]
    remarks = " ".join(converted.remarks)
    assert "2 calls were left out: relative to a directory that the log does not show" in remarks
    assert "2 programs have no working directory: that of a process without parent" in remarks
    assert "1 process has no parent in the log" in remarks


def test_the_directory_of_a_process_without_parent_is_the_one_that_y_shows(tmp_path: Path) -> None:
    shown = ATTACHED.replace('AT_FDCWD, "n.c", O_RDONLY) = 3', 'AT_FDCWD</d>, "n.c", O_RDONLY) = 3')
    trace, converted = convert(tmp_path, shown)
    assert facts(trace)[1:] == [
        "2 New_proc /bin/gcc /bin/gcc /d gcc n.c",
        "2 Open 0 0 3 /d/n.c /d/n.c",
        "2 RenameFrom /d/a",
        "2 RenameTo /b",
        "2 Open 0 0 4 /n.h /n.h",
        "2 New_proc /d/x /d/x /d x",
        "2 Exit 0",
    ]
    assert "left out" not in " ".join(converted.remarks)


def test_a_number_in_a_pid_namespace_is_no_process_of_the_log(tmp_path: Path) -> None:
    """With --pidns-translation strace says which one it is; without, nobody is made of it."""
    log = timed(
        '10 execve("/bin/unshare", ["unshare"], 0x7f /* 3 vars */) = 0',
        "10 unshare(CLONE_NEWNS|CLONE_NEWPID) = 0",
        "10 vfork() = 11",
        '11 chdir("/d") = 0',
        "11 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 2",
        '12 execve("gcc", ["gcc"], 0x7f /* 3 vars */) = 0',
        "12 +++ exited with 0 +++",
    )
    trace, converted = convert(tmp_path, log)
    assert facts(trace)[1:] == [
        "1 SchedFork 1.1",
        "1.1 SysClone 16777233",
        "2 New_proc gcc gcc  gcc",
        "2 Exit 0",
    ]
    assert converted.n_processes == 3
    assert "without --pidns-translation?" in converted.remarks[-1]
    translated = log.replace("= 2\n", "= 2 /* 12 in strace's PID NS */\n")
    trace, converted = convert(tmp_path, translated)
    assert facts(trace)[2:] == [
        "1.1 SysClone 16777233",
        "1.1 SchedFork 1.1.1",
        "1.1.1 New_proc /d/gcc /d/gcc /d gcc",
        "1.1.1 Exit 0",
    ]


def test_what_is_no_log_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(EtraceError, match=r"log:1: no line of strace: expected PID TIME"):
        convert(tmp_path, "int main(void)\n{\n}\n")
    with pytest.raises(EtraceError, match="no call that starts a program"):
        convert(tmp_path, 'read(3, "x", 1) = 1\n')
    with pytest.raises(EtraceError, match=r"cannot read .*: no such file"):
        read([str(tmp_path / "none")])


@pytest.mark.parametrize(
    "argument",
    [
        "test $((1 + 1)) = 2 || exit",
        "f() = 0",
        "x) = -1 ENOENT",
        "a <unfinished ...>) = 0",
        ") = ?",
    ],
)
def test_an_interrupted_call_whose_argument_looks_like_its_result(
    argument: str, tmp_path: Path
) -> None:
    """As in `sh -c` of every configure script of autoconf."""
    shown = argument.replace('"', '\\"')
    whole = f'10 execve("/bin/sh", ["sh", "-c", "{shown}"], 0x7f /* 3 vars */) = 0'
    cut = whole.removesuffix(") = 0") + " <unfinished ...>"
    expected = [f"1 New_proc /bin/sh /bin/sh /w sh -c {argument}"]
    for lines in ([whole], [cut, "10 <... execve resumed>) = 0"]):
        trace, _ = convert(tmp_path, timed(*lines))
        assert facts(trace) == expected
