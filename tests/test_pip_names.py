# SPDX-License-Identifier: Apache-2.0
"""Commands of pip, pipx and uv in the tree name distributions that are what they say.

PyPI's `etrace` is a stranger's program (docs/decisions/0036-packages-and-releases.md): a hint that
names it would run that stranger's code.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from etrace.capture import features
from etrace.capture.kmod import findings

TOP = Path(__file__).resolve().parents[1]
#: what a command may take from an index
KNOWN = {
    "duckdb",
    "pandas",
    "pyarrow",
    "pyspark",
    "perfetto",
    "starlette",
    "uvicorn",
    "virtme-ng",
    "pip",
}
COMMAND = re.compile(
    r"(?:\bpip[\d.]*\s+(?:-\S+\s+)*(?:install|download|wheel)|\bpipx\s+(?:install|run|inject\s+\S+)"
    r"|\buv\s+(?:pip\s+install|tool\s+(?:install|run)|add)|\buvx)\b([^`;&|<>()]*)"
)
#: where a command ends in the text around it: its line, but for a path that was wrapped
END = re.compile(r"\n(?!\s*build/packages/)|\\n|\"\"\"|, |: |\. |\.$")
VALUED = {"--group", "-r", "-c", "-t", "-w", "--target", "--prefix", "--python", "-i"}
PLACEHOLDER = re.compile(r"[\"']?(\$\{[^}]*\}|\$\w+|\{[^}]*\})[\"']?")


def named(text: str) -> Iterator[str]:
    """Yield what the commands in a text would take from an index."""
    for arguments in COMMAND.findall(text):
        words = PLACEHOLDER.sub("-", END.split(arguments)[0]).replace('"', "'")
        if words.count("'") % 2:  # the quote that ends the text around it
            words = words.rpartition("'")[0]
        previous = ""
        for word in shlex.split(words, comments=True):
            is_path = "/" in word or word.endswith((".whl", ".tar.gz")) or set(word) <= {"."}
            is_descriptor = word.isdigit()  # of 2>&1
            if not (is_path or is_descriptor or word.startswith("-") or previous in VALUED):
                yield word
            previous = word


def tracked() -> Iterator[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True)
    for name in listed.stdout.decode().split("\0"):
        path = TOP / name
        if name and path.is_file() and path != Path(__file__):
            yield path


def test_commands_of_the_tree_name_known_distributions() -> None:
    found = {
        (str(path.relative_to(TOP)), name)
        for path in tracked()
        if not path.is_relative_to(TOP / "tests/data")
        for name in named(path.read_text("utf-8", "replace"))
        if name not in KNOWN
    }
    assert found == set()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("\"pip install 'etrace[analytics]'\",", ["etrace[analytics]"]),
        ('"pip install etrace", or', ["etrace"]),
        ("run: python3 -m pip -q install -U duckdb etrace", ["duckdb", "etrace"]),
        ("`pipx install etrace` or uv tool install etracer", ["etrace", "etracer"]),
        ("pipx inject environment etrace", ["etrace"]),
        ("uvx etrace\nnext line", ["etrace"]),
        ("then `pip install\nbuild/packages/wheel/*.whl`", []),
        ('pip install -q "${groups[@]}" --group test . && make', []),
        ('f"{sys.prefix}/bin/python -m pip install {names}"', []),
    ],
)  # fmt: skip
def test_names_are_found_in_commands_of_every_shape(text: str, names: list[str]) -> None:
    assert list(named(text)) == names


def test_hints_of_missing_libraries_name_known_distributions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    libraries = (*features.ANALYTICS, *features.PERFETTO, *features.WEB)
    assert set(libraries) <= KNOWN
    for prefix in ("/srv/venv", sys.base_prefix):
        monkeypatch.setattr(sys, "prefix", prefix)
        assert list(named(features.install_hint(libraries))) == list(libraries)


def test_the_name_of_the_distribution_is_nobody_elses() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == "linux-build-tracer"
    assert project["name"].replace("-", "_") == findings.ARCHIVE
