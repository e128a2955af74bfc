# SPDX-License-Identifier: Apache-2.0
"""Modules that the build made."""

from __future__ import annotations

import databases
import pytest
from libetrace.image.file import Image

from etrace.errors import EtraceError
from etrace.query.given.chosen import Given
from etrace.query.given.filters import parse_opens
from etrace.query.linked_modules import linked_modules


def found(image: Image, given: Given) -> list[tuple[bytes, str, list[int]]]:
    upid = image["executions"]["upid"]
    return [
        (image.path_string(m.path), m.kind_name, [upid[row] for row in m.executions])
        for m in linked_modules(image, given)
    ]


HELLO = (b"/src/hello", "executable", [databases.LD])
LIBUTIL = (b"/src/libutil.a", "archive", [databases.AR])


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (Given(), [HELLO, LIBUTIL]),
        (Given(paths=[b"/src/hello"]), [HELLO]),
        (Given(paths=[b"/src/main.c"]), []),
        (Given(binaries=[b"/usr/bin/ar"]), [LIBUTIL]),
        (Given(filters=parse_opens(["[class=linked_static]"])), [LIBUTIL]),
    ],
)
def test_modules(image: Image, given: Given, wanted: list[object]) -> None:
    assert found(image, given) == wanted


def test_before_pp_there_are_none_to_be_asked_for(parsed: Image) -> None:
    with pytest.raises(EtraceError) as error:
        linked_modules(parsed)
    assert "no linked modules yet" in error.value.message
    assert error.value.hint == "make them: cas pp"
