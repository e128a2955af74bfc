# SPDX-License-Identifier: Apache-2.0
"""Fleets: of a project that was traced with secrets everywhere, and of the golden Lua build.

`hello` is built by gcc from two sources, below a home directory and under a user's name. Values of
SECRETS are in the environment, on command lines, in a shell's script and in the names of files.
"""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import databases
import pytest
from libetrace.image.file import Image

from etrace.fleet.dataset import Dataset, open_dataset
from etrace.fleet.duck import Duck
from etrace.fleet.record import About
from etrace.fleet.redaction import Redactor
from etrace.nfsdb.store import open_database

BIN = Path(sys.executable).parent
PERSON, OTHER = "mallory.q", "trudy-w"
SECRETS = (
    "hunter2-environment", "hunter2-command", "hunter2-url", "hunter2-file", "hunter2-script",
    "ghp_" + "a1B2" * 9,
)  # fmt: skip
ENVIRONMENT, COMMAND, URL, FILE, INSIDE, TOKEN = SECRETS
#: a value for each parameter of a question
VALUES = {
    "file": "src/lvm.h", "program": "gcc", "package": "libc6%", "hash": "0" * 40,
    "pattern": "%.h", "commit": "c2", "build": "2", "step": "cc1 lvm.c", "label": "team",
}  # fmt: skip
TIME = datetime.datetime(2026, 11, 27, 12, 0)
SCRIPT = f"""
echo '#define N 0' > made.h
true --password {COMMAND} https://me:{URL}@example.org/x {TOKEN} > made.log
sh -c 'true --token {INSIDE}; echo ok' >> made.log
mkdir -p out-{FILE} && true --api-key {FILE}
echo {OTHER} was here > by-{OTHER}.txt; cat by-{OTHER}.txt > out-{FILE}/{ENVIRONMENT}.log
gcc -DAPI_TOKEN={COMMAND} -I $PWD -c main.c -o main.o
gcc -c $PWD/other.c -o other.o
gcc -o hello main.o other.o
"""


def home_of(folder: Path) -> Path:
    """Return the home directory of the user of a project."""
    return folder / "home" / PERSON


def traced(folder: Path, *words: str, other: str = "int f(void) { return 0; }\n") -> Path:
    """Build the project below a directory with its environment traced; return its database."""
    tree = home_of(folder) / "hello"
    tree.mkdir(parents=True)
    (tree / "main.c").write_text(
        '#include "made.h"\nint f(void);\nint main(void) { return f(); }\n'
    )
    (tree / "other.c").write_text(other)
    environment = {
        "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "CCACHE_DISABLE": "1", "VISIBLE": "seen",
        "SECRET_KEY": ENVIRONMENT, "HOME": str(home_of(folder)), "USER": PERSON,
        "GITLAB_USER_LOGIN": OTHER, "WHO": f"{OTHER} and {COMMAND}",
    }  # fmt: skip
    for command in (
        ["etrace", "run", "--backend", "ptrace", "--env", "-q", *words, "--",
         "sh", "-e", "-c", SCRIPT],
        ["cas", "parse", "-q"],
        ["cas", "pp", "-q"],
    ):  # fmt: skip
        run([str(BIN / command[0]), *command[1:]], cwd=tree, environment=environment)
    return tree


def run(
    command: Sequence[str], *, cwd: Path, environment: Mapping[str, str] | None = None,
    status: int = 0,
) -> tuple[str, str]:  # fmt: skip
    """Run a command; return what it printed on standard output and error."""
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    return done.stdout, done.stderr


def lua(folder: Path) -> Image:
    """Return the golden Lua build with what `cas pp` adds."""
    return open_database(databases.write_processed_lua(folder))


def about(build: str, day: int = 1, project: str = "lua", **labels: str) -> About:
    """Return what is said of a build of a day of November 2026."""
    return About(build, project, TIME.replace(day=day), labels, with_packages=False)


def add(dataset: Dataset, image: Image, own: About) -> bool:
    """Add a build to a fleet, which is made if need be."""
    return dataset.add(image, own, Redactor(image), make=True)


def fleet_of(place: Path, image: Image, *builds: About) -> Dataset:
    """Return a fleet of these builds, which all have one image."""
    dataset = open_dataset(place)
    for own in builds:
        assert add(dataset, image, own)
    return dataset


def ask(dataset: Dataset, statement: str, **values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a statement."""
    return list(Duck(dataset).ask(statement, values or None).rows)


@contextmanager
def object_store() -> Iterator[str]:
    """Run moto's server of S3; give what the URI of a fleet has after its path."""
    from moto.server import ThreadedMotoServer

    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    yield f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    running.stop()


def bucket(store: str, name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a bucket; return the URI of a fleet in it."""
    from pyarrow import fs

    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "test")
    made, _ = fs.FileSystem.from_uri(f"s3://{name}?{store}&allow_bucket_creation=true")
    made.create_dir(name)
    return f"s3://{name}/a/fleet?{store}"
