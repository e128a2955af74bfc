# SPDX-License-Identifier: Apache-2.0
"""docs/nfsdb-json.md sentence by sentence, on small traces, with the values written out.

Each test runs against etrace_parser and against the reference parser: neither is trusted more than
these values. Pipes are in test_pipe_links.py.
"""

from __future__ import annotations

import os
import stat
from itertools import pairwise
from pathlib import Path

import pytest
from builders import (
    O_APPEND,
    O_CLOEXEC,
    O_CREAT,
    O_EXCL,
    O_PATH,
    O_RDWR,
    O_TMPFILE,
    O_TRUNC,
    O_WRONLY,
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    TraceBuilder,
)
from parse.parsing import LEFT, OTHER, RIGHT, SHELL, T0, Parse, Products, column, files, pipeline

NEW = O_WRONLY | O_CREAT | O_TRUNC

# ---- executions ----------------------------------------------------------------------------------


def test_a_process_that_forks_and_executes_has_its_whole_entries(run: Parse) -> None:
    t = TraceBuilder("/w").at(T0).on(1)
    t.fork(SHELL, LEFT, 17).at(T0 + 5000).on(0)
    t.exec(LEFT, "/usr/bin/cc", ["cc", "-c"], cwd="/w/src").on(3).at(T0 + 7000)
    t.exit(LEFT, 1).at(T0 + 9000)
    t.exit(SHELL, 139)
    root = {"p": SHELL, "x": 0, "s": 0, "e": 9000, "b": "", "w": "", "v": []}
    before = {"p": LEFT, "x": 0, "s": 5000, "e": 0, "b": "", "w": "", "v": []}
    after = {"p": LEFT, "x": 1, "s": 5000, "e": 2000, "b": "/usr/bin/cc", "w": "/w/src"}
    parent = {"p": SHELL, "x": 0}
    assert run(t).entries == [
        {
            **root, "c": [{"p": LEFT, "f": 17, "t": T0 + 1000}], "r": {"p": -1, "x": 0}, "i": [],
            "h": [], "u": [{"c": 1, "t": 0}, {"c": 3, "t": 9000}], "!": 139, "o": [],
        },
        {**before, "c": [], "r": parent, "i": [], "h": [], "u": [], "o": []},
        {
            **after, "v": ["cc", "-c"], "c": [], "r": parent, "i": [], "h": [],
            "u": [{"c": 0, "t": 5000}, {"c": 3, "t": 7000}], "!": 1, "o": [],
        },
    ]  # fmt: skip


def test_keys_come_in_their_order_and_entries_one_a_line(run: Parse) -> None:
    t = TraceBuilder().at(T0).exit(SHELL)
    assert run(t).raw == (
        b'[\n{"p":%d,"x":0,"s":0,"e":0,"b":"","w":"","v":[],"c":[],"r":{"p":-1,"x":0},"i":[],'
        b'"h":[],"u":[{"c":0,"t":0}],"!":0,"o":[]}\n]\n' % SHELL
    )


def test_a_process_without_exit_lives_until_the_last_line_of_the_trace(run: Parse) -> None:
    t = TraceBuilder().at(T0).comm(SHELL, "a").at(T0 + 10).comm(LEFT, "b").at(T0 + 70)
    t.exit(LEFT).at(T0 + 500).env("A=b", SHELL)
    products = run(t)
    assert column(products, "e") == {(SHELL, 0): 500, (LEFT, 0): 60}
    assert column(products, "!") == {(LEFT, 0): 0}


def test_index_0_has_the_argv_of_the_execution_that_forked_it_through_forks(run: Parse) -> None:
    t = TraceBuilder().exec(OTHER, "/bin/sh", ["sh", "-c", "x"])
    t.fork(OTHER, LEFT).fork(LEFT, SHELL).comm(SHELL, "c").comm(LEFT, "c")
    assert column(run(t), "v") == {
        (SHELL, 0): ["sh", "-c", "x"],
        (LEFT, 0): ["sh", "-c", "x"],
        (OTHER, 0): [],
        (OTHER, 1): ["sh", "-c", "x"],
    }


