# SPDX-License-Identifier: Apache-2.0
"""The owner of a capture's files: the user who called sudo; they are made with that user's rights.

A directory of a user may hold any symbolic link; whoever opens files there with the rights of root
opens what the link says. So the rights are given away first (credentials(7)), for good reason of
the effective ones only: they come back.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from etrace.errors import CaptureError, UsageError

ROOT = 0
UID_VARIABLES = ("SUDO_UID", "PKEXEC_UID")
NAME_VARIABLE = "DOAS_USER"


@dataclass(frozen=True, slots=True)
class Owner:
    """A user with their groups."""

    uid: int
    gid: int
    groups: tuple[int, ...]


def myself() -> Owner:
    """Return the user of this process."""
    return Owner(os.geteuid(), os.getegid(), tuple(os.getgroups()))


def _account(environment: Mapping[str, str]) -> pwd.struct_passwd | None:
    for variable in UID_VARIABLES:
        if text := environment.get(variable):
            try:
                return pwd.getpwuid(int(text))
            except (ValueError, KeyError, OverflowError) as error:
                raise UsageError(
                    f"{variable}={text}: no such user", "unset it, or start etrace through sudo"
                ) from error
    if text := environment.get(NAME_VARIABLE):
        try:
            return pwd.getpwnam(text)
        except KeyError as error:
            raise UsageError(f"{NAME_VARIABLE}={text}: no such user", "unset it") from error
    return None


def invoking(environment: Mapping[str, str]) -> Owner:
    """Return the user who called sudo, pkexec or doas; without them, the user of this process.

    These programs set the variables themselves. Only root may act for another user.
    """
    account = _account(environment) if os.geteuid() == ROOT else None
    if account is None:
        return myself()
    groups = os.getgrouplist(account.pw_name, account.pw_gid)
    return Owner(account.pw_uid, account.pw_gid, tuple(groups))


def home_of(owner: Owner) -> str | None:
    """Return the home directory of another user; None of this process's own, which HOME names."""
    if owner.uid == os.getuid():
        return None
    try:
        return pwd.getpwuid(owner.uid).pw_dir
    except KeyError:
        return "/"  # where only root leaves marks


@contextlib.contextmanager
def acting_as(owner: Owner) -> Iterator[None]:
    """Inside the block, use the rights of `owner` on files, and no others."""
    before = myself()
    if before.uid != ROOT or owner == before:
        yield
        return
    try:
        os.setgroups(owner.groups)
        os.setegid(owner.gid)
        os.seteuid(owner.uid)
        yield
    finally:
        os.seteuid(before.uid)
        os.setegid(before.gid)
        os.setgroups(before.groups)


def need_root() -> None:
    """Raise CaptureError without the rights of root."""
    if os.geteuid() != 0:
        raise CaptureError(
            "the kernel module needs root",
            "sudo etrace ..., or trace without the module: etrace run",
        )
