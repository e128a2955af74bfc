# SPDX-License-Identifier: Apache-2.0
"""`cas faccess`: executions that opened files, and their access."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from libetrace.image.file import Image

from etrace.cli.options import selection as selecting
from etrace.cli.show.answer import Answer
from etrace.cli.show.shapes import Facts
from etrace.query.classes.records import Records
from etrace.query.faccess import faccess


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cas faccess`."""
    selecting.add_all(parser, files=True)


def _line(record: Mapping[str, Any]) -> str:
    return f"{record['pid']}:{record['idx']},{record['access']}"


def answer(image: Image, args: argparse.Namespace) -> Answer:
    """Answer with an execution and its access for each file."""
    records = Records(image)
    found = []
    for access in faccess(image, selecting.given(args)):
        pid, index = records.key(access.execution)
        found.append(
            {
                "pid": pid,
                "idx": index,
                "access": access.letters,
                "filename": records.path(access.path),
                "execution": f"{pid}:{index}",
            }
        )
    return Answer(Facts(_line, {"pid": "execution", "path": "filename"}), found)