def test_copies_of_one_argv_have_a_limit(run: Parse) -> None:
    n, argv = 70, ["x", *map(str, range(999))]
    t = TraceBuilder().exec(OTHER, "/bin/x", argv)
    children = [(i + 1) << 22 | i for i in range(OTHER >> 22, (OTHER >> 22) + n)]
    for child in children:
        t.fork(OTHER, child).comm(child, "c")
    found = column(run(t), "v")
    assert [found[child, 0] for child in children] == [argv] * 66 + [argv[:64]] * (n - 66)
    assert found[OTHER, 1] == argv


def test_a_cycle_of_forks_has_no_argv(run: Parse) -> None:
    t = TraceBuilder().fork(SHELL, LEFT).fork(LEFT, SHELL)
    products = run(t)
    assert column(products, "v") == {(SHELL, 0): [], (LEFT, 0): []}
    assert column(products, "r") == {
        (SHELL, 0): {"p": LEFT, "x": 0},
        (LEFT, 0): {"p": SHELL, "x": 0},
    }


def test_the_first_claim_of_a_child_counts_and_the_second_is_a_problem(run: Parse) -> None:
    t = TraceBuilder().at(T0 + 10).fork(SHELL, OTHER).at(T0).fork(LEFT, OTHER)
    t.at(T0 + 20).comm(OTHER, "x")
    products = run(t)
    assert column(products, "r")[OTHER, 0] == {"p": LEFT, "x": 0}
    assert column(products, "c") == {
        (LEFT, 0): [{"p": OTHER, "f": 0, "t": T0}],
        (OTHER, 0): [],
    }
    assert products.has_problems


def test_a_child_without_events_is_a_child_but_no_entry(run: Parse) -> None:
    products = run(TraceBuilder().at(T0).fork(SHELL, LEFT))
    assert column(products, "c") == {(SHELL, 0): [{"p": LEFT, "f": 0, "t": T0}]}
    assert not products.has_problems


# ---- files ---------------------------------------------------------------------------------------


def test_the_first_closed_open_keeps_its_times_and_the_others_mix_the_access(run: Parse) -> None:
    t = TraceBuilder().at(T0).open(SHELL, "/w/a", fd=3).open(SHELL, "/w/a", fd=4, flags=O_WRONLY)
    t.close(SHELL, 4).close(SHELL, 3).open(SHELL, "/w/a", fd=3).close(SHELL, 3)
    first_use = [{"k": "f", "t": T0}]
    uses = [{"b": T0, "e": T0 + 3000, "m": 2}, {"b": T0 + 4000, "e": T0 + 5000, "m": 0}]
    times = {"b": T0 + 1000, "e": T0 + 2000, "l": T0 + 5000}
    assert files(run(t), SHELL) == [
        {"p": "/w/a", **times, "t": first_use, "u": uses, "m": 2},
    ]


def test_uses_of_a_name_are_apart_when_a_write_ended_in_between(run: Parse) -> None:
    t = TraceBuilder().at(T0).use(SHELL, "/w/in").use(SHELL, "/w/in")  # T0 to T0 + 3000
    t.use(SHELL, "/w/out", flags=NEW).use(SHELL, "/w/in").use(SHELL, "/w/out", flags=NEW)
    empties = [{"k": "e", "t": T0 + 4000}, {"k": "e", "t": T0 + 8000}]
    reads = [{"b": T0, "e": T0 + 3000, "m": 0}, {"b": T0 + 6000, "e": T0 + 7000, "m": 0}]
    writes = [{"b": T0 + 4000, "e": T0 + 5000, "m": 1}, {"b": T0 + 8000, "e": T0 + 9000, "m": 1}]
    assert files(run(t), SHELL) == [
        {"p": "/w/in", "b": T0, "e": T0 + 1000, "l": T0 + 7000, "u": reads, "m": 0},
        {
            "p": "/w/out",
            "b": T0 + 4000,
            "e": T0 + 5000,
            "l": T0 + 9000,
            "t": empties,
            "u": writes,
            "m": 1,
        },
    ]


