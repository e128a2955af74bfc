# SPDX-License-Identifier: Apache-2.0
"""Roots of other suites: what their archives are."""

from __future__ import annotations

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
