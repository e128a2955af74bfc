# SPDX-License-Identifier: Apache-2.0
"""Puts etrace into a kernel's own source tree, takes it back, or writes it as a patch series.

    kernel_tree.py put DEST [--maintainer 'NAME <ADDRESS>']
    kernel_tree.py remove DEST
    kernel_tree.py patches DEST OUT [--maintainer 'NAME <ADDRESS>']

All is worked out before the first file is written; a file that somebody else wrote or changed is
never touched. DEST/.etrace-kernel-tree remembers what was put there. Run again after a change of
either tree: files that are no longer part of it go.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import kernel_files
import kernel_series
from kernel_files import Kernel, KernelTreeError

RECORD = ".etrace-kernel-tree"


@dataclass(slots=True)
class Record:
    """What is in the tree of a kernel by our hand, by path below its root."""

    files: dict[str, str] = field(default_factory=dict)  # digests of new files
    hooks: dict[str, str] = field(default_factory=dict)  # lines in files of the kernel


@dataclass(slots=True)
class Plan:
    """What will be written and removed, by path below the kernel's root."""

    record: Record = field(default_factory=Record)  # afterwards
    write: dict[str, tuple[bytes, int]] = field(default_factory=dict)  # content, mode
    remove: list[str] = field(default_factory=list)
    same: int = 0


def digest(content: bytes) -> str:
    """Return what the record keeps of a file."""
    return hashlib.sha256(content).hexdigest()


