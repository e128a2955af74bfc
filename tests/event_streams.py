# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies: traces that a kernel could have written, and damaged ones.

`traces()` acts out processes, threads, pipes and files with `TraceBuilder`; `inputs()` writes them
as one or several files with the lines of different upids interleaved; `damaged()` breaks the bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from builders import CLONE_FILES, O_CLOEXEC, Piece, TraceBuilder
from hypothesis import strategies as st

FDS = st.sampled_from(
    [0, 1, 3, 4, 5, 62, 63, 64, 300]
)  #: 62 and 63: bash, and not open in this process
FLAGS = st.sampled_from(
    [0, 1, 2, 3, 0o1101, 0o302, 0o1000, 0o20200002, O_CLOEXEC, O_CLOEXEC | 1, 2**32 - 1]
)
CLONE_FLAGS = st.sampled_from([None, 0, 17, CLONE_FILES, 0x10F00, 2**64 - 1])
STATUS = st.sampled_from([0, 1, 139, 2**15 - 1, 2**15, 2**32 - 1])
CPUS = st.sampled_from([0, 0, 0, 1, 7, 2**32 - 1])
IN_ORDER = st.sampled_from([1000, 1000, 1000, 0, 0, 10**9])
OUT_OF_ORDER = st.sampled_from([1000, 1000, 0, -1500, -5000, 10**9, -(10**9)])

#: paths that exist with every kind of mode, with escapes, without UTF-8, names of pipes
NAMES = [
    b"/etc/passwd", b"/", b"/dev/null", b"/usr/bin/passwd", b"/tmp", b"/bin", b"/var/local",
    b"/w/a.c", b"/w/b.h", b"/w/./b.h", b"relative", b"", b"/nul\0byte",
    "/w/zażółć.c".encode(), b"/w/\xff\xfe.c", b"/w/\xed\xa0\x80", b"/w/\xc0\xaf", b"/w/\xe2\x82",
    b"/w/\xf0\x9f\x98\x80", b"/w/\xf4\x90\x80\x80", b"/w/\x7f\x80", b"/w/q\"b\\t\tc\x01\x1f\r",
    b"/w/new\nline", b"\n", b"\n\n", b"/w/end\n", b"1,2,3,4!Close|fd=3", b"/w/a|b=c,d!e",
    b"/dev/fd/62", b"/dev/fd/63", b"/proc/self/fd/62", b"/dev/stdin", b"/dev/stdout",
    b"/dev/stderr", b"pipe:[77]", b"/proc/12/fd/pipe:[77]", b"/proc/12/fd/3", b"/dev/fd/x",
    b"/dev/fd/99999999999",
]  # fmt: skip
LENGTHS = st.sampled_from([898, 899, 900, 901, 1799, 1800, 1801, 2500])
PREFIXES = st.sampled_from([b"", b"0: ", b"  make-77  [001] d..3.  72.748643: ", b"1,2 3,4,5 "])
NOISE = [
    b"", b"garbage", b"#", b"# 1,2,3,4!Exit|status=0", b"CPU:1 [LOST 5 EVENTS]", b"INITCWD=/late",
    b"4194304,0,5,1!", b"4194304,0,5,1!|", b"4194304,0,5,1!Close", b"4194304,0,5,1!Close|",
    b"4194304,0,5,1!Close|fd=", b"4194304,0,5,1!Close|fd=-", b"4194304,0,5,1!Close|fd=3,",
    b"4194304,0,5,1!Close|fd=2147483648", b"4194304,0,5,1!Close|fd=0003", b"4194304,0,5,1!Cont|x",
    b"4194304,0,5,1!Close|fd=99999999999999999999999", b"4194304,0,5,1!RenameFailed",
    b"4194304,0,5,1!Exit|status=-1", b"4194304,0,5,1!Exit|status=4294967296",
    b"4194304,0,5,1!SchedFork|pid=-7", b"4194304,0,5,1!SchedFork|pid=0",
    b"4194304,0,5,1!SchedFork|pid=4194304", b"4194304,0,5,1!UPID|5", b"4194304,0,5,1!Env[0]A=b",
    b"4194304,0,5,1000000000!Exit|status=1", b"4194304,4294967296,5,1!Exit|status=1",
    b"9223372036854775808,0,5,1!Exit|status=1", b"9223372036854775807,0,5,1!Exit|status=1",
    b"4194304,0,9223372036,854775807!Close|fd=1", b"4194304,0,9223372036,854775808!Close|fd=1",
    b"4194304,0,99999999999999999999999,1!Close|fd=1", b"4194304,0,0,0!Close|fd=1",
    b"-4194304,0,5,1!Close|fd=1", b"4194304,0,5,1!Open|fnamesize=1,flags=0,mode=0,fd=1",
    b"4194304,0,5,1!A[0]x", b"4194304,0,5,1!FN|x", b"4194304,0,5,1!FN[0]x", b"4194304,0,5,1!FN_end",
    b"4194304,0,5,1!End_of_args|", b"4194304,0,5,1!Cont_end|", b"4194304,0,5,1!Cont_end",
    b"0,0,5,1!Exit|status=0", b"0,0,5,1!UPID|-1", b"0,0,5,1!UPID|", b"0,0,5,1!Env[1]x",
    b"0,0,5,1!Cont|x", b"0,0,5,1!UPID|9223372036854775807",
]  # fmt: skip


