# SPDX-License-Identifier: Apache-2.0
"""The preload backend: every way to start a program, whatever happens to it, and what it misses."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import trace_lines
from backends import PRELOAD, PTRACE, Captured, capture, need_root, need_tool
from event_programs import DATA, compiled
from failing_calls import forbid

NR_PTRACE, NR_BPF = 101, 321
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}


def etrace() -> str:
    """Path of the command of this environment."""
    return str(Path(sys.executable).with_name("etrace"))


def forbid_ptrace() -> None:
    """Refuse ptrace and bpf to this process and its children, as a container's profile does."""
    forbid(NR_PTRACE, errno.EPERM)
    forbid_bpf()


def forbid_bpf() -> None:
    """Refuse bpf, which auto tries before ptrace."""
    forbid(NR_BPF, errno.EPERM)


def run(folder: Path, *command: str | Path, **options: str) -> Captured:
    stats = folder.with_name("stats")
    return capture(
        command, folder, env=ENV | options, options=["--stats", str(stats)], backend=PRELOAD
    )


def executed(captured: Captured) -> list[list[bytes]]:
    """Return the arguments of every program, in the order of the trace."""
    trace = trace_lines.parse(captured.trace.read_bytes())
    tasks = trace_lines.events_by_task(trace)
    return [event.items for events in tasks for event in events if event.tag == "New_proc"]


def opened(captured: Captured) -> Counter[bytes]:
    trace = trace_lines.parse(captured.trace.read_bytes())
    return Counter(line.data[3:] for line in trace.lines if line.data.startswith(b"FN|"))


