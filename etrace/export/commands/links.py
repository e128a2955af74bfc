# SPDX-License-Identifier: Apache-2.0
"""The table `linked` -> the commands that linked and archived, for a file of their own.

An entry has `directory`, `arguments` (or `command`), `output` and `kind`: archive, executable,
shared or partial. The command is that of the compiler that started the linker, without launchers.
"""

from __future__ import annotations

from libetrace.image.file import Image

from etrace.compilers.options import values
from etrace.export.commands.path_style import Paths
from etrace.export.commands.traced import Commands
from etrace.export.compile_commands import Entry, Form, entry_of, show
from etrace.query.classes.kinds import ARCHIVE, EXECUTABLE, PARTIAL, SHARED, product

KINDS = {ARCHIVE: "archive", EXECUTABLE: "executable", SHARED: "shared", PARTIAL: "partial"}


def entries(image: Image, form: Form | None = None) -> list[Entry]:
    """Return the entries of all links, in order of their executions. EtraceError before cas pp."""
    linked = product(image, "linked", "linked modules")
    form = form or Form()
    writer = _Writer(image, form)
    return [
        writer.entry(linked["execution"][row], linked["path"][row], linked["kind"][row])
        for row in _in_order(image, linked["execution"])
    ]


def _in_order(image: Image, executions: memoryview) -> list[int]:
    start = image["executions"]["start_ns"]
    return sorted(range(len(executions)), key=lambda row: (start[executions[row]], row))


class _Writer:
    def __init__(self, image: Image, form: Form) -> None:
        self._image, self._form = image, form
        self._commands = Commands(image, expands=form.expands)
        self._paths = Paths(self._commands, form.paths)

    def entry(self, execution: int, path: int, kind: int) -> Entry:
        command = self._commands.of_link(execution)
        output = self._image.path_string(path)
        outputs = values(command.tool.options.parse(command.words), "output")
        name = self._paths.named(command, [*outputs, *command.words], output)
        shown = self._paths.shown(command, name, output)
        return {
            **entry_of(command, self._form),
            "output": show(shown),
            "kind": KINDS[kind],
        }
