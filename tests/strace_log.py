# SPDX-License-Identifier: Apache-2.0
"""What strace saw, as the same short tuples that `from_trace` makes of event lines.

strace writes one file per task (-ff), every string as hex (-xx), numbers raw (-X raw) and the path
of each descriptor (-y): strace(1). A tuple says what both tools know for sure: of renames,
links and symlinks the last names, for the oracle does not resolve directories.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from trace_lines import Event, Line, Trace, events

from etrace.spec import syscalls

Fact = tuple[object, ...]
Tasks = dict[str, list[Fact]]
#: working directory and argv of a program that was started
Call = tuple[bytes, list[bytes]]

NOT_COMPARED = {"exit", "exit_group", "fchdir"}
CALLS = ",".join(
    f"?{name}" for name in syscalls.load().of_strace("always") if name not in NOT_COMPARED
)
OPTIONS = ["-ff", "--seccomp-bpf", "-q", "-s", "200000", "-v", "-xx", "-X", "raw", "-y"]

CALL = re.compile(r"(\w+)\((.*)\) += (-?\w+|\?)(?:<((?:\\x..)*)>)?(\(deleted\))?( .*)?$")
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
FD_PATH = re.compile(r"<(?:\\x..)*>(\(deleted\))?")
ENDED = re.compile(r"\+\+\+ (exited with|killed by) (\w+)")
# fcntl commands, fcntl(2)
DUPFD = {0: 0, 1030: 0o2000000}
CREAT_FLAGS = 0o1101  # O_CREAT|O_WRONLY|O_TRUNC
DUP3_FLAGS = 0o2000000  # O_CLOEXEC
TEMPORARY = re.compile(rb"/(cc|st)[A-Za-z0-9]{6}\b")


def command(prefix: Path, argv: list[str]) -> list[str]:
    """Return the command line that writes `prefix`.PID for each task of `argv`."""
    return ["strace", *OPTIONS, "-e", f"trace={CALLS}", "-o", str(prefix), *argv]


def unhex(text: str) -> bytes:
    """Decode a string that strace printed with -xx."""
    return bytes.fromhex(text.replace("\\x", ""))


def stable(path: bytes) -> bytes:
    """Replace the random part of a compiler's temporary file."""
    return TEMPORARY.sub(rb"/\1XXXXXX", path)


def base(path: bytes) -> bytes:
    """Return the last name of a path."""
    return stable(b"/" + path.rstrip(b"/").rpartition(b"/")[2])


