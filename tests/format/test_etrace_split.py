# SPDX-License-Identifier: Apache-2.0
"""Cutting events into records loses and changes nothing, and each record keeps its limits.

The properties are checked by split_check.c, which makes the events; built with AddressSanitizer and
UndefinedBehaviorSanitizer.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
FORMAT = TOP / "native/format"
SOURCES = ["etrace_format.c", "etrace_record.c", "etrace_split.c"]
ROUNDS = 300


def build(program: Path, folder: Path) -> None:
    sources = [folder / name for name in SOURCES]
    subprocess.run(
        ["gcc", "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         f"-I{folder}", f"-I{TOP}/kmod/include", "-o", program,
         Path(__file__).with_name("split_check.c"), *sources],
        check=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def split_check(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("split") / "split_check"
    build(program, FORMAT)
    return program


@pytest.mark.parametrize("seed", range(1, 7))
def test_records_of_random_events_print_as_the_events_do(split_check: Path, seed: int) -> None:
    done = subprocess.run(
        [split_check, str(seed), str(ROUNDS)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    events, records, payload, text = map(int, done.stdout.split())
    header = (FORMAT / "etrace_record.h").read_text()
    limits = dict(re.findall(r"#define ETRACE_RECORD_(\w+)_MAX (\d+)", header))
    # the random events come close to both limits, and many are cut
    assert events > ROUNDS
    assert records > events
    assert 0.85 * int(limits["BYTES"]) < payload <= int(limits["BYTES"])
    assert 0.9 * int(limits["TEXT"]) < text <= int(limits["TEXT"])


@pytest.mark.parametrize(
    ("rule", "broken", "message"),
    [
        (
            "#define ETRACE_WHOLE_STRINGS_MAX 2600",
            "#define ETRACE_WHOLE_STRINGS_MAX 3100",
            "length of a payload|too long",
        ),
        ("#define PIECE_NEWLINES_MAX 32", "#define PIECE_NEWLINES_MAX 90", "too long"),
        ("part.text = cut + 1;", "part.text = cut;", "another|too long"),
        (
            "last = from + len - ETRACE_WORD;",
            "last = from + len - ETRACE_WORD - 1;",
            "another",
        ),
        ("text < end && *text != byte", "text < end - 1 && *text != byte", "too long|another"),
    ],
)
def test_the_check_notices_a_broken_rule(
    tmp_path: Path, rule: str, broken: str, message: str
) -> None:
    folder = Path(shutil.copytree(FORMAT, tmp_path / "format"))
    (source,) = (path for path in folder.glob("*.[ch]") if rule in path.read_text())
    assert source.read_text().count(rule) == 1
    source.write_text(source.read_text().replace(rule, broken))
    build(tmp_path / "split_check", folder)
    done = subprocess.run(
        [tmp_path / "split_check", "1", str(ROUNDS)], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert re.search(message, done.stderr), done.stderr