def names() -> st.SearchStrategy[bytes]:
    """Return strings of every kind: mostly from one pool, so that they meet again."""
    pool = st.sampled_from(NAMES)
    long = st.builds(long_name, LENGTHS, st.lists(st.integers(0, 2500), max_size=3))
    return st.one_of(pool, pool, pool, st.binary(max_size=12), long)


def long_name(length: int, newlines: list[int]) -> bytes:
    """Return a path of this length with newlines at these places."""
    text = bytearray(b"/long/" + b"y" * (length - 6))
    for at in newlines:
        text[at % length] = ord("\n")
    return bytes(text)


@dataclass(slots=True)
class Actors:
    """What the story is about so far."""

    draw: st.DrawFn
    trace: TraceBuilder
    steps: st.SearchStrategy[int]
    upids: list[int] = field(default_factory=lambda: [4194304])
    dead: set[int] = field(default_factory=set)

    def anyone(self) -> int:
        """Return a process that lives, or the first one."""
        alive = [upid for upid in self.upids if upid not in self.dead]
        return self.draw(st.sampled_from(alive or self.upids[:1]))

    def name(self) -> bytes:
        return self.draw(names())

    def fd(self) -> int:
        return self.draw(FDS)

    def newcomer(self) -> int:
        """Return a upid that was not seen; smaller ones than the parent's come too."""
        number = self.draw(st.sampled_from([len(self.upids) + 1, 2**41 - len(self.upids)]))
        self.upids.append(number << 22 | 77)
        return self.upids[-1]


def act_fork(a: Actors) -> None:
    a.trace.fork(a.anyone(), a.newcomer(), a.draw(CLONE_FLAGS))


def act_thread(a: Actors) -> None:
    a.trace.thread(a.anyone(), a.newcomer())


def act_fork_again(a: Actors) -> None:
    """Claim a child that exists: a damaged trace, or a cycle."""
    a.trace.fork(a.anyone(), a.draw(st.sampled_from(a.upids)))


def act_clone_failed(a: Actors) -> None:
    a.trace.clone_failed(a.anyone())


def act_exec(a: Actors) -> None:
    upid = a.anyone()
    for fd in a.draw(st.sets(FDS, max_size=2)):  # close-on-exec, with the stamp of the New_proc
        a.trace.close(upid, fd).at(a.trace.clock_ns - a.trace.step_ns)
    if a.draw(st.booleans()):
        a.trace.comm(upid, a.name()).at(a.trace.clock_ns - a.trace.step_ns)
    argv = a.draw(st.lists(names(), max_size=3))
    interpreter = a.draw(st.none() | names())
    a.trace.exec(upid, a.name(), [*argv], cwd=a.name(), interpreter=interpreter)


def act_exit(a: Actors) -> None:
    upid = a.anyone()
    a.trace.exit(upid, a.draw(STATUS))
    a.dead.add(upid)


def act_open(a: Actors) -> None:
    original = a.draw(st.none() | names())
    a.trace.open(a.anyone(), a.name(), original=original, flags=a.draw(FLAGS), fd=a.fd())


def act_open_cut(a: Actors) -> None:
    """Open with strings in parts of odd sizes, which the format allows."""
    upid, path, original = a.anyone(), a.name(), a.name()
    cut = a.draw(st.integers(1, 40))
    own = b"Open|fnamesize=%d,forigsize=%d,flags=0,mode=0,fd=%d" % (
        len(path), len(original), a.fd(),
    )  # fmt: skip
    a.trace.lines(upid, own, *cut_string(b"FN", path, cut), *cut_string(b"FO", original, cut))


