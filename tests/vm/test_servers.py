# SPDX-License-Identifier: Apache-2.0
"""Traced programs that serve file systems, to themselves too: tracing asks them nothing."""

from __future__ import annotations

import pytest
import trace_lines
from vm.machine import complaints
from vm.rig import Guest, numbers

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400)]
SERVERS = ("servers",)
KINDS = ("fuse", "exec", "autofs", "pages", "away")


def folder(kind: str) -> bytes:
    return b"/run/servers/traced-" + kind.encode()


def lines_of(guest: Guest, kind: str) -> list[bytes]:
    text = (guest.work / "out" / "servers" / f"{kind}.trace").read_bytes()
    return [line.data for line in trace_lines.parse(b"INITCWD=/\n" + text).lines]


@pytest.mark.phase(*SERVERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_server_ends_traced_as_it_does_alone(guest: Guest, kind: str) -> None:
    guest.phase(*SERVERS)  # and the module could be unloaded after it
    statuses = (guest.work / "out" / "servers" / f"{kind}.status").read_text()
    said = (guest.work / "out" / "servers" / f"{kind}.said").read_text()
    assert (statuses, said) == ("native 0\ntraced 0\n", "")
    counts = numbers(guest.work / "out" / "servers" / f"{kind}.counters")
    assert counts["not_in_memory"] > 0 or kind in ("pages", "away")
    assert [counts[n] for n in ("lost_events", "live", "unresolved_paths")] == [0, 0, 0]


@pytest.mark.phase(*SERVERS)
def test_a_name_that_is_not_in_memory_any_more_is_left_out(guest: Guest) -> None:
    guest.phase(*SERVERS)
    lines = lines_of(guest, "pages")
    assert b"RenameFailed|" in lines
    assert not [line for line in lines if line.startswith(b"RF|")]


@pytest.mark.phase(*SERVERS)
def test_what_is_in_a_page_that_went_during_the_call_is_read_when_the_task_may_wait(
    guest: Guest,
) -> None:
    guest.phase(*SERVERS)
    lines = lines_of(guest, "away")
    asked = [line for line in lines if line == b"FO|" + folder("away") + b"/./fifo"]
    calls = 4 if guest.kernel.machine == "x86_64" else 2  # arm64 has neither open nor creat
    counts = numbers(guest.work / "out" / "servers" / "away.counters")
    assert (len(asked), counts["unread_strings"], counts["races"]) == (calls, 0, 0)
    made, answered = [line.rpartition(b",")[0] for line in lines if line.startswith(b"Pipe|")]
    assert made == answered  # the second is of a call whose descriptors were in such a page


@pytest.mark.phase(*SERVERS)
def test_a_link_to_what_only_a_server_knows_has_no_resolved_name(guest: Guest) -> None:
    guest.phase(*SERVERS)
    lines = lines_of(guest, "fuse")
    at = lines.index(b"ST|" + folder("fuse") + b"/served/file")
    assert lines[at + 1] == b"SL|" + folder("fuse") + b"/to-own"
    at = lines.index(b"ST|" + folder("fuse") + b"/served/.")  # its root is in memory
    assert lines[at + 1 : at + 3] == [
        b"SR|" + folder("fuse") + b"/served",
        b"SL|" + folder("fuse") + b"/to-root",
    ]
    lines = lines_of(guest, "autofs")
    at = lines.index(b"ST|" + folder("autofs") + b"/served/place")
    assert lines[at + 1] == b"SL|" + folder("autofs") + b"/to-autofs"


@pytest.mark.phase(*SERVERS)
def test_calls_that_fail_before_a_lookup_have_no_name(guest: Guest) -> None:
    guest.phase(*SERVERS)
    lines = lines_of(guest, "fuse")
    assert [line for line in lines if b"Failed" in line] == [
        b"RenameFailed|",
        b"RenameFailed|",
        b"UmountFailed|",
        b"MountFailed|",
    ]
    assert not [line for line in lines if line.startswith(b"RF|")]
    # the mount's target is written as given
    assert [line for line in lines if line.startswith(b"MT|")][-1] == (
        b"MT|" + folder("fuse") + b"/served/file"
    )


@pytest.mark.phase(*SERVERS)
def test_a_program_keeps_the_name_of_a_link_that_cannot_be_read_again(guest: Guest) -> None:
    guest.phase(*SERVERS)
    link = folder("exec") + b"/served/link"
    lines = lines_of(guest, "exec")
    assert [lines.count(tag + link) for tag in (b"PI|", b"PP|")] == [1, 1]


@pytest.mark.phase(*SERVERS)
def test_the_kernel_does_not_complain(guest: Guest) -> None:
    assert complaints(guest.console(*SERVERS)) == []
