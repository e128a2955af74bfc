# SPDX-License-Identifier: Apache-2.0
"""Runs a program in the sandbox (native/sandbox/main.c) and returns what it printed.

The program changes no file and no process, and reaches no network. It executes nothing else, unless
`may` allows it, and loads no code that is not root's. Root never runs it with root's rights: it is
the user of the files that it reads, or nobody, who may then read what root may.

Its environment is made here. Variables that choose the code of a program (LD_PRELOAD and all others
that the loader and libc ignore in set-uid programs, start files of shells and interpreters) are
never handed on, whoever asks for it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import etrace
from etrace.errors import EtraceError
from etrace.sandbox import programs
from etrace.sandbox.programs import Program

SANDBOX = Path(etrace.__file__).parent / "libexec" / "etrace-sandbox"
ROOT, NOBODY = 0, 65534
#: systemd's dynamic users, who seldom run
FREE_USERS = (61184, 65520)
#: a git of nobody takes no repository of root's otherwise; in the sandbox it is like any other
SAFE_FOR_GIT = {
    b"GIT_CONFIG_COUNT": b"1", b"GIT_CONFIG_KEY_0": b"safe.directory", b"GIT_CONFIG_VALUE_0": b"*",
}  # fmt: skip
DENIED = "denied "
PIECE_BYTES = 1 << 16
#: for a sandbox that should have ended by itself
PATIENCE_S = 10
HINT = (
    "it takes Linux 5.13 or later with Landlock (lsm=) and seccomp; in a container, its security "
    "profile has to allow them"
)
#: unsecvars.h of glibc and ld.so(8); then what shells, perl, Python and others run or load first
_CHOOSES_CODE = re.compile(
    rb"LD_.*|GLIBC_TUNABLES|GCONV_PATH|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|LOCPATH|MALLOC_.*|"
    rb"NIS_PATH|NLSPATH|RESOLV_HOST_CONF|RES_OPTIONS|TZDIR|"
    rb"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|PS4|PROMPT_COMMAND|ZDOTDIR|IFS|"
    rb"PERL5.*|PERLLIB|PYTHON.*|RUBYOPT|RUBYLIB|NODE_OPTIONS|GUILE_.*|LUA_INIT.*|GCC_EXEC_PREFIX|"
    rb"COMPILER_PATH|DEPENDENCIES_OUTPUT|SUNPRO_DEPENDENCIES|CCC_.*|COLLECT_.*|GIT_.*"
)


class SandboxError(EtraceError):
    """A program was not run, or not to its end."""


class NoSandboxError(SandboxError):
    """Here nothing can keep what the sandbox promises, so nothing runs."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may take: seconds, bytes of memory (each process), of each file, processes."""

    seconds: int = 60
    memory_bytes: int = 2 << 30
    output_bytes: int = 16 << 20
    processes: int = 64


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a program may do besides reading and printing.

    `executes`: run other programs, any; else those in `folders`. `owner`: of code that it may load
    besides root's.
    """

    executes: bool = False
    folders: tuple[Path, ...] = ()
    owner: int = ROOT


class Ended(NamedTuple):
    """How a program ended (minus the signal that ended it), and what it printed.

    `denied` are the first files that it was not let read: pipes and devices, files of others.
    """

    status: int
    stdout: bytes
    stderr: bytes
    denied: tuple[str, ...] = ()


def harmless(environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return an environment without the variables that choose the code of a program."""
    return {
        name: value for name, value in environment.items()
        if name and not _CHOOSES_CODE.fullmatch(name)
    }  # fmt: skip


def _user(owner: int) -> list[str]:
    """Return the options that make root somebody else: the owner of a directory, else nobody.

    Then only files of root's are read, and those of that owner.
    """
    if os.geteuid() != ROOT:
        return []
    if owner == ROOT:
        uid = _free_user()
        own = ["--files-of", str(uid)] if uid != NOBODY else []
        return ["--user", f"{uid}:{uid}", "--reads-all", *own]
    try:
        account = pwd.getpwuid(owner)
        groups = (account.pw_gid, *os.getgrouplist(account.pw_name, account.pw_gid))
    except KeyError:
        groups = (NOBODY,)
    return ["--user", ":".join(map(str, (owner, *groups))), "--files-of", str(owner)]


def _free_user() -> int:
    """Return a user id that nobody has, so that no process may look into that of the program."""
    numbers = range(*FREE_USERS)
    for number in range(len(numbers)):
        uid = numbers[(os.getpid() + number) % len(numbers)]
        try:
            pwd.getpwuid(uid)
        except KeyError:
            return uid
    return NOBODY


