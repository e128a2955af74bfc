# SPDX-License-Identifier: Apache-2.0
"""What a file was made from, by every backend: through memory, descriptors and names that change.

A script is one command; each line of a table says what a file that it wrote depends on, among
INPUTS.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from backends import names_without_module, need_root
from contents import BIN, made_from, trace

INPUTS = ("V", "W", "X", "secret")
#: file -> the inputs that it depends on
Table = Mapping[str, set[str]]

#: what subshells, functions and here-documents of a shell write
SHELL = """
read v <V
( (echo $v) >nested; read w <W; (echo $w) >both )
echo $v | while read l; do echo $l >loop; done
cat <<END >document
$v
END
{ echo late >early; read z <secret; } &
wait
f() { while read l; do echo $l; done; }
cat X | f >function
f <<END >in_function
$(cat W)
END
g() { echo $v; }
g | sed s/1/2/ >filtered
"""
SHELL_TABLE: Table = {
    "nested": {"V"},
    "both": {"V", "W"},
    "loop": {"V"},
    "document": {"V"},
    "early": {"V"},
    "function": {"V", "X"},
    "in_function": {"V", "W"},
    "filtered": {"V", "W"},
}
#: forks of a program, and what it does to names
FORKS = """
import ctypes, os, subprocess
from multiprocessing import get_context

v = open("V").read()
r, w = os.pipe()
if os.fork() == 0:
    os.read(r, 1)
    open("waited", "w").write(v)
    os._exit(0)
s = open("secret").read()
os.write(w, b"x")
os.wait()
if os.fork() == 0:
    open("before", "w").write(v)
    os.execvp("cp", ["cp", "X", "after"])
os.wait()
if os.fork() == 0:
    if os.fork() == 0:
        open("grandchild", "w").write(s)
        os._exit(0)
    os.wait()
    os.execvp("cp", ["cp", "W", "second"])
os.wait()

def work(name):
    open(name, "w").write(v + open("X").read())

worker = get_context("fork").Process(target=work, args=("worker",))
worker.start()
worker.join()
subprocess.run("cat W >shell", shell=True)
subprocess.run(["cp", "W", "copied"])
subprocess.run(["tee", "given"], input=v, text=True, stdout=subprocess.DEVNULL)
os.link("copied", "linked")
os.rename("shell", "renamed")
os.symlink("copied", "symbolic")
os.symlink("nowhere", "dangling")
held = open("part", "w")
held.write(v)
held.flush()
os.rename("part", "whole")
held.write(open("X").read())
held.close()
subprocess.run(["cp", "V", "first"])
subprocess.run(["cp", "X", "other"])
if ctypes.CDLL(None).renameat2(-100, b"first", -100, b"other", 2):
    raise OSError("no exchange")
subprocess.run(["cp", "first", "of_first"])
subprocess.run(["cp", "other", "of_other"])
"""
FORKS_TABLE: Table = {
    "waited": {"V"},
    "before": {"V", "secret"},
    "after": {"X"},
    "grandchild": {"V", "secret"},
    "second": {"W"},
    "worker": {"V", "X", "secret"},
    "copied": {"W"},
    # the pipe of the worker, which the parent may read, is in its memory
    "given": {"V", "X", "secret"},
    "linked": {"W"},
    "renamed": {"W"},
    "symbolic": {"W"},
    "dangling": set(),
    "whole": {"V", "X", "secret"},
    "of_first": {"X"},
    "of_other": {"V"},
}
#: files that are open for reading and writing while others are made
HELD = """
import subprocess, tempfile

lock = open("lock", "w+")
open("one", "w").write(open("V").read())
open("two", "w").write(open("W").read())
lock.close()
open("X").read()
for source in ("V", "W"):
    with tempfile.TemporaryFile() as log:
        subprocess.check_call(["cp", "-v", source, source + ".copy"], stdout=log, stderr=log)
        log.seek(0)
        log.read()
subprocess.check_call(["sh", "-c", "exec 3<>log; cp -v V a >&3 2>&1; cp -v W b >&3 2>&1"])
"""
HELD_TABLE: Table = {
    "one": {"V"},
    "two": {"V", "W"},
    "V.copy": {"V"},
    "W.copy": {"W"},
    "a": {"V"},
    "b": {"W"},
}
MAKEFILE = """
all: a.o b.o
a.o: a.c
	@echo start; gcc -c a.c -o a.o
b.o: b.c
	@echo start; gcc -c b.c -o b.o
"""
#: a client that opens the jobserver again by another name, as jobserver-rs does
CLIENT = """
import os, re, sys

fds = re.search(r"--jobserver-(?:auth|fds)=([0-9]+),([0-9]+)", os.environ["MAKEFLAGS"])
r = os.open(f"{sys.argv[3]}/{fds[1]}", os.O_RDONLY)
w = os.open(f"{sys.argv[3]}/{fds[2]}", os.O_WRONLY)
token = os.read(r, 1)
text = open(sys.argv[1]).read()
os.write(w, token)
open(sys.argv[2], "w").write(text)
"""
#: the same through a FIFO, as make 4.4 has it
FIFO = """
import os, subprocess, sys

if len(sys.argv) == 1:
    os.mkfifo("jobs")
    own = os.open("jobs", os.O_RDWR)
    os.write(own, b"+")
    flags = {**os.environ, "MAKEFLAGS": f"-j2 --jobserver-auth=fifo:{os.getcwd()}/jobs"}
    started = [subprocess.Popen([sys.executable, __file__, x], env=flags) for x in "VW"]
    sys.exit(any([each.wait() for each in started]))
