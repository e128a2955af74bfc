# SPDX-License-Identifier: Apache-2.0
"""What this etrace was built with, asked of the programs themselves."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from etrace import __version__
from etrace.capture import features


def collector(folder: Path, words: str, name: str = "etrace_cat") -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{words}'\n")
    program.chmod(0o755)


@pytest.mark.parametrize(("words", "is_here"), [("zstd: yes", True), ("zstd: no", False)])
def test_the_collector_says_whether_it_compresses(
    words: str, is_here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector(tmp_path, f"etrace_cat 1.0, {words}")
    monkeypatch.setattr(features, "LIBEXEC", str(tmp_path))
    assert features.FEATURES[0].is_here is is_here
    assert features.version("x", "zstd") == f"x {__version__}, {words}"


def test_what_a_build_lacks_is_said_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(features, "LIBEXEC", str(tmp_path))
    features.main()
    assert "with the source archive, pip install --force-reinstall" in features.REBUILD
    assert capsys.readouterr().out == (
        "built without zstd (etrace start --zstd, etrace_cat --zstd)\n"
        "  hint: apt-get install libzstd-dev, " + features.REBUILD + "\n"
        "built without gcc plugin (cas pp --confirm-inputs for gcc)\n"
        "  hint: apt-get install g++ gcc-N-plugin-dev (N: gcc -dumpversion), "
        + features.REBUILD
        + "\n"
        "built without preload of 32 bits (32-bit programs under etrace run --backend preload)\n"
        "  hint: on x86-64 use a compiler that links with -m32 (CC=gcc), " + features.REBUILD + "\n"
        "built without bpf (etrace run --backend bpf)\n"
        "  hint: apt-get install clang llvm bpftool libbpf-dev libelf-dev zlib1g-dev pkgconf, "
        + features.REBUILD
        + "\n"
    )


def test_a_build_with_everything_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    collector(tmp_path, "etrace_cat 1.0, zstd: yes")
    collector(tmp_path, "etrace-preload 1.0, 32 bits: yes", "etrace-preload")
    (tmp_path / "libgcc_input_name.so").touch()
    (tmp_path / "etrace-bpf").touch()
    monkeypatch.setattr(features, "LIBEXEC", str(tmp_path))
    features.main()
    assert capsys.readouterr().out == ""


def test_programs_and_packages_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(features, "ANALYTICS", ("etrace", "no_such_package"))
    monkeypatch.setattr(features, "WEB", ("etrace",))
    shown = features.version("x", "zstd command", "analytics", "web")
    assert shown == f"x {__version__}, zstd command: no, analytics: no, web: yes"


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Pretend that no virtual environment runs this, but a Python that a distribution owns."""
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    monkeypatch.setattr(features, "_standard_library", lambda: str(tmp_path))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(sys, "argv", ["/opt/etrace/cas"])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return tmp_path


def only(manager: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let /usr/bin have one package manager."""
    there = os.path.exists
    monkeypatch.setattr(
        os.path, "exists",
        lambda path: path == f"/usr/bin/{manager}" if path[:9] == "/usr/bin/" else there(path),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("libexec", "manager"),
    [
        ("/usr/lib/python3/dist-packages/etrace/libexec", "apt-get"),
        ("/usr/lib64/python3.13/site-packages/etrace/libexec", "dnf"),
    ],
)
def test_a_packaged_etrace_asks_the_package_manager(
    libexec: str, manager: str, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "LIBEXEC", libexec)
    only(manager, monkeypatch)
    wanted = f"sudo {manager} install python3-starlette python3-uvicorn"
    assert features.install_hint(features.WEB) == wanted
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert features.install_hint(features.WEB) == wanted.removeprefix("sudo ")


IN_ENVIRONMENT = (
    "python3 -m venv --system-site-packages ~/etrace-extras && ~/etrace-extras/bin/pip install "
    "duckdb pyarrow; then: ~/etrace-extras/bin/python /opt/etrace/cas ..."
)


def test_what_a_distribution_does_not_package_goes_into_an_environment(
    system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "LIBEXEC", "/usr/lib/python3/dist-packages/etrace/libexec")
    for manager in ("apt-get", "dnf", "pacman"):
        only(manager, monkeypatch)
        assert features.install_hint(features.ANALYTICS) == IN_ENVIRONMENT


def test_pip_is_named_only_where_it_may_install(system: Path) -> None:
    assert features.install_hint(features.ANALYTICS) == IN_ENVIRONMENT
    (system / "EXTERNALLY-MANAGED").unlink()
    asked = f"{sys.executable} -m pip install duckdb pyarrow"
    assert features.install_hint(features.ANALYTICS) == asked


def test_a_virtual_environment_is_asked_by_whoever_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "linux-build-tracer"
    home.mkdir()
    monkeypatch.setattr(sys, "prefix", str(home))
    assert features.install_hint(["perfetto"]) == f"{home}/bin/python -m pip install perfetto"
    monkeypatch.setattr(features, "_have_packages", lambda *names: names != ("pip",))
    assert features.install_hint(["perfetto"]) == f"uv pip install --python {home} perfetto"
    (home / "pipx_metadata.json").touch()
    assert features.install_hint(["perfetto"]) == "pipx inject linux-build-tracer perfetto"
