# SPDX-License-Identifier: Apache-2.0
"""Files that the build opened."""

from __future__ import annotations

import databases
from libetrace.image.file import Image

from etrace.query.given.chosen import Given
from etrace.query.ref_files import ref_files


def test_each_file_is_there_once(image: Image) -> None:
    opened = {path for _, _, _, files in databases.COMMANDS.values() for path in files}
    assert ref_files(image) == sorted(path.encode() for path in opened)


def test_files_of_one_program(image: Image) -> None:
    assert ref_files(image, Given(binaries=[b"/usr/bin/ar"])) == [b"/src/libutil.a", b"/src/util.o"]
