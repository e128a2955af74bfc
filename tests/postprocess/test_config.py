# SPDX-License-Identifier: Apache-2.0
"""The configuration of post-processing: shipped values, the user's, and what is wrong with them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import libetrace
import pytest
from libetrace.depend.configuration import DEFAULT, KEYS, UNUSED, Config, load

from etrace.cli.cas.pp import report_config


def write(directory: Path, **values: Any) -> Config:
    (directory / ".bas_config").write_text(json.dumps(values))
    return load(directory)


def test_without_a_file_the_shipped_values_count(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert (config.is_default, config.path, config.unknown) == (True, DEFAULT, ())
    assert config.dependency_exclude_patterns == ("/proc/*", "*.rsp")
    assert config.command_patterns == ()


def test_the_shipped_file_says_every_key() -> None:
    assert set(json.loads(DEFAULT.read_bytes())) == {*KEYS, *UNUSED}


def test_a_key_that_the_file_lacks_keeps_its_shipped_value(tmp_path: Path) -> None:
    config = write(tmp_path, ld_spec=[])
    assert (config.is_default, config.path) == (False, tmp_path / ".bas_config")
    assert config.ld_spec == ()
    assert config.ar_spec == load(DEFAULT.parent / "no such directory").ar_spec


def test_command_patterns_are_counted_once_in_order(tmp_path: Path) -> None:
    config = write(tmp_path, exclude_command_variants={"*vmlinux": ["b*", "a*"], "*": ["a*", "c"]})
    assert config.command_patterns == ("b*", "a*", "c")
    assert config.exclude_command_variants == {"*vmlinux": ("b*", "a*"), "*": ("a*", "c")}


def test_an_unknown_key_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write(tmp_path, ld_specs=["*/ld"], zzz=1, clang_tailopts={"any": "thing"})
    assert config.unknown == ("ld_specs", "zzz")
    report_config(config)
    file = tmp_path / ".bas_config"
    assert capsys.readouterr().err == (
        f"cas pp: warning: {file}: unknown key 'ld_specs'; did you mean ld_spec?\n"
        f"cas pp: warning: {file}: unknown key 'zzz', ignored\n"
    )


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("ld_spec", "*/ld", "a list of strings"),
        ("ar_spec", ["*/ar", 1], "a list of strings"),
        ("dependency_exclude_patterns", ["a\0b"], "a list of strings"),
        ("exclude_command_variants", {"*": ["\ud800"]}, "an object of lists of strings"),
        ("exclude_command_variants", ["*"], "an object of lists of strings"),
        ("exclude_command_variants", {"*": "make*"}, "an object of lists of strings"),
    ],
)
def test_a_wrong_type_names_file_and_key(tmp_path: Path, key: str, value: Any, wanted: str) -> None:
    with pytest.raises(libetrace.error, match=rf"\.bas_config: {key} is not {wanted}"):
        write(tmp_path, **{key: value})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{", "not JSON"),
        ("[]", "not an object"),
        ("\udcff", "not JSON"),
        ("[" * 200_000, "more than 64 brackets within one another"),
        ('{"a":' + "[" * 70 + "]" * 70 + "}", "more than 64 brackets within one another"),
        (" " * (1 << 20) + "{}", "more than 1,048,576 bytes"),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path: Path, text: str, wanted: str) -> None:
    (tmp_path / ".bas_config").write_text(text, errors="surrogateescape")
    with pytest.raises(libetrace.error, match=wanted):
        load(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("ld_spec", ["[" * 30_000], "ld_spec: the pattern '.*' has 30,000 bytes"),
        ("ar_spec", ["[" * 20], "ar_spec: the pattern '.*' has more than 16 `\\[`"),
        ("exclude_command_variants", {"[" * 20: []}, "exclude_command_variants: the pattern"),
        ("exclude_command_variants", {"*": ["a" * 5000]}, "exclude_command_variants: the pattern"),
    ],
)
def test_a_pattern_that_takes_long_names_file_and_key(
    tmp_path: Path, key: str, value: Any, wanted: str
) -> None:
    with pytest.raises(libetrace.error, match=rf"\.bas_config: {wanted}"):
        write(tmp_path, **{key: value})


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".bas_config")
    with pytest.raises(libetrace.error, match=r"\.bas_config: not a regular file"):
        load(tmp_path)
