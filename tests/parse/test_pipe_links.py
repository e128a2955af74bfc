# SPDX-License-Identifier: Apache-2.0
"""Pipe links as docs/nfsdb-json.md has them, by etrace_parser and by the reference parser."""

from __future__ import annotations

import pytest
from builders import CLONE_FILES, O_CLOEXEC, O_WRONLY, TraceBuilder
from parse.parsing import LEFT, OTHER, RIGHT, SHELL, T0, Parse, pipeline, readers


def test_a_pipeline_links_its_two_commands_and_not_the_shell(run: Parse) -> None:
    assert readers(run(pipeline())) == {(LEFT, 1): [(RIGHT, 1)]}


def test_pipeline_ends_that_are_never_executed_are_linked_too(run: Parse) -> None:
    t = TraceBuilder().exec(SHELL, "/bin/sh").pipe(SHELL, 3, 4).fork(SHELL, LEFT).close(SHELL, 4)
    t.fork(SHELL, RIGHT).close(SHELL, 3).close(LEFT, 3).dup(LEFT, 4, 1).dup(RIGHT, 3, 0)
    assert readers(run(t)) == {(LEFT, 0): [(RIGHT, 0)]}


def test_command_substitution_links_the_command_to_the_shell(run: Parse) -> None:
    t = TraceBuilder().exec(SHELL, "/bin/sh").pipe(SHELL, 3, 4).fork(SHELL, LEFT)
    t.close(SHELL, 4).close(LEFT, 3).dup(LEFT, 4, 1).close(LEFT, 4).exec(LEFT, "/bin/date")
    assert readers(run(t)) == {(LEFT, 1): [(SHELL, 1)]}


def test_a_shell_that_keeps_the_write_end_for_a_later_command_does_not_write(run: Parse) -> None:
    t = TraceBuilder().exec(SHELL, "/bin/sh").pipe(SHELL, 3, 4).fork(SHELL, RIGHT)
    t.close(SHELL, 3).close(RIGHT, 4).dup(RIGHT, 3, 0).close(RIGHT, 3).exec(RIGHT, "/bin/cat")
    t.fork(SHELL, LEFT).close(SHELL, 4).dup(LEFT, 4, 1).close(LEFT, 4).exec(LEFT, "/bin/date")
    assert readers(run(t)) == {(LEFT, 1): [(RIGHT, 1)]}


def test_a_reader_that_starts_more_children_meanwhile_stays_a_reader(run: Parse) -> None:
    """Ninja with two jobs: the second child is started while the first one's output is read."""
    t = TraceBuilder().exec(SHELL, "/usr/bin/ninja").pipe(SHELL, 3, 4).fork(SHELL, LEFT)
    t.close(SHELL, 4).dup(LEFT, 4, 1).close(LEFT, 3).close(LEFT, 4).exec(LEFT, "/bin/sh")
    t.pipe(SHELL, 4, 5).fork(SHELL, RIGHT).close(SHELL, 5).dup(RIGHT, 5, 1)
    for fd in (3, 4, 5):
        t.at(T0 + 50_000).close(RIGHT, fd)
    t.at(T0 + 50_000).exec(RIGHT, "/bin/sh")
    assert readers(run(t)) == {(LEFT, 1): [(SHELL, 1)], (RIGHT, 1): [(SHELL, 1)]}


def test_a_jobserver_links_nothing(run: Parse) -> None:
    t = TraceBuilder().exec(SHELL, "/usr/bin/make").pipe(SHELL, 3, 4)
    t.fork(SHELL, LEFT).exec(LEFT, "/bin/sh").fork(LEFT, RIGHT).exec(RIGHT, "/usr/bin/make")
    t.fork(SHELL, OTHER).exec(OTHER, "/usr/bin/cc").open(OTHER, "/w/a", fd=3).exit(OTHER)
    t.exit(RIGHT).exit(LEFT).close(SHELL, 4).close(SHELL, 3).exit(SHELL)
    assert readers(run(t)) == {}


