# SPDX-License-Identifier: Apache-2.0
"""What commands used, in answers: sorted, selected, shown; and in the summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import TraceBuilder
from databases import database_of
from libetrace.image.file import Image

from etrace.cli.main import cas
from etrace.errors import UsageError
from etrace.query.rows.usage import KEYS, Usages, read_least
from etrace.query.summary import summarise

MAKE, CC, LD, OLD = 5, 1 << 22 | 6, 2 << 22 | 7, 3 << 22 | 8
SECOND = 10**9


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """make, which starts cc, ld, and an ld of which nothing is known."""
    trace = TraceBuilder("/w").exec(MAKE, "/bin/make")
    for child, program in ((CC, "/bin/cc"), (LD, "/bin/ld"), (OLD, "/bin/ld")):
        trace.fork(MAKE, child).exec(child, program, [program, "-x"])
    trace.usage(CC, 2 * SECOND, SECOND, 200_000_000, 5, 6, 7, 8).exit(CC)
    trace.usage(LD, SECOND, 0, 50_000_000, 3_000_000, -1).exit(LD)
    trace.exit(OLD).usage(MAKE, 1000, 0).exit(MAKE)
    return database_of(tmp_path, trace.trace())


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    status = cas(list(words))
    shown = capsys.readouterr()
    assert (status, shown.err) == (0, "")
    return shown.out


def test_commands_show_what_they_used(
    image: Image, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = ask(capsys, "--dbdir", str(tmp_path), "commands", "--usage")
    assert [line.split() for line in shown.splitlines()] == [
        ["0.000", "s", "-", "-", "-", "/bin/make"],
        ["3.000", "s", "200.0", "MB", "5", "B", "6", "B", "/bin/cc", "-x"],
        ["1.000", "s", "50.0", "MB", "3.0", "MB", "-", "/bin/ld", "-x"],
        ["-", "-", "-", "-", "/bin/ld", "-x"],
    ]


def test_commands_are_sorted_and_selected_by_what_they_used(
    image: Image, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--dbdir", str(tmp_path), "commands", "--sorting-key", "cpu_ns")
    assert ask(capsys, *words).split() == [
        "/bin/make",
        "/bin/ld",
        "-x",
        "/bin/cc",
        "-x",
        "/bin/ld",
        "-x",
    ]
    assert ask(capsys, *words, "--at-least", "cpu_ns=1s").split() == [
        "/bin/ld", "-x", "/bin/cc", "-x"
    ]  # fmt: skip
    least = ("--at-least", "cpu_ns=500ms", "--at-least", "max_rss_bytes=60MB")
    assert ask(capsys, *words, *least).split() == ["/bin/cc", "-x"]


#: by key: of make, cc, the first ld and the second
VALUES = {
    "cpu_ns": (1000, 3 * SECOND, SECOND, None), "user_ns": (1000, 2 * SECOND, SECOND, None),
    "system_ns": (0, SECOND, 0, None), "max_rss_bytes": (None, 200_000_000, 50_000_000, None),
    "rchar_bytes": (None, 5, 3_000_000, None), "wchar_bytes": (None, 6, None, None),
    "n_voluntary_switches": (None, 7, None, None), "n_forced_switches": (None, 8, None, None),
}  # fmt: skip


def test_there_are_values_of_every_key() -> None:
    assert set(VALUES) == set(KEYS)


@pytest.mark.parametrize("key", VALUES)
def test_every_key_is_shown_sorted_and_selected(
    key: str, image: Image, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--dbdir", str(tmp_path), "commands", "--fmt", f"{{pid}} {{{key}}}")
    upids = (MAKE, CC, LD, OLD)
    lines = [
        (f"{upid} {'' if value is None else value}", value)
        for upid, value in zip(upids, VALUES[key], strict=True)
    ]
    assert ask(capsys, *words).splitlines() == [line for line, _ in lines]
    known = [(line, value) for line, value in lines if value is not None]
    unknown = [line for line, value in lines if value is None]
    for reverse, options in ((False, ()), (True, ("--reverse",))):
        known.sort(key=lambda each: each[1], reverse=reverse)
        shown = ask(capsys, *words, "--sorting-key", key, *options).splitlines()
        # equal values keep their order, turned with the others
        assert [line.split()[1:] for line in shown] == [
            line.split()[1:] for line in [line for line, _ in known] + unknown
        ]
    for least in {value for _, value in known}:
        shown = ask(capsys, *words, "--at-least", f"{key}={least}").splitlines()
        assert sorted(shown) == sorted(line for line, value in known if value >= least)


def test_the_json_of_a_command_has_it(
    image: Image, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = json.loads(ask(capsys, "--dbdir", str(tmp_path), "commands", "--json"))["entries"]
    cc, ld, old = entries[1:]
    assert (cc["cpu_ns"], cc["user_ns"], cc["n_forced_switches"]) == (3 * SECOND, 2 * SECOND, 8)
    assert (ld["rchar_bytes"], ld["wchar_bytes"]) == (3_000_000, None)
    assert old["cpu_ns"] is old["max_rss_bytes"] is None


def test_the_summary_has_cpu_time_beside_elapsed_time(image: Image) -> None:
    page = summarise(image)
    assert page.totals.cpu_ns == 4 * SECOND + 1000
    assert {each.name: each.cpu_ns for each in page.programs} == {
        "cc": 3 * SECOND, "ld": SECOND,
    }  # fmt: skip


def test_a_database_without_it_says_nothing(tmp_path: Path) -> None:
    image = database_of(tmp_path, TraceBuilder().exec(MAKE, "/bin/make").exit(MAKE).trace())
    usages = Usages(image)
    assert usages.record(1) == {}
    assert usages.at_least([0, 1], "cpu_ns", 0) == []
    assert summarise(image).totals.cpu_ns is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("cpu_ns=1.5s", 1_500_000_000), ("user_ns=12", 12), ("wchar_bytes=2kB", 2000),
     ("n_forced_switches=3", 3)],
)  # fmt: skip
def test_numbers_may_have_units(text: str, number: int) -> None:
    assert read_least(text) == (text.partition("=")[0], number)


@pytest.mark.parametrize(
    "text", ["cpu=1", "cpu_ns", "cpu_ns=1MB", "n_forced_switches=1s", "cpu_ns=nan"]
)
def test_what_is_no_key_or_number_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_least(text)
