# SPDX-License-Identifier: Apache-2.0
"""A tracer that is root looks names up, and reads files, with the rights that the task had then.

Whoever may read the trace must not learn from it what the traced program could not have learnt.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from backends import BPF, PTRACE, Backend, need_root
from trying import until

from etrace.parse import responses

pytestmark = pytest.mark.root
NOBODY, FRIENDS = 65534, 54321
SECRET = b"release-of-client-x"
#: user: nobody, in one more group
AS_NOBODY: list[str | Path] = [
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    f"--groups={FRIENDS}",
    "--",
]
NAMES = Path(__file__).parents[1] / "vm/guest/names.c"
#: `program go-on become FILE`: says ready, waits for a line and executes FILE as `gcc @words`
BECOMES = r"""
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char line[80];
	char *words[] = { "gcc", argv[2], argv[3], NULL };
	if (!strcmp(argv[0], "gcc")) { /* already what the response file is read for */
		if (argc > 2)
			execl(argv[2], "next", "root", NULL);
		return 0;
	}
	if (!strcmp(argv[0], "next"))
		return sleep(2);
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	execv(argv[1], words);
	return 1;
}
"""


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    need_root()
    with tempfile.TemporaryDirectory(prefix="etrace-rights-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for program, source in (("names", NAMES.read_text()), ("becomes", BECOMES)):
            subprocess.run(
                ["cc", "-O2", "-static", "-x", "c", "-", "-o", folder / program],
                input=source, text=True, check=True,
            )  # fmt: skip
        yield folder


@pytest.fixture
def place(programs: Path) -> Iterator[Path]:
    """Return a folder of this test that nobody may write to."""
    with tempfile.TemporaryDirectory(dir=programs) as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "work").mkdir()
        os.chown(folder / "work", NOBODY, NOBODY)
        yield folder


@pytest.fixture(params=[PTRACE, BPF], ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.param
    return found


def private(folder: Path, user: int, group: int, mode: int, acl: bytes = b"") -> Path:
    """Make a directory with a link and a file in it, used so that the kernel has them in memory."""
    way = folder / "private"
    inner = way / os.fsdecode(SECRET)
    inner.mkdir(parents=True)
    (way / "current").symlink_to(inner.name)
    (inner / "f").touch()
    if acl:
        os.setxattr(way, "system.posix_acl_access", acl)
    else:
        way.chmod(mode)
    os.chown(way, user, group)
    assert (way / "current" / "f").is_file()
    return way / "current" / "f"


def acl_against(user: int) -> bytes:
    """Return an access list that lets everybody in but one user."""
    everybody = 0xFFFFFFFF
    entries = [(0x01, 7, everybody), (0x02, 0, user), (0x04, 5, everybody), (0x10, 7, everybody)]
    return struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", *entry) for entry in [*entries, (0x20, 5, everybody)]
    )


CLOSED: list[tuple[str, int, int, int, bytes]] = [
    ("of root alone", 0, 0, 0o700, b""),
    ("of a group of others", 0, 0, 0o750, b""),
    ("readable, not searchable", 0, 0, 0o744, b""),
    ("of the user himself, closed", NOBODY, 0, 0o077, b""),
    ("closed to a group of the user", 0, FRIENDS, 0o705, b""),
    ("closed by an access list", 0, 0, 0o755, acl_against(NOBODY)),
]
OPEN = [
    ("of everybody", 0, 0, 0o711),
    ("of the user", NOBODY, 0, 0o100),
    ("of a group of the user", 0, FRIENDS, 0o710),
    ("of the user's first group", 0, NOBODY, 0o710),
]


def trace_of(backend: Backend, place: Path, target: Path | str) -> bytes:
    """Return what root's trace says of the program as nobody."""
    trace = place / "trace"
    command = [*AS_NOBODY, str(place.parent / "names"), str(target)]
    done = subprocess.run(
        backend.command(trace, command, []), cwd=place / "work", capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    raw = trace.read_bytes()
    assert b"/made\n" in raw
    return raw


@pytest.mark.parametrize(
    ("user", "group", "mode", "acl"), [row[1:] for row in CLOSED], ids=[row[0] for row in CLOSED]
)
@pytest.mark.parametrize("form", ["absolute", "relative", "dots", "link"])
def test_names_below_what_the_task_may_not_search_stay_as_they_were_given(
    backend: Backend, place: Path, form: str, user: int, group: int, mode: int, acl: bytes
) -> None:
    target = private(place, user, group, mode, acl)
    (place / "way").symlink_to("private")
    given = {
        "absolute": str(target),
        "relative": "../private/current/f",
        "dots": "../private/./current/../current/f",
        "link": "../way/current/f",
    }[form]
    assert SECRET not in trace_of(backend, place, given)


@pytest.mark.parametrize(
    ("user", "group", "mode"), [row[1:] for row in OPEN], ids=[row[0] for row in OPEN]
)
def test_names_below_what_the_task_may_search_are_resolved(
    backend: Backend, place: Path, user: int, group: int, mode: int
) -> None:
    target = private(place, user, group, mode)
    raw = trace_of(backend, place, target)
    assert b"!SR|%s/f\n" % bytes(place / "private" / os.fsdecode(SECRET)) in raw


@pytest.mark.parametrize("is_closed", [True, False])
def test_strace_s_log_is_converted_with_the_rights_of_its_owner(
    place: Path, *, is_closed: bool
) -> None:
    target = private(place, 0, 0, 0o700 if is_closed else 0o711)
    subprocess.run(
        [sys.executable, "-m", "etrace", "run", "-q", "--backend", "strace", "--",
         place.parent / "names", target],
        cwd=place / "work", env={**os.environ, "SUDO_UID": str(NOBODY)}, check=True,
    )  # fmt: skip
    raw = (place / "work/.nfsdb").read_bytes()
    assert b"!ST|%s\n" % bytes(target) in raw
    assert (SECRET in raw) != is_closed


@pytest.mark.parametrize("backend_of", [PTRACE, BPF], ids=lambda backend: backend.name)
def test_names_of_a_set_uid_program_are_looked_up_for_its_caller(
    backend_of: Backend, place: Path
) -> None:
    target = private(place, 0, 0, 0o700)
    raised = place / "raised"
    shutil.copy(place.parent / "names", raised)
    raised.chmod(0o4755)
    trace = place / "trace"
    command = [*map(str, AS_NOBODY), str(raised), str(target)]
    done = subprocess.run(
        backend_of.command(trace, command, []), cwd=place / "work", capture_output=True, check=False
    )
    raw = trace.read_bytes()
    assert (done.returncode, done.stdout[:1]) == (0, b"3"), done
    assert b"/made\n" in raw
    assert not [
        line for line in raw.splitlines() if SECRET in line and line.split(b"!")[1][:2] == b"SR"
    ]


def test_a_rename_below_a_directory_that_was_closed_since_is_recorded(
    backend: Backend, place: Path
) -> None:
    """Its directory cannot be looked up any more: the names are those that were given."""
    inner = place / "work/p/q"
    inner.mkdir(parents=True)
    (inner / "a").touch()
    for path in (inner, inner.parent, inner / "a"):
        os.chown(path, NOBODY, NOBODY)
    script = "chdir('p/q'); chmod(0, '..'); rename('a', 'b') or die"
    command = [*map(str, AS_NOBODY), "perl", "-e", script]
    trace = place / "trace"
    subprocess.run(backend.command(trace, command, []), cwd=place / "work", check=True)
    raw = trace.read_bytes()
    assert b"F|%s/a\n" % bytes(inner) in raw
    assert b"T|%s/b\n" % bytes(inner) in raw


@pytest.mark.parametrize("name", ["cwd/words", "root{}/cwd/words", "maps"])
def test_nothing_that_proc_has_of_a_process_of_root_is_read(
    backend: Backend, place: Path, name: str
) -> None:
    hidden = place / "hidden"
    (hidden / "cwd").mkdir(parents=True)
    (hidden / "cwd/words").write_text("words of root")
    hidden.chmod(0o700)
    becomes = place.parent / "becomes"
    with subprocess.Popen(["sleep", "60"], cwd=hidden / "cwd") as sleeper:
        asked = f"/proc/{sleeper.pid}/" + name.format(hidden)
        command: list[str | Path] = [*AS_NOBODY, becomes, becomes, f"@{asked}"]
        assert not kept(backend, place, command, wait)
        assert SECRET not in trace_of(backend, place, f"/proc/{sleeper.pid}/cwd")
        raw = (place / "trace").read_bytes()
        assert b"!SR|%s" % bytes(hidden) not in raw
        sleeper.kill()


def test_the_build_still_ends_with_its_tracer_when_names_were_looked_up(place: Path) -> None:
    """A change of rights makes the kernel forget which signal a process gets then."""
    script = "symlink('target', 'link') or die; $| = 1; print qq($$\n); sleep(1000)"
    command = [*map(str, AS_NOBODY), "perl", "-e", script]
    front = subprocess.Popen(
        PTRACE.command(place / "trace", command, []), cwd=place / "work", stdout=subprocess.PIPE
    )
    assert front.stdout is not None
    program = int(front.stdout.readline())
    front.kill()
    until(lambda: not Path(f"/proc/{program}/cwd").exists())
    front.communicate()


# ---- response files ----


def stopped(pid: int) -> None:
    """Stop a process, and wait until all its threads have."""
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)