def test_an_end_lost_by_close_on_exec_is_not_held_by_the_program(run: Parse) -> None:
    t = TraceBuilder().exec(SHELL, "/bin/a").pipe(SHELL, 3, 4, O_CLOEXEC).fork(SHELL, LEFT)
    t.close(SHELL, 4).close(LEFT, 3).exec(LEFT, "/bin/b")
    assert readers(run(t)) == {}


def test_close_lines_of_an_exec_are_one_step_with_it(run: Parse) -> None:
    """A capture prints the closes of close-on-exec right before New_proc, with its stamp."""
    t = TraceBuilder().exec(SHELL, "/bin/a").pipe(SHELL, 3, 4, O_CLOEXEC).fork(SHELL, LEFT)
    t.close(SHELL, 4).at(T0 + 50_000).close(LEFT, 3).at(T0 + 50_000).close(LEFT, 4)
    t.at(T0 + 50_000).comm(LEFT, "b").at(T0 + 50_000).exec(LEFT, "/bin/b")
    assert readers(run(t)) == {}


def test_reopening_a_pipe_by_its_descriptor_is_a_dup(run: Parse) -> None:
    t = TraceBuilder().exec(SHELL, "/bin/bash").pipe(SHELL, 3, 4).dup(SHELL, 3, 63)
    t.close(SHELL, 3).fork(SHELL, LEFT).close(LEFT, 63).dup(LEFT, 4, 1).close(LEFT, 4)
    t.exec(LEFT, "/bin/left").fork(SHELL, RIGHT).close(SHELL, 63).close(SHELL, 4)
    t.close(RIGHT, 4).open(RIGHT, "pipe:[7]", original="/dev/fd/63", fd=5, flags=O_CLOEXEC)
    t.exec(RIGHT, "/bin/right")
    assert (RIGHT, 1) in readers(run(t))[LEFT, 1]


def test_a_file_opened_over_a_pipes_end_replaces_it(run: Parse) -> None:
    t = TraceBuilder().exec(SHELL, "/bin/sh").pipe(SHELL, 3, 4).fork(SHELL, LEFT)
    t.open(LEFT, "/w/out", flags=O_WRONLY, fd=4).open(LEFT, "/w/in", fd=3).exec(LEFT, "/bin/left")
    t.close(SHELL, 4)
    assert readers(run(t)) == {}


def test_a_pipe_over_both_ends_of_another_is_one_step(run: Parse) -> None:
    t = TraceBuilder().pipe(RIGHT, 0, 1).fork(RIGHT, SHELL).fork(RIGHT, LEFT)
    t.pipe(SHELL, 0, 1).close(LEFT, 1)
    assert readers(run(t)) == {(RIGHT, 0): [(LEFT, 0)]}  # not SHELL


@pytest.mark.parametrize("program", ["/bin/bash", "/opt/bin/remake", "/bin/gmake", "/bin/make"])
def test_who_made_a_pipe_counts_for_an_end_that_nobody_held_alone(run: Parse, program: str) -> None:
    t = TraceBuilder().exec(SHELL, program).pipe(SHELL, 3, 4)
    t.close(SHELL, 4).fork(SHELL, LEFT).dup(LEFT, 3, 0).close(LEFT, 3).exec(LEFT, "/bin/cat")
    wanted = {} if program.endswith("make") else {(SHELL, 1): [(LEFT, 1)]}
    assert readers(run(t)) == wanted


def test_threads_share_their_pipes(run: Parse) -> None:
    t = TraceBuilder().pipe(SHELL, 3, 4).fork(SHELL, LEFT, CLONE_FILES | 17).fork(SHELL, RIGHT)
    t.close(LEFT, 4).close(RIGHT, 3).exec(RIGHT, "/bin/right")
    assert readers(run(t)) == {(RIGHT, 1): [(SHELL, 0), (LEFT, 0)]}
