# SPDX-License-Identifier: Apache-2.0
"""One build by every capture backend in one guest: the same programs, opens and compile commands.

What differs is exactly what docs/capture-preload.md says. The build
(tests/data/mixed_build) has what backends differ in: a static tool, a 32-bit one, a make in a make.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import built_content
import pytest
from databases import database_of
from libetrace.depend import configuration as config
from vm.rig import Guest

from etrace.export.compile_commands import entries
from etrace.nfsdb.environment import of_processes
from etrace.nfsdb.store import open_database
from etrace.postprocess import run
from etrace.spec.builders import is_builder

pytestmark = [
    pytest.mark.vm,
    pytest.mark.slow,
    pytest.mark.timeout(14400),
    pytest.mark.phase("backends", "mixed_build"),
]
FOLDER = b"/run/etrace-build/work"
BACKENDS = ("ptrace", "bpf", "preload", "strace", "kmod")
OTHERS = BACKENDS[1:]
STATIC, TOOL_32 = FOLDER + b"/tool.static", FOLDER + b"/tool.32"
#: what libc and the dynamic linker open for themselves, and libselinux in its constructor
UNTOLD = re.compile(
    rb"/etc/ld\.so\.cache|/etc/locale\.alias|/usr/(lib|share)/locale/.*|/proc/filesystems"
)
#: of the dynamic linker of 32-bit programs, which preload reports without its flag
LIBC_32 = b"/usr/lib32/libc.so.6"
O_LARGEFILE = 0o100000

Opened = tuple[bytes, bytes, bytes, int]


def trace_of(guest: Guest, backend: str) -> bytes:
    guest.phase("backends", "mixed_build")
    return (guest.work / "backends" / f"{backend}.nfsdb").read_bytes()


def without_links(path: bytes) -> bytes:
    """Leave out where /bin leads: on 9p the module gets no target of a link (decision 25)."""
    return re.sub(rb"^/usr/(?=s?bin/|lib(32|64)?/)", b"/", path)


def content(guest: Guest, backend: str) -> tuple[Counter[tuple[bytes, ...]], Counter[Opened]]:
    """Return programs, and opens by program; both from make on."""
    programs, opens = built_content.of_trace(trace_of(guest, backend))
    named = Counter[tuple[bytes, ...]]()
    for (interpreter, program, *words), n in programs.items():
        named[(without_links(interpreter), without_links(program), *words)] += n
    opened = Counter[Opened]()
    for (program, path, given, flags), n in opens.items():
        opened[(without_links(program), path, given, flags)] += n
    return named, opened


def is_blind(opened: Opened) -> bool:
    """Return whether preload misses an open."""
    return opened[0] == STATIC or bool(UNTOLD.fullmatch(opened[1]))


def as_the_linker_opens(opens: Counter[Opened]) -> Counter[Opened]:
    """Return opens with the flags that preload gives those of the dynamic linker."""
    found = Counter[Opened]()
    for (program, path, given, flags), n in opens.items():
        is_seen = program == TOOL_32 and path == LIBC_32
        found[(program, path, given, flags & ~O_LARGEFILE if is_seen else flags)] += n
    assert found != opens
    return found


@pytest.mark.parametrize("backend", OTHERS)
def test_the_programs_are_those_of_ptrace(guest: Guest, backend: str) -> None:
    expected, _ = content(guest, "ptrace")
    found, _ = content(guest, backend)
    assert found - expected == Counter()
    assert expected - found == Counter()
    assert expected.total() > 25


@pytest.mark.parametrize("backend", OTHERS)
def test_the_opens_are_those_of_ptrace_but_for_what_is_documented(
    guest: Guest, backend: str
) -> None:
    _, expected = content(guest, "ptrace")
    _, found = content(guest, backend)
    if backend == "preload":
        blind = Counter({opened: n for opened, n in expected.items() if is_blind(opened)})
        assert blind.total() > 0
        expected = as_the_linker_opens(expected - blind)
    assert found - expected == Counter()
    assert expected - found == Counter()


def test_preload_says_what_it_missed(guest: Guest) -> None:
    trace_of(guest, "preload")
    stats = json.loads((guest.work / "backends" / "preload.stats").read_text())
    assert stats["unseen_executions"] == 1
    assert any("1 execution was of static programs" in text for text in stats["warnings"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_was_lost(guest: Guest, backend: str) -> None:
    trace_of(guest, backend)
    stats = json.loads((guest.work / "backends" / f"{backend}.stats").read_text())
    assert stats.get("lost", stats.get("lost_events", 0)) == 0


def commands(folder: Path, trace: bytes) -> list[object]:
    """Return the compile commands of a trace."""
    folder.mkdir()
    image = database_of(folder, trace)
    run.postprocess(image, config.load(folder), ["compilations", "linked"])
    found = entries(open_database(image.path))
    return sorted(([each["directory"], each["file"], each["arguments"]] for each in found), key=str)


def test_the_compile_commands_are_the_same(guest: Guest, tmp_path: Path) -> None:
    found = {name: commands(tmp_path / name, trace_of(guest, name)) for name in BACKENDS}
    assert len(found["ptrace"]) == 4
    assert {name: found[name] for name in OTHERS} == dict.fromkeys(OTHERS, found["ptrace"])


#: what backends give to make, and the directory before the build's
OWN_VARIABLES = re.compile(rb"(LD_PRELOAD|ETRACE_\w+|[AL]SAN_OPTIONS|OLDPWD|_)=.*")


def variables_of_makes(folder: Path, trace: bytes) -> list[list[bytes]]:
    """Return the variables of each make of a trace; no other program may have some."""
    folder.mkdir()
    image = database_of(folder, trace)
    executions = image["executions"]
    makes = {
        upid for upid, path in zip(executions["upid"], executions["binary"], strict=True)
        if is_builder(image.path_string(path))
    }  # fmt: skip
    found = of_processes(image)
    assert set(found) == makes
    return sorted(
        sorted(each for each in own if not OWN_VARIABLES.fullmatch(each)) for own in found.values()
    )


def test_makes_alone_keep_their_environment_without_secrets(guest: Guest, tmp_path: Path) -> None:
    found = {name: variables_of_makes(tmp_path / name, trace_of(guest, name)) for name in BACKENDS}
    assert {name: found[name] for name in OTHERS} == dict.fromkeys(OTHERS, found["ptrace"])
    for own in found["ptrace"]:
        assert {b"API_TOKEN=[hidden]", b"MIRROR=[hidden]", b"NUMBER=zOrdinary7kQ"} <= set(own)
    for name in BACKENDS:
        assert b"KeptAside" not in trace_of(guest, name)
