# SPDX-License-Identifier: Apache-2.0
"""What an input costs grows as its size: CPU, memory and output of each kind, at 1x and 8x.

An input eight times as large may cost 24 times as much, which 64 times of quadratic work exceeds
and which caches and a loaded machine do not. CPU is that of this process and of its children.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import databases
import pytest
from builders import O_CREAT, O_WRONLY, TraceBuilder
from measured import memory_bytes, start_of_memory
from xray.builder import LogBuilder

from etrace.cli.main import cas, etrace
from etrace.parse import responses

TIMES, MOST = 8, 24
#: what costs less is not compared: start-up, imports, noise
FLOOR_SECONDS, FLOOR_BYTES, FLOOR_MEMORY_BYTES = 0.3, 1 << 18, 64 << 20
#: output for each byte of input, beyond the floor
RATIO_MAX = 100
EXPORTS = ("build-spec", "file-access-trace", "compile_commands", "json")
Kind = Callable[[Path, int], list[list[str]]]
CREATE = O_WRONLY | O_CREAT
KINDS: dict[str, tuple[int, Kind]] = {}


def kind(n: int) -> Callable[[Kind], Kind]:
    """Register a kind of input: it makes one of `n` parts in a directory; returns the commands."""

    def register(make: Kind) -> Kind:
        KINDS[make.__name__] = (n, make)
        return make

    return register


def upid(number: int) -> int:
    return number << 22 | number


def parsed(folder: Path, trace: TraceBuilder, *questions: list[str]) -> list[list[str]]:
    (folder / ".nfsdb").write_bytes(trace.trace())
    where = ["--dbdir", str(folder)]
    return [["cas", "parse", "--force", *where], *([*q[:2], *where, *q[2:]] for q in questions)]


# ---- traces ----


@kind(1000)
def chain_of_processes(folder: Path, n: int) -> list[list[str]]:
    trace = TraceBuilder(cwd="/src")
    for i in range(1, n):
        trace.fork(upid(i), upid(i + 1)).exec(upid(i), f"/bin/p{i}")
    return parsed(
        folder, trace, ["cas", "tree"], ["cas", "execs", "--json"], ["cas", "pp"],
        ["etrace", "summary"], ["etrace", "critical-path"], ["etrace", "advise"],
        ["etrace", "timeline", "-o", str(folder / "t")],
        ["etrace", "report", "-o", str(folder / "r")],
    )  # fmt: skip


@kind(1000)
def chain_of_forks(folder: Path, n: int) -> list[list[str]]:
    trace = TraceBuilder(cwd="/src").exec(upid(1), "/bin/sh", ["sh", "x.sh"])
    for i in range(1, n):
        trace.fork(upid(i), upid(i + 1)).use(upid(i + 1), "/src/a.c")
        trace.use(upid(i + 1), f"/src/o{i}.o", flags=O_WRONLY | O_CREAT)
    return parsed(
        folder, trace, ["cas", "pp"], ["cas", "compiled"], ["etrace", "critical-path"],
        ["etrace", "advise"],
        ["etrace", "timeline", "-o", str(folder / "t")],
        ["etrace", "report", "-o", str(folder / "r")],
        *(["cas", "export", what, "-o", str(folder / what)] for what in EXPORTS),
    )  # fmt: skip


@kind(300)
def builds_for_advice(folder: Path, n: int) -> list[list[str]]:
    """Makes inside makes, configure runs inside configure runs, one source compiled n times."""
    trace, last = TraceBuilder(cwd="/src", step_ns=10_000_000), 1
    trace.exec(upid(1), "/usr/bin/make", ["make"])
    for i in range(2, n):
        trace.fork(upid(last), upid(i))
        program = ("make", "sh", "gcc")[i % 3]
        words = ([], ["./configure", "conftest"], ["-c", "a.c", "-o", f"{i}.o"])[i % 3]
        trace.exec(upid(i), f"/usr/bin/{program}", [program, *words])
        trace.use(upid(i), "/src/a.c").use(upid(i), f"/src/{i}.o", flags=O_WRONLY | O_CREAT)
        last = last if program == "gcc" else i
    return parsed(folder, trace, ["cas", "pp"], ["etrace", "advise"])


@kind(1000)
def many_uses_of_one_file(folder: Path, n: int) -> list[list[str]]:
    trace = TraceBuilder(cwd="/src")
    for i in range(2, n):
        trace.fork(upid(1), upid(i)).exec(upid(i), "/bin/p")
        trace.use(upid(i), "/src/a").use(upid(i), "/src/b", flags=O_WRONLY | O_CREAT)
        trace.use(upid(i), "/src/b").use(upid(i), "/src/a", flags=O_WRONLY | O_CREAT)
        trace.exit(upid(i))
    return parsed(
        folder, trace, ["cas", "deps", "/src/b"], ["cas", "rdeps", "/src/a"], ["cas", "procref"],
        ["etrace", "summary"],
    )  # fmt: skip


@kind(1000)
def renames_in_a_row(folder: Path, n: int) -> list[list[str]]:
    trace = TraceBuilder(cwd="/src").exec(upid(1), "/bin/mv")
    trace.use(upid(1), "/src/0", flags=O_WRONLY | O_CREAT)
    for i in range(n):
        trace.rename(upid(1), f"/src/{i}", f"/src/{i + 1}")
    return parsed(folder, trace, ["cas", "deps", f"/src/{n}"], ["etrace", "summary"])


@kind(20_000)
def long_names(folder: Path, n: int) -> list[list[str]]:
    trace = TraceBuilder(cwd="/src").exec(upid(1), "/bin/cc", ["cc", "-c", "[" * n, "a/" * n])
    trace.use(upid(1), "/src/" + "ab" * n)
    return parsed(folder, trace, ["cas", "refs"], ["cas", "pp"], ["cas", "execs", "--json"])


@kind(300)
def programs_that_cas_pp_looks_at(folder: Path, n: int) -> list[list[str]]:
    """Shells, makes and compilers, each in the one before, and as many side by side."""
    trace = TraceBuilder(cwd="/src")
    for i in range(1, 4 * n, 4):
        for k, line in enumerate(("sh -c make", "make x", "gcc -c a.c -o a.o", "cc1 a.c")):
            argv = line.split()
            at = upid(i + k)
            trace.fork(upid(max(i + k - 1, 1)), at).exec(at, f"/bin/{argv[0]}", argv)
            trace.use(at, "/src/a.c").use(at, f"/src/{i + k}.o", flags=O_WRONLY | O_CREAT)
    return parsed(
        folder, trace, ["cas", "pp"], ["cas", "commands", "--targets"], ["cas", "compiled"],
        ["cas", "commands", "--target", "x"], ["cas", "commands", "--generate"],
        ["cas", "linked_modules"], ["cas", "revcomps_for"], ["cas", "includes"],
        ["cas", "compilation_info_for", "--json"], ["cas", "deps", f"/src/{4 * n}.o"],
        *(["cas", "export", what, "-o", str(folder / what)] for what in EXPORTS),
    )  # fmt: skip


@kind(1500)
def forks_of_many_arguments(folder: Path, n: int) -> list[list[str]]:
    """n forks that execute nothing, of a process with n arguments."""
    trace = TraceBuilder(cwd="/src").exec(upid(1), "/bin/x", ["x", *(f"a{i}" for i in range(n))])
    for i in range(2, n):
        trace.fork(upid(1), upid(i)).exit(upid(i))
    return parsed(
        folder, trace, ["cas", "execs", "--json"], ["cas", "pp"], ["cas", "tree"],
        *(["cas", "export", what, "-o", str(folder / what)] for what in EXPORTS),
    )  # fmt: skip


@kind(1500)
def forks_of_many_descriptors(folder: Path, n: int) -> list[list[str]]:
    """n processes and threads of one with n open files, each of which executes and closes one."""
    trace = TraceBuilder(cwd="/src").exec(upid(1), "/bin/x")
    for i in range(n):
        trace.open(upid(1), f"/src/{i}", fd=3 + i)
    for i in range(2, n, 2):
        trace.fork(upid(1), upid(i)).close(upid(i), 3 + i).exec(upid(i), "/bin/y").exit(upid(i))
        trace.thread(upid(1), upid(i + 1)).close(upid(i + 1), 3 + i).exit(upid(i + 1))
    return parsed(folder, trace, ["cas", "execs", "--json"], ["cas", "pp"])


@kind(800)
def executions_of_many_descriptors(folder: Path, n: int) -> list[list[str]]:
    trace = TraceBuilder(cwd="/src").exec(upid(1), "/bin/x")
    for i in range(n):
        trace.open(upid(1), f"/src/{i}", fd=3 + i, flags=O_WRONLY | O_CREAT)
    for _ in range(n):
        trace.exec(upid(1), "/bin/x")
    return parsed(folder, trace, ["cas", "execs", "--json"], ["cas", "pp"])


@kind(600)
def forks_of_many_pipes(folder: Path, n: int) -> list[list[str]]:
    trace = TraceBuilder(cwd="/src").exec(upid(1), "/bin/x")
    for i in range(n):
        trace.pipe(upid(1), 3 + 2 * i, 4 + 2 * i)
    for i in range(2, n):
        trace.fork(upid(1), upid(i)).exec(upid(i), "/bin/y").exit(upid(i))
    return parsed(folder, trace, ["cas", "execs", "--json"], ["cas", "pp"])


@kind(1000)
def processes_of_one_pipe(folder: Path, n: int) -> list[list[str]]:
    """Each could write to it, and each could read from it."""
    trace = TraceBuilder(cwd="/src").exec(upid(1), "/bin/x").pipe(upid(1), 3, 4)
    for i in range(2, n):
        trace.fork(upid(1), upid(i)).exec(upid(i), "/bin/y").use(upid(i), f"/src/{i}")
        trace.exit(upid(i))
    return parsed(folder, trace, ["cas", "execs", "--json"], ["cas", "pp"])


@kind(1000)
def processes_of_one_environment(folder: Path, n: int) -> list[list[str]]:
    trace = TraceBuilder(cwd="/src")
    for i in range(1, n):
        trace.fork(upid(1), upid(i + 1)).exec(upid(i), "/bin/x")
    for k in range(20):
        trace.env(f"V{k}=x", *map(upid, range(1, n)))
    return parsed(folder, trace, ["cas", "execs", "--json"], ["cas", "pp"])


@kind(20_000)
def names_of_one_hash(folder: Path, n: int) -> list[list[str]]:
    """Without a secret these eight bytes make the parser's hash forget the next eight."""
    trace = TraceBuilder(cwd="/src").exec(upid(1), "/bin/x")
    for i in range(n):
        trace.use(upid(1), b"/d\xbdxd\x1dv\xa0" + b"%08d" % i + b"/end.of.it")
    return parsed(folder, trace)


