# SPDX-License-Identifier: Apache-2.0
"""Which backend `auto` takes, and what it says of one that it passes over."""

from __future__ import annotations

from pathlib import Path

import pytest
from backends import need_root
from fake_kernel import make_machine

from etrace.capture import registry
from etrace.capture.kmod.backend import KmodBackend
from etrace.capture.ptrace import PtraceBackend


def test_a_module_that_could_work_and_does_not_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_root()
    machine = make_machine(tmp_path / "machine")
    backends = (KmodBackend(machine.host), PtraceBackend())
    monkeypatch.setattr(registry, "COMPLETE", backends)
    monkeypatch.setattr(PtraceBackend, "obstacle", lambda _self: None)
    said: list[str] = []
    assert registry.choose("auto", said.append) is backends[0]
    machine.modules.refusal = "Key was rejected by service"
    assert registry.choose("auto", said.append) is backends[1]
    assert said == ["kmod is not used: Key was rejected by service"]
    machine.modules.available = False
    said.clear()
    assert registry.choose("auto", said.append) is backends[1]
    assert said == []
