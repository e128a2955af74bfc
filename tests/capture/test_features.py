# SPDX-License-Identifier: Apache-2.0
"""What this etrace was built with, asked of the programs themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from etrace import __version__
from etrace.capture import features


def collector(folder: Path, words: str, name: str = "etrace_cat") -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{words}'\n")
    program.chmod(0o755)


@pytest.mark.parametrize(("words", "is_here"), [("zstd: yes", True), ("zstd: no", False)])
def test_the_collector_tells_whether_it_compresses(
    words: str, is_here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector(tmp_path, f"etrace_cat 1.0, {words}")
    monkeypatch.setattr(features, "LIBEXEC", str(tmp_path))
    assert features.collector_zstd().is_here is is_here
    assert features.collector_zstd().shown == words


def test_what_a_build_lacks_is_said_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(features, "LIBEXEC", str(tmp_path))
    features.main()
    assert capsys.readouterr().out == (
        "built without zstd (etrace start --zstd, etrace_cat --zstd)\n"
        "  hint: apt-get install libzstd-dev, " + features.REBUILD + "\n"
        "built without gcc plugin (cas pp --confirm-inputs for gcc)\n"
        "  hint: apt-get install g++ gcc-N-plugin-dev (N: gcc -dumpversion), "
        + features.REBUILD
        + "\n"
        "built without preload of 32 bits (32-bit programs under etrace run --backend preload)\n"
        "  hint: on x86-64 use a compiler that links with -m32 (CC=gcc), " + features.REBUILD + "\n"
    )


def test_nobody_is_told_to_install_a_wheel_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "LIBEXEC", str(tmp_path))
    for feature in (features.gcc_plugin(), features.collector_zstd(), features.preload_narrow()):
        assert "with the source archive, pip install --force-reinstall" in feature.hint


def test_a_build_with_everything_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    collector(tmp_path, "etrace_cat 1.0, zstd: yes")
    collector(tmp_path, "etrace-preload 1.0, 32 bits: yes", "etrace-preload")
    (tmp_path / "libgcc_input_name.so").touch()
    monkeypatch.setattr(features, "LIBEXEC", str(tmp_path))
    features.main()
    assert capsys.readouterr().out == ""


def test_programs_and_packages_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(features, "ANALYTICS", ("etrace", "no_such_package"))
    monkeypatch.setattr(features, "WEB", ("etrace",))
    finders = (features.zstd_command, features.analytics, features.web)
    shown = features.version("x", *finders)
    assert shown == f"x {__version__}, zstd command: no, analytics: no, web: yes"
