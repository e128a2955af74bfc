# SPDX-License-Identifier: Apache-2.0
"""A small project in git that was built and traced with its environment, and its documents.

`tiny` is linked without any library, so that its document is small; `hello` with libc. The build
holds secrets in its environment and on a command line, makes a header, and reads one whose name is
not UTF-8.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
#: what no document may hold; each is in the environment or on a command line
SECRETS = ("hunter2-environment", "hunter2-command", "hunter2-url", "ghp_" + "a1B2" * 9)
ODD = b"odd-\xff.h"
# REUSE-IgnoreStart
SOURCES = {
    b"tiny.c": '/* SPDX-License-Identifier: MIT */\n#include "made.h"\n'
    "int main(void) { return N; }\n",
    b"hello.c": '// SPDX-License-Identifier: Apache-2.0\n#include "odd.h"\n'
    'extern int puts(const char *);\nint main(void) { return puts("hi") < 0; }\n',
    b"unused.c": "int never_compiled;\n",
    ODD: "/* odd */\n",
}
# REUSE-IgnoreEnd
SCRIPT = f"""
echo '#define N 0' > made.h
true --password {SECRETS[1]} https://me:{SECRETS[2]}@example.org/x {SECRETS[3]} > made.log
gcc -DAPI_TOKEN={SECRETS[1]} -ffreestanding -nostdlib -c tiny.c -o tiny.o
gcc -nostdlib -Wl,-e,main -static -o tiny tiny.o
gcc -c hello.c -o hello.o
gcc -o hello hello.o
"""
WORDS = [
    "--name", "example", "--product-version", "1.2", "--licence", "MIT",
    "--supplier", "Example Ltd <https://example.org>", "--creator", "Example <sbom@example.org>",
    "--copyright", "Copyright 2026 Example Ltd",
    "--cpe", "cpe:2.3:a:example:hello:1.2:*:*:*:*:*:*:*",
]  # fmt: skip


def git(tree: Path, *words: str) -> str:
    """Run git in a tree; return what it prints."""
    who = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *who, *words], cwd=tree, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def write_tree(tree: Path) -> Path:
    """Write the project and commit it."""
    tree.mkdir(parents=True)
    for name, text in SOURCES.items():
        Path(os.fsdecode(os.fsencode(tree) + b"/" + name)).write_text(text)
    (tree / "odd.h").symlink_to(os.fsdecode(ODD))
    git(tree, "init", "-q", "-b", "main")
    git(tree, "remote", "add", "origin", f"https://user:{SECRETS[2]}@example.org/hello.git")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "first")
    return tree


def build(tree: Path, *words: str) -> Path:
    """Trace the build of a tree, with more options if wanted, and make its database there."""
    environment = {
        "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "CCACHE_DISABLE": "1",
        "SECRET_KEY": SECRETS[0], "VISIBLE": "seen",
    }  # fmt: skip
    (tree / ".git/info/exclude").write_text(".nfsdb*\n*.o\nmade.*\ntiny\nhello\n")
    for command in (
        ["etrace", "run", "--backend", "ptrace", "--env", "-q", *words,
         "--", "sh", "-e", "-c", SCRIPT],
        ["cas", "parse", "-q"],
        ["cas", "pp", "-q"],
    ):  # fmt: skip
        program = BIN / command[0]
        done = subprocess.run(
            [program, *command[1:]], cwd=tree, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    return tree


def export(
    tree: Path, *words: str, epoch: str | None = "1700000000", status: int = 0
) -> tuple[bytes, str]:
    """Return a document of a tree, and what was said about it."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch or ""}
    if epoch is None:
        del environment["SOURCE_DATE_EPOCH"]
    done = subprocess.run(
        [BIN / "cas", "export", "sbom", "--db", tree, *words], env=environment,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr.decode()


def document(tree: Path, *words: str) -> dict[str, Any]:
    """Return a document of a tree as values."""
    found = json.loads(export(tree, *words)[0])
    assert isinstance(found, dict)
    return found
