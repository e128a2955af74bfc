# SPDX-License-Identifier: Apache-2.0
"""Builds whose times are round numbers of microseconds, said by traces."""

from __future__ import annotations

from builders import O_CREAT, O_TRUNC, O_WRONLY, TraceBuilder

MAKE, FIRST, SECOND, LINK = (n << 22 | n for n in range(1, 5))
WRITE = O_CREAT | O_WRONLY | O_TRUNC
US = 1000


class Story:
    """Events at microseconds, or other units, since the trace began."""

    def __init__(self, unit_ns: int = US) -> None:
        self.unit_ns = unit_ns
        self.builder = TraceBuilder(cwd="/src", step_ns=0)
        self.begin_ns = self.builder.clock_ns

    def at(self, time: int) -> TraceBuilder:
        """Set the clock."""
        return self.builder.at(self.begin_ns + time * self.unit_ns)

    def job(
        self, parent: int, upid: int, span: tuple[int, int], argv: list[str],
        reads: tuple[str, ...] = (), writes: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """Fork, execute, use files at the begin and the end, exit."""
        begin, end = span
        self.at(begin).fork(parent, upid).exec(upid, f"/usr/bin/{argv[0]}", argv)
        for path in reads:
            self.at(begin).use(upid, path)
        for path in writes:
            self.at(begin).open(upid, path, flags=WRITE)
            self.at(end).close(upid)
        self.at(end).exit(upid)


def two_objects_and_a_link() -> bytes:
    """`make -j1`: 100 us of make, two compilations of 300 and 600, a link of 200, 10 of make."""
    story = Story()
    story.at(0).exec(MAKE, "/usr/bin/make", ["make", "prog"])
    story.job(MAKE, FIRST, (100, 400), ["gcc", "-c", "a.c"], ("/src/a.c",), ("/src/a.o",))
    story.job(MAKE, SECOND, (400, 1000), ["gcc", "-c", "b.c"], ("/src/b.c",), ("/src/b.o",))
    objects = ("/src/a.o", "/src/b.o")
    story.job(MAKE, LINK, (1000, 1200), ["ld", "-o", "prog", "a.o", "b.o"], objects, ("/src/prog",))
    story.at(1210).exit(MAKE)
    return story.builder.trace()


def two_directories() -> bytes:
    """`sh -c 'make -C a; make -C b'`, -j1: a link of 300 us in each, which share no file.

    sh works for 10 us between the two.
    """
    story, links = Story(), (LINK, 5 << 22 | 5)
    story.at(0).exec(MAKE, "/bin/sh", ["sh", "-c", "make -C a; make -C b"])
    for make, link, begin in ((FIRST, links[0], 0), (SECOND, links[1], 330)):
        story.at(begin).fork(MAKE, make).exec(make, "/usr/bin/make", ["make"])
        out = f"/src/{begin}"
        story.job(make, link, (begin + 10, begin + 310), ["ld", "-o", out], (), (out,))
        story.at(begin + 320).exit(make)
    story.at(650).exit(MAKE)
    return story.builder.trace()


def a_pipeline() -> bytes:
    """`sh -c 'gen | sort'`: gen runs from 100 to 700, sort from 110 to 800, sh until 820."""
    sh, gen, sort = MAKE, FIRST, SECOND
    story = Story()
    story.at(0).exec(sh, "/bin/sh", ["sh", "-c", "gen | sort"])
    story.at(50).pipe(sh, 3, 4)
    story.at(100).fork(sh, gen)
    story.at(100).dup(gen, 4, 1).close(gen, 3).close(gen, 4).exec(gen, "/usr/bin/gen", ["gen"])
    story.at(110).fork(sh, sort)
    story.at(110).dup(sort, 3, 0).close(sort, 3).close(sort, 4)
    story.at(110).exec(sort, "/usr/bin/sort", ["sort"])
    story.at(110).close(sh, 3).close(sh, 4)
    story.at(700).exit(gen)
    story.at(800).exit(sort)
    story.at(820).exit(sh)
    return story.builder.trace()


def two_jobs_with_usage() -> bytes:
    """make from 0 to 1000 us, below it gcc from 100 to 500, ld from 300 to 700, all with usage."""
    story = Story()
    story.at(0).exec(MAKE, "/usr/bin/make", ["make"])
    for upid, begin, program in ((FIRST, 100, "gcc"), (SECOND, 300, "ld")):
        story.at(begin).fork(MAKE, upid).exec(upid, f"/usr/bin/{program}", [program])
    story.at(500).usage(FIRST, 300 * US, 100 * US, 1_000_000, 4000, 0, 3, 1).exit(FIRST)
    story.at(700).usage(SECOND, 100 * US, 100 * US, 2_000_000, -1, 8000, 2, 0).exit(SECOND)
    story.at(1000).usage(MAKE, 50 * US, 0, 500).exit(MAKE)
    return story.builder.trace()
