# SPDX-License-Identifier: Apache-2.0
"""What ends a file and what does not: docs/dependencies.md, on traces that show one thing each."""

from __future__ import annotations

import pytest
from builders import (
    O_APPEND,
    O_CREAT,
    O_EXCL,
    O_PATH,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
    RENAME_EXCHANGE,
    TraceBuilder,
)
from libetrace.depend.configuration import Rules
from query.traced_builds import NEW, SH, A, B, C, D, E, Opened, command, names, shell, users


def written_twice(flags: int) -> TraceBuilder:
    """A trace of two commands that write f of one file each, and of a reader after each."""
    t = command(shell(), A, "gen 1", "in1", "f")
    command(command(t, B, "cc 1", "f", "out1"), C, "gen 2", "in2", "f", flags=flags)
    return command(t, D, "cc 2", "f", "out2")


@pytest.mark.parametrize(
    "flags", [NEW, O_RDWR | O_TRUNC, O_WRONLY | O_CREAT | O_EXCL, O_RDWR | O_CREAT | O_EXCL]
)
def test_a_file_that_is_emptied_or_made_again_forgets_what_it_was(
    opened: Opened, flags: int
) -> None:
    d = opened(written_twice(flags))
    assert names(d, "/w/out1") == {"f", "in1"}
    assert names(d, "/w/out2") == names(d, "/w/f") | {"f"} == {"f", "in2"}
    assert users(d, "/w/in1") == {"out1"}
    assert users(d, "/w/in2") == {"f", "out2"}
    assert users(d, "/w/f") == {"out1", "out2"}
    any_time = Rules(is_ordered=False)
    assert names(d, "/w/out1", any_time) == {"f", "in1", "in2"}


@pytest.mark.parametrize(
    "flags", [O_WRONLY | O_CREAT | O_APPEND, O_RDWR, O_WRONLY, O_WRONLY | O_CREAT]
)
def test_a_file_that_is_added_to_or_changed_in_place_keeps_what_it_was(
    opened: Opened, flags: int
) -> None:
    d = opened(written_twice(flags))
    assert names(d, "/w/out2") == {"f", "in1", "in2"}
    assert users(d, "/w/in1") == {"f", "out1", "out2"}


def test_an_open_for_its_path_alone_empties_nothing(opened: Opened) -> None:
    t = command(shell(), A, "gen", "in", "f").fork(SH, B).exec(B, "/bin/stat")
    t.use(B, "/w/f", flags=O_PATH | O_TRUNC).exit(B)
    assert names(opened(command(t, C, "cc", "f", "out")), "/w/out") == {"f", "in"}


def test_a_file_opened_to_read_may_be_emptied_all_the_same(opened: Opened) -> None:
    t = command(shell(), A, "gen", "in", "f").fork(SH, B).exec(B, "/bin/empty")
    t.use(B, "/w/f", flags=O_TRUNC).exit(B)
    assert names(opened(command(t, C, "cc", "f", "out")), "/w/out") == {"f"}


def test_who_had_it_open_before_it_was_emptied_read_what_it_was(opened: Opened) -> None:
    t = command(shell(), A, "gen 1", "in1", "f").fork(SH, B).exec(B, "/bin/slow").open(B, "/w/f")
    command(t, C, "gen 2", "in2", "f").close(B).use(B, "/w/out", flags=NEW).exit(B)
    assert names(opened(t), "/w/out") == {"f", "in1", "in2"}


def test_who_empties_what_it_has_open_read_what_it_was(opened: Opened) -> None:
    """As `sort -o f f` written badly: the second open is closed first."""
    t = command(shell(), A, "gen", "in", "f").fork(SH, B).exec(B, "/bin/filter")
    t.open(B, "/w/f", fd=3).use(B, "/w/f", fd=4, flags=NEW).close(B, 3).exit(B)
    assert names(opened(t), "/w/f") == {"in"}