def test_copies_of_a_descriptor_belong_to_its_use(run: Parse) -> None:
    t = TraceBuilder().at(T0)
    for _ in range(2):  # echo > out in a shell
        t.open(SHELL, "/w/out", flags=NEW, fd=3).dup(SHELL, 3, 1).close(SHELL, 3).close(SHELL, 1)
    empties = [{"k": "e", "t": T0}, {"k": "e", "t": T0 + 4000}]
    uses = [{"b": T0, "e": T0 + 3000, "m": 1}, {"b": T0 + 4000, "e": T0 + 7000, "m": 1}]
    times = {"b": T0, "e": T0 + 2000, "l": T0 + 7000}
    assert files(run(t), SHELL) == [
        {"p": "/w/out", **times, "t": empties, "u": uses, "m": 1},
    ]


@pytest.mark.parametrize(
    ("flags", "is_reported"),
    [
        (O_WRONLY | O_CREAT | O_TRUNC, True),  # creat()
        (O_RDWR | O_TRUNC, True),
        (O_TRUNC, True),  # Linux empties the file all the same
        (O_RDWR | O_CREAT | O_EXCL, True),
        (O_WRONLY | O_EXCL, False),
        (O_WRONLY | O_CREAT, False),
        (O_WRONLY | O_CREAT | O_APPEND, False),
        (O_RDWR, False),
        (O_PATH | O_TRUNC, False),
        (O_RDWR | O_TMPFILE, True),
        (O_PATH | O_TMPFILE, False),
    ],
)
def test_opens_after_which_a_file_is_empty_or_new_are_reported(
    run: Parse, flags: int, is_reported: bool
) -> None:
    t = TraceBuilder().at(T0).open(SHELL, "/w/a", flags=flags).close(SHELL)
    (file,) = files(run(t), SHELL)
    assert file.get("t", []) == [{"k": "e", "t": T0}] * is_reported


def test_names_that_come_and_go_are_reported(run: Parse) -> None:
    t = TraceBuilder().at(T0).rename(SHELL, "/w/a", "/w/b").link(SHELL, "/w/b", "/w/c")
    t.symlink(SHELL, "../w/c", "/w/d").rename(SHELL, "/w/c", "/w/b", RENAME_NOREPLACE)
    assert {file["p"]: file.get("t", []) for file in files(run(t), SHELL)} == {
        "/w/a": [{"k": "g", "t": T0}],
        "/w/b": [
            {"k": "r", "t": T0 + 1000, "n": "/w/a"}, {"k": "r", "t": T0 + 6000, "n": "/w/c"},
        ],
        "/w/c": [{"k": "l", "t": T0 + 3000, "n": "/w/b"}, {"k": "g", "t": T0 + 5000}],
        "/w/d": [{"k": "s", "t": T0 + 4000, "n": "../w/c"}],
    }  # fmt: skip


def test_names_that_stay_are_not_reported_as_gone(run: Parse) -> None:
    t = TraceBuilder().rename(SHELL, "/w/a", "/w/a", RENAME_EXCHANGE).rename(SHELL, "/w/c", "/w/c")
    assert [file.get("t") for file in files(run(t), SHELL)] == [None, None]


def test_names_that_change_their_files_are_reported_at_one_time(run: Parse) -> None:
    t = TraceBuilder().at(T0).rename(SHELL, "/w/a", "/w/b", RENAME_EXCHANGE)
    assert {file["p"]: (file["b"], file["m"] & 3, file["t"]) for file in files(run(t), SHELL)} == {
        "/w/a": (T0 + 1000, 2, [{"k": "x", "t": T0 + 1000, "n": "/w/b"}]),
        "/w/b": (T0 + 1000, 2, [{"k": "x", "t": T0 + 1000, "n": "/w/a"}]),
    }


def test_the_last_use_is_reported_only_when_it_is_later_than_the_first(run: Parse) -> None:
    t = TraceBuilder().at(T0).rename(SHELL, "/w/t", "/w/a").open(SHELL, "/w/a", flags=O_WRONLY)
    t.at(T0 + 9000).close(SHELL).use(SHELL, "/w/b")
    assert [file.get("l") for file in files(run(t), SHELL)] == [T0 + 9000, None, None]


def test_files_are_ordered_by_original_and_then_resolved_path_as_bytes(run: Parse) -> None:
    t = TraceBuilder()
    for path, original in [("/z", "/b"), ("/y", "/b"), ("/é", None), ("/a", None), ("/B", None)]:
        t.use(SHELL, path, original=original)
    shown = [(f.get("o"), f["p"]) for f in files(run(t), SHELL)]
    assert shown == [(None, "/B"), (None, "/a"), ("/b", "/y"), ("/b", "/z"), (None, "/é")]


