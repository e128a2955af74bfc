# SPDX-License-Identifier: Apache-2.0
"""Chains from a file to what it was made of, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import O_CREAT, O_WRONLY, TraceBuilder
from databases import database_of
from libetrace.depend.configuration import Rules
from libetrace.depend.dependencies import Dependencies
from query.traced_builds import A, B, C, D, E, Opened, command, shell

from etrace.errors import EtraceError
from etrace.query.select.file_names import nearest_paths
from etrace.query.why import How, Link, Why, why

SH, CC, AS, LD, LATE = (number << 22 | 9 for number in range(1, 6))
NEW = O_WRONLY | O_CREAT


@pytest.fixture
def dependencies(tmp_path: Path) -> Dependencies:
    """cc -pipe a.c | as -o a.o; ld -o prog a.o; then a.o is written again of late.c."""
    t = TraceBuilder("/w").exec(SH, "/bin/sh").pipe(SH, 3, 4)
    t.fork(SH, CC).close(SH, 4).fork(SH, AS).close(SH, 3)
    t.close(CC, 3).dup(CC, 4, 1).close(CC, 4).exec(CC, "/bin/cc", ["cc", "a.c"])
    t.dup(AS, 3, 0).close(AS, 3).exec(AS, "/bin/as", ["as"]).use(CC, "/w/a.c").exit(CC)
    t.use(AS, "/w/a.o", flags=NEW).exit(AS)
    t.fork(SH, LD).exec(LD, "/bin/ld", ["ld"]).use(LD, "/w/a.o").use(LD, "/w/prog", flags=NEW)
    t.exit(LD).fork(SH, LATE).exec(LATE, "/bin/cc", ["cc", "late.c"]).use(LATE, "/w/late.c")
    t.use(LATE, "/w/a.o", flags=NEW).exit(LATE).use(SH, "/w/script").exit(SH)
    return Dependencies(database_of(tmp_path, t.trace()))


def execution(dependencies: Dependencies, upid: int) -> int:
    return dependencies.image["executions"]["upid"].tolist().index(upid) + 1


def path(dependencies: Dependencies, name: str) -> int:
    return dependencies.image.find_path(f"/w/{name}".encode())


def ask(dependencies: Dependencies, target: str, file: str, rules: Rules = Rules()) -> Why:  # noqa: B008
    return why(dependencies, target.encode(), file.encode(), rules)


def test_the_shortest_chain_names_every_command_and_file(dependencies: Dependencies) -> None:
    ld, as_, cc = (execution(dependencies, upid) for upid in (LD, AS, CC))
    found = ask(dependencies, "prog", "a.c")
    assert found.depends
    assert found.links == (
        Link(How.WROTE, ld, ld, path(dependencies, "a.o")),
        Link(How.WROTE, as_, as_, None),
        Link(How.WROTE_TO_PIPE, cc, cc, path(dependencies, "a.c")),
    )


def test_a_chain_that_time_cuts_is_reported(dependencies: Dependencies) -> None:
    found = ask(dependencies, "prog", "late.c")
    assert not found.depends
    (reason,) = found.reasons
    assert "written after it was read" in reason
    assert found.made == (b"/w/a.o",)
    assert ask(dependencies, "prog", "late.c", Rules(is_ordered=False)).depends


def test_a_chain_that_a_pattern_cuts_is_reported(dependencies: Dependencies) -> None:
    found = ask(dependencies, "prog", "a.c", Rules(exclude_commands=(b"cc *",)))
    assert found.reasons == (
        "exclusions (patterns, configuration, --direct, pipes) cut every chain",
    )
    assert ask(dependencies, "prog", "a.c", Rules(pipes=False)).reasons == found.reasons


def test_files_that_nothing_wrote_or_read_are_reported(dependencies: Dependencies) -> None:
    assert ask(dependencies, "a.c", "prog").reasons == (
        "no traced command wrote the first file",
        "no traced command read the second file",
    )
    assert ask(dependencies, "prog", "script").reasons == ()


def test_names_must_be_two_single_files(dependencies: Dependencies) -> None:
    with pytest.raises(EtraceError, match="does not depend on itself"):
        ask(dependencies, "prog", "/w/prog")
    with pytest.raises(EtraceError, match="is 3 files"):
        ask(dependencies, "prog", "/w/*[cy]*")


def test_a_chain_through_compilers_is_preferred_to_shorter_ones(opened: Opened) -> None:
    """A message pipe and a script that awk makes lead from f.h to prog in fewer steps."""
    t = command(shell(), A, "cc1 a.c", "a.c f.h", "a.s")
    command(command(t, B, "as -o a.o", "a.s", "a.o"), C, "awk x", "f.h", "order").pipe(SH, 3, 4)
    t.fork(SH, D).close(D, 3).dup(D, 4, 1).close(D, 4).exec(D, "/bin/sh", ["sh"]).use(D, "/w/f.h")
    t.exit(D).fork(SH, E).close(E, 4).dup(E, 3, 0).close(E, 3).exec(E, "/bin/ld", ["ld"])
    t.close(SH, 3).close(SH, 4).use(E, "/w/order").use(E, "/w/a.o").use(E, "/w/prog", flags=NEW)
    d = opened(t.exit(E).exit(SH))
    assert chain(d, "prog", "f.h") == ["ld", "a.o", "as", "a.s", "cc1", "f.h"]
    assert chain(d, "prog", "f.h", Rules(exclude_commands=(b"cc1 *",))) == [
        "ld",
        "order",
        "awk",
        "f.h",
    ]
    both = Rules(exclude_commands=(b"cc1 *", b"awk *"))
    assert chain(d, "prog", "f.h", both) == ["ld", "sh", "f.h"]


def chain(d: Dependencies, target: str, file: str, rules: Rules = Rules()) -> list[str]:  # noqa: B008
    """Return the programs and files of a chain, from the target on."""
    binary = d.image["executions"]["binary"]
    found = []
    for link in ask(d, target, file, rules).links:
        found.append(d.image.path_string(binary[link.execution]).decode().removeprefix("/bin/"))
        if link.read is not None:
            found.append(d.image.path_string(link.read).decode().removeprefix("/w/"))
    return found


def test_files_are_similar_by_their_names_wherever_they_lie() -> None:
    paths = [b"/w/src/loop.c", b"/w/lib/other.c", b"/w/new/loop.c"]
    assert nearest_paths(paths, b"/elsewhere/lopo.c") == ["/w/src/loop.c", "/w/new/loop.c"]
