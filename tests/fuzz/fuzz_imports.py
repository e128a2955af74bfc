# SPDX-License-Identifier: Apache-2.0
"""Crafted logs against `etrace import`: `python tests/fuzz/fuzz_imports.py --seconds 60`.

Sound inputs are logs that strace writes here, of one file and of -ff, and file access traces of
every version and layout. Each is changed: lines moved, doubled and cut off, block counts that lie,
bits flipped, numbers of any length, brackets of any depth, and what is compressed is damaged or
unpacks to far too much. `etrace import` either makes a trace that `cas parse` reads, and of a file
access trace the same bytes again; or it names the file, writes nothing and leaves nothing behind.
Anything else, also an answer that takes too long or too much memory, ends the run with status 1
and keeps the input.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gzip
import io
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import databases
from access_traces import SEED

from etrace.cli.main import cas, etrace

#: an answer takes milliseconds; on a loaded machine that much is still a hang
ANSWER_SECONDS = 60
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


class Hung(BaseException):
    """No answer in time; no Exception, as what is tested may catch those."""


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
    """Put the end of a line behind the beginning of another one."""
    lines, at = _lines(text, rng)
    other = rng.choice(lines)
    cut = rng.randrange(len(lines[at]) + 1)
    lines[at] = lines[at][:cut] + other[rng.randrange(len(other) + 1) :]
    return b"\n".join(lines)


CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    flip_bits, cut_off, move_lines, change_number, change_number, put_piece, nest, mix_lines,
)  # fmt: skip


def compressed(text: bytes, suffix: str) -> bytes:
    """Compress bytes; the member or frame may stand before others."""
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


@contextlib.contextmanager
def limited(question: str) -> Iterator[None]:
    """End what takes too long."""

    def end(_number: int, _frame: object) -> None:
        raise Hung(f"no answer in {ANSWER_SECONDS} s: {question}")

    before = signal.signal(signal.SIGALRM, end)
    faulthandler.dump_traceback_later(2 * ANSWER_SECONDS, exit=True)  # in C no signal is handled
    signal.alarm(ANSWER_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def ask(command: Callable[[list[str]], int], words: list[str]) -> tuple[int, str]:
    """Run a command; return its status and what it told."""
    told = io.StringIO()
    streams = contextlib.redirect_stdout(told), contextlib.redirect_stderr(told)
    with limited(" ".join(words)), streams[0], streams[1]:
        try:
            status = command(words)
        except SystemExit as end:
            status = int(str(end.code))
    return status, told.getvalue()


def check(folder: Path, sound: Sound, files: dict[str, bytes]) -> bool:
    """Import an input; whether it was accepted. AssertionError."""
    inputs, out = folder / "in", folder / "out"
    for place in (inputs, out):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    for name, text in files.items():
        (inputs / name).write_bytes(text)
    names = [str(inputs / name) for name in sorted(files)]
    status, told = ask(etrace, ["import", sound.format, *names, *sound.options, "-o", str(out)])
    made = sorted(path.name for path in out.iterdir())
    if status:
        assert status == 1, (status, told)
        assert REFUSED.match(told), told
        assert not made, made
        return False
    assert made in ([".nfsdb"], [".nfsdb", ".nfsdb.accesses"]), made
    check_trace(out, told)
    if sound.format == "file-access-trace":
        check_export(out)
    return True


def check_trace(out: Path, told: str) -> None:
    """Make the database; what was imported has no problems."""
    status, answer = ask(cas, ["parse", "--dbdir", str(out)])
    if status:  # a log whose calls all failed
        assert "0 programs and 0 opens" in told, (told, answer)
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


def run(folder: Path, seed: int, runs: int, seconds: float) -> int:
    """Craft and import inputs; return how many were accepted. The last one lies in `folder`."""
    sound = [*strace_logs(folder), *access_traces(folder)]
    n_accepted = 0
    end = time.monotonic() + seconds
    for number in range(runs):
        if time.monotonic() > end:
            runs = number
            break
        rng = Random(seed + number)
        one = rng.choice(sound)
        n_accepted += check(folder, one, craft(one, rng))
    print(f"imports: {runs} crafted from seed {seed}, {n_accepted} accepted")
    return n_accepted


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10**9, help="inputs")
    parser.add_argument("--seconds", type=float, default=60, help="longest time")
    parser.add_argument("--seed", type=int, default=0, help="number of the first input")
    parser.add_argument("--build", type=Path, default=Path("build/fuzz/imports"), help="directory")
    args = parser.parse_args()
    faulthandler.enable()
    folder = args.build.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, most))
    try:
        run(folder, args.seed, args.runs, args.seconds)
    except (Exception, Hung):  # noqa: BLE001  whatever it is, it is what is looked for
        traceback.print_exc()
        print(f"fuzz: see {folder / 'in'}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
