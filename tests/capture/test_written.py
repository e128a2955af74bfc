# SPDX-License-Identifier: Apache-2.0
"""What commands print, by ptrace: which writes count, what is cut, what options leave out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import trace_lines
from backends import Captured, capture

KEPT = 65536
#: of all executions, before those that succeed keep BRIEF only
FULL, BRIEF = 32 << 20, 2048


def traced(folder: Path, script: str, *options: str) -> Captured:
    work = folder / "work"
    work.mkdir()
    return capture(["/bin/sh", "-c", script], work, options=options, env=dict(os.environ))


def written(captured: Captured) -> dict[int, list[str]]:
    """Return by descriptor what each execution wrote, in order of their ends, cuts as `[N cut]`."""
    found: dict[int, list[str]] = defaultdict(list)
    trace = trace_lines.parse(captured.trace.read_bytes())
    for events in trace_lines.events_by_task(trace):
        texts: dict[int, str] = {}
        for event in events:
            if event.tag == "Written":
                cut = event.args["cut"]
                piece = (f"[{cut} cut]" if cut else "") + event.strings.get("OU", b"").decode()
                assert len(event.strings.get("OU", b"")) == event.args["size"] < 900
                texts[event.args["fd"]] = texts.get(event.args["fd"], "") + piece
            elif event.tag in ("New_proc", "Exit"):
                for fd, text in texts.items():
                    found[fd].append(text)
                texts = {}
        assert not texts, "a Written after the Exit"
    return found


#: script -> what each execution wrote to standard error
SCRIPTS = {
    "echo out; echo err >&2": ["err\n"],
    "cat /dev/null; cat >&2 <<E\nhere\nE\n": ["here\n"],
    "{ echo a; /bin/echo b; } >&2": ["a\n", "b\n"],
    "( echo sub >&2 )": ["sub\n"],
    "sh -c 'echo to a file >&2' 2>err": ["to a file\n"],
    "sh -c 'echo nowhere >&2' 2>/dev/null": ["nowhere\n"],
    "sh -c 'echo to a pipe >&2' 2>&1 | cat": ["to a pipe\n"],
    "exec 3>&2 2>/dev/null; echo by three >&3": ["by three\n"],
    "exec 3>log; echo in a log >&3": [],
    "sh -c 'echo closed >&2' 2>&-": [],
    "echo before >&2; exec sh -c 'echo after >&2; kill -TERM $$'": ["before\n", "after\n"],
    # standard output of a whole program: what it starts in turn is seen by descriptor 2 alone
    "sh -c 'echo own; /bin/echo of a child; /bin/echo error >&2' >&2": ["own\n", "error\n"],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_goes_to_standard_error_is_kept(tmp_path: Path, script: str) -> None:
    found = written(traced(tmp_path, script))
    assert sorted(found[2]) == sorted(SCRIPTS[script])
    assert not found[1]


def test_standard_output_is_kept_when_asked_for(tmp_path: Path) -> None:
    found = written(traced(tmp_path, "echo out; echo err >&2; echo more", "--stdout"))
    assert found == {1: ["out\nmore\n"], 2: ["err\n"]}


def test_each_can_be_left_out(tmp_path: Path) -> None:
    for name, options in (("none", ["--no-stderr"]), ("out", ["--no-stderr", "--stdout"])):
        (tmp_path / name).mkdir()
        found = written(traced(tmp_path / name, "echo out; echo err >&2", *options))
        assert found == ({1: ["out\n"]} if name == "out" else {})


@pytest.mark.parametrize("block", [7, 700, 100_000])
def test_of_much_the_first_and_the_last_half_are_kept(tmp_path: Path, block: int) -> None:
    numbers = "".join(f"{i:05}\n" for i in range(100_000 // 6))
    (tmp_path / "numbers").write_text(numbers)
    captured = traced(tmp_path, f"exec dd if=../numbers bs={block} status=none >&2")
    assert captured.stderr == numbers.encode()
    wanted = f"{numbers[: KEPT // 2]}[{len(numbers) - KEPT} cut]{numbers[-KEPT // 2 :]}"
    assert written(captured)[2] == [wanted]


def test_past_the_limit_of_a_trace_only_what_failed_keeps_all(tmp_path: Path) -> None:
    text = "x" * 3000
    (tmp_path / "text").write_text(text)
    much = f"while [ $((i+=1)) -le {FULL // KEPT} ]; do head -c {KEPT} /dev/zero >&2; done"
    ends = "cat ../text >&2; exec cat ../text nothing >&2"
    found = written(traced(tmp_path, f"cat ../text >&2; i=0; {much}; {ends}"))[2]
    assert found.count("\0" * KEPT) == FULL // KEPT
    assert found.count(text) == 1
    assert found.count(f"{text[: BRIEF // 2]}[{3000 - BRIEF} cut]{text[-BRIEF // 2 :]}") == 1
    assert sum(each.startswith(text + "cat: nothing") for each in found) == 1


def test_what_a_thread_writes_belongs_to_its_process(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "t.c").write_text(
        """
        #include <pthread.h>
        #include <unistd.h>
        static void *run(void *text) { write(2, text, 4); return 0; }
        int main(void)
        {
            pthread_t thread;
            pthread_create(&thread, 0, run, "abc\\n");
            pthread_join(thread, 0);
            write(2, "def\\n", 4);
            return 3;
        }
        """
    )
    subprocess.run(["gcc", "-w", "-pthread", "-o", tmp_path / "t", tmp_path / "t.c"], check=True)
    captured = capture([tmp_path / "t"], tmp_path / "work")
    assert captured.status == 3
    assert written(captured)[2] == ["abc\ndef\n"]


def test_a_backend_that_keeps_nothing_says_so(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("etrace")), "run", "-q", "--backend", "preload"]
    done = subprocess.run(
        [*command, "--stdout", "-o", str(tmp_path), "--", "true"],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    assert done.stderr == (
        "etrace: preload does not record what programs write: --stdout does nothing\n"
    )


def test_the_trace_is_for_its_owner_alone(tmp_path: Path) -> None:
    captured = traced(tmp_path, "echo secret >&2")
    assert captured.trace.stat().st_mode & 0o777 == 0o600
