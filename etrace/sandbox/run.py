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

import os
import pwd
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import etrace
from etrace.errors import EtraceError
from etrace.sandbox import programs
from etrace.sandbox.programs import Program

SANDBOX = Path(etrace.__file__).parent / "libexec" / "etrace-sandbox"
ROOT, NOBODY = 0, 65534
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
    """How a program ended (minus the signal that ended it), and what it printed."""

    status: int
    stdout: bytes
    stderr: bytes


def harmless(environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return an environment without the variables that choose the code of a program."""
    return {
        name: value for name, value in environment.items()
        if name and not _CHOOSES_CODE.fullmatch(name)
    }  # fmt: skip


def _user(directory: Path | None) -> list[str]:
    """Return the options that make root somebody else: the owner of a directory, else nobody."""
    if os.geteuid() != ROOT:
        return []
    owner = ROOT if directory is None else directory.stat().st_uid
    if owner == ROOT:
        return ["--user", f"{NOBODY}:{NOBODY}", "--reads-all"]
    try:
        account = pwd.getpwuid(owner)
        groups = (account.pw_gid, *os.getgrouplist(account.pw_name, account.pw_gid))
    except KeyError:
        groups = (NOBODY,)
    return ["--user", ":".join(map(str, (owner, *groups)))]


def run(
    program: Program,
    words: Sequence[bytes],
    directory: Path | None,
    environment: Mapping[bytes, bytes],
    *,
    allowed: Allowed = Allowed(),
    limits: Limits = Limits(),
    reads_for: Path | None = None,
) -> Ended:
    """Run a program in `directory` with the words after its name; return how it ended.

    Root becomes the owner of `reads_for`, else of `directory`. Without a directory it begins in an
    empty one. There, at $TMPDIR, it may write where namespaces are allowed: it is memory.
    NoSandboxError when nothing runs here; SandboxError after the limits' time, and when it prints
    more than they allow.
    """
    with (
        tempfile.TemporaryDirectory(prefix="etrace-scratch-") as scratch,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryFile() as variables,
    ):
        Path(scratch).chmod(0o711)  # for whoever root becomes; it stays empty
        own = {**harmless(environment), b"TMPDIR": os.fsencode(scratch)}
        variables.write(b"".join(name + b"=" + value + b"\0" for name, value in own.items()))
        variables.flush()
        options = [
            "--program", program.fd, "--environment", variables.fileno(), "--scratch", scratch,
            "--seconds", limits.seconds, "--memory", limits.memory_bytes >> 20,
            "--output", limits.output_bytes >> 20, "--processes", limits.processes,
            "--owner", allowed.owner or max(programs.OWNERS), *_user(reads_for or directory),
        ]  # fmt: skip
        options += ["--executes"] if allowed.executes else []
        options += [word for path in allowed.folders for word in ("--executes-below", path)]
        options += ["--in-scratch"] if directory is None else []
        shown = str(program.path)
        fds = (program.fd, variables.fileno())
        command: list[str | bytes] = [*map(str, options), "--", os.fsencode(shown), *words]
        said = _said(command, directory or Path(scratch), fds, (out, err))
        kept = [_read(stream, shown, limits.output_bytes) for stream in (out, err)]
        return Ended(_status(said, shown, limits), *kept)


def _said(
    words: Sequence[str | bytes],
    directory: Path,
    fds: tuple[int, ...],
    outputs: tuple[IO[bytes], IO[bytes]],
) -> str:
    """Start the sandbox and return its report; it ends with this process."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    try:
        process = subprocess.Popen(
            [SANDBOX, "--report", str(writer), *words], cwd=directory, env={},
            stdin=subprocess.DEVNULL, stdout=outputs[0], stderr=outputs[1],
            pass_fds=(*fds, writer),
        )  # fmt: skip
    except OSError as error:
        os.close(reader)
        raise SandboxError(f"{SANDBOX}: {error.strerror}", "install etrace again") from error
    finally:
        os.close(writer)
    try:
        with open(reader, "rb") as stream:  # noqa: PTH123  a descriptor
            text = stream.read()
    finally:
        process.wait()
    return os.fsdecode(text).strip()


def _read(stream: IO[bytes], shown: str, most: int) -> bytes:
    if os.fstat(stream.fileno()).st_size >= most:
        raise SandboxError(f"{shown} printed more than {most} bytes", "see what it prints")
    stream.seek(0)
    return stream.read()


def _status(said: str, shown: str, limits: Limits) -> int:
    kind, _, text = said.partition(" ")
    if kind == "exit":
        return int(text)
    if kind == "signal":
        return -int(text)
    if kind == "timeout":
        raise SandboxError(
            f"{shown} took more than {limits.seconds} s", "does it wait for something?"
        )
    if kind == "missing":
        raise NoSandboxError(f"{shown} is not run: there is no sandbox for it here: {text}", HINT)
    raise SandboxError(f"{shown} cannot be run: {text or 'the sandbox failed'}", "is it damaged?")