def test_an_archiver_that_copies_its_temporary_over_the_archive_keeps_the_members(
    opened: Opened,
) -> None:
    t = command(shell(), A, "ar rc lib.a a.o", "a.o", "lib.a").fork(SH, B)
    t.exec(B, "/bin/ar", ["ar", "r", "lib.a", "b.o"]).use(B, "/w/lib.a").use(B, "/w/b.o")
    t.open(B, "/w/stX", fd=4, flags=O_RDWR | O_CREAT | O_EXCL).close(B, 4)
    t.use(B, "/w/stX").use(B, "/w/lib.a", flags=NEW).exit(B)
    assert names(opened(t), "/w/lib.a") == {"a.o", "b.o", "stX"}


def test_an_archiver_that_renames_its_temporary_keeps_the_members(opened: Opened) -> None:
    t = command(shell(), A, "ar rc lib.a a.o", "a.o", "lib.a").fork(SH, B)
    t.exec(B, "/bin/ar", ["ar", "r", "lib.a", "b.o"]).use(B, "/w/lib.a").use(B, "/w/b.o")
    t.use(B, "/w/stX", flags=O_RDWR | O_CREAT | O_EXCL).rename(B, "/w/stX", "/w/lib.a").exit(B)
    assert names(opened(t), "/w/lib.a") == {"a.o", "b.o", "stX"}


def test_a_rename_over_a_name_ends_what_it_was(opened: Opened) -> None:
    t = command(shell(), A, "gen 1", "in1", "f")
    command(t, B, "gen 2", "in2", "tmp").fork(SH, C).exec(C, "/bin/mv")
    t.rename(C, "/w/tmp", "/w/f").exit(C)
    d = opened(command(t, D, "cc", "f", "out"))
    assert names(d, "/w/out") == {"f", "tmp", "in2"}
    assert users(d, "/w/in1") == set()
    assert names(d, "/w/tmp") == {"in2"}  # the last that was there


def test_a_name_that_was_renamed_away_begins_again(opened: Opened) -> None:
    t = command(shell(), A, "gen 1", "in1", "f").fork(SH, B).exec(B, "/bin/mv")
    t.rename(B, "/w/f", "/w/old").exit(B)
    d = opened(command(t, C, "gen 2", "in2", "f", flags=O_WRONLY | O_CREAT))
    assert names(d, "/w/f") == {"in2"}
    assert names(d, "/w/old") == {"f", "in1"}


def test_what_is_added_before_a_rename_by_the_same_command_is_not_lost(opened: Opened) -> None:
    t = command(shell(), A, "gen", "in1", "tmp").fork(SH, B).exec(B, "/bin/python3")
    t.use(B, "/w/in2").use(B, "/w/tmp", flags=O_WRONLY | O_APPEND)
    d = opened(t.rename(B, "/w/tmp", "/w/out").exit(B))
    assert names(d, "/w/out") == {"tmp", "in1", "in2"}
    assert names(d, "/w/tmp") == {"in1", "in2"}


@pytest.mark.parametrize("flags", [None, RENAME_EXCHANGE])
def test_names_that_stay_end_nothing(opened: Opened, flags: int | None) -> None:
    t = command(shell(), A, "gen", "in", "f").fork(SH, B).exec(B, "/bin/mv")
    t.rename(B, "/w/f", "/w/f", flags).exit(B)
    assert "in" in names(opened(command(t, C, "cc", "f", "out")), "/w/out")


def test_names_that_are_exchanged_in_a_circle_have_each_others_contents(opened: Opened) -> None:
    t = shell()
    for upid, name in ((A, "a"), (B, "b"), (C, "c")):
        command(t, upid, f"gen {name}", f"{name}.in", name)
    t.fork(SH, D).exec(D, "/bin/python3").use(D, "/w/other")
    t.rename(D, "/w/a", "/w/b", RENAME_EXCHANGE).rename(D, "/w/b", "/w/c", RENAME_EXCHANGE)
    t.use(D, "/w/report", flags=NEW).exit(D)
    d = opened(t.exit(SH))
    for name, source in (("a", "b.in"), ("b", "c.in"), ("c", "a.in")):
        inputs = {each for each in names(d, f"/w/{name}") if each not in "abc"}
        assert inputs == {source}, name
    assert names(d, "/w/report") == {"other"}


