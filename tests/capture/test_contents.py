# SPDX-License-Identifier: Apache-2.0
"""What a file was made from, by every backend: contents that reach it by uncommon calls.

Each test runs one command, and asks for the dependencies of what that wrote.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from backends import names_without_module, need_root
from contents import BIN, made_from, trace
from event_programs import compiled

HIGH = (63, 64, 65, 127, 128, 200, 255, 1000, 1023, 4000)

#: reads what has no name: /dir/#INODE, whose number the file system uses again
NAMELESS = """
import sys, tempfile
with tempfile.TemporaryFile(dir=".") as file:
    file.write(open(sys.argv[1], "rb").read())
    file.seek(0)
    open(sys.argv[2], "wb").write(file.read())
"""
#: each descriptor reaches a child in another way; `in` is read by children alone
DESCRIPTORS = """
import fcntl, os, resource, subprocess, sys
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))
kept = [os.open("/dev/null", 0) for _ in range(100)]

def high(name, number, command):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    copy = fcntl.fcntl(fd, command, number)
    os.close(fd)
    return copy

for number in map(int, sys.argv[1:]):
    fd = high(f"copied{number}", number, fcntl.F_DUPFD_CLOEXEC)
    if os.fork() == 0:
        os.dup2(fd, 1)
        os.execvp("cat", ["cat", "in"])
    os.wait()
    os.close(fd)
    fd = high(f"inherited{number}", number, fcntl.F_DUPFD)
    subprocess.call(["bash", "-c", f"cat in >&{fd}"], close_fds=False)
    os.close(fd)
    fd = high(f"standard{number}", number, fcntl.F_DUPFD_CLOEXEC)
    subprocess.call(["cat", "in"], stdout=fd)
    os.close(fd)
"""
#: two directories whose paths are longer than any call can name
DEEP = """
import os, subprocess
home = os.getcwd()
for first in ("a", "b"):
    os.chdir(home)
    os.mkdir(first)
    os.chdir(first)
    for _ in range(25):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    for name, text in (("x", first), ("script", "#!/bin/sh\\ncat x >y\\n")):
        with open(name, "w") as file:
            file.write(text)
    os.chmod("script", 0o755)
    subprocess.check_call(["./script"])
    os.rename("y", home + f"/out.{first}")
    with open("x") as file, open(home + f"/copy.{first}", "w") as copy:
        copy.write(file.read())
"""
LIBRARIES = """
set -e
echo 'int fast(void) { return 4; }' >fast.c
gcc -shared -fPIC fast.c -o one.so
mkdir -p sub/deep org
for name in two.so sub/sub.so sub/deep/deep.so libpath.so org/liborg.so gone.so pre.so; do
    cp one.so $name
