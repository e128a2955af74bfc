# SPDX-License-Identifier: Apache-2.0
"""What response files of compilers held goes beside the trace; nothing else is read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from backends import PRELOAD, PTRACE, Backend, capture, public_libraries

from etrace.parse import responses

ETRACE = Path(sysconfig.get_path("scripts")) / "etrace"
CAS = ETRACE.with_name("cas")
Record = tuple[bytes, bytes]


@pytest.fixture
def folder(folder: Path) -> Path:
    """A directory with a tool that does nothing, under several names."""
    for name in ("gcc", "aarch64-linux-gnu-ld-2.40", "npm"):
        shutil.copy("/bin/true", folder / name)
    return folder


@pytest.fixture(params=[PTRACE, PRELOAD], ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    found: Backend = request.param
    return found


def captured(
    backend: Backend, folder: Path, command: str, *more: str
) -> tuple[list[Record], dict[str, int]]:
    """Run a shell command; return the files that were kept, and the counts."""
    side, stats = folder / "kept.rsp", folder / "stats"
    options = ("--response-files", str(side), "--stats", str(stats), *more)
    done = capture(["sh", "-c", command], folder, options=options, backend=backend)
    assert done.status == 0, done.stderr
    raw = json.loads(stats.read_bytes())
    counts = {key: raw[key] for key in ("response_files", "missed_response_files")}
    found = list(responses.read(side.read_bytes())) if side.exists() else []
    assert all(upid > 0 for upid, _, _ in found)
    return [(path, content) for _, path, content in found], counts


def test_what_the_files_held_is_kept_nested_ones_too(backend: Backend, folder: Path) -> None:
    (folder / "sub").mkdir()
    inner = b"-DA='b c' \xff\n"
    (folder / "words").write_bytes(b"-c '@sub/in ner' x.c @gone @")
    (folder / "sub/in ner").write_bytes(inner)
    (folder / "absolute").write_bytes(b"@sub/in\\ ner")
    found, counts = captured(
        backend, folder, f"./gcc -O2 @words && cd sub && ../gcc @{folder}/absolute"
    )
    base = os.fsencode(folder)
    assert found == [
        (base + b"/words", b"-c '@sub/in ner' x.c @gone @"),
        (base + b"/sub/in ner", inner),
        (base + b"/absolute", b"@sub/in\\ ner"),
    ]
    assert counts == {"response_files": 3, "missed_response_files": 2}  # gone, sub/sub/in ner


def test_a_command_that_removes_its_files_at_once_runs_after_they_are_read(folder: Path) -> None:
    """As ninja does on a loaded machine before the thread that reads them had a processor."""
    shutil.copy("/bin/rm", folder / "gcc")
    names = [f"n{number}" for number in range(256)]
    for name in names:
        (folder / name).write_bytes(b"-c x.c" * 1000)
    command = f"./gcc -f {' '.join(reversed(names))} {' '.join(f'@{name}' for name in names)}"
    _, counts = captured(PTRACE, folder, command)
    assert counts == {"response_files": 256, "missed_response_files": 0}


def test_a_content_is_written_once(backend: Backend, folder: Path) -> None:
    (folder / "words").write_bytes(b"-c x.c" * 1000)
    found, _ = captured(backend, folder, "./gcc @words; ./gcc @words; ./gcc @words")
    assert found == [(os.fsencode(folder / "words"), b"-c x.c" * 1000)] * 3
    assert (folder / "kept.rsp").stat().st_size < 8000


def test_only_of_compilers_linkers_and_archivers(backend: Backend, folder: Path) -> None:
    (folder / "words").write_bytes(b"w")
    command = "./npm @words; ./gcc words x@words @; ./aarch64-linux-gnu-ld-2.40 @words"
    found, counts = captured(backend, folder, command)
    assert found == [(os.fsencode(folder / "words"), b"w")]
    assert counts == {"response_files": 1, "missed_response_files": 0}


def test_nothing_but_small_regular_files_is_read(backend: Backend, folder: Path) -> None:
    """A pipe that was opened would wait for its other end, or let it go on."""
    os.mkfifo(folder / "pipe")
    (folder / "large").write_bytes(b"x" * ((1 << 20) + 1))
    found, counts = captured(backend, folder, "./gcc @pipe @large @. @/dev/null @/dev/zero")
    assert found == []
    assert counts == {"response_files": 0, "missed_response_files": 5}
    assert not (folder / "kept.rsp").exists()


def test_a_file_is_read_once_for_a_command_however_often_it_is_named(
    backend: Backend, folder: Path
) -> None:
    (folder / "a").write_bytes(b"@a @b " * 100000)
    (folder / "b").write_bytes(b"@a @a")
    found, counts = captured(backend, folder, "./gcc @a @b @a")
    assert [path for path, _ in found] == [os.fsencode(folder / name) for name in "ab"]
    assert counts == {"response_files": 2, "missed_response_files": 0}


def test_no_more_than_256_files_are_read_for_a_command(backend: Backend, folder: Path) -> None:
    for number in range(300):
        (folder / f"n{number}").write_bytes(b"@n%d" % (number + 1))
    found, counts = captured(backend, folder, "./gcc @n0; ./gcc @n298 " + " ".join(["@n299"] * 300))
    names = [*range(256), 298, 299]
    assert [path for path, _ in found] == [os.fsencode(folder / f"n{name}") for name in names]
    n_repeated = 45 if backend.name == "ptrace" else 0  # it counts before it compares names
    assert counts == {"response_files": 258, "missed_response_files": 1 + n_repeated + 1}


def test_names_that_no_file_can_have_are_only_counted(backend: Backend, folder: Path) -> None:
    for number in range(5):
        words = (b"@%d%s" % (number * 250 + n, b"x" * 4096) for n in range(250))
        (folder / f"n{number}").write_bytes(b" ".join(words))
    _, counts = captured(backend, folder, "./gcc @n0 @n1 @n2 @n3 @n4")
    assert counts == {"response_files": 5, "missed_response_files": 1250}


@pytest.mark.root
def test_root_reads_nothing_for_somebody_who_could_not(folder: Path) -> None:
    secret, own = folder / "secret", folder / "own"
    for path in (secret, own):
        path.write_bytes(b"words")
        path.chmod(0o600)
    os.chown(own, 12345, -1)
    command = f"setpriv --reuid 12345 --regid 12345 --clear-groups {folder}/gcc @{secret} @{own}"
    for path in (folder, *folder.parents):
        if not path.stat().st_mode & 1:
            path.chmod(path.stat().st_mode | 1)
    found, counts = captured(PTRACE, folder, command)
    assert found == [(os.fsencode(own), b"words")]
    assert counts == {"response_files": 1, "missed_response_files": 1}


@pytest.mark.root
def test_files_of_proc_are_not_read(folder: Path) -> None:
    """They would be those of the tracer, or of processes that only root may look into."""
    own = folder / "own"
    own.write_bytes(b"words")
    for path in (folder, *folder.parents):
        if not path.stat().st_mode & 1:
            path.chmod(path.stat().st_mode | 1)
    names = ["/proc/1/maps", "/proc/1/mountinfo", f"/proc/1/root{own}", "/proc/self/status"]
    names += ["/dev/fd/3", "/proc/1/fd/0"]
    words = " ".join(f"@{name}" for name in [*names, own])
    command = f"setpriv --reuid 12345 --regid 12345 --clear-groups {folder}/gcc {words} 3<own"
    found, counts = captured(PTRACE, folder, command)
    assert found == [(os.fsencode(own), b"words")]
    assert counts == {"response_files": 1, "missed_response_files": len(names)}


@pytest.mark.root
def test_root_that_cannot_become_somebody_reads_nothing_for_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tracer without CAP_SETUID and CAP_SETGID, and a program with the bit set-user-ID."""
    shutil.copy("/bin/true", folder / "cc")
    os.chown(folder / "cc", 12345, -1)
    (folder / "cc").chmod(0o4755)
    (folder / "words").write_bytes(b"words")
    (folder / "words").chmod(0o600)
    weak = folder / "weak"
    program = PTRACE.path()
    weak.write_text(f'#!/bin/sh\nexec setpriv --bounding-set=-setuid,-setgid {program} "$@"\n')
    weak.chmod(0o755)
    monkeypatch.setenv("ETRACE_PTRACE", os.fspath(weak))
    found, counts = captured(PTRACE, folder, "./cc @words; ./gcc @words")
    assert found == [(os.fsencode(folder / "words"), b"words")]
    assert counts == {"response_files": 1, "missed_response_files": 1}