# ---- builds by make ----


def made(folder: Path, rules: str, uses: dict[str, list[str]], first: str = "") -> list[list[str]]:
    """Trace a make whose recipes use files, `>` before those that they write; check its rules.

    `first` is a command that each recipe runs in a line of its own before.
    """
    (folder / "Makefile").write_text(rules)
    trace = TraceBuilder(cwd=str(folder)).exec(upid(1), "/usr/bin/make", ["make"])
    for number, files in enumerate(uses.values(), 2):
        if first:
            words, line = first.split(), upid(number + len(uses))
            trace.fork(upid(1), line).exec(line, f"/bin/{words[0]}", words).exit(line)
        trace.fork(upid(1), upid(number)).exec(upid(number), "/bin/sh", ["sh", "-c", "x"])
        for name in files:
            written = name.startswith(">")
            path = folder / name.removeprefix(">")
            path.parent.mkdir(exist_ok=True)
            path.touch()
            flags = O_WRONLY | O_CREAT if written else 0
            trace.use(upid(number), str(path), flags=flags)
        trace.exit(upid(number))
    return parsed(folder, trace.exit(upid(1)), ["cas", "pp"], ["etrace", "check", "--trust"])


@kind(250)
def recipes_that_write_one_log(folder: Path, n: int) -> list[list[str]]:
    """All write it; some read it too, and every second one is after the one before it."""
    names = [f"t{at}" for at in range(n)]
    rules = f"all: {' '.join(names)}\n" + "".join(
        f"{name}: src {names[at - 1] if at % 2 else ''}\n\tx\n" for at, name in enumerate(names)
    )
    return made(folder, rules, {name: ["src", "log", ">log", f">{name}"] for name in names})


