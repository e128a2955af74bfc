# SPDX-License-Identifier: Apache-2.0
"""`m`: executions below a shell -> that shell.

In `sh -c "cat a | sort > out"` the output of sort came from cat, so both count as the shell's.
`rbm_wrapping_binaries` lists the shells; a program with many names (busybox) counts only when it
was run as a shell. The rule for nested shells is in docs/postprocess.md;
`libetrace.depend.execution_facts` applies it.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from libetrace.depend.execution_facts import wrapping_shells
from libetrace.image.file import Image, NewTable
from libetrace.select.patterns import PatternSet

from etrace.figures import count
from etrace.postprocess.run import Work, product
from etrace.spec.database import NONE

#: multi-call programs; the name by which they are run, or else their first argument, selects one
MULTIPLE = (b"busybox", b"toybox", b"busybox.static")
APPLETS = (b"sh", b"ash", b"hush", b"bash", b"lash", b"msh")


def shell_patterns(listed: Sequence[str]) -> PatternSet:
    """Return the patterns and, for plain paths, their targets on this machine: /bin is a link."""
    out = list(listed)
    for path in map(Path, listed):
        if path.is_absolute():
            out += [str(path.parent.resolve() / path.name), str(path.resolve())]
    return PatternSet(out)


def runs_shell(argv: Sequence[bytes]) -> bool:
    """Whether a multi-call program was run as a shell."""
    names = [os.path.basename(argument) for argument in argv[:2]]  # noqa: PTH119  bytes
    if names and names[0] in MULTIPLE:
        names = names[1:]
    return bool(names) and names[0].lstrip(b"-") in APPLETS


def _multiple_rows(image: Image, paths: set[int]) -> Iterator[int]:
    """Yield the executions of these paths that did not run a shell."""
    executions, arguments = image["executions"], image["arguments"]["string"]
    for row, binary in enumerate(executions["binary"]):
        if binary in paths:
            span = executions.span("argv.start", row)
            if not runs_shell([image.string(arguments[i]) for i in span[:2]]):
                yield row


def find_shells(image: Image, listed: Sequence[str]) -> bytearray:
    """Return 1 for each execution of a wrapping shell, (n_executions,)."""
    patterns = shell_patterns(listed)
    binaries = image["executions"]["binary"]
    paths = {path: image.path_string(path) for path in set(binaries) if path != NONE}
    shells = {path for path, text in paths.items() if any(patterns.match(text))}
    out = bytearray(map(shells.__contains__, binaries))
    multiple = {path for path in shells if os.path.basename(paths[path]) in MULTIPLE}  # noqa: PTH119
    for row in _multiple_rows(image, multiple) if multiple else ():
        out[row] = 0
    return out


@dataclass(frozen=True, slots=True)
class Wrappers:
    """The phase."""

    name: str = "wrappers"
    tables: tuple[str, ...] = ("wrappers",)
    inputs: tuple[str, ...] = ("rbm_wrapping_binaries",)

    def run(self, work: Work) -> list[NewTable]:
        """Make the table `wrappers`."""
        executions = work.image["executions"]
        shells = find_shells(work.image, work.config.rbm_wrapping_binaries)
        out = array("i", bytes(4 * executions.n_rows))
        wrapping_shells(executions["upid"], executions["parent"], executions["binary"], shells, out)
        return [product("wrappers", out)]

    def describe(self, tables: Sequence[NewTable]) -> str:
        """Count."""
        out = tables[0].columns[0].data
        n_wrapped = len(out) - out.count(NONE)
        n_shells = len(set(out) - {NONE})
        return f"{count(n_wrapped, 'execution')} below {count(n_shells, 'shell')}"


PHASE = Wrappers()
