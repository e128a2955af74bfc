# SPDX-License-Identifier: Apache-2.0
"""Programs whose answer another run may not get: from a server, or from the clock."""

from __future__ import annotations

from collections.abc import Sequence

#: programs that fetch, by the words that make them do so; any word without some
FETCHERS: dict[str, frozenset[str]] = {
    "curl": frozenset(),
    "wget": frozenset(),
    "git": frozenset(("clone", "fetch", "pull", "ls-remote")),
    "pip": frozenset(("install", "download")),
    "pip3": frozenset(("install", "download")),
    "npm": frozenset(("install", "ci", "i")),
}
CLOCK = "date"
#: options of `date` for a given time
_GIVEN = ("-r", "-d", "--reference", "--date", "-f", "--file")
NAMES = (*FETCHERS, CLOCK)


def program_of(binary: str, argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the name of such a program and its arguments; of another one an empty name.

    The program of a script is its interpreter: then the script is the first or second word.
    """
    for name, words in (
        (binary, argv[1:]),
        *((argv[i], argv[i + 1 :]) for i in (0, 1)[: len(argv)]),
    ):
        last = name.rpartition("/")[2]
        if last in NAMES:
            return last, words
    return "", ()


def fetches(name: str, words: Sequence[str]) -> bool:
    """Whether a program with these arguments asks a server."""
    wanted = FETCHERS.get(name)
    if wanted is None or "--version" in words:
        return False
    return not wanted or any(word in wanted for word in words)


def reads_clock(name: str, words: Sequence[str]) -> bool:
    """Whether a program with these arguments prints the present time."""
    return name == CLOCK and not any(word.startswith(_GIVEN) for word in words)