@kind(250)
def recipes_in_a_row(folder: Path, n: int) -> list[list[str]]:
    names = [f"t{at}" for at in range(n)]
    rules = f"all: {names[-1]}\nt0: src\n\tx\n" + "".join(
        f"{name}: {before}\n\tx\n" for before, name in pairwise(names)
    )
    uses = {name: [before, "src", ">log", f">{name}"] for before, name in pairwise(names)}
    return made(folder, rules, {"t0": ["src", ">t0"], **uses})


@kind(250)
def recipes_with_a_fault_each(folder: Path, n: int) -> list[list[str]]:
    names = [f"t{at}" for at in range(n)]
    rules = f"all: {' '.join(names)}\n" + "".join(f"{name}: src\n\tx\n" for name in names)
    uses = {
        name: ["src", f"h{at}", f"t{at - 1}" if at else "src", f">{name}", f">beside{at}"]
        for at, name in enumerate(names)
    }
    return made(folder, rules, uses)


@kind(250)
def recipes_that_make_one_directory(folder: Path, n: int) -> list[list[str]]:
    names = [f"t{at}" for at in range(n)]
    rules = f"all: {' '.join(names)}\n"
    rules += "".join(f"{name}: src\n\tmkdir -p out\n\tx\n" for name in names)
    uses = {name: ["src", f">out/{name}", f">{name}"] for name in names}
    return made(folder, rules, uses, "mkdir -p out")


