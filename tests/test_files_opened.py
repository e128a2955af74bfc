# SPDX-License-Identifier: Apache-2.0
"""Files of others are opened in one place; every other place that opens a file is listed here.

The place is cython/libetrace/core/regular_file.py: it opens regular files of a disk only, waits for
nothing and has limits. A file that etrace, the kernel or root alone writes may be opened otherwise.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
READER = "cython/libetrace/core/regular_file.py"
#: calls that open or read a file by its name, or take its descriptor
OPENS = {
    "open", "fdopen", "read_text", "read_bytes", "mmap", "memmap", "connect", "ParquetFile",
    "copyfile", "copy", "copytree", "getxattr", "memory_map", "open_file", "dataset",
}  # fmt: skip
MODULES = {"os", "io", "mmap", "sqlite3", "shutil", "gzip", "lzma", "pq", "dataset", "tarfile"}
#: method names that only files have
METHODS = {"open", "read_text", "read_bytes"}
PROGRAM = "a file of this program"
KERNEL = "a file of the kernel: /proc, tracefs, sysfs"
OWN = "a file that etrace writes into a folder which only its user or root may change"
FOLDER = "a directory or a name, not content"
NO_FILE = "opens no file"
MADE = "a file or memory that this program makes"
TRACE = "the trace of a capture that runs, beside its lock"
TRUSTED = "only root or the user may change it, which is checked first"
NAMED = "a log, a trace or a pipe that the user names; it is read in pieces with limits"
HASHED = "regular files of a disk only, by etrace.nfsdb.hashing, in pieces"
FLEET = "a regular file of a fleet; sizes are checked: etrace/fleet/unfolding.py"
HEADS = "regular files only, without waiting; some bytes of each"
SQLITE = "a regular file, which is checked first; SQLite reads pages"
LISTED = {
    "cython/libetrace/convert/create.py": (1, NAMED),
    "cython/libetrace/convert/json_files.py": (1, MADE),
    "cython/libetrace/core/folders.py": (7, FOLDER),
    "cython/libetrace/image/file.py": (5, MADE),
    "cython/libetrace/image/header.py": (1, PROGRAM),
    "etrace/capture/bpf/backend.py": (1, PROGRAM),
    "etrace/capture/bpf/findings.py": (1, KERNEL),
    "etrace/capture/bpf/session.py": (4, OWN),
    "etrace/capture/doctor.py": (1, KERNEL),
    "etrace/capture/files.py": (1, TRACE),
    "etrace/capture/hashing.py": (5, TRACE),
    "etrace/capture/kmod/collector.py": (3, OWN),
    "etrace/capture/kmod/command.py": (1, MADE),
    "etrace/capture/kmod/findings.py": (3, KERNEL),
    "etrace/capture/kmod/run.py": (2, TRACE),
    "etrace/capture/kmod/state.py": (4, OWN),
    "etrace/capture/kmod/system/module.py": (2, FOLDER),
    "etrace/capture/kmod/system/output.py": (5, MADE),
    "etrace/capture/kmod/system/presence.py": (1, KERNEL),
    "etrace/capture/kmod/system/process.py": (4, KERNEL),
    "etrace/capture/kmod/system/tracefs.py": (3, KERNEL),
    "etrace/capture/orphans.py": (2, KERNEL),
    "etrace/capture/ptrace.py": (4, KERNEL),
    "etrace/capture/signals.py": (1, KERNEL),
    "etrace/capture/strace.py": (1, MADE),
    "etrace/capture/strace_run.py": (3, MADE),
    "etrace/rules/declared.py": (1, TRUSTED),
    "etrace/cli/early.py": (2, KERNEL),
    "etrace/cli/ending.py": (1, KERNEL),
    "etrace/cli/etrace/import_.py": (1, NAMED),
    "etrace/cli/serve/app.py": (1, PROGRAM),
    "etrace/cli/serve/live.py": (1, MADE),
    "etrace/cli/serve/worker.py": (5, KERNEL),
    "etrace/cli/show/output.py": (1, MADE),
    "etrace/cli/show/shapes.py": (1, NO_FILE),
    "etrace/cli/top/rows.py": (1, KERNEL),
    "etrace/cli/top/running.py": (1, TRACE),
    "etrace/compilers/own.py": (1, TRUSTED),
    "etrace/compilers/tools.py": (1, PROGRAM),
    "etrace/export/merging.py": (1, FOLDER),
    "etrace/export/sbom/contents.py": (1, HASHED),
    "etrace/export/sbom/licences.py": (1, PROGRAM),
    "etrace/fleet/duck.py": (1, FLEET),
    "etrace/fleet/keeping.py": (1, FLEET),
    "etrace/fleet/questions.py": (1, PROGRAM),
    "etrace/fleet/store.py": (8, FLEET),
    "etrace/fleet/unfolding.py": (2, FLEET),
    "etrace/imports/strace/calls.py": (4, NO_FILE),
    "etrace/imports/strace/sources.py": (1, NAMED),
    "etrace/nfsdb/above.py": (4, FOLDER),
    "etrace/nfsdb/hashing.py": (4, HASHED),
    "etrace/nfsdb/marks.py": (3, OWN),
    "etrace/origin/rpm.py": (1, SQLITE),
    "etrace/parse/inputs.py": (3, NAMED),
    "etrace/parse/unpacking.py": (2, NAMED),
    "etrace/query/diagnosis.py": (1, PROGRAM),
    "etrace/render.py": (2, PROGRAM),
    "etrace/report/page.py": (1, PROGRAM),
    "etrace/sandbox/programs.py": (1, TRUSTED),
    "etrace/sandbox/run.py": (1, FOLDER),
    "etrace/service/caller.py": (3, KERNEL),
    "etrace/spec/builders.py": (1, PROGRAM),
    "etrace/spec/database.py": (1, PROGRAM),
    "etrace/redaction/commands.py": (1, PROGRAM),
    "etrace/redaction/names.py": (1, PROGRAM),
    "etrace/redaction/tokens.py": (1, PROGRAM),
    "etrace/spec/model.py": (1, PROGRAM),
    "etrace/spec/suffixes.py": (1, PROGRAM),
    "etrace/spec/syscalls.py": (1, PROGRAM),
    "etrace/xray/elf/demangle.py": (1, KERNEL),
    "etrace/xray/session.py": (2, NO_FILE),
    "etrace/xray/source.py": (2, NAMED),
    "etrace/xray/stacks.py": (1, PROGRAM),
}  # fmt: skip


def opened(path: Path) -> Iterator[int]:
    """Yield the lines of a module that open files otherwise than by the reader."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name):
            is_open = called.id in ("open", "ParquetFile", "memmap")
        elif isinstance(called, ast.Attribute):
            of = called.value.id if isinstance(called.value, ast.Name) else ""
            is_open = called.attr in METHODS or (of in MODULES and called.attr in OPENS)
        else:
            continue
        first = node.args[0] if node.args else None
        by_reader = isinstance(first, ast.Call) and "open_regular" in ast.unparse(first.func)
        if is_open and not by_reader:
            yield node.lineno


def found() -> Counter[str]:
    """Return how many places of each module open a file."""
    return Counter({
        name: n
        for root in ("etrace", "cython/libetrace")
        for path in sorted((TOP / root).rglob("*.py"))
        if (n := len(list(opened(path)))) and (name := str(path.relative_to(TOP))) != READER
    })  # fmt: skip


def test_every_place_that_opens_a_file_is_listed() -> None:
    listed = {name: n for name, (n, _) in LISTED.items()}
    new = {name: n for name, n in found().items() if listed.get(name) != n}
    assert new == {}, "use read_regular() or open_regular(), or say here whose file it is"
    assert listed.keys() - found().keys() == set()