class _Task:
    """One file of strace: calls in order; children are read when their fork is met."""

    def __init__(self, prefix: Path, cwd: bytes, name: str, tasks: Tasks) -> None:
        self.prefix, self.cwd, self.name, self.tasks = prefix, cwd, name, tasks
        self.facts: list[Fact] = []
        self.ran: list[Call] = []
        self.n_children = 0

    def read(self, pid: int) -> None:
        self.tasks[self.name] = self.facts
        for line in self.prefix.with_name(f"{self.prefix.name}.{pid}").read_text().splitlines():
            if ended := ENDED.match(line):
                self.facts.append(("exit", _status(ended[1], ended[2])))
            elif not line.startswith("--- "):  # a signal arrives
                call = CALL.match(line)
                assert call, f"not a call: {line}"
                self.call(call[1], call[2], call[3], call[4])

    def call(self, name: str, args: str, result: str, result_path: str | None) -> None:
        handler: Callable[..., None] | None = getattr(self, f"on_{CALL_KIND.get(name, name)}", None)
        assert handler, f"unknown call {name}"
        handler(name, args, -1 if result == "?" else int(result, 0), unhex(result_path or ""))

    def on_fork(self, name: str, args: str, result: int, path: bytes) -> None:
        if result < 0:
            return
        self.n_children += 1
        child = _Task(self.prefix, self.cwd, f"{self.name}.{self.n_children}", self.tasks)
        self.facts.append(("fork", child.name))
        child.read(result)
        self.ran += child.ran

    def on_exec(self, name: str, args: str, result: int, path: bytes) -> None:
        if result == 0:
            argv = args[args.index("[") : args.index("]")]
            words = [unhex(word) for word in STRING.findall(argv)]
            self.facts.append(("exec", *map(stable, words)))
            self.ran.append((self.cwd, words))

    def on_open(self, name: str, args: str, result: int, path: bytes) -> None:
        if result < 0:
            return
        head, words = self.cwd, FD_PATH.sub("", args).split(", ")
        if name.startswith("openat"):
            directory = re.match(r"-?\d+<((?:\\x..)*)>", args)
            head, words = unhex(directory[1]) if directory else b"", words[1:]
        given = unhex(words[0].strip('"'))
        flags = CREAT_FLAGS if name == "creat" else int(words[1], 0)
        original = given if given.startswith(b"/") else head + b"/" + given
        self.facts.append(("open", stable(original), stable(path), flags, result))

    def on_chdir(self, name: str, args: str, result: int, path: bytes) -> None:
        if result == 0:
            match = STRING.match(args)
            assert match
            given = unhex(match[1])
            self.cwd = given if given.startswith(b"/") else self.cwd + b"/" + given

    def on_close(self, name: str, args: str, result: int, path: bytes) -> None:
        if result == 0:
            self.facts.append(("close", int(FD_PATH.sub("", args))))

    def on_pipe(self, name: str, args: str, result: int, path: bytes) -> None:
        if result == 0:
            fds, _, flags = FD_PATH.sub("", args).partition("]")
            first, second = fds.strip("[").split(", ")
            self.facts.append(("pipe", int(first), int(second), int(flags.strip(", ") or "0", 0)))

    def on_dup(self, name: str, args: str, result: int, path: bytes) -> None:
        words = FD_PATH.sub("", args).split(", ")
        flags = int(words[2], 0) if name == "dup3" else 0
        if result >= 0:
            self.facts.append(("dup", int(words[0]), result, flags))

    def on_fcntl(self, name: str, args: str, result: int, path: bytes) -> None:
        words = FD_PATH.sub("", args).split(", ")
        if result >= 0 and int(words[1], 0) in DUPFD:
            self.facts.append(("dup", int(words[0]), result, DUPFD[int(words[1], 0)]))

    def on_rename(self, name: str, args: str, result: int, path: bytes) -> None:
        kind = "link" if name.startswith("link") else "rename"
        if result < 0:
            self.facts.append((f"{kind} failed",))
        else:
            self.facts.append((kind, *(base(unhex(word)) for word in STRING.findall(args))))

    def on_symlink(self, name: str, args: str, result: int, path: bytes) -> None:
        if result == 0:
            target, link = STRING.findall(args)
            self.facts.append(("symlink", unhex(target), base(unhex(link))))


CALL_KIND = {
    **dict.fromkeys(("clone", "clone3", "fork", "vfork"), "fork"),
    **dict.fromkeys(("execve", "execveat"), "exec"),
    **dict.fromkeys(("open", "openat", "creat"), "open"),
    **dict.fromkeys(("pipe", "pipe2"), "pipe"),
    **dict.fromkeys(("dup", "dup2", "dup3"), "dup"),
    **dict.fromkeys(("fcntl", "fcntl64"), "fcntl"),
    **dict.fromkeys(("rename", "renameat", "renameat2", "link", "linkat"), "rename"),
    **dict.fromkeys(("symlink", "symlinkat"), "symlink"),
}


def _status(how: str, what: str) -> int:
    import signal

    return int(what) if how == "exited with" else 128 + signal.Signals[what].value


def from_strace(prefix: Path, cwd: bytes) -> Tasks:
    """Read the files of one run; tasks are named as in trace_lines."""
    return _read(prefix, cwd).tasks


