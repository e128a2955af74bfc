# SPDX-License-Identifier: Apache-2.0
"""What headers cost: counts and bytes of a small build, least squares computed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import databases
import pytest
from libetrace.image.file import Image

from etrace.cli.main import cas
from etrace.nfsdb.store import open_database
from etrace.query.includes import (
    Fit,
    Growth,
    Header,
    compare,
    compilations_of,
    fit_headers,
    includes,
)

#: (bytes of sources, bytes of headers) at the corners of a square: sources and headers are
#: independent, so b and c are what sums of the corners say
CORNERS = ((0, 0), (2, 0), (0, 2), (2, 2))


def points(*times: float) -> list[tuple[float, float, float]]:
    return [(*corner, time) for corner, time in zip(CORNERS, times, strict=True)]


def test_an_exact_plane_has_no_error() -> None:
    # time = 10 + 2 * sources + 3 * headers
    assert fit_headers(points(10, 14, 16, 20)) == Fit(3.0, 0.0)


def test_the_error_is_the_standard_error_of_the_coefficient() -> None:
    # c = (-0 - 2 + 4 + 10) / 4 = 3; residuals +1 -1 -1 +1, one degree of freedom, sum of squares
    # of the centred headers 4: sqrt(4 / 1 / 4) = 1
    assert fit_headers(points(0, 2, 4, 10)) == Fit(3.0, 1.0)


def test_sources_of_one_size_leave_a_line() -> None:
    # headers 0 1 2 3, times 1 1 5 5: slope (1.5 * 2 + .5 * 2) * 2 / 5 = 1.6; residuals
    # .4 -1.2 1.2 -.4, sum of squares 3.2: sqrt(3.2 / 2 / 5) = .5657
    fit = fit_headers([(7, 0, 1), (7, 1, 1), (7, 2, 5), (7, 3, 5)])
    assert fit is not None
    assert (fit.ns_a_byte, fit.error) == pytest.approx((1.6, 0.32**0.5))


@pytest.mark.parametrize(
    "given",
    [
        points(1, 2, 3, 4)[:3],
        [(1, 2, 1), (2, 4, 2), (3, 6, 9), (4, 8, 1)],  # headers in proportion to sources
        [(1, 5, 1), (1, 5, 2), (1, 5, 9), (1, 5, 1)],
    ],
)
def test_what_says_nothing_has_no_fit(given: list[tuple[float, float, float]]) -> None:
    assert fit_headers(given) is None


def size(image: Image, path: bytes) -> int:
    return int(image["paths"]["size"][image.find_path(path)])


def test_a_header_counts_once_for_each_compilation(image: Image) -> None:
    found = includes(image)
    header, main, util = (size(image, b"/src/" + n) for n in (b"util.h", b"main.c", b"util.c"))
    assert header > 0
    total = 2 * header + main + util
    assert found.headers == (
        Header(image.find_path(b"/src/util.h"), 2, 2, header, 2 * header, 2 * header / total),
    )
    assert (found.n_compilations, found.read_bytes, found.fit) == (2, total, None)


def test_a_module_counts_only_the_compilations_on_the_way_to_it(image: Image) -> None:
    only = compilations_of(image, [b"/src/libutil.a"])
    assert len(only) == 1
    (header,) = includes(image, only).headers
    assert (header.n_opens, header.n_compilations) == (1, 1)


def test_the_answer_on_the_command_line(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cas(["includes", "--dbdir", str(database), "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    assert (entry["filename"], entry["compilations"], entry["seconds"]) == ("/src/util.h", 2, None)


def test_columns_have_headings_where_people_read(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cas(["includes", "--dbdir", str(database)]) == 0
    heading, line = capsys.readouterr().out.splitlines()
    assert heading.split() == [
        "bytes",
        "share",
        "compilations",
        "times",
        "read",
        "seconds",
        "header",
    ]
    assert heading.index("header") == line.index("/src/util.h")
    assert cas(["includes", "--dbdir", str(database), "--fmt", "{filename}"]) == 0
    assert capsys.readouterr().out == "/src/util.h\n"


def test_equal_builds_do_not_differ(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cas(["includes", "--diff", str(database), str(database)]) == 1
    assert capsys.readouterr().out == ""


def test_a_header_that_grew_is_a_difference(image: Image, tmp_path: Path) -> None:
    changed = databases.write_parsed(tmp_path / "b")
    path = changed / ".nfsdb.json"
    entries = json.loads(path.read_text())
    for entry in entries:
        for opened in entry["o"]:
            if opened["p"] == "/src/util.h":
                opened["s"] = 1000
    path.write_text(json.dumps(entries))
    databases.add_products(changed)
    before = 2 * size(image, b"/src/util.h")
    after = open_database(changed)
    (growth,) = compare(image, after)
    assert growth == Growth(growth.path, before, 2000, None, None)
    assert growth.path.endswith(b"util.h")


def test_seconds_below_two_errors_are_noise() -> None:
    assert Growth(b"a.h", 0, 1, 10.0, 20.0).is_noise is True
    assert Growth(b"a.h", 0, 1, -30.0, 20.0).is_noise is False
    assert Growth(b"a.h", 0, 1, None, None).is_noise is None
