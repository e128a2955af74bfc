# SPDX-License-Identifier: Apache-2.0
"""`--version` of every program: the version, and the features where it has some."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from backends import BACKENDS, PRELOAD

import etrace

PROGRAMS = Path(sys.executable).parent
EXTRAS = ["analytics", "perfetto", "web"]
LIBEXEC = Path(etrace.__file__).parent / "libexec"


@pytest.mark.parametrize(
    ("program", "features"),
    [
        (
            PROGRAMS / "etrace",
            ["zstd", "gcc plugin", "preload of 32 bits", "zstd command", *EXTRAS],
        ),
        (PROGRAMS / "cas", ["gcc plugin", "zstd command", "analytics"]),
        (PROGRAMS / "etrace_parser", ["zstd command"]),
        (LIBEXEC / "etrace_cat", ["zstd"]),
        (BACKENDS[0].path(), []),
        (PRELOAD.path(), ["32 bits"]),
    ],
)
def test_a_program_tells_its_version_and_features(program: Path, features: list[str]) -> None:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    head, *rest = done.stdout.removesuffix("\n").split(", ")
    assert (head, done.stderr) == (f"{program.name} {etrace.__version__}", "")
    assert [text.partition(": ")[0] for text in rest] == features
    assert {text.partition(": ")[2] for text in rest} <= {"yes", "no"}


def test_features_are_looked_for_only_when_somebody_asks() -> None:
    code = (
        "import sys\nfrom etrace.cli.cas.program import top_parser\ntop_parser()\n"
        "print('etrace.capture.features' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