def calls(prefix: Path, cwd: bytes) -> list[Call]:
    """Return the programs that one run started, task by task."""
    return _read(prefix, cwd).ran


def _read(prefix: Path, cwd: bytes) -> _Task:
    pids = set()
    children = set()
    for file in prefix.parent.glob(f"{prefix.name}.*"):
        pids.add(int(file.suffix[1:]))
        for line in file.read_text().splitlines():
            call = CALL.match(line)
            # `?`: interrupted by a signal, and made again
            if call and CALL_KIND.get(call[1]) == "fork" and call[3] != "?":
                children.add(int(call[3]))
    (root,) = pids - children
    task = _Task(prefix, cwd, "1", {})
    task.read(root)
    return task


def from_trace(trace: Trace, names: dict[int, str]) -> Tasks:
    """Reduce a trace to what strace can show."""
    lines: dict[int, list[Line]] = {upid: [] for upid in names}
    for line in trace.lines:
        if line.upid in lines:
            lines[line.upid].append(line)
    return {name: list(_facts(list(events(lines[upid])), names)) for upid, name in names.items()}


def difference(seen: Tasks, captured: Tasks, name: str) -> str:
    """Return a unified diff of both, from the first exec of the first task on; its first part."""
    diff = difflib.unified_diff(_shown(seen), _shown(captured), "strace", name, lineterm="", n=4)
    return "\n".join(islice(diff, 200))


def _shown(tasks: Tasks) -> list[str]:
    first = next(i for i, fact in enumerate(tasks["1"]) if fact[0] == "exec")
    kept = {**tasks, "1": tasks["1"][first:]}
    return [f"{name}: {fact}" for name in sorted(kept) for fact in kept[name]]


def _facts(task: list[Event], names: dict[int, str]) -> Iterator[Fact]:
    for i, event in enumerate(task):
        if event.tag == "Close" and not _closed_by_exec(task, i):
            yield ("close", event.args["fd"])
        elif event.tag in FACTS:
            yield FACTS[event.tag](event)
        elif event.tag == "SchedFork":
            yield ("fork", names[event.args["pid"]])
        elif event.tag in {"RenameTo", "LinkTo"}:
            kind, data = ("rename", "R") if event.tag == "RenameTo" else ("link", "L")
            yield (kind, base(task[i - 1].strings[f"{data}F"]), base(event.strings[f"{data}T"]))


def _closed_by_exec(task: list[Event], index: int) -> bool:
    """Whether a Close is of the run of Closes that share the stamp of the New_proc that follows."""
    stamp = task[index].time_ns
    for event in task[index:]:
        if event.time_ns != stamp or event.tag not in {"Close", "New_proc"}:
            return False
        if event.tag == "New_proc":
            return True
    return False


def _given_argv(event: Event) -> list[bytes]:
    """Return the arguments as they were given: of a script without what its #! line put before."""
    if event.strings["PI"] == event.strings["PP"]:
        return event.items
    script = base(event.strings["PP"])
    return event.items[[base(item) for item in event.items].index(script) :]


FACTS: dict[str, Callable[[Event], Fact]] = {
    "New_proc": lambda e: ("exec", *map(stable, _given_argv(e))),
    "Open": lambda e: (
        "open",
        stable(e.strings["FO"]),
        stable(e.strings["FN"]),
        e.args["flags"],
        e.args["fd"],
    ),
    "Pipe": lambda e: ("pipe", e.args["fd1"], e.args["fd2"], e.args["flags"]),
    "Dup": lambda e: ("dup", e.args["oldfd"], e.args["newfd"], e.args["flags"]),
    "RenameFailed": lambda e: ("rename failed",),
    "LinkFailed": lambda e: ("link failed",),
    "Symlink": lambda e: ("symlink", e.strings["ST"], base(e.strings["SL"])),
    "Exit": lambda e: ("exit", e.args["status"]),
}
