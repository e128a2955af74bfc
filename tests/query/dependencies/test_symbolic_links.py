# SPDX-License-Identifier: Apache-2.0
"""A symbolic link that the build made stands for whatever its target becomes."""

from __future__ import annotations

from builders import TraceBuilder
from query.traced_builds import NEW, SH, A, B, C, D, Opened, command, names, shell, users

from etrace.query.rows.path_names import Names


def linked(t: TraceBuilder, target: str = "libf.so.1", path: str = "/w/libf.so") -> TraceBuilder:
    """Make the link by a command of its own."""
    return t.fork(SH, A).exec(A, "/bin/ln", ["ln", "-s"], cwd="/w").symlink(A, target, path).exit(A)


def test_a_link_made_before_its_target_depends_on_what_that_is_made_of(opened: Opened) -> None:
    t = command(linked(shell()), B, "ld -o libf.so.1", "f.o", "libf.so.1")
    d = opened(command(t, C, "ld -o prog", "libf.so.1", "prog"))
    assert names(d, "/w/libf.so") == {"libf.so.1", "f.o"}
    assert users(d, "/w/f.o") == {"libf.so", "libf.so.1", "prog"}
    assert users(d, "/w/libf.so.1") == {"libf.so", "prog"}


def test_a_link_follows_its_target_through_directories_links_and_new_contents(
    opened: Opened,
) -> None:
    t = linked(shell(), "../lib/./a.so", "/w/bin/l")
    t.fork(SH, B).exec(B, "/bin/ln").symlink(B, "a.so.1", "/w/lib/a.so").exit(B)
    command(t, C, "ld", "old.o", "lib/a.so.1")
    assert names(opened(command(t, D, "ld", "new.o", "lib/a.so.1")), "/w/bin/l") == {
        "lib/a.so", "lib/a.so.1", "new.o",
    }  # fmt: skip


def test_a_link_that_replaces_another_by_rename_is_followed(opened: Opened) -> None:
    """As `ln -sf` does."""
    t = linked(shell(), "old.so").fork(SH, B).exec(B, "/bin/ln", ["ln", "-sf"])
    t.symlink(B, "new.so", "/w/CuXY").rename(B, "/w/CuXY", "/w/libf.so").exit(B)
    d = opened(command(command(t, C, "ld", "f.o", "new.so"), D, "ld", "g.o", "old.so"))
    assert names(d, "/w/libf.so") == {"CuXY", "new.so", "f.o"}
    link, target = (d.image.find_path(path) for path in (b"/w/libf.so", b"/w/new.so"))
    assert Names(d.image).target(link) == target


def test_links_in_a_ring_and_links_to_nothing_lead_nowhere(opened: Opened) -> None:
    t = linked(shell(), "b", "/w/a").fork(SH, B).exec(B, "/bin/ln").symlink(B, "a", "/w/b")
    d = opened(
        t.symlink(B, "/nowhere", "/w/c").symlink(B, "d", "/w/d").use(B, "/w/x", flags=NEW).exit(B)
    )
    assert names(d, "/w/a") == {"b"}
    assert names(d, "/w/c") == names(d, "/w/d") == set()
    path = d.image.find_path(b"/w/c")
    assert Names(d.image).target(path) == path
