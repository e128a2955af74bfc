# SPDX-License-Identifier: Apache-2.0
"""What changed between two builds."""

from __future__ import annotations

from pathlib import Path

from builders import O_CREAT, O_WRONLY, TraceBuilder
from captured_builds import told_database
from libetrace.image import Image

from etrace.query.diff import ROOT, Delta, diff

SH, A, B, C = (number << 22 | 9 for number in range(1, 5))
NEW = O_WRONLY | O_CREAT


def build(
    folder: Path,
    root: str,
    *,
    flag: str = "-O2",
    cc: str = "/bin/cc",
    header: str = "a.h",
    temporary: str = "/tmp/ccAAAAAA.s",
    status: int = 0,
    last: str = "touch done",
    cflags: str = "-g",
) -> Image:
    """cc a.c, as, and one more command."""
    t = (
        TraceBuilder(root)
        .exec(SH, "/bin/sh", ["sh", "build.sh"], cwd=root)
        .env(f"CFLAGS={cflags}", SH)
    )
    t.env(f"PWD={root}", SH).fork(SH, A).exec(A, cc, ["cc", flag, f"-I{root}/inc", "a.c"], cwd=root)
    t.use(A, f"{root}/a.c").use(A, f"{root}/{header}").use(A, temporary, flags=NEW).exit(A, status)
    t.fork(SH, B).exec(B, "/bin/as", ["as", "-o", "a.o", temporary], cwd=root).use(B, temporary)
    t.use(B, f"{root}/a.o", flags=NEW).exit(B)
    t.fork(SH, C).exec(C, f"/bin/{last.split(maxsplit=1)[0]}", last.split(), cwd=root).exit(C)
    folder.mkdir()
    return told_database(folder, t.exit(SH).trace())


def test_a_build_is_the_same_in_another_directory_and_with_other_temporary_names(
    tmp_path: Path,
) -> None:
    before = build(tmp_path / "a", "/one")
    after = build(tmp_path / "b", "/two/deeper", temporary="/tmp/ccZZZZ12.s")
    assert not diff(before, before)
    assert not diff(before, after)


def test_every_kind_of_change_is_found(tmp_path: Path) -> None:
    before = build(tmp_path / "a", "/one")
    after = build(
        tmp_path / "b", "/two", flag="-O3", cc="/opt/cc", header="b.h", status=1, last="rm x",
        cflags="-g3",
    )  # fmt: skip
    found = diff(before, after)
    (changed,) = found.changed
    assert changed.arguments == Delta((b"-O2",), (b"-O3",))
    assert changed.program == (b"/bin/cc", b"/opt/cc")
    assert changed.inputs == Delta((ROOT + b"/a.h",), (ROOT + b"/b.h",))
    assert (changed.cwd, changed.status) == (None, (0, 1))
    assert [before["executions"]["upid"][row] for row in found.removed] == [C]
    assert [after["executions"]["upid"][row] for row in found.added] == [C]
    assert found.inputs == changed.inputs
    assert not found.outputs
    assert found.environment == {b"CFLAGS": ((b"-g",), (b"-g3",))}


def test_a_source_of_another_size_is_a_change(tmp_path: Path) -> None:
    source = tmp_path / "a.h"
    images = []
    for content in ("1", "22"):
        source.write_text(content)
        images.append(build(tmp_path / content, str(tmp_path), header="a.h"))
    assert diff(*images).resized == {ROOT + b"/a.h": (1, 2)}
