# SPDX-License-Identifier: Apache-2.0
"""Roots of other suites: what their archives are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import sources
from bare import root


def test_another_suite_comes_from_the_same_archives(monkeypatch: pytest.MonkeyPatch) -> None:
    signed = (("Signed-By", "/k.gpg"),)
    ours = [
        sources.Entry(("http://a/debian",), ("bookworm", "bookworm-updates"), signed),
        sources.Entry(("http://a/security",), ("bookworm-security",)),
    ]
    monkeypatch.setattr(sources, "entries", lambda: ours)
    assert root._archives("trixie") == (
        "Types: deb\nURIs: http://a/debian\nSuites: trixie trixie-updates\nComponents: main\n"
        "Signed-By: /k.gpg\n\n"
        "Types: deb\nURIs: http://a/security\nSuites: trixie-security\nComponents: main\n"
    )


def test_the_root_of_a_killed_run_is_removed_and_one_in_use_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(root, "ROOTS", tmp_path)
    for name in ("left", "used", "young"):
        (tmp_path / f"{root.PREFIX}{name}" / "root").mkdir(parents=True)
    for name in ("left", "used"):
        os.utime(tmp_path / f"{root.PREFIX}{name}", (0, 0))
    held = root._hold(tmp_path / f"{root.PREFIX}used")
    root.remove_left()
    os.close(held)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{root.PREFIX}used", f"{root.PREFIX}young",
    }  # fmt: skip
