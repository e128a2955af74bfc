# SPDX-License-Identifier: Apache-2.0
"""`.nfsdb.rsp` -> `X.rsp.json` -> the table of the image; damage costs what follows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from compiling import BuildTeller, write_database

from etrace.errors import EtraceError
from etrace.nfsdb.products import read_responses
from etrace.nfsdb.store import open_database
from etrace.parse import responses

RECORDS = [(5, b"/a\nb", b"x\ny"), (6, b"/c", b""), (7, b"/a", b"x\ny"), (8, b"/\xff", b"\0")]
DATA = (
    b"etrace response files 1\nfile 5 4 3\n/a\nb\nx\ny\nfile 6 2 0\n/c\n\nsame 7 2 0\n/a\n"
    b"file 8 2 1\n/\xff\n\0\n"
)


def test_every_record_is_read() -> None:
    assert list(responses.read(DATA)) == RECORDS


def test_what_is_cut_off_costs_what_follows() -> None:
    for end in range(len(DATA)):
        found = list(responses.read(DATA[:end]))
        assert found == RECORDS[: len(found)]
        assert len(found) < len(RECORDS)


@pytest.mark.parametrize(
    "record",
    [b"other 1 1 1\na\nb", b"file 1 -1 1\na\nb", b"file 1 1 -1\na\nb", b"same 1 1 4\na",
     b"same 1 1 -1\na", b"file x 1 1\na\nb", b"file 1 1", b"", b"file 1 9999999999 1\na\nb"],
)  # fmt: skip
def test_a_damaged_record_ends_the_file(record: bytes) -> None:
    assert list(responses.read(DATA + record + b"\nfile 9 1 1\na\nb\n")) == RECORDS


def test_a_content_that_is_named_many_times_is_unfolded_a_hundredfold() -> None:
    content = b"x" * (2 << 20)
    data = b"etrace response files 1\nfile 1 1 %d\na\n%b\n" % (len(content), content)
    data += b"same 2 1 0\nb\n" * 10_000
    found = list(responses.read(data))
    total = sum(len(text) for _, _, text in found)
    assert 98 * len(data) < total <= 100 * len(data)


def test_files_of_several_traces_are_put_together(tmp_path: Path) -> None:
    (tmp_path / "a.rsp").write_bytes(DATA)
    (tmp_path / "b.rsp").write_bytes(b"etrace response files 1\nfile 9 1 1\na\nb\n")
    target = tmp_path / "x.rsp.json"
    traces = [str(tmp_path / "a.zst"), str(tmp_path / "b"), str(tmp_path / "c"), "-"]
    sides = responses.find_sides(traces)
    assert sides == [tmp_path / "a.rsp", tmp_path / "b.rsp"]
    found = responses.collect(sides)
    assert found == [*RECORDS, (9, b"a", b"b")]
    responses.write(found, sides, target)
    assert read_responses(target) == found
    responses.write([], [], target)
    assert not target.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.rsp", "b.rsp"]


def test_the_image_has_them_as_a_table(tmp_path: Path) -> None:
    listed = [[upid, path.decode("utf-8", "surrogateescape"), text.decode()]
              for upid, path, text in RECORDS]  # fmt: skip
    (tmp_path / ".nfsdb.rsp.json").write_text(json.dumps(listed))
    image = write_database(tmp_path, BuildTeller().trace())
    table = image["response_files"]
    rows = zip(table["upid"], table["path"], table["content"], strict=True)
    assert [(upid, image.string(path), image.string(text)) for upid, path, text in rows] == RECORDS
    (tmp_path / ".nfsdb.rsp.json").unlink()
    assert "response_files" not in open_database(tmp_path).tables


@pytest.mark.parametrize(
    "text", ["", "{}x", "[1]", "[[1, 2, 3]]", '[["a", "b", "c"]]', '[[1, "b"]]', "3",
             '[[1, "\\ud800", "c"]]'],
)  # fmt: skip
def test_what_is_no_list_of_response_files_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.rsp.json"
    path.write_text(text)
    with pytest.raises(EtraceError, match="not a list of response files"):
        read_responses(path)


def test_a_number_that_no_column_holds_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".nfsdb.rsp.json").write_text(json.dumps([[1 << 70, "/a", "b"]]))
    with pytest.raises(EtraceError, match=r"rsp\.json"):
        write_database(tmp_path, BuildTeller().trace())
