# SPDX-License-Identifier: Apache-2.0
"""What headers cost: counts and bytes of a small build, least squares computed by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import databases
import pytest
from libetrace.image.file import Image

from etrace.cli.main import cas
from etrace.nfsdb.store import open_database
from etrace.query.includes import (
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


def normal_equations(given: Sequence[tuple[float, float, float]]) -> tuple[Fraction, Fraction]:
    """Return c and its variance by the inverse of the whole matrix, in fractions."""
    rows = [(Fraction(1), Fraction(s), Fraction(h)) for s, h, _ in given]
    times = [Fraction(time) for *_, time in given]
    matrix = [
        [sum(x[i] * x[j] / y**2 for x, y in zip(rows, times, strict=True)) for j in range(3)]
        for i in range(3)
    ]
    right = [sum(x[i] / y for x, y in zip(rows, times, strict=True)) for i in range(3)]
    columns = [solved(matrix, [Fraction(i == j) for i in range(3)]) for j in range(3)]
    found = [sum(columns[j][i] * right[j] for j in range(3)) for i in range(3)]
    rest = sum(
        ((y - sum(f * v for f, v in zip(found, x, strict=True))) / y) ** 2
        for x, y in zip(rows, times, strict=True)
    )
    return Fraction(found[2]), Fraction(rest / (len(given) - 3) * columns[2][2])


def solved(matrix: list[list[Any]], right: list[Fraction]) -> list[Fraction]:
    """Solve linear equations by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i, row in enumerate(rows):
        rows[i] = [value / row[i] for value in row]
        for j, other in enumerate(rows):
            if j != i:
                rows[j] = [v - other[i] * w for v, w in zip(other, rows[i], strict=True)]
    return [row[-1] for row in rows]


def test_an_exact_plane_has_no_error() -> None:
    # time = 10 + 2 * sources + 3 * headers
    fit = fit_headers(points(10, 14, 16, 20))
    assert fit is not None
    assert (fit.ns_a_byte, fit.error) == pytest.approx((3, 0), abs=1e-9)


def test_a_compilation_counts_by_its_relative_error() -> None:
    given = [(0, 0, 10), (2, 0, 13), (0, 2, 14), (2, 2, 25), (1, 1, 90), (3, 1, 11)]
    fit = fit_headers(given)
    c, variance = normal_equations(given)
    assert fit is not None
    assert (fit.ns_a_byte, fit.error) == pytest.approx((float(c), float(variance) ** 0.5))


def test_a_long_compilation_does_not_make_headers_cost_more_than_a_build() -> None:
    # one compilation of a large table takes 1,000 times as long, and reads a few headers more
    given = [(n * 10.0, 1000.0 + n * n % 7, 50.0 + n % 3) for n in range(30)]
    fit = fit_headers([*given, (100.0, 1010.0, 50_000.0)])
    assert fit is None or fit.ns_a_byte * 1000 <= 60 or fit.error > fit.ns_a_byte / 2


def test_sources_of_one_size_leave_a_line() -> None:
    # headers 0 1 2 3, times 2 4 4 8: weights 16 4 4 1 (of 64); mean of headers 15 / 25 = .6, of
    # times 72 / 25 = 2.88; slope (16*.6*.88 + 4*.4*1.12 + 4*1.4*1.12 + 2.4*5.12) / 20 = 1.44
    fit = fit_headers([(7, 0, 2), (7, 1, 4), (7, 2, 4), (7, 3, 8)])
    assert fit is not None
    assert fit.ns_a_byte == pytest.approx(28.8 / 20)


@pytest.mark.parametrize(
    "given",
    [
        points(1, 2, 3, 4)[:3],
        [(1, 2, 1), (2, 4, 2), (3, 6, 9), (4, 8, 1)],  # headers in proportion to sources
        [(1, 5, 1), (1, 5, 2), (1, 5, 9), (1, 5, 1)],
        points(9, 9, 4, 4),  # headers would save time
        points(0, 1, 2, 3),  # one of four has no time
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
