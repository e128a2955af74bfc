# SPDX-License-Identifier: Apache-2.0
"""Sample logs and programs, and llvm-xray's outputs (tests/data/xray/samples.tar.xz).

bin/ has tests/data/xray/src compiled by clang 19 with -fxray-instrument, logs/ what they logged,
oracle/ what llvm-xray 19 printed of both. synthetic/ has logs of all versions that were written
byte for byte, each with what it says as JSON.
"""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from xray.builder import LogBuilder

from etrace.cli.main import etrace
from etrace.xray.names import Names, read_maps
from etrace.xray.session import Session

DATA = Path(__file__).parents[1] / "data" / "xray"
PROGRAMS = ("ev_pie19", "mt_pie19", "rec_nopie19", "tail_pie19")
FDR_LOGS = tuple(f"{name}.fdr" for name in PROGRAMS)


@cache
def folder() -> Path:
    """Return where the samples are, unpacked until this process ends."""
    place = Path(tempfile.mkdtemp(prefix="etrace-xray-"))
    atexit.register(shutil.rmtree, place)
    with tarfile.open(DATA / "samples.tar.xz") as archive:
        archive.extractall(place)
    return place


def log(name: str) -> Path:
    return folder() / "logs" / f"{name}.xray"


def program(name: str) -> Path:
    return folder() / "bin" / name.partition(".")[0]


def synthetic(name: str) -> bytes:
    return (folder() / "synthetic" / f"{name}.xray").read_bytes()


def truth(name: str) -> Any:
    return json.loads((folder() / "synthetic" / f"{name}.json").read_text())


def oracle(name: str) -> str:
    return (folder() / "oracle" / f"{name}.out").read_text()


YAML_RECORD = re.compile(
    r"  - \{ type: (?P<type>\d+), func-id: (?P<function>\d+), "
    r"function: (?P<name>'(?:[^']|'')*'|\S+), "
    r"(?:args: \[ (?P<args>[\d, ]*) \], )?cpu: (?P<cpu>\d+), thread: (?P<thread>\d+), "
    r"process: (?P<process>\d+), kind: (?P<kind>[\w-]+), tsc: (?P<tsc>\d+), data: (?P<data>.*) \}"
)


def yaml_records(text: str) -> list[dict[str, str]]:
    """Read the records of llvm-xray's YAML."""
    found = [YAML_RECORD.fullmatch(line) for line in text.splitlines() if line.startswith("  - {")]
    assert all(found), "a line is not as llvm-xray writes it"
    return [{k: v or "" for k, v in m.groupdict().items()} for m in found if m]


MT = str(log("mt_pie19.fdr"))
MT_MAP = str(program("mt_pie19"))
TAIL = str(log("tail_pie19.fdr"))
#: one function calls another twice
NESTED = (
    LogBuilder().thread(1).cpu(0, 0)
    .enter(1, 0).enter(2, 10).exit(2, 5).enter(2, 1).exit(2, 7).exit(1, 2)
    .build()
)  # fmt: skip


def session(name: str, **options: Any) -> Session:
    """Return a session of a sample log with its program's map."""
    names = Names(read_maps([str(program(name))]))
    return Session([str(log(name))], names, **options)


def run(*args: str) -> int:
    """Run `etrace xray` in this process."""
    return etrace(["xray", *args])
