# SPDX-License-Identifier: Apache-2.0
"""Real compiler wrappers: their builds give the compilation database of the plain build.

One entry for each translation unit, whoever compiles it: gcc that the wrapper runs, a server on
this machine, or nobody, when the wrapper has the object already.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trying
from backends import need_tool

BIN = Path(sysconfig.get_path("scripts"))
ANYONE = "nobody"
FILES = {
    "a.c": "int a;\n",
    "m.c": "#include <stdio.h>\nint main(void) { puts(NAME); return 0; }\n",
    "sub/b.c": "int b;\n",
    "sub/Makefile": "b.o: b.c\n\t$(CC) -Wall -c b.c\n",
    "Makefile": """\
prog: a.o m.o
\t$(MAKE) -C sub CC="$(CC)" b.o
\tgcc a.o m.o sub/b.o -o prog
%.o: %.c
\t$(CC) -O1 -DNAME='"a  b"' -c $< -o $@
""",
}
Entry = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of two Makefiles; the state of the wrappers is beside it."""
    path = tmp_path.resolve() / "project"
    for name, text in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return path


def variables(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment: caches of this test alone, and no ccache unless it is asked for."""
    own = {
        f"{name}_DIR": str(folder.parent / name.lower()) for name in ("DISTCC", "CCACHE", "SCCACHE")
    }
    for path in own.values():
        Path(path).mkdir(exist_ok=True)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("CCACHE_")}
    return {**kept, **own, "LC_ALL": "C", **more}


def entries(folder: Path, cc: str, env: Mapping[str, str], backend: str = "ptrace") -> list[Entry]:
    """Build from nothing; return the entries in any order."""
    for path in (*folder.rglob("*.o"), *folder.glob("prog"), *folder.glob(".nfsdb*")):
        path.unlink()
    make = ["make", f"CC={cc}"]
    for words in (
        ["etrace", "run", "--backend", backend, "--", *make],
        ["cas", "parse"],
        ["cas", "pp"],
        ["cas", "export", "compile_commands", "-o", "cc.json"],
    ):
        done = subprocess.run(
            [BIN / words[0], *words[1:]],
            cwd=folder, env=dict(env), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    found: list[Entry] = json.loads((folder / "cc.json").read_bytes())
    return sorted(found, key=lambda each: str(each.get("output")))


def plain(folder: Path) -> list[Entry]:
    """Return the entries of the build without a wrapper."""
    found = entries(folder, "gcc", variables(folder))
    assert [Path(each["output"]).relative_to(folder) for each in found] == [
        Path("a.o"), Path("m.o"), Path("sub/b.o"),
    ]  # fmt: skip
    return found


def free_port() -> str:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return str(it.getsockname()[1])


@contextlib.contextmanager
def distcc_server() -> Iterator[str]:
    """Run a server of distcc on this machine; yield its host, for DISTCC_HOSTS."""
    port = free_port()
    command = [
        need_tool("distccd", "distcc"), "--daemon", "--no-detach", "--user", ANYONE, "--jobs", "2",
        "--listen", "127.0.0.1", "--port", port, "--allow", "127.0.0.1", "--enable-tcp-insecure",
        "--log-stderr", "--log-level", "info",
    ]  # fmt: skip
    env = {**os.environ, "TMPDIR": "/tmp"}  # its user cannot write into that of the tests
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=env, text=True) as server:
        assert server.stderr is not None
        line = ""
        while "daemon started" not in line:
            line = server.stderr.readline()
            assert line, "distccd ended"
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()
            server.stderr.read()


def answers(port: str) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(port))):
        return True
    return False


@contextlib.contextmanager
def sccache_server(env: Mapping[str, str]) -> Iterator[None]:
    """Run a server of sccache, as it runs before a build begins.

    `--start-server` would give up after ten seconds, however busy the machine is.
    """
    command = need_tool("sccache", "sccache")
    own = {**env, "SCCACHE_START_SERVER": "1", "SCCACHE_NO_DAEMON": "1"}
    with subprocess.Popen([command], env=own, stderr=subprocess.DEVNULL) as server:
        trying.until(lambda: answers(env["SCCACHE_SERVER_PORT"]) or server.poll() is not None)
        assert server.poll() is None, "sccache ended"
        try:
            yield
        finally:
            subprocess.run([command, "--stop-server"], env=env, check=True, capture_output=True)


@pytest.mark.parametrize("backend", ["ptrace", "preload", "strace"])
def test_distcc_that_compiles_here(folder: Path, backend: str) -> None:
    need_tool("distcc", "distcc")
    expected = plain(folder)
    env = variables(folder, DISTCC_HOSTS="localhost")
    assert entries(folder, "distcc gcc", env, backend) == expected
    masked = {**env, "PATH": f"/usr/lib/distcc:{env['PATH']}"}
    assert entries(folder, "gcc", masked, backend) == expected


def test_distcc_whose_server_compiles(folder: Path) -> None:
    """Nothing of the build runs cc1 of the server: it was not started by the build."""
    expected = plain(folder)
    with distcc_server() as host:
        env = variables(folder, DISTCC_HOSTS=host, DISTCC_FALLBACK="0")
        assert entries(folder, "distcc gcc", env) == expected
        masked = {**env, "PATH": f"/usr/lib/distcc:{env['PATH']}"}
        assert entries(folder, "gcc", masked) == expected


def test_ccache_that_runs_distcc(folder: Path) -> None:
    need_tool("ccache", "ccache")
    expected = plain(folder)
    with distcc_server() as host:
        env = variables(folder, DISTCC_HOSTS=host, DISTCC_FALLBACK="0", CCACHE_PREFIX="distcc")
        assert entries(folder, "ccache gcc", env) == expected
    assert entries(folder, "ccache gcc", env) == expected  # hits: the server is gone


def test_icecc_without_a_scheduler(folder: Path) -> None:
    need_tool("icecc", "icecc")
    expected = plain(folder)
    env = variables(folder)
    assert entries(folder, "icecc gcc", env) == expected
    assert entries(folder, "gcc", {**env, "PATH": f"/usr/lib/icecc/bin:{env['PATH']}"}) == expected
    assert entries(folder, "ccache gcc", {**env, "CCACHE_PREFIX": "icecc"}) == expected


def test_sccache_whose_server_compiles(folder: Path) -> None:
    """The server writes the objects, so the trace has none; the commands name them."""
    expected = plain(folder)
    env = variables(folder, SCCACHE_SERVER_PORT=free_port(), SCCACHE_IDLE_TIMEOUT="0")
    with sccache_server(env):
        assert entries(folder, "sccache gcc", env) == expected
        assert entries(folder, "sccache gcc", env) == expected  # hits
