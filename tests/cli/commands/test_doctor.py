# SPDX-License-Identifier: Apache-2.0
"""`etrace doctor` on this machine and where ptrace is forbidden."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ETRACE = str(Path(sys.executable).parent / "etrace")


def test_a_working_backend_is_shown_with_the_facts() -> None:
    done = subprocess.run([ETRACE, "doctor"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "ptrace: works" in done.stdout
    assert "yama ptrace_scope" in done.stdout


def test_what_the_kernel_module_needs_is_shown_with_what_to_do() -> None:
    done = subprocess.run([ETRACE, "doctor"], capture_output=True, text=True, check=False)
    _, _, needs = done.stdout.partition("what the kernel module needs\n")
    names = ["rights", "module", "lockdown", "secure boot", "module signatures"]
    assert all(f"\n  {name} " in "\n" + needs for name in names), needs
    if "missing: CONFIG_MODULES" in needs:
        assert "build and install it" not in done.stdout
    elif "none for kernel" in needs:
        assert "do this: build and install it for this kernel" in needs


def test_what_bpf_programs_need_is_shown() -> None:
    done = subprocess.run([ETRACE, "doctor"], capture_output=True, text=True, check=False)
    _, _, rest = done.stdout.partition("\nwhat the BPF programs need\n")
    needs, _, _ = rest.partition("\n\n")
    names = [line[2:18].rstrip() for line in needs.splitlines() if line[2] != " "]
    assert names == [
        "program", "rights", "kernel", "type information", "lockdown", "locked memory",
    ]  # fmt: skip
    assert "\n  bpf: " in done.stdout


def test_under_another_tracer_it_says_so_and_what_is_left(tmp_path: Path) -> None:
    # strace holds the only tracer's place of every process it follows
    done = subprocess.run(
        ["strace", "-f", "-o", tmp_path / "strace.out", ETRACE, "doctor"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "preload: works" in done.stdout
    assert "ptrace: does not work" in done.stdout
    assert "because:" in done.stdout
    assert "do this:" in done.stdout


def test_a_strangers_distribution_of_this_name_is_warned_of(tmp_path: Path) -> None:
    known = subprocess.run([ETRACE, "doctor"], capture_output=True, text=True, check=True)
    assert "distribution etrace" not in known.stdout
    metadata = tmp_path / "etrace-88.0.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: etrace\nVersion: 88.0\n")
    done = subprocess.run(
        [sys.executable, f"{ETRACE}_start", "etrace", "doctor"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert f"distribution etrace  88.0 in {tmp_path} is not this program" in done.stdout
    assert "do this: remove it with the pip that installed it" in done.stdout
