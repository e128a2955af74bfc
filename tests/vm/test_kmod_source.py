# SPDX-License-Identifier: Apache-2.0
"""The module's source under the kernel's own checkers, and built for another architecture."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from vm import kernel_source, kernels
from vm.archive import run, tool

KMOD = kernels.TOP / "kmod"
# What checkpatch says of the kernel's own files, and does not fit these.
ALLOWED = {
    # the one place that looks at the version, for the module is not part of one kernel
    "src/compat.h": ["LINUX_VERSION_CODE", "CONSTANT_COMPARISON"],
    # laid out as the kernel's own TRACE_EVENTs
    "src/record/trace.h": ["PARENTHESIS_ALIGNMENT", "OPEN_ENDED_LINE"],
    # rendered from events.toml, which has sentences
    "include/etrace/events.h": ["LONG_LINE", "LONG_LINE_COMMENT"],
}

pytestmark = pytest.mark.timeout(900)


def test_sparse_has_nothing_to_say(tmp_path: Path) -> None:
    tool("sparse")
    # C=2: every file; what sparse says is a warning of the build, which build_module refuses
    kernels.build_module(kernels.find(kernels.MACHINE), tmp_path, "C=2")


ONE_MORE_BUILD = "builds the module for another kernel or machine; make test builds it for this one"


@pytest.fixture(scope="module")
def for_arm64(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the module, built for arm64."""
    return kernels.build_for_arm64(tmp_path_factory.mktemp("arm64"))


@pytest.mark.long(ONE_MORE_BUILD)
def test_the_module_builds_for_arm64(for_arm64: Path) -> None:
    assert for_arm64.read_bytes()[18:20] == b"\xb7\0"  # e_machine: EM_AARCH64


@pytest.mark.long(ONE_MORE_BUILD)
def test_how_many_use_the_descriptors_is_read_before_the_table(for_arm64: Path) -> None:
    """As fdget() does since Linux 6.1 (7ee47dcfff18): a load that later ones do not overtake."""
    text = run("aarch64-linux-gnu-objdump", "-d", "--disassemble=etrace_exit_open", for_arm64)
    assert "<etrace_exit_open>:" in text
    assert re.search(r"\tlda(p)?r\t", text), text


def test_the_compiler_checks_each_probe_against_the_prototype_of_its_tracepoint() -> None:
    source = (KMOD / "src/probe/hooks.c").read_text()
    (table,) = re.findall(r"tracepoint_probes\[\] = {\n(.*?)\n};", source, re.DOTALL)
    probes = re.findall(r'\{ "(\w+)", (\w+)', table)
    assert set(probes) == set(re.findall(r"check_trace_callback_type_(\w+)\((\w+)\);", source))


INDIRECT = re.compile(r"__x86_indirect_(thunk|call)|\b(call|jmp)q?\s+\*")


@pytest.fixture(scope="module")
def unexported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the instructions of each function, of a module that has to look most up."""
    kernel = kernels.find(kernels.MACHINE + kernels.UNEXPORTED)
    built = kernels.build_module(kernel, tmp_path_factory.mktemp("unexported"))
    listing = run("objdump", "--disassemble", "--reloc", "--no-show-raw-insn", built)
    return dict(re.findall(r"^[0-9a-f]+ <([\w.]+)>:\n(.*?)(?=^$|\Z)", listing, re.M | re.S))


LOOKED_UP = {
    "src/task/work.c": ("__SCT__etrace_add_task_work", {"etrace_work_init", "etrace_work_add"}),
    "src/event/usage.c": ("__SCT__etrace_task_runtime", {"etrace_usage_init", "etrace_put_usage"}),
}


def test_who_looks_functions_up() -> None:
    users = {path for path in KMOD.rglob("*.c") if "= etrace_lookup(" in path.read_text()}
    assert users == {KMOD / name for name in LOOKED_UP}


@pytest.mark.long(ONE_MORE_BUILD)
@pytest.mark.parametrize("file", LOOKED_UP)
def test_what_is_looked_up_is_called_directly(unexported: dict[str, str], file: str) -> None:
    static_call, some = LOOKED_UP[file]
    source = (KMOD / file).read_text()
    defined = set(re.findall(r"^\w[\w \*]*?(\w+)\(.*\)\n\{", source, re.M))
    # those that the compiler has cut off of them: name.part.0
    ours = {name: text for name, text in unexported.items() if name.split(".")[0] in defined}
    assert some <= set(ours)
    called = re.findall(r"(?:call|jmp)q? .*\n.*R_X86_64_PLT32\s+(\w+)", "".join(ours.values()))
    assert static_call in called
    assert [name for name, text in ours.items() if INDIRECT.search(text)] == []


def test_checkpatch_has_nothing_to_say() -> None:
    usual = set(KMOD.rglob("*.[ch]")) - {KMOD / name for name in ALLOWED}
    for files, allowed in ((sorted(usual), []), *(([KMOD / n], k) for n, k in ALLOWED.items())):
        options = ["--no-tree", "--strict", "--terse", "--max-line-length=100"]
        options += [f"--ignore={kind}" for kind in allowed]
        command: list[str | Path] = [kernel_source.checkpatch(), *options, "-f", *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.stdout + done.stderr, done.returncode) == ("", 0)
