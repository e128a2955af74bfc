# SPDX-License-Identifier: Apache-2.0
"""What a capture records, and where; a plain class, because `etrace run` starts with it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from etrace.capture.kmod.owner import Owner


class Options:
    """What to record beyond the default, and where.

    `trace` is the event file; `stats` the JSON that says how the capture went. `owner` is whose
    files they are, when not this process's user's. With `summary` the backend may tell at the end
    what it captured. `response_files`: keep what those of compilers held, where the backend can.
    """

    __slots__ = (
        "env", "mounts", "owner", "response_files", "stats", "summary", "thread_names", "trace",
        "wait_all",
    )  # fmt: skip

    def __init__(
        self,
        trace: str | Path,
        stats: str | Path,
        env: bool = False,
        mounts: bool = False,
        thread_names: bool = False,
        wait_all: bool = False,
        *,
        summary: bool = False,
        owner: Owner | None = None,
        response_files: bool = True,
    ) -> None:
        self.trace = trace
        self.stats = stats
        self.env = env
        self.mounts = mounts
        self.thread_names = thread_names
        self.wait_all = wait_all
        self.summary = summary
        self.owner = owner
        self.response_files = response_files
