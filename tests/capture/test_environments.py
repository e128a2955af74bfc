# SPDX-License-Identifier: Apache-2.0
"""Environments of make and ninja are always kept, and all with `--env`.

When all are different, what they cost grows as their number, and none is lost.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from backends import BPF, PTRACE, Backend, capture, need_root, need_tool
from event_programs import compiled

from etrace.spec import builders

ETRACE = Path(sys.executable).with_name("etrace")
SECRETS = {"API_TOKEN": "zKeptAside7kQ", "MIRROR": "https://me:zKeptAside7kQ@example.org/"}
ORDINARY = {"NUMBER": "zOrdinary7kQ", "LIST": "../x ../y", "OLDPWD": "/w/x", "USE_AUTH": "yes"}
BACKENDS = ["ptrace", "preload", "strace", pytest.param("bpf", marks=pytest.mark.root)]
#: make, in it another one, a program that is called as ninja is, a script of that name and others
BUILD = {
    "Makefile": "all:\n\t@$(MAKE) -s -f sub.mk\n\t@./samu 0.2\n\t@scripts/ninja\n\t@./cc 0.2\n",
    "sub.mk": "export LOWER = low\nall:\n\t@/bin/true\n",
    "scripts/ninja": "#!/bin/sh\n/bin/true\n",
}

VARIABLES = 30_000
FEW, MANY = 5, 40  # all of MANY together are more than a capture keeps
MOST = 24  # times the cost, for 8 times the variables; quadratic work is 64 times
FLOOR_S = 0.1


def captured(folder: Path, backend: Backend, n: int) -> tuple[float, Path]:
    """Return the CPU seconds of a capture of `n` executions, and its trace."""
    before = os.times()
    program = compiled("environments", folder, "-static")
    done = capture([program, str(n), str(VARIABLES)], folder, backend=backend, options=["--env"])
    after = os.times()
    assert done.status == 0, done.stderr
    return sum(after[2:4]) - sum(before[2:4]), done.trace


@pytest.mark.parametrize(
    "backend", [PTRACE, pytest.param(BPF, marks=pytest.mark.root)], ids=["ptrace", "bpf"]
)
def test_different_variables_cost_as_much_as_they_are_many(backend: Backend, folder: Path) -> None:
    if backend is BPF:
        need_root()
    few, _ = captured(folder, backend, FEW)
    many, trace = captured(folder, backend, MANY)
    assert many < MOST * max(few, FLOOR_S)
    groups = re.findall(rb"UPID\|(\d+)\n[^!]*!Env\[0\]([0-9a-f]+)=\n", trace.read_bytes())
    assert len(groups) == MANY * VARIABLES
    assert {int(name, 16) for _, name in groups} == set(range(MANY * VARIABLES))
    assert len({upid for upid, _ in groups}) == MANY


def environments(
    folder: Path, backend: str, *options: str
) -> tuple[dict[bytes, set[bytes]], bytes]:
    """Trace BUILD; return the variables of programs that have some by name, and the trace."""
    if backend == "strace":
        need_tool("strace", "strace")
    if backend == "bpf":
        need_root()
    for name, text in BUILD.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "scripts/ninja").chmod(0o755)
    for name in ("samu", "cc"):
        (folder / name).write_bytes(Path("/bin/sleep").read_bytes())
        (folder / name).chmod(0o755)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("M")}
    subprocess.run(
        [ETRACE, "run", "-q", "--backend", backend, *options, "--", "make"],
        cwd=folder, env={**kept, **SECRETS, **ORDINARY}, check=True, capture_output=True,
    )  # fmt: skip
    trace = (folder / ".nfsdb").read_bytes()
    programs: dict[bytes, bytes] = {}
    for upid, path in re.findall(rb"^(\d+),.*!PI\|/(?:.*/)?(.*)$", trace, re.M):
        programs[upid] = path
    found: dict[bytes, set[bytes]] = {}
    upids: list[bytes] = []
    for kind, text in re.findall(rb"^0,.*!(UPID\||Env\[0\])(.*)$", trace, re.M):
        if kind == b"UPID|":
            upids = [text] if not upids or upids[-1] == b"" else [*upids, text]
            continue
        for upid in filter(None, upids):
            found.setdefault(programs[upid], set()).add(text)
        upids = [b""]
    return found, trace


@pytest.mark.parametrize("backend", BACKENDS)
def test_make_and_ninja_alone_keep_theirs_without_secrets(folder: Path, backend: str) -> None:
    found, trace = environments(folder, backend)
    assert set(found) == {b"make", b"samu"}
    for own in found.values():
        assert {os.fsencode(f"{name}={text}") for name, text in ORDINARY.items()} <= own
        assert {b"API_TOKEN=[hidden]", b"MIRROR=[hidden]"} <= own
    assert b"MAKELEVEL=1" in found[b"make"]
    assert b"KeptAside" not in trace


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_are_kept_as_they_are_with_env(folder: Path, backend: str) -> None:
    found, _ = environments(folder, backend, "--env")
    assert {b"make", b"samu", b"cc"} < set(found)
    for own in found.values():
        assert {
            os.fsencode(f"{name}={text}") for name, text in {**ORDINARY, **SECRETS}.items()
        } <= own


@pytest.mark.parametrize("name", sorted(builders.TOOLS))
def test_each_builder_is_known_by_its_name(folder: Path, name: bytes) -> None:
    program = folder / os.fsdecode(name)
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    done = capture([program], folder, env={"NUMBER": "zOrdinary7kQ"})
    assert b"!Env[0]NUMBER=zOrdinary7kQ\n" in done.trace.read_bytes()
    program.rename(other := folder / f"not{os.fsdecode(name)}")
    done = capture([other], folder, env={"NUMBER": "zOrdinary7kQ"})
    assert b"Env[0]" not in done.trace.read_bytes()