def kept(
    backend: Backend, place: Path, command: Sequence[str | Path], between: Callable[[], None]
) -> dict[bytes, bytes]:
    """Trace a command that waits for a line; return the response files that root kept.

    Under BPF the reader of the kernel's records is stopped while the command goes on, so that each
    of its look-ups is late.
    """
    side = place / "kept"
    side.unlink(missing_ok=True)
    words = backend.command(
        place / "trace", list(map(str, command)), ["--response-files", str(side)]
    )
    tracer = subprocess.Popen(
        words, cwd=place / "work", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert tracer.stdin is not None
    assert tracer.stdout is not None
    assert tracer.stdout.readline() == "ready\n"
    if backend is BPF:
        stopped(tracer.pid)
    tracer.stdin.write("go\n")
    tracer.stdin.flush()
    between()
    if backend is BPF:
        os.kill(tracer.pid, signal.SIGCONT)
    tracer.communicate(timeout=60)
    assert (place / "trace").stat().st_size
    found = responses.read(side.read_bytes()) if side.exists() else ()
    return {path: content for _, path, content in found}


def wait() -> None:
    """Let the command execute what it executes."""
    time.sleep(0.7)


def file(place: Path, name: str, user: int, group: int, mode: int) -> Path:
    path = place / name
    path.write_text(f"words of {name}")
    os.chown(path, user, group)
    path.chmod(mode)
    return path


def test_a_program_that_becomes_set_uid_gets_no_file_of_root_read(
    backend: Backend, place: Path
) -> None:
    own, secret = file(place, "own", NOBODY, 0, 0o600), file(place, "secret", 0, 0, 0o600)
    becomes = place.parent / "becomes"
    shutil.copy(becomes, place / "setuid")
    (place / "setuid").chmod(0o4755)
    for asked, wanted in ((own, True), (secret, False)):
        command: list[str | Path] = [*AS_NOBODY, becomes, becomes, f"@{asked}", place / "setuid"]
        found = kept(backend, place, command, wait)
        assert (bytes(asked) in found) == wanted


@pytest.mark.parametrize("mode", [0o4755, 0o2755], ids=["set-uid", "set-gid"])
def test_a_set_uid_program_called_gcc_gets_no_file_read(
    backend: Backend, place: Path, mode: int
) -> None:
    """Its caller chose the arguments."""
    secret = file(place, "secret", 0, 0, 0o640)
    becomes = place.parent / "becomes"
    shutil.copy(becomes, place / "raised")
    (place / "raised").chmod(mode)
    assert not kept(backend, place, [*AS_NOBODY, becomes, place / "raised", f"@{secret}"], wait)


def test_groups_and_capabilities_of_the_task_count(backend: Backend, place: Path) -> None:
    becomes = place.parent / "becomes"
    friends = file(place, "friends", 12345, FRIENDS, 0o640)
    against = file(place, "against", 0, FRIENDS, 0o604)
    secret = file(place, "secret", 12345, 12345, 0o600)
    weak_root: list[str | Path] = [
        "setpriv",
        "--bounding-set=-dac_override,-dac_read_search",
        "--clear-groups",
        "--",
    ]
    nothing: list[str | Path] = []
    for user, asked, wanted in (
        (AS_NOBODY, friends, True),
        (AS_NOBODY, against, False),
        (weak_root, secret, False),
        (weak_root, friends, False),
        (nothing, secret, True),
    ):
        found = kept(backend, place, [*user, becomes, becomes, f"@{asked}"], wait)
        assert (bytes(asked) in found) == wanted, (user, asked)


def test_the_root_directory_is_that_of_the_program_s_begin(backend: Backend, place: Path) -> None:
    """Of a task that has another one, and changes it again before the file is read."""
    for number in ("one", "two"):
        (place / number / "two").mkdir(parents=True)
        shutil.copy(place.parent / "becomes", place / number / "becomes")
    file(place, "one/words", 0, 0, 0o644)
    file(place, "one/two/words", 0, 0, 0o644)
    moves = place / "one/moves"
    source = (
        "#define _GNU_SOURCE\n#include <unistd.h>\n"
        'int main(void) { return chroot("/two") || sleep(2); }'
    )
    subprocess.run(
        ["cc", "-O2", "-static", "-x", "c", "-", "-o", moves], input=source, text=True, check=True
    )
    command: list[str | Path] = [
        "chroot",
        place / "one",
        "/becomes",
        "/becomes",
        "@/words",
        "/moves",
    ]
    found = kept(backend, place, command, wait)
    assert set(found.values()) <= {b"words of one/words"}
    if backend is PTRACE:
        assert found
    plain = kept(backend, place, command[:-1], lambda: None)
    assert backend is BPF or list(plain.values()) == [b"words of one/words"]