def test_an_open_over_an_unclosed_descriptor_loses_nothing(run: Parse) -> None:
    t = TraceBuilder().at(T0).open(SHELL, "/w/b", flags=O_WRONLY | O_TRUNC).open(SHELL, "/w/a")
    t.at(T0 + 9000).exit(SHELL)
    assert files(run(t), SHELL) == [
        {"p": "/w/a", "b": T0 + 1000, "e": T0 + 9000, "m": 0},
        {"p": "/w/b", "b": T0, "e": T0 + 1000, "t": [{"k": "e", "t": T0}], "m": 1},
    ]


def test_a_dup_over_an_open_descriptor_closes_it_and_copies_do_not_count(run: Parse) -> None:
    t = TraceBuilder().at(T0).open(SHELL, "/w/a", fd=3).open(SHELL, "/w/b", fd=4).dup(SHELL, 3, 4)
    t.close(SHELL, 4).dup(SHELL, 3, 3).close(SHELL, 3).close(SHELL, 3)
    assert files(run(t), SHELL) == [
        {"p": "/w/a", "b": T0, "e": T0 + 5000, "m": 0},
        {"p": "/w/b", "b": T0 + 1000, "e": T0 + 2000, "m": 0},
    ]


def test_a_copy_of_a_descriptor_counts_for_the_last_use(run: Parse) -> None:
    t = TraceBuilder().at(T0).open(SHELL, "/w/out", fd=3, flags=O_WRONLY).dup(SHELL, 3, 1)
    t.close(SHELL, 3).exec(SHELL, "/bin/sort").at(T0 + 9000).exit(SHELL)
    t.open(OTHER, "/w/in", fd=3).dup(OTHER, 3, 0).close(OTHER, 3).dup(OTHER, 0, 4)
    t.at(T0 + 20000).close(OTHER, 4).at(T0 + 21000).dup(OTHER, 9, 0).exit(OTHER)
    products = run(t)
    out, read = files(products, SHELL), files(products, OTHER)
    assert out == [{"p": "/w/out", "b": T0, "e": T0 + 2000, "l": T0 + 9000, "m": 1}]
    assert [(f["e"], f["l"]) for f in read] == [(T0 + 12000, T0 + 21000)]


def held(products: Products, upid: int, index: int) -> list[tuple[int, str, int]]:
    """Return the files that an execution began with."""
    return [(h["d"], h["p"], h["m"]) for h in column(products, "h")[upid, index]]


def test_a_command_begins_with_the_files_of_the_shell_that_started_it(run: Parse) -> None:
    t = TraceBuilder().exec(SHELL, "/bin/sh").open(SHELL, "/w/out", fd=3, flags=O_WRONLY)
    t.dup(SHELL, 3, 1).close(SHELL, 3).open(SHELL, "/w/in", fd=0).open(SHELL, "/dev/null", fd=2)
    t.fork(SHELL, LEFT).exec(LEFT, "/bin/a").fork(LEFT, RIGHT).exec(RIGHT, "/bin/b").exit(RIGHT)
    products = run(t)
    for upid in (LEFT, RIGHT):
        assert held(products, upid, 1) == [(0, "/w/in", 0), (1, "/w/out", 1)]
        assert held(products, upid, 0) == []
    assert held(products, SHELL, 1) == []


def test_a_child_that_executes_nothing_holds_what_it_ends_with(run: Parse) -> None:
    t = TraceBuilder().open(SHELL, "/w/log", fd=5, flags=O_WRONLY).open(SHELL, "/w/x", fd=1)
    t.fork(SHELL, LEFT).dup(LEFT, 5, 1).exit(LEFT).fork(SHELL, RIGHT).close(RIGHT, 1).exit(RIGHT)
    products = run(t)
    assert held(products, LEFT, 0) == [(1, "/w/log", 1)]
    assert held(products, RIGHT, 0) == []