@pytest.mark.root
def test_the_file_is_as_private_as_the_trace(backend: Backend, folder: Path) -> None:
    (folder / "words").write_bytes(b"w")
    captured(backend, folder, "./gcc @words")
    assert (folder / "kept.rsp").stat().st_mode & 0o777 == 0o600


@pytest.mark.root
def test_a_program_of_another_user_says_nothing_to_the_library_s_collector(folder: Path) -> None:
    """The kernel does not let it open the shared memory."""
    (folder / "words").write_bytes(b"words")
    for path in (folder, *folder.parents):
        path.chmod(path.stat().st_mode | 1)
    command = f"setpriv --reuid 12345 --regid 12345 --clear-groups {folder}/gcc @{folder}/words"
    found, counts = captured(PRELOAD, folder, command, *public_libraries(folder))
    assert found == []
    assert counts == {"response_files": 0, "missed_response_files": 1}


def run(folder: Path, *options: str) -> None:
    subprocess.run([ETRACE, "run", "-q", *options, "--", "clang", "@words"], cwd=folder, check=True)


def test_a_compilation_is_known_by_what_its_response_file_held(
    backend: Backend, folder: Path
) -> None:
    (folder / "x.c").write_text("int x;\n")
    (folder / "words").write_text("-c -DX=1 x.c -o x.o")
    run(folder, "--backend", backend.name)
    (folder / "words").unlink()
    subprocess.run([CAS, "parse", "-q"], cwd=folder, check=True)
    done = subprocess.run([CAS, "pp"], cwd=folder, check=True, capture_output=True, text=True)
    assert "compilations  1 compilation" in done.stdout
    assert "list-unread" not in done.stderr
    subprocess.run([CAS, "cache", "-q"], cwd=folder, check=False)
    compiled = subprocess.run([CAS, "compiled"], cwd=folder, check=True, capture_output=True)
    assert compiled.stdout.split() == [os.fsencode(folder / "x.c")]