done
echo 'int fast(void); int main(void) { return fast() != 4; }' >uses.c
cat >>uses.c <<'C'
__attribute__((constructor)) static void note(int argc, char **argv)
{
    extern int creat(const char *, unsigned int);
    creat(argv[1], 0644);
}
C
gcc -w uses.c -o searched -L. -lpath
gcc -w uses.c -o runpath -L. -lpath -Wl,-rpath,sub/..
gcc -w uses.c -o rpath -L. -lpath -Wl,--disable-new-dtags,-rpath,.
gcc -w uses.c -o org/origin -Lorg -lorg -Wl,-rpath,'$ORIGIN'
$LOADS out.one dlopen ./one.so
$LOADS $PWD/out.twice chdir sub dlopen ./sub.so chdir deep dlopen ./deep.so chdir /
$LOADS $PWD/out.namespace dlmopen ./two.so chdir /
$LOADS out.absolute dlmopen $PWD/two.so
$LOADS out.gone dlopen ./gone.so unlink gone.so
LD_PRELOAD=./pre.so $LOADS out.preloaded
LD_LIBRARY_PATH=. ./searched out.searched
LD_LIBRARY_PATH= ./runpath out.runpath
./rpath out.rpath
org/origin out.origin
"""
LOADED = {
    "out.one": ["one.so"],
    "out.twice": ["sub/sub.so", "sub/deep/deep.so"],
    "out.namespace": ["two.so"],
    "out.absolute": ["two.so"],
    "out.gone": ["gone.so"],
    "out.preloaded": ["pre.so"],
    "out.searched": ["libpath.so"],
    "out.runpath": ["libpath.so"],
    "out.rpath": ["libpath.so"],
    "out.origin": ["org/liborg.so"],
}


@pytest.fixture(params=names_without_module())
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_nameless_files_with_one_inode_number_have_their_own_contents(
    backend: str, tmp_path: Path
) -> None:
    (tmp_path / "p.py").write_text(NAMELESS)
    numbers = range(4)
    for number in numbers:
        (tmp_path / f"in{number}").write_text(f"{number}\n")
    script = ";".join(f"{sys.executable} p.py in{number} out{number}" for number in numbers)
    trace(tmp_path, backend, "sh", "-c", script)
    inputs = {f"in{number}" for number in numbers}
    for number in numbers:
        assert made_from(tmp_path, f"out{number}") & inputs == {f"in{number}"}


@pytest.mark.parametrize("way", [pytest.param("fd", marks=pytest.mark.root), "proc"])
def test_a_nameless_file_that_gets_a_name_keeps_its_contents(
    backend: str, way: str, tmp_path: Path
) -> None:
    if way == "fd":
        need_root()
    (tmp_path / "in").write_text("A\n")
    program = compiled("temporary_link", tmp_path)
    trace(tmp_path, backend, program, "in", "out", way)
    assert "in" in made_from(tmp_path, "out")
    assert b"LinkFailed" not in (tmp_path / ".nfsdb").read_bytes()


def test_hard_links_that_follow_a_name_depend_on_its_file(backend: str, tmp_path: Path) -> None:
    (tmp_path / "src").write_text("A\n")
    for name in ("o", "q"):
        (tmp_path / name).mkdir()
    script = "cp src o/thin; cp -l o/thin o/hard; cp -l o/thin q/far; ln -s thin o/s; ln -L o/s q/l"
    trace(tmp_path, backend, "sh", "-c", script)
    for name in ("o/hard", "q/far", "q/l"):
        assert {"src", "o/thin"} <= made_from(tmp_path, name), name


def test_files_of_high_descriptors_have_their_inputs(backend: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("A\n")
    (tmp_path / "p.py").write_text(DESCRIPTORS)
    trace(tmp_path, backend, sys.executable, "p.py", *map(str, HIGH))
    for way in ("copied", "inherited", "standard"):
        for number in HIGH:
            name = f"{way}{number}"
            assert (tmp_path / name).read_text() == "A\n"
            assert "in" in made_from(tmp_path, name), name


def test_libraries_that_are_loaded_by_relative_names_are_inputs(
    backend: str, tmp_path: Path
) -> None:
    loads = compiled("relative_libraries", tmp_path, "-ldl")
    (tmp_path / "build.sh").write_text(LIBRARIES)
    trace(tmp_path, backend, "sh", "build.sh", LOADS=str(loads))
    for name, libraries in LOADED.items():
        assert {*libraries, "fast.c"} <= made_from(tmp_path, name), name


def test_files_of_directories_that_no_call_can_name_have_no_wrong_names(
    backend: str, tmp_path: Path
) -> None:
    (tmp_path / "p.py").write_text(DEEP)
    command: list[str | Path] = [BIN / "etrace", "run", "--no-usage", "--backend", backend, "--"]
    done = subprocess.run(
        [*command, "/usr/bin/python3", "p.py"], cwd=tmp_path, capture_output=True, check=True
    )
    text = (tmp_path / ".nfsdb").read_bytes()
    names = re.findall(rb"!(?:FN|FO|RF|RT|PI|PP|CW)\|(.*)", text)
    below = os.fsencode(tmp_path) + b"/"
    assert {name for name in names if re.search(rb"(^|/)[xy]$", name)} == set()
    assert {name for name in names if b"unreachable" in name} == set()
    assert {below + b"copy.a", below + b"copy.b"} <= set(names)
    assert b"have no resolved path" in done.stderr or b"calls were left out" in done.stderr