def read_record(kernel: Kernel) -> Record:
    """Return what an earlier run put there."""
    path = kernel.root / RECORD
    if not path.exists():
        return Record()
    try:
        return Record(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise KernelTreeError(
            f"{path} is damaged: {error}", "remove it and what etrace put there"
        ) from error


def check_ours(kernel: Kernel, name: str, record: Record, wanted: bytes | None) -> None:
    """Refuse to touch a file that is neither absent, ours, nor already as wanted."""
    path = kernel.root / name
    for folder in path.relative_to(kernel.root).parents:
        if (kernel.root / folder).is_symlink():
            raise KernelTreeError(f"{kernel.root / folder} is a symbolic link")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise KernelTreeError(f"{path} is not a regular file")
    if not path.exists() or (content := path.read_bytes()) == wanted:
        return
    if name not in record.files:
        raise KernelTreeError(f"{path} exists and is not of etrace", "move it away")
    if digest(content) != record.files[name]:
        raise KernelTreeError(
            f"{path} was changed since etrace put it there",
            "bring the change into etrace's own tree, or remove the file",
        )


def plan_put(kernel: Kernel, maintainer: str) -> Plan:
    """Work out what `put` does."""
    old = read_record(kernel)
    files = kernel_files.files(kernel)
    hooks = kernel_files.hooks(maintainer)
    plan = Plan(
        Record(
            {name: digest(file.content) for name, file in files.items()},
            {hook.path: hook.lines for hook in hooks},
        )
    )
    for name, file in files.items():
        check_ours(kernel, name, old, file.content)
        _want(kernel, plan, name, file.content, file.mode)
    for name in old.files.keys() - files.keys():
        check_ours(kernel, name, old, None)
        plan.remove.append(name)
    for hook in hooks:
        text = _read(kernel, hook.path)
        if old.hooks.get(hook.path, hook.lines) != hook.lines:
            text = text.replace(old.hooks[hook.path], "", 1)
        _want(kernel, plan, hook.path, hook.put(text).encode(), None)
    return plan


def plan_remove(kernel: Kernel) -> Plan:
    """Work out what `remove` does."""
    old = read_record(kernel)
    if not old.files:
        raise KernelTreeError(f"{kernel.root} has nothing of etrace: no {RECORD}")
    plan = Plan(remove=sorted(old.files))
    for name in old.files:
        check_ours(kernel, name, old, None)
    for path, lines in old.hooks.items():
        _want(kernel, plan, path, _read(kernel, path).replace(lines, "", 1).encode(), None)
    return plan


def _read(kernel: Kernel, name: str) -> str:
    path = kernel.root / name
    if not path.is_file() or path.is_symlink():
        raise KernelTreeError(f"{path} is missing", "is the tree whole?")
    return path.read_text()


def _want(kernel: Kernel, plan: Plan, name: str, content: bytes, mode: int | None) -> None:
    path = kernel.root / name
    if path.exists() and path.read_bytes() == content:
        plan.same += 1
        return
    plan.write[name] = (content, path.stat().st_mode & 0o777 if mode is None else mode)


def carry_out(kernel: Kernel, plan: Plan) -> None:
    """Write and remove; the record goes first, so that an interrupted run can be taken back."""
    old = read_record(kernel)
    if plan.record.files:
        _write_record(kernel, Record(old.files | plan.record.files, plan.record.hooks))
    for name, (content, mode) in plan.write.items():
        write(kernel.root / name, content, mode)
    for name in plan.remove:
        path = kernel.root / name
        path.unlink(missing_ok=True)
        _remove_empty(path.parent, kernel.root)
    if plan.record.files:
        _write_record(kernel, plan.record)
    else:
        (kernel.root / RECORD).unlink()


def _write_record(kernel: Kernel, record: Record) -> None:
    text = json.dumps(asdict(record), indent=1) + "\n"
    write(kernel.root / RECORD, text.encode(), 0o644)


def write(path: Path, content: bytes, mode: int) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.etrace-part")
    part.write_bytes(content)
    part.chmod(mode)
    part.replace(path)


def _remove_empty(folder: Path, root: Path) -> None:
    while folder != root and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def summary(plan: Plan) -> str:
    """Return in one line per folder what a plan did."""
    if not plan.write and not plan.remove:
        return f"nothing to do: {plan.same} files are as they should be"
    lines = []
    for word, names in (("wrote", plan.write), ("removed", plan.remove)):
        folders: dict[str, int] = {}
        for name in names:
            folder, slash, _ = name.rpartition("/")
            folders[folder + slash] = folders.get(folder + slash, 0) + 1
        lines += [
            f"{word} {n} file{'s' if n > 1 else ''} in {folder or '.'}"
            for folder, n in sorted(folders.items())
        ]
    return "\n".join(lines)


def git_identity() -> str:
    """Return whom git would name as the author."""
    words = []
    for key in ("user.name", "user.email"):
        done = subprocess.run(
            ["git", "config", key], capture_output=True, text=True, check=False, cwd="/"
        )
        words.append(done.stdout.strip())
    if not all(words):
        raise KernelTreeError(
            "nobody is named as maintainer",
            "give MAINTAINER='Name <address>', or set git's user.name and user.email",
        )
    return f"{words[0]} <{words[1]}>"


def put(kernel: Kernel, maintainer: str) -> None:
    """Put etrace there, or bring it up to date."""
    plan = plan_put(kernel, maintainer)
    carry_out(kernel, plan)
    print(summary(plan))
    if kernel.version > kernel_files.NEWEST_TESTED:
        version = ".".join(map(str, kernel.version))
        print(f"etrace was not tried in Linux {version}: please report how it went")
    if plan.write:
        print("next: make menuconfig (Kernel hacking, Tracers, Event lines of a process tree)")


def remove(kernel: Kernel) -> None:
    """Take it back."""
    plan = plan_remove(kernel)
    carry_out(kernel, plan)
    print(summary(plan))


def patches(kernel: Kernel, out: Path, maintainer: str) -> None:
    """Write the series for the kernel without etrace."""
    if read_record(kernel).files:
        raise KernelTreeError(
            f"{kernel.root} has etrace already: a series is made for a tree without",
            f"make kernel-tree-remove DEST={kernel.root}",
        )
    for path in kernel_series.write(kernel, out, maintainer):
        print(path)


def read_arguments(words: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="kernel_tree.py", description=str(__doc__).partition("\n")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("put", "remove", "patches"):
        command = commands.add_parser(name)
        command.add_argument("dest", type=Path, metavar="DEST", help="root of the kernel's tree")
        if name == "patches":
            command.add_argument("out", type=Path, metavar="OUT", help="folder for the series")
        if name != "remove":
            command.add_argument("--maintainer", default="", help="for MAINTAINERS and patches")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    """Run as a program; see the head of this file."""
    arguments = read_arguments(words)
    try:
        kernel = kernel_files.read_kernel(arguments.dest)
        if arguments.command == "remove":
            remove(kernel)
        elif arguments.command == "put":
            put(kernel, arguments.maintainer or git_identity())
        else:
            patches(kernel, arguments.out, arguments.maintainer or git_identity())
    except KernelTreeError as error:
        print(f"kernel_tree.py: {error}", file=sys.stderr)
        if error.hint:
            print(f"  hint: {error.hint}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"kernel_tree.py: {error}", file=sys.stderr)
        return 1
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
