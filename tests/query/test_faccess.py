# SPDX-License-Identifier: Apache-2.0
"""Who opened a file, and how."""

from __future__ import annotations

import databases
from libetrace.image.file import Image

from etrace.query.faccess import faccess
from etrace.query.given.chosen import Given


def test_the_writer_and_the_reader_of_an_object(image: Image) -> None:
    upid = image["executions"]["upid"]
    found = faccess(image, Given(paths=[b"/src/main.o"]))
    assert [(upid[a.execution], a.letters) for a in found] == [
        (databases.CC1_MAIN, "w"),
        (databases.LD, "r"),
    ]
