# SPDX-License-Identifier: Apache-2.0
"""Files appear whole or not at all: what is under way has another name, and goes with its maker."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from libetrace.convert.create import parse_nfsdb
from libetrace.image.file import replacing, write_image

from etrace.nfsdb.outputs import pending_files


def replace_file(folder: Path) -> None:
    with replacing(folder / "file"):
        pass


def write_empty_image(folder: Path) -> None:
    write_image(folder / "image", {}, [])


def parse_trace(folder: Path) -> None:
    parse_nfsdb(str(folder / "trace"), str(folder / "trace.json"))


def hold_outputs(folder: Path) -> None:
    with pending_files(folder / "trace.json"):
        pass


@pytest.mark.parametrize("write", [replace_file, write_empty_image, parse_trace, hold_outputs])
def test_ctrl_c_while_a_file_is_made_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    """The interrupt is seen when open(2) has returned: the file is there, nobody has its number."""
    (tmp_path / "trace").write_bytes(b"INITCWD=/\n")
    really_open = os.open

    def interrupted(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        fd = really_open(path, flags, *rest, **options)
        if flags & os.O_CREAT:
            os.close(fd)
            raise KeyboardInterrupt
        return fd

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]
