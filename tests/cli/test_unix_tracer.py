# SPDX-License-Identifier: Apache-2.0
"""`unix-tracer` on real builds: what xcalbuild's tracer does, and what it gets wrong.

strace is the oracle: the programs that it saw starting, and where. Its record of working
directories is its own (chdir), its record of arguments the kernel's.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import strace_log
from backends import names_without_module, need_tool

from etrace.export.build_spec import KNOWN

BIN = Path(sysconfig.get_path("scripts"))
BACKENDS = names_without_module()
#: names that the compiler draws by lot
TEMPORARY = re.compile(r"/tmp/cc\w{6}")
MAKEFILE = """\
all:
\tgcc -c a.c -o a.o
\tgcc -c a.c -o 'b c.o' -DX='"a  b"' -DARR='[1]'
\t$(MAKE) -C sub x.o
\tgcc -c a.c -o c.o
\tar rcs liba.a a.o c.o
\tgcc -shared -o a.so a.o
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project that one make builds; it starts simple recipes by posix_spawn, without a shell."""
    need_tool("make", "make")
    path = tmp_path.resolve() / "project"
    (path / "sub").mkdir(parents=True)
    (path / "Makefile").write_text(MAKEFILE)
    (path / "sub/Makefile").write_text("x.o:\n\tgcc -c ../a.c -o x.o\n")
    (path / "a.c").write_text("int a;\n")
    return path


def start(
    folder: Path, *words: str | bytes | Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [BIN / "unix-tracer", *words], cwd=folder, capture_output=True, timeout=120, check=False,
        env={**os.environ, **(env or {})},
    )  # fmt: skip


def traced(folder: Path, *words: str | bytes | Path, status: int = 0) -> list[dict[str, Any]]:
    done = start(folder, "-o", folder.parent / "spec.json", *words)
    assert done.returncode == status, done.stderr
    found: list[dict[str, Any]] = json.loads((folder.parent / "spec.json").read_bytes())
    return found


def drivers(found: list[dict[str, Any]]) -> list[list[str]]:
    return [each["arguments"] for each in found if each["arguments"][0] in ("gcc", "ar")]


def calls(found: list[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    return Counter(
        (each["directory"], *(TEMPORARY.sub("/tmp/ccXXXXXX", word) for word in each["arguments"]))
        for each in found
    )


def test_every_recipe_of_a_make_is_an_item_with_its_own_directory(folder: Path) -> None:
    """xcalbuild's library reports only the first of these; its strace parser loses two."""
    found = traced(folder, "--", "make")
    assert drivers(found) == [
        ["gcc", "-c", "a.c", "-o", "a.o"],
        ["gcc", "-c", "a.c", "-o", "b c.o", '-DX="a  b"', "-DARR=[1]"],
        ["gcc", "-c", "../a.c", "-o", "x.o"],
        ["gcc", "-c", "a.c", "-o", "c.o"],
        ["ar", "rcs", "liba.a", "a.o", "c.o"],
        ["gcc", "-shared", "-o", "a.so", "a.o"],
    ]
    directories = {each["directory"] for each in found if "../a.c" in each["arguments"]}
    assert directories == {f"{folder}/sub"}
    assert {Path(each["arguments"][0]).name for each in found} == {"gcc", "ar", "ld"}


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_items_are_those_that_strace_saw(folder: Path, backend: str) -> None:
    """The same build by each way to capture: the dynamic and the static tracer agree."""
    need_tool("strace", "strace")
    logs = folder.parent / "logs"
    logs.mkdir()
    subprocess.run(
        strace_log.command(logs / "log", ["make"]), cwd=folder, check=True, capture_output=True
    )
    seen = strace_log.calls(logs / "log", os.fsencode(folder))
    expected = [
        {"directory": cwd.decode(), "arguments": [word.decode() for word in argv]}
        for cwd, argv in seen
        if Path(argv[0].decode()).name in KNOWN
    ]
    for path in folder.rglob("*.o"):
        path.unlink()
    found = traced(folder, "--backend", backend, "--", "make")
    assert calls(found) == calls(expected)
    assert len(expected) == 7  # gcc starts collect2, which starts ld


def test_the_export_of_a_database_has_the_same_items(folder: Path) -> None:
    found = traced(folder, "--", "make")
    place = folder.parent / "db"
    for path in folder.rglob("*.o"):
        path.unlink()
    subprocess.run(
        [BIN / "etrace", "run", "-q", "-o", place, "--", "make"], cwd=folder, check=True,
        capture_output=True,
    )  # fmt: skip
    subprocess.run([BIN / "cas", "parse"], cwd=place, check=True, capture_output=True)
    done = subprocess.run(
        [BIN / "cas", "export", "build-spec"], cwd=place, check=True, capture_output=True
    )
    assert calls(json.loads(done.stdout)) == calls(found)