def test_what_closes_on_exec_is_not_inherited(run: Parse) -> None:
    cloexec = O_WRONLY | O_CLOEXEC
    t = TraceBuilder().open(SHELL, "/w/a", fd=0).open(SHELL, "/w/b", fd=1, flags=cloexec)
    t.open(SHELL, "/w/c", fd=4, flags=cloexec).fork(SHELL, LEFT).dup(LEFT, 4, 2)
    t.exec(LEFT, "/bin/a").fork(SHELL, RIGHT).dup(RIGHT, 0, 0, O_CLOEXEC).exec(RIGHT, "/bin/b")
    t.dup(RIGHT, 4, 1).fork(RIGHT, OTHER).exec(OTHER, "/bin/c").exit(OTHER)
    products = run(t)
    assert held(products, LEFT, 1) == [(0, "/w/a", 0), (2, "/w/c", 1)]
    assert held(products, RIGHT, 1) == held(products, OTHER, 1) == [(0, "/w/a", 0)]


@pytest.mark.parametrize("fd", [63, 64, 65, 127, 128, 200, 255, 1000, 1023, 4000, (1 << 20) - 1])
def test_high_descriptors_are_followed(run: Parse, fd: int) -> None:
    t = TraceBuilder().open(SHELL, "/w/a", fd=fd).open(SHELL, "/w/b", fd=fd - 1).fork(SHELL, LEFT)
    t.dup(LEFT, fd, 0).dup(LEFT, fd - 1, 1).exec(LEFT, "/bin/a").exit(LEFT)
    assert held(run(t), LEFT, 1) == [(0, "/w/a", 0), (1, "/w/b", 0)]


def test_descriptors_beyond_those_that_kernels_allow_are_not_followed(run: Parse) -> None:
    t = TraceBuilder().open(SHELL, "/w/a", fd=1 << 20).open(SHELL, "/w/b", fd=-1).fork(SHELL, LEFT)
    t.dup(LEFT, 1 << 20, 0).dup(LEFT, -1, 1).exec(LEFT, "/bin/a").exit(LEFT)
    assert held(run(t), LEFT, 1) == []


def test_each_child_has_the_descriptors_of_its_fork(run: Parse) -> None:
    children = [number << 22 | 5 for number in range(100, 104)]
    t = TraceBuilder().open(SHELL, "/w/a", fd=70, flags=O_CLOEXEC)
    for child, change in zip(children, ("none", "open", "close", "exec"), strict=True):
        if change == "open":
            t.open(SHELL, "/w/b", fd=71)
        elif change == "close":
            t.close(SHELL, 71)
        elif change == "exec":
            t.exec(SHELL, "/bin/sh")
        t.fork(SHELL, child).dup(child, 70, 0).dup(child, 71, 1).exec(child, "/bin/a").exit(child)
    products = run(t)
    a, b = (0, "/w/a", 0), (1, "/w/b", 0)
    assert [held(products, child, 1) for child in children] == [[a], [a, b], [a], []]


def test_a_file_is_followed_through_255_forks(run: Parse) -> None:
    chain = [number << 22 | 1 for number in range(1, 259)]
    t = TraceBuilder().open(chain[0], "/w/a", fd=0)
    for parent, child in pairwise(chain):
        t.fork(parent, child)
    t.exit(chain[255]).exit(chain[256])
    products = run(t)
    assert held(products, chain[255], 0) == [(0, "/w/a", 0)]
    assert held(products, chain[256], 0) == []


def test_an_open_belongs_to_the_execution_that_made_it(run: Parse) -> None:
    t = TraceBuilder().at(T0).open(SHELL, "/w/a").exec(SHELL, "/bin/x").close(SHELL, 3).exit(SHELL)
    products = run(t)
    assert files(products, SHELL, 0) == [{"p": "/w/a", "b": T0, "e": T0 + 2000, "m": 0}]
    assert files(products, SHELL, 1) == []


def test_a_forked_child_neither_owns_nor_closes_its_parents_files(run: Parse) -> None:
    t = TraceBuilder().at(T0).open(SHELL, "/w/a").fork(SHELL, LEFT).close(LEFT, 3)
    t.at(T0 + 9000).close(SHELL, 3)
    products = run(t)
    assert files(products, SHELL) == [{"p": "/w/a", "b": T0, "e": T0 + 9000, "m": 0}]
    assert files(products, LEFT) == []