@kind(250)
def makes_within_makes(folder: Path, n: int) -> list[list[str]]:
    (folder / "Makefile").write_text("t: src\n\tmake\n")
    trace = TraceBuilder(cwd=str(folder)).exec(upid(1), "/usr/bin/make", ["make"])
    for name in ("src", "t", "log"):
        (folder / name).touch()
    for at in range(1, 2 * n, 2):
        trace.fork(upid(at), upid(at + 1)).exec(upid(at + 1), "/bin/sh", ["sh", "-c", "make"])
        for name, flags in (("src", 0), ("t", CREATE), ("log", CREATE)):
            trace.use(upid(at + 1), str(folder / name), flags=flags)
        trace.fork(upid(at + 1), upid(at + 2)).exec(upid(at + 2), "/usr/bin/make", ["make"])
    return parsed(folder, trace, ["cas", "pp"], ["etrace", "check", "--trust", "--all"])


@kind(1000)
def objects_of_one_program(folder: Path, n: int) -> list[list[str]]:
    for name in ("a", "b"):
        trace = TraceBuilder(cwd="/src").exec(upid(1), "/usr/bin/make", ["make"])
        for at in range(2, n):
            words = ["gcc", "-c", f"{at}.c", "-o", f"{at}.o"]
            trace.fork(upid(1), upid(at)).exec(upid(at), "/usr/bin/gcc", words)
            trace.use(upid(at), f"/src/{at}.c").use(upid(at), f"/src/{at}.o", flags=CREATE)
        trace.fork(upid(1), upid(n)).exec(upid(n), "/usr/bin/ld", ["ld", "-o", "app"])
        for at in range(2, n):
            trace.use(upid(n), f"/src/{at}.o")
        trace.use(upid(n), "/src/app", flags=CREATE)
        (folder / name).mkdir()
        (folder / name / ".nfsdb").write_bytes(trace.trace())
    builds = [str(folder / name) for name in ("a", "b")]
    return [
        *(["cas", "parse", "--force", "--dbdir", each] for each in builds),
        *(["cas", "pp", "--dbdir", each] for each in builds), ["etrace", "why-rebuilt", *builds],
    ]  # fmt: skip


# ---- JSON and files beside a database ----


@kind(10_000)
def brackets_of_json(folder: Path, n: int) -> list[list[str]]:
    for name in (".nfsdb.json", ".nfsdb.env.json", ".bas_config", ".nfsdb.stats"):
        (folder / name).write_text("[" * n)
    return [["cas", "cache", "--dbdir", str(folder)]]


@kind(2000)
def patterns_of_a_configuration(folder: Path, n: int) -> list[list[str]]:
    databases.write_database(folder)
    globs = [f"{'[' * 16}*[[:alpha:]]*[xy]abcd{i}" for i in range(n)]
    config = {
        "dependency_exclude_patterns": globs,
        "exclude_command_variants": {"*": globs, **{glob: [] for glob in globs}},
    }
    (folder / ".bas_config").write_text(json.dumps(config)[: 1 << 20])
    return [["cas", "deps", "--dbdir", str(folder), "/src/hello"]]


@kind(2000)
def words_of_a_question(folder: Path, n: int) -> list[list[str]]:
    databases.write_database(folder)
    where = ["--dbdir", str(folder)]
    return [
        ["cas", "deps", *where, "[" * n], ["cas", "deps", *where, "/src/" + "hel" * n],
        ["cas", "refs", *where, "--filter", "or".join(["[path=a,type=wc]"] * n)],
        ["cas", "refs", *where, "--filter", "[path=" + "[" * n], ["cas", "h" * n, *where],
        ["cas", "refs", *where, "--fmt", "{filename" * n], ["cas", "execs", "--pid=" + "1" * n],
        ["cas", "compiled", *where, "[" * n], ["cas", "compiled", *where, "*a" * n],
        ["cas", "deps", *where, "/src/hello", "--exclude", "[" * n],
    ]  # fmt: skip


# ---- logs of other tools ----