def run(
    program: Program,
    words: Sequence[bytes],
    directory: Path | None,
    environment: Mapping[bytes, bytes],
    *,
    allowed: Allowed = Allowed(),
    limits: Limits = Limits(),
) -> Ended:
    """Run a program in `directory` with the words after its name; return how it ended.

    Root becomes the owner of that directory. Without a directory it begins in an empty one. There,
    at $TMPDIR, it may write where namespaces are allowed: it is memory. NoSandboxError when nothing
    runs here; SandboxError after the limits' time, and when it prints more than they allow.
    """
    with (
        tempfile.TemporaryDirectory(prefix="etrace-scratch-") as scratch,
        tempfile.TemporaryFile() as variables,
        _entered(directory or Path(scratch)) as (place, owner),
    ):
        Path(scratch).chmod(0o711)  # for whoever root becomes; it stays empty
        own = {**harmless(environment), b"TMPDIR": os.fsencode(scratch)}
        own |= SAFE_FOR_GIT if os.geteuid() == ROOT else {}
        variables.write(b"".join(name + b"=" + value + b"\0" for name, value in own.items()))
        variables.flush()
        options = [
            "--program", program.fd, "--environment", variables.fileno(), "--scratch", scratch,
            "--seconds", limits.seconds, "--memory", limits.memory_bytes >> 20,
            "--output", max(limits.output_bytes >> 20, 1), "--processes", limits.processes,
            "--code-of", allowed.owner or max(programs.OWNERS), *_user(owner),
        ]  # fmt: skip
        options += ["--executes"] if allowed.executes else []
        options += [word for path in allowed.folders for word in ("--executes-below", path)]
        options += ["--in-scratch"] if directory is None else []
        shown = str(program.path)
        command: list[str | bytes] = [*map(str, options), "--", os.fsencode(shown), *words]
        fds = (program.fd, variables.fileno())
        outputs = _outputs(command, place, fds, limits, shown)
        return _ended(outputs, shown, limits)


@contextlib.contextmanager
def _entered(directory: Path) -> Iterator[tuple[str, int]]:
    """Open a directory; yield a name for this very one, and its owner. SandboxError."""
    try:
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise SandboxError(f"{directory}: {error.strerror}", "is it there?") from error
    try:
        yield f"/proc/self/fd/{fd}", os.fstat(fd).st_uid
    finally:
        os.close(fd)


class Outputs(NamedTuple):
    """What the program printed, and the report of the sandbox."""

    stdout: bytes
    stderr: bytes
    report: bytes


def _outputs(
    words: Sequence[str | bytes], directory: str, fds: tuple[int, ...], limits: Limits, shown: str
) -> Outputs:
    """Start the sandbox and read until it ends; it ends when this process stops reading."""
    pipes = [os.pipe() for _ in Outputs._fields]
    (out, err, report) = (writer for _, writer in pipes)
    sys.stdout.flush()
    try:
        process = subprocess.Popen(
            [SANDBOX, "--report", str(report), *words], cwd=directory, env={},
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=(*fds, report),
        )  # fmt: skip
    except OSError as error:
        for reader, _ in pipes:
            os.close(reader)
        what = error.filename or SANDBOX
        raise SandboxError(f"{os.fsdecode(what)}: {error.strerror}", "is it there?") from error
    finally:
        for _, writer in pipes:
            os.close(writer)
    try:
        return Outputs(*_read_all([reader for reader, _ in pipes], limits, shown))
    finally:
        for reader, _ in pipes:
            os.close(reader)
        _end(process)


def _read_all(readers: Sequence[int], limits: Limits, shown: str) -> list[bytes]:
    """Return all that comes; SandboxError when it is too much or takes too long."""
    kept: dict[int, list[bytes]] = {reader: [] for reader in readers}
    n_left = limits.output_bytes
    end = time.monotonic() + limits.seconds + PATIENCE_S
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(end - time.monotonic(), 0))
            if not ready:
                raise _late(shown, limits)
            for key, _ in ready:
                piece = os.read(key.fd, PIECE_BYTES)
                n_left -= len(piece)
                if not piece:
                    selector.unregister(key.fd)
                if n_left <= 0:
                    raise SandboxError(
                        f"{shown} printed more than {limits.output_bytes} bytes",
                        "see what it prints",
                    )
                kept[key.fd].append(piece)
    return [b"".join(pieces) for pieces in kept.values()]


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a file system does not let it go
            process.wait(PATIENCE_S)


def _late(shown: str, limits: Limits) -> SandboxError:
    return SandboxError(f"{shown} took more than {limits.seconds} s", "does it wait for something?")


def _ended(outputs: Outputs, shown: str, limits: Limits) -> Ended:
    *lines, said = os.fsdecode(outputs.report).strip().split("\n")
    kind, _, text = said.partition(" ")
    denied = tuple(line.removeprefix(DENIED) for line in lines if line.startswith(DENIED))
    if kind == "exit":
        return Ended(int(text), outputs.stdout, outputs.stderr, denied)
    if kind == "signal":
        return Ended(-int(text), outputs.stdout, outputs.stderr, denied)
    if kind == "timeout":
        raise _late(shown, limits)
    if kind == "missing":
        raise NoSandboxError(f"{shown} is not run: there is no sandbox for it here: {text}", HINT)
    why = text or outputs.stderr.decode(errors="replace").strip() or "the sandbox failed"
    raise SandboxError(f"{shown} cannot be run: {why}", "is it damaged?")
