# SPDX-License-Identifier: Apache-2.0
"""Command lines and what they ask for, pinned in invocations.txt: `$ COMMAND`, then what was read.

A change of a table shows as a difference there. Rendering leaves out what is empty.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from etrace.compilers.invocation import Invocation, read_invocation, select_tool
from etrace.compilers.tools import load

PINNED = Path(__file__).with_name("invocations.txt")


def pinned() -> list[tuple[str, list[str]]]:
    """Return (command, lines) of each block."""
    out: list[tuple[str, list[str]]] = []
    for line in PINNED.read_text().splitlines():
        if line.startswith("$ "):
            out.append((line[2:], []))
        elif line and not line.startswith("#"):
            out[-1][1].append(line)
    return out


def render(it: Invocation | None) -> list[str]:
    """Show an invocation, one line a field."""
    if it is None:
        return ["nothing"]
    fields: dict[str, list[bytes]] = {
        "target": it.target,
        "outputs": it.outputs,
        "quote": it.quote,
        "include": it.include,
        "system": it.system,
        "internal": it.internal,
        "after": it.after,
        "headers": it.headers,
    }
    lines = [f"{it.tool.name} {it.step.name.lower()} {it.language}"]
    lines += [f"source {source.language} {source.name.decode()}" for source in it.sources]
    lines += [f"{name} {b' '.join(words).decode()}" for name, words in fields.items() if words]
    lines += [
        f"undef {d.name.decode()}" if d.is_undef else f"define {d.name.decode()} {d.value.decode()}"
        for d in it.definitions
    ]
    return lines if it.is_standard else [*lines, "no standard includes"]


def read(command: str) -> Invocation | None:
    argv = [word.encode() for word in shlex.split(command)]
    tools = load()
    tool = tools.identify(argv[0], argv[0])
    assert tool is not None
    selected = select_tool(tools, tool, argv)
    return None if selected is None else read_invocation(*selected)


@pytest.mark.parametrize(("command", "expected"), pinned(), ids=lambda value: str(value)[:60])
def test_command_lines_are_read_as_pinned(command: str, expected: list[str]) -> None:
    assert render(read(command)) == expected