@kind(3000)
def lines_of_strace(folder: Path, n: int) -> list[list[str]]:
    log = folder / "log"
    lines = ['1 execve("/bin/sh", ["sh"], 0x7ffd /* 1 var */) = 0']
    lines += ['1 openat(AT_FDCWD, "b", O_RDONLY) = 3', "1 close(3) = 0"] * n
    lines += ["1 read(3,  <unfinished ...>", '1 <... read resumed>"", 1) = 0'] * n
    log.write_text("\n".join(lines) + "\n")
    return [["etrace", "import", "strace", str(log), "--cwd", "/", "-o", str(folder)]]


@kind(1000)
def blocks_of_an_access_trace(folder: Path, n: int) -> list[list[str]]:
    """What the export of a database writes is read again."""
    trace = TraceBuilder(cwd="/src").exec(upid(1), "/bin/p")
    for i in range(n):
        trace.use(upid(1), f"/src/{i}")
    commands = parsed(folder, trace)
    log = str(folder / "log")
    return [
        *commands, ["cas", "export", "file-access-trace", "--dbdir", str(folder), "-o", log],
        ["etrace", "import", "file-access-trace", log, "-o", str(folder)],
        ["cas", "parse", "--force", "--dbdir", str(folder)],
    ]  # fmt: skip


@kind(3000)
def nested_calls_of_xray(folder: Path, n: int) -> list[list[str]]:
    log = LogBuilder(buffer_bytes=1 << 24).thread(1).cpu(0, 1000)
    for i in range(n):
        log.enter(i % 50 + 1, 10)
    for i in reversed(range(n)):
        log.exit(i % 50 + 1, 10)
    path = folder / "log"
    path.write_bytes(log.build())
    return [
        ["etrace", "xray", "account", str(path)], ["etrace", "xray", "stack", str(path)],
        ["etrace", "xray", "flame", str(path), "-o", str(folder / "f")],
        ["etrace", "xray", "graph", str(path)], ["etrace", "xray", "convert", str(path)],
        ["etrace", "xray", "convert", "-f", "folded", str(path)],
    ]  # fmt: skip


# ---- the comparison ----


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """Keep the garbage collector from walking through all that pytest holds, in any command."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def costs(folder: Path, make: Kind, n: int) -> Iterator[tuple[str, float, int, int, int]]:
    """Yield (command, seconds, bytes of output, bytes of input, bytes of memory) of each."""
    folder.mkdir()
    commands = make(folder, n)
    n_input = sum(sizes(folder).values()) + sum(len(word) for c in commands for word in c)
    for number, words in enumerate(commands):
        before, printed, began = sizes(folder), io.TextIOWrapper(io.BytesIO()), cpu_seconds()
        rss_bytes = start_of_memory()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            with contextlib.suppress(SystemExit):
                (cas if words[0] == "cas" else etrace)(words[1:])
            printed.flush()
        seconds, after = cpu_seconds() - began, sizes(folder)
        made = sum(size for name, size in after.items() if before.get(name) != size)
        shown = f"{number}: {' '.join(words)[:80]}"
        n_printed = len(printed.buffer.getbuffer())
        yield shown, seconds, made + n_printed, n_input, memory_bytes(b"VmHWM") - rss_bytes


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_large_input_costs_as_its_size(name: str, tmp_path: Path) -> None:
    n, make = KINDS[name]
    with without_collections():
        small = list(costs(tmp_path / "small", make, n))
        large = list(costs(tmp_path / "large", make, n * TIMES))
    for one, many in zip(small, large, strict=True):
        shown, seconds, n_bytes, n_input, n_memory = many
        printed = f"{shown}: {one[1]:.2f} s -> {seconds:.2f} s, {one[2]:,} -> {n_bytes:,} bytes"
        print(printed)
        assert seconds <= MOST * one[1] + FLOOR_SECONDS, printed
        assert n_bytes <= MOST * one[2] + FLOOR_BYTES, printed
        assert n_memory <= MOST * one[4] + FLOOR_MEMORY_BYTES, f"{printed}, {n_memory:,} of memory"
        assert n_bytes <= RATIO_MAX * n_input + FLOOR_BYTES, printed


def test_records_of_response_files_unfold_with_their_size() -> None:
    def cost(n: int) -> tuple[float, int, int]:
        text = b"x" * n
        data = b"etrace response files 1\nfile 1 1 %d\na\n%b\n" % (n, text)
        data += b"same 2 1 0\nb\n" * (n // 13)
        began = time.process_time()
        total = sum(len(content) for _, _, content in responses.read(data))
        return time.process_time() - began, total, len(data)

    (one_s, _, _), (many_s, total, size) = cost(1 << 20), cost(8 << 20)
    assert many_s <= MOST * one_s + FLOOR_SECONDS
    assert total <= RATIO_MAX * size