def test_arguments_hold_any_byte(folder: Path) -> None:
    words = [b"a b", b"", b"x\ny\tz", b"\"q'", b"[1]", b"\\", "é".encode(), b"\xff\xfe", b"\x01"]
    found = traced(folder, "-d", "--", "env", "-i", "/bin/true", *words)
    shown = [word.decode("utf-8", "surrogateescape") for word in words]
    assert found[-1]["arguments"] == ["/bin/true", *shown]


def test_a_directory_may_have_any_name(folder: Path) -> None:
    odd = os.fsencode(folder) + b'/d "\n\xff'
    Path(os.fsdecode(odd)).mkdir()
    (found,) = traced(folder, "--", "sh", "-c", b'cd "$1" && gcc --version', "sh", odd)
    assert found["directory"].encode("utf-8", "surrogateescape") == odd


def test_what_outlives_the_command_is_in_it(folder: Path) -> None:
    """The grandchild waits for the end of the command: the pipe's last writer."""
    script = """mkfifo gate
    setsid sh -c 'read nothing < gate; gcc -c a.c -o late.o' &
    exec 9> gate"""
    assert drivers(traced(folder, "--", "sh", "-c", script)) == [
        ["gcc", "-c", "a.c", "-o", "late.o"]
    ]


def test_response_files_that_are_gone_are_in_it(folder: Path) -> None:
    (folder / "inner").write_text("-DB='b c' -c\n")
    (folder / "one").write_text("-DA @inner")
    (folder / "two").write_text("a.c -o r.o")
    script = "gcc @one @two && rm inner one two"
    (found,) = traced(folder, "--", "sh", "-c", script)
    assert found["arguments"] == ["gcc", "@one", "@two"]
    assert found["respfile"] == "-DA -DB='b c' -c\n\na.c -o r.o"
    assert not (folder / "one").exists()


def test_programs_that_no_library_can_be_loaded_into_are_in_it(folder: Path) -> None:
    source = folder / "launch.c"
    source.write_text(
        "#include <unistd.h>\n"
        "int main(int n, char **argv) { (void)n; return execvp(argv[1], argv + 1); }\n"
    )
    for flags in ("-static", "-m32"):
        launcher = folder / f"launch{flags}"
        subprocess.run(["gcc", flags, source, "-o", launcher], check=True)
        script = f"exec env -i PATH=$PATH {launcher} gcc -c a.c"
        found = traced(folder, "--backend", "ptrace", "--", "sh", "-c", script)
        assert drivers(found) == [["gcc", "-c", "a.c"]]


