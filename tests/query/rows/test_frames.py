# SPDX-License-Identifier: Apache-2.0
"""Arrow tables for people hold what the image holds."""

from __future__ import annotations

import databases
import pytest
from libetrace.image.file import Image

from etrace.nfsdb.store import open_database
from etrace.query.rows.frames import Frames


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return open_database(databases.write_database(tmp_path_factory.mktemp("build")))


def test_every_table_holds_what_the_image_holds(image: Image) -> None:
    frames = Frames(image)
    for name in frames:
        table = frames[name]
        table.validate(full=True)
        assert table.num_rows == image[name].n_rows
    opened = frames["opens"].column("path").to_pylist()
    assert opened == [image.path_string(row).decode() for row in image["opens"]["path"]]
    binary = frames["executions"].column("program").to_pylist()
    assert binary == [
        None if row < 0 else image.path_string(row).decode()
        for row in image["executions"]["binary"]
    ]


def test_the_owner_of_a_row_is_named(image: Image) -> None:
    executions = image["executions"]
    parents = Frames(image)["children"].column("parent").to_pylist()
    for row in range(executions.n_rows):
        assert [parents[i] for i in executions.span("children.start", row)] == [row] * len(
            executions.span("children.start", row)
        )
