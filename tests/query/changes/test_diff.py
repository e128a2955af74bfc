# SPDX-License-Identifier: Apache-2.0
"""What changed between two builds."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from builders import O_CREAT, O_WRONLY, TraceBuilder
from databases import capture_database, database_of
from libetrace.image.file import Image

from etrace.query.changes.diff import Delta, diff
from etrace.query.changes.matching import ROOT

SH, A, B, C = (number << 22 | 9 for number in range(1, 5))
NEW = O_WRONLY | O_CREAT


def build(
    folder: Path,
    root: str,
    *,
    flag: str = "-O2",
    cc: str = "/bin/cc",
    header: str = "a.h",
    source: str = "a.c",
    temporary: str = "/tmp/ccAAAAAA.s",
    status: int | None = 0,
    last: str = "touch done",
    cflags: str = "-g",
) -> Image:
    """cc a.c, as, and one more command."""
    t = (
        TraceBuilder(root)
        .exec(SH, "/bin/sh", ["sh", "build.sh"], cwd=root)
        .env(f"CFLAGS={cflags}", SH)
    )
    t.env(f"PWD={root}", SH).fork(SH, A).exec(
        A, cc, ["cc", flag, f"-I{root}/inc", source], cwd=root
    )
    t.use(A, f"{root}/{source}").use(A, os.path.normpath(f"{root}/{header}")).use(
        A, temporary, flags=NEW
    )
    if status is not None:
        t.exit(A, status)
    t.fork(SH, B).exec(B, "/bin/as", ["as", "-o", "a.o", temporary], cwd=root).use(B, temporary)
    t.use(B, f"{root}/a.o", flags=NEW).exit(B)
    t.fork(SH, C).exec(C, f"/bin/{last.split(maxsplit=1)[0]}", last.split(), cwd=root).exit(C)
    folder.mkdir()
    return database_of(folder, t.exit(SH).trace())


def test_a_build_is_the_same_in_another_directory_and_with_other_temporary_names(
    tmp_path: Path,
) -> None:
    before = build(tmp_path / "a", "/one")
    after = build(tmp_path / "b", "/two/deeper", temporary="/tmp/ccZZZZ12.s")
    assert not diff(before, before)
    assert not diff(before, after)


@pytest.mark.parametrize("name", ["statinfo.c", "confirmed.c", "ccAbCdEf.c", "tmp_reader.c"])
def test_a_source_whose_name_looks_made_up_is_a_source(tmp_path: Path, name: str) -> None:
    before = build(tmp_path / "a", "/one")
    found = diff(before, build(tmp_path / "b", "/two", source=name))
    path = f"$ROOT/{name}".encode()
    assert found.inputs == Delta((b"$ROOT/a.c",), (path,))
    assert [each.arguments for each in found.changed] == [Delta((b"a.c",), (name.encode(),))]


def test_two_sources_whose_names_look_alike_made_up_differ(tmp_path: Path) -> None:
    before = build(tmp_path / "a", "/one", source="statinfo.c")
    after = build(tmp_path / "b", "/two", source="streaming.c")
    assert diff(before, after).inputs == Delta((b"$ROOT/statinfo.c",), (b"$ROOT/streaming.c",))


def test_what_lies_below_a_tmp_is_no_temporary_file_for_that(tmp_path: Path) -> None:
    before = build(tmp_path / "a", "/one", header="../tmp/x.h")
    after = build(tmp_path / "b", "/one", header="../tmp/y.h")
    assert diff(before, after).inputs == Delta((b"/tmp/x.h",), (b"/tmp/y.h",))


def test_a_name_that_the_compiler_makes_up_is_one_only_when_the_file_is_gone(
    tmp_path: Path,
) -> None:
    names = [tmp_path / "ccAAAAAA.s", tmp_path / "ccBBBBBB.s"]
    before, after = (
        build(tmp_path / str(n), "/one", temporary=str(name)) for n, name in enumerate(names)
    )
    assert not diff(before, after)
    for name in names:
        name.touch()
    before, after = (
        build(tmp_path / f"kept{n}", "/one", temporary=str(name)) for n, name in enumerate(names)
    )
    kept = Delta((os.fsencode(names[0]),), (os.fsencode(names[1]),))
    assert diff(before, after).outputs == kept


def test_a_name_counts_as_made_up_by_the_program_that_makes_such_names(tmp_path: Path) -> None:
    names = ("/tmp/stAAAAAA", "/tmp/stBBBBBB")  # ar's, and cc is not an ar
    before, after = (build(tmp_path / n[-1], "/one", temporary=n) for n in names)
    assert diff(before, after).outputs == Delta((b"/tmp/stAAAAAA",), (b"/tmp/stBBBBBB",))


SCRIPT = """\
gcc -flto -c a.c && gcc -flto -o prog a.o && gcc -o two a.c b.c && gcc -c b.c
ar rcs lib.a b.o && rm lib.a && ar rcs lib.a b.o && strip prog && clang -o three a.c b.o
echo > conf$$.file; mkdir conf$$.dir; ls conf$$.dir; rm -r conf$$.file conf$$.dir
d=$(mktemp -d ./confXXXXXX); echo > $d/x; ls $d; rm -r $d; echo "all:" | make -f -
cat <<END
$(mktemp /tmp/tmp.XXXXXXXXXX | xargs rm)
END
python3 -c "import tempfile; tempfile.TemporaryFile(); tempfile.NamedTemporaryFile()"
"""


def test_two_runs_of_a_real_build_are_the_same(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.c").write_text("int b(void); int main(void) { return 0; }\n")
    (work / "b.c").write_text("int b(void) { return 1; }\n")
    images = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        images.append(capture_database(tmp_path / name, ["/bin/sh", "-ec", SCRIPT], work))
        shutil.rmtree(work / "__pycache__", ignore_errors=True)
    found = diff(*images)
    found = replace(found, environment={}, resized={})
    assert not found, found


def test_a_status_that_nobody_saw_is_no_number(tmp_path: Path) -> None:
    before = build(tmp_path / "a", "/one")
    after = build(tmp_path / "b", "/one", status=None)
    assert [each.status for each in diff(before, after).changed] == [(0, None)]


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


def test_compilations_with_another_option_match_by_name_not_by_time(tmp_path: Path) -> None:
    images = []
    for flag, names in (("-O2", "ab"), ("-O3", "ba")):
        t = TraceBuilder("/one").exec(SH, "/bin/sh", ["sh", "build.sh"], cwd="/one")
        for upid, name in zip((A, B), names, strict=True):
            t.fork(SH, upid).exec(upid, "/bin/cc1", ["cc1", flag, f"{name}.c"], cwd="/one")
            t.use(upid, f"/tmp/cc{name * 6}.s", flags=NEW).exit(upid)
        (tmp_path / flag).mkdir()
        images.append(database_of(tmp_path / flag, t.exit(SH).trace()))
    flags = Delta((b"-O2",), (b"-O3",))
    assert [each.arguments for each in diff(*images).changed] == [flags, flags]
