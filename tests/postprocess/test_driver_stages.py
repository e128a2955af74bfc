# SPDX-License-Identifier: Apache-2.0
"""Compilations whose response file is gone: the same without one is the oracle."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest
from backends import capture
from compiling import BuildTeller, Found, find, write_database
from libetrace.image.file import Image

CAS = Path(sysconfig.get_path("scripts")) / "cas"
#: command -> whether the trace has all of it without the file
COMMANDS = {
    "gcc -c -Iinc -DX=1 -D Y -UZ -isystem sys -iquote quote -include inc/i.h a.c -o a.o": True,
    "gcc -c a.c b.c": True,
    "gcc a.c b.c -Iinc -o prog": True,
    "gcc -S -DX a.c": True,
    "gcc -pipe -c b.c -o piped.o": True,
    "gcc -save-temps -c b.c -o temps.o": True,
    "gcc -c s.S -DS -o s.o": True,
    "gcc -c t.s -o t.o": True,
    "g++ -c -DX -Iinc b.c -o bxx.o": True,
    "g++ -pthread -c p.cpp -o p.o": True,
    "gcc -flto a.c b.c -o lto": True,
    "gcc -E b.c -o b.i": True,
    "gcc a.o -o linked": True,
    "gcc -fsyntax-only b.c": True,
    "clang -c b.c -o cb.o": False,
}
FILES = {
    "a.c": "int main(void) { return 0; }\n",
    "b.c": "int b(void) { return 0; }\n",
    "p.cpp": "#include <cstddef>\nint p() { return 0; }\n",
    "s.S": ".globl s\ns: ret\n",
    "t.s": ".globl t\nt: ret\n",
    "inc/i.h": "",
    "sys/s.h": "",
    "quote/q.h": "",
}


def build(directory: Path, script: str) -> Image:
    for name, text in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    (directory / "build.sh").write_text(script)
    captured = capture(["sh", "-e", "build.sh"], directory)
    assert captured.status == 0
    database = directory / "database"
    database.mkdir()
    return write_database(database, captured.trace.read_bytes())


def by_object(found: list[Found], directory: Path) -> list[Found]:
    """What is found of each command, with paths below the build."""

    def short(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(path.replace(f"{directory}/", "") for path in paths)

    return [
        replace(f, files=short(f.files), objects=short(f.objects), includes=short(f.includes),
                headers=short(f.headers))
        for f in found
    ]  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Image, Path, Image]:
    """Every command unchanged, and with its words in a file that is removed at once."""
    plain, gone = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("gone")
    lines = []
    for command in COMMANDS:
        program, _, words = command.partition(" ")
        lines.append(f"echo '{words}' > words; {program} @words; rm words\n")
    return (
        plain, build(plain, "".join(f"{command}\n" for command in COMMANDS)),
        gone, build(gone, "".join(lines)),
    )  # fmt: skip


def test_stages_say_what_a_lost_response_file_held(
    built: tuple[Path, Image, Path, Image],
) -> None:
    plain, expected, gone, image = built
    known = [f for f in find(expected) if not f.argv0.endswith("clang")]
    assert by_object(find(image), gone) == by_object(known, plain)


def test_what_stays_unknown_is_counted_and_listed(built: tuple[Path, Image, Path, Image]) -> None:
    _, _, gone, image = built
    ran = subprocess.run(
        [CAS, "pp", "--dbdir", image.path.parent], capture_output=True, text=True, check=True
    )
    unknown = [command for command, is_known in COMMANDS.items() if not is_known]
    assert len(unknown) == 1
    expected = (
        "cas pp: 1 command is only partly known, because response files are gone or too large; "
        "to list them: cas pp --list-unread"
    )
    assert expected in ran.stderr.splitlines()
    listed = subprocess.run(
        [CAS, "pp", "--dbdir", image.path.parent, "--list-unread"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert [line.split()[1] for line in listed] == [f"{gone}/words"]
    assert all(line.split()[0].isdigit() for line in listed)


def test_what_the_driver_was_given_itself_counts_when_nothing_else_says(tmp_path: Path) -> None:
    ran = BuildTeller().run(10, "/usr/bin/clang", "clang -c @gone b.c -DX", cwd=str(tmp_path))
    image = write_database(tmp_path, ran.end(10).trace())
    (found,) = find(image)
    assert (found.files, found.definitions) == ((f"{tmp_path}/b.c",), (("X", "1", False),))


def test_a_launcher_is_not_unknown_when_its_compiler_is_known(tmp_path: Path) -> None:
    ran = BuildTeller().run(10, "/usr/bin/ccache", "ccache gcc @gone", cwd=os.fspath(tmp_path))
    ran.run(20, "/usr/bin/gcc", "gcc -c b.c", parent=10, cwd=os.fspath(tmp_path)).end(20, 10)
    image = write_database(tmp_path, ran.trace())
    done = subprocess.run(
        [CAS, "pp", "--dbdir", tmp_path], capture_output=True, text=True, check=True
    )
    assert "list-unread" not in done.stderr
    assert [f.files for f in find(image)] == [(f"{tmp_path}/b.c",)]