def cut_string(tag: bytes, text: bytes, size: int) -> list[bytes]:
    """Return the lines of a string in parts of `size` bytes, each Cont_end without its bar."""
    out = []
    for number, at in enumerate(range(0, max(len(text), 1), size)):
        first, *rest = text[at : at + size].split(b"\n")
        out.append(b"%s[%d]%s" % (tag, number, first))
        out += [b"Cont|" + line for line in rest] + [b"Cont_end"] * bool(rest)
    return [*out, tag + b"_end"]


def act_reopen_pipe(a: Actors) -> None:
    """Open a descriptor by its name."""
    original = a.draw(st.sampled_from([b"/dev/fd/63", b"/proc/self/fd/62", b"/dev/stdout"]))
    a.trace.open(a.anyone(), b"pipe:[5]", original=original, flags=a.draw(FLAGS), fd=a.fd())


def act_close(a: Actors) -> None:
    a.trace.close(a.anyone(), a.fd())


def act_use(a: Actors) -> None:
    a.trace.use(a.anyone(), a.name(), flags=a.draw(FLAGS), fd=a.fd())


def act_pipe(a: Actors) -> None:
    ends = a.draw(st.lists(FDS, min_size=2, max_size=2, unique=True))
    flags = a.draw(st.sampled_from([0, 0, O_CLOEXEC]))
    a.trace.pipe(a.anyone(), ends[0], ends[1], flags)


def act_pipeline(a: Actors) -> None:
    """Do what a shell does for `left | right`."""
    shell, left, right = a.anyone(), a.newcomer(), a.newcomer()
    a.trace.pipe(shell, 3, 4).fork(shell, left).close(shell, 4)
    a.trace.dup(left, 4, 1).close(left, 4).close(left, 3)
    a.trace.fork(shell, right).close(shell, 3).dup(right, 3, 0).close(right, 3)
    for upid in a.draw(st.sets(st.sampled_from([left, right]))):
        a.trace.exec(upid, "/bin/true")


def act_dup(a: Actors) -> None:
    a.trace.dup(a.anyone(), a.fd(), a.fd(), a.draw(st.sampled_from([0, O_CLOEXEC])))


def act_rename(a: Actors) -> None:
    a.trace.rename(a.anyone(), a.name(), a.name(), a.draw(st.sampled_from([None, 0, 2, 5])))


def act_link(a: Actors) -> None:
    a.trace.link(a.anyone(), a.name(), a.name(), a.draw(st.sampled_from([None, 0, 5])))


def act_symlink(a: Actors) -> None:
    a.trace.symlink(a.anyone(), a.name(), a.name(), a.draw(st.none() | names()))


def act_failures(a: Actors) -> None:
    upid, source = a.anyone(), a.draw(st.none() | names())
    fail = a.draw(st.sampled_from([a.trace.rename_failed, a.trace.link_failed]))
    fail(upid, source)


def act_mount(a: Actors) -> None:
    source, fstype = a.draw(st.none() | names()), a.draw(st.none() | names())
    flags = a.draw(st.sampled_from([0, 32, 2**64 - 1]))
    ok = a.draw(st.booleans())
    a.trace.mount(a.anyone(), a.name(), source=source, fstype=fstype, flags=flags, ok=ok)


def act_umount(a: Actors) -> None:
    ok = a.draw(st.booleans())
    target = a.name() if ok else a.draw(st.none() | names())
    a.trace.umount(a.anyone(), target, a.draw(st.sampled_from([0, 2])), ok=ok)


def act_comm(a: Actors) -> None:
    a.trace.comm(a.anyone(), a.name())


def act_env(a: Actors) -> None:
    upids = a.draw(st.lists(st.sampled_from(a.upids), min_size=1, max_size=3))
    a.trace.env(a.name(), *upids)


ACTIONS: list[Callable[[Actors], None]] = [
    act_fork, act_fork, act_thread, act_clone_failed, act_exec, act_exec, act_exit, act_open,
    act_open, act_open_cut, act_reopen_pipe, act_close, act_close, act_use, act_pipe, act_pipeline,
    act_dup, act_rename, act_link, act_symlink, act_failures, act_mount, act_umount, act_comm,
    act_env,
]  # fmt: skip