def test_without_the_option_nothing_is_read_and_the_older_file_goes_with_its_trace(
    backend: Backend, folder: Path
) -> None:
    (folder / "x.c").write_text("int x;\n")
    (folder / "words").write_text("-c x.c")
    run(folder, "--backend", backend.name)
    assert (folder / ".nfsdb.rsp").exists()
    run(folder, "--backend", backend.name, "--no-response-files")
    assert not (folder / ".nfsdb.rsp").exists()
    assert (folder / ".nfsdb.rsp.old").exists()


@pytest.mark.parametrize(
    ("command", "content", "nested"),
    [
        ("./clang @words", "@inner 'a b'".encode("utf-16"), True),
        ("./clang @words", b"\xfe\xff" + "é @inner".encode("utf-16-be"), True),
        ("./clang @words", b"\xef\xbb\xbf@inner", True),
        ("./gcc @words", b"\xef\xbb\xbf@inner", False),
        ("./gcc @words", b"'@inner'", True),
        ("./clang-cl @words", b"'@inner' '", False),
        ("./clang --rsp-quoting=windows @words", b'x\\"y "@inner"', True),
        ("./clang-cl --rsp-quoting=posix @words", b"'@inner'", True),
        ("./clang-cl @words", b'"x""y"@inner "x\\\\"@inner', False),
        ("./rustc @words", b"@inner", False),
        ("./javac @@words @words", b"@inner", False),
        ("./nvcc --options-file words", b"-optf=inner", True),
        ("./nvcc --options-file=words", b"--options-file inner", True),
        ("./armcc --via words", b"-c --via=inner", True),
        ("./nasm -@ words", b"-@ inner", True),
        ("./ld-linux-x86-64.so.2 --argv0 npm --library-path npm ./gcc @words", b"@inner", True),
        ("./qemu-aarch64-static -L npm -E A=b ./gcc @words", b"@inner", True),
        ("./valgrind -q --tool=none ./clang @words", b"@inner", True),
        ("./java @words", b"@inner", False),
        ("./java -cp npm com.sun.tools.javac.Main @words", b"@inner", False),
        ("cd sub && ../gcc @/proc/self/cwd/../words", b"@/proc/self/cwd/../inner", True),
    ],
)
def test_names_are_read_as_the_tool_reads_them(
    backend: Backend, folder: Path, command: str, content: bytes, nested: bool
) -> None:
    names = "clang clang-cl rustc javac nvcc armcc nasm ld-linux-x86-64.so.2 valgrind java"
    for name in (*names.split(), "qemu-aarch64-static"):
        shutil.copy("/bin/true", folder / name)
    (folder / "sub").mkdir()
    (folder / "words").write_bytes(content)
    (folder / "inner").write_bytes(b"w")
    found, counts = captured(backend, folder, command)
    assert [(path.rpartition(b"/")[2], text) for path, text in found] == [
        (b"words", content), *([(b"inner", b"w")] if nested else []),
    ]  # fmt: skip
    assert counts == {"response_files": len(found), "missed_response_files": 0}


@pytest.mark.parametrize(
    "command",
    [
        "./ld-linux-x86-64.so.2 --preload gcc ./npm @words",
        "./ld-linux-x86-64.so.2 ./npm gcc @words",
        "./java -cp gcc Main @words", "./java -jar npm gcc @words", "./qemu-arm -L gcc npm @words",
    ],
)  # fmt: skip
def test_a_runner_s_other_programs_are_no_tools(
    backend: Backend, folder: Path, command: str
) -> None:
    for name in ("ld-linux-x86-64.so.2", "java", "qemu-arm"):
        shutil.copy("/bin/true", folder / name)
    (folder / "words").write_bytes(b"w")
    found, counts = captured(backend, folder, command)
    assert (found, counts["missed_response_files"]) == ([], 0)
