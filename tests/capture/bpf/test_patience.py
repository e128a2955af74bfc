# SPDX-License-Identifier: Apache-2.0
"""native/bpf/patience.c: a name in a file system whose server never answers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import fuse
import pytest

TOP = Path(__file__).resolve().parents[3]
PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include "bpf/patience.h"
#include "capture/program.h"
const char program_name[] = "asking";
void program_save(void) {}
int main(int argc, char **argv)
{
	int root = open(argv[1], O_PATH | O_DIRECTORY);
	for (int i = 2; i < argc; i++)
		printf("%d %d\n", open_in_time(rights_own(), argv[i], 0, -1) >= 0,
			open_in_time(rights_own(), argv[i], 0, root) >= 0);
	return 0;
}
"""


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    """A program that opens names, from its own root and from its first argument."""
    (tmp_path / "main.c").write_text(PROGRAM)
    target = tmp_path / "asking"
    subprocess.run(
        ["gcc", "-D_GNU_SOURCE", "-I", TOP / "native", "-pthread", "-o", target,
         tmp_path / "main.c", TOP / "native/bpf/patience.c",
         *(TOP / f"native/capture/{name}.c" for name in ("proc", "program", "rights"))],
        check=True,
    )  # fmt: skip
    return target


def answers(program: Path, *words: str | Path) -> str:
    return subprocess.run(
        [program, *words], check=True, capture_output=True, text=True, timeout=60
    ).stdout


def test_a_name_is_opened_below_its_root(asking: Path, tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    inside, outside = "/there", tmp_path / "there"
    assert answers(asking, tmp_path, inside, outside) == "0 1\n1 0\n"


@pytest.mark.root
def test_a_dead_server_of_files_is_given_up(asking: Path, tmp_path: Path) -> None:
    with fuse.dead_server(tmp_path.resolve() / "fuse") as mount:
        found = answers(asking, "/", mount / "a/b", mount / "c/d", *[mount / "x/y"] * 50, "/etc")
    assert found == "0 0\n" * 52 + "1 1\n"