def stats(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(folder.with_name("stats").read_text())
    return found


WAYS = (
    *("execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe", "execveat", "fexecve"),
    *("posix_spawn", "posix_spawnp", "system", "popen"),
)


@pytest.mark.parametrize("flags", [(), ("-m32",)], ids=["64", "32"])
def test_every_function_that_starts_a_program_is_seen_with_any_environment(
    flags: tuple[str, ...], folder: Path
) -> None:
    done = run(folder, compiled("spawns", folder, *flags))
    assert (done.status, done.stderr) == (0, b"")
    last = [arguments[-1].decode() for arguments in executed(done)]
    assert Counter(name for name in last if name in WAYS) == Counter(WAYS)
    assert stats(folder)["unseen_executions"] == 0


MODES = {
    "r": os.O_RDONLY,
    "r+": os.O_RDWR,
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "w+": os.O_RDWR | os.O_CREAT | os.O_TRUNC,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "a+": os.O_RDWR | os.O_CREAT | os.O_APPEND,
    "we": os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC,
}


def test_a_mode_of_fopen_is_recorded_as_the_flags_that_libc_makes_of_it(folder: Path) -> None:
    for mode in MODES:
        (folder / mode).touch()
    script = (
        "import ctypes, sys\n"
        "for mode in map(str.encode, sys.argv[1:]): ctypes.CDLL(None).fopen(mode, mode)"
    )
    done = run(folder, sys.executable, "-c", script, *MODES)
    assert done.status == 0
    trace = trace_lines.parse(done.trace.read_bytes())
    events = (event for task in trace_lines.events_by_task(trace) for event in task)
    opens = {os.fsdecode(e.strings["FN"]): e.args["flags"] for e in events if e.tag == "Open"}
    assert {mode: opens[str(folder.resolve() / mode)] for mode in MODES} == MODES


def test_a_script_without_an_interpreter_is_executed_by_the_shell_as_libc_does(
    folder: Path,
) -> None:
    script = folder / "script"
    script.write_text("echo $1\n")
    script.chmod(0o755)
    done = run(folder, "env", script, "said")
    assert (done.status, done.stdout) == (0, b"said\n")
    assert executed(done)[-1][-2:] == [bytes(script), b"said"]


def test_programs_of_both_word_sizes_are_traced_in_one_build(folder: Path) -> None:
    narrow, wide = (compiled("closes_all", folder, flag) for flag in ("-m32", "-m64"))
    script = f"{narrow}; {wide}; env -i {narrow}; LD_PRELOAD= {wide}"
    done = run(folder, "sh", "-c", script)
    assert (done.status, done.stdout, done.stderr) == (0, b"3\n" * 4, b"")
    assert opened(done)[bytes(Path("/etc/hostname").resolve())] == 4
    assert sum(arguments == [b"true"] for arguments in executed(done)) == 4


def preloadable(folder: Path, source: str) -> Path:
    """Build a shared library beside `folder`."""
    library = folder.with_name("other.so")
    command = ["gcc", "-x", "c", "-", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run(command, input=source, text=True, check=True)
    return library


def test_other_preloaded_libraries_stay(folder: Path) -> None:
    library = preloadable(folder, "int getppid(void) { return 12345; }")
    script = "import os; print(os.getppid())"
    # the second for a collector that was built with ASan
    more = {"LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0"}
    outside = run(folder, sys.executable, "-c", script, **more)
    assert outside.stdout == b"12345\n"
    shell = f'LD_PRELOAD={library} exec {sys.executable} -c "{script}"'
    inside = run(folder, "sh", "-c", shell)
    assert inside.stdout == b"12345\n"
    assert any(arguments[-1] == script.encode() for arguments in executed(inside))


#: the parent is slow after its child has begun, as on a loaded machine
LATE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <spawn.h>
#include <unistd.h>
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const *words, char *const *variables)
{
	__typeof__(&posix_spawn) next = dlsym(RTLD_NEXT, "posix_spawn");
	int error = next(pid, path, actions, attributes, words, variables);
	usleep(400000);
	return error;
}
pid_t fork(void)
{
	__typeof__(&fork) next = dlsym(RTLD_NEXT, "fork");
	pid_t pid = next();
	usleep(pid ? 400000 : 0);
	return pid;
}
"""
STARTS = """
import os
def spawn(*words):
    return os.posix_spawn("/bin/" + words[0], words, os.environ)
def fork(*words):
    return os.fork() or os.execv("/bin/" + words[0], words)
for start in spawn, fork:
    os.waitpid(start("true", start.__name__), 0)  # has ended before its parent goes on
    os.waitpid(start("sleep", "0.8"), 0)  # not yet
"""


def test_what_a_parent_records_late_gives_no_second_program(folder: Path) -> None:
    library = preloadable(folder, LATE)
    shell = 'LD_PRELOAD=$LD_PRELOAD:$0 exec "$@"'  # its functions are called by etrace's
    done = run(folder, "sh", "-c", shell, library, sys.executable, "-c", STARTS)
    words = [[b"true", b"spawn"], [b"sleep", b"0.8"], [b"true", b"fork"], [b"sleep", b"0.8"]]
    assert executed(done)[2:] == words
    assert stats(folder)["processes"] == 1 + len(words)
    data = [line.data for line in trace_lines.parse(done.trace.read_bytes()).lines]
    assert [line for line in data if line.startswith(b"Exit|")] == [b"Exit|status=0"] * 5


def test_a_static_program_is_reported_once_with_what_it_started(folder: Path) -> None:
    program = compiled("spawns", folder, "-static")
    done = run(folder, "sh", "-c", f"{program}; {program}; exit 5")
    assert done.status == 5
    assert done.stderr.decode() == (
        f"etrace: 2 executions were of static programs: {program}; what they opened is not in the"
        " trace\n"
    )
    found = executed(done)
    assert found.count([bytes(program)]) == 2
    assert sum(arguments[-1] == b"execv" for arguments in found) == 2  # it handed on the variables
    assert stats(folder)["unseen_executions"] == 2


#: its child executes a program once the collector has adopted it
LEAVES_A_CHILD = """
#include <unistd.h>
int main(void)
{
	pid_t parent = getpid();
	if (fork() == 0) {
		while (getppid() == parent)
			usleep(1000);
		execl("/bin/true", "true", "adopted", (char *)0);
	}
	return 0;
}
"""


def test_the_collector_is_no_parent_of_what_it_adopts(folder: Path) -> None:
    program = folder.with_name("leaves_a_child")
    command = ["gcc", "-x", "c", "-", "-static", "-o", str(program)]
    subprocess.run(command, input=LEAVES_A_CHILD, text=True, check=True)
    done = run(folder, "sh", "-c", f"{program} | cat")  # which waits for the child
    assert [b"true", b"adopted"] in executed(done)
    assert (stats(folder)["processes"], stats(folder)["orphans"]) == (4, 1)


def test_a_command_that_is_static_itself_is_in_the_trace(folder: Path) -> None:
    program = compiled("closes_all", folder, "-static")
    done = run(folder, program)
    assert (done.status, executed(done)[0]) == (0, [bytes(program)])
    data = [line.data for line in trace_lines.parse(done.trace.read_bytes()).lines]
    assert data[-1] == b"Exit|status=0"


@pytest.mark.root
def test_a_set_user_id_program_keeps_its_rights_and_is_reported(folder: Path) -> None:
    need_root()
    program = folder / "whoami"
    subprocess.run(["cp", need_tool("id", "coreutils"), program], check=True)
    os.chown(program, 1, 1)
    program.chmod(0o4755)
    done = run(folder, program, "-u")
    assert done.stdout == b"1\n"
    assert b"1 execution was of set-user-ID programs: " + bytes(program) in done.stderr


def test_a_program_of_musl_is_reported_as_missing_with_what_it_started(folder: Path) -> None:
    """Its dynamic linker does not know $PLATFORM."""
    need_tool("musl-gcc", "musl-tools")
    program = folder.with_name("musl")
    words = ["musl-gcc", "-O1", "-pthread", "-o", str(program), str(DATA / "closes_all.c")]
    subprocess.run(words, check=True)
    done = run(folder, "sh", "-c", f"{program}; exit 4")
    assert done.status == 4
    assert done.stderr.decode() == (
        f"etrace: 1 execution was of programs that did not load the library: {program};"
        " what they opened is not in the trace\n"
    )
    found = executed(done)
    assert [bytes(program)] in found
    assert [b"true"] in found


def test_a_build_under_fakeroot_keeps_both_libraries(folder: Path) -> None:
    need_tool("gcc", "gcc")
    (folder / "x.c").write_text("int main(void) { return 0; }\n")
    libraries = "grep -q libfakeroot /proc/self/maps && grep -q libetrace /proc/self/maps"
    script = f"id -u && gcc -o x x.c && chown 12:34 x && stat -c %u:%g x && {libraries}"
    words = [
        etrace(),
        "run",
        "-q",
        "--backend",
        "preload",
        "--",
        need_tool("fakeroot", "fakeroot"),
        "sh",
        "-c",
    ]
    done = subprocess.run([*words, script], cwd=folder, env=ENV, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"0\n12:34\n", b"")
    lines = [line.data for line in trace_lines.parse((folder / ".nfsdb").read_bytes()).lines]
    assert b"FN|" + bytes(folder / "x.c") in lines
    assert b"A[0]stat" in lines


def test_the_end_of_a_killed_child_comes_from_its_parent(folder: Path) -> None:
    done = run(folder, "sh", "-c", "sh -c 'kill -9 $$'; sh -c 'exit 7'; true")
    data = [line.data for line in trace_lines.parse(done.trace.read_bytes()).lines]
    exits = [line for line in data if line.startswith(b"Exit|")]
    assert exits == [b"Exit|status=137", b"Exit|status=7", b"Exit|status=0"]


def test_a_handler_that_opens_files_meets_no_record_that_is_being_written(folder: Path) -> None:
    done = run(folder, compiled("in_handler", folder), "3000")
    assert (done.status, done.stderr) == (0, b"")
    found = opened(done)
    assert found[b"/etc/group"] == 3000
    assert found[b"/etc/passwd"] == int(done.stdout)


def test_threads_lose_no_event(folder: Path) -> None:
    done = run(folder, compiled("thread_storm", folder), "6", "500")
    assert (done.status, done.stderr) == (0, b"")
    assert [opened(done)[bytes(folder / f"t{n}")] for n in range(6)] == [500] * 6


def test_long_arguments_and_an_environment_go_through_many_chunks(folder: Path) -> None:
    arguments = [str(n) * 1000 for n in range(100, 300)]
    done = run(folder, "true", *arguments, LONG="x" * 100_000)
    assert executed(done) == [[word.encode() for word in ("true", *arguments)]]


def test_the_build_goes_on_without_its_collector(folder: Path) -> None:
    trace = folder.with_name("trace")
    script = "read go; cat /etc/passwd >copy; env -i /bin/true && echo built"
    command = PRELOAD.command(trace, ["sh", "-c", f"echo ready; {script}"], [])
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.read() == "built\n"
    assert (folder / "copy").read_bytes() == Path("/etc/passwd").read_bytes()


def test_a_program_with_address_sanitizer_runs(folder: Path) -> None:
    program = compiled("closes_all", folder, "-fsanitize=address")
    done = run(folder, program, ASAN_OPTIONS="detect_leaks=1")
    assert (done.status, done.stdout, done.stderr) == (0, b"3\n", b"")


def test_a_folder_whose_name_separates_libraries_is_reached(folder: Path) -> None:
    place = folder.with_name("a b:c $d")
    place.mkdir()
    need_tool("cp", "coreutils")
    subprocess.run(
        ["cp", "-r", PRELOAD.path(), PRELOAD.path().with_name("preload"), place], check=True
    )
    done = capture(
        ["sh", "-c", "/bin/true; :"], folder, env=ENV, backend=PRELOAD.of(place / PRELOAD.program)
    )
    assert (done.status, done.stderr) == (0, b"")
    assert [b"/bin/true"] in executed(done)
    assert not list(Path("/tmp").glob("etrace-preload-??????/preload"))


def test_a_library_that_is_missing_is_named(folder: Path) -> None:
    alone = Path(subprocess.check_output(["mktemp", "-d"], cwd=folder, text=True).strip())
    subprocess.run(["cp", PRELOAD.path(), alone], check=True)
    done = capture(["true"], folder, backend=PRELOAD.of(alone / PRELOAD.program))
    assert done.status == 125
    assert b"libetrace-" in done.stderr
    assert b"not installed" in done.stderr


def test_where_ptrace_is_refused_auto_takes_it_and_says_what_it_misses(folder: Path) -> None:
    command = [etrace(), "run", "--", "sh", "-c", "/bin/true; exit 3"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, preexec_fn=forbid_ptrace, check=False
    )
    assert done.returncode == 3
    said = done.stderr.decode()
    assert "ptrace was refused: Operation not permitted" in said
    assert "preload is used instead: it misses static programs" in said
    trace = trace_lines.parse((folder / ".nfsdb").read_bytes())
    assert trace.program(b"/usr/bin/true")
    assert json.loads((folder / ".nfsdb.stats").read_text())["backend"] == "preload"


def test_inside_another_tracer_auto_takes_it(folder: Path) -> None:
    inner = [etrace(), "run", "-o", str(folder / "inner"), "--", "/bin/true"]
    outer = [
        etrace(),
        "run",
        "--backend",
        "ptrace",
        "-q",
        "-o",
        str(folder / "outer"),
        "--",
        *inner,
    ]
    done = subprocess.run(
        outer, cwd=folder, capture_output=True, preexec_fn=forbid_bpf, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"traced by process" in done.stderr
    for name in ("inner", "outer"):
        trace = trace_lines.parse((folder / name / ".nfsdb").read_bytes())
        assert trace.program(b"/usr/bin/true")


def test_the_backend_that_was_named_is_not_replaced(folder: Path) -> None:
    command = [etrace(), "run", "--backend", "ptrace", "--", "touch", "ran"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, preexec_fn=forbid_ptrace, check=False
    )
    assert (done.returncode, (folder / "ran").exists()) == (125, False)


SCRIBBLE = """
import mmap, os, random, struct, sys
fd = os.open(os.environ["ETRACE_PRELOAD"].partition(":")[0], os.O_RDWR)
memory = mmap.mmap(fd, os.fstat(fd).st_size)
at = random.Random(int(sys.argv[1]))
first = 32  # the table of chunks: state, writer, bytes, unused
begin = (first + 4096 * 16 + 4095) // 4096 * 4096
for chunk in range(100, 200):
    place = begin + chunk * 8192
    memory[place : place + 256] = at.randbytes(256)
    kind = struct.pack("IHH", at.choice((0, 8, 56, 64, 8192, 1 << 31)), at.randrange(22), 0)
    memory[place : place + 8] = kind
    head = at.choice((55, 56, 200, 8192, 8193, 1 << 31))
    state = struct.pack("IIII", 2, at.randrange(1 << 32), head & 0xFFFFFFFF, 0)
    memory[first + 16 * chunk : first + 16 * chunk + 16] = state
"""


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_written_to_the_shared_memory_is_counted(seed: int, folder: Path) -> None:
    script = folder.with_name("scribble.py")
    script.write_text(SCRIBBLE)
    done = run(folder, "sh", "-c", f"{sys.executable} {script} {seed} && /bin/true && exit 4")
    assert done.status == 4
    assert b"of the shared memory could not be understood: a program has written" in done.stderr
    assert [b"/bin/true"] in executed(done)
    assert isinstance(count := stats(folder)["damaged"], int)
    assert count > 10


def said(folder: Path, options: list[str], command: list[str]) -> bytes:
    """Return what `etrace run` says when it captures a command with the library."""
    words = [etrace(), "run", "--backend", "preload", *options, "--", *command]
    done = subprocess.run(words, cwd=folder, env=ENV, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_mounts_that_cannot_be_recorded_are_reported(folder: Path) -> None:
    message = b"--mounts: the preload backend does not record them"
    assert message in said(folder, ["--mounts"], ["true"])
    assert message not in said(folder, [], ["true"])


def test_response_files_of_compilers_without_the_library_are_counted(folder: Path) -> None:
    program = compiled("closes_all", folder, "-static").rename(folder / "gcc")
    (folder / "x.rsp").write_text("-O1\n")
    side = folder / "kept.rsp"
    more = ["--stats", str(folder.with_name("stats")), "--response-files", str(side)]
    capture([program, "@x.rsp"], folder, env=ENV, options=more, backend=PRELOAD)
    counts = stats(folder)
    assert (counts["response_files"], counts["missed_response_files"]) == (0, 1)
    assert not side.exists()


def test_what_libc_does_in_a_child_before_it_executes_is_missing_and_nothing_else(
    folder: Path,
) -> None:
    program = compiled("spawn_actions", folder)
    said: dict[str, Counter[bytes]] = {}
    for backend in (PTRACE, PRELOAD):
        done = capture([program], folder, env=ENV, backend=backend)
        assert (done.status, done.stderr) == (0, b"")
        lines = trace_lines.parse(done.trace.read_bytes()).lines
        events = (line.data for line in lines if line.data.startswith((b"Dup|", b"Pipe|", b"FN|")))
        said[backend.name] = Counter(e for e in events if b"|/" not in e or b"in_child" in e)
        (folder / "in_child").unlink()
    assert said["preload"] == Counter()
    assert said["ptrace"] == Counter(  # docs/capture-preload.md, Limits
        [
            b"FN|" + bytes(folder / "in_child"),
            b"Dup|oldfd=3,newfd=20,flags=0",
            b"Dup|oldfd=20,newfd=21,flags=0",
            b"Pipe|fd1=3,fd2=4,flags=524288",
            b"Dup|oldfd=4,newfd=1,flags=0",
        ]
    )
