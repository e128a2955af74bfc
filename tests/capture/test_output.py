# SPDX-License-Identifier: Apache-2.0
"""The files that the tracer writes: their names and who can read them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from backends import BACKENDS


@pytest.fixture
def tracer(public: Path) -> Path:
    """Give the tracer where everybody can execute it."""
    return Path(shutil.copy(BACKENDS[0].path(), public / "tracer"))


@pytest.mark.parametrize("options", [(), ("--rotate", "t.stats")])
@pytest.mark.parametrize("flags", [(), ("--env",)])
def test_arguments_and_environments_are_for_their_owner_alone(
    tracer: Path, tmp_path: Path, flags: tuple[str, ...], options: tuple[str, ...]
) -> None:
    folder = tracer.parent / tmp_path.name
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "t").touch()
    user = 65534 if os.geteuid() == 0 else os.geteuid()
    os.chown(folder / "t", user, -1)
    subprocess.run(
        [tracer, "-o", "t", "--stats", "t.stats", *options, *flags, "--", "true"],
        check=True, umask=0o022, cwd=folder, user=user,
    )  # fmt: skip
    found = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert {name: found[name] for name in ("t", "t.stats")} == {"t": 0o600, "t.stats": 0o600}


def test_what_was_left_by_a_capture_that_was_killed_at_once_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "t.starting").write_text("half a line")
    command = [str(BACKENDS[0].path()), "-o", "t", "--rotate", "t.stats", "--", "true"]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    assert (tmp_path / "t").read_bytes().startswith(b"INITCWD=")


def test_what_would_change_the_terminal_is_shown_quoted(tmp_path: Path) -> None:
    """A name in a message is whatever a traced program likes: of a process, of a file."""
    name = b"/\x1b[31m\xc2\x9b\xe2\x80\xae\x9b\x7f\xc5\xbc\t\xf0\x9f\x98\x80"
    command = [os.fsencode(BACKENDS[0].path()), b"-o", b"t", b"--", name]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True)
    shown = rb"/\x1b[31m\xc2\x9b\xe2\x80\xae\x9b\x7f" + b"\xc5\xbc\t\xf0\x9f\x98\x80"
    assert done.stderr == b"etrace: cannot run '%s': No such file or directory\n" % shown
