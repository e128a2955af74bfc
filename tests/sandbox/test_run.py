# SPDX-License-Identifier: Apache-2.0
"""What programs in the sandbox may do, and what they are not let do by whom."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import boxes
import pytest
from backends import need_root

from etrace.sandbox import run as sandbox
from etrace.sandbox.programs import UntrustedError, opened, trusted_path
from etrace.sandbox.run import Allowed, Ended, Limits, NoSandboxError, SandboxError

MAKE = b"/usr/bin/make"
LIMITS = Limits()
VARIABLES = {b"PATH": b"/usr/bin:/bin", b"LC_ALL": b"C"}


def make(folder: Path, text: str, *, executes: bool = False, limits: Limits = LIMITS) -> Ended:
    """Ask a make about a makefile."""
    (folder / "Makefile").write_text(text + "\nall:;\n")
    with opened(trusted_path(MAKE)) as program:
        allowed = Allowed(executes=executes)
        return sandbox.run(program, [b"-n"], folder, VARIABLES, allowed=allowed, limits=limits)


def said(folder: Path, command: str) -> str:
    """Return what a command prints in $(shell)."""
    return make(folder, f"$(info [$(shell {command})])", executes=True).stdout.decode()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo a 2>/dev/null", "a"),
        ("echo a >/dev/stderr; echo b", "b"),
        ("f=$$(mktemp) && echo a > $$f && cat $$f", "a"),
        ("cd $$TMPDIR && echo 'int x;' > x.c && gcc -c x.c && test -s x.o; echo $$?", "0"),
        ("echo 'int x;' | gcc -xc -c - -o /dev/null; echo $$?", "0"),
        ("while :; do echo y; done 2>/dev/null | head -1", "y"),
        ("python3 -c 'print(6 * 7)'", "42"),
        ("gcc -dumpmachine | tr -d '\\n' | wc -l", "0"),
        ("(sleep 100 & kill $$!; echo a)", "a"),
        ("set -- *; echo $$1", "Makefile"),
    ],
)  # fmt: skip
def test_ordinary_commands_work(tmp_path: Path, command: str, expected: str) -> None:
    assert f"[{expected}]" in said(tmp_path, command)


def test_git_describes_a_tree(tmp_path: Path) -> None:
    for words in (
        ["init", "-q"],
        ["-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "--allow-empty", "-m", "x"],
        ["tag", "v7"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert "[v7]" in said(tmp_path, "git describe --tags 2>/dev/null")


def test_a_program_that_ends_by_a_signal_or_status_is_reported(tmp_path: Path) -> None:
    assert make(tmp_path, "$(error x)").status == 2
    f = make(tmp_path, "f = $(call f)\n$(f)x", limits=Limits(memory_bytes=1 << 28))
    assert f.status < 0 or b"Recursive" in f.stderr


def test_a_program_has_a_limit_of_time(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(SandboxError, match="took more than 1 s"):
        make(tmp_path, "$(shell sleep 100)", executes=True, limits=Limits(seconds=1))
    assert time.monotonic() - began < 60


def test_a_program_has_a_limit_of_processes(tmp_path: Path) -> None:
    (tmp_path / "fork").write_text("f() { f & f; }; f\n")
    limits = Limits(seconds=3, processes=20)
    with contextlib.suppress(SandboxError):
        make(tmp_path, "$(shell sh ./fork)", executes=True, limits=limits)
    assert subprocess.run(["pgrep", "-f", "sh ./fork"], check=False).returncode == 1


def test_a_program_has_a_limit_of_output(tmp_path: Path) -> None:
    text = "$(info $(shell head -c 300000 /dev/zero | tr '\\0' x))\n" * 4
    with pytest.raises(SandboxError, match="printed more than 1048576 bytes"):
        make(tmp_path, text, executes=True, limits=Limits(output_bytes=1 << 20))


def test_no_variable_chooses_the_code() -> None:
    names = [b"LD_PRELOAD", b"LD_LIBRARY_PATH", b"GLIBC_TUNABLES", b"GCONV_PATH", b"BASH_ENV",
             b"PYTHONPATH", b"PERL5OPT", b"GCC_EXEC_PREFIX", b"COMPILER_PATH", b"BASH_FUNC_x%%",
             b"MALLOC_PERTURB_", b"LOCPATH", b"CCC_OVERRIDE_OPTIONS"]  # fmt: skip
    kept = {b"PATH": b"x", b"CC": b"gcc", b"CFLAGS": b"-O2", b"LDFLAGS": b"-s"}
    assert sandbox.harmless({**dict.fromkeys(names, b"x"), **kept}) == kept


def test_load_takes_no_library_whoever_owns_it(tmp_path: Path) -> None:
    source = (
        "#include <stdio.h>\nint plugin_is_GPL_compatible; int x_gmk_setup(void) { return 1; }\n"
        '__attribute__((constructor)) void f(void) { puts("LOADED"); }\n'
    )
    (tmp_path / "x.c").write_text(source)
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-o", "x.so", "x.c"], cwd=tmp_path, check=True)
    (tmp_path / "x.so").chmod(0o755)
    outside = subprocess.run(
        ["make", "-f-"], input="-load ./x.so\nall:;\n", cwd=tmp_path, text=True, check=True,
        capture_output=True,
    )  # fmt: skip
    assert "LOADED" in outside.stdout
    library = next(Path("/usr/lib").glob("*/libm.so.6"))
    for name in ("./x.so", library):
        done = make(tmp_path, f"-load {name}(x_gmk_setup)\n$(info [$(.LOADED)])")
        assert b"LOADED" not in done.stdout
        assert b"[]" in done.stdout


def test_pipes_and_terminals_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "/dev/tty", "/dev/ptmx"):
        done = make(tmp_path, f"$(info $(file <{name}))")
        assert done.denied == (name,)
    assert make(tmp_path, "X := $(file </dev/null)").denied == ()


@pytest.mark.parametrize("name", ["/proc/{}/environ", "link/{}/environ", "/proc/{}/cwd/file"])
def test_other_processes_are_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to("/proc")
    name = name.format(os.getpid())
    done = make(tmp_path, f"$(info $(file <{name}))")
    assert b"PATH=" not in done.stdout + done.stderr
    assert "PATH=" in Path(f"/proc/{os.getpid()}/environ").read_text()


def test_a_lease_of_somebody_else_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "more.mk").write_text("$(info READ)\n")
    fd = os.open(tmp_path / "more.mk", os.O_RDWR)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    began = time.monotonic()
    done = make(tmp_path, "-include more.mk", limits=Limits(seconds=30))
    os.close(fd)
    assert b"READ" not in done.stdout
    assert time.monotonic() - began < 29


@pytest.mark.parametrize("signal_name", ["STOP", "KILL", "TERM"])
def test_signals_to_its_own_group_end_only_the_program(tmp_path: Path, signal_name: str) -> None:
    began = time.monotonic()
    with contextlib.suppress(SandboxError):  # after its time
        make(tmp_path, f"$(shell kill -{signal_name} 0)", executes=True, limits=Limits(2))
    assert time.monotonic() - began < 60


def test_a_make_that_executes_itself_again_works(tmp_path: Path) -> None:
    text = "$(shell test -e $$TMPDIR/x || cp Makefile $$TMPDIR/x)\n-include $(TMPDIR)/new.mk\n"
    rule = "$(TMPDIR)/new.mk: ; echo '$$(info AGAIN)' > $@\n"
    done = make(tmp_path, text + rule, executes=True)
    assert b"AGAIN" in done.stdout, done


def test_a_script_and_a_program_that_others_may_change_do_not_run(tmp_path: Path) -> None:
    with pytest.raises(UntrustedError):
        trusted_path(os.fsencode(shutil.copy("/bin/true", tmp_path)))
    script = next(p for p in Path("/usr/bin").iterdir() if p.is_file() and is_script(p))
    with pytest.raises(UntrustedError, match="a script"), opened(script):
        pass


def is_script(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(2) == b"#!" and not path.is_symlink() and path.stat().st_uid == 0


@pytest.mark.root
@pytest.mark.parametrize("name", ["Makefile", "more.mk", "/open/other.mk", "link.mk"])
def test_root_reads_nothing_of_others(tmp_path: Path, name: str) -> None:
    need_root()
    other = tmp_path / "open"
    other.mkdir()
    for path in (tmp_path / "more.mk", other / "other.mk", other / "target.mk"):
        path.write_text("$(info READ)\n")
        os.chown(path, boxes.NOBODY, boxes.NOBODY)
    (tmp_path / "link.mk").symlink_to(other / "target.mk")
    name = name.replace("/open", str(other))
    (tmp_path / "Makefile").write_text(f"-include {name}\nall:;\n")
    if name == "Makefile":
        (tmp_path / "Makefile").write_text("$(info READ)\nall:;\n")
        os.chown(tmp_path / "Makefile", boxes.NOBODY, -1)
    with opened(trusted_path(MAKE)) as program:
        done = sandbox.run(program, [b"-n"], tmp_path, VARIABLES)
    assert done.denied[0] == name
    assert b"READ" not in done.stdout


@pytest.mark.root
def test_root_reads_nothing_that_others_may_write(tmp_path: Path) -> None:
    need_root()
    (tmp_path / "more.mk").write_text("$(info READ)\n")
    for mode, gid, is_read in ((0o666, 0, False), (0o664, 0, False), (0o644, boxes.NOBODY, True)):
        os.chown(tmp_path / "more.mk", 0, gid)
        (tmp_path / "more.mk").chmod(mode)
        assert (b"READ" in make(tmp_path, "-include more.mk").stdout) == is_read


@pytest.mark.root
@pytest.mark.parametrize("owner", [0, boxes.NOBODY])
def test_root_is_never_the_user_of_a_program(tmp_path: Path, owner: int) -> None:
    need_root()
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0o600)
    os.chown(tmp_path, owner, owner)
    text, _, _ = said(tmp_path, "id -u; id -G; cat secret").partition("]")
    uid, gid, *rest = text.strip("[").split()
    assert "0" not in (uid, gid)
    assert (uid == str(owner)) == bool(owner)
    assert rest == ([] if owner else ["x"])  # root's own files are read, by nobody


@pytest.mark.root
def test_who_cannot_become_somebody_else_runs_nothing() -> None:
    need_root()
    done = boxes.run(
        Path("/usr/bin/setpriv"), Path("/bin/true"), [], ["--user", "61184:61184"],
        through=["--bounding-set=-setuid,-setgid", boxes.SANDBOX],
    )  # fmt: skip
    assert done.report.startswith("missing becoming user 61184")


def test_a_machine_without_means_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "sandbox"
    fake.write_text('#!/bin/bash\necho missing Landlock >&"$2"\n')
    fake.chmod(0o755)
    monkeypatch.setattr(sandbox, "SANDBOX", fake)
    with pytest.raises(NoSandboxError, match="there is no sandbox for it here: Landlock"):
        make(tmp_path, "")
