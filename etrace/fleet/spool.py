# SPDX-License-Identifier: Apache-2.0
"""Builds that a fleet could not take yet: a dataset of this machine, whose parts are sent later.

A part in a spool is redacted already. It is removed once the fleet has it. Each fleet and each user
has a directory of its own, named after the absolute place of the fleet: the same words in another
directory name another fleet.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from libetrace.core.folders import opened_folder

from etrace.errors import EtraceError
from etrace.fleet.dataset import Dataset
from etrace.fleet.parts import Part, key_of
from etrace.fleet.schema import TABLES
from etrace.fleet.store import Folder, Open, is_remote
from etrace.redaction.names import is_secret

#: stores whose URIs have keys before the `@`
KEYED = ("s3", "gs", "gcs")


def whole_place(place: str) -> str:
    """Return the place of a fleet as the only one of that name: an absolute path, or a URI.

    Who asks a store for it does not make it another: users, keys and tokens are left out.
    """
    if not is_remote(place):
        return os.path.realpath(place.removeprefix("file://"))
    parts = urlsplit(place)
    settings = sorted((n, v) for n, v in parse_qsl(parts.query) if not is_secret(n))
    user, at, host = parts.netloc.rpartition("@")
    if at and parts.scheme not in KEYED:  # a container or an account
        host = f"{user.partition(':')[0]}@{host}"
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}?{urlencode(settings)}"


def spool_folder(place: str, environment: Mapping[str, str], folder: Path | None = None) -> Path:
    """Return where builds for a fleet wait, below a directory of the user's choice if given."""
    if folder is None:
        state = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111
        folder = Path(state) / "etrace"
    return folder.absolute() / f"fleet-{key_of(f'{os.geteuid()} {whole_place(place)}')}"


def check_owner(spool: Path) -> None:
    """Raise EtraceError for the spool of another user: what it holds is not ours to send."""
    try:
        with opened_folder(spool) as descriptor:
            owner = os.fstat(descriptor).st_uid
    except FileNotFoundError:
        return
    if owner != os.geteuid():
        raise EtraceError(
            f"{spool}: the spool belongs to another user", "name one of your own: --spool DIR"
        )


def waiting(spool: Path) -> list[Part]:
    """Return the parts of a spool, none when there is no spool."""
    return sorted(Folder(spool).parts()) if spool.is_dir() else []


def send(spool: Path, dataset: Dataset) -> tuple[int, int]:
    """Send what waits; return how many builds were sent, and how many the fleet does not take.

    It does not take a build that it has, or that was forgotten. EtraceError, OSError.
    """
    own = Folder(spool)
    n_sent = n_dropped = 0
    for part in waiting(spool):
        dataset.store.check()
        builds = own.manifest(part)
        is_wanted = not set(builds) & dataset.store.forgotten() and not any(
            dataset.has(key, part.project) for key in builds
        )

        def copy(make: Open, part: Part = part) -> None:
            for table in TABLES:
                with own.stream(part, table) as source, make(f"{table}.parquet") as target:
                    shutil.copyfileobj(source, target)

        if is_wanted and dataset.store.publish(part, builds, copy, own.models(part)):
            n_sent += 1
        else:
            n_dropped += 1
        own.remove(part)
    return n_sent, n_dropped
