# SPDX-License-Identifier: Apache-2.0
"""Crafted logs against `etrace import`: `python tests/fuzz/fuzz_imports.py --seconds 60`.

Sound inputs are logs that strace writes here, of one file and of -ff, and file access traces of
every version and layout. Each is changed: lines moved, doubled and cut off, block counts that lie,
bits flipped, numbers of any length, brackets of any depth, and what is compressed is damaged or
unpacks to far too much. `etrace import` either makes a trace that `cas parse` reads, and of a file
access trace the same bytes again; or it names the file, writes nothing and leaves nothing.
Anything else, also an answer that takes too long or too much memory, ends the run with status 1
and keeps the input.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import databases
from fuzz.crafted import Attempt, fuzz, limited
from imports.access_traces import SEED

from etrace.cli.main import cas, etrace

#: what an import may take, whatever it reads, beyond what this program has
MEMORY_BYTES = 1 << 30
#: a bomb has so many members of so many bytes
BOMB_MEMBERS, MEMBER_BYTES = 8, 1 << 25
COMMAND = """
mkdir -p d/e; echo hi | cat > d/a; ln -s a d/l; ln d/a d/b; mv d/b 'd/c,x=1"'; cd d; cat l ./a
/bin/sh -c 'exec /bin/cat nothing' 2>/dev/null & wait; kill -TERM $$
"""
STRACE = (["-f", "-ttt", "-y"], ["-f", "-tt", "-v"], ["-f", "-r", "-yy", "-xx"], ["-f", "-T", "-i"])
NUMBERS = (b"0", b"-1", b"4294967295", b"4294967296", b"18446744073709551616", b"9" * 5000,
           b"0x" + b"f" * 5000, b"1e9", b"\xd9\xa1", b"")  # fmt: skip
PIECES = (b"\0", b"\xff", b"\r", b"\n", b"\x1b]0;x\x07", b"\\", b'"', b",", b"=", b"<", b")", b"|",
          b" <unfinished ...>", b") = 0", b"-1 ENOENT (No such file or directory)", b"?",
          b"strace: Process 7 attached", b"/" * 5000, b"../" * 500)  # fmt: skip
OPENERS = (b"[", b"{", b"(", b"<", b'"', b"{a=[", b"<A:[", b"\\")
_NUMBER = re.compile(rb"\d+")
#: a refusal names the file and the line, or the file alone when there is no line to name
REFUSED = re.compile(
    r"etrace: error: (?P<file>[^\n]*?)(?::\d+)?: [^\n]+\n"
    r"|etrace: error: the log has no call [^\n]+\n|etrace: error: cannot read [^\n]+\n"
    r"|etrace: error: the trace has no process [^\n]+\n"
)


@dataclass(frozen=True, slots=True)
class Sound:
    """An input that is accepted: its format, its files by name, and what else its import takes."""

    format: str
    files: dict[str, bytes]
    options: tuple[str, ...] = ()


# ---- sound inputs ----


def strace_logs(folder: Path) -> Iterator[Sound]:
    """Yield logs of strace with several options."""
    for options in STRACE:
        log = folder / "log"
        _record(folder, [*options, "-o", str(log)])
        yield Sound("strace", {"log": log.read_bytes()}, ("--cwd", "/w"))
        log.unlink()
    _record(folder, ["-ff", "-ttt", "-y", "-o", str(folder / "log")])
    files = {path.name: path.read_bytes() for path in folder.glob("log.*")}
    yield Sound("strace", files, ("--cwd", "/w"))


def _record(folder: Path, options: Sequence[str]) -> None:
    build = folder / "build"
    build.mkdir()
    command = ["strace", *options, "sh", "-c", COMMAND]
    subprocess.run(command, cwd=build, capture_output=True, check=False)
    shutil.rmtree(build)


def access_traces(folder: Path) -> Iterator[Sound]:
    """Yield file access traces: the example of BuildXL, and exports of every form."""
    yield Sound("file-access-trace", {"log": SEED})
    database = databases.write_database(folder / "database", with_changes=True)
    for form in ("1", "1 --path-blocks manifest", "2", "3"):
        out = folder / "exported"
        words = f"export file-access-trace --dbdir {database} -o {out} --format-version {form}"
        with contextlib.redirect_stderr(io.StringIO()):
            assert cas(words.split()) == 0
        yield Sound("file-access-trace", {"log": out.read_bytes()})


# ---- what is changed ----


def _lines(text: bytes, rng: Random) -> tuple[list[bytes], int]:
    lines = text.split(b"\n")
    return lines, rng.randrange(len(lines))


def flip_bits(text: bytes, rng: Random) -> bytes:
    """Flip some bits."""
    out = bytearray(text)
    for _ in range(rng.choice([1, 3, 20]) if out else 0):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def cut_off(text: bytes, rng: Random) -> bytes:
    """Drop the end, or the beginning."""
    at = rng.randrange(len(text) + 1)
    return rng.choice([text[:at], text[at:]])


def move_lines(text: bytes, rng: Random) -> bytes:
    """Drop, double or move some lines."""
    lines, at = _lines(text, rng)
    n = rng.choice([1, 1, 2, 10])
    taken = lines[at : at + n]
    if rng.random() < 0.7:
        del lines[at : at + n]
    for _ in range(rng.choice([0, 1, 1, 50])):
        to = rng.randrange(len(lines) + 1)
        lines[to:to] = taken
    return b"\n".join(lines)


def change_number(text: bytes, rng: Random) -> bytes:
    """Put another number in the place of one: of a count, a pid, a descriptor, a time."""
    lines, at = _lines(text, rng)
    found = list(_NUMBER.finditer(lines[at]))
    if not found:
        return text
    one = rng.choice(found)
    near = b"%d" % max(int(one[0][:18]) + rng.choice([-1, 1, 2, 1 << 22, 1 << 31]), 0)
    number = rng.choice([near, rng.choice(NUMBERS)])
    lines[at] = lines[at][: one.start()] + number + lines[at][one.end() :]
    return b"\n".join(lines)


def put_piece(text: bytes, rng: Random) -> bytes:
    """Put something that means something anywhere."""
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(PIECES) + text[at + rng.choice([0, 0, 1, 5]) :]


def nest(text: bytes, rng: Random) -> bytes:
    """Open brackets, angles and quotes that nothing closes, very many of them."""
    lines, at = _lines(text, rng)
    to = rng.randrange(len(lines[at]) + 1)
    lines[at] = lines[at][:to] + rng.choice(OPENERS) * rng.choice([1, 50, 20_000]) + lines[at][to:]
    return b"\n".join(lines)


def mix_lines(text: bytes, rng: Random) -> bytes:
    """Put the end of a line after the beginning of another one."""
    lines, at = _lines(text, rng)
    other = rng.choice(lines)
    cut = rng.randrange(len(lines[at]) + 1)
    lines[at] = lines[at][:cut] + other[rng.randrange(len(other) + 1) :]
    return b"\n".join(lines)


CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    flip_bits, cut_off, move_lines, change_number, change_number, put_piece, nest, mix_lines,
)  # fmt: skip


def compressed(text: bytes, suffix: str) -> bytes:
    """Compress bytes; the member or frame may be before others."""
    if suffix == ".gz":
        return gzip.compress(text, 1)
    return subprocess.run(["zstd", "-cq"], input=text, capture_output=True, check=True).stdout


def packed(name: str, text: bytes, rng: Random) -> tuple[str, bytes]:
    """Compress a file, or pretend to; what is compressed may be damaged."""
    suffix = rng.choice([".gz", ".zst"])
    data = compressed(text, suffix)
    if rng.random() < 0.05:
        data += compressed(bytes(MEMBER_BYTES), suffix) * BOMB_MEMBERS
    damage = rng.choice([None, None, flip_bits, cut_off, put_piece])
    return name + suffix, damage(data, rng) if damage else data


def craft(sound: Sound, rng: Random) -> dict[str, bytes]:
    """Return the files of an input with some changes."""
    files = dict(sound.files)
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        name = rng.choice(sorted(files))
        files[name] = rng.choice(CHANGES)(files[name], rng)
    if sound.format == "file-access-trace" and rng.random() < 0.3:
        files = dict((packed("log", files["log"], rng),))
    return files


# ---- what becomes of it ----


def ask(command: Callable[[list[str]], int], words: list[str]) -> tuple[int, str]:
    """Run a command; return its status and what it printed."""
    printed = io.StringIO()
    streams = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed)
    with limited(" ".join(words)), streams[0], streams[1]:
        try:
            status = command(words)
        except SystemExit as end:
            status = int(str(end.code))
    return status, printed.getvalue()


def check(folder: Path, sound: Sound, files: dict[str, bytes]) -> bool:
    """Import an input; whether it was accepted. AssertionError."""
    inputs, out = folder / "in", folder / "out"
    for place in (inputs, out):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    for name, text in files.items():
        (inputs / name).write_bytes(text)
    names = [str(inputs / name) for name in sorted(files)]
    status, printed = ask(etrace, ["import", sound.format, *names, *sound.options, "-o", str(out)])
    made = sorted(path.name for path in out.iterdir())
    if status:
        assert status == 2, (status, printed)
        assert REFUSED.match(printed), printed
        assert not made, made
        return False
    assert made in ([".nfsdb"], [".nfsdb", ".nfsdb.accesses"]), made
    check_trace(out, printed)
    if sound.format == "file-access-trace":
        check_export(out)
    return True


def check_trace(out: Path, printed: str) -> None:
    """Make the database; what was imported has no problems."""
    status, answer = ask(cas, ["parse", "--dbdir", str(out)])
    if status:  # a log whose calls all failed
        assert "0 commands and 0 opens" in printed, (printed, answer)
        return
    assert "problem" not in answer, answer


def check_export(out: Path) -> None:
    """Export what was imported: the same bytes, in the form that it had."""
    kept = (out / ".nfsdb.accesses").read_bytes().split(b"\n", 1)[1]
    version = kept[:1].decode()
    words = ["export", "file-access-trace", "--dbdir", str(out), "--format-version", version]
    status, answer = ask(cas, [*words, "-o", str(out / "again")])
    assert status == 0, answer
    assert (out / "again").read_bytes() == kept


def begin(folder: Path) -> Attempt:
    """Return what crafts an input and imports it."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, most))
    sound = [*strace_logs(folder), *access_traces(folder)]

    def attempt(rng: Random) -> bool:
        one = rng.choice(sound)
        return check(folder, one, craft(one, rng))

    return attempt


def main() -> int:
    """Command line."""
    return fuzz(__doc__, "imports", begin, "in")


if __name__ == "__main__":
    sys.exit(main())