@st.composite
def traces(draw: st.DrawFn, steps: st.SearchStrategy[int] = IN_ORDER) -> TraceBuilder:
    """Act out a trace; `steps` are the times from one event to the next."""
    a = Actors(draw, TraceBuilder(cwd=b"/w"), steps)
    if steps is OUT_OF_ORDER and draw(st.booleans()):
        a.upids += [12 << 22, 13 << 22]  # roots, so that claims of strangers happen
    for action in draw(st.lists(st.sampled_from(ACTIONS), max_size=25)):
        action(a)
        if steps is OUT_OF_ORDER and draw(st.integers(0, 9)) == 0:
            act_fork_again(a)
        a.trace.at(max(0, a.trace.clock_ns - a.trace.step_ns + draw(steps)))
        a.trace.on(draw(CPUS))
    return a.trace


@st.composite
def inputs(draw: st.DrawFn, steps: st.SearchStrategy[int] = IN_ORDER) -> list[bytes]:
    """Write a trace as one file, maybe interleaved at line level, or as parts of several CPUs."""
    trace = draw(traces(steps))
    n_files = draw(st.sampled_from([1, 1, 1, 2, 3]))
    chance = random.Random(draw(st.integers(0, 2**32)))
    files: list[list[Piece]] = [[] for _ in range(n_files)]
    for piece in trace.pieces:  # a task is on one CPU at a time
        files[(piece.upid + piece.time_ns // 1000) % n_files].append(piece)
    prefix, is_interleaved = draw(PREFIXES), n_files == 1 and draw(st.booleans())
    out = []
    for pieces in files:
        lines = interleaved(pieces, chance) if is_interleaved else in_order(pieces)
        first = [b"INITCWD=/w\n"] if draw(st.booleans()) else []
        out.append(b"".join(first + [prefix + line for line in lines]))
    return out


def in_order(pieces: list[Piece]) -> list[bytes]:
    """Return the lines as they happened."""
    return [line for piece in pieces for line in whole_lines(piece.lines)]


def interleaved(pieces: list[Piece], chance: random.Random) -> list[bytes]:
    """Mix the lines of different upids; those of one upid keep their order."""
    queues: dict[int, list[bytes]] = {}
    for piece in pieces:
        queues.setdefault(piece.upid, []).extend(whole_lines(piece.lines))
    out = []
    while queues:
        upid = chance.choice(sorted(queues))
        for _ in range(chance.choice([1, 1, 2, 10])):
            if queues[upid]:
                out.append(queues[upid].pop(0))
        if not queues[upid]:
            del queues[upid]
    return out


def whole_lines(lines: bytes) -> list[bytes]:
    """Return lines with their newlines; only a newline ends a line."""
    return [line + b"\n" for line in lines.split(b"\n")[:-1]]


@st.composite
def damaged(draw: st.DrawFn) -> list[bytes]:
    """Break a trace: cut, drop, double, swap and garble lines, insert noise."""
    files = draw(inputs(draw(st.sampled_from([IN_ORDER, OUT_OF_ORDER]))))
    chance = random.Random(draw(st.integers(0, 2**32)))
    damages = draw(st.lists(st.sampled_from(DAMAGES), min_size=1, max_size=4))
    for damage in damages:
        which = chance.randrange(len(files))
        files[which] = damage(files[which], chance)
    return files


def cut_anywhere(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def drop_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    at, count = chance.randrange(len(lines) + 1), chance.choice([1, 1, 2, 5])
    return b"".join(lines[:at] + lines[at + count :])


def double_line(content: bytes, chance: random.Random) -> bytes:
    lines = content.split(b"\n")
    at = chance.randrange(len(lines))
    lines.insert(chance.choice([at, chance.randrange(len(lines) + 1)]), lines[at])
    return b"\n".join(lines)


def swap_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.split(b"\n")
    at = chance.randrange(len(lines))
    other = min(at + 1, len(lines) - 1)
    lines[at], lines[other] = lines[other], lines[at]
    return b"\n".join(lines)


def garble(content: bytes, chance: random.Random) -> bytes:
    """Replace, insert or remove a byte: any, or one that means something."""
    at = chance.randrange(len(content) + 1)
    byte = bytes([chance.choice([*b"|,=![]_0129-\n\0\r", chance.randrange(256)])])
    return content[:at] + chance.choice([byte, byte, b""]) + content[at + chance.choice([0, 1]) :]


def insert_noise(content: bytes, chance: random.Random) -> bytes:
    lines = content.split(b"\n")
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(NOISE))
    return b"\n".join(lines)


DAMAGES = [cut_anywhere, drop_lines, double_line, swap_lines, garble, garble, insert_noise]
