# SPDX-License-Identifier: Apache-2.0
"""Files of processes and of what they started."""

from __future__ import annotations

import databases
from libetrace.image.file import Image

from etrace.query.given import chosen
from etrace.query.given.chosen import Given
from etrace.query.procref import descendants, procref
from etrace.query.ref_files import ref_files


def paths(image: Image, upid: int, *, with_children: bool) -> list[bytes]:
    rows = procref(image, Given(pids=[b"%d" % upid]), with_children=with_children)
    return chosen.paths(image, rows)


def test_a_process_alone(image: Image) -> None:
    assert paths(image, databases.GCC_LINK, with_children=False) == []
    assert paths(image, databases.MAKE, with_children=False) == [b"/src/Makefile"]


def test_a_process_with_its_children(image: Image) -> None:
    wanted = [b"/src/hello", b"/src/libutil.a", b"/src/main.o"]
    assert paths(image, databases.GCC_LINK, with_children=True) == wanted
    assert paths(image, databases.MAKE, with_children=True) == ref_files(image)


def test_descendants_are_all_executions_of_all_children(image: Image) -> None:
    make = chosen.pid_rows(image, [b"%d:1" % databases.MAKE])
    assert descendants(image, make) == list(range(make[0], image["executions"].n_rows))