def test_a_thread_closes_what_another_opened(run: Parse) -> None:
    t = TraceBuilder().at(T0).open(SHELL, "/w/a").thread(SHELL, LEFT).close(LEFT, 3)
    t.open(LEFT, "/w/b", fd=3).at(T0 + 9000).close(SHELL, 3)
    products = run(t)
    assert files(products, SHELL) == [{"p": "/w/a", "b": T0, "e": T0 + 3000, "m": 0}]
    assert files(products, LEFT) == [{"p": "/w/b", "b": T0 + 4000, "e": T0 + 9000, "m": 0}]


def test_renames_links_and_symlinks_read_and_write_without_an_end(run: Parse) -> None:
    t = TraceBuilder().at(T0).rename(SHELL, "/a", "/b").link(SHELL, "/c", "/d", 0)
    t.symlink(SHELL, "../x", "/e", resolved="/x").symlink(SHELL, "gone", "/f")
    t.rename_failed(SHELL, "/g").rename_failed(SHELL).link_failed(SHELL, "/h", 0).link_failed(SHELL)
    products = run(t)
    shown = [(f["p"], f["b"] - T0, f["e"], f["m"]) for f in files(products, SHELL)]
    assert shown == [
        ("/a", 0, 0, 0), ("/b", 1000, 0, 1), ("/c", 2000, 0, 0), ("/d", 3000, 0, 1),
        ("/e", 4000, 0, 1), ("/f", 5000, 0, 1), ("/x", 4000, 0, 0),
    ]  # fmt: skip
    assert not products.has_problems


@pytest.mark.parametrize("kind", ["regular", "set-id", "directory", "symlink", "fifo", "absent"])
def test_mode_bits_say_the_type_alone_and_come_from_the_raw_original_path(
    run: Parse, tmp_path: Path, kind: str
) -> None:
    path = os.fsencode(tmp_path) + b'/\xff"\n\\\x01\xc3\xa9'
    place = Path(os.fsdecode(path))
    match kind:
        case "regular" | "set-id":
            place.write_bytes(b"12345")
            place.chmod(0o6755 if kind == "set-id" else 0o644)
        case "directory":
            place.mkdir(0o7777)
        case "symlink":
            place.symlink_to("abc")
        case "fifo":
            os.mkfifo(path)
    modes = {"regular": 0x60, "set-id": 0x60, "directory": 0x50, "symlink": 0x68, "fifo": 0x44}
    [file] = column(run(TraceBuilder().use(SHELL, "/resolved", original=path)), "o")[SHELL, 0]
    assert os.fsencode(file["o"]) == path
    assert file["m"] == modes.get(kind, 0)
    assert file["s"] == (os.lstat(path).st_size if kind != "absent" else 0)
    assert kind == "absent" or file["m"] == 0x40 | stat.S_IFMT(os.lstat(path).st_mode) >> 10


# ---- environment and mounts ----------------------------------------------------------------------


def test_groups_of_one_variable_are_joined(run: Parse) -> None:
    long = "L=" + "x" * 2000 + "\ny"
    t = TraceBuilder().exit(SHELL).env("B=1", RIGHT, LEFT).env(long, SHELL).env("A=\n", LEFT)
    t.env("B=1", SHELL, LEFT)
    products = run(t)
    assert list(products.env.items()) == [
        ("A=\n", [LEFT]), ("B=1", [SHELL, LEFT, RIGHT]), (long, [SHELL]),
    ]  # fmt: skip
    assert not products.has_problems


def test_mounts_are_in_order_of_time_with_what_is_present(run: Parse) -> None:
    t = TraceBuilder().at(T0 + 10).mount(SHELL, "/m", source="src", fstype="ext4", flags=2**64 - 1)
    t.at(T0).mount(LEFT, "/n", flags=32, ok=False).umount(LEFT, "/n", 2, ok=False)
    t.umount(LEFT, None, ok=False).exec(LEFT, "/bin/x").umount(LEFT, "/n")
    first = {"p": LEFT, "x": 0, "t": T0, "k": "mount", "target": "/n", "flags": 32, "ok": False}
    products = run(t)
    assert products.mounts == [
        first,
        {
            "p": SHELL, "x": 0, "t": T0 + 10, "k": "mount", "source": "src", "target": "/m",
            "type": "ext4", "flags": 2**64 - 1, "ok": True,
        },
        {**first, "t": T0 + 2000, "k": "umount", "flags": 2},
        {**first, "x": 1, "t": T0 + 6000, "k": "umount", "flags": 0, "ok": True},
    ]  # fmt: skip
    assert not products.has_problems


