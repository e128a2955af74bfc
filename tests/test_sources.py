# SPDX-License-Identifier: Apache-2.0
"""Sources come from the archives that apt is set up to use, whichever way they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
import sources


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_one_line_entries_keep_their_key_and_drop_foreign_suites(tmp_path: Path) -> None:
    write(
        tmp_path,
        "sources.list",
        "# deb http://a/debian bookworm main\n"
        "deb [arch=amd64 signed-by=/Keys/One.gpg] http://b/debian bookworm main contrib # why\n"
        "deb http://b/security bookworm-security main\n"
        "deb http://c/other other-bookworm main\n"
        "deb http://d/debian bookworm contrib\n",
    )
    assert sources.entries(tmp_path, "bookworm") == [
        sources.Entry(("http://b/debian",), ("bookworm",), (("Signed-By", "/Keys/One.gpg"),)),
        sources.Entry(("http://b/security",), ("bookworm-security",)),
    ]


def test_deb822_entries_may_hold_comments_keys_and_several_suites(tmp_path: Path) -> None:
    write(
        tmp_path,
        "sources.list.d/debian.sources",
        "Types: deb\n"
        "# a comment inside a stanza\n"
        "URIs: http://a/debian\n"
        "Suites: bookworm bookworm-updates\n"
        "Components: main\n"
        "Signed-By:\n -----BEGIN-----\n .\n abc\n"
        "\n"
        "Enabled: no\nTypes: deb\nURIs: http://b\nSuites: bookworm\nComponents: main\n",
    )
    (entry,) = sources.entries(tmp_path, "bookworm")
    assert entry.stanza("deb-src") == (
        "Types: deb-src\n"
        "URIs: http://a/debian\n"
        "Suites: bookworm bookworm-updates\n"
        "Components: main\n"
        "Signed-By: \n -----BEGIN-----\n .\n abc\n"
    )


def test_a_machine_without_archives_gets_a_hint(tmp_path: Path) -> None:
    with pytest.raises(sources.SourceError, match="no archive of 'bookworm'; add one to"):
        sources.entries(tmp_path, "bookworm")


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["x_1.orig-doc.tar.gz", "x_1.orig.tar.gz", "x_1.orig.tar.gz.asc"], "x_1.orig.tar.gz"),
        (["x_1-1.debian.tar.xz", "x_1-1.dsc", "x_1.orig.tar.bz2"], "x_1.orig.tar.bz2"),
        (["x_2.dsc", "x_2.tar.xz"], "x_2.tar.xz"),
    ],
)
def test_the_tarball_is_upstreams_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], chosen: str
) -> None:
    monkeypatch.setenv("ETRACE_CACHE", str(tmp_path))
    for name in names:
        write(tmp_path / "sources/x", name, "")
    assert sources.tarball("x").name == chosen
