# SPDX-License-Identifier: Apache-2.0
"""Files, programs, processes and filters -> rows."""

from __future__ import annotations

from pathlib import Path

import databases
import pytest
from builders import O_RDWR, O_WRONLY, TraceBuilder
from databases import database_of
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.query.select.file_names import find_files, find_path
from etrace.query.select.filters import FilterError, parse_executions, parse_opens
from etrace.query.select.selection import (
    Selection,
    opened_paths,
    pid_rows,
    selected_executions,
    selected_opens,
)


def files(image: Image, *texts: str) -> list[str]:
    rows = selected_opens(image, Selection(filters=parse_opens(texts)))
    return [path.decode().removeprefix("/src/") for path in opened_paths(image, rows)]


def commands(image: Image, *texts: str) -> list[str]:
    rows = selected_executions(image, Selection(command_filters=parse_executions(texts)))
    executions = image["executions"]
    return [f"{executions['upid'][row] & 0xFF}:{executions['index'][row]}" for row in rows]


ALL = ["Makefile", "hello", "libutil.a", "main.c", "main.o", "util.c", "util.h", "util.o"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("util.", ["libutil.a", "util.c", "util.h", "util.o"]),
        ("[path=/src/*.c,type=wc]", ["main.c", "util.c"]),
        ("[path=*.c,type=wc,negate=1]and[path=.o]", ["main.o", "util.o"]),
        ("[path=*.c,type=wc,negate=0]", ["main.c", "util.c"]),
        ('[path="/src/(main|util)\\\\.c$",type=re]', ["main.c", "util.c"]),
        ("[path=util,type=re]", []),
        ("[access=w]", ["hello", "libutil.a", "main.o", "util.o"]),
        ("[access=w]and[path=hello]", ["hello"]),
        ("[global_access=w]", ["hello", "libutil.a", "main.o", "util.o"]),
        ("[global_access=wo]", ["hello"]),
        ("[global_access=ro]", ["Makefile", "main.c", "util.c", "util.h"]),
        ("[global_access=r,negate=1]", ["hello"]),
        ("[global_access=rw]", ["libutil.a", "main.o", "util.o"]),
        ("[class=linked]", ["hello", "libutil.a"]),
        ("[class=linked_static]", ["libutil.a"]),
        ("[class=linked_exe|compiled]", ["hello", "main.c", "util.c"]),
        ("[class=plain]", ["Makefile", "main.o", "util.h", "util.o"]),
        ("[class=compiler|linker|binary]", []),
        ("[source_type=c]", ["main.c", "util.c"]),
        ("[source_type=c++]", []),
        ("[exists=1]", ALL),
        ("[exists=0]or[exists=2]or[link=1]", []),
        ("[source_root=0]", []),
        ("[source_root=1]and[link=0]", ALL),
    ],
)
def test_a_filter_of_files(image: Image, text: str, wanted: list[str]) -> None:
    assert files(image, text) == sorted(wanted)


@pytest.mark.parametrize(
    ("access", "wanted"),
    [
        ("r", ["both", "in"]),
        ("w", ["both", "out"]),
        ("rw", ["both"]),
        ("ro", ["in"]),
        ("wo", ["out"]),
        ("w,negate=1", ["in"]),
    ],
)
@pytest.mark.parametrize("key", ["access", "global_access"])
def test_what_was_opened_for_both_could_be_read_and_written(
    tmp_path: Path, key: str, access: str, wanted: list[str]
) -> None:
    shell = 1 << 22 | 9
    t = TraceBuilder("/w").exec(shell, "/bin/sh", ["sh"], cwd="/w").use(shell, "/src/in")
    t.use(shell, "/src/out", flags=O_WRONLY).use(shell, "/src/both", flags=O_RDWR)
    assert files(database_of(tmp_path, t.trace()), f"[{key}={access}]") == wanted


