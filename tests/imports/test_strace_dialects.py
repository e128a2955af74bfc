# SPDX-License-Identifier: Apache-2.0
"""The same command recorded by strace with all sorts of options gives the same events."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import trace_lines
from backends import need_tool

from etrace.imports.strace.log import import_log

SCRIPT = (
    "cd sub; cat a 'b \"\303\251\t' | sort > c; mv c d; ln d e; ln -s e f; exec 5<d; (exit 3);"
    " cat <&5 >/dev/null; sh -c 'kill -TERM $$'; true"
)
CALLS = (
    "execve,open,openat,creat,close,pipe,pipe2,dup,dup2,dup3,fcntl,rename,renameat2,link,linkat,"
    "symlink,symlinkat,clone,clone3,fork,vfork,chdir,exit_group"
)
ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
DIALECTS = [
    "-f", "-f -t", "-f -tt -y", "-f -ttt -yy", "-f -r -y", "-f -r -tt", "-f -ttt -xx -X raw",
    "-f -ttt -x -X verbose -y", "-f -ttt -T -i", "-f -ttt -n -Y", "-f -y -ttt --seccomp-bpf",
    "-f -y -ttt -q -v", "-ff -ttt", "-ff -tt -y", "-ff -ttt -xx -yy",
    "-f -y --absolute-timestamps=format:unix,precision:ns", "terminal -f -ttt -y",
    "terminal -f", "terminal -f -q -r",
]  # fmt: skip
PIPE = re.compile(rb"pipe:\[\d+\]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("strace").resolve()


def record(folder: Path, options: str) -> Path:
    """Run the script under strace in a fresh tree; return its log."""
    need_tool("strace", "strace")
    work, log = folder / "work", folder / "log"
    shutil.rmtree(work, ignore_errors=True)
    for old in folder.glob("log*"):
        old.unlink()
    (work / "sub").mkdir(parents=True)
    (work / "sub" / "a").write_text("2\n1\n")
    (work / "sub" / 'b "\303\251\t').write_text("3\n")
    own = options.removeprefix("terminal ")
    words = ["strace", *own.split(), "-s", "4096", "-e", f"trace={CALLS}"]
    words += [] if options.startswith("terminal") else ["-o", str(log)]
    done = subprocess.run(
        [*words, "sh", "-c", SCRIPT], cwd=work, env=ENV, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    if options.startswith("terminal"):
        log.write_bytes(done.stderr)
    return log


def lines_of(folder: Path, options: str) -> dict[str, list[bytes]]:
    """Return the event lines of the script by task."""
    log, stream = record(folder, options), io.BytesIO()
    converted = import_log([str(log)], stream, directory=os.fsencode(folder / "work"), is_here=True)
    # on a terminal the shell itself says "Terminated"
    bad = [remark for remark in converted.remarks if "not understood" in remark]
    assert [each[:7] for each in bad] == (["1 line "] if options.startswith("terminal") else [])
    trace = trace_lines.parse(stream.getvalue())
    tasks = trace_lines.by_task(trace, trace.roots()[0])
    tasks.pop(trace_lines.ENVIRONMENT, None)
    return {name: [PIPE.sub(b"pipe:[N]", line) for line in lines] for name, lines in tasks.items()}


@pytest.fixture(scope="module")
def wanted(folder: Path) -> dict[str, list[bytes]]:
    """What the options of `etrace run --backend strace` give."""
    return lines_of(folder, "-f -ttt -y")


@pytest.mark.parametrize("options", DIALECTS)
def test_a_dialect_says_the_same(
    options: str, folder: Path, wanted: dict[str, list[bytes]]
) -> None:
    assert sum(map(len, wanted.values())) > 200
    got = lines_of(folder, options)
    if diff := trace_lines.difference(wanted, got):
        pytest.fail(diff[:3000], pytrace=False)