def test_a_lone_half_between_an_umount_and_its_failure_is_as_if_not_there(run: Parse) -> None:
    t = TraceBuilder().at(T0).umount(SHELL, "/m").event(SHELL, "SysClone", flags=17)
    t.umount(SHELL, None, ok=False)
    products = run(t)
    assert [mount["ok"] for mount in products.mounts] == [False]
    assert products.has_problems


# ---- lines and problems --------------------------------------------------------------------------


def test_bytes_of_every_value_come_back_from_the_json(run: Parse) -> None:
    argument = bytes(range(1, 256)) + "zażółć 😀".encode() + b"\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf"
    products = run(TraceBuilder().exec(SHELL, "/bin/x", [argument]))
    assert [os.fsencode(a) for a in column(products, "v")[SHELL, 1]] == [argument]
    assert b"\\b\\t\\n\\u000b\\f\\r\\u000e" in products.raw
    assert b'\\u001f !\\"#' in products.raw
    assert b"~\x7f\\udc80\\udc81" in products.raw


@pytest.mark.parametrize("prefix", [b"0: ", b"  make-77  [001] d..3.  72.748643: "])
def test_text_before_the_prefix_is_passed_over(run: Parse, prefix: bytes) -> None:
    assert run(pipeline().trace(prefix=prefix)).raw == run(pipeline()).raw


@pytest.mark.parametrize(("ns", "is_problem"), [(999_999_999, False), (10**9, True)])
def test_a_second_has_less_than_a_billion_nanoseconds(
    run: Parse, ns: int, is_problem: bool
) -> None:
    t = pipeline().raw(b"1,0,1,%d!Exit|status=0\n" % ns)
    assert run(t).has_problems == is_problem


def test_comments_and_lost_events_are_no_problems(run: Parse) -> None:
    t = pipeline().raw(b"# lost=0\nCPU:1 [LOST 7 EVENTS]\n#\n")
    products = run(t)
    assert not products.has_problems
    assert products.raw == run(pipeline()).raw


@pytest.mark.parametrize(
    "original", [[b"FO|/w/a"], [b"FO[0]/w", b"FO[1]/a", b"FO_end"]], ids=["whole", "parts"]
)
def test_a_problem_costs_its_event_alone(run: Parse, original: list[bytes]) -> None:
    t = TraceBuilder().at(T0).comm(SHELL, "x")
    opened = b"Open|fnamesize=4,forigsize=5,flags=0,mode=0,fd=3"  # a byte more than follows
    t.lines(SHELL, opened, b"FN|/w/a", *original)
    t.at(T0 + 9000).use(SHELL, "/w/b").exit(SHELL, 3)
    products = run(t)
    assert products.has_problems
    assert files(products, SHELL) == [{"p": "/w/b", "b": T0 + 9000, "e": T0 + 10000, "m": 0}]
    assert column(products, "!") == {(SHELL, 0): 3}


def test_events_whose_stamps_go_down_are_sorted_with_their_strings(run: Parse) -> None:
    t = TraceBuilder().at(T0 + 5000).close(SHELL, 3).at(T0).open(SHELL, "/w/a\nb")
    products = run(t)
    assert files(products, SHELL) == [{"p": "/w/a\nb", "b": T0, "e": T0 + 5000, "m": 0}]
    assert not products.has_problems


def test_a_trace_cut_inside_an_event_loses_that_event(run: Parse) -> None:
    whole = TraceBuilder().at(T0).use(SHELL, "/w/a").open(SHELL, "/w/b").trace()
    for size in range(whole.index(b"Open|", whole.index(b"Close")) + 1, len(whole) - 2):
        products = run(whole[:size])
        assert files(products, SHELL) == [{"p": "/w/a", "b": T0, "e": T0 + 1000, "m": 0}]
        assert products.has_problems
    assert not run(whole[:-1]).has_problems
    assert run(whole[:-1]).raw == run(whole).raw
