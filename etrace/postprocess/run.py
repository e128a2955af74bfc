# SPDX-License-Identifier: Apache-2.0
"""Phases over an image: runs those whose inputs changed, then writes the image once.

A phase's *fingerprint* is made of what its tables depend on: the image's source, the configuration,
this version of etrace. It is kept in the image's attribute `phases`; a phase whose tables are
there under the same fingerprint is not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from libetrace.image import Image, NewTable

    from etrace.postprocess.config import Config


class Strings(Protocol):
    """`etrace.nfsdb.store.StringTable`."""

    def number(self, text: bytes) -> int:
        """Return the row of a string, a new one when the image lacks it."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """What a phase gets: the image it reads, where new strings go, and how to show progress.

    `progress(what, done, total)` may be called often; it decides itself what to show.
    """

    image: Image
    strings: Strings
    config: Config
    jobs: int
    progress: Callable[[str, int, int], None]


class Phase(Protocol):
    """One pass: tables out of an image."""

    @property
    def name(self) -> str:
        """As in `cas pp --NAME`."""
        ...

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that it makes."""
        ...

    def run(self, work: Work) -> list[NewTable]:
        """Make the tables; nothing on the disk changes."""
        ...

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Say in a few words what was found: `600 linked modules`."""
        ...
