# SPDX-License-Identifier: Apache-2.0
"""Names of another document are matched with those of the build."""

from __future__ import annotations

from pathlib import Path

from etrace.export.sbom.comparison import _matches, read_names

OWN = ["/w/src/lua.c", "/w/lib/a.c", "/w/test/a.c", "/usr/include/stdio.h"]


def test_a_name_is_absolute_from_the_root_or_the_only_end() -> None:
    names = ["src/lua.c", "./src/lua.c", "lua.c", "/usr/include/stdio.h", "lib/a.c"]
    assert _matches(OWN, names, "/w") == {
        "src/lua.c": "/w/src/lua.c", "./src/lua.c": "/w/src/lua.c", "lua.c": "/w/src/lua.c",
        "/usr/include/stdio.h": "/usr/include/stdio.h", "lib/a.c": "/w/lib/a.c",
    }  # fmt: skip


def test_what_may_be_another_file_is_not_matched() -> None:
    assert _matches(OWN, ["../lua.c", "a.c", "/lua.c", "ua.c", "other/src/lua.c"], "/w") == {}


def test_a_list_may_have_line_ends_of_windows(tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"a.c\r\nb.c\r\n")
    assert list(read_names(tmp_path / "list")) == ["a.c", "b.c"]