fd = os.open(os.environ["MAKEFLAGS"].rpartition(":")[2], os.O_RDWR)
token = os.read(fd, 1)
text = open(sys.argv[1]).read()
os.write(fd, token)
open(sys.argv[1] + ".fifo", "w").write(text)
"""
RENAMES = """
set -e
mkdir stage stage/sub
cp V stage/v; cp W stage/sub/w
mv stage mid
mv mid out
cat out/v out/sub/w >sum
"""
MORE_RENAMES = """
mkdir one two; cp V one/same; cp W two/same; cp X one/only
python3 -c 'import ctypes; assert not ctypes.CDLL(None).renameat2(-100, b"one", -100, b"two", 2)'
cp one/same of_one; cp two/same of_two; cp two/only of_only
mkdir again; cp V again/x; mv again first; mkdir again; cp W again/x; mv again second
"""
RENAMES_TABLE: Table = {
    "out/v": {"V"},
    "out/sub/w": {"W"},
    "sum": {"V", "W"},
    "of_one": {"W"},
    "of_two": {"V"},
    "of_only": {"X"},
    "first/x": {"V"},
    "second/x": {"W"},
}
MOUNTS = """
set -e
mkdir real seen
cp V real/v
mount --bind real seen
cat seen/v >of_seen
cat W >seen/w
cat real/w >of_real
umount seen
"""
MOUNTS_TABLE: Table = {"of_seen": {"V"}, "real/w": {"W"}, "of_real": {"W"}}


@pytest.fixture(params=names_without_module())
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in INPUTS:
        (tmp_path / name).write_text(f"{name}\n")
    return tmp_path


def check(folder: Path, table: Table) -> None:
    found = {name: made_from(folder, name).intersection(INPUTS) for name in table}
    assert found == table


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_what_a_shell_writes_depends_on_what_it_had_read(
    folder: Path, backend: str, shell: str
) -> None:
    (folder / "gen.sh").write_text(SHELL)
    trace(folder, backend, shell, "gen.sh")
    check(folder, SHELL_TABLE)
    assert "gen.sh" in made_from(folder, "document")


def test_forks_have_the_memory_of_their_parent_and_moves_add_none(
    folder: Path, backend: str
) -> None:
    (folder / "p.py").write_text(FORKS)
    trace(folder, backend, sys.executable, "p.py")
    check(folder, FORKS_TABLE)


def test_files_that_are_held_open_join_nothing(folder: Path, backend: str) -> None:
    (folder / "p.py").write_text(HELD)
    trace(folder, backend, sys.executable, "p.py")
    check(folder, HELD_TABLE)


@pytest.mark.parametrize("way", ["target", "line", "recurse"])
def test_output_that_make_collects_joins_nothing(tmp_path: Path, backend: str, way: str) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    for name in "ab":
        (tmp_path / f"{name}.c").write_text(f"int {name};\n")
    trace(tmp_path, backend, "make", "-j2", f"-O{way}")
    for name, other in ("ab", "ba"):
        found = made_from(tmp_path, f"{name}.o")
        assert f"{name}.c" in found
        assert found.isdisjoint({f"{other}.c", f"{other}.o", "Makefile"})


@pytest.mark.parametrize("below", ["/dev/fd", "/proc/self/fd"])
def test_a_jobserver_that_is_opened_again_joins_nothing(
    folder: Path, backend: str, below: str
) -> None:
    (folder / "tool.py").write_text(CLIENT)
    rule = f"all: V.out W.out\nV.out W.out: %.out: %\n\t+{sys.executable} tool.py $< $@ {below}\n"
    (folder / "Makefile").write_text(rule)
    trace(folder, backend, "make", "-j9")
    check(folder, {"V.out": {"V"}, "W.out": {"W"}})
    done = subprocess.run([BIN / "etrace", "check"], cwd=folder, capture_output=True, check=False)
    assert b"shared-temporary" not in done.stdout


def test_a_fifo_of_tokens_joins_nothing(folder: Path, backend: str) -> None:
    (folder / "p.py").write_text(FIFO)
    trace(folder, backend, sys.executable, "p.py")
    check(folder, {"V.fifo": {"V"}, "W.fifo": {"W"}})


def test_renamed_directories_take_their_files_along(folder: Path, backend: str) -> None:
    (folder / "build.sh").write_text(RENAMES + MORE_RENAMES)
    trace(folder, backend, "sh", "build.sh")
    check(folder, RENAMES_TABLE)
    unused = subprocess.run(
        [BIN / "cas", "unused", "."], cwd=folder, capture_output=True, text=True, check=True
    )
    assert "/out/" not in unused.stdout


def test_ninja_renames_directories_again(folder: Path) -> None:
    (folder / "build.sh").write_text(RENAMES)
    trace(folder, "ptrace", "sh", "build.sh")
    export: list[str | Path] = [BIN / "cas", "export", "ninja", "-o", "build.ninja"]
    subprocess.run(export, cwd=folder, capture_output=True, check=True)
    for name in ("out/sub/w", "out/v", "sum"):
        (folder / name).unlink()
    for name in ("out/sub", "out"):
        (folder / name).rmdir()
    subprocess.run(["ninja"], cwd=folder, capture_output=True, check=True)
    assert (folder / "sum").read_text() == "V\nW\n"
    assert (folder / "out/sub/w").read_text() == "W\n"


@pytest.mark.root
def test_names_below_a_bind_mount_are_those_of_its_source(folder: Path) -> None:
    need_root()
    (folder / "build.sh").write_text(MOUNTS)
    trace(folder, "ptrace", "unshare", "-m", "sh", "build.sh", mounts=True)
    check(folder, MOUNTS_TABLE)
