# SPDX-License-Identifier: Apache-2.0
"""On the kernels of the guests: no trace says more of names than the traced program could learn."""

from __future__ import annotations

import pytest
from vm.rig import Guest

pytestmark = [pytest.mark.vm, pytest.mark.timeout(14400), pytest.mark.phase("rights")]
BACKENDS = ("ptrace", "bpf", "kmod", "etraced")
CLOSED, OPEN = ("0700", "0744", "0705", "0077"), ("0711", "0710")


def trace_of(guest: Guest, backend: str) -> bytes:
    guest.phase("rights")
    raw = (guest.work / "rights" / f"{backend}.nfsdb").read_bytes()
    assert raw.count(b"/made\n") >= len(CLOSED + OPEN)
    return raw


@pytest.mark.parametrize("backend", BACKENDS)
def test_names_in_a_closed_directory_stay_as_they_were_given(guest: Guest, backend: str) -> None:
    raw = trace_of(guest, backend)
    assert [mode for mode in CLOSED if b"client-" + mode.encode() in raw] == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_names_in_an_open_directory_are_resolved(guest: Guest, backend: str) -> None:
    raw = trace_of(guest, backend)
    for mode in OPEN:
        assert f"!SR|/run/etrace-rights/{mode}/client-{mode}/f\n".encode() in raw