def test_several_filters_must_all_hold(image: Image) -> None:
    assert files(image, "[access=r]", ".o") == ["main.o", "util.o"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[bin=/ld]", ["8:1"]),
        ("[cmd=gcc * main.c,type=wc]", ["2:1"]),
        ("cc1", ["3:1", "5:1"]),
        ("[cmd=make]", ["1:1"]),
        ("[class=compiler]", ["2:1", "4:1"]),
        ("[class=linker]", ["6:1", "8:1"]),
        ("[class=command]and[bin=gcc]", ["7:1"]),
        ("[ppid=-1]", ["1:0", "1:1"]),
        ("[bin=/gcc]and[cmd= -c ,negate=1]", ["7:1"]),
        ("[cwd_source_root=1]and[bin_source_root=0]and[ppid=-1]", ["1:1"]),
        ("[cwd=/src]and[bin=make]", ["1:1"]),
    ],
)
def test_a_filter_of_commands(image: Image, text: str, wanted: list[str]) -> None:
    assert commands(image, text) == wanted


def test_a_bad_regular_expression_is_pointed_at(image: Image) -> None:
    with pytest.raises(FilterError) as error:
        files(image, "[path='a(b',type=re]")
    assert "bad regular expression" in error.value.message


def test_classes_need_what_pp_makes(parsed: Image) -> None:
    with pytest.raises(EtraceError) as error:
        files(parsed, "[class=linked]")
    assert error.value.hint == "make them: cas pp"


def test_files_and_programs_are_conditions_to_one_another(image: Image) -> None:
    given = Selection(paths=[b"/src/main.o", b"/src/util.o"], binaries=[b"/usr/bin/ar"])
    assert opened_paths(image, selected_opens(image, given)) == [b"/src/util.o"]


def test_a_process_is_all_its_executions_and_an_index_one_of_them(image: Image) -> None:
    whole = pid_rows(image, [b"%d" % databases.AR])
    one = pid_rows(image, [b"%d:1" % databases.AR])
    assert len(whole) == 2
    assert one == whole[1:]


def test_executions_of_a_file_are_those_that_opened_it(image: Image) -> None:
    rows = selected_executions(image, Selection(paths=[b"/src/util.h"]))
    upids = [image["executions"]["upid"][row] for row in rows]
    assert upids == [databases.CC1_MAIN, databases.CC1_UTIL]


def test_a_path_is_found_from_the_source_root_and_from_here(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = image.find_path(b"/src/main.c")
    monkeypatch.chdir("/usr")
    assert find_path(image, b"main.c") == wanted
    assert find_path(image, b"../src/./main.c") == wanted
    assert find_path(image, b"nothing.c") == -1


def test_an_unknown_path_is_answered_with_one_of_that_name(image: Image, tmp_path: Path) -> None:
    with pytest.raises(EtraceError) as error:
        find_files(image, [b"/elsewhere/main.c"])
    assert error.value.message == "the build opened no /elsewhere/main.c"
    assert error.value.hint.startswith("did you mean one of these: /src/main.c")


@pytest.mark.parametrize("name", ["/src/util.h", "../src/util.h", "til.h", "src/util.h", "*/*.h"])
def test_a_question_takes_every_name_that_dependencies_take(
    image: Image, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/usr")
    if name == "til.h":
        with pytest.raises(EtraceError):
            selected_opens(image, Selection(paths=[name.encode()]))
    else:
        found = selected_opens(image, Selection(paths=[name.encode()]))
        assert opened_paths(image, found) == [b"/src/util.h"]


@pytest.mark.parametrize("pid", [b"x", b"1:", b"1:x", b"", b"99", b"-1"])
def test_an_unknown_process_is_an_error(image: Image, pid: bytes) -> None:
    with pytest.raises(EtraceError):
        pid_rows(image, [pid])


def test_what_a_pipeline_gives_may_be_unknown(image: Image) -> None:
    given = Selection(paths=[b"/nowhere"], pids=[b"99"], is_exact=False)
    assert list(selected_opens(image, given)) == []
    assert selected_executions(image, given) == []