def test_who_holds_a_file_open_goes_on_under_its_new_names(opened: Opened) -> None:
    """Whoever renames it: until another file gets the name."""
    t = shell().open(SH, "/w/t", flags=NEW, fd=3)
    t.fork(SH, A).exec(A, "/bin/mv").rename(A, "/w/t", "/w/u").exit(A)
    t.fork(SH, B).exec(B, "/bin/ln").link(B, "/w/u", "/w/hard").exit(B)
    t.fork(SH, C).exec(C, "/bin/mv").rename(C, "/w/u", "/w/out").exit(C)
    t.use(SH, "/w/in").close(SH, 3)
    command(t, D, "gen", "new.in", "new").fork(SH, E).exec(E, "/bin/mv")
    t.rename(E, "/w/new", "/w/out").exit(E).use(SH, "/w/late")
    d = opened(t.exit(SH))
    assert {name: "in" in names(d, f"/w/{name}") for name in ("t", "u", "hard", "out")} == {
        "t": True, "u": True, "hard": True, "out": False,
    }  # fmt: skip
    assert names(d, "/w/out") == {"new", "new.in"}


def test_what_was_written_before_a_rename_by_its_reader_is_not_lost(opened: Opened) -> None:
    """The halves of a rename have stamps of their own: the old name is gone at the first."""
    t = command(shell(), A, "gen", "in", "t").fork(SH, B).exec(B, "/bin/python3")
    d = opened(t.use(B, "/w/t").rename(B, "/w/t", "/w/out").exit(B).exit(SH))
    assert names(d, "/w/out") == {"t", "in"}


def test_who_inherits_a_descriptor_may_read_what_the_name_no_longer_holds(opened: Opened) -> None:
    t = (
        command(shell(), A, "gen 1", "in1", "f")
        .fork(SH, B)
        .exec(B, "/bin/sh")
        .open(B, "/w/f", fd=0)
    )
    command(t, C, "gen 2", "in2", "tmp").fork(SH, D).exec(D, "/bin/mv")
    t.rename(D, "/w/tmp", "/w/f").exit(D).fork(B, E).exec(E, "/bin/cat")
    assert "in1" in names(opened(t.use(E, "/w/out", flags=NEW).exit(E).exit(B)), "/w/out")


def test_what_is_written_to_a_device_is_gone(opened: Opened) -> None:
    t = command(shell(), A, "gen", "in").fork(SH, B).exec(B, "/bin/gen").use(B, "/w/in")
    t.use(B, "/dev/null", flags=NEW).use(B, "/dev/shm/f", flags=NEW).exit(B).fork(SH, C)
    t.exec(C, "/bin/cc").use(C, "/dev/null").use(C, "/w/out", flags=NEW).exit(C).fork(SH, D)
    t.exec(D, "/bin/cc").use(D, "/dev/shm/f").use(D, "/w/out2", flags=NEW).exit(D)
    d = opened(t)
    assert names(d, "/w/out") == {"/dev/null"}
    assert names(d, "/w/out2") == {"/dev/shm/f", "in"}


def test_hundreds_of_builds_with_the_same_temporary_names_stay_apart(opened: Opened) -> None:
    n_builds, n_names = 300, 7
    t = shell()
    for i in range(n_builds):
        tmp = f"/tmp/cc{i % n_names}.s"
        for step, (argv, reads, writes) in enumerate(
            [
                ("gcc", [], [tmp]),
                ("cc1", [f"/w/{i}/a.c", f"/w/{i}/a.h"], [tmp]),
                ("as", [tmp], [f"/w/{i}/a.o"]),
                ("ld", [f"/w/{i}/a.o"], [f"/w/{i}/prog"]),
            ]
        ):
            upid = (10 + 4 * i + step) << 22 | 9
            t.fork(SH, upid).exec(upid, f"/bin/{argv}")
            for name in reads:
                t.use(upid, name)
            for name in writes:
                t.use(upid, name, flags=NEW if argv != "gcc" else O_RDWR | O_CREAT | O_EXCL)
            t.exit(upid)
    d = opened(t.exit(SH))
    for i in range(n_builds):
        own = {f"{i}/a.o", f"{i}/a.c", f"{i}/a.h", f"/tmp/cc{i % n_names}.s"}
        assert names(d, f"/w/{i}/prog") == own
