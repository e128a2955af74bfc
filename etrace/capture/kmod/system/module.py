# SPDX-License-Identifier: Apache-2.0
"""Finds, loads and unloads etrace.ko.

A user who can write a module file, or a directory above it, controls the machine once it is loaded.
So a file is loaded by its descriptor (finit_module(2)) after its path was walked from the root
without following links, each step owned by root and writable by nobody else.
"""

from __future__ import annotations

import errno
import os
import platform
import stat
import subprocess
import time
from pathlib import Path

from etrace.capture.kmod.system.presence import (
    FILE,
    NAME,
    fitting_candidate,
    is_indexed,
    is_loaded,
    release,
    source,
)
from etrace.errors import CaptureError

MODPROBE = (Path("/usr/sbin/modprobe"), Path("/sbin/modprobe"))
CLEAN_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
#: (finit_module, delete_module); neither has a function in the C library that may be relied on
SYSCALLS = {"x86_64": (313, 176), "aarch64": (273, 106)}
UNLOAD_S = 5.0
PAUSE_S = 0.05

LOAD_HINTS = {
    errno.ENOEXEC: "it was built for another kernel: build it again (docs/capture-kmod.md)",
    errno.EPERM: "is the kernel locked down, or this a container? see `etrace doctor`",
    errno.EKEYREJECTED: "this kernel loads signed modules only: see `etrace doctor`",
    errno.ENOKEY: "this kernel loads signed modules only: see `etrace doctor`",
    errno.ENOENT: "it needs symbols this kernel does not have: dmesg lists them",
    errno.EINVAL: "it was built for another kernel: build it again (docs/capture-kmod.md)",
}


def open_trusted(path: Path) -> int:
    """Open a file that only root can have written; CaptureError names what others can write.

    Links are resolved first; what they lead to is then walked without following any.
    """
    try:
        resolved = path.resolve(strict=True)
        at = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for n_steps, name in enumerate(resolved.parts[1:], 2):
                _refuse_untrusted(at, Path(*resolved.parts[: n_steps - 1]))
                last = n_steps == len(resolved.parts)
                flags = os.O_RDONLY | os.O_NONBLOCK if last else os.O_PATH | os.O_DIRECTORY
                step = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
                os.close(at)
                at = step
            _refuse_untrusted(at, resolved)
            _refuse_irregular(at, path)
        except BaseException:
            os.close(at)
            raise
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        reason = error.strerror if isinstance(error, OSError) else "too many links"
        raise CaptureError(f"{path}: {reason}", f"name {FILE}: --kernel-module FILE") from error
    return at


def _refuse_untrusted(fd: int, path: Path) -> None:
    found = os.fstat(fd)
    group_writes = found.st_mode & stat.S_IWGRP and found.st_gid != 0
    if found.st_uid != 0 or group_writes or found.st_mode & stat.S_IWOTH:
        raise CaptureError(
            f"{path}: users other than root can write to it, so no module is loaded from there",
            "install the module where only root can write, for example in /lib/modules",
        )


def _refuse_irregular(fd: int, path: Path) -> None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise CaptureError(f"{path}: not a regular file", f"name {FILE}: --kernel-module FILE")


def _syscall(which: int, *args: object) -> None:
    import ctypes  # noqa: PLC0415  slow to import, seldom needed

    numbers = SYSCALLS.get(platform.machine())
    if numbers is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(ctypes.c_long(numbers[which]), *args) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def load_file(file: Path) -> None:
    """Load a module file that only root can have written."""
    import ctypes  # noqa: PLC0415  slow to import, seldom needed

    fd = open_trusted(file)
    try:
        _syscall(0, ctypes.c_int(fd), ctypes.c_char_p(b""), ctypes.c_int(0))
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise CaptureError(
                f"{file}: cannot be loaded: {error.strerror}",
                LOAD_HINTS.get(error.errno or 0, "dmesg may show more"),
            ) from error
    finally:
        os.close(fd)


def modprobe() -> None:
    """Load the module that is installed for this kernel."""
    program = next((path for path in MODPROBE if path.exists()), None)
    if program is None:
        raise CaptureError("modprobe is not installed", "install the package kmod")
    done = subprocess.run(
        [program, NAME], env=CLEAN_ENVIRONMENT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise CaptureError(said[-1] if said else "modprobe failed", "see `etrace doctor`")


class Modules:
    """Loading and unloading of etrace.ko; tests have other ones."""

    def is_loaded(self) -> bool:
        """Whether the kernel has it."""
        return is_loaded()

    def source(self) -> str:
        """Return the file that would be loaded, empty without one. Takes milliseconds."""
        return source()

    def load(self, file: Path | None) -> None:
        """Load it, from `file` when one is given. CaptureError with the reason."""
        if file is None and not is_indexed() and (fitting := fitting_candidate()):
            file = Path(fitting)
        if file is not None:
            load_file(file)
        elif is_indexed():
            modprobe()
        else:
            raise CaptureError(
                f"there is no {FILE} for this kernel ({release()})",
                "build and install it (docs/capture-kmod.md), or name it: --kernel-module FILE",
            )

    def unload(self) -> None:
        """Unload it; OSError when it is in use for long."""
        import ctypes  # noqa: PLC0415  slow to import, seldom needed

        give_up = time.monotonic() + UNLOAD_S
        while True:
            try:
                _syscall(1, ctypes.c_char_p(NAME.encode()), ctypes.c_uint(os.O_NONBLOCK))
            except OSError as error:
                if error.errno == errno.ENOENT:
                    return
                busy = error.errno in (errno.EBUSY, errno.EAGAIN)
                if not busy or time.monotonic() > give_up:
                    raise
                time.sleep(PAUSE_S)
            else:
                return
