# SPDX-License-Identifier: Apache-2.0
"""Logs of strace in tests -> the facts of the trace that the importer makes of them."""

from __future__ import annotations

import io
from pathlib import Path

import trace_lines

from etrace.imports.strace.convert import Converted
from etrace.imports.strace.log import import_log


def convert(
    tmp_path: Path, text: str | bytes, *, cwd: bytes | None = b"/w", is_here: bool = False
) -> tuple[trace_lines.Trace, Converted]:
    """Import one log."""
    log = tmp_path / "log"
    log.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read([str(log)], cwd, is_here=is_here)


def read(
    names: list[str], cwd: bytes | None = b"/w", *, is_here: bool = False
) -> tuple[trace_lines.Trace, Converted]:
    """Import a log of several files."""
    stream = io.BytesIO()
    converted = import_log(names, stream, directory=cwd, is_here=is_here)
    return trace_lines.parse(stream.getvalue()), converted


def facts(trace: trace_lines.Trace) -> list[str]:
    """Return each event as one short line, in the order of time: `1.2 Open 0 /a 3`.

    Numbers and strings as the format has them; sizes are left out.
    """
    names: dict[int, str] = {}
    for n, root in enumerate(trace.roots(), 1):
        for upid, name in trace_lines.name_tasks(trace, root).items():
            names[upid] = f"{n}{name[1:]}"
    shown = []
    for upid, name in names.items():
        for event in trace_lines.events(trace.of(upid)):
            args = {k: v for k, v in event.args.items() if not k.endswith("size")}
            if event.tag == "SchedFork":
                args = {"pid": names[args["pid"]]}  # type: ignore[dict-item]
            words = [*map(str, args.values()), *map(_text, event.strings.values())]
            words += [_text(item) for item in event.items]
            shown.append((event.time_ns, f"{name} {event.tag} {' '.join(words)}".rstrip()))
    return [line for _, line in sorted(shown, key=lambda pair: pair[0])]


def _text(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