def test_where_ptrace_is_not_allowed_preload_takes_its_place(folder: Path) -> None:
    """A process has one tracer: strace is that of unix-tracer, and so of all it starts."""
    command: list[str | Path] = [
        "strace",
        "-f",
        "-o",
        "/dev/null",
        BIN / "unix-tracer",
        "-o",
        "out",
    ]
    done = subprocess.run(
        [*command, "--", "make"], cwd=folder, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"capturing with preload, which misses static programs\n" in done.stderr
    assert len(drivers(json.loads((folder / "out").read_bytes()))) == 6


def test_the_library_may_be_elsewhere(folder: Path) -> None:
    place = folder.parent / "lib"
    installed = Path(sysconfig.get_path("platlib")) / "etrace/libexec/preload"
    shutil.copytree(installed, place)
    options = ("-l", f"/nonexistent:{place}", "-s", "/nonexistent/socket", "-o", "out")
    words = ("--", "sh", "-c", "gcc -c a.c; grep -q $0 /proc/self/maps && echo 1", str(place))
    done = start(folder, *options, "--backend", "preload", *words)
    assert (done.stdout, done.stderr) == (
        b"1\n", b"unix-tracer: -s is not used: etrace needs no socket\n",
    )  # fmt: skip
    assert len(drivers(json.loads((folder / "out").read_bytes()))) == 1
    done = start(folder, *options, "true")
    assert b"unix-tracer: -l is not used: ptrace needs no library\n" in done.stderr
    done = start(folder, "-l", "/nonexistent", "--backend", "preload", "true")
    assert b"unix-tracer: -l is not used: there is no libetrace-*.so" in done.stderr


# ---- the command line ----


def test_the_known_programs_are_those_of_xcalbuild(folder: Path) -> None:
    expected = (
        "ar,cc,ld,gcc,llvm-gcc,clang,c++,g++,llvm-g++,clang++,arm-none-eabi-gcc,arm-none-eabi-g++"
    )
    done = start(folder, "-p")
    assert done.returncode == 0
    assert done.stdout.decode().splitlines() == [
        "Known compilers:", *(f"  {name}" for name in expected.split(",")),
    ]  # fmt: skip
    assert start(folder, "-c", "cc1,as", "-p").stdout == b"Known compilers:\n  cc1\n  as\n"


def test_a_list_replaces_the_known_programs(folder: Path) -> None:
    found = traced(folder, "-c", "as,cc1", "--", "gcc", "-c", "a.c")
    assert [Path(each["arguments"][0]).name for each in found] == ["cc1", "as"]


def test_the_debug_form_says_processes_and_what_is_known(folder: Path) -> None:
    found = traced(folder, "-d", "gcc", "-c", "a.c")
    assert [Path(each["arguments"][0]).name for each in found] == ["gcc", "cc1", "as"]
    assert [each["isKnown"] for each in found] == [1, 0, 0]
    assert {each["ppid"] for each in found[1:]} == {found[0]["pid"]}


@pytest.mark.parametrize("words", [["-h"], ["-?"], ["-x"], [], ["-o", "x", "--"]])
def test_a_wrong_command_line_ends_with_1_and_the_usage(folder: Path, words: list[str]) -> None:
    done = start(folder, *words)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(
        b"usage: unix-tracer [-o output] [-l libpaths] [-s socket] [-d] [-c clist] [-p] [-h] -- "
    )


def test_the_output_is_compile_commands_json_readable_by_its_owner_only(folder: Path) -> None:
    assert start(folder, "gcc", "-c", "a.c").returncode == 0
    assert (folder / "compile_commands.json").stat().st_mode & 0o777 == 0o600


def test_the_output_appears_at_the_end(folder: Path) -> None:
    (folder / "out").write_text("older")
    done = start(folder, "-o", "out", "--", "sh", "-c", "cat out; gcc -c a.c; ls -a | wc -l")
    n_files = int(done.stdout.removeprefix(b"older"))
    assert n_files == len(list(folder.iterdir())) + 2  # nothing else lay there
    assert len(json.loads((folder / "out").read_bytes())) == 1


def test_the_status_is_that_of_the_build(folder: Path) -> None:
    assert len(traced(folder, "--", "sh", "-c", "gcc -c a.c; exit 7", status=7)) == 1
    assert len(traced(folder, "sh", "-c", "gcc -c a.c; kill $$", status=-signal.SIGTERM)) == 1


def test_a_command_that_does_not_exist_leaves_the_output(folder: Path) -> None:
    (folder / "out").write_text("older")
    done = start(folder, "-o", "out", "--", "no-such-command")
    assert (done.returncode, done.stderr.count(b"\n")) == (127, 1)
    assert (folder / "out").read_text() == "older"


@pytest.mark.parametrize("output", ["sub", "nowhere/out"])
def test_an_output_that_cannot_be_written_stops_before_the_build(folder: Path, output: str) -> None:
    done = start(folder, "-o", output, "--", "touch", "built")
    assert (done.returncode, (folder / "built").exists()) == (125, False)
    assert b"give another file with -o" in done.stderr


def test_nothing_is_left_in_the_temporary_directory(folder: Path) -> None:
    place = folder.parent / "tmp"
    place.mkdir()
    assert start(folder, "gcc", "-c", "a.c", env={"TMPDIR": str(place)}).returncode == 0
    assert list(place.iterdir()) == []


def test_an_empty_build_spec_says_why(folder: Path) -> None:
    done = start(folder, "-c", "vc", "--", "sh", "-c", "gcc -c a.c")
    assert b"none of 4 calls is of a known program; these ran: " in done.stderr
    assert b"gcc (1)" in done.stderr


def test_a_signal_ends_the_build_and_the_spec_is_written(folder: Path) -> None:
    script = "gcc -c a.c; echo begun; exec cat"
    with subprocess.Popen(
        [BIN / "unix-tracer", "-o", "out", "--", "sh", "-c", script],
        cwd=folder, stdout=subprocess.PIPE, stdin=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM
    assert drivers(json.loads((folder / "out").read_bytes())) == [["gcc", "-c", "a.c"]]


def test_what_never_ends_is_ended_by_signals_and_the_spec_is_written(folder: Path) -> None:
    """The first SIGTERM is for the command, which has ended; a later one for all that is left."""
    os.mkfifo(folder / "never")
    script = "gcc -c a.c; setsid sh -c 'read nothing < never' & echo $!"
    with subprocess.Popen(
        [BIN / "unix-tracer", "-o", "out", "--", "sh", "-c", script],
        cwd=folder, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        left = Path("/proc") / process.stdout.readline().decode().strip()
        while left.exists():
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
    assert drivers(json.loads((folder / "out").read_bytes())) == [["gcc", "-c", "a.c"]]
