# SPDX-License-Identifier: Apache-2.0
"""What a question is about: files, programs, processes."""

from __future__ import annotations

from pathlib import Path

import databases
import pytest
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.query.given import chosen
from etrace.query.given.chosen import Given
from etrace.query.given.targets import find_path, find_targets


def test_files_and_programs_are_conditions_to_one_another(image: Image) -> None:
    given = Given(paths=[b"/src/main.o", b"/src/util.o"], binaries=[b"/usr/bin/ar"])
    assert chosen.paths(image, chosen.opens(image, given)) == [b"/src/util.o"]


def test_a_process_is_all_its_executions_and_an_index_one_of_them(image: Image) -> None:
    whole = chosen.pid_rows(image, [b"%d" % databases.AR])
    one = chosen.pid_rows(image, [b"%d:1" % databases.AR])
    assert len(whole) == 2
    assert one == whole[1:]


def test_executions_of_a_file_are_those_that_opened_it(image: Image) -> None:
    rows = chosen.executions(image, Given(paths=[b"/src/util.h"]))
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
        find_targets(image, [b"/elsewhere/main.c"])
    assert error.value.message == "the build opened no /elsewhere/main.c"
    assert error.value.hint.startswith("did you mean one of these: /src/main.c")


@pytest.mark.parametrize("name", ["/src/util.h", "../src/util.h", "til.h", "src/util.h", "*/*.h"])
def test_a_question_takes_every_name_that_dependencies_take(
    image: Image, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/usr")
    if name == "til.h":
        with pytest.raises(EtraceError):
            chosen.opens(image, Given(paths=[name.encode()]))
    else:
        found = chosen.opens(image, Given(paths=[name.encode()]))
        assert chosen.paths(image, found) == [b"/src/util.h"]


@pytest.mark.parametrize("pid", [b"x", b"1:", b"1:x", b"", b"99", b"-1"])
def test_an_unknown_process_is_an_error(image: Image, pid: bytes) -> None:
    with pytest.raises(EtraceError):
        chosen.pid_rows(image, [pid])


def test_what_a_pipeline_gives_may_be_unknown(image: Image) -> None:
    given = Given(paths=[b"/nowhere"], pids=[b"99"], is_exact=False)
    assert list(chosen.opens(image, given)) == []
    assert chosen.executions(image, given) == []
