# SPDX-License-Identifier: Apache-2.0
"""Files that were compiled, and how."""

from __future__ import annotations

import databases
import pytest
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.query.compilations import compilation_info_for, compiled, revcomps_for, revcomps_map
from etrace.query.rows.records import Records
from etrace.query.select.filters import parse_executions, parse_opens
from etrace.query.select.selection import Selection

MAIN, UTIL = b"/src/main.c", b"/src/util.c"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (Selection(), [MAIN, UTIL]),
        (Selection(paths=[b"/src/util.o"]), [UTIL]),
        (Selection(paths=[MAIN]), [MAIN]),
        (Selection(paths=[b"main.c"]), [MAIN]),
        (Selection(paths=[b"*/util.?"]), [UTIL]),
        (Selection(pids=[b"%d" % databases.GCC_UTIL]), [UTIL]),
        (Selection(filters=parse_opens(["main"])), [MAIN]),
        (Selection(command_filters=parse_executions(["[cmd=util.c]"])), [UTIL]),
        (Selection(binaries=[b"/usr/bin/ld"]), []),
    ],
)
def test_compiled_files(image: Image, given: Selection, wanted: list[bytes]) -> None:
    assert compiled(image, given) == wanted


def test_all_that_is_known_of_a_compilation(image: Image) -> None:
    (row,) = compilation_info_for(image, Selection(paths=[MAIN]))
    record = Records(image).compilation(row)
    command = record.pop("command")
    assert (command["pid"], command["class"]) == (databases.GCC_MAIN, "compiler")
    assert record == {
        "source_type": "c",
        "compiled_files": ["/src/main.c"],
        "include_paths": ["/usr/include"],
        "headers": [],
        "defs": [{"name": "N", "value": "1"}],
        "undefs": ["M"],
        "objects": ["/src/main.o"],
        "is_child": 0,
    }


def test_a_file_that_was_not_compiled_is_an_error(image: Image) -> None:
    with pytest.raises(EtraceError) as error:
        compilation_info_for(image, Selection(paths=[b"/else/main.c"]))
    assert error.value.hint == "did you mean /src/main.c?"
    assert compilation_info_for(image, Selection(paths=[b"/else/main.c"], is_exact=False)) == []


def test_compiled_files_of_a_header(image: Image) -> None:
    assert revcomps_for(image, Selection(paths=[b"/src/util.h"])) == [MAIN, UTIL]
    assert revcomps_for(image, Selection(paths=[b"/src/main.c"])) == [MAIN]


def test_what_no_compilation_read_belongs_to_none(image: Image) -> None:
    given = Selection(paths=[b"/src/Makefile", b"/src/util.h", b"/src/hello"])
    assert revcomps_map(image, given) == {b"/src/Makefile": [], b"/src/util.h": [MAIN, UTIL]}
