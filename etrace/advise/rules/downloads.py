# SPDX-License-Identifier: Apache-2.0
"""Programs that fetch something from the network during the build."""

from __future__ import annotations

from collections.abc import Iterator

from etrace.advise.build import Build, none_of
from etrace.advise.finding import Finding, Sure
from etrace.figures import count, seconds

IDS = ("downloads",)
ANY = frozenset[bytes]()
#: program, or script of an interpreter -> first words with which it fetches; ANY: always
FETCHERS = {
    b"curl": ANY, b"wget": ANY, b"aria2c": ANY, b"scp": ANY, b"sftp": ANY,
    b"git": frozenset(b"clone fetch pull ls-remote submodule".split()),
    b"svn": frozenset(b"checkout co update export".split()),
    b"hg": frozenset(b"clone pull".split()),
    b"pip": frozenset(b"install download wheel".split()),
    b"pip3": frozenset(b"install download wheel".split()),
    b"npm": frozenset(b"install ci i".split()), b"yarn": frozenset((b"install",)),
    b"pnpm": frozenset(b"install i".split()),
    b"cargo": frozenset(b"fetch install update vendor".split()),
    b"go": frozenset(b"get mod install".split()),
    b"gem": frozenset((b"install",)), b"bundle": frozenset((b"install",)),
    b"apt-get": frozenset(b"install update download source".split()),
}  # fmt: skip
#: with these nothing is fetched
OFFLINE = frozenset((b"--version", b"--help", b"-V", b"--no-index", b"--offline"))
N_WORDS = 3


def find(build: Build) -> Iterator[Finding]:
    """Take the downloads out."""
    rows = [row for row in range(build.executions.n_rows) if is_download(build, row)]
    if not rows:
        return
    elapsed = build.executions["elapsed_ns"]
    times = {row: elapsed[row] for row in rows}
    yield Finding(
        IDS[0],
        f"{count(len(rows), 'download')} during the build: {seconds(sum(times.values()))}",
        "The build needs a network, and what it makes depends on what a server has that day.",
        "Fetch before the build, check against a known hash, and let the build read the copy.",
        Sure.LIKELY,
        "the command lines say so; the trace has no network",
        build.gain(none_of(build.nearest(set(rows))), is_bound=True),
        build.commands(times),
        len(rows),
    )


def is_download(build: Build, row: int) -> bool:
    """Return whether a command line fetches something."""
    name = build.program(row)
    words = build.labels.arguments(row) if name else []
    if not OFFLINE.isdisjoint(words):
        return False
    if name in FETCHERS:
        return _fetches(name, words[1:])
    for at, word in enumerate(words[1:N_WORDS], 1):  # python3 /usr/bin/pip, python3 -m pip
        script = word.rpartition(b"/")[2]
        if script in FETCHERS and (name.startswith(b"python") or b"/" in word):
            return _is_script(name) and _fetches(script, words[at + 1 :])
    return False


def _is_script(name: bytes) -> bool:
    return name.startswith((b"python", b"node", b"ruby", b"perl"))


def _fetches(name: bytes, words: list[bytes]) -> bool:
    kinds = FETCHERS[name]
    if not kinds:
        return bool(words)
    return next((word for word in words if not word.startswith(b"-")), b"") in kinds
