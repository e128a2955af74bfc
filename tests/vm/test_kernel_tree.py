# SPDX-License-Identifier: Apache-2.0
"""etrace in a kernel's own tree: under the kernel's checkers, and the kselftest in a guest.

`make test-kernel-tree` builds the kernels (tree_kernel.py) and runs these and the expected lines in
guests of them. What needs no kernel is in tests/kmod/test_kernel_tree.py.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from vm import tree_kernel
from vm.archive import cache, run, tool
from vm.machine import complaints
from vm.rig import Guest

pytestmark = [pytest.mark.vm, pytest.mark.tree, pytest.mark.timeout(14400)]
KSELFTEST = ("kselftest",)
VERSIONS = sorted(tree_kernel.SUITES)
# What checkpatch says of every patch that adds files, and of a table of digits and a macro that
# gives two arguments.
ALLOWED = ["FILE_PATH_CHANGES", "SPLIT_STRING", "MISSING_SPACE", "COMPLEX_MACRO"]
# Laid out as the kernel's own TRACE_EVENTs.
ALLOWED += ["OPEN_ENDED_LINE", "PARENTHESIS_ALIGNMENT"]
# Programs of user space: none of the kernel's macros.
ALLOWED_IN_PROGRAMS = [
    "ARRAY_SIZE", "CAMELCASE", "EMBEDDED_FUNCTION_NAME", "PREFER_DEFINED_ATTRIBUTE_MACRO",
    "QUOTED_WHITESPACE_BEFORE_NEWLINE", "STATIC_CONST_CHAR_ARRAY", "VOLATILE",
]  # fmt: skip


TOUCHED = (
    "Makefile", "MAINTAINERS", "kernel/trace/Kconfig", "kernel/trace/Makefile",
    "kernel/task_work.c", "kernel/rcu/tasks.h", "Documentation/trace/index.rst",
    "tools/testing/selftests/Makefile", "scripts/checkpatch.pl",
)  # fmt: skip


@pytest.fixture(params=VERSIONS)
def pristine(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Copy what the script reads of a kernel, without etrace."""
    root = tmp_path / "linux"
    archive = tree_kernel.archive(request.param)
    members = [f"linux-source-{request.param}/{name}" for name in TOUCHED]
    root.mkdir()
    run("tar", "-xf", archive, "-C", root, "--strip-components=1", *members)
    return root


@pytest.fixture
def series(pristine: Path, tmp_path: Path) -> list[Path]:
    """Write the series for that kernel."""
    return [Path(line) for line in tree_kernel.script("patches", pristine, tmp_path).splitlines()]


def test_checkpatch_has_nothing_to_say_of_the_series(series: list[Path]) -> None:
    found = []
    for number, patch in enumerate(series[1:], 1):
        allowed = [*ALLOWED, *(ALLOWED_IN_PROGRAMS if number == 5 else [])]
        done = subprocess.run(
            ["scripts/checkpatch.pl", "--strict", "--terse", "--max-line-length=100",
             f"--ignore={','.join(allowed)}", patch],
            cwd=tree_kernel.source(VERSIONS[0]), capture_output=True, text=True, check=False,
        )  # fmt: skip
        found += [line for line in done.stdout.splitlines() if not line.startswith("total:")]
        assert done.returncode == 0 or found
    assert found == []


def test_the_series_applies_to_a_kernel_and_gives_the_same(
    series: list[Path], pristine: Path
) -> None:
    git = ("git", "-c", "user.name=T", "-c", "user.email=t@example.org")
    run(*git, "init", "-q", cwd=pristine)
    run(*git, "add", "-f", ".", cwd=pristine)
    run(*git, "commit", "-q", "-m", "pristine", cwd=pristine)
    run(*git, "am", "-q", *series[1:], cwd=pristine)
    tree_kernel.script("put", pristine)
    assert (
        run(*git, "status", "--porcelain", "--", ".", ":!.etrace-kernel-tree", cwd=pristine) == ""
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_sparse_and_more_warnings_have_nothing_to_say(version: str) -> None:
    tool("sparse")
    built = tree_kernel.build(f"tree-{version}")
    for path in (built.folder / tree_kernel.HOME).rglob("*.o"):
        path.unlink()
    said = run(
        "make", "-C", built.source, f"O={built.folder}", "W=1", "C=2", f"{tree_kernel.HOME}/",
        has_warnings=True,
    )  # fmt: skip
    assert not re.search(r"warning|error", said, re.I)


def cocci_scripts(tree: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield what coccicheck runs, with its options.

    coccicheck itself stops at the first script that wants an OCaml compiler: a check of one driver.
    """
    for script in sorted((tree / "scripts/coccinelle").rglob("*.cocci")):
        text = script.read_text()
        if "script:ocaml" in text or "virtual report" not in text:
            continue
        options = re.search(r"^// Options: (.*)$", text, re.M)
        yield script, options[1].split() if options else []


def test_coccinelle_has_nothing_to_say() -> None:
    tree = tree_kernel.source(VERSIONS[0])
    found = ""
    for script, options in cocci_scripts(tree):
        found += run(
            tool("spatch"), "-D", "report", "--no-show-diff", "--very-quiet", "--cocci-file",
            script, *options, "--dir", tree / tree_kernel.HOME, cwd=tree,
        )  # fmt: skip
    assert found == ""


@pytest.mark.phase(*KSELFTEST)
def test_the_kselftest_passes(guest: Guest) -> None:
    guest.phase(*KSELFTEST)
    tap = (guest.work / "out/kselftest.tap").read_text()
    results = re.findall(r"^# (ok|not ok) \d+ (\S+)(.*)$", tap, re.M)
    assert len(results) > 80
    assert [name for word, name, _ in results if word != "ok"] == []
    assert re.search(r"^ok 1 selftests: etrace: etrace_test.py$", tap, re.M)
    assert complaints(guest.console(*KSELFTEST)) == []


def test_a_kernel_with_it_built_in_has_no_module() -> None:
    folder = cache() / "images" / f"tree-{VERSIONS[0]}"
    assert not (folder / "etrace.ko").exists()
